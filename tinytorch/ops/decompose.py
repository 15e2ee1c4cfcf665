"""Decompositions of matrices, by LAPACK: singular values, eigenvalues, QR and Cholesky. float32 and float64; the
dimensions before the last two are a batch.

The derivatives are those of the decomposition's defining equations (Giles 2008, "Collected matrix derivative results";
Seeger et al. 2017, "Auto-differentiating linear algebra"). They are written in terms of the results, and divide by
differences of singular values or eigenvalues: where two are equal, gradients of the vectors are not finite.
"""

from __future__ import annotations

from .. import return_types
from ..tensor import Tensor
from .declare import function, primitive, requires, write_all_out, write_out
from .join import cat
from .lapack import geqrf_orgqr, geqrf_r, gesdd, gesdd_values, heevd, heevd_values, potrf
from .ranges import eye
from .solve import triangular


def _off_diagonal(differences: Tensor) -> Tensor:
    """The differences of every two values, with 1 in place of the 0 between a value and itself."""
    return differences + eye(differences.shape[-1], dtype=differences.dtype, device=differences.device)


# Singular values.


def _svd_vjp(g_U, g_S, g_Vh, U, S, Vh):
    """With A = U S V^T, E_ij = s_j^2 - s_i^2 and skew(X) = X - X^T:
    dA = U [(skew(U^T dU) S + S skew(V^T dV)) / E + dS] V^T + (I - U U^T) dU S^-1 V^T + U S^-1 dV^T (I - V V^T).
    What square U and V have beyond k columns counts for nothing."""
    rows, k, cols = U.shape[-2], S.shape[-1], Vh.shape[-1]
    U, Vh = U[..., :k], Vh[..., :k, :]
    if g_U is None and g_Vh is None:
        return ((U * g_S.unsqueeze(-2)) @ Vh,)
    s_i, s_j = S.unsqueeze(-1), S.unsqueeze(-2)
    inner, outer = 0, []
    if g_U is not None:
        g_U = g_U[..., :k]
        x = U.mT @ g_U
        inner = (x - x.mT) * s_j
        if rows > k:
            outer.append(((g_U - U @ x) / s_j) @ Vh)
    if g_Vh is not None:
        g_Vh = g_Vh[..., :k, :]
        x = Vh @ g_Vh.mT
        inner = inner + s_i * (x - x.mT)
        if cols > k:
            outer.append(U @ ((g_Vh - x.mT @ Vh) / s_i))
    inner = inner / _off_diagonal((s_j - s_i) * (s_j + s_i))
    if g_S is not None:
        inner = inner + g_S.diag_embed()
    return (sum(outer, U @ inner @ Vh),)


@primitive(
    namespace="linalg",
    title="LinalgSvdBackward0",
    outputs=("U", "S", "Vh"),
    extra=("info",),
    inputs=("A",),
    vjp=_svd_vjp,
)
def _svd(A, full_matrices):
    return gesdd(A, option=bool(full_matrices))


def _no_driver(op: str, driver) -> None:
    if driver is not None:
        raise RuntimeError(f"{op}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")


@function(namespace="linalg")
def svd(A, full_matrices=True, *, driver=None, out=None):
    """The singular value decomposition A = U diag(S) Vh of matrices (*, m, n): a named tuple of U (*, m, m), S (*, k)
    in descending order, and Vh (*, n, n), where k is the smaller of m and n; without ``full_matrices`` U is (*,
    m, k) and Vh (*, k, n). LinAlgError where an element is not finite. Follows ``torch.linalg.svd``.

    Args:
        A: matrices (*, m, n)
        full_matrices: whether U and Vh are square
        driver: for CUDA alone
        out: three tensors
    Returns:
        A named tuple (U, S, Vh).
    Raises:
        LinAlgError: the algorithm did not converge
    """
    _no_driver("linalg.svd", driver)
    return return_types.linalg_svd(*write_all_out("linalg.svd", _svd(A, full_matrices)[:3], out))


@primitive(namespace="linalg", name="svdvals")
def _svdvals(A):
    return gesdd_values(A)[0]


@function(namespace="linalg")
def svdvals(A, *, driver=None, out=None):
    """The singular values (*, k) of matrices (*, m, n), in descending order. Follows ``torch.linalg.svdvals``."""
    _no_driver("linalg.svdvals", driver)
    return write_out("linalg.svdvals", _svd(A, False)[1] if requires(A) else _svdvals(A), out, True)


# Eigenvalues of symmetric matrices.


def _eigh_vjp(g_L, g_V, L, V):
    """With A = V L V^T and E_ij = l_j - l_i: dA = V [dL + (V^T dV) / E] V^T, made symmetric."""
    if g_V is None:
        return ((V * g_L.unsqueeze(-2)) @ V.mT,)
    x = V.mT @ g_V
    inner = (x - x.mT) / (2 * _off_diagonal(L.unsqueeze(-2) - L.unsqueeze(-1)))
    if g_L is not None:
        inner = inner + g_L.diag_embed()
    return (V @ inner @ V.mT,)


@primitive(
    namespace="linalg", title="LinalgEighBackward0", outputs=("L", "V"), extra=("info",), inputs=("A",), vjp=_eigh_vjp
)
def _eigh(A, upper):
    return heevd(A, option=upper)


@primitive(namespace="linalg", name="eigvalsh")
def _eigvalsh(A, upper):
    return heevd_values(A, option=upper)[0]


def _is_upper(op: str, UPLO: str) -> bool:
    if not isinstance(UPLO, str):
        raise TypeError(f"{op}(): argument 'UPLO' must be str, not {type(UPLO).__name__}")
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"{op}: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


@function(namespace="linalg")
def eigh(A, UPLO="L", *, out=None):
    """The eigenvalues of symmetric matrices (*, n, n) in ascending order, and their eigenvectors as columns: a named
    tuple (eigenvalues (*, n), eigenvectors (*, n, n)). Only the lower triangle is read, or the upper one for
    ``UPLO="U"``; the gradient is symmetric. LinAlgError where an element is not finite. Follows
    ``torch.linalg.eigh``.

    Args:
        A: symmetric matrices (*, n, n)
        UPLO: which triangle is read
        out: two tensors
    Returns:
        A named tuple (eigenvalues, eigenvectors).
    Raises:
        LinAlgError: the algorithm did not converge
    """
    results = _eigh(A, _is_upper("linalg.eigh", UPLO))[:2]
    return return_types.linalg_eigh(*write_all_out("linalg.eigh", results, out))


@function(namespace="linalg")
def eigvalsh(A, UPLO="L", *, out=None):
    """The eigenvalues (*, n) of symmetric matrices (*, n, n), in ascending order; else as ``eigh``. Follows
    ``torch.linalg.eigvalsh``."""
    upper = _is_upper("linalg.eigvalsh", UPLO)
    return write_out("linalg.eigvalsh", _eigh(A, upper)[0] if requires(A) else _eigvalsh(A, upper), out, True)


# QR.

_QR_MODES = ("reduced", "complete", "r")


def _qr_vjp(g_Q, g_R, Q, R, mode):
    """For m >= n, with M = dR R^T - Q^T dQ and its upper triangle made symmetric: dA = (dQ + Q sym(triu(M))) R^-T. For
    m < n, the last columns are A2 = Q R2: dA2 = Q dR2, and A2 dR2^T is added to dQ."""
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
            "linalg.qr(A, mode='reduced') if you are going to differentiate through linalg.qr."
        )
    rows, k, cols = Q.shape[-2], R.shape[-2], R.shape[-1]
    if rows > cols and mode == "complete":
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols.")
    rest = None
    if cols > k and g_R is not None:
        g_R2, g_R = g_R[..., k:], g_R[..., :k]
        rest = Q @ g_R2
        g_Q2 = Q @ (R[..., k:] @ g_R2.mT)
        g_Q = g_Q2 if g_Q is None else g_Q + g_Q2
    R = R[..., :k]
    x = 0 if g_R is None else g_R @ R.mT
    if g_Q is not None:
        x = x - Q.mT @ g_Q
    g = Q @ (x.triu() + x.triu(1).mT)
    if g_Q is not None:
        g = g + g_Q
    g = triangular(R.mT, g, upper=False, left=False)
    if cols == k:
        return (g,)
    return (cat((g, g.new_zeros((*g.shape[:-1], cols - k)) if rest is None else rest), -1),)


@primitive(
    namespace="linalg", title="LinalgQrBackward0", outputs=("Q", "R"), extra=("info",), inputs=("A",), vjp=_qr_vjp
)
def _qr(A, mode):
    if mode == "r":
        R, info = geqrf_r(A, op="qr")
        return R.new_empty((0,)), R, info
    return geqrf_orgqr(A, option=mode == "complete")


@function(namespace="linalg")
def qr(A, mode="reduced", *, out=None):
    """A = Q R for matrices (*, m, n), with orthonormal columns in Q and R upper triangular: a named tuple of Q (*, m,
    k) and R (*, k, n), where k is the smaller of m and n. ``mode="complete"``: Q (*, m, m) and R (*, m, n);
    ``mode="r"``: R alone, and an empty Q. Follows ``torch.linalg.qr``.

    Args:
        A: matrices (*, m, n)
        mode: ``'reduced'``, ``'complete'`` or ``'r'``
        out: two tensors
    Returns:
        A named tuple (Q, R).
    Raises:
        RuntimeError: ``mode`` is unknown, or the matrices are not floating
    """
    if mode not in _QR_MODES:
        raise RuntimeError(
            f"linalg.qr: received unrecognized mode '{mode}' but expected one of 'reduced' (default), "
            "'r', or 'complete'"
        )
    return return_types.linalg_qr(*write_all_out("linalg.qr", _qr(A, mode)[:2], out))


# Cholesky.


def _cholesky_vjp(g, L, upper):
    """With A = L L^T and P = tril(L^T dL), its diagonal halved: dA = L^-T P L^-1, made symmetric."""
    if upper:
        g, L = g.mT, L.mT
    x = (L.mT @ g).tril()
    x = (x + x.tril(-1).mT) / 2
    x = triangular(L.mT, x, upper=True)
    return (triangular(L, x, upper=False, left=False),)


@primitive(
    namespace="linalg",
    title="LinalgCholeskyExBackward0",
    outputs=("L",),
    extra=("info",),
    inputs=("A",),
    vjp=_cholesky_vjp,
)
def _cholesky(A, upper, check, op):
    return potrf(A, option=upper, check=check, op=op)


@function(namespace="linalg")
def cholesky(A, *, upper=False, out=None):
    """The lower triangular L of A = L L^T for symmetric positive definite matrices (*, n, n), or its transpose for
    ``upper``. Only that triangle of A is read; the gradient is symmetric. LinAlgError where A is not positive
    definite. Follows ``torch.linalg.cholesky``.

    Args:
        A: symmetric positive definite matrices (*, n, n)
        upper: whether to give the upper triangle, A = U^T U
    Returns:
        Triangular matrices (*, n, n).
    Raises:
        LinAlgError: a matrix is not positive definite
    """
    return write_out("linalg.cholesky", _cholesky(A, bool(upper), True, "cholesky")[0], out, True)


@function(namespace="linalg")
def cholesky_ex(A, *, upper=False, check_errors=False, out=None):
    """``cholesky`` that raises only if told to: a named tuple (L, info), where info (*), int32, is 0 for success, or
    the order of the leading minor that is not positive definite; L is then of no use. Follows
    ``torch.linalg.cholesky_ex``."""
    results = _cholesky(A, bool(upper), bool(check_errors), "cholesky_ex")
    return return_types.linalg_cholesky_ex(*write_all_out("linalg.cholesky_ex", results, out))
