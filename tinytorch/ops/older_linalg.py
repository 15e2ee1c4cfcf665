"""PyTorch's older names of decompositions and systems of equations, outside of linalg: it calls them deprecated."""

from __future__ import annotations

from numbers import Integral

from .. import return_types
from ..tensor import Tensor
from .declare import both, function, method, write_all_out
from .decompose import qr as _linalg_qr
from .decompose import svd as _linalg_svd
from .decompose import svdvals
from .lu import lu_factor_ex
from .lu import lu_solve as _linalg_lu_solve
from .matrix_norms import matrix_norm, vector_norm
from .solve import triangular


@both
def qr(input, some=True, *, out=None):
    """``linalg.qr``, complete without ``some``. Follows ``torch.qr``.

    Args:
        input: matrices (*, m, n)
        some: whether Q has no more columns than there are rows and columns
        out: two tensors
    Returns:
        A named tuple (Q, R).
    """
    results = tuple(_linalg_qr(input, "reduced" if some else "complete"))
    return return_types.qr(*write_all_out("qr", results, out))


@both
def svd(input, some=True, compute_uv=True, *, out=None):
    """The singular value decomposition input = U diag(S) V^H, as ``linalg.svd`` but for V; zeros stand for U and V
    without ``compute_uv``. Follows ``torch.svd``.

    Args:
        input: matrices (*, m, n)
        some: whether U and V have no more columns than there are singular values
        compute_uv: whether U and V are wanted
        out: three tensors
    Returns:
        A named tuple (U, S, V).
    """
    if compute_uv:
        U, S, Vh = _linalg_svd(input, not some)
        V = Vh.mH
    else:
        (*batch, m, n), S = input.shape, svdvals(input)
        U, V = input.new_zeros((*batch, m, m)), input.new_zeros((*batch, n, n))
    return return_types.svd(*write_all_out("svd", (U, S, V), out))


@function
def lu(A, pivot=True, get_infos=False, out=None) -> tuple[Tensor, ...]:
    """``linalg.lu_factor_ex``: a tuple (LU, pivots), and with ``get_infos`` the named tuple (LU, pivots, info). Follows
    ``torch.lu``.

    Args:
        A: matrices (*, m, n)
        pivot: True; LU without pivoting is for CUDA alone
        get_infos: whether to give the infos
        out: as many tensors as there are results
    Returns:
        A tuple (LU, pivots) or (LU, pivots, info).
    """
    results = tuple(lu_factor_ex(A, pivot=pivot))
    if get_infos:
        return return_types._lu_with_info(*write_all_out("lu", results, out))
    return tuple(write_all_out("lu", results[:2], out))


def _lu_method(self, pivot=True, get_infos=False) -> tuple[Tensor, ...]:
    """``linalg.lu_factor_ex``. Follows ``torch.Tensor.lu``."""
    return lu(self, pivot, get_infos)


_lu_method.__name__ = "lu"
method(_lu_method)


@both
def lu_solve(input, LU_data, LU_pivots, *, out=None):
    """``linalg.lu_solve``. Follows ``torch.lu_solve``.

    Args:
        input: matrices B (*, n, k)
        LU_data: factors (*, n, n)
        LU_pivots: pivots (*, n), int32
    Returns:
        X of A X = B.
    """
    return _linalg_lu_solve(LU_data, LU_pivots, input, out=out)


@both
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False, *, out=None):
    """X of A X = B for triangular A, or of A^T X = B, and a copy of A: ``linalg.solve_triangular``. Follows
    ``torch.triangular_solve``.

    Args:
        input: matrices B (*, n, k)
        A: triangular matrices (*, n, n)
        upper: whether the upper triangle of A counts
        transpose: whether the equation is that of A^T
        unitriangular: whether the diagonal is taken for ones
        out: two tensors
    Returns:
        A named tuple (solution, cloned_coefficient).
    Raises:
        RuntimeError: shapes or dtypes do not match
    """
    upper, transpose, unitriangular = bool(upper), bool(transpose), bool(unitriangular)
    for name, x in (("b", input), ("A", A)):
        if x.ndim < 2:
            raise RuntimeError(f"triangular_solve: Expected {name} to have at least 2 dimensions, but it has {x.ndim}")
    X = triangular(A.mT if transpose else A, input, upper != transpose, True, unitriangular)
    copy = A.expand(*X.shape[:-2], *A.shape[-2:]).clone()
    return return_types.triangular_solve(*write_all_out("triangular_solve", (X, copy), out))


@function
def frobenius_norm(input, dim, keepdim=False, *, out=None):
    """The root of the sum of the squared sizes of the elements. Follows ``torch.frobenius_norm``.

    Args:
        dim: the dimension, or several; all where there are none
    Returns:
        A tensor without these dimensions, or with ``keepdim`` of size 1 in them.
    """
    if isinstance(dim, (tuple, list)) and len(tuple(dim)) > 2:
        raise RuntimeError(f"frobenius_norm: expected at most 2 dimensions in dim, but got {len(dim)}")
    return vector_norm(input, 2, None if dim == () or dim == [] else dim, keepdim, out=out)


@function
def nuclear_norm(input, dim=(-2, -1), keepdim=False, *, out=None):
    """The sum of the singular values of matrices. Follows ``torch.nuclear_norm``.

    Args:
        dim: the two dimensions of the matrices
    Returns:
        A tensor without these dimensions, or with ``keepdim`` of size 1 in them.
    """
    if isinstance(dim, bool):  # nuclear_norm(input, keepdim)
        dim, keepdim = (-2, -1), dim
    elif isinstance(dim, (Integral, Tensor)):  # both
        dim = (dim, dim)
    return matrix_norm(input, "nuc", dim, keepdim, out=out)


@function
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0):
    """The norms of ``v`` over all dimensions but one. Follows ``torch.norm_except_dim``.

    Args:
        v: a tensor
        pow: the order of the norm
        dim: the dimension that stays; -1: none does
    Returns:
        A tensor of as many dimensions, of size 1 but for ``dim``; 0-d for -1.
    """
    if dim == -1:
        return v.norm(pow)
    v.size(dim)  # IndexError where there is no such dimension
    return vector_norm(v, pow, [d for d in range(v.ndim) if d != dim], True)
