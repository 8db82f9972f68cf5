"""Writes tenon/ops/special_tables.h: coefficients of Chebyshev series of special functions.  make_special_tables.py OUT

Each function is interpolated at 80 Chebyshev nodes of its interval in 40 digits, and the series is cut where its terms are below
the last digit of the greatest. Needs mpmath.
"""

import pathlib
import sys

from mpmath import besseli, besselj, besselk, bessely, cos, erfc, euler, exp, fsum, log, mp, mpf, pi, sin, sqrt

mp.dps = 40
NODES = 80
TINY = mpf(10) ** -12


def coefficients(f, low, high):
    low, high = mpf(low), mpf(high)
    places = [cos(pi * (k + mpf(1) / 2) / NODES) for k in range(NODES)]
    values = [f((high - low) / 2 * t + (high + low) / 2) for t in places]
    out = []
    for j in range(NODES):
        total = fsum(v * cos(pi * j * (k + mpf(1) / 2) / NODES) for k, v in enumerate(values))
        out.append((2 if j else 1) * total / NODES)
    least = max(map(abs, out)) * mpf(10) ** mpf("-17.5")
    return out[:1 + max(j for j in range(NODES) if abs(out[j]) > least)]


def decaying(order):
    return lambda u: exp(-1 / u) * besseli(order, 1 / u) * sqrt(1 / u) if u > TINY else 1 / sqrt(2 * pi)


def growing(order):
    return lambda u: exp(1 / u) * besselk(order, 1 / u) * sqrt(1 / u) if u > TINY else sqrt(pi / 2)


def amplitudes(order):
    """What goes with the cosine and with the sine of the phase, over 1/x^2; the latter times x."""
    def parts(u):
        x = 1 / sqrt(u)
        phase, root = x - (2 * order + 1) * pi / 4, sqrt(pi * x / 2)
        j, y = besselj(order, x), bessely(order, x)
        return root * (j * cos(phase) + y * sin(phase)), x * root * (y * cos(phase) - j * sin(phase))

    limit = 1, mpf(4 * order ** 2 - 1) / 8
    return [lambda u, i=i: parts(u)[i] if u > TINY ** 2 else limit[i] for i in range(2)]


def scaled_erfc(t):
    if t > 1 - mpf(10) ** -6:
        return 2 / sqrt(pi)
    x = 4 * (1 + t) / (1 - t)
    return exp(x * x) * erfc(x) * (1 + 2 * x)


def normal_tail(t):
    r = 5 * (1 + t) / (1 - t)
    x = -r
    for _ in range(60):
        below = erfc(-x / sqrt(2)) / 2
        step = (log(below) + r * r / 2) / (exp(-x * x / 2) / sqrt(2 * pi) / below)
        x -= step
        if abs(step) < mpf(10) ** -36 * abs(x):
            break
    return -x / r


def of_root(f, at_zero):
    return lambda s: f(sqrt(s)) if s > TINY ** 2 else mpf(at_zero)


def tables():
    yield "i0e_small", "exp(-x) I0(x), x in [0, 10]", lambda x: exp(-x) * besseli(0, x), 0, 10
    yield "i0e_large", "sqrt(x) exp(-x) I0(x), 1/x in [0, 0.1]", decaying(0), 0, mpf(1) / 10
    yield ("i1e_small", "exp(-x) I1(x) / x, x in [0, 10]",
           lambda x: exp(-x) * besseli(1, x) / x if x > TINY else mpf(1) / 2, 0, 10)
    yield "i1e_large", "sqrt(x) exp(-x) I1(x), 1/x in [0, 0.1]", decaying(1), 0, mpf(1) / 10
    yield ("k0_small", "K0(x) + log(x/2) I0(x), x^2 in [0, 4]",
           of_root(lambda x: besselk(0, x) + log(x / 2) * besseli(0, x), -euler), 0, 4)
    yield ("k1_small", "x (K1(x) - log(x/2) I1(x)), x^2 in [0, 4]",
           of_root(lambda x: x * (besselk(1, x) - log(x / 2) * besseli(1, x)), 1), 0, 4)
    yield "k0e_large", "sqrt(x) exp(x) K0(x), 1/x in [0, 0.5]", growing(0), 0, mpf(1) / 2
    yield "k1e_large", "sqrt(x) exp(x) K1(x), 1/x in [0, 0.5]", growing(1), 0, mpf(1) / 2
    yield "j0_small", "J0(x), x^2 in [0, 64]", lambda s: besselj(0, sqrt(s)), 0, 64
    yield "j1_small", "J1(x) / x, x^2 in [0, 64]", of_root(lambda x: besselj(1, x) / x, 0.5), 0, 64
    yield ("y0_small", "Y0(x) - 2/pi log(x/2) J0(x), x^2 in [0, 64]",
           of_root(lambda x: bessely(0, x) - 2 / pi * log(x / 2) * besselj(0, x), 2 * euler / pi), 0, 64)
    yield ("y1_small", "(Y1(x) - 2/pi (log(x/2) J1(x) - 1/x)) / x, x^2 in [0, 64]",
           of_root(lambda x: (bessely(1, x) - 2 / pi * (log(x / 2) * besselj(1, x) - 1 / x)) / x, (2 * euler - 1) / (2 * pi)), 0, 64)
    for order in (0, 1):
        with_cosine, with_sine = amplitudes(order)
        yield f"p{order}_large", f"the part of order {order} that goes with the cosine, 1/x^2 in [0, 1/64]", with_cosine, 0, mpf(1) / 64
        yield f"q{order}_large", "the one that goes with the sine, times x, 1/x^2 in [0, 1/64]", with_sine, 0, mpf(1) / 64
    yield "erfcx_series", "(1 + 2 x) exp(x^2) erfc(x), x >= 0, in (x - 4)/(x + 4)", scaled_erfc, -1, 1
    low, high = ((mpf(r) - 5) / (mpf(r) + 5) for r in ("2.2", "39"))
    yield "ndtri_tail", "-x / r for p = exp(-r^2/2), r in [2.2, 39], in (r - 5)/(r + 5)", normal_tail, low, high


def main():
    lines = ["// Coefficients of Chebyshev series of special functions, each over one interval mapped to [-1, 1]; made by",
             "// scripts/make_special_tables.py.", "#pragma once", "", "namespace tenon::special {", ""]
    for name, comment, f, low, high in tables():
        lines += [f"// {comment}", f"inline constexpr double {name}[] = {{"]
        line = "   "
        for c in coefficients(f, low, high):
            word = f" {float(c)!r},"
            if len(line + word) > 110:
                lines.append(line)
                line = "   "
            line += word
        lines += [line, "};"]
    lines += ["", "}  // namespace tenon::special", ""]
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines))


if __name__ == "__main__":
    main()
