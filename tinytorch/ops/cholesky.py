"""What is done with Cholesky's factors, L of A = L L^H or U of A = U^H U: inverses and systems of equations. Gradients
are those of functions of the whole matrix L, as PyTorch's, though only one triangle is read."""

from __future__ import annotations

from ..tensor import Tensor
from .declare import both, primitive, write_out
from .decompose import cholesky as _linalg_cholesky
from .lapack import potri
from .solve import triangular


@both
def cholesky(input, upper=False, *, out=None):
    """``linalg.cholesky``. Follows ``torch.cholesky``.

    Args:
        input: symmetric or Hermitian positive definite matrices (*, n, n)
        upper: whether to give the upper triangle
    Returns:
        Triangular matrices (*, n, n).
    Raises:
        LinAlgError: a matrix is not positive definite
    """
    return write_out("cholesky", _linalg_cholesky(input, upper=upper), out)


def _gradient(g_A: Tensor, L: Tensor, upper: bool) -> Tensor:
    """That of L, from the gradient of A, both triangles of L counting."""
    symmetric = g_A + g_A.mH
    return L @ symmetric if upper else symmetric @ L


def _cholesky_inverse_vjp(g, L, out, upper):
    return (_gradient(-(out @ g @ out), L, upper),)


@primitive(outputs=("out",), extra=("info",), inputs=("L",), vjp=_cholesky_inverse_vjp, conjugates=False)
def _cholesky_inverse(L, upper):
    return potri(L, option=upper, op="cholesky_inverse")


@both
def cholesky_inverse(input, upper=False, *, out=None):
    """The inverses of matrices A from their Cholesky factors. Follows ``torch.cholesky_inverse``.

    Args:
        input: the lower triangular L of A = L L^H (*, n, n), or the upper triangular U of A = U^H U
        upper: whether it is U
    Returns:
        Matrices (*, n, n).
    Raises:
        LinAlgError: an element of the diagonal is zero
        RuntimeError: the matrices are not square, or not floating
    """
    return write_out("cholesky_inverse", _cholesky_inverse(input, bool(upper))[0], out)


def _cholesky_solve_vjp(g, edges, L, out, upper, B_shape, L_shape):
    g_B = _cholesky_solve(g, L, upper)
    g_L = None
    if edges[1] is not None:
        g_L = _gradient(-(g_B @ out.mH), L, upper).sum_to_size(L_shape)
    return None if edges[0] is None else g_B.sum_to_size(B_shape), g_L


@primitive(outputs=("out",), inputs=("B", "L"), vjp=_cholesky_solve_vjp, conjugates=False)
def _cholesky_solve(B, L, upper):
    B, L = B.detach(), L.detach()
    first, second = (L.mH, L) if upper else (L, L.mH)
    return triangular(second, triangular(first, B, upper=False), upper=True)


@both
def cholesky_solve(input, input2, upper=False, *, out=None):
    """X of A X = B from the Cholesky factors of A; the batches broadcast. Follows ``torch.cholesky_solve``.

    Args:
        input: matrices B (*, n, k)
        input2: the lower triangular L of A = L L^H (*, n, n), or the upper triangular U of A = U^H U
        upper: whether it is U
    Returns:
        X, of the shape of ``input``.
    Raises:
        RuntimeError: shapes or dtypes do not match
    """
    for name, x in (("b", input), ("u", input2)):
        if x.ndim < 2:
            raise RuntimeError(f"cholesky_solve: {name} should have at least 2 dimensions, but has {x.ndim}")
    return write_out("cholesky_solve", _cholesky_solve(input, input2, bool(upper)), out)
