"""Elements put in other places: flip, roll, triangles and diagonals, repetition; a part of a tensor replaced."""

from __future__ import annotations

import operator
from inspect import Parameter

from ..autograd.views import FLAG_VIEW, refresh
from ..backends.cpu import check, lib
from ..dtypes import bool as _bool
from ..layouts import contiguous_format
from ..tensor import Tensor, owned
from .create import tensor
from .declare import both, function, ints, method, primitive, shown, update, write_out
from .index import AT, INDEX, KEEP, LEFT_OUT, SLICE, reader, view_scatter
from .join import cat
from .shape import contiguous_strides, distinct

# Order along dimensions.


@primitive(input=lambda g, dims: _flip(g, dims))
def _flip(input, dims):
    return owned.tt_flip(input._h, len(dims), dims)


@function
def flip(input, dims):
    """A copy with the order along ``dims`` reversed. Follows ``torch.flip``.

    Args:
        dims: a tuple of dimensions
    Returns:
        A copy.
    Raises:
        RuntimeError: a dimension is named twice
        TypeError: ``dims`` is a number
    """
    return _flip(input, distinct("flip", input, ints(tuple(dims))))


@both
def fliplr(input):
    """``flip`` of dimension 1. RuntimeError below two dimensions."""
    if input._h.ndim < 2:
        raise RuntimeError(f"fliplr: Input must be >= 2-d, got {input._h.ndim}-d")
    return _flip(input, (1,))


@method
def flip(self, dims, *rest):  # noqa: F811
    """``tinytorch.flip``, which also takes the dimensions one by one."""
    return _flip(self, distinct("flip", self, ints((dims, *rest))))


@both
def flipud(input):
    """``flip`` of dimension 0. RuntimeError for a 0-d tensor."""
    if input._h.ndim < 1:
        raise RuntimeError("flipud: Input must be >= 1-d, got 0-d")
    return _flip(input, (0,))


@primitive(input=lambda g, shifts, dims: _roll(g, tuple(-s for s in shifts), dims))
def _roll(input, shifts, dims):
    return owned.tt_roll(input._h, len(shifts), shifts, dims)


@both
def roll(input, shifts, dims=()):
    """Entries moved by ``shifts`` along ``dims``, those that leave at the end coming in at the start; without
    ``dims``, in row-major order over all elements. Follows ``torch.roll``.

    Args:
        shifts: by how many places, towards the end; a number, or one for each dimension
        dims: the dimensions; the flattened tensor unless given
    Returns:
        A copy.
    Raises:
        RuntimeError: there are not as many shifts as dimensions
    """
    shifts, dims = ints((shifts,)), ints((dims,)) if dims is not None else ()
    if not dims and len(shifts) == 1:
        return _roll(input.reshape(-1), shifts, (0,)).reshape(input.shape)
    if not shifts or len(shifts) != len(dims):
        raise RuntimeError(f"roll: shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if not input._h.ndim:
        raise IndexError(f"roll: Dimension specified as {dims[0]} but tensor has no dimensions")
    dims = tuple(input._dim(d) for d in dims)
    return _roll(input, shifts, dims)


@both
def rot90(input, k=1, dims=(0, 1)):
    """Turned by ``k`` quarters in the plane of ``dims``, from the first towards the second.

    Args:
        k: how many quarter turns
        dims: the plane: from the first dimension to the second
    Returns:
        A copy.
    Raises:
        RuntimeError: ``dims`` are not two different dimensions
    """
    dims = tuple(dims)
    if len(dims) != 2 or input._h.ndim < 2:
        raise RuntimeError(
            "rot90: expected total rotation dims == 2 and total dims >= 2, got dims = "
            f"{tuple(dims)} and total dims = {input._h.ndim}"
        )
    a, b = (input._dim(d) for d in dims)
    if a == b:
        raise RuntimeError(f"rot90: expected rotation dims to be different, got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k %= 4
    if k == 0:
        return input.clone()
    if k == 2:
        return _flip(input, (a, b))
    return _flip(input, (b if k == 1 else a,)).transpose(a, b)


# Triangles and diagonals.


def _triangle(name: str, below: bool):
    def write(h, writer, diagonal):
        return check(lib.tt_zero_triangle(h, min(max(diagonal, -(1 << 62)), 1 << 62), below, writer))

    part = (lambda g, diagonal: _triu(g, diagonal)) if below else (lambda g, diagonal: _tril(g, diagonal))
    return update(name, input=part)(write)


_tril, _tril_ = _triangle("tril", False)
_triu, _triu_ = _triangle("triu", True)


@both
def tril(input, diagonal=0, *, out=None):
    """The matrices with zeros above the diagonal of that number. Follows ``torch.tril``.

    Args:
        diagonal: 0 for the main diagonal, above it positive, below it negative
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        RuntimeError: fewer than two dimensions
    """
    return write_out("tril", _tril(input, diagonal), out)


@both
def triu(input, diagonal=0, *, out=None):
    """The matrices with zeros below the diagonal of that number. Follows ``torch.triu``. Otherwise like ``tril``."""
    return write_out("triu", _triu(input, diagonal), out)


@both
def tril_(input, diagonal=0):
    """``tril`` in place."""
    return _tril_(input, diagonal)


@both
def triu_(input, diagonal=0):
    """``triu`` in place."""
    return _triu_(input, diagonal)


def _diagonal_place(shape, strides, offset, dim1, dim2):
    """Shape, strides and start of a diagonal of elements laid out so."""
    rows, columns = shape[dim1], shape[dim2]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = 0 if not length else offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    keep = [d for d in range(len(shape)) if d not in (dim1, dim2)]
    return ((*[shape[d] for d in keep], length), (*[strides[d] for d in keep], strides[dim1] + strides[dim2]), start)


@both
def diag_embed(input, offset=0, dim1=-2, dim2=-1):
    """Matrices, in dimensions ``dim1`` and ``dim2``, whose diagonal ``offset`` is the last dimension of ``input`` and
    which are zero elsewhere. Follows ``torch.diag_embed``.

    Args:
        input: a tensor (*, n)
        offset: 0 for the main diagonal, above it positive, below it negative
        dim1: the dimension of the rows
        dim2: the dimension of the columns
    Returns:
        A tensor (*, m, m), where m is n plus the offset's size.
    Raises:
        RuntimeError: ``dim1`` and ``dim2`` are one dimension
    """
    a, b = input._dim(dim1, 1), input._dim(dim2, 1)
    if a == b:
        raise RuntimeError(f"diag_embed: diagonal dimensions cannot be identical {dim1}, {dim2}")
    if input._h.ndim == 0:
        raise IndexError("diag_embed: Dimension specified as -1 but tensor has no dimensions")
    shape = list(input.shape[:-1])
    n = input._h.shape[input._h.ndim - 1] + abs(offset)
    for d in sorted((a, b)):
        shape.insert(d, n)
    whole = owned.tt_nought(input._h, len(shape), shape)
    return _diagonal_scatter(whole, input, offset, a, b)


@both
def diag(input, diagonal=0, *, out=None):
    """Of a vector, the matrix with it on a diagonal; of a matrix, a copy of its diagonal. Follows ``torch.diag``.

    Args:
        input: a vector (n), or a matrix
        diagonal: 0 for the main diagonal, above it positive, below it negative
    Returns:
        A matrix, or a vector.
    Raises:
        RuntimeError: ``input`` has another number of dimensions
    """
    if input._h.ndim == 1:
        return write_out("diag", diag_embed(input, diagonal), out)
    if input._h.ndim == 2:
        return write_out("diag", input.diagonal(diagonal).clone(), out)
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input._h.ndim}D")


@both
def diagflat(input, offset=0):
    """``diag`` of all elements as one vector."""
    return diag_embed(input.reshape(-1), offset)


# A part replaced.


@primitive(
    title="AsStridedScatterBackward0",
    input=lambda g, src_shape, layout, size, stride, start: _strided_scatter(
        g.with_layout(*layout), g.new_zeros(src_shape), layout, size, stride, start
    ),
    src=lambda g, layout, size, stride, start: _laid_out_part(g, layout, size, stride, start),
)
def _strided_scatter(input, src, layout, size, stride, start):
    return owned.tt_strided_scatter(input._h, src._h, len(size), size, stride, start)


def _laid_out_part(g, layout, size, stride, start):
    g = g.with_layout(*layout)
    return g.as_strided(size, stride, g.storage_offset() + start)


@both(pure=False)
def as_strided_scatter(input, src, size, stride, storage_offset=None):
    """A copy of ``input``, with its strides, and in it ``src`` in place of ``input.as_strided(size, stride,
    storage_offset)``; where that shows an element several times, src's values for it add up. Follows
    ``torch.as_strided_scatter``."""
    size, stride = ints((size,)), ints((stride,))
    if len(size) != len(stride):
        raise RuntimeError(
            f"as_strided_scatter: mismatch in length of strides and shape: {list(size)} and {list(stride)}"
        )
    offset = lib.tt_offset(input._h)
    start = 0 if storage_offset is None else operator.index(storage_offset) - offset
    return _strided_scatter(input, src.to(input.dtype), (tuple(input.shape), input.stride()), size, stride, start)


def _diagonal_scatter(input, src, offset, dim1, dim2):
    shape = tuple(input.shape)
    strides = contiguous_strides(shape)
    size, stride, start = _diagonal_place(shape, strides, offset, dim1, dim2)
    return _strided_scatter(input.contiguous(), src, (shape, strides), size, stride, start)


@both
def diagonal_scatter(input, src, offset=0, dim1=0, dim2=1):
    """A copy of ``input`` with ``src`` on a diagonal."""
    a, b = input._dim(dim1), input._dim(dim2)
    if a == b:
        raise RuntimeError(f"diagonal_scatter: diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _diagonal_scatter(input, src.to(input.dtype), offset, a, b)


@both
def select_scatter(input, src, dim, index):
    """A copy of ``input`` with ``src`` as entry ``index`` along ``dim``."""
    input.select(dim, index)  # raises where there is no such entry
    return view_scatter(input, src.to(input.dtype), (KEEP, input._dim(dim), 0, 0, AT, index, 0, 0))


@both
def slice_scatter(input, src, dim=0, start=None, end=None, step=1):
    """A copy of ``input`` with ``src`` in place of a slice along ``dim``."""
    start, end, step = (None if e is None else operator.index(e) for e in (start, end, step))
    if step <= 0:
        raise RuntimeError(f"slice_scatter: step must be positive, got {step}")
    ends = [LEFT_OUT if e is None else min(max(e, LEFT_OUT + 1), -1 - LEFT_OUT) for e in (start, end)]
    return view_scatter(input, src.to(input.dtype), (KEEP, input._dim(dim), 0, 0, SLICE, *ends, step))


# Repetition.


@both
@shown(lambda input, repeats=None, dim=None, *, output_size=None: None)
def repeat_interleave(input, repeats=Parameter.empty, dim=None, *, output_size=None):
    """Each entry along ``dim`` (without it, each element) repeated: ``repeats`` times, or as often as the int vector
    ``repeats`` says for it. With one argument alone, the positions themselves. Follows ``torch.repeat_interleave``.

    Args:
        repeats: a number, or an integer vector with one for each entry
        dim: the dimension; the flattened tensor unless given
        output_size: the size of the result along ``dim``
    Returns:
        A copy.
    Raises:
        RuntimeError: a number is negative, there are not as many as entries, or ``output_size`` is another
    """
    if repeats is Parameter.empty:
        if dim is not None:
            raise TypeError("repeat_interleave(): argument 'dim' needs argument 'repeats'")
        return _of_size(_positions(input), 0, output_size)
    if repeats is None:
        raise TypeError("repeat_interleave(): argument 'repeats' must be Tensor or int, not NoneType")
    if dim is None:
        input, dim = input.reshape(-1), 0
    elif input._h.ndim == 0:
        input = input.reshape(1)
    dim = input._dim(dim)
    n = input._h.shape[dim]
    if isinstance(repeats, Tensor) and repeats._h.numel == 1 and repeats._h.ndim <= 1 and n != 1:
        _need_counts(repeats)
        repeats = int(repeats)
    if not isinstance(repeats, Tensor):
        repeats = operator.index(repeats)
        if repeats < 0:
            raise RuntimeError(f"repeat_interleave: Repeats must be non-negative, got {repeats}")
        shape = list(input.shape)
        shape.insert(dim + 1, repeats)
        copy = input.unsqueeze(dim + 1).expand(shape).clone(memory_format=contiguous_format)
        return _of_size(copy.flatten(dim, dim + 1), dim, output_size)
    repeats = repeats if repeats._h.ndim else repeats.reshape(1)
    if repeats._h.ndim > 1:
        raise RuntimeError(
            f"repeat_interleave: repeats must be 0-dim or 1-dim tensor, got shape {tuple(repeats.shape)}"
        )
    if repeats._h.numel != n:
        raise RuntimeError(
            "repeat_interleave: repeats must have the same size as input along dim, but got "
            f"repeats.size(0) = {repeats._h.numel} and input.size({dim}) = {n}"
        )
    rows = _of_size(_positions(repeats), 0, output_size)
    return reader("index_select")(input, (KEEP, dim, 0, 0, INDEX, 1, 0, 0), rows)


def _of_size(x: Tensor, dim: int, output_size) -> Tensor:
    if output_size is not None and x._h.shape[dim] != operator.index(output_size):
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {x._h.shape[dim]} but got {operator.index(output_size)}"
        )
    return x


def _need_counts(repeats):
    if repeats._h.dtype not in (lib.TT_I32, lib.TT_I64):
        raise NotImplementedError(f"repeat_interleave: not implemented for repeats of '{repeats.dtype.name}'")


def _positions(repeats):
    _need_counts(repeats)
    if repeats._h.ndim != 1:
        raise RuntimeError(f"repeat_interleave: repeats has to be a vector, got shape {tuple(repeats.shape)}")
    return owned.tt_repeat_positions(_ready(repeats)._h)


def _ready(t: Tensor) -> Tensor:
    if t._h.flags & FLAG_VIEW:
        refresh(t)
    return t


def one_hot(tensor, num_classes=-1):
    """int64 rows of zeros with a one at the class: ``tensor``'s shape, and a dimension of ``num_classes`` (by default
    one more than the largest class). Follows ``torch.nn.functional.one_hot``.

    Args:
        tensor: an int64 tensor of classes, none negative
        num_classes: how many; unless given, one more than the largest
    Returns:
        An int64 tensor (*, num_classes).
    Raises:
        RuntimeError: a class is negative or too large, or the dtype is not int64
    """
    if tensor._h.dtype != lib.TT_I64:
        raise RuntimeError(f"one_hot is only applicable to index tensor of type LongTensor, got {tensor.dtype!r}")
    return owned.tt_one_hot(_ready(tensor)._h, num_classes)


# Runs of equal entries.


@both
def unique_consecutive(input, return_inverse=False, return_counts=False, dim=None):
    """The first of every run of equal entries along ``dim`` (without it, of all elements); on request for each entry
    the number of its run, and each run's length. Follows ``torch.unique_consecutive``."""
    shape = input.shape if dim is None else None
    if dim is None or input._h.ndim == 0:
        input, dim = input.reshape(-1), 0
    dim = input._dim(dim)
    n = input._h.shape[dim]
    starts = tensor([True] * min(n, 1), dtype=_bool)
    if n > 1:
        changes = input.narrow(dim, 1, n - 1) != input.narrow(dim, 0, n - 1)
        others = [d for d in range(input._h.ndim) if d != dim]
        starts = cat((starts, changes.any(others) if others else changes))
    places = owned.tt_nonzero(starts._h, True)
    results = [reader("index_select")(input, (KEEP, dim, 0, 0, INDEX, 1, 0, 0), places)]
    ends = cat((places, tensor([n])))
    counts = ends[1:] - ends[:-1] if n else places
    if return_inverse:
        inverse = _positions(counts)
        results.append(inverse if shape is None else inverse.reshape(shape))
    if return_counts:
        results.append(counts)
    return results[0] if len(results) == 1 else tuple(results)
