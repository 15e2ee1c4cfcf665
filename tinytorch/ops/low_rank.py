"""Approximate decompositions of large matrices by random projections (Halko, Martinsson and Tropp 2011, "Finding
structure with randomness", algorithms 4.4 and 5.1)."""

from __future__ import annotations

from ..tensor import Tensor
from .declare import function
from .decompose import qr
from .decompose import svd as _linalg_svd
from .random import randn


def _range(A: Tensor, q: int, niter: int, M: Tensor | None) -> Tensor:
    """Orthonormal columns (*, m, q) that span about what those of A - M do."""

    def times(X):
        return A @ X if M is None else A @ X - M @ X

    def adjoint_times(X):
        return A.mH @ X if M is None else A.mH @ X - M.mH @ X

    Q = qr(times(randn(A.shape[-1], q, dtype=A.dtype, device=A.device))).Q
    for _ in range(niter):
        Q = qr(times(qr(adjoint_times(Q)).Q)).Q
    return Q


def _svd(A: Tensor, q: int, niter: int, M: Tensor | None):
    if A.shape[-2] < A.shape[-1]:
        V, S, U = _svd(A.mH, q, niter, None if M is None else M.mH)
        return U, S, V
    Q = _range(A, q, niter, M)
    B = Q.mH @ A if M is None else Q.mH @ (A - M)
    U, S, Vh = _linalg_svd(B, False)
    return Q @ U, S, Vh.mH


@function
def svd_lowrank(A, q=6, niter=2, M=None):
    """About the ``q`` largest singular values of matrices, and their vectors: (U (*, m, q), S (*, q), V (*, n, q)) with
    A - M near U diag(S) V^H. Random. Follows ``torch.svd_lowrank``.

    Args:
        A: matrices (*, m, n)
        q: how many; more than the rank in question
        niter: how many steps of subspace iteration
        M: matrices (*, m, n) to subtract, or None
    Returns:
        A tuple (U, S, V).
    Raises:
        RuntimeError: A is no stack of matrices, or not floating
    """
    return _svd(A, 6 if q is None else q, niter, None if M is None else M.expand(A.shape))


@function
def pca_lowrank(A, q=None, center=True, niter=2):
    """Principal components of rows, by ``svd_lowrank`` of A less the mean of its rows: (U (*, m, q), S (*, q), V (*, n,
    q)), where the columns of V are the directions. Random. Follows ``torch.pca_lowrank``. Otherwise like
    ``svd_lowrank``.

    Args:
        q: how many components; the smallest of 6, m and n unless given
        center: whether to subtract the mean
    Raises:
        ValueError: q is negative or more than m or n, or ``niter`` is negative
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if not niter >= 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return _svd(A - A.mean(-2, keepdim=True) if center else A, q, niter, None)
