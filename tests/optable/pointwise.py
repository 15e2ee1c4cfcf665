"""Unary and binary arithmetic, comparisons and logic."""

import math

import numpy as np
from compare import FLOATS

from optable.core import INTEGRAL, INTS, NUMBERS, ONE, TWO, Op, S, T, only, rough

UNARY = tuple(S(t) for t in ONE)
# Infinities, NaN, signed zeros, subnormals and the ends of the range are data like any other.
SPECIAL = only(
    FLOATS,
    rough(
        S(
            T(
                12,
                values=(0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -1.0, 0.5, -0.5, 6e-8, 6e4, -6e4),
                grad=False,
            )
        )
    ),
)
BINARY = tuple(S(a, b) for a, b in TWO)
WITH_SCALARS = (S(T(2, 3), 2), S(T(), 3), S(T(2, 3, layout="transposed"), 2))
FLOAT_SCALARS = only(FLOATS, S(T(2, 3), 1.5), S(T(3), -0.5))
SPECIAL_PAIRS = only(
    FLOATS,
    rough(
        S(
            T(8, 1, values=(0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -2.0, 0.3), grad=False),
            T(8, values=(0.0, -0.0, math.inf, -math.inf, math.nan, 1.0, -2.0, 0.3), grad=False),
        )
    ),
)
TIES = only(FLOATS, rough(S(T(4, values=(1.0, 2.0, -1.0, 0.0)), T(4, values=(1.0, 1.0, -1.0, 5.0)))))


def unary(name, domain=(-2.5, 2.5), ref=None, **how):
    how = {"method": True, "inplace": True, "out": True} | how
    samples = UNARY + how.pop("more", SPECIAL)
    return Op(name, samples, domain=domain, ref=ref or getattr(np, name, None), **how)


def binary(name, more=(), samples=BINARY, **how):
    how = {"method": True, "inplace": True, "out": True, "ref": getattr(np, name, None)} | how
    return Op(name, samples + tuple(more), **how)


def operator(name, function, more=(), samples=BINARY, **how):
    """A Python operator: x + y, and the reflected 2 + y."""
    return Op(name, samples + tuple(more), call=lambda m, *args: function(*args), **how)


UNARY_OPS = (
    unary("exp"),
    unary("exp2"),
    unary("expm1"),
    unary("log", (0.1, 4)),
    unary("log2", (0.1, 4)),
    unary("log10", (0.1, 4)),
    unary("log1p", (-0.8, 4)),
    unary("sqrt", (0.1, 4)),
    unary("rsqrt", (0.1, 4), lambda x: 1 / np.sqrt(x)),
    unary("square"),
    unary("reciprocal", (0.3, 3), lambda x: 1 / x),
    unary("sin"),
    unary("cos"),
    unary("tan", (-1.2, 1.2)),
    unary("asin", (-0.9, 0.9), np.arcsin),
    unary("acos", (-0.9, 0.9), np.arccos),
    unary("atan", ref=np.arctan),
    unary("sinh"),
    unary("cosh"),
    unary("tanh"),
    unary("asinh", ref=np.arcsinh),
    unary("acosh", (1.2, 4), np.arccosh),
    unary("atanh", (-0.8, 0.8), np.arctanh),
    unary("sigmoid", ref=lambda x: 1 / (1 + np.exp(-x))),
    unary("erf", ref=np.vectorize(math.erf, otypes="d")),
    unary("erfc", ref=np.vectorize(math.erfc, otypes="d")),
    unary("neg", ref=np.negative, dtypes=NUMBERS),
    unary("abs", dtypes=NUMBERS),
    unary("sign", twice=False, ref=lambda x: np.nan_to_num(np.sign(x))),
    unary("floor", dtypes=NUMBERS),
    unary("ceil", dtypes=NUMBERS),
    unary("round", dtypes=NUMBERS),
    unary("trunc", dtypes=NUMBERS),
    unary("frac", dtypes=FLOATS, ref=lambda x: x - np.trunc(x)),
    unary("positive", inplace=False, out=False, dtypes=NUMBERS),
    unary("isnan", inplace=False, out=False, grad=False),
    unary("isinf", inplace=False, out=False, grad=False),
    unary("isfinite", inplace=False, out=False, grad=False),
    unary("logical_not", grad=False),
    unary("bitwise_not", more=(), dtypes=INTEGRAL, grad=False),
    unary("relu", out=False, ref=lambda x: np.maximum(x, 0), dtypes=NUMBERS),
)

# A divisor is never 0 here: integer division by zero is an error, which test_errors.py looks at.
NONZERO = {"low": 1, "high": 6}
DIVISION = tuple(S(a, T(*b.shape, layout=b.layout, **NONZERO)) for a, b in TWO)
SIGNS = only(
    INTS[1:] + FLOATS,
    rough(S(T(6, values=(7, -7, 7, -7, 6, -6), grad=False), T(6, values=(3, 3, -3, -3, -3, 3), grad=False))),
)
SCALAR_FIRST = (S(2, T(2, 3)), S(3, T()))
EXPONENTS = tuple(S(a, T(*b.shape, layout=b.layout, low=0, high=4)) for a, b in TWO)
ROUNDING = only(NUMBERS, *(S(T(2, 3), T(3, **NONZERO), rounding_mode=mode) for mode in (None, "floor", "trunc")))
SHIFTS = tuple(S(a, T(*b.shape, layout=b.layout, low=0, high=6)) for a, b in TWO)

ARITHMETIC = (
    binary(
        "add",
        more=(
            *WITH_SCALARS,
            *FLOAT_SCALARS,
            *SPECIAL_PAIRS,
            S(T(2, 3), T(3), alpha=2),
            *only(FLOATS, S(T(2), T(2), alpha=0.5)),
        ),
    ),
    binary(
        "sub",
        ref=np.subtract,
        dtypes=NUMBERS,
        more=(*WITH_SCALARS, *FLOAT_SCALARS, *SPECIAL_PAIRS, S(T(2, 3), T(3), alpha=2)),
    ),
    binary("mul", ref=np.multiply, more=(*WITH_SCALARS, *FLOAT_SCALARS, *SPECIAL_PAIRS)),
    binary(
        "div",
        ref=np.divide,
        samples=DIVISION,
        more=(*WITH_SCALARS, *FLOAT_SCALARS, *SPECIAL_PAIRS, *ROUNDING),
    ),
    binary(
        "floor_divide",
        samples=DIVISION,
        more=(*WITH_SCALARS, *SIGNS, *SPECIAL_PAIRS),
        grad=False,
        dtypes=NUMBERS,
    ),
    binary("remainder", samples=DIVISION, more=(*WITH_SCALARS, *SIGNS, *SPECIAL_PAIRS), dtypes=NUMBERS),
    binary("fmod", samples=DIVISION, more=(*WITH_SCALARS, *SIGNS, *SPECIAL_PAIRS), dtypes=NUMBERS),
    binary(
        "pow",
        samples=EXPONENTS,
        ref=np.power,
        domain=(0.3, 2.5),
        int_domain=(0, 5),
        dtypes=NUMBERS,
        more=(
            *WITH_SCALARS,
            *SCALAR_FIRST,
            *FLOAT_SCALARS,
            *SPECIAL_PAIRS,
            S(T(3), 0),
            S(T(3), 1),
            *only(
                FLOATS,
                S(T(3), -1),
                S(T(3), -2),
                S(T(3), 0.5),
                S(T(3), 3),
                S(T(3, values=(-1.5, 0.5, -2.0)), 2),
                S(T(3, values=(-1.5, 0.5, -2.0)), 3),
                rough(S(T(3, values=(0.0, -1.0, 2.0)), 2)),
                rough(S(T(5, values=(0.0, 0.0, 0.0, 1.0, 2.0)), T(5, values=(2.0, 1.0, 0.0, 3.0, 0.0)))),
                rough(S(0.0, T(3, values=(2.0, 0.0, 1.0)))),
                S(0.5, T(2, 3)),
            ),
        ),
    ),
    binary("atan2", ref=np.arctan2, domain=(0.3, 2), more=SPECIAL_PAIRS),
    binary("maximum", inplace=False, more=(*SPECIAL_PAIRS, *TIES)),
    binary("minimum", inplace=False, more=(*SPECIAL_PAIRS, *TIES)),
    Op(
        "lerp",
        (
            S(T(2, 3), T(2, 3), 0.3),
            S(T(2, 3), T(3), T(2, 1)),
            S(T(), T(), 0.7),
            S(T(3), T(3), 0.6),
            S(T(2, 3, layout="transposed"), T(2, 3), T(3)),
            S(T(0), T(0), 0.5),
        ),
        method=True,
        inplace=True,
        out=True,
        dtypes=FLOATS,
        ref=lambda a, b, w: a + w * (b - a),
    ),
    Op(
        "clamp",
        (
            *(S(t, -1, 2) for t in ONE),
            S(T(2, 3), min=0),
            S(T(2, 3), max=1),
            S(T(3), min=3, max=1),
            S(T(2, 3), T(3), T(2, 1)),
            S(T(2, 3), None, T(3)),
            S(T(4), min=T()),
            *only(
                FLOATS,
                S(T(2, 3), -0.5, 0.5),
                rough(S(T(4, values=(math.nan, 1.0, -1.0, math.inf)), -1.0, 1.0)),
                rough(
                    S(
                        T(4, values=(1.0, 1.0, math.nan, -1.0), grad=False),
                        T(4, values=(math.nan, 0.0, 0.0, -0.0), grad=False),
                        T(4, values=(2.0, math.nan, 1.0, 0.0), grad=False),
                    )
                ),
            ),
        ),
        method=True,
        inplace=True,
        out=True,
        dtypes=NUMBERS,
    ),
)

OPERATORS = (
    operator("x + y", lambda x, y: x + y, more=(*WITH_SCALARS, *FLOAT_SCALARS, *SCALAR_FIRST)),
    operator("x - y", lambda x, y: x - y, more=(*WITH_SCALARS, *FLOAT_SCALARS, *SCALAR_FIRST), dtypes=NUMBERS),
    operator("x * y", lambda x, y: x * y, more=(*WITH_SCALARS, *FLOAT_SCALARS, *SCALAR_FIRST)),
    operator(
        "x / y",
        lambda x, y: x / y,
        samples=DIVISION,
        more=(*WITH_SCALARS, *FLOAT_SCALARS, S(2, T(2, 3, **NONZERO))),
    ),
    operator(
        "x // y",
        lambda x, y: x // y,
        samples=DIVISION,
        more=(*WITH_SCALARS, S(7, T(2, 3, **NONZERO))),
        grad=False,
        dtypes=NUMBERS,
    ),
    operator(
        "x % y",
        lambda x, y: x % y,
        samples=DIVISION,
        more=(*WITH_SCALARS, S(7, T(2, 3, grad=False, **NONZERO))),
        dtypes=NUMBERS,
    ),
    operator(
        "x ** y",
        lambda x, y: x**y,
        samples=EXPONENTS,
        domain=(0.3, 2.5),
        int_domain=(0, 5),
        dtypes=NUMBERS,
        more=(*WITH_SCALARS, *SCALAR_FIRST),
    ),
    *(
        operator(f"__{name}__", lambda x, y, name=name: getattr(x, f"__{name}__")(y), more=(S(T(2, 3), 2),), **how)
        for name, how in (
            ("radd", {}),
            ("rmul", {}),
            ("rsub", {"dtypes": NUMBERS}),
            ("rdiv", {"domain": (0.5, 2.5), "int_domain": (1, 5)}),
            ("rand", {"dtypes": INTEGRAL, "grad": False}),
        )
    ),
    operator("-x", lambda x: -x, samples=UNARY, dtypes=NUMBERS),
    operator("+x", lambda x: +x, samples=UNARY, dtypes=NUMBERS),
    operator("abs(x)", lambda x: abs(x), samples=UNARY, dtypes=NUMBERS),
    operator("~x", lambda x: ~x, samples=UNARY, dtypes=INTEGRAL, grad=False),
    operator("x & y", lambda x, y: x & y, more=WITH_SCALARS, dtypes=INTEGRAL, grad=False),
    operator("x | y", lambda x, y: x | y, more=WITH_SCALARS, dtypes=INTEGRAL, grad=False),
    operator("x ^ y", lambda x, y: x ^ y, more=WITH_SCALARS, dtypes=INTEGRAL, grad=False),
    operator("x << y", lambda x, y: x << y, samples=SHIFTS, more=WITH_SCALARS, dtypes=INTS, grad=False),
    operator("x >> y", lambda x, y: x >> y, samples=SHIFTS, more=WITH_SCALARS, dtypes=INTS, grad=False),
    *(
        operator(f"x {symbol} y", function, grad=False, more=(*WITH_SCALARS, *FLOAT_SCALARS, *SCALAR_FIRST))
        for symbol, function in (
            ("==", lambda x, y: x == y),
            ("!=", lambda x, y: x != y),
            ("<", lambda x, y: x < y),
            ("<=", lambda x, y: x <= y),
            (">", lambda x, y: x > y),
            (">=", lambda x, y: x >= y),
        )
    ),
)

COMPARISONS = (
    *(
        binary(name, ref=ref, grad=False, more=(*WITH_SCALARS, *FLOAT_SCALARS, *SPECIAL_PAIRS, S(T(3), 0)))
        for name, ref in (
            ("eq", np.equal),
            ("ne", np.not_equal),
            ("lt", np.less),
            ("le", np.less_equal),
            ("gt", np.greater),
            ("ge", np.greater_equal),
        )
    ),
    *(binary(name, grad=False) for name in ("logical_and", "logical_or", "logical_xor")),
    *(
        binary(name, grad=False, dtypes=INTEGRAL, more=WITH_SCALARS)
        for name in ("bitwise_and", "bitwise_or", "bitwise_xor")
    ),
)

OPS = UNARY_OPS + ARITHMETIC + OPERATORS + COMPARISONS
