"""Sparse tensors: parts of them, several as one, and functions of each value that leave 0 as it is. Note [Sparse
tensors] in ops/sparse.py."""

from __future__ import annotations

import operator

from ..dtypes import int64
from ..layouts import sparse_coo
from ..tensor import FUNCTIONS, Tensor
from .declare import function, method
from .join import cat
from .ranges import arange
from .sparse import RULES, SparseTensor, _coo, _flat, coalesce, coo, dim_of, like, rule, sparse_coo_tensor
from .sparse_convert import to_dense, to_sparse
from .sparse_math import _dots, _row_numbers


# Several as one.


@rule("cat")
def cat_of(tensors, dim=0):
    """Along a sparse dimension places move on, along a dense one each has values of 0 where the others' are."""
    dim = dim_of(dim, tensors[0].ndim)
    dense = [k for k, s in enumerate(tensors) if not isinstance(s, SparseTensor)]
    if dense:
        raise RuntimeError(f"cat: concatenating sparse tensors, but a dense tensor was found at position {dense}")
    parts = [_coo(s) for s in tensors]
    first = parts[0]
    n = first._places.shape[0]
    for s in parts:
        if s._places.shape[0] != n or any(a != b for d, (a, b) in enumerate(zip(s.shape, first.shape)) if d != dim):
            raise RuntimeError(f"cat: sizes of tensors must match except in dimension {dim}: {s.shape}, {first.shape}")
    size = list(first.shape)
    size[dim] = sum(s.shape[dim] for s in parts)
    places, values, before = [], [], 0
    for s in parts:
        own, entries = s._places, s._entries
        if dim < n:
            own = own.clone()
            own[dim] += before
        else:
            shape = list(entries.shape)
            ends = []
            for width in (before, size[dim] - before - s.shape[dim]):
                shape[dim - n + 1] = width
                ends.append(entries.new_zeros(shape))
            entries = cat((ends[0], entries, ends[1]), dim - n + 1)
        places.append(own)
        values.append(entries)
        before += s.shape[dim]
    return coo(cat(places, 1), cat(values), size)


@rule("stack")
def stack_of(tensors, dim=0):
    return cat_of([unsqueeze(s, dim) for s in tensors], dim)


# Dimensions.


@rule()
def unsqueeze(input, dim):
    s = _coo(input)
    n, dim = s._places.shape[0], dim_of(dim, s.ndim + 1)
    size = [*s.shape[:dim], 1, *s.shape[dim:]]
    if dim > n:
        return coo(s._places, s._entries.unsqueeze(dim - n + 1), size)
    row = s._places.new_zeros((1, s._nnz()))
    return coo(cat((s._places[:dim], row, s._places[dim:])), s._entries, size)


@rule()
def permute(input, *dims):
    """Sparse dimensions among themselves, and dense ones."""
    dims = dims[0] if len(dims) == 1 and not hasattr(dims[0], "__index__") else dims
    s = _coo(input)
    n, dims = s._places.shape[0], [dim_of(d, s.ndim) for d in dims] if len(dims) == s.ndim else list(dims)
    if len(dims) != s.ndim or sorted(dims) != list(range(s.ndim)):
        raise RuntimeError(
            f"permute(sparse_coo): dims {dims} are not those of a tensor of {s.ndim} dimensions, each once"
        )
    if sorted(dims[:n]) != list(range(n)):
        raise RuntimeError("permute(sparse_coo): transitions between sparse and dense dimensions are not allowed")
    values = s._entries.permute(0, *[d - n + 1 for d in dims[n:]])
    return coo(s._places[dims[:n]], values, [s.shape[d] for d in dims])


# Parts.


@rule()
def index_select(input, dim, index):
    s = _coo(input)
    n, dim = s._places.shape[0], dim_of(dim, s.ndim)
    size = [*s.shape[:dim], index.shape[0], *s.shape[dim + 1 :]]
    if dim >= n:
        return coo(s._places, s._entries.index_select(dim - n + 1, index), size)
    index = index.to(int64)
    if index.numel() and not -1 < int(index.amin()) <= int(index.amax()) < s.shape[dim]:
        raise IndexError(f"index_select(): index out of range for dimension {dim} of size {s.shape[dim]}")
    order = s._places[dim].argsort(stable=True)  # the values of one place of the dimension stand together
    ends = s._places[dim].bincount(minlength=s.shape[dim]).cumsum(0)
    taken, which = _row_numbers(cat((ends.new_zeros(1), ends)), index)
    taken = order.index_select(0, taken)
    places = s._places.index_select(1, taken)
    places[dim] = which
    return coo(places, s._entries.index_select(0, taken), size)


@rule()
def select(input, dim, index):
    s, index = _coo(input), operator.index(index)
    n, dim = s._places.shape[0], dim_of(dim, s.ndim)
    size = [*s.shape[:dim], *s.shape[dim + 1 :]]
    if not -s.shape[dim] <= index < s.shape[dim]:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(s.shape)} at dimension {dim}")
    if dim >= n:
        return coo(s._places, s._entries.select(dim - n + 1, index), size)
    here = (s._places[dim] == index % s.shape[dim]).nonzero().squeeze(1)
    values = s._entries.index_select(0, here)
    if n == 1:
        return values.sum(0)
    places = s._places.index_select(1, here)
    return coo(cat((places[:dim], places[dim + 1 :])), values, size, input._layout is not sparse_coo)


@rule("__getitem__")
def item_of(input, key):
    """By whole numbers: one dimension after the other."""
    keys = key if isinstance(key, tuple) else (key,)
    if not all(hasattr(type(k), "__index__") and not isinstance(k, (bool, Tensor)) for k in keys):
        raise NotImplementedError("__getitem__: of sparse tensors, by whole numbers alone")
    for k in keys:
        input = select(input, 0, k) if isinstance(input, SparseTensor) else input[k]
    return input


@method
def sparse_mask(self, mask):
    """The elements in the places of a sparse tensor. Follows ``torch.Tensor.sparse_mask``.

    Args:
        mask: a sparse tensor of the same shape
    Returns:
        A sparse tensor with the places of ``mask``.
    Raises:
        RuntimeError: ``mask`` has another shape
        NotImplementedError: ``mask`` is not sparse
    """
    if not isinstance(mask, SparseTensor):
        raise NotImplementedError("sparse_mask: mask must be sparse")
    if mask.shape != self.shape:
        raise RuntimeError(f"sparse_mask(): operands have incompatible sizes {self.shape} and {mask.shape}")
    s = _coo(mask)
    n = s._places.shape[0]
    dense = to_dense(self)
    rows = dense.reshape(-1, *dense.shape[n:])
    return like(mask, rows.index_select(0, _flat(s._places, s.shape)))


RULES["sparse_mask"] = sparse_mask


@method
def to_sparse_coo(self):
    """The elements that are not 0, and their places. Follows ``torch.Tensor.to_sparse_coo``."""
    return to_sparse(self)


RULES["to_sparse_coo"] = to_sparse_coo


# Functions of each value.


def _of_values(name: str):
    def apply(s, *args, **kwargs):
        s = coalesce(s) if s._layout is sparse_coo else s
        return like(s, getattr(s._entries, name)(*args, **kwargs))

    RULES[name] = apply


for _name in (
    "abs", "absolute", "asin", "arcsin", "asinh", "arcsinh", "atan", "arctan", "atanh", "arctanh", "ceil", "deg2rad",
    "erf", "erfinv", "expm1", "floor", "frac", "isinf", "isnan", "isneginf", "isposinf", "log1p", "nan_to_num",
    "positive", "pow", "rad2deg", "relu", "round", "sgn", "sign", "signbit", "sin", "sinh", "sqrt", "square", "tan",
    "tanh", "trunc", "__pow__",
):  # fmt: skip
    _of_values(_name)
for _name in ("int", "long", "short", "char", "byte", "bool", "cfloat", "cdouble"):
    RULES[_name] = lambda s, name=_name: like(s, getattr(s._entries, name)())


@rule("norm")
def norm_of(input, p="fro", dim=None, keepdim=False, out=None, dtype=None):
    """Of all elements."""
    if dim is not None or keepdim or out is not None:
        raise NotImplementedError("norm: of all elements of a sparse tensor alone")
    s = coalesce(input) if input._layout is sparse_coo else input
    return s._entries.norm(p, dtype=dtype)


RULES["type"] = lambda s, dtype=None: like(s, s._entries.type(dtype)) if dtype is not None else s._entries.type()
RULES["empty_like"] = lambda s, **options: RULES["zeros_like"](s, **options)
RULES["is_same_size"] = lambda s, other: s.shape == other.shape


# Products of matrices.


@rule()
def bmm(input, mat2):
    """A stack of sparse matrices times dense ones: one product of the matrix with these blocks along its diagonal."""
    if not isinstance(input, SparseTensor) or isinstance(mat2, SparseTensor):
        raise NotImplementedError("bmm: implemented for sparse matrices times dense ones")
    s = _coo(input)
    if s.ndim != 3 or s._entries.ndim > 1 or mat2.ndim != 3 or (s.shape[0], s.shape[2]) != tuple(mat2.shape[:2]):
        raise RuntimeError(f"bmm: shapes cannot be multiplied ({tuple(s.shape)} and {tuple(mat2.shape)})")
    stack, n, m = s.shape
    which, row, col = s._places.unbind(0)
    s = coo(FUNCTIONS["stack"]((which * n + row, which * m + col)), s._entries, (stack * n, stack * m))
    return RULES["mm"](s, mat2.reshape(stack * m, -1)).reshape(stack, n, -1)


@function(namespace="sparse")
def sampled_addmm(input, mat1, mat2, *, beta=1.0, alpha=1.0, out=None):
    """beta ``input`` + alpha ``mat1`` @ ``mat2`` in the places of the sparse ``input`` alone. Follows
    ``torch.sparse.sampled_addmm``.

    Args:
        input: a ``sparse_csr`` matrix (n, m)
        mat1: a dense matrix (n, k)
        mat2: a dense matrix (k, m)
        beta: a number that multiplies ``input``
        alpha: a number that multiplies the product
    Returns:
        A matrix with the places of ``input``.
    Raises:
        RuntimeError: the shapes do not fit
        NotImplementedError: ``input`` is not of the layout ``sparse_csr``
    """
    if not isinstance(input, SparseTensor) or input._layout is sparse_coo:
        raise NotImplementedError("sampled_addmm: implemented for a sparse_csr matrix as the first argument")
    if (*mat1.shape[:1], *mat2.shape[1:]) != tuple(input.shape) or mat1.shape[1:] != mat2.shape[:1]:
        raise RuntimeError(f"sampled_addmm: shapes do not fit: {input.shape}, {mat1.shape} and {mat2.shape}")
    rows, cols = input._indices().unbind(0)
    return like(input, input._entries * beta + _dots(rows, cols, mat1, mat2.t()) * alpha)


@function(namespace="sparse")
def spdiags(diagonals: Tensor, offsets: Tensor, shape: tuple[int, int], layout=None):
    """A sparse matrix of diagonals: ``diagonals[k, j]`` stands in column j. Follows ``torch.sparse.spdiags``.

    Args:
        diagonals: a matrix of a row for each diagonal, or a vector
        offsets: which diagonals: 0 is the main one, those above are positive; each once
        shape: the size of the matrix
        layout: ``sparse_coo`` (None) or ``sparse_csr``
    Returns:
        A sparse matrix.
    Raises:
        RuntimeError: not as many offsets as rows, or one twice
    """
    diagonals, offsets = diagonals.reshape(-1, diagonals.shape[-1]), offsets.reshape(-1)
    if offsets.shape[0] != diagonals.shape[0]:
        raise RuntimeError("spdiags(): number of diagonals does not match the number of offsets")
    if offsets.unique().shape[0] != offsets.shape[0]:
        raise RuntimeError("spdiags(): offset tensor contains duplicate values")
    cols = arange(diagonals.shape[1], device=diagonals.device).expand(diagonals.shape)
    rows = cols - offsets.unsqueeze(1)
    inside = ((rows >= 0) & (rows < shape[0]) & (cols < shape[1])).nonzero(as_tuple=True)
    made = sparse_coo_tensor(FUNCTIONS["stack"]((rows[inside], cols[inside])), diagonals[inside], shape)
    return made if layout is None else to_sparse(made, layout=layout)
