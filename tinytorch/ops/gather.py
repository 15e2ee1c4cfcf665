"""Reading and writing by a vector of indices along a dimension, by row-major numbers, and by a mask; embedding.

All of them are subscripts in another guise: ``reader`` and ``putter`` of index.py.
"""

from __future__ import annotations

import operator

from ..autograd.views import FLAG_VIEW, refresh
from ..backends.cpu import error, lib
from ..dtypes import ALL
from ..tensor import Tensor, attempted, owned
from .fitting import check_fits, fitted
from .declare import both, flags_only, function, number, primitive, refuse, scalar_kind, write_out
from .index import ADD, FLAT, INDEX, KEEP, REPLACE, SELF, STRICT, adder, putter, reader
from .shape import broadcast_shapes


def name_of(t: Tensor) -> str:
    """A dtype as PyTorch's messages name it: ``Float``."""
    return t.dtype.scalar_type


def _along(dim: int):
    """The code of an index tensor along a dimension."""
    return (KEEP, dim, 0, 0, INDEX, 1, 0, 0)


def _flat(input) -> tuple:
    """The code of an index tensor into all elements."""
    return (INDEX, input._h.ndim, 0, 0)


def need_index(op: str, index, wanted=(lib.TT_I32, lib.TT_I64), vector: bool = False) -> None:
    """Refuses what is no tensor of indices, or no ``vector`` of them."""
    if not isinstance(index, Tensor):
        raise TypeError(f"{op}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if vector and index._h.ndim > 1:
        raise (RuntimeError if op == "index_fill_" and index._h.dtype in wanted else IndexError)(
            f"{op}(): Index is supposed to be a vector, got shape {tuple(index.shape)}"
        )
    if index._h.dtype not in wanted:
        names = "/".join(ALL[w].name for w in wanted)
        raise (IndexError if op == "index_fill_" else RuntimeError)(
            f"{op}(): Expected dtype {names} for index but got: {name_of(index)}"
        )


def _need_same(op: str, self, source, what="source") -> None:
    if self._h.dtype != source._h.dtype:
        raise RuntimeError(
            f"{op}(): self ({name_of(self)}) and {what} ({name_of(source)}) must have the same scalar "
            f"type: Expected self.dtype to be equal to {what}.dtype"
        )


# Along one dimension, by a vector.


@both
def index_select(input, dim, index, *, out=None):
    """The entries along ``dim`` that the int vector ``index`` names. IndexError out of range; negative indices are
    refused. Follows ``torch.index_select``.

    Args:
        index: a vector of int32 or int64 indices
    Returns:
        A tensor with an entry for each index along ``dim``.
    Raises:
        IndexError: an index is out of range
        RuntimeError: ``index`` has another dtype
    """
    try:
        need_index("index_select", index, vector=True)
        dim = input._dim(dim)
        if input._h.ndim > 1 and not input._h.shape[dim] and index._h.numel:
            raise RuntimeError("index_select(): self indexing axis dim should be positive")
        if input._h.ndim == 0:
            if index._h.numel != 1:
                raise RuntimeError(
                    f"index_select(): Index to scalar can have only 1 value, got {index._h.numel} value(s)"
                )
            result = reader("index_select", 1, SELF)(input, _flat(input), index.reshape(()))
        else:
            result = reader("index_select", 1, SELF)(input, _along(dim), index if index._h.ndim else index.reshape(1))
        return write_out("index_select", result, out, True)
    except Exception as exc:
        refuse(exc)
        raise


def along_vector(op: str, input, dim: int, index, source):
    """Checks of index_add, index_reduce and index_copy; the dimension and a vector of indices."""
    for name, t in (("index", index), ("source", source)):
        if not isinstance(t, Tensor):
            raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(t).__name__}")
    h, i = input._h, index._h
    if type(dim) is int and 0 <= dim < h.ndim and i.ndim == 1 and i.dtype == lib.TT_I64 and source.dtype is input.dtype:
        have, want = list(source.shape), list(input.shape)  # the commonest case, of which nothing has to be said
        if len(have) == len(want) and have[dim] == i.numel:
            have[dim] = want[dim]
            if have == want:
                return _along(dim), index, source
    copies = op.startswith("index_copy")
    have, want = list(source.shape) or [1], list(input.shape) or [1]
    if not copies or index._h.ndim > 1:
        need_index(op, index, vector=True)
        _need_same(op, input, source)
    if not source._h.ndim and index._h.numel != 1:
        raise (IndexError if copies or not input._dim(dim) else RuntimeError)(
            f"{op}(): When source is scalar, index should have one element (got {index._h.numel})"
        )
    if copies:
        if source._h.ndim and input._h.ndim and len(have) != len(want):
            raise IndexError(f"{op}(): source has {len(have)} dimensions, self {len(want)}; they must have as many")
        need_index(op, index, (lib.TT_I64,))
    _need_same(op, input, source)
    dim = input._dim(dim)
    if len(have) != len(want):
        raise RuntimeError(f"{op}(): source has {len(have)} dimensions, self {len(want)}; they must have as many")
    if have[:dim] + have[dim + 1 :] != want[:dim] + want[dim + 1 :]:
        raise RuntimeError(
            f"{op}(): source tensor shape must match self tensor shape, excluding the specified "
            f"dimension. Got self.shape = {want} source.shape = {have}"
        )
    if index._h.numel != have[dim]:
        raise (IndexError if copies else RuntimeError)(
            f"{op}(): Number of indices ({index._h.numel}) should be equal to source.size(dim): ({have[dim]}), "
            f"for dim: {dim}"
        )
    if input._h.ndim == 0:
        return _flat(input), index.reshape(-1), source.reshape(-1)
    return _along(dim), index if index._h.ndim else index.reshape(1), source


def _add_arguments(op, input, dim, index, source, alpha):
    code, index, source = along_vector(op, input, dim, index, source)
    return code, source if alpha == 1 else source * fitted(alpha, input._h.dtype), ADD, index


def _add(which: int, op: str, input, dim, index, source, alpha):
    args = _add_arguments(op, input, dim, index, source, alpha)
    try:
        return putter("index_add", 1, SELF)[which](input, *args)
    except IndexError as exc:
        if input._h.ndim > 1 and index._h.dtype == lib.TT_I64 and alpha == 1:  # PyTorch scatters these, which checks
            raise RuntimeError(str(exc)) from None
        raise


@both
def index_add(input, dim, index, source, *, alpha=1, out=None):
    """``input`` with the entries of ``alpha * source`` along ``dim`` added where the vector ``index`` says; repeated
    indices add up, in order. Follows ``torch.index_add``.

    Args:
        index: a vector of int32 or int64 indices
        source: a tensor of the dtype of ``input``, with an entry for each index along ``dim``
        alpha: a number that multiplies ``source``
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        IndexError: an index is out of range
        RuntimeError: shapes or dtypes do not match
    """
    return write_out("index_add", _add(0, "index_add", input, dim, index, source, alpha), out, True)


@both
def index_add_(input, dim, index, source, *, alpha=1):
    """``index_add`` in place."""
    return _add(1, "index_add_", input, dim, index, source, alpha)


def _copy_arguments(op, input, dim, index, source):
    code, index, source = along_vector(op, input, dim, index, source)
    return code, source, REPLACE, index


@both
def index_copy(input, dim, index, source, *, out=None):
    """``input`` with the entries of ``source`` along ``dim`` where the vector ``index`` says. Otherwise like
    ``index_add``.

    Args:
        index: a vector of int64 indices
    """
    args = _copy_arguments("index_copy", input, dim, index, source)
    return write_out("index_copy", putter("index_copy", 1, STRICT)[0](input, *args), out, True)


@both
def index_copy_(input, dim, index, source):
    """``index_copy`` in place."""
    return putter("index_copy", 1, STRICT)[1](input, *_copy_arguments("index_copy_", input, dim, index, source))


def _fill_arguments(op, input, dim, index, value):
    need_index(op, index, (lib.TT_I64,), vector=True)
    if isinstance(value, Tensor):
        if value._h.ndim:
            raise RuntimeError(
                f"{op} only supports a 0-dimensional value tensor, but got tensor with {value._h.ndim} dimension(s)."
            )
    else:
        kind = scalar_kind(value)
        if kind == lib.TT_KIND_COMPLEX and not input.is_complex():
            raise RuntimeError(f"{op}: Converting complex Scalar to non-complex type is not supported")
        check_fits(input._h.dtype, kind, value)
        value = number(value)
    dim = input._dim(dim)
    code = _along(dim) if input._h.ndim else _flat(input)
    return code, value, REPLACE, index if index._h.ndim else index.reshape(1)


@both
def index_fill(input, dim, index, value):
    """``input`` with ``value`` (a number or 0-d tensor) in the entries along ``dim`` that ``index`` names.

    Args:
        index: a vector of int64 indices
        value: a number, or a 0-d tensor
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        IndexError: an index is out of range
    """
    return putter("index_fill")[0](input, *_fill_arguments("index_fill_", input, dim, index, value))


@both
def index_fill_(input, dim, index, value):
    """``index_fill`` in place."""
    return putter("index_fill")[1](input, *_fill_arguments("index_fill_", input, dim, index, value))


# In all elements, by their number.


@both
def take(input, index, *, out=None):
    """The elements of ``input`` numbered row-major, at the numbers ``index``, in index's shape.

    Args:
        index: an int64 tensor of numbers of elements, in row-major order
    Returns:
        A tensor of the shape of ``index``.
    Raises:
        IndexError: an index is out of range
    """
    _need_long("take", index)
    return write_out("take", reader("take", 1, FLAT)(input, _flat(input), index), out, True)


def _need_long(op, index):
    if index._h.dtype != lib.TT_I64:
        raise RuntimeError(f"{op}(): Expected a long tensor for index, but got {name_of(index)}")


def _put_all(op, input, index, source, accumulate):
    flags_only(op, accumulate=accumulate)
    _need_long(op, index)
    if input._h.dtype != source._h.dtype:
        raise RuntimeError(
            f"{op}(): self and source expected to have the same dtype, but got self.dtype = "
            f"{name_of(input)} and source.dtype = {name_of(source)}"
        )
    if index._h.numel != source._h.numel:
        raise IndexError(
            f"{op}(): Expected source and index to have the same number of elements, but got "
            f"source.numel() = {source._h.numel}, index.numel() = {index._h.numel}"
        )
    return _flat(input), source.reshape(index.shape), ADD if accumulate else REPLACE, index


@both
def put(input, index, source, accumulate=False):
    """``input`` with the elements of ``source`` at the row-major numbers ``index``; or added there."""
    return putter("put", 1, FLAT)[0](input, *_put_all("put", input, index, source, accumulate))


@both
def put_(input, index, source, accumulate=False):
    """``put`` in place."""
    return putter("put", 1, FLAT)[1](input, *_put_all("put_", input, index, source, accumulate))


# By a mask.


@both
def nonzero(input, *, out=None, as_tuple=False):
    """The indices of the elements that are not zero: an int64 tensor (count, ndim), or with ``as_tuple`` one vector
    for each dimension. Follows ``torch.nonzero``.

    Args:
        as_tuple: whether to give a tuple of vectors, one for each dimension, as indices are
    Returns:
        An int64 matrix with a row of indices for each element, or the tuple.
    """
    if input._h.flags & FLAG_VIEW:
        refresh(input)
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        if input._h.ndim == 0:
            return (owned.tt_nonzero(input._h, True),)
        return tuple(owned.tt_nonzero(input._h, False).unbind(1))
    return write_out("nonzero", owned.tt_nonzero(input._h, False), out, True)


@both
def nonzero_static(input, *, size, fill_value=-1, out=None):
    """``nonzero`` with a number of rows that is known: the first ``size`` of them, or as many more filled with
    ``fill_value``. Follows ``torch.nonzero_static``.

    Args:
        size: how many rows
        fill_value: what the rows are filled with for which there is no element
    Returns:
        An int64 matrix (size, ndim).
    Raises:
        RuntimeError: ``size`` is negative
    """
    size = operator.index(size)
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be a non-negative integer, got {size}")
    rows = nonzero(input)
    result = rows.new_full((size, rows.shape[1]), fill_value)
    n = min(size, rows.shape[0])
    result[:n] = rows[:n]
    return write_out("nonzero_static", result, out, True)


@function
def unravel_index(indices, shape):
    """The indices, one tensor for each dimension of ``shape``, of the elements that are numbered ``indices`` in
    row-major order. Follows ``torch.unravel_index``.

    Args:
        indices: an integer tensor
        shape: the sizes, or one size
    Returns:
        A tuple of tensors of the shape of ``indices``.
    Raises:
        TypeError: ``indices`` is not of integers
        ValueError: a size is negative
    """
    if not isinstance(indices, Tensor) or indices.dtype.kind != lib.TT_KIND_INT:
        given = indices.dtype if isinstance(indices, Tensor) else type(indices).__name__
        raise TypeError(f"unravel_index(): expected 'indices' to be integer dtype, but got {given}")
    shape = (shape,) if isinstance(shape, int) else shape
    if not isinstance(shape, (tuple, list)) or not all(isinstance(n, int) for n in shape):
        raise TypeError(f"unravel_index(): expected 'shape' to be int or sequence of ints, but got {shape!r}")
    if any(n < 0 for n in shape):
        raise ValueError(f"unravel_index(): 'shape' cannot have negative values, but got {shape}")
    found, indices = [], indices.long()
    for n in reversed(shape):
        found.append(indices % n)
        indices = indices.div(n, rounding_mode="floor")
    return tuple(reversed(found))


@both
def argwhere(input):
    """``nonzero(input)``.

    Returns:
        An int64 matrix with a row of indices for each element.
    """
    return nonzero(input)


@both
def masked_select(input, mask, *, out=None):
    """The elements where the bool tensor ``mask`` holds, as a vector; both broadcast. Follows
    ``torch.masked_select``.

    Args:
        mask: a bool tensor, broadcast with ``input``
    Returns:
        A vector, in row-major order; a copy.
    Raises:
        RuntimeError: ``mask`` is not bool, or the shapes do not broadcast
    """
    if not isinstance(mask, Tensor) or mask._h.dtype != lib.TT_BOOL:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {getattr(mask, 'dtype', type(mask))}")
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    input = input if input.shape == shape else input.expand(shape)
    return write_out("masked_select", reader("masked_select")(input, _flat(input), _positions(mask, shape)), out, True)


def _positions(mask, shape) -> Tensor:
    """The row-major numbers of the elements where a mask, broadcast to ``shape``, holds."""
    mask = mask if mask.shape == shape else mask.expand(shape)
    if mask._h.flags & FLAG_VIEW:
        refresh(mask)
    return owned.tt_nonzero(mask._h, True)


def _masked_arguments(op, input, mask, source):
    if mask._h.dtype != lib.TT_BOOL:
        raise RuntimeError(f"{op} only supports boolean masks, but got mask with dtype {name_of(mask)}")
    if input._h.dtype != source._h.dtype:
        raise RuntimeError(
            f"{op}: expected self and source to have same dtypes but got {name_of(input)} and {name_of(source)}"
        )
    places = _positions(mask, input.shape)
    n = places._h.numel
    if source._h.numel < n:
        raise RuntimeError(f"{op}: Number of elements of source < number of ones in mask ({source._h.numel} < {n})")
    source = source.reshape(-1)
    return _flat(input), source if source._h.numel == n else source[:n], REPLACE, places


@both
def masked_scatter(input, mask, source):
    """``input`` with the first elements of ``source``, one after the other, where ``mask`` holds."""
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    input = input if input.shape == shape else input.expand(shape)
    return putter("masked_scatter")[0](input, *_masked_arguments("masked_scatter", input, mask, source))


@both
def masked_scatter_(input, mask, source):
    """``masked_scatter`` in place; the mask broadcasts to ``input``."""
    return putter("masked_scatter")[1](input, *_masked_arguments("masked_scatter_", input, mask, source))


# Embedding.


def _embedding_backward(g, shape, indices, padding_idx, by_freq):
    if padding_idx is not None:
        g = g.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    if by_freq:
        g = g / indices.reshape(-1).bincount(minlength=shape[0])[indices].unsqueeze(-1)
    return adder(1)(g, shape, (INDEX, 1, 0, 0), indices)


@primitive(
    weight=lambda g, weight_shape, indices, padding_idx, by_freq: _embedding_backward(
        g, weight_shape, indices, padding_idx, by_freq
    )
)
def _embedding(weight, indices, padding_idx, by_freq):
    out = attempted.tt_index_get(weight._h, 1, (INDEX, 1, 0, 0), [indices._h], SELF)
    if out is None:
        raise error("embedding()")
    return out


@function
def embedding(weight, indices, padding_idx=None, scale_grad_by_freq=False):
    """The rows of the matrix ``weight`` that the int tensor ``indices`` names: its shape, and one dimension more. The
    row ``padding_idx`` gets no gradient; with ``scale_grad_by_freq`` each row's is divided by how often it occurs.
    IndexError out of range. Follows ``torch.embedding``."""
    try:
        if not isinstance(indices, Tensor):
            raise TypeError(f"embedding(): argument 'indices' must be Tensor, not {type(indices).__name__}")
        if weight._h.ndim != 2:
            if weight.requires_grad:
                weight.size(0)  # what the derivative needs comes first
            raise RuntimeError(f"embedding(): 'weight' must be 2-D, got shape {tuple(weight.shape)}")
        if indices._h.dtype not in (lib.TT_I32, lib.TT_I64):
            given = f"{name_of(indices)}Tensor"
            raise RuntimeError(
                "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
                f"Int; but got {given} instead (while checking arguments for embedding)"
            )
        if padding_idx is not None and padding_idx < 0:
            padding_idx = None if padding_idx == -1 else padding_idx + weight._h.shape[0]
        return _embedding(weight, indices, padding_idx, scale_grad_by_freq)
    except Exception as exc:
        refuse(exc)
        raise
