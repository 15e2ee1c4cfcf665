"""Arithmetic of sparse tensors: sums, products with numbers and with dense tensors, reductions. Note [Sparse tensors]
in ops/sparse.py."""

from __future__ import annotations

import math

from ..autograd.modes import is_grad_enabled
from ..dtypes import float32, float64
from ..layouts import sparse_coo
from ..tensor import Tensor, owned
from .declare import both, function, is_number, primitive
from .join import cat
from .ranges import arange
from .search import searchsorted
from .sparse import RULES, SparseTensor, _apart, _coo, _flat, added_up, coalesce, coo, dim_of, like, rule
from .sparse_convert import to_dense, to_sparse_csr
from .sparse_members import transpose


# Sums.


@rule()
def add(input, other, *, alpha=1):
    """Of two sparse tensors, or of a dense and a sparse one."""
    if not isinstance(input, SparseTensor):
        return _dense_plus(input, other, alpha)
    if not isinstance(other, SparseTensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if input.shape != other.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(input.shape)} != {list(other.shape)}"
        )
    a, b = _coo(input), _coo(other)
    if a._places is b._places:
        return like(input, a._entries.add(b._entries, alpha=alpha))
    if a._places.shape[0] != b._places.shape[0]:
        raise RuntimeError("add: expected 'self' and 'other' to have same number of sparse dimensions")
    more = b._entries if alpha == 1 else b._entries * alpha
    result = coo(cat((a._places, b._places), 1), cat((a._entries, more.to(_common(a, b)))), a.shape)
    if input.is_sparse_csr:
        return to_sparse_csr(result)
    return coalesce(result) if a._order and b._order else result


def _common(a, b):
    return (a._entries[:0] + b._entries[:0]).dtype


def _dense_plus(dense, s, alpha=1):
    if not isinstance(dense, Tensor):
        raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
    if dense.shape != s.shape:
        raise RuntimeError(
            f"add: expected sizes of 'self' and 'other' to match, but {list(dense.shape)} != {list(s.shape)}"
        )
    rows, s = _rows_of(dense, s), _coo(s)
    values = s._entries if alpha == 1 else s._entries * alpha
    number, common = _flat(s._places, s.shape), (rows[:0] + values[:0]).dtype
    return rows.to(common).index_add(0, number, values.to(common)).reshape(dense.shape)


def _rows_of(dense: Tensor, s: SparseTensor) -> Tensor:
    """The dense tensor with one dimension in the place of those that are sparse in ``s``."""
    s = _coo(s)
    n = s._places.shape[0]
    return dense.reshape(math.prod(dense.shape[:n]), *dense.shape[n:])


@rule()
def sub(input, other, *, alpha=1):
    return add(input, other, alpha=-alpha)


@rule("add_")
def add_into(input, other, *, alpha=1):
    """In place; into a dense tensor, by its elements."""
    if isinstance(input, SparseTensor):
        if not isinstance(other, SparseTensor):
            raise RuntimeError("add(sparse, dense) is not supported. Use add(dense, sparse) instead.")
        return _replaced(input, add(input, other, alpha=alpha))
    if input.shape != other.shape:
        raise RuntimeError(
            f"add_: expected sizes of 'self' and 'other' to match, but {list(input.shape)} != {list(other.shape)}"
        )
    s = _coo(other)
    values = s._entries if alpha == 1 else s._entries * alpha
    if input.is_contiguous():
        _rows_of(input, s).index_add_(0, _flat(s._places, s.shape), values.to(input.dtype))
        return input
    return input.add_(to_dense(s), alpha=alpha)


@rule("sub_")
def sub_into(input, other, *, alpha=1):
    return add_into(input, other, alpha=-alpha)


def _replaced(s: SparseTensor, by: SparseTensor) -> SparseTensor:
    """``s``, with the parts of another. A leaf keeps its places: those are its gradient's, too."""
    if s.requires_grad and s.is_leaf:
        if is_grad_enabled():
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        if by._places is not s._places:
            raise NotImplementedError("a sparse leaf that requires grad cannot get other places")
        s._entries.copy_(by._entries)
        return s
    s._layout, s._places, s._entries, s._size, s._order = by._layout, by._places, by._entries, by._size, by._order
    s._listed = None
    return s


@rule("zero_")
def zero_into(s):
    return _replaced(s, coo(s._indices()[:, :0], s._entries[:0].detach(), s.shape, True))


@rule("zeros_like")
def zeros_as(s, **options):
    return coo(s._indices()[:, :0], s._entries.detach()[:0].to(options.get("dtype") or s.dtype), s.shape, True)


# Products with numbers, and element by element.


def _is_scalar(x) -> bool:
    return is_number(x) or (isinstance(x, Tensor) and not isinstance(x, SparseTensor) and not x.ndim)


@rule()
def mul(input, other):
    """By a number, or element by element by a dense tensor of the same shape."""
    if not isinstance(input, SparseTensor):
        input, other = other, input
    if _is_scalar(other):
        return like(input, input._entries * other)
    if isinstance(other, SparseTensor):
        return _common_places(input, other)
    if other.shape != input.shape:
        raise NotImplementedError("mul: a sparse and a dense tensor must have the same shape")
    s = _coo(input)
    values = s._entries * _rows_of(other, s).index_select(0, _flat(s._places, s.shape))
    return like(input, values)


def _common_places(a, b):
    """The product of two sparse tensors has values where both have."""
    if a.shape != b.shape:
        raise NotImplementedError("mul: sparse tensors must have the same shape")
    a, b = coalesce(_coo(a)), coalesce(_coo(b))
    ours, theirs = _flat(a._places, a.shape), _flat(b._places, b.shape)
    number, times = cat((ours, theirs)).unique(return_counts=True)
    both_have = number[times == 2]
    x, y = [s._entries.index_select(0, searchsorted(own, both_have)) for s, own in ((a, ours), (b, theirs))]
    return coo(_apart(both_have, a.shape[: a._places.shape[0]]), x * y, a.shape, True)


@rule()
def div(input, other, *, rounding_mode=None):
    if not isinstance(input, SparseTensor) or not _is_scalar(other):
        raise RuntimeError("Sparse division requires a scalar or zero-dim dense tensor divisor")
    return like(input, input._entries.div(other, rounding_mode=rounding_mode))


@rule("mul_")
def mul_into(input, other):
    return _replaced(input, mul(input, other))


@rule("div_")
def div_into(input, other, *, rounding_mode=None):
    return _replaced(input, div(input, other, rounding_mode=rounding_mode))


# Products of matrices.


def _product(s: SparseTensor, dense: Tensor) -> Tensor:
    """A sparse matrix times a dense matrix."""
    if dense.ndim < 2 or (s.ndim < 2 and dense.ndim == 2):
        raise IndexError(f"mm: Dimension out of range: expected matrices, got {s.ndim}D and {dense.ndim}D tensors")
    if s.ndim != 2 or dense.ndim != 2 or s._entries.ndim > 1:
        raise RuntimeError(f"mm: expected matrices, got {s.ndim}D and {dense.ndim}D tensors")
    if s.shape[1] != dense.shape[0]:
        raise RuntimeError(f"mm: Argument #3 (dense): Expected dim 0 size {s.shape[1]}, got {dense.shape[0]}")
    if s.dtype is not dense.dtype:
        raise RuntimeError(f"mm: expected m1 and m2 to have the same dtype, but got: {s.dtype!r} != {dense.dtype!r}")
    rows, cols = s._indices().unbind(0)
    if s.dtype in (float32, float64):
        return _at_places(rows, cols, s._entries, dense, s.shape[0])
    return added_up(rows, s._entries.unsqueeze(1) * dense.index_select(0, cols), s.shape[0])


@primitive(
    name="sparse_product",
    title="SparseAddmmBackward0",
    values=lambda g, rows, cols, dense: _dots(rows, cols, g, dense),
    dense=lambda g, rows, cols, values, dense_shape: _at_places(cols, rows, values, g, dense_shape[0]),
)
def _at_places(rows, cols, values, dense, n):
    """A sparse matrix of n rows times a dense one."""
    return owned.tt_sparse_product(rows._h, cols._h, values._h, dense._h, n)


@primitive(
    name="sparse_dots",
    a=lambda g, rows, cols, a_shape, b: _at_places(rows, cols, g, b, a_shape[0]),
    b=lambda g, rows, cols, a, b_shape: _at_places(cols, rows, g, a, b_shape[0]),
)
def _dots(rows, cols, a, b):
    """The values of a @ b.T in these places."""
    return owned.tt_sparse_dots(rows._h, cols._h, a._h, b._h)


@rule()
def mm(input, mat2):
    """A dense matrix; of two sparse ones, a sparse matrix."""
    if not isinstance(input, SparseTensor):
        return _product(transpose(_coo(mat2), 0, 1), input.t()).t()
    if isinstance(mat2, SparseTensor):
        product = _sparse_product(input, mat2)
        return to_sparse_csr(product) if sparse_coo not in (input._layout, mat2._layout) else product
    return _product(input, mat2)


def _row_numbers(starts: Tensor, rows: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers starts[r] to starts[r + 1] of each r in ``rows``, one after the other; and of each, which of ``rows``
    it belongs to."""
    counts = starts.diff().index_select(0, rows)
    which = arange(rows.shape[0], device=rows.device).repeat_interleave(counts)
    within = arange(which.shape[0], device=rows.device) - (counts.cumsum(0) - counts).index_select(0, which)
    return starts.index_select(0, rows).index_select(0, which) + within, which


def _sparse_product(a: SparseTensor, b: SparseTensor) -> SparseTensor:
    """For each value of ``a``, its products with the row of ``b`` that its column names; those of one place add up in
    this order."""
    if a.ndim != 2 or b.ndim != 2 or a._entries.ndim > 1 or b._entries.ndim > 1:
        raise RuntimeError(f"mm: expected matrices without dense dimensions, got {a.ndim}D and {b.ndim}D tensors")
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(f"mm: mat1 and mat2 shapes cannot be multiplied ({tuple(a.shape)} and {tuple(b.shape)})")
    if a.dtype is not b.dtype:
        raise RuntimeError(f"mm: expected both of one dtype, but got {a.dtype!r} and {b.dtype!r}")
    a, b = _coo(a), coalesce(_coo(b))
    ends = b._places[0].bincount(minlength=b.shape[0]).cumsum(0)
    of_b, of_a = _row_numbers(cat((ends.new_zeros(1), ends)), a._places[1])
    values = a._entries.index_select(0, of_a) * b._entries.index_select(0, of_b)
    number = a._places[0].index_select(0, of_a) * b.shape[1] + b._places[1].index_select(0, of_b)
    number, where = number.unique(return_inverse=True)
    size = (a.shape[0], b.shape[1])
    return coo(_apart(number, size), added_up(where, values, number.shape[0]), size, True)


@rule()
def mv(input, vec):
    if isinstance(input, SparseTensor) and isinstance(vec, SparseTensor):
        raise NotImplementedError("mv: a sparse matrix times a sparse vector is not implemented for sparse tensors")
    if input.ndim != 2 or vec.ndim != 1 or input.shape[1] != vec.shape[0]:
        raise RuntimeError(f"mv: shapes cannot be multiplied ({tuple(input.shape)} and {tuple(vec.shape)})")
    column = RULES["unsqueeze"](vec, 1) if isinstance(vec, SparseTensor) else vec.unsqueeze(1)
    return mm(input, column).squeeze(1)


@rule()
def matmul(input, other):
    if input.ndim != 1 and other.ndim != 1:
        return mm(input, other)
    if input.ndim == other.ndim:
        raise NotImplementedError("matmul: the product of two vectors is not implemented for sparse tensors")
    if other.ndim == 1:
        return mv(input, other)
    return mv(transpose(_coo(other), 0, 1) if isinstance(other, SparseTensor) else other.mT, input)


@rule()
def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    if isinstance(input, SparseTensor):
        raise NotImplementedError("addmm: not implemented for a sparse matrix as the first argument")
    input = input.expand(mat1.size(0), mat2.size(1))
    if mat1.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError(f"addmm: expected matrices, got {mat1.ndim}D and {mat2.ndim}D tensors")
    product = mm(mat1, mat2)
    product = product if alpha == 1 else product * alpha
    return product + (input if beta == 1 else input * beta)


@both
def smm(input, mat2):
    """A sparse matrix times a dense one, as a sparse tensor of all elements. Follows ``torch.smm``.

    Args:
        mat2: a dense matrix
    Returns:
        A sparse tensor.
    Raises:
        RuntimeError: ``input`` is not sparse
    """
    if not isinstance(input, SparseTensor):
        raise RuntimeError("smm: expected a sparse tensor as the first argument")
    product = _product(input, mat2)
    n = product.numel()
    every = _apart(product.new_ones(n, dtype=bool).nonzero().squeeze(1), product.shape)
    return coo(every, product.reshape(n), product.shape)


@function
def spmm(input, mat2):
    """The product of a sparse matrix and a dense one. Follows ``torch.spmm``.

    Args:
        mat2: a dense matrix
    Returns:
        A dense matrix.
    """
    return mm(input, mat2) if isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor) else input.mm(mat2)


RULES["smm"], RULES["spmm"] = smm, spmm


def _reflected(fn):
    return lambda s, other: fn(other, s)


# Python's operators.
RULES |= {
    "__add__": add, "__radd__": _reflected(add), "__iadd__": add_into, "__sub__": sub, "__rsub__": _reflected(sub),
    "__isub__": sub_into, "__mul__": mul, "__rmul__": mul, "__imul__": mul_into, "__truediv__": div,
    "__itruediv__": div_into, "__matmul__": matmul, "__rmatmul__": _reflected(matmul), "__neg__": RULES["neg"],
}  # fmt: skip


# Reductions.


@rule("sum")
def sum_of(input, dim=None, keepdim=False, *, dtype=None):
    """Of all elements, or along dimensions: sparse while a sparse dimension is left."""
    if keepdim:
        raise NotImplementedError("sum: keepdim is not implemented for sparse tensors")
    values = input._entries if dtype is None else input._entries.to(dtype)
    dims = () if dim is None else (dim,) if hasattr(dim, "__index__") else tuple(dim)
    if not dims:
        return values.sum()
    dims = {dim_of(d, input.ndim) for d in dims}
    s = _coo(input)
    n = s._places.shape[0]
    dense = [d - n + 1 for d in dims if d >= n]
    values = values.sum(dense) if dense else values
    kept = [d for d in range(n) if d not in dims]
    if not kept:
        return values.sum(0)
    size = [k for d, k in enumerate(s.shape) if d not in dims]
    return coalesce(coo(s._places[kept], values, size, s._order and len(kept) == n))


def soft(input, dim, dtype, log: bool):
    """softmax, or its logarithm, of the elements that there are."""
    dim = dim_of(dim, input.ndim)
    s = coalesce(_coo(input))
    values, n = s._entries if dtype is None else s._entries.to(dtype), s._places.shape[0]
    if dim >= n:
        soft = values.log_softmax(dim - n + 1) if log else values.softmax(dim - n + 1)
        return like(s, soft)
    others = [d for d in range(n) if d != dim]
    number, group = _flat(s._places[others], [s.shape[d] for d in others]).unique(return_inverse=True)
    count = number.shape[0]
    largest = values.new_zeros((count, *values.shape[1:]), dtype=values.dtype).detach()
    largest = largest.index_reduce(0, group, values.detach(), "amax", include_self=False)
    shifted = values - largest.index_select(0, group)
    sums = added_up(group, shifted.exp(), count)
    if log:
        return like(s, shifted - sums.log().index_select(0, group))
    return like(s, shifted.exp() / sums.index_select(0, group))
