"""Decompositions of matrices, and systems of equations. Columns of U, V and Q are unique up to their signs alone, so
entries compare absolute values."""

from optable.core import Op, S, T

LAPACK = ("float32", "float64")
SQUARE = (
    S(T(3, 3)),
    S(T(1, 1)),
    S(T(0, 0)),
    S(T(2, 3, 3)),
    S(T(0, 2, 2)),
    S(T(2, 0, 0)),
    S(T(3, 3, layout="transposed")),
    S(T(3, 3, layout="strided")),
    S(T(3, 3, layout="offset")),
    S(T(2, 2, 2, layout="expanded")),
    S(T(2, 1, 2, 2, layout="transposed")),
)
# The determinants' are apart: an older PyTorch has no gradient there, not even zeros. Any PyTorch takes all dtypes.
EMPTY = tuple(sample for sample in SQUARE if 0 in sample.specs[0].shape)
NOT_EMPTY = tuple(sample for sample in SQUARE if sample not in EMPTY)
ANY = (
    *SQUARE,
    S(T(4, 3)),
    S(T(3, 4)),
    S(T(2, 3, 2)),
    S(T(0, 3)),
    S(T(3, 0)),
    S(T(2, 3, layout="transposed")),
    S(T(3, 2, layout="strided")),
)
SYSTEMS = (
    S(T(3, 3), T(3)),
    S(T(3, 3), T(3, 2)),
    S(T(2, 3, 3), T(3)),
    S(T(2, 3, 3), T(2, 3)),
    S(T(2, 3, 3), T(3, 2)),
    S(T(2, 1, 2, 2), T(3, 2, 1)),
    S(T(3, 3), T(2, 3), left=False),
    S(T(2, 2, 2), T(3, 2), left=False),
    S(T(0, 0), T(0, 2)),
    S(T(2, 2), T(2, 0)),
    S(T(0, 2, 2), T(0, 2)),
    S(T(3, 3, layout="transposed"), T(3, 2, layout="strided")),
    S(T(2, 2, 2, layout="expanded"), T(2, 2, 2, layout="offset")),
)


def spread(m, A):
    """A with a diagonal that keeps singular values and pivots apart."""
    rows, cols = A.shape[-2:]
    steps = m.arange(3, 3 * cols + 3, 3, device=A.device).to(A.dtype)
    return A + m.eye(rows, cols, dtype=A.dtype, device=A.device) * steps


def symmetric(m, A):
    A = spread(m, A)
    return A + A.mH


def positive(m, A):
    return A @ A.mH + m.diag_embed(m.ones(A.shape[-1:], dtype=A.dtype, device=A.device))


def triangular(m, A, B, upper, left=True, unitriangular=False):
    return m.linalg.solve_triangular(spread(m, A), B, upper=upper, left=left, unitriangular=unitriangular)


def svd(m, A, full_matrices=False):
    U, S, Vh = m.linalg.svd(spread(m, A), full_matrices)
    k = S.shape[-1]
    return U[..., :k].abs(), S, Vh[..., :k, :].abs()


def eigh(m, A, UPLO="L"):
    values, vectors = m.linalg.eigh(symmetric(m, A), UPLO)
    return values, vectors.abs()


def qr(m, A, mode="reduced"):
    Q, R = m.linalg.qr(spread(m, A), mode)
    return Q.abs(), R.abs()


def lapack(name, samples, call, **how):
    return Op(f"linalg.{name}", tuple(samples), call=call, dtypes=LAPACK, **how)


OPS = (
    lapack("svd", (*ANY, S(T(4, 3), True), S(T(2, 2, 3), True)), svd),
    lapack("svdvals", ANY, lambda m, A, **kw: m.linalg.svdvals(spread(m, A), **kw), out=True),
    lapack("eigh", (*SQUARE, S(T(3, 3), "U")), eigh),
    lapack(
        "eigvalsh",
        (*SQUARE, S(T(3, 3), UPLO="U")),
        lambda m, A, **kw: m.linalg.eigvalsh(symmetric(m, A), **kw),
        out=True,
    ),
    lapack("qr", (*ANY, S(T(3, 3), "complete"), S(T(2, 3), "complete")), qr),
    lapack(
        "cholesky",
        (*SQUARE, S(T(3, 3), upper=True)),
        lambda m, A, **kw: m.linalg.cholesky(positive(m, A), **kw),
        out=True,
    ),
    lapack("cholesky_ex", SQUARE, lambda m, A: m.linalg.cholesky_ex(positive(m, A))),
    lapack("solve", SYSTEMS, lambda m, A, B, **kw: m.linalg.solve(spread(m, A), B, **kw), out=True),
    lapack("solve_ex", SYSTEMS, lambda m, A, B, **kw: m.linalg.solve_ex(spread(m, A), B, **kw)),
    lapack(
        "solve_triangular",
        (
            S(T(3, 3), T(3, 2), True),
            S(T(3, 3), T(3, 2), False),
            S(T(3, 3), T(2, 3), True, left=False),
            S(T(3, 3), T(2, 3), False, left=False, unitriangular=True),
            S(T(3, 3), T(3, 1), True, unitriangular=True),
            S(T(2, 2, 2), T(2, 3), True),
            S(T(2, 2), T(3, 2, 1), False),
            S(T(0, 0), T(0, 2), True),
            S(T(3, 3, layout="transposed"), T(3, 2, layout="transposed"), True),
        ),
        triangular,
    ),
    lapack("inv", SQUARE, lambda m, A, **kw: m.linalg.inv(spread(m, A), **kw), out=True),
    lapack("inv_ex", SQUARE, lambda m, A: m.linalg.inv_ex(spread(m, A))),
    lapack("det", NOT_EMPTY, lambda m, A, **kw: m.linalg.det(spread(m, A), **kw), out=True),
    lapack(
        "det, empty",
        EMPTY,
        lambda m, A, **kw: m.linalg.det(spread(m, A), **kw),
        out=True,
        composite=True,
        since=(2, 13),
    ),
    lapack("slogdet", SQUARE, lambda m, A: m.linalg.slogdet(spread(m, A))),
    Op("det", NOT_EMPTY, method=True, dtypes=LAPACK),
    Op("det, empty", EMPTY, call=lambda m, A: A.det(), dtypes=LAPACK, composite=True, since=(2, 13)),
    Op("slogdet", SQUARE, method=True, dtypes=LAPACK),
    Op(
        "inverse",
        SQUARE,
        call=lambda m, A, **kw: m.inverse(spread(m, A), **kw),
        out=True,
        dtypes=LAPACK,
    ),
)
