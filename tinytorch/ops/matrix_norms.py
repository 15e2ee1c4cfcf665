"""Norms of vectors and matrices, and condition numbers, by linalg's names."""

from __future__ import annotations

import math

from ..dtypes import as_dtype
from ..tensor import Tensor
from .convert import in_dtype
from .declare import both, composite, function, publish, write_out
from .decompose import svdvals
from .solve import inv_ex
from .statistics import vector_norm as _vector_norm


def _in_norm_dtype(op: str, x: Tensor, dtype) -> Tensor:
    """``x`` in ``dtype``, which must be a wider one of its kind."""
    if not x.dtype.is_differentiable:
        raise RuntimeError(f"{op}: Expected a floating point or complex tensor as input. Got {x.dtype.name}")
    dtype = x.dtype if dtype is None else as_dtype(dtype, op)
    if dtype is x.dtype:
        return x
    if not dtype.is_differentiable:
        raise RuntimeError(f"{op}: dtype should be floating point or complex. Got {dtype.name}")
    if dtype.is_complex != x.is_complex():
        kind = "complex" if x.is_complex() else "real"
        raise RuntimeError(f"{op}: dtype should be {kind} for {kind} inputs, but got {dtype.name}")
    if dtype.itemsize < x.dtype.itemsize:
        raise RuntimeError(
            f"{op}: the dtype of the input ({x.dtype.name}) should be convertible without narrowing to the specified "
            f"dtype ({dtype.name})"
        )
    return x.to(dtype)


@function(namespace="linalg")
def vector_norm(x, ord=2, dim=None, keepdim=False, *, dtype=None, out=None):  # noqa: A002
    """(sum |x|^ord)^(1/ord) of the elements, over all dimensions or those of ``dim``. Follows
    ``torch.linalg.vector_norm``.

    Args:
        x: a tensor
        ord: the order, any number: inf and -inf are the largest and the smallest size, 0 counts what is not zero
        dim: the dimension, or several; all unless given
        dtype: the dtype to compute in
    Returns:
        A real tensor without the dimensions of ``dim``.
    Raises:
        RuntimeError: ``x`` is not floating, or there is nothing whose largest size could be taken
    """
    op = "linalg.vector_norm"
    if isinstance(ord, complex) or (isinstance(ord, Tensor) and ord.is_complex()):
        raise RuntimeError(f"{op}: Expected a non-complex scalar as the order of norm.")
    x = _in_norm_dtype(op, x, dtype)
    dim = None if isinstance(dim, (tuple, list)) and not dim else dim
    return write_out(op, _vector_norm(x, ord, dim, keepdim, None, op), out, True)


_OF_VALUES = (2, -2)
_ORDERS = (1, -1, math.inf, -math.inf, *_OF_VALUES)


def _check_order(op: str, ord) -> None:  # noqa: A002
    if isinstance(ord, (str, bytes)):
        if ord not in ("fro", "nuc"):
            raise RuntimeError(f"{op}: Order {ord} not supported.")
    elif ord not in _ORDERS:
        raise RuntimeError(f"{op}: Order {ord} not supported.")


def _matrix_dims(op: str, A: Tensor, dim) -> tuple[int, int]:
    dims = (dim,) if hasattr(dim, "__index__") else tuple(dim)
    if len(dims) != 2:
        raise RuntimeError(f"{op}: dim must be a 2-tuple. Got {' '.join(map(str, dims))}")
    rows, cols = A._dim(dims[0]), A._dim(dims[1])
    if rows == cols:
        raise RuntimeError(f"{op}: dims must be different. Got ({dims[0]}, {dims[1]})")
    return rows, cols


@function(namespace="linalg")
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):  # noqa: A002
    """Norms of matrices: ``'fro'``, the root of the sum of squares; ``'nuc'``, the sum of the singular values; 2 and
    -2, the largest and the smallest of them; 1 and -1, the largest and the smallest sum of sizes in a column, inf and
    -inf in a row. Follows ``torch.linalg.matrix_norm``.

    Args:
        A: a tensor of at least two dimensions
        ord: which norm
        dim: the dimensions of rows and of columns
        dtype: the dtype to compute in
    Returns:
        A real tensor without the two dimensions.
    Raises:
        RuntimeError: A is not floating or no stack of matrices, or there is no such norm
    """
    op = "linalg.matrix_norm"
    if A.ndim < 2:
        raise RuntimeError(f"{op}: The input tensor A must have at least 2 dimensions.")
    _check_order(op, ord)
    rows, cols = _matrix_dims(op, A, dim)
    A = _in_norm_dtype(op, A, dtype)
    return write_out(op, _matrix_norm(op, A, ord, rows, cols, keepdim), out, True)


def _largest(x: Tensor, dim: int) -> Tensor:
    """Of sizes: of none, 0."""
    return x.amax(dim) if x.shape[dim] else x.sum(dim)


def _matrix_norm(op, A, ord, rows, cols, keepdim):  # noqa: A002
    if ord == "fro":
        return _vector_norm(A, 2, (rows, cols), keepdim, None, op)
    if ord == "nuc" or abs(ord) == 2:
        S = svdvals(A.movedim((rows, cols), (-2, -1)))
        result = S.sum(-1) if ord == "nuc" else _largest(S, -1) if ord > 0 else S.amin(-1)
    else:
        summed, other = (rows, cols) if abs(ord) == 1 else (cols, rows)
        sums = _vector_norm(A, 1, summed, True, None, op)
        result = (_largest(sums, other) if ord > 0 else sums.amin(other)).squeeze(summed - (summed > other))
    for d in sorted((rows, cols)) if keepdim else ():
        result = result.unsqueeze(d)
    return result


@function(namespace="linalg")
def norm(input, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):  # noqa: A002
    """``vector_norm`` of a vector or over one dimension, ``matrix_norm`` of a matrix or over two; without ``ord`` the
    root of the sum of squares, over these or over all. Follows ``torch.linalg.norm``.

    Args:
        ord: which norm
        dim: the dimension, or two; all unless given
        dtype: the dtype to compute in
    Returns:
        A real tensor without the dimensions of ``dim``.
    Raises:
        RuntimeError: ``input`` is not floating, there is no such norm, or neither a vector nor a matrix is meant
    """
    dims = None if dim is None else tuple(dim) if isinstance(dim, (tuple, list)) else (dim,)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
    if ord is None or (dims is None and input.ndim != 2) or (dims is not None and len(dims) == 1):
        if ord is not None and dims is None and input.ndim != 1:
            raise RuntimeError(
                f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {input.ndim}D."
            )
        if isinstance(ord, (str, bytes)):
            raise RuntimeError(f"linalg.norm: Order {ord} not supported for vectors")
        return vector_norm(input, 2 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)
    return matrix_norm(input, ord, dims or (-2, -1), keepdim, dtype=dtype, out=out)


@function(namespace="linalg")
def cond(A, p=None, *, out=None):
    """Condition numbers |A| |A^-1| of matrices (*, m, n) in the norm ``p`` of ``matrix_norm``: inf of singular ones.
    For 2 (unless given) and -2 the ratio of the largest and the smallest singular value. Follows ``torch.linalg.cond``.

    Args:
        A: matrices (*, m, n), square but for 2 and -2
        p: which norm
    Returns:
        A real tensor (*).
    Raises:
        RuntimeError: A is no stack of matrices, not square or not floating, or there is no such norm
    """
    op = "linalg.cond"
    if A.ndim < 2:
        raise RuntimeError(f"{op}: The input tensor A must have at least 2 dimensions.")
    p = 2 if p is None else p
    _check_order(op, p)
    if not isinstance(p, str) and abs(p) == 2:
        if not A.numel():
            return write_out(op, A.new_zeros(A.shape[:-2]).abs(), out, True)
        S = svdvals(A)
        largest, smallest = S[..., 0], S[..., -1]
        return write_out(op, largest / smallest if p > 0 else smallest / largest, out, True)
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{op}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    if not A.numel():
        return write_out(op, A.new_zeros(A.shape[:-2]).abs(), out, True)
    inverse, info = inv_ex(A)
    inverse = inverse.masked_fill((info > 0).unsqueeze(-1).unsqueeze(-1), math.inf)
    result = matrix_norm(A, p) * matrix_norm(inverse, p)
    return write_out(op, in_dtype(result, result.dtype).nan_to_num(math.inf, math.inf, -math.inf), out, True)


@composite(same_dtype=True)
def renorm(input, p, dim, maxnorm):
    """Those parts along ``dim`` whose p-norm is above ``maxnorm`` scaled down to it. Follows ``torch.renorm``.

    Args:
        input: a tensor of at least two dimensions
        p: the order of the norm, above 0
        dim: the dimension along which the parts lie
        maxnorm: the largest norm
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        RuntimeError: p or ``maxnorm`` is out of range, or there are fewer than two dimensions
    """
    if isinstance(p, complex) or isinstance(maxnorm, complex):
        raise RuntimeError("renorm: p and maxnorm must be real-valued")
    if not p > 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if not maxnorm >= 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    dim = input._dim(dim)
    over = [d for d in range(input.ndim) if d != dim]
    size = _vector_norm(input, p, over, True, None, "renorm")
    # the small number, as in PyTorch, keeps the result's norm below the largest
    factor = (maxnorm / (size + 1e-7)).masked_fill(size <= maxnorm, 1)
    return input * factor


def _top_norm(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """The p-norm (sum |x|^p)^(1/p) over all dimensions or those of ``dim``; ``p`` may be 0, infinite, or "fro" (2);
    "nuc", the sum of a matrix's singular values. Floating dtypes. Follows ``torch.norm``.

    Args:
        p: the order: a number, ``inf``, ``-inf``, ``'fro'``, which is 2, or ``'nuc'``
    Returns:
        A tensor without the dimensions of ``dim``, or 0-d.
    Raises:
        RuntimeError: integers without a floating ``dtype``
    """
    if p == "fro" or p is None:
        p = 2.0
    elif isinstance(p, str):
        if p != "nuc":
            raise RuntimeError(f"norm(): expected p to be a number, 'fro' or 'nuc', got '{p}'")
        return matrix_norm(input, p, tuple(range(input.ndim)) if dim is None else dim, keepdim, dtype=dtype, out=out)
    return write_out("norm", _vector_norm(input, p, dim, keepdim, dtype), out)


publish(_top_norm, name="norm", method=True)


@both
def dist(input, other, p=2):
    """The p-norm of ``input - other``. Follows ``torch.dist``."""
    for name, x in (("input", input), ("other", other)):
        if not isinstance(x, Tensor):
            raise TypeError(f"dist(): argument '{name}' must be Tensor, not {type(x).__name__}")
    return _top_norm(input - other, p)
