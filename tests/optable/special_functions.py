"""Those of torch.special that have kernels of their own: Bessel functions, the normal distribution's, incomplete gamma
functions, orthogonal polynomials; and gcd, lcm and ldexp."""

import math

import numpy as np
from compare import DTYPES, FLOATS, HALVES

from optable.core import INTS, NUMBERS, ONE, TWO, Op, S, T, only, rough
from optable.pointwise import BINARY, UNARY

NOT_HALF = tuple(dtype for dtype in DTYPES if dtype not in HALVES)
WIDE = ("float32", "float64")


def values(*numbers, grad=False):
    """A sample at which nobody takes finite differences."""
    return only(WIDE, rough(S(T(len(numbers), values=numbers, grad=grad))))


def pairs(a, b):
    return only(WIDE, rough(S(T(len(a), 1, values=a, grad=False), T(len(b), values=b, grad=False))))


def special(name, domain=(-2.5, 2.5), more=(), **how):
    """A function of one tensor. PyTorch has many of them for no half type; ours does not refuse these."""
    how = {"call": lambda m, *args, **kw: getattr(m.special, name)(*args, **kw), "out": True} | how
    if how.get("dtypes", DTYPES) == NOT_HALF:
        how["composite"] = True
    return Op(f"special.{name}", (*UNARY, *more), domain=domain, **how)


def polynomial(name):
    """Of a degree that is an element, or a number."""
    degrees = tuple(S(a, T(*b.shape, layout=b.layout, low=-1, high=12, grad=False)) for a, b in TWO)
    large = only(("float64",), S(T(2, 3, low=-0.9, high=0.9), 80))
    edges = only(WIDE, rough(S(T(5, 1, values=(1.0, -1.0, 0.0, 0.5, -0.5)), T(4, values=(0.0, 1.0, 7.0, 10.0)))))
    more = (S(T(2, 3), 3), S(2, T(3, low=0, high=9)), *edges, *(large if "chebyshev" in name else ()))
    return Op(
        f"special.{name}",
        (*degrees, *more),
        call=lambda m, *args, **kw: getattr(m.special, name)(*args, **kw),
        out=True,
        grad=False,
        dtypes=NOT_HALF,
        composite=True,
        domain=(-1.5, 1.5),
    )


# How far PyTorch is off in float64, where `rtol` says so: test_special_functions.py compares ours with mpmath.

# Beyond the first expansion of each, which ends at 2 or 8; infinities where PyTorch has no NaN.
FAR = values(-30.0, -9.0, 8.5, 20.0, 80.0)
RIGHT = values(0.0, 0.5, 1.9, 2.1, 9.0, 60.0, -1.0, math.nan)
GAMMA_PAIRS = (0.0, 0.1, 1.0, 3.5, 12.0, 100.0, math.inf, -1.0)

OPS = (
    Op("i0", (*UNARY, *FAR), method=True, inplace=True, out=True, ref=np.i0),
    special("i0e", more=FAR, twice=False),
    special("i1", more=FAR),
    special("i1e", more=FAR, twice=False),
    special("ndtr", more=values(-math.inf, math.inf, math.nan, -5.0, 5.0), half_ulps=2),
    special("log_ndtr", more=values(-math.inf, math.nan, -30.0, 5.0), dtypes=NOT_HALF),
    special("ndtri", (0.05, 0.95), more=values(0.0, 1.0, -0.5, 1.5, 1e-30, 0.125, math.nan), dtypes=NOT_HALF),
    special("erfcx", more=values(-math.inf, math.inf, math.nan, -30.0, -3.0, 50.0, 1e10), dtypes=NOT_HALF),
    special("entr", (0.1, 3), more=values(0.0, -0.0, -1.0, math.inf, math.nan)),
    *(
        special(name, (0.1, 4), more=RIGHT if name[-2] == "k" else (), grad=False, dtypes=NOT_HALF, rtol=1e-5)
        for name in (
            "modified_bessel_i0",
            "modified_bessel_i1",
            "modified_bessel_k0",
            "modified_bessel_k1",
            "scaled_modified_bessel_k0",
            "scaled_modified_bessel_k1",
            "bessel_j0",
            "bessel_j1",
            "bessel_y0",
            "bessel_y1",
        )
    ),
    special("spherical_bessel_j0", more=values(math.inf, math.nan, 0.0, 20.0), grad=False, dtypes=NOT_HALF),
    special("airy_ai", more=values(-20.0, -5.5, -4.0, 1.9, 2.1, 9.0), grad=False, dtypes=NOT_HALF, rtol=1e-4),
    Op(
        "special.xlog1py",
        (*BINARY, S(T(2, 3), 2), S(2, T(2, 3)), *pairs((0.0, 1.0, math.nan), (-1.0, -2.0, 0.5, math.nan))),
        call=lambda m, *args, **kw: m.special.xlog1py(*args, **kw),
        out=True,
        domain=(-0.8, 2.5),
        int_domain=(0, 5),
    ),
    Op(
        "special.zeta",
        (
            *(S(T(*a.shape, layout=a.layout, grad=False), b) for a, b in TWO),
            S(2, T(2, 3)),
            *pairs((1.0, 0.5, 2.0, 17.0), (0.0, -1.0, -1.5, 0.5, 20.0, math.nan)),
        ),
        call=lambda m, *args, **kw: m.special.zeta(*args, **kw),
        out=True,
        dtypes=NOT_HALF,
        composite=True,
        domain=(1.3, 4),
        int_domain=(2, 6),
    ),
    *(
        Op(
            name,
            (
                *(S(T(*a.shape, layout=a.layout, grad=False), b) for a, b in TWO),
                *only(("float64",), S(T(4, low=15.0, high=40.0, grad=False), T(4, low=15.0, high=40.0))),
                *pairs(GAMMA_PAIRS, GAMMA_PAIRS),
            ),
            method=True,
            inplace=True,
            out=True,
            dtypes=FLOATS,
            domain=(0.3, 4),
            rtol=1e-8,
        )
        for name in ("igamma", "igammac")
    ),
    Op(
        "mvlgamma",
        tuple(S(t, p) for t in ONE for p in (1, 3)),
        method=True,
        inplace=True,
        out=True,
        dtypes=NUMBERS,
        domain=(1.3, 4),
        int_domain=(2, 6),
        half_ulps=4,
    ),
    *(
        polynomial(name)
        for name in (
            "chebyshev_polynomial_t",
            "chebyshev_polynomial_u",
            "chebyshev_polynomial_v",
            "chebyshev_polynomial_w",
            "shifted_chebyshev_polynomial_t",
            "shifted_chebyshev_polynomial_u",
            "shifted_chebyshev_polynomial_v",
            "shifted_chebyshev_polynomial_w",
            "hermite_polynomial_h",
            "hermite_polynomial_he",
            "laguerre_polynomial_l",
            "legendre_polynomial_p",
        )
    ),
    *(
        Op(
            name,
            (*BINARY, *only(INTS, S(T(4, 1, values=(0, 12, 18, 7)), T(4, values=(0, 12, 30, 21))))),
            method=True,
            inplace=True,
            out=True,
            dtypes=INTS,
            grad=False,
            ref=getattr(np, name),
        )
        for name in ("gcd", "lcm")
    ),
    Op(
        "ldexp",
        (
            *BINARY,
            # PyTorch's gradient is 0 where an integer exponent is negative.
            *(S(T(2, 3), T(2, 3, dtype=dtype, low=0, high=4)) for dtype in ("int64", "int32")),
            *only(
                ("float32",),
                *(
                    rough(S(T(3, values=values, grad=False), T(3, values=exponents, dtype="int64")))
                    for values, exponents in (
                        ((3.0, -3e38, 1.0), (-1, -3, -130)),
                        ((2.0**-100, -(2.0**-90), 0.0), (150, 160, 2000)),
                    )
                ),
                rough(
                    S(
                        T(3, 1, values=(0.0, 1.0, math.nan), grad=False),
                        T(3, values=(math.inf, -math.inf, math.nan), grad=False),
                    )
                ),
            ),
        ),
        method=True,
        inplace=True,
        out=True,
        half_ulps=2,
        composite=True,  # PyTorch takes no bool as an exponent of numbers
    ),
)
