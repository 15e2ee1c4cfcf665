"""What is done with factors of matrices, and systems of equations by them; LU, LDL^H, eigenvalues of any matrix."""

from optable.core import Op, S, T
from optable.decompose import ANY, LAPACK, SQUARE, lapack, positive, spread, symmetric


def in_order(m, A, vectors):
    """Eigenvalues, and perhaps sizes of the eigenvectors' elements, by their real parts: they have no order."""
    values = m.linalg.eigvals(spread(m, A)) if not vectors else None
    if vectors:
        values, V = m.linalg.eig(spread(m, A))
    order = values.detach().real.argsort(-1)
    values = values.gather(-1, order)
    return (values, V.abs().gather(-1, order.unsqueeze(-2).expand(V.shape))) if vectors else values


def factored(name):
    return lambda m, A, **kw: getattr(m.linalg, name)(spread(m, A), **kw)


def lu_solve(m, A, B, **kw):
    return m.linalg.lu_solve(*m.linalg.lu_factor(spread(m, A)), B, **kw)


def lu_unpack(m, A, **kw):
    return m.lu_unpack(*m.linalg.lu_factor_ex(spread(m, A))[:2], **kw)


def ldl(m, A, hermitian=False):
    S = A + (A.mH if hermitian else A.mT)
    LD, pivots = m.linalg.ldl_factor(S, hermitian=hermitian)
    return LD.tril(), pivots


def ldl_solve(m, A, B, hermitian=False):
    S = A + (A.mH if hermitian else A.mT)
    return m.linalg.ldl_solve(*m.linalg.ldl_factor(S, hermitian=hermitian), B, hermitian=hermitian)


def triangle(m, A, upper):
    """Cholesky's factors, whose diagonal is real."""
    A = spread(m, A)
    return (A.triu(1) if upper else A.tril(-1)) + A.diagonal(0, -2, -1).real.diag_embed()


def cholesky_inverse(m, A, upper=False, **kw):
    return m.cholesky_inverse(triangle(m, A, upper), upper, **kw)


def cholesky_solve(m, B, A, upper=False, **kw):
    return m.cholesky_solve(B, triangle(m, A, upper), upper, **kw)


def triangular_solve(m, B, A, upper=True, **kw):
    return m.triangular_solve(B, spread(m, A), upper, **kw)


def reflections(name):
    """Of vectors below the diagonal; what stands above it counts for nothing."""
    return lambda m, A, *args, **kw: getattr(m, name)(A.tril(-1), *args, **kw)


def logdet(m, A):
    return m.logdet(positive(m, A))


def older_svd(m, A, some=True, compute_uv=True):
    U, S, V = m.svd(spread(m, A), some, compute_uv)
    k = S.shape[-1]
    return U[..., :k].abs(), S, V[..., :k].abs()


def older_qr(m, A, some=True):
    Q, R = m.qr(spread(m, A), some)
    return Q.abs(), R.abs()


def older_lu(m, A, **kw):
    return tuple(m.lu(spread(m, A), **kw))


def low_rank(name):
    """Of matrices of which the approximation is exact: the number is their rank."""

    def call(m, A, *args, **kw):
        U, S, V = getattr(m, name)(spread(m, A), *args, **kw)
        return U.abs(), S, V.abs()

    return call


def top(name, samples, call=None, **how):
    return Op(name, tuple(samples), call=call, dtypes=how.pop("dtypes", LAPACK), **how)


PAIRS = (
    S(T(3, 3), T(3, 2)),
    S(T(2, 3, 3), T(2, 3, 1)),
    S(T(2, 1, 2, 2), T(3, 2, 1)),
    S(T(0, 0), T(0, 2)),
    S(T(2, 2), T(2, 0)),
    S(T(0, 2, 2), T(0, 2, 1)),
    S(T(3, 3, layout="transposed"), T(3, 2, layout="strided")),
    S(T(2, 2, 2, layout="expanded"), T(2, 2, 2, layout="offset")),
)
SWAPPED = tuple(S(*reversed(s.args)) for s in PAIRS)
# Of nothing PyTorch has gradients or none, by chance.
REFLECTIONS = (
    S(T(4, 3), T(3)),
    S(T(4, 3), T(2)),
    S(T(3, 3), T(3)),
    S(T(2, 3, 2), T(2, 2)),
    S(T(3, 2, grad=False), T(0, grad=False)),
    S(T(0, 3, 2, grad=False), T(0, 2, grad=False)),
    S(T(3, 0, grad=False), T(0, grad=False)),
    S(T(4, 3, layout="transposed"), T(3, layout="strided")),
)

OPS = (
    lapack("eig", SQUARE, lambda m, A: in_order(m, A, True)),
    lapack("eigvals", SQUARE, lambda m, A: in_order(m, A, False)),
    lapack("lu_factor", ANY, factored("lu_factor")),
    lapack("lu_factor_ex", ANY, factored("lu_factor_ex")),
    lapack("lu", ANY, factored("lu")),
    lapack(
        "lu_solve",
        (
            *PAIRS,
            S(T(3, 3), T(3, 2), adjoint=True),
            S(T(3, 3), T(2, 3), left=False),
            S(T(2, 2, 2), T(3, 2), left=False, adjoint=True),
        ),
        lu_solve,
        out=True,
    ),
    lapack("ldl_factor", (*SQUARE, S(T(3, 3), hermitian=True)), ldl, grad=False),
    lapack("ldl_factor_ex", SQUARE, lambda m, A: m.linalg.ldl_factor_ex(symmetric(m, A))[1:], grad=False),
    # broadcasting batches crash PyTorch
    lapack(
        "ldl_solve",
        (PAIRS[0], PAIRS[1], PAIRS[4], PAIRS[6], S(T(3, 3), T(3, 2), hermitian=True)),
        ldl_solve,
        grad=False,
    ),
    lapack(
        "householder_product",
        REFLECTIONS,
        lambda m, A, tau, **kw: m.linalg.householder_product(A.tril(-1), tau, **kw),
        out=True,
    ),
    top("orgqr", REFLECTIONS, reflections("orgqr"), out=True),
    top(
        "ormqr",
        (
            S(T(4, 3), T(3), T(4, 2)),
            S(T(4, 3), T(3), T(4, 2), True, True),
            S(T(4, 3), T(3), T(2, 4), False),
            S(T(4, 3), T(3), T(2, 4), left=False, transpose=True),
            S(T(2, 3, 2), T(2, 2), T(2, 3, 4)),
            S(T(0, 3, 2, grad=False), T(0, 2, grad=False), T(0, 3, 1)),
            S(T(3, 3, layout="transposed"), T(3), T(3, 2, layout="strided")),
        ),
        reflections("ormqr"),
        out=True,
    ),
    top("geqrf", ANY, lambda m, A: m.geqrf(spread(m, A)), grad=False),
    top("cholesky", (*SQUARE, S(T(3, 3), True)), lambda m, A, *a, **kw: m.cholesky(positive(m, A), *a, **kw), out=True),
    top("cholesky_inverse", (*SQUARE, S(T(3, 3), True)), cholesky_inverse, out=True),
    top("cholesky_solve", (*SWAPPED, S(T(3, 2), T(3, 3), True)), cholesky_solve, out=True),
    top(
        "triangular_solve",
        (
            *SWAPPED,
            S(T(3, 2), T(3, 3), False),
            S(T(3, 2), T(3, 3), True, transpose=True),
            S(T(3, 2), T(3, 3), False, transpose=True, unitriangular=True),
        ),
        triangular_solve,
    ),
    top("lu_unpack", (*ANY, S(T(3, 2, grad=False), unpack_data=False), S(T(3, 2), unpack_pivots=False)), lu_unpack),
    top("lu_solve", SWAPPED, lambda m, B, A: m.lu_solve(B, *m.linalg.lu_factor(spread(m, A)))),
    top("lu", (*ANY, S(T(3, 2), get_infos=True)), older_lu),
    top("svd", (*ANY, S(T(4, 3), False), S(T(3, 2), True, False)), older_svd),
    top("qr", (*ANY, S(T(3, 3), False), S(T(2, 3), False)), older_qr),
    top("logdet", SQUARE, logdet),
    top("svd_lowrank", (S(T(4, 2), 2), S(T(2, 4), 2), S(T(2, 3, 3), 3)), low_rank("svd_lowrank")),
    top("pca_lowrank", (S(T(5, 2), 2), S(T(2, 2), 2, False)), low_rank("pca_lowrank"), composite=True),
)
