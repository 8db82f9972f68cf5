#!/usr/bin/env python3
"""Writes tenon/compile/math_tables.h: polynomial coefficients of the functions that are written in Kernel IR.

Needs mpmath. Polynomials interpolate at Chebyshev nodes in 200 digits, which is within a small factor of the best ones;
coefficients are then rounded. Run it as: scripts/make_math_tables.py > tenon/compile/math_tables.h
"""
import mpmath as mp

mp.mp.dps = 200


def interpolate(f, a, b, degree):
    """Coefficients, lowest first, of the polynomial through f at the Chebyshev nodes of [a, b]."""
    n = degree + 1
    nodes = [(a + b) / 2 + (b - a) / 2 * mp.cos(mp.pi * (2 * k + 1) / (2 * n)) for k in range(n)]
    nodes = [x if abs(x) > mp.mpf(10) ** -30 else mp.mpf(10) ** -30 for x in nodes]  # f may be 0 / 0 at 0
    # Newton's divided differences, then expanded.
    table = [f(x) for x in nodes]
    for level in range(1, n):
        for k in range(n - 1, level - 1, -1):
            table[k] = (table[k] - table[k - 1]) / (nodes[k] - nodes[k - level])
    poly = [mp.mpf(0)] * n
    for k in range(n - 1, -1, -1):
        shifted = [mp.mpf(0)] + poly[:-1]
        poly = [s - nodes[k] * p for s, p in zip(shifted, poly)]
        poly[0] += table[k]
    return poly


def even_series(f, b, degree):
    """f as a polynomial in z on [0, b]; f is given near 0 by its limit."""
    return interpolate(f, mp.mpf(b) * mp.mpf(10) ** -12, mp.mpf(b), degree)


def text(x):
    return repr(float(x))


def array(name, values, note):
    print(f"// {note}")
    print(f"constexpr double {name}[] = {{")
    line = "   "
    for i, v in enumerate(values):
        piece = " " + text(v) + ("," if i + 1 < len(values) else "};")
        if len(line) + len(piece) > 118:
            print(line)
            line = "   "
        line += piece
    print(line + "\n")


def pieces(name, f, width, degree, note):
    """Sixteen polynomials of u = x - k * width for an odd f, as rows by coefficient, lowest first. The one around 0
    gives what is added to u, and is u times an even one: small numbers keep their precision."""
    rows = [[] for _ in range(degree + 1)]
    h = mp.mpf(width) / 2
    for k in range(16):
        center = mp.mpf(width) * k
        if k:
            coefficients = interpolate(lambda u: f(center + u), -h, h, degree)
        else:
            even = even_series(lambda z: f(mp.sqrt(z)) / mp.sqrt(z) - 1, h**2, (degree - 1) // 2)
            coefficients = [mp.mpf(0)] * (degree + 1)
            coefficients[1:2 * len(even):2] = even
        for d, c in enumerate(coefficients):
            rows[d].append(c)
    print_rows(name, rows, note)


def pieces_from(name, f, start, width, degree, note):
    """Sixteen polynomials of u = v - start - k * width."""
    rows = [[] for _ in range(degree + 1)]
    h = mp.mpf(width) / 2
    for k in range(16):
        center = mp.mpf(start) + mp.mpf(width) * k
        low = -h if center > h else -center + mp.mpf(10) ** -20  # f may end at 0
        for d, c in enumerate(interpolate(lambda u: f(center + u), low, h, degree)):
            rows[d].append(c)
    print_rows(name, rows, note)


def print_rows(name, rows, note):
    print(f"// {note}")
    print(f"constexpr double {name}[{len(rows)}][16] = {{")
    for row in rows:
        line = "    {"
        for i, v in enumerate(row):
            piece = text(v) + (", " if i < 15 else "},")
            if len(line) + len(piece) > 118:
                print(line.rstrip())
                line = "     "
            line += piece
        print(line)
    print("};\n")


def split(name, value, bits, note):
    """Three doubles (two for a float's) that add up to value, the first ones with so many bits."""
    parts, rest = [], mp.mpf(value)
    for _ in range(2):
        exponent = int(mp.floor(mp.log(abs(rest), 2)))
        unit = mp.mpf(2) ** (exponent - bits + 1)
        part = mp.floor(rest / unit) * unit
        parts.append(part)
        rest -= part
    array(name, parts + [rest], note)


ln2 = mp.log(2)
print("// Coefficients of the functions in math.h, lowest power first. Made by scripts/make_math_tables.py.")
print("#pragma once\n\nnamespace tenon::compile::tables {\n")

r = ln2 / 2 * mp.mpf("1.001")
array("exp_f64", interpolate(lambda x: (mp.exp(x) - 1 - x) / x**2, -r, r, 10), "(e^r - 1 - r) / r^2, |r| <= ln 2 / 2")
array("exp_f32", interpolate(lambda x: (mp.exp(x) - 1 - x) / x**2, -r, r, 4), "the same for f32")
array("expm1_f32", interpolate(lambda x: (mp.exp(x) - 1 - x) / x**2, -r, r, 5), "the same for expm1 in f32")
z = mp.mpf("0.0295")
two_atanh = lambda z: 2 * mp.atanh(mp.sqrt(z)) / mp.sqrt(z)
array("log_f64", even_series(lambda z: ((two_atanh(z) - 2) / z - mp.mpf(2) / 3) / z, z, 8),
      "((2 atanh(s) / s - 2) / s^2 - 2/3) / s^2 over s^2 <= 0.0295")
third = mp.mpf(2) / 3
array("two_thirds", [third, third - mp.mpf(float(third))], "2/3 in two parts")
array("log_f32", interpolate(lambda f: ((mp.log(1 + f) - f) / f**2 + mp.mpf("0.5")) / f if f else mp.mpf(1) / 3,
                             mp.mpf("-0.2930"), mp.mpf("0.4143"), 8), "(log(1 + f) - f + f^2 / 2) / f^3")
array("ln2_parts", [mp.floor(ln2 * 2**32) / 2**32, ln2 - mp.floor(ln2 * 2**32) / 2**32],
      "ln 2, the first part with 32 bits: times any exponent it is exact")
hi = mp.floor(ln2 * 2**32) / 2**32
rest = ln2 - mp.mpf(float(ln2 - hi)) - hi
array("ln2_last", [rest], "what those two leave")
array("ln2_parts_f32", [mp.mpf(float(mp.floor(ln2 * 2**15) / 2**15)), ln2 - mp.floor(ln2 * 2**15) / 2**15],
      "ln 2 for f32, the first part with 15 bits")
for base, value in (("log2_e", 1 / ln2), ("log10_e", 1 / mp.log(10))):
    array(base, [value, value - mp.mpf(float(value))], "in two parts")
split("half_pi", mp.pi / 2, 33, "pi / 2: two parts of 33 bits and the rest")
split("half_pi_f32", mp.pi / 2, 24, "pi / 2 for f32")
full = mp.mpf(float(mp.pi / 2))
array("half_pi_whole", [full, mp.pi / 2 - full], "pi / 2 as a double and its error")
q = mp.pi / 4 * mp.mpf("1.0005")
array("sin_f64", even_series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, q**2, 6), "(sin(r) / r - 1) / r^2")
array("cos_f64", even_series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, q**2, 6), "(cos(r) - 1 + r^2 / 2) / r^4")
array("sin_f32", even_series(lambda z: (mp.sin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, q**2, 3), "for f32")
array("cos_f32", even_series(lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2, q**2, 3), "for f32")
t = mp.tan(mp.pi / 8) * mp.mpf("1.001")
array("atan_f64", even_series(lambda z: (mp.atan(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, t**2, 11), "(atan(t) / t - 1) / t^2")
array("asin_f64", even_series(lambda z: (mp.asin(mp.sqrt(z)) / mp.sqrt(z) - 1) / z, mp.mpf("0.2505"), 13),
      "(asin(x) / x - 1) / x^2, x <= 1/2")
pieces("erf_f32", mp.erf, "0.25390625", 7, "erf(x) around 65 k / 256")
pieces("erf_f64", mp.erf, "0.3828125", 15, "erf(x) around 49 k / 128")
pieces("tanh_f32", mp.tanh, "0.58203125", 8, "tanh(x) around 149 k / 256")

scaled_erfc = lambda x: mp.exp(x * x) * mp.erfc(x)
pieces_from("erfcx_near", scaled_erfc, "0.5", "0.1015625", 10, "e^(x^2) erfc(x) around 1/2 + 13 k / 128")
pieces_from("erfcx_far", lambda z: scaled_erfc(1 / mp.sqrt(z)) / mp.sqrt(z) if z > mp.mpf(10) ** -6 else
            (1 - z / 2 + 3 * z**2 / 4 - 15 * z**3 / 8 + 105 * z**4 / 16) / mp.sqrt(mp.pi),
            "0", "0.0166015625", 10, "x e^(x^2) erfc(x) over 1 / x^2 around 17 k / 1024")

# 2/pi in pieces of 26 bits, scaled by 2^200 so that none is denormal.
bits = 26
count = 48
digits = mp.mpf(0)
mp.mp.dps = 500
two_over_pi = 2 / mp.pi
values = []
for k in range(count):
    scaled = two_over_pi * mp.mpf(2) ** (bits * (k + 1))
    chunk = int(mp.floor(scaled)) - (int(mp.floor(two_over_pi * mp.mpf(2) ** (bits * k))) << bits)
    values.append(mp.mpf(chunk) * mp.mpf(2) ** (200 - bits * (k + 1)))
array("two_over_pi", values, "2 / pi in pieces of 26 bits, times 2^200")
print("}  // namespace tenon::compile::tables")
