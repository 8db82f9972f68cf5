"""Writes tests/data/sym/expressions.txt: random expressions as PyTorch and sympy spell them, with their values.

Run with PyTorch installed: python tests/sym/record_expressions.py > tests/data/sym/expressions.txt
"""
import math
import random

import sympy
import torch
from torch.utils._sympy import functions as f
from torch.utils._sympy.interp import sympy_interp
from torch.utils._sympy.reference import PythonReferenceAnalysis

s0 = sympy.Symbol("s0", positive=True, integer=True)
s1 = sympy.Symbol("s1", positive=True, integer=True)
u0 = sympy.Symbol("u0", integer=True)
zf0 = sympy.Symbol("zf0", real=True)
rng = random.Random(20)


def natural(depth):
    """Never negative: what Mod, shifts and exponents take."""
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([s0, s1, s0, s1, sympy.Integer(rng.randint(1, 9))])
    a, b = (lambda: natural(depth - 1)), (lambda: natural(depth - 1))
    return rng.choice([
        lambda: a() + b(), lambda: a() * b(), lambda: f.Max(a(), b()), lambda: f.Min(a(), b()),
        lambda: f.FloorDiv(a(), b()), lambda: f.Mod(a(), b()), lambda: f.CeilDiv(a(), b()),
        lambda: a() ** rng.randint(2, 3), lambda: f.ModularIndexing(a(), rng.randint(1, 4), rng.randint(2, 5)),
    ])()


def integer(depth):
    if depth == 0 or rng.random() < 0.15:
        return rng.choice([s0, s1, u0, u0, sympy.Integer(rng.randint(-9, 9))])
    a, b = (lambda: integer(depth - 1)), (lambda: integer(depth - 1))
    return rng.choice([
        lambda: a() + b(), lambda: a() - b(), lambda: a() * b(), lambda: a() * rng.randint(-4, 4) + b(),
        lambda: f.Max(a(), b()), lambda: f.Min(a(), b()), lambda: f.FloorDiv(a(), b()),
        lambda: f.PythonMod(a(), sympy.Integer(rng.choice([-5, -3, -2, 2, 3, 4, 7]))), lambda: f.PythonMod(a(), b()),
        lambda: natural(depth - 1), lambda: f.TruncToInt(real(depth - 1)), lambda: f.FloorToInt(real(depth - 1)),
        lambda: f.CeilToInt(real(depth - 1)), lambda: f.RoundToInt(real(depth - 1)),
        lambda: f.PowByNatural(rng.choice([s0, u0, sympy.Integer(2)]), rng.choice([s1, sympy.Integer(2)])),
        lambda: f.BitwiseFn_bitwise_and(a(), b()), lambda: f.BitwiseFn_bitwise_or(a(), b()),
        lambda: sympy.Piecewise((a(), condition(depth - 1)), (b(), True)), lambda: f.Where(condition(depth - 1), a(), b()),
        lambda: f.FloorDiv(4 * a() + 2 * b(), 2), lambda: f.PythonMod(6 * a() + b(), 3), lambda: f.Identity(a()),
    ])()


def real(depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice([zf0, sympy.Float(rng.choice([0.5, -2.25, 1.5, 10.0])), f.ToFloat(s0)])
    a, b = (lambda: real(depth - 1)), (lambda: real(depth - 1))
    return rng.choice([
        lambda: a() + b(), lambda: a() * b(), lambda: f.IntTrueDiv(integer(depth - 1), natural(depth - 1)),
        lambda: f.FloatTrueDiv(a(), b()), lambda: f.ToFloat(integer(depth - 1)), lambda: f.TruncToFloat(a()),
        lambda: f.FloatPow(a(), sympy.Float(2.0)), lambda: f.RoundDecimal(a(), sympy.Integer(1)),
    ])()


def condition(depth):
    a, b = integer(max(depth - 1, 0)), integer(max(depth - 1, 0))
    relation = rng.choice([sympy.Eq, sympy.Ne, sympy.Lt, sympy.Le, sympy.Gt, sympy.Ge])
    if depth <= 1 or rng.random() < 0.5:
        return relation(a, b)
    return rng.choice([
        lambda: sympy.And(condition(depth - 1), condition(depth - 1)),
        lambda: sympy.Or(condition(depth - 1), condition(depth - 1)),
        lambda: sympy.Not(condition(depth - 1)),
    ])()


def value_at(expr, env):
    try:
        value = sympy_interp(PythonReferenceAnalysis, env, expr)
    except Exception:
        return None
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 2**60:
        return None
    return value if isinstance(value, (bool, int, float)) else None


def main():
    print(f"# Made by tests/sym/record_expressions.py with PyTorch {torch.__version__.split('+')[0]}, sympy {sympy.__version__}.")
    seen = set()
    while len(seen) < 600:
        try:
            expr = rng.choice([natural, integer, integer, real, condition])(rng.randint(1, 3))
        except (ZeroDivisionError, AssertionError, ValueError, TypeError, OverflowError):
            continue
        if not getattr(expr, "free_symbols", None):
            continue
        srepr = sympy.srepr(expr)
        if len(srepr) > 1500 or srepr in seen or "zoo" in srepr or "nan" in srepr:
            continue
        if any(float(str(a)) != float(a) for a in expr.atoms(sympy.Float)):  # str writes 15 digits
            continue
        lines = []
        for _ in range(6):
            env = {s0: rng.randint(2, 20), s1: rng.randint(2, 12), u0: rng.randint(-9, 9), zf0: rng.randint(-40, 40) / 8}
            value = value_at(expr, env)
            if value is not None:
                lines.append("at " + " ".join(f"{k}={v}" for k, v in env.items()) + f" is {value}")
        if not lines:
            continue
        seen.add(srepr)
        print("infix", expr)
        print("srepr", srepr)
        print("\n".join(lines))


main()
