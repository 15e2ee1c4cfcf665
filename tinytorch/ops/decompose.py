"""Decompositions of matrices, by LAPACK: singular values, QR and Cholesky; the dimensions before the last two are a
batch.

The derivatives are those of the decomposition's defining equations (Giles 2008, "Collected matrix derivative results";
Seeger et al. 2017, "Auto-differentiating linear algebra"). They are written in terms of the results, and that of the
singular vectors divides by differences of singular values: where two are equal, it is not finite.
"""

from __future__ import annotations

from .. import return_types
from ..tensor import Tensor
from .declare import function, primitive, requires, write_all_out, write_out
from .eigen import check_phases, off_diagonal
from .join import cat
from .lapack import geqrf_orgqr, geqrf_r, gesdd, gesdd_values, potrf
from .solve import triangular


# Singular values.


def _svd_vjp(g_U, g_S, g_Vh, U, S, Vh):
    """With A = U S V^H, E_ij = s_j^2 - s_i^2 and skew(X) = X - X^H:
    dA = U [(skew(U^H dU) S + S skew(V^H dV)) / E + dS] V^H + (I - U U^H) dU S^-1 V^H + U S^-1 dV^H (I - V V^H).
    Of complex numbers the diagonal of skew(U^H dU) / 2S is added: it is that of -skew(V^H dV) / 2S, or the loss depends
    on phases. What square U and V have beyond k columns counts for nothing."""
    rows, k, cols = U.shape[-2], S.shape[-1], Vh.shape[-1]
    U, Vh = U[..., :k], Vh[..., :k, :]
    if g_U is None and g_Vh is None:
        return ((U * g_S.unsqueeze(-2)) @ Vh,)
    s_i, s_j = S.unsqueeze(-1), S.unsqueeze(-2)
    inner, outer, phases = 0, [], 0
    if g_U is not None:
        g_U = g_U[..., :k]
        x = phases = U.mH @ g_U
        skew = x - x.mH
        inner = skew * s_j
        if rows > k:
            outer.append(((g_U - U @ x) / s_j) @ Vh)
    if g_Vh is not None:
        g_Vh = g_Vh[..., :k, :]
        x = Vh @ g_Vh.mH
        phases = phases + x
        inner = inner + s_i * (x - x.mH)
        if cols > k:
            outer.append(U @ ((g_Vh - x.mH @ Vh) / s_i))
    check_phases("svd_backward", "singular vectors", phases)
    inner = inner / off_diagonal((s_j - s_i) * (s_j + s_i))
    if U.is_complex() and g_U is not None and g_Vh is not None:
        inner = inner + (skew.diagonal(0, -2, -1) / (2 * S)).diag_embed()
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
    conjugates=False,
)
def _svd(A, full_matrices, how):
    return gesdd(A, option=bool(full_matrices) + how)


_DRIVERS = {None: 0, "gesvd": 2, "gesvdj": 0, "gesvda": 0}  # options of svd: backend/decompose.h


def _driver(op: str, A: Tensor, driver) -> int:
    if driver is not None and not A.is_cuda:
        raise RuntimeError(f"{op}: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend.")
    if driver not in _DRIVERS:
        raise RuntimeError(f"{op}: unknown svd driver {driver}: 'gesvd', 'gesvdj' and 'gesvda' are known")
    return _DRIVERS[driver]


@function(namespace="linalg")
def svd(A, full_matrices=True, *, driver=None, out=None):
    """The singular value decomposition A = U diag(S) Vh of matrices (*, m, n): a named tuple of U (*, m, m), S (*, k)
    in descending order, and Vh (*, n, n), where k is the smaller of m and n; without ``full_matrices`` U is (*,
    m, k) and Vh (*, k, n). LinAlgError where an element is not finite. Follows ``torch.linalg.svd``.

    Args:
        A: matrices (*, m, n)
        full_matrices: whether U and Vh are square
        driver: for CUDA alone: ``'gesvd'``, by QR iterations, ``'gesvdj'``, by rotations, and by the former what does
            not converge (unless given), or ``'gesvda'``, which is the same here
        out: three tensors
    Returns:
        A named tuple (U, S, Vh).
    Raises:
        LinAlgError: the algorithm did not converge
    """
    how = _driver("linalg.svd", A, driver)
    return return_types.linalg_svd(*write_all_out("linalg.svd", _svd(A, full_matrices, how)[:3], out))


@primitive(namespace="linalg", name="svdvals")
def _svdvals(A, how):
    return gesdd_values(A, option=how)[0]


@function(namespace="linalg")
def svdvals(A, *, driver=None, out=None):
    """The singular values (*, k) of matrices (*, m, n), in descending order. Follows ``torch.linalg.svdvals``."""
    how = _driver("linalg.svdvals", A, driver)
    return write_out("linalg.svdvals", _svd(A, False, how)[1] if requires(A) else _svdvals(A, how), out, True)


# QR.


def _hermitian(upper: Tensor) -> Tensor:
    """The Hermitian matrix that has the triangle above the diagonal of ``upper``, and the diagonal's real part."""
    half = upper.triu(1)
    return half + half.mH + upper.diagonal(0, -2, -1).real.diag_embed()


_QR_MODES = ("reduced", "complete", "r")


def _qr_vjp(g_Q, g_R, Q, R, mode):
    """For m >= n, with M = dR R^H - Q^H dQ and its upper triangle made Hermitian: dA = (dQ + Q herm(M)) R^-H. For m <
    n, the last columns are A2 = Q R2: dA2 = Q dR2, and A2 dR2^H is added to dQ."""
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
        g_Q2 = Q @ (R[..., k:] @ g_R2.mH)
        g_Q = g_Q2 if g_Q is None else g_Q + g_Q2
    R = R[..., :k]
    x = 0 if g_R is None else g_R @ R.mH
    if g_Q is not None:
        x = x - Q.mH @ g_Q
    g = Q @ _hermitian(x)
    if g_Q is not None:
        g = g + g_Q
    g = triangular(R.mH, g, upper=False, left=False)
    if cols == k:
        return (g,)
    return (cat((g, g.new_zeros((*g.shape[:-1], cols - k)) if rest is None else rest), -1),)


@primitive(
    namespace="linalg",
    title="LinalgQrBackward0",
    outputs=("Q", "R"),
    extra=("info",),
    inputs=("A",),
    vjp=_qr_vjp,
    conjugates=False,
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
    """With A = L L^H and the lower triangle of L^H dL made Hermitian: dA = L^-H herm(L^H dL) L^-1 / 2."""
    if upper:
        g, L = g.mH, L.mH
    x = _hermitian((L.mH @ g).mH) / 2
    x = triangular(L.mH, x, upper=True)
    return (triangular(L, x, upper=False, left=False),)


@primitive(
    namespace="linalg",
    title="LinalgCholeskyExBackward0",
    outputs=("L",),
    extra=("info",),
    inputs=("A",),
    vjp=_cholesky_vjp,
    conjugates=False,
)
def _cholesky(A, upper, check, op):
    return potrf(A, option=upper, check=check, op=op)


@function(namespace="linalg")
def cholesky(A, *, upper=False, out=None):
    """The lower triangular L of A = L L^H for symmetric or Hermitian positive definite matrices (*, n, n), or its
    adjoint for ``upper``. Only that triangle of A is read; the gradient is symmetric. LinAlgError where A is not
    positive definite. Follows ``torch.linalg.cholesky``.

    Args:
        A: symmetric positive definite matrices (*, n, n)
        upper: whether to give the upper triangle, A = U^H U
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
