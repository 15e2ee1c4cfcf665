"""Norms, ranks and pseudoinverses of matrices, least squares, functions of matrices, and products of several."""

import math

from optable.core import FLOATS, INTS, NUMBERS, Op, S, T, rough
from optable.decompose import ANY, LAPACK, SQUARE, lapack, spread, symmetric

FULL = tuple(s for s in ANY if 0 not in s.args[0].shape)


def linalg(name, samples, call=None, **how):
    """An operator made of others: what dtypes it takes follows from theirs."""
    call = call or (lambda m, *args, **kw: getattr(m.linalg, name)(*args, **kw))
    return Op(f"linalg.{name}", tuple(samples), call=call, dtypes=how.pop("dtypes", LAPACK), composite=True, **how)


def of_spread(name):
    return lambda m, A, *args, **kw: getattr(m.linalg, name)(spread(m, A), *args, **kw)


def lstsq(m, A, B, **kw):
    solution, residuals, rank, values = m.linalg.lstsq(spread(m, A), B, **kw)
    return solution, residuals, rank, values


SYSTEMS = (
    ((3, 3), (3, 2)),
    ((4, 2), (4, 3)),
    ((2, 4), (2, 1)),
    ((2, 3, 2), (2, 3)),
    ((2, 3, 2), (2, 3, 1)),
)


def tensorinv(m, A, ind, rows, cols, **kw):
    return m.linalg.tensorinv(spread(m, A).reshape(*rows, *cols), ind, **kw)


def tensorsolve(m, A, B, shape, *dims, **kw):
    return m.linalg.tensorsolve(spread(m, A).reshape(*shape, *B.shape), B, *dims, **kw)


VECTOR_NORMS = (
    S(T(2, 3)),
    S(T()),
    S(T(0)),
    S(T(2, 3), 1),
    S(T(2, 3), 3, 1),
    S(T(3, low=6.0, high=9.0), 6),  # powers that half types do not hold
    S(T(2, 3), 0.5, 0, True),
    rough(S(T(2, 3, grad=False), 0)),
    S(T(2, 3), math.inf),
    S(T(2, 3), -math.inf, 1),
    S(T(2, 3, 2), 2, (0, 2), True),
    S(T(2, 3), 2, ()),
    S(T(2, 3, layout="transposed"), 2, -1),
    S(T(2, 3, layout="strided"), 1, 0),
    rough(S(T(3, values=(0.0, 0.0, 0.0)))),
)
ORDERS = ("fro", "nuc", 2, -2, 1, -1, math.inf, -math.inf)

OPS = (
    linalg("vector_norm", VECTOR_NORMS, out=True, dtypes=FLOATS, half_ulps=4),
    linalg(
        "matrix_norm",
        (
            *(S(T(3, 2), o) for o in ORDERS),
            *(S(T(2, 3, 2), o, (0, -1), True) for o in ORDERS),
            *(S(T(2, 0, grad=False), o) for o in ("fro", "nuc", 1, math.inf)),
            S(T(2, 3, 3, layout="transposed")),
            S(T(3, 2, layout="strided"), 2, (1, 0)),
        ),
        out=True,
    ),
    linalg(
        "norm",
        (
            S(T(2, 3)),
            S(T(2, 2, 2)),
            S(T(3), 1),
            S(T(2, 3), "nuc"),
            S(T(2, 3), 1),
            S(T(2, 3), 1, 0),
            S(T(2, 3, 2), 2, (0, 2), True),
            S(T(2, 3), None, 1, True),
        ),
        out=True,
    ),
    linalg(
        "cond",
        (
            *(S(T(3, 3), p) for p in (None, 2, -2)),
            # PyTorch has no gradient of the others: tests/linalg/test_matrix_functions.py has
            *(S(T(3, 3, grad=False), p) for p in ORDERS),
            S(T(3, 2)),
            S(T(2, 2, 2), -2),
            S(T(0, 2, 2, grad=False), 1),
            S(T(3, 3, layout="transposed")),
        ),
        of_spread("cond"),
    ),
    lapack("pinv", ANY, of_spread("pinv"), out=True),
    lapack(
        "pinv, tolerances",
        (
            S(T(3, 2), 1e-3),
            S(T(3, 2), rtol=1e-2, atol=1e-3),
            S(T(2, 3, 2), atol=T(2, dtype="float64", low=0.1, high=0.2)),
        ),
        of_spread("pinv"),
    ),
    lapack(
        "pinv, hermitian", SQUARE, lambda m, A, **kw: m.linalg.pinv(symmetric(m, A), hermitian=True, **kw), out=True
    ),
    lapack(
        "matrix_rank",
        (
            *ANY,
            S(T(3, 3), 0.5),
            S(T(3, 3), hermitian=True),
            S(T(3, 3), atol=2.0, rtol=0.1),
            S(T(2, 3, 3), atol=T(2, dtype="float64", low=0.5, high=2.0)),
        ),
        of_spread("matrix_rank"),
        grad=False,
    ),
    Op("frobenius_norm", (S(T(2, 3), 1), S(T(2, 3), (0, 1), keepdim=True)), dtypes=LAPACK, composite=True),
    Op(
        "nuclear_norm",
        (S(T(2, 3)), S(T(2, 2, 3), (0, 2), True)),
        call=lambda m, A, *args: m.nuclear_norm(A, *args),
        dtypes=LAPACK,
        composite=True,
    ),
    Op(
        "norm_except_dim",
        (S(T(2, 3)), S(T(2, 3, 2), 2, 1), S(T(2, 3), 3, -1), S(T(2, 3), 1, 1)),
        dtypes=FLOATS,
        composite=True,
    ),
    Op("pinverse", FULL, call=lambda m, A: m.pinverse(spread(m, A)), dtypes=LAPACK),
    lapack(
        "lstsq",
        tuple(S(T(*a), T(*b), driver=driver) for a, b in SYSTEMS for driver in ("gelsy", "gelsd", "gelss"))
        + (S(T(3, 2, layout="transposed"), T(3, 2, layout="strided")),),
        lstsq,
        cpu=True,
    ),
    Op("linalg.lstsq, gels", tuple(S(T(*a), T(*b), driver="gels") for a, b in SYSTEMS), call=lstsq, dtypes=LAPACK),
    linalg("matrix_exp", SQUARE, rtol=1e-9),
    Op("matrix_exp", (S(T(3, 3)), S(T(2, 2, 2))), method=True, composite=True, dtypes=LAPACK),
    linalg(
        "matrix_power",
        (*SQUARE, *(S(T(2, 3, 3), n) for n in (0, 1, 2, 5, -1, -3))),
        lambda m, A, n=3, **kw: m.linalg.matrix_power(spread(m, A), n, **kw),
        out=True,
    ),
    Op("matrix_power", (S(T(3, 3), 2), S(T(2, 2, 2), 3)), method=True, composite=True, dtypes=LAPACK),
    linalg(
        "multi_dot",
        (
            S([T(2, 3), T(3, 4)]),
            S([T(2, 3), T(3, 4), T(4, 1)]),
            S([T(3), T(3, 4), T(4, 2), T(2)]),
            S([T(3), T(3)]),
            S([T(0, 2), T(2, 3)]),
            S([T(2, 3, layout="transposed"), T(3, 4, layout="strided")]),
        ),
        out=True,
        dtypes=NUMBERS,
    ),
    linalg(
        "vecdot",
        (
            S(T(2, 3), T(2, 3)),
            S(T(2, 3), T(3)),
            S(T(2, 3), T(2, 1), dim=0),
            S(T(0), T(0)),
            S(T(2, 3, layout="strided"), T(2, 3, layout="transposed")),
        ),
        out=True,
        dtypes=FLOATS,
        half_ulps=4,
    ),
    linalg(
        "cross",
        (S(T(2, 3), T(2, 3)), S(T(3, 2), T(3, 1), dim=0), S(T(2, 1, 3), T(1, 2, 3))),
        out=True,
        dtypes=NUMBERS,
        half_ulps=4,
    ),
    linalg("diagonal", (S(T(2, 3)), S(T(2, 3, 4)), S(T(3, 3, 2), offset=1, dim1=0, dim2=1)), dtypes=NUMBERS, view=True),
    linalg("vander", (S(T(3)), S(T(2, 3), N=2), S(T(), N=4), S(T(3, layout="strided"), N=5)), dtypes=(*LAPACK, *INTS)),
    linalg("tensorinv", (S(T(6, 6), 2, (2, 3), (6,)), S(T(4, 4), 1, (4,), (2, 2))), tensorinv, out=True),
    linalg(
        "tensorsolve",
        (S(T(6, 6), T(2, 3), (2, 3)), S(T(6, 6), T(2, 3), (6,), (0,))),
        tensorsolve,
    ),
    Op(
        "renorm",
        (
            S(T(2, 3), 2, 0, 1.0),
            S(T(2, 3), 1, 1, 2.0),
            S(T(2, 3, 2), 3, -2, 0.5),
            S(T(2, 3), math.inf, 0, 1.0),
            S(T(0, 3), 2, 1, 1.0),
            S(T(2, 3, layout="transposed"), 2, 0, 1.0),
            S(T(2, 3, layout="strided"), 2, 0, 100.0),
        ),
        method=True,
        inplace=True,
        out=True,
        dtypes=LAPACK,
        composite=True,
    ),
    Op(
        "norm, nuclear",
        (S(T(2, 3), "nuc"), S(T(2, 3, 2), "nuc", (0, 2), True)),
        call=lambda m, *args: m.norm(*args),
        dtypes=LAPACK,
    ),
)
