"""Indexing, reading and writing, and its relatives: gather, scatter, where, masked_fill, ..."""

from compare import FLOATS

from optable.core import ONE, TWO, Op, S, T, only, rough
from optable.shape import method


def index(*shape, size, **how):
    """A tensor of indices into a dimension of the given size."""
    return T(*shape, dtype="int64", low=0, high=size, **how)


def mask(*shape, **how):
    return T(*shape, dtype="bool", **how)


def getitem(m, x, key):
    return x[key]


def setitem(m, x, key, value):
    """x[key] = value on a copy, so that the op has a result and x stays what it was."""
    x = x.clone()
    x[key] = value
    return x


ALL = slice(None)
BASIC = (
    (T(4, 3), 1),
    (T(4, 3), -1),
    (T(4, 3), (1, 2)),
    (T(4, 3), slice(1, 3)),
    (T(4, 3), slice(None, None, 2)),
    (T(7), slice(-6, -1, 3)),
    (T(4, 3), (ALL, 1)),
    (T(2, 3, 4), (..., 0)),
    (T(2, 3, 4), (0, ..., slice(1, None))),
    (T(4, 3), None),
    (T(4, 3), (None, ..., None, 1)),
    (T(4, 3), ...),
    (T(4), slice(3, 1)),
    (T(4), slice(10, 20)),
    (T(), ...),
    (T(), None),
    (T(4, 3), ()),
    (T(0, 3), ALL),
    (T(3, 4, layout="transposed"), (slice(1, 3), 2)),
    (T(4, 3, layout="strided"), (ALL, slice(1, None))),
    (T(4, 3, layout="offset"), 0),
)
ADVANCED = (
    (T(4, 3), index(2, size=4)),
    (T(4, 3), index(2, 2, size=4)),
    (T(4, 3), T(3, dtype="int64", low=-4, high=4)),
    (T(4, 3), (ALL, index(2, size=3))),
    (T(4, 3), (index(2, size=4), index(2, size=3))),
    (T(4, 3), (index(2, 1, size=4), index(3, size=3))),
    (T(4, 3), [0, 2, 0]),
    (T(4, 3), ([1, 3], [0, 2])),
    (T(2, 3, 4), (0, ALL, index(2, size=4))),
    (T(2, 3, 4), (index(2, size=2), ALL, index(2, size=4))),
    (T(2, 3, 4), (ALL, index(2, size=3), index(2, size=4))),
    (T(2, 3, 4), (..., index(2, size=4), None)),
    (T(2, 3, 4), (index(2, size=2), slice(1, 3), 1)),
    (T(4, 3), T(0, dtype="int64", low=0, high=1)),
    (T(4), index(size=4)),
    (T(4, 3), (index(size=4), slice(1, None))),
    (T(3, 4, layout="transposed"), index(2, size=3)),
    (T(4, 3, layout="expanded"), (index(2, size=4), 1)),
)
MASKED = (
    (T(4, 3), mask(4, 3)),
    (T(4, 3), mask(4)),
    (T(4, 3), (ALL, mask(3))),
    (T(2, 3, 4), mask(2, 3)),
    (T(2, 3, 4), (1, mask(3), slice(None, None, 2))),
    (T(4), mask(4, values=(False,) * 4)),
    (T(), mask()),
    (T(4, 3), [True, False, True, True]),
    (T(4, 3, layout="transposed"), mask(4, 3)),
)
# What is written: a Python scalar, a 0-d tensor, and below a tensor that broadcasts.
WRITES = (
    *(S(x, key, value) for x, key in BASIC + MASKED for value in (2, T())),
    *(S(x, key, 2) for x, key in ADVANCED if x.layout != "expanded"),
    # One element written twice: torch's gradient counts it twice, and so do we.
    *(rough(S(x, key, T())) for x, key in ADVANCED if x.layout != "expanded"),
    *only(FLOATS, S(T(4, 3), 1, 1.5), S(T(4, 3), mask(4, 3), 0.5)),
    S(T(4, 3), slice(1, 3), T(2, 3)),
    S(T(4, 3), slice(1, 3), T(3)),
    S(T(4, 3), (ALL, 1), T(4)),
    S(T(2, 3, 4), (..., 0), T(2, 3)),
    S(T(4, 3), slice(None, None, 2), T(1, 3)),
    S(T(4, 3), slice(1, 1), T(0, 3)),
    S(T(4, 3), [0, 2], T(2, 3)),
    S(T(4, 3), [0, 2], T(3)),
    S(T(4, 3), ([1, 3], [0, 2]), T(2)),
    S(T(2, 3, 4), ([0, 1], ALL, [1, 3]), T(2, 3)),
    S(T(4, 3), (ALL, mask(3, values=(True, False, True))), T(4, 2)),
    S(T(4, 3), mask(4, values=(True, False, True, True)), T(3, 3)),
    S(T(3), mask(3, values=(True, False, True)), T(2)),
    S(T(4, 3), ..., T(3)),
    S(T(), ..., T()),
    S(T(), (), T(1)),
    S(T(3, 4, layout="transposed"), slice(1, 3), T(2, 4, layout="transposed")),
)

INDEXING = (
    Op("getitem", tuple(S(x, key) for x, key in BASIC), call=getitem, view=True),
    Op("getitem advanced", tuple(S(x, key) for x, key in ADVANCED + MASKED), call=getitem),
    Op("setitem", WRITES, call=setitem),
    Op(
        "index_select",
        (
            S(T(4, 3), 0, index(3, size=4)),
            S(T(4, 3), -1, index(2, size=3)),
            S(T(4), 0, index(0, size=4)),
            S(T(), 0, index(1, size=1)),
            S(T(3, 4, layout="transposed"), 1, index(5, size=4)),
            S(T(4, 3), 0, T(3, dtype="int32", low=0, high=4)),
        ),
        method=True,
        out=True,
    ),
    Op(
        "gather",
        (
            S(T(4, 3), 0, index(2, 3, size=4)),
            S(T(4, 3), 1, index(4, 2, size=3)),
            S(T(5), 0, T(2, 0, dtype="uint8")),
            S(T(4, 3), -1, index(2, 5, size=3)),
            S(T(3), 0, index(4, size=3)),
            S(T(), 0, index(size=1)),
            S(T(3), 0, index(0, size=3)),
            S(T(3, 4, layout="transposed"), 0, index(2, 4, size=3, layout="transposed")),
        ),
        method=True,
        out=True,
    ),
    Op(
        "take_along_dim",
        (
            S(T(4, 3), index(4, 2, size=3), 1),
            S(T(4, 3), T(1, 2, dtype="int64", values=(-1, 7)), 1),
            S(T(4, 3), index(1, 3, size=4), 0),
            S(T(4, 3), index(5, size=12)),
            S(T(4, 3, layout="transposed"), index(4, 2, size=3), dim=-1),
        ),
        method=True,
    ),
    # scatter's index never repeats along the dimension: which write wins is not defined.
    Op(
        "scatter",
        (
            S(T(4, 3), 0, T(2, 3, dtype="int64", values=(0, 1, 2, 3, 0, 1)), T(2, 3)),
            S(T(2, 3), 1, T(2, 2, dtype="int64", values=(0, 2, 1, 0)), T(2, 3, grad=False)),
            S(T(2, 3), -1, T(1, 2, dtype="int64", values=(0, 2)), 1),
            S(T(), 0, index(size=1), T()),
            S(T(3), 0, index(0, size=3), T(0)),
            S(T(4), 0, T(2, dtype="int64", values=(3, 1)), T(2, layout="strided")),
            S(T(3, 4, layout="transposed"), 0, T(1, 4, dtype="int64", values=(0, 1, 2, 0)), T(1, 4)),
        ),
        method=True,
        inplace=True,
        out=True,
    ),
    Op(
        "scatter_add",
        (
            S(T(4, 3), 0, index(2, 3, size=4), T(2, 3)),
            S(T(2, 3), 1, index(2, 5, size=3), T(2, 5)),
            S(T(3), -1, index(6, size=3), T(7, grad=False)),
            S(T(), 0, index(size=1), T()),
            S(T(3), 0, index(0, size=3), T(0)),
            S(T(3, 4, layout="transposed"), 0, index(2, 4, size=3), T(2, 4, layout="transposed")),
        ),
        half_ulps=4,
        method=True,
        inplace=True,
        out=True,
    ),
    Op(
        "index_add",
        (
            S(T(4, 3), 0, index(5, size=4), T(5, 3)),
            S(T(2, 3), -1, index(2, size=3), T(2, 2)),
            S(T(4, 3), 0, index(2, size=4), T(2, 3), alpha=2),
            S(T(3), 0, index(0, size=3), T(0)),
            S(T(3, 4, layout="transposed"), 1, index(2, size=4), T(3, 2)),
        ),
        half_ulps=4,
        method=True,
        inplace=True,
        out=True,
    ),
    Op(
        "index_put",
        (
            S(T(4, 3), (T(2, dtype="int64", values=(3, 1)),), T(1, 3)),
            S(T(4, 3), (mask(4, 3),), T()),
            S(T(4, 3), (index(5, size=4), index(5, size=3)), T(5), accumulate=True),
            S(T(4, 3), (index(6, size=4),), T(6, 3), accumulate=True),
            S(T(3, 4, layout="transposed"), (T(2, dtype="int64", values=(2, 0)),), T(2, 4)),
        ),
        method=True,
        inplace=True,
        half_ulps=4,
    ),
    Op(
        "index_fill",
        (
            S(T(4, 3), 0, index(2, size=4), 2),
            S(T(4, 3), 1, index(2, size=3), T()),
            S(T(4, 3), 1, T(3, dtype="int64", values=(2, 0, 2)), T()),
        ),
        method=True,
        inplace=True,
    ),
    Op(
        "masked_fill",
        (
            S(T(2, 3), mask(2, 3), 2),
            S(T(2, 3), mask(3), 1),
            S(T(3), mask(2, 3), 1),
            S(T(), mask(), 1),
            S(T(0), mask(0), 1),
            S(T(2, 3), mask(2, 1), T()),
            S(T(2, 3, layout="transposed"), mask(2, 3), 0),
            *only(FLOATS, rough(S(T(2, 3), mask(2, 3), float("-inf")))),
        ),
        method=True,
        inplace=True,
    ),
    Op(
        "masked_select",
        (
            S(T(2, 3), mask(2, 3)),
            S(T(2, 3), mask(3)),
            S(T(3), mask(2, 3)),
            S(T(), mask()),
            S(T(0), mask(0)),
            S(T(2, 3, layout="transposed"), mask(2, 3, layout="strided")),
        ),
        method=True,
        out=True,
    ),
    Op(
        "where",
        (
            *(S(mask(2, 3), a, b) for a, b in TWO if a.shape != (0,) and a.shape != (0, 3) and a.shape != (2, 1, 3)),
            S(mask(), T(2), T(2)),
            S(mask(2, 1), T(3), T()),
            S(mask(3), T(3), 1),
            S(mask(3), 2, T(3)),
            S(mask(0), T(0), T(0)),
            S(mask(3, 2, layout="transposed"), T(3, 2), 0),
        ),
        out=False,
    ),
    Op("masked method where", (S(T(2, 3), mask(2, 3), T(2, 3)), S(T(2, 3), mask(3), 0)), call=method("where")),
    Op("nonzero", tuple(S(t) for t in ONE), method=True, grad=False),
)

OPS = INDEXING
