"""The functions of tinytorch.sparse."""

from __future__ import annotations

from . import sparse_math
from .declare import function
from .sparse import SparseTensor


def _check(op: str, *values) -> None:
    if not any(isinstance(v, SparseTensor) for v in values):
        raise RuntimeError(f"sparse.{op}: expected a sparse tensor")


@function(namespace="sparse")
def mm(mat1, mat2):
    """The product of a sparse matrix (n, m) and a dense one (m, k). Follows ``torch.sparse.mm``.

    Args:
        mat1: a sparse matrix
        mat2: a dense matrix, or a sparse one
    Returns:
        A dense matrix (n, k); a sparse one of two sparse ones.
    Raises:
        RuntimeError: the shapes or dtypes do not fit, or none is sparse
    """
    _check("mm", mat1, mat2)
    return sparse_math.mm(mat1, mat2)


@function(namespace="sparse")
def addmm(mat, mat1, mat2, *, beta=1, alpha=1):
    """beta ``mat`` + alpha ``mat1`` @ ``mat2``, of which ``mat1`` is sparse. Follows ``torch.sparse.addmm``.

    Args:
        mat: a dense matrix
        mat1: a sparse matrix
        mat2: a dense matrix
        beta: a number that multiplies ``mat``
        alpha: a number that multiplies the product
    Returns:
        A dense matrix.
    """
    _check("addmm", mat1, mat2)
    return sparse_math.addmm(mat, mat1, mat2, beta=beta, alpha=alpha)


@function(namespace="sparse")
def sum(input, dim=None, dtype=None):
    """The sum of all elements, or along dimensions. Follows ``torch.sparse.sum``.

    Args:
        input: a sparse tensor
        dim: the dimensions; all unless given
        dtype: the dtype to sum in
    Returns:
        A sparse tensor, or a dense one where no sparse dimension is left.
    Raises:
        IndexError: a dimension is out of range
    """
    _check("sum", input)
    return sparse_math.sum_of(input, dim, dtype=dtype)


@function(namespace="sparse")
def softmax(input, dim, *, dtype=None):
    """softmax of the elements that there are along ``dim``; the others count as -inf. Follows ``torch.sparse.softmax``.

    Args:
        input: a sparse tensor
        dim: the dimension
        dtype: the dtype to compute in
    Returns:
        A coalesced tensor of the same shape.
    Raises:
        IndexError: ``dim`` is out of range
    """
    _check("softmax", input)
    return sparse_math.soft(input, dim, dtype, False)


@function(namespace="sparse")
def log_softmax(input, dim, *, dtype=None):
    """The logarithm of ``sparse.softmax``. Follows ``torch.sparse.log_softmax``.

    Args:
        input: a sparse tensor
        dim: the dimension
        dtype: the dtype to compute in
    Returns:
        A coalesced tensor of the same shape.
    """
    _check("log_softmax", input)
    return sparse_math.soft(input, dim, dtype, True)
