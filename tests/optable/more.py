"""Ops beyond the first models' needs: further joins, scatters, searches, products and statistics."""

from compare import FLOATS

from optable.core import NUMBERS, ONE, Op, S, T, rough
from optable.index import index, mask
from optable.linalg import VECTORS
from optable.reduce import ALL_OF, DIM, DIMS, EMPTY_DIM, NANS, SOME_NANS, SPREAD, distinct, with_dtype

SORTED_VECTOR = T(5, values=(0, 1, 1, 3, 5), grad=False)
REPEATED = S(T(8, values=(3, 1, 1, 2, 2, 2, 3, 0), grad=False))
ALONG = tuple(S(s.args[0], s.args[1] if len(s.args) > 1 else s.kwargs["dim"]) for s in DIM)
ROWS = T(2, dtype="int64", values=(3, 1))
UNIQUE = T(2, 3, dtype="int64", values=(0, 1, 2, 3, 0, 1))
MEDIAN = distinct((S(T(5)), S(T(2, 3), 1), S(T(4, 3, layout="transposed"), 0, True)))


def several(name, samples, **how):
    """A function of a list of tensors, or of several."""
    return Op(name, tuple(samples), **how)


JOINS = (
    *(
        several(name, (S(T()), S(T(3)), S(T(2, 3)), S([T(), T(2)])))
        for name in ("atleast_1d", "atleast_2d", "atleast_3d")
    ),
    several("block_diag", (S(T(2, 3), T(1, 2)), S(T(2, 2)))),
    several("broadcast_tensors", (S(T(2, 1), T(3)), S(T(), T(2)))),
    several("cartesian_prod", (S(T(2), T(3)), S(T(3)))),
    several("column_stack", (S((T(3), T(3))), S((T(3, 2), T(3))))),
    several("dstack", (S((T(2, 3), T(2, 3))), S((T(3), T(3))))),
    several("row_stack", (S((T(2, 3), T(1, 3))),)),
    several("meshgrid", (S(T(2), T(3), indexing="ij"), S(T(2), T(3), indexing="xy"))),
    Op("combinations", (S(T(4)), S(T(4), 3), S(T(3), 2, True)), method=False),
    Op("tensor_split", (S(T(5, 2), 2), S(T(5, 2), (1, 3)), S(T(2, 6), 4, dim=1)), method=True, view=True),
    Op("split_with_sizes", (S(T(5, 2), (2, 3)), S(T(2, 5), (1, 4), 1)), method=True, view=True),
    Op("unsafe_split", (S(T(5, 2), 2), S(T(2, 6), 3, 1)), method=True),
    Op("unsafe_split_with_sizes", (S(T(5, 2), (2, 3)), S(T(2, 5), (1, 4), 1)), method=True),
    Op("unsafe_chunk", (S(T(5, 2), 2), S(T(2, 6), 4, 1)), method=True),
    Op("adjoint", (S(T(3, 2)), S(T(2, 3, 4))), method=True, view=True),
    Op("hsplit", (S(T(2, 4), 2), S(T(4), (1, 3))), method=True, view=True),
    Op("vsplit", (S(T(4, 2), 2),), method=True, view=True),
    Op("dsplit", (S(T(2, 2, 4), 2),), method=True, view=True),
    Op("ravel", tuple(S(t) for t in ONE), method=True, view=True),
    Op("fliplr", (S(T(2, 3)),), method=True),
    Op("flipud", (S(T(2, 3)),), method=True),
    Op("rot90", (S(T(2, 3)), S(T(2, 3), 2), S(T(2, 3), -1, (0, 1))), method=True),
    Op("diag", (S(T(3)), S(T(3, 3)), S(T(3), 1), S(T(3, 4), -1)), method=True),
    Op("diagflat", (S(T(2, 2)), S(T(3), 1)), method=True),
    Op("diag_embed", (S(T(2, 3)), S(T(2, 3), 1), S(T(2, 3), 0, 0, 2)), method=True),
    Op(
        "repeat_interleave",
        (S(T(2, 3), 2), S(T(2, 3), 2, 1), S(T(), 2), S(T(3), T(3, dtype="int64", values=(1, 0, 2)))),
        method=True,
    ),
)

WRITES = (
    Op("select_scatter", (S(T(4, 3), T(3), 0, 1), S(T(4, 3), T(4), -1, 2)), method=True),
    Op("slice_scatter", (S(T(4, 3), T(2, 3), 0, 1, 3), S(T(4, 3), T(4, 2), 1, 0, 3, 2)), method=True),
    Op("diagonal_scatter", (S(T(3, 3), T(3)), S(T(3, 3), T(2), 1)), method=True),
    # torch's gradient of this one disagrees with finite differences.
    Op("as_strided_scatter", (S(T(3, 4), T(2, 2), (2, 2), (4, 1), 1),), grad=False, method=True),
    Op("index_copy", (S(T(4, 3), 0, ROWS, T(2, 3)), S(T(3, 4), 1, ROWS, T(3, 2))), method=True, inplace=True),
    Op("masked_scatter", (S(T(2, 3), mask(2, 3), T(6)), S(T(2, 3), mask(3), T(7))), method=True, inplace=True),
    Op(
        "put",
        (S(T(4, 3), index(2, size=12), T(2), True), S(T(4, 3), ROWS, T(2))),
        method=True,
        inplace=True,
        half_ulps=4,
    ),
    Op(
        "take",
        (S(T(4, 3), index(5, size=12)), S(T(4, 3, layout="transposed"), index(2, 2, size=12))),
        method=True,
    ),
    Op(
        "scatter_reduce",
        tuple(
            S(T(4, 3), 0, UNIQUE, T(2, 3), reduce, include_self=keep)
            for reduce in ("sum", "mean", "amax", "amin")
            for keep in (True, False)
        ),
        method=True,
        inplace=True,
        half_ulps=4,
        twice=False,
        dtypes=NUMBERS,
    ),
    Op(
        "index_reduce",
        tuple(S(T(4, 3), 0, ROWS, T(2, 3), reduce) for reduce in ("prod", "amax", "amin")),
        method=True,
        inplace=True,
        half_ulps=4,
        twice=False,
    ),
    Op(
        "segment_reduce",
        tuple(
            S(T(6, 2, distinct=True), reduce=reduce, lengths=T(3, dtype="int64", values=(2, 1, 3)), **more)
            for reduce in ("sum", "mean", "prod", "max", "min")
            for more in ({}, {"initial": 0.5}, {"axis": -2})
        ),
        half_ulps=16,
        twice=False,
        dtypes=FLOATS,
        composite=True,
    ),
    Op("fill", (S(T(2, 3), 2), S(T(2, 3), T(grad=False)), S(T(3, layout="strided"), 1)), inplace=True),
    Op("zero_", tuple(S(t) for t in ONE if t.layout != "expanded"), call=lambda m, x: x.clone().zero_()),
)

SEARCHES = (
    Op(
        "searchsorted",
        (S(SORTED_VECTOR, T(2, 3)), S(SORTED_VECTOR, T(3), right=True), S(SORTED_VECTOR, 2)),
        grad=False,
        dtypes=NUMBERS,
    ),
    Op(
        "bucketize",
        (S(T(2, 3), SORTED_VECTOR), S(T(3), SORTED_VECTOR, right=True)),
        grad=False,
        dtypes=NUMBERS,
    ),
    Op("isin", (S(T(2, 3), T(4)), S(T(2, 3), T(4), invert=True)), grad=False, dtypes=NUMBERS),
    Op("argwhere", tuple(S(t) for t in ONE), method=True, grad=False),
    Op("count_nonzero", (S(T(2, 3)), S(T(2, 3), 1), S(T(2, 3, 2), (0, 2))), method=True, grad=False),
    Op(
        "unique",
        (REPEATED, S(REPEATED.args[0], return_inverse=True, return_counts=True), S(T(0, grad=False))),
        method=True,
        grad=False,
    ),
    Op(
        "unique_consecutive",
        (REPEATED, S(REPEATED.args[0], return_inverse=True, return_counts=True)),
        method=True,
        grad=False,
    ),
    Op("bincount", (S(index(6, size=5)), S(index(6, size=5), minlength=8), S(index(0, size=5))), grad=False),
    Op("histc", (S(T(9), 4), S(T(9), 4, -1, 1)), method=True, grad=False, dtypes=FLOATS),
    Op("msort", distinct((S(T(5)), S(T(4, 2)), S(T(4, 3, layout="transposed")))), method=True),
    Op(
        "kthvalue",
        distinct((S(T(5), 2), S(T(2, 4), 3, 1), S(T(3, 2), 1, 0, True))),
        method=True,
        dtypes=NUMBERS,
    ),
    Op("median", MEDIAN, method=True, dtypes=NUMBERS),
    Op("nanmedian", MEDIAN, method=True, dtypes=NUMBERS),
    Op(
        "mode",
        (rough(S(T(2, 5, values=(1, 2, 2, 3, 1, 0, 0, 3, 3, 3)))),),
        twice=False,
        call=lambda m, x: x.mode()[0],
    ),
)

REDUCTIONS = (
    Op("nansum", (*ALL_OF, *DIMS[:-1], *EMPTY_DIM, *NANS, *SOME_NANS[:2]), method=True),
    Op("nanmean", (*ALL_OF, *DIMS, *EMPTY_DIM, *NANS, *SOME_NANS), call=with_dtype("nanmean"), dtypes=FLOATS),
    Op("var_mean", SPREAD, dtypes=FLOATS),
    Op("std_mean", SPREAD, dtypes=FLOATS),
    Op("aminmax", (S(T(2, 3)), S(T(2, 3), dim=1), S(T(2, 3), dim=0, keepdim=True), S(T())), method=True, since=(2, 13)),
    Op("cummax", ALONG, method=True, twice=False),
    Op("cummin", ALONG, method=True, twice=False),
    Op("logcumsumexp", ALONG, method=True, dtypes=FLOATS, half_ulps=4),
    Op("diff", (S(T(5)), S(T(5), 0, 0, T(2)), S(T(2, 5)), S(T(2, 5), 2), S(T(3, 2), 1, 0)), half_ulps=4, method=True),
    Op("dist", (S(T(2, 3), T(2, 3)), S(T(2, 3), T(3), 1)), method=True, dtypes=FLOATS),
    Op("trace", (S(T(3, 3)), S(T(2, 3)), S(T(3, 4, layout="transposed"))), dtypes=NUMBERS, method=True, since=(2, 13)),
)

PRODUCTS = (
    Op("addmv", (S(T(2), T(2, 3), T(3)), S(T(), T(2, 3), T(3), beta=2, alpha=3)), method=True, dtypes=NUMBERS),
    Op("addr", (S(T(2, 3), T(2), T(3)), S(T(2, 3), T(2), T(3), beta=2, alpha=3)), method=True, half_ulps=4),
    Op(
        "baddbmm",
        (S(T(2, 3, 2), T(2, 3, 4), T(2, 4, 2)), S(T(2), T(2, 3, 4), T(2, 4, 2), beta=2, alpha=3)),
        method=True,
        half_ulps=4,
        dtypes=NUMBERS,
    ),
    Op(
        "addbmm",
        (S(T(3, 2), T(2, 3, 4), T(2, 4, 2)), S(T(3, 2), T(2, 3, 4), T(2, 4, 2), beta=2, alpha=3)),
        method=True,
        dtypes=NUMBERS,
        half_ulps=4,
    ),
    Op("chain_matmul", (S(T(2, 3), T(3, 4), T(4, 2)),), dtypes=NUMBERS, half_ulps=4),
    Op("inner", (*VECTORS, S(T(2, 3), T(4, 3)), S(T(), T(2))), method=True, dtypes=NUMBERS),
    Op("vdot", VECTORS, method=True, dtypes=NUMBERS),
    Op("kron", (S(T(2, 3), T(3, 2)), S(T(2), T(3))), method=True),
    Op("cross", (S(T(2, 3), T(2, 3)), S(T(3, 2), T(3, 2), dim=0)), half_ulps=4, method=True, dtypes=NUMBERS),
    Op(
        "tensordot",
        (
            S(T(2, 3), T(3, 4), 1),
            S(T(2, 3, 4), T(3, 4, 2), 2),
            S(T(2, 3), T(2, 3), ([0], [0])),
            S(T(1, 2), T(3, 2), ([0], [0])),
            S(T(2, 3, 1), T(1, 2, 3), ((0, 2), (1, 2))),
        ),
        dtypes=NUMBERS,
    ),
)

OPS = JOINS + WRITES + SEARCHES + REDUCTIONS + PRODUCTS
