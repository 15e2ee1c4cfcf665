"""Products of matrices and vectors."""

from optable.core import NUMBERS, Op, S, T, only

PAIRS_OF_MATRICES = (
    S(T(2, 3), T(3, 4)),
    S(T(1, 3), T(3, 1)),
    S(T(0, 3), T(3, 2)),
    S(T(2, 0), T(0, 3)),
    S(T(2, 3, layout="transposed"), T(3, 4)),
    S(T(2, 3), T(3, 4, layout="transposed")),
    S(T(2, 3, layout="transposed"), T(3, 4, layout="transposed")),
    S(T(2, 3, layout="strided"), T(3, 4, layout="strided")),
    S(T(2, 3, layout="offset"), T(3, 4, layout="expanded")),
)
VECTORS = (S(T(3), T(3)), S(T(0), T(0)), S(T(3, layout="strided"), T(3, layout="offset")))
BATCHES = (
    S(T(2, 3, 4), T(2, 4, 2)),
    S(T(2, 0, 4), T(2, 4, 1)),
    S(T(0, 2, 3), T(0, 3, 2)),
    S(T(2, 3, 4, layout="transposed"), T(2, 4, 2)),
    S(T(2, 3, 4, layout="expanded"), T(2, 4, 2, layout="transposed")),
    S(T(2, 3, 4, layout="strided"), T(2, 4, 2, layout="offset")),
)
MATMULS = (
    *PAIRS_OF_MATRICES,
    *VECTORS,
    *BATCHES,
    S(T(2, 3), T(3)),
    S(T(2), T(2, 3)),
    S(T(2, 2, 3), T(3)),
    S(T(3), T(2, 3, 2)),
    S(T(2, 2, 3), T(3, 4)),
    S(T(2, 3), T(2, 3, 2)),
    S(T(2, 1, 2, 3), T(1, 2, 3, 2)),
    S(T(2, 3, layout="transposed"), T(3)),
)

OPS = (
    Op("matmul", MATMULS, method=True, out=True, dtypes=NUMBERS),
    Op("x @ y", MATMULS, call=lambda m, x, y: x @ y, dtypes=NUMBERS),
    Op("mm", PAIRS_OF_MATRICES, method=True, out=True, dtypes=NUMBERS),
    Op(
        "mv",
        (S(T(2, 3), T(3)), S(T(2, 3, layout="transposed"), T(3, layout="strided"))),
        method=True,
        dtypes=NUMBERS,
    ),
    Op("bmm", BATCHES, method=True, out=True, dtypes=NUMBERS),
    Op(
        "addmm",
        (
            S(T(2, 4), T(2, 3), T(3, 4)),
            S(T(4), T(2, 3), T(3, 4)),
            S(T(2, 1), T(2, 3), T(3, 4)),
            S(T(), T(2, 0), T(0, 2)),
            S(T(2, 4), T(2, 3), T(3, 4), beta=2, alpha=3),
            S(T(2, 4), T(2, 3), T(3, 4), beta=0),
            S(T(2, 4, layout="transposed"), T(2, 3, layout="transposed"), T(3, 4, layout="strided")),
        ),
        method=True,
        inplace=True,
        out=True,
        dtypes=NUMBERS,
    ),
    Op("dot", VECTORS, method=True, dtypes=NUMBERS),
    Op(
        "outer",
        (S(T(2), T(3)), S(T(0), T(2)), S(T(2, layout="strided"), T(3, layout="offset"))),
        method=True,
        out=True,
    ),
    Op(
        "einsum",
        (
            S("ij,jk->ik", T(2, 3), T(3, 4)),
            S("ij->ji", T(2, 3)),
            S("ii->i", T(3, 3)),
            S("ii", T(3, 3)),
            S("ij->", T(2, 3)),
            S("i,j->ij", T(2), T(3)),
            S("bij,bjk->bik", T(2, 3, 4), T(2, 4, 2)),
            S("...ij,...jk->...ik", T(2, 1, 2, 3), T(2, 3, 2)),
            S("ij,ij->i", T(2, 3), T(2, 3)),
            S("i,i", T(3), T(3)),
            S("ij,jk,kl->il", T(2, 3), T(3, 2), T(2, 4)),
            S("ij,kj", T(2, 3), T(4, 3)),
            S("bi,oi->bo", T(2, 3, layout="transposed"), T(4, 3, layout="strided")),
            S("i j -> j i", T(2, 3)),
            S("bhqd,bhkd->bhqk", T(1, 2, 3, 2), T(1, 2, 2, 2)),
        ),
        dtypes=NUMBERS,
    ),
    Op(
        "linear",
        (
            S(T(2, 3), T(4, 3)),
            S(T(2, 3), T(4, 3), T(4)),
            S(T(3), T(4, 3), T(4)),
            S(T(2, 3), T(3, 3), T(3)),  # a square: either way round fits
            S(T(2, 2, 3), T(4, 3), T(4)),
            S(T(0, 3), T(4, 3), T(4)),
            *(S(T(2, 3), T(4, 3), T(*shape)) for shape in ((), (1,))),  # biases that broadcast
            *only(  # the sum may be rounded once or twice
                ("float32", "float64"),
                S(T(2, 3), T(4, 3), T(2, 4)),
                S(T(2, 3), T(4, 3), T(2, 1)),
                S(T(2, 2, 3), T(4, 3), T(2, 4)),
            ),
            S(T(2, 3, layout="transposed"), T(4, 3, layout="transposed"), T(4, layout="strided")),
        ),
        call=lambda m, *args: m.nn.functional.linear(*args),
        dtypes=NUMBERS,
    ),
)
