"""Views of parts: entries, slices, diagonals, windows, splits.

A view that only picks elements (select, slice, diagonal) is declared by its *geometry*: a function from shape and
strides to shape, strides and offset. Its derivative, ``embed``, writes the gradient into zeros through the same
geometry; and embed's derivative is the view again.
"""

from __future__ import annotations

import operator

from ..autograd.views import FLAG_VIEW
from ..backends.cpu import error, ffi, lib
from ..tensor import FUNCTIONS, Tensor, owned, gives_array
from .declare import both, c_view, function, ints, method, primitive, publish
from .shape import contiguous_strides, show

NULL = ffi.NULL


def _picks(op: str, title: str, geometry):
    """A view that picks elements, from its geometry ``(shape, strides, *args) -> shape, strides, offset``."""

    @primitive(name=op, view=True, title=title, input=lambda g, input_shape, args: embed(g, input_shape, args))
    def pick(input, args):
        h = input._h
        shape, strides, offset = geometry(ffi.unpack(h.shape, h.ndim), ffi.unpack(h.strides, h.ndim), *args)
        return show(input, shape, strides, lib.tt_offset(h) + offset)

    @primitive(name=op + "_backward", g=lambda g, args: pick(g, args))
    def embed(g, shape, args):
        zeros = owned.tt_nought(g._h, len(shape), shape)
        part = show(zeros, *geometry(list(shape), list(contiguous_strides(shape)), *args))
        if lib.tt_copy(part._h, g._h, -1) < 0:
            raise RuntimeError(f"{op}: the gradient of shape {tuple(g.shape)} does not fit")
        return zeros

    return pick


def _select_geometry(shape, strides, dim, index):
    offset = index % shape[dim] * strides[dim]
    del shape[dim], strides[dim]
    return shape, strides, offset


def _slice_geometry(shape, strides, dim, start, length, step):
    offset = (start + shape[dim] if start < 0 else start) * strides[dim]
    shape[dim] = length
    strides[dim] *= step
    return shape, strides, offset


def _diagonal_geometry(shape, strides, offset, dim1, dim2):
    rows, columns = shape[dim1], shape[dim2]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    start = 0 if not length else offset * strides[dim2] if offset >= 0 else -offset * strides[dim1]
    step = strides[dim1] + strides[dim2]
    keep = [d for d in range(len(shape)) if d not in (dim1, dim2)]
    return [shape[d] for d in keep] + [length], [strides[d] for d in keep] + [step], start


_select = _picks("select", "SelectBackward0", _select_geometry)
_slice = _picks("slice", "SliceBackward0", _slice_geometry)
_diagonal = _picks("diagonal", "DiagonalBackward0", _diagonal_geometry)


@both
@c_view(
    lib.tt_view_selected,
    _select,
    params="input, dim, index",
    arguments="dim, index",
    saves="(unpack(x.shape, x.ndim), (dim, index))",
)
def select(input, dim, index):
    """Entry ``index`` along ``dim``, without that dimension. IndexError out of range. Follows ``torch.select``.

    Args:
        index: which entry; negative ones count from the end
    Returns:
        A view without dimension ``dim``.
    Raises:
        IndexError: ``dim`` or ``index`` is out of range
    """
    if input._h.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, index = input._dim(dim), operator.index(index)
    n = input._h.shape[dim]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}"
        )
    return _select(input, (dim, index % n))


@both
@c_view(
    lib.tt_view_narrowed,
    _slice,
    params="input, dim, start, length",
    arguments="dim, start if type(start) is int else None, length",  # C would take a float tensor, too
    saves="(unpack(x.shape, x.ndim), (dim, start, length, 1))",
)
def narrow(input, dim, start, length):
    """``length`` entries along ``dim`` from ``start`` on. Follows ``torch.narrow``.

    Args:
        start: the first entry, a number or a 0-d integer tensor
        length: how many
    Returns:
        A view.
    Raises:
        RuntimeError: the entries are not all there
    """
    if input._h.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    dim = input._dim(dim)
    n = input._h.shape[dim]
    if isinstance(start, Tensor) and (start._h.ndim or start.dtype.kind != lib.TT_KIND_INT):
        raise RuntimeError("narrow(): start must be a 0-dim integral Tensor.")
    start = operator.index(start)
    if not -n <= start <= n:
        raise IndexError(f"narrow(): start ({start}) out of range for dimension {dim} of size {n}")
    start, length = start + (n if start < 0 else 0), operator.index(length)
    if length < 0 or start + length > n:
        raise RuntimeError(f"narrow(): start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return _slice(input, (dim, start, length, 1))


@both
@c_view(
    lib.tt_view_diagonal,
    _diagonal,
    params="input, offset=0, dim1=0, dim2=1",
    arguments="offset, dim1, dim2",
    saves="(unpack(x.shape, x.ndim), (offset, input._dim(dim1), input._dim(dim2)))",
)
def diagonal(input, offset=0, dim1=0, dim2=1):
    """The diagonal of dimensions ``dim1`` and ``dim2``, as the last dimension. Follows ``torch.diagonal``.

    Args:
        offset: 0 for the main diagonal, above it positive, below it negative
        dim1: the dimension of the rows
        dim2: the dimension of the columns
    Returns:
        A view, whose last dimension is the diagonal.
    Raises:
        RuntimeError: ``dim1`` and ``dim2`` are one dimension
    """
    dim1, dim2 = input._dim(dim1), input._dim(dim2)
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return _diagonal(input, (offset, dim1, dim2))


def linalg_diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """``diagonal`` of the last two dimensions, unless others are given. Follows ``torch.linalg.diagonal``.

    Args:
        A: a tensor
        offset: 0 for the main diagonal, above it positive, below it negative
        dim1: the dimension of the rows
        dim2: the dimension of the columns
    Returns:
        A view, whose last dimension is the diagonal.
    """
    return diagonal(A, offset, dim1, dim2)


linalg_diagonal = publish(linalg_diagonal, name="diagonal", namespace="linalg", kind="view")


@primitive(g=lambda g, dim, size, step: _unfold(g, dim, size, step), title="UnfoldBackwardBackward0")
def unfold_backward(g, shape, dim, size, step):
    """The sum of windows that overlap: the gradient of ``unfold``. Every place adds its windows in their order. Where
    few windows meet, a part of ``step`` elements of each is added at a time: no two of them meet."""
    out, g = g.new_zeros(shape), g.detach()
    if not shape:
        return out.add_(g.sum())
    if size > 16 * step:
        places = FUNCTIONS["arange"](shape[dim], device=g.device).unfold(0, size, step).reshape(-1)
        return out.index_add_(dim, places, g.movedim(-1, dim + 1).flatten(dim, dim + 1))
    for first in reversed(range(0, size, step)):
        width = min(step, size - first)
        places = out.narrow(dim, first, (g.shape[dim] - 1) * step + width).unfold(dim, width, step)
        places.add_(g.narrow(-1, first, width))
    return out


@primitive(
    view=True,
    title="UnfoldBackward0",
    input=lambda g, input_shape, dim, size, step: unfold_backward(g, input_shape, dim, size, step),
)
def _unfold(input, dim, size, step):
    h = input._h
    shape, strides = ffi.unpack(h.shape, h.ndim), ffi.unpack(h.strides, h.ndim)
    if not shape:
        return show(input, [size], [1], lib.tt_offset(h))
    shape.append(size)
    strides.append(strides[dim])
    shape[dim] = (shape[dim] - size) // step + 1
    strides[dim] *= step
    return show(input, shape, strides, lib.tt_offset(h))


@method
def unfold(self, dimension, size, step):
    """All windows of ``size`` entries along a dimension, ``step`` apart; a new last dimension walks a window.

    Args:
        dimension: the dimension
        size: the size of a window
        step: from one window to the next
    Returns:
        A view with a last dimension of the windows' elements.
    Raises:
        RuntimeError: ``size`` is larger than the dimension, or ``step`` is not positive
    """
    dim = self._dim(dimension)
    n = self._h.shape[dim] if self._h.ndim else 1
    if not 0 <= size <= n:
        raise RuntimeError(f"unfold: maximum size for tensor at dimension {dim} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"unfold: step is {step} but must be > 0")
    return _unfold(self, dim, size, step)


def _overlaps(size, stride) -> bool:
    """May two places of a strided view be one element?"""
    reach = 0
    for step, n in sorted((st, s) for s, st in zip(size, stride) if s > 1):
        if step <= reach:
            return True
        reach += step * (n - 1)
    return False


def _end(size, stride, offset) -> int:
    """The place of a strided view's last element."""
    return offset + sum((n - 1) * step for n, step in zip(size, stride))


def _as_strided_backward(g, input, size, stride, start):
    shape, steps, offset = input
    if not _overlaps(size, stride) and offset <= start and _end(size, stride, start) <= _end(shape, steps, offset):
        zeros = g.new_zeros(()).expand(shape).with_layout(shape, steps)
        return zeros.as_strided_scatter(g, size, stride, start - offset)
    # In terms of the storage: sum what shows the same element, then look at it as the input does.
    low = min(offset, start)
    reach = 1 + max(_end(shape, steps, offset), _end(size, stride, start)) - low
    places = FUNCTIONS["arange"](reach, device=g.device).as_strided(size, stride, start - low).reshape(-1)
    flat = g.new_zeros((reach,)).index_add(0, places, g.reshape(-1))
    return flat.as_strided(shape, steps, offset - low)


@primitive(
    view=True,
    title="AsStridedBackward0",
    input=lambda g, geometry, size, stride, offset: _as_strided_backward(g, geometry, size, stride, offset),
)
def _as_strided(input, size, stride, offset, geometry):
    return show(input, size, stride, offset)


@both(pure=False)
def as_strided(input, size, stride, storage_offset=None):
    """Any view of the storage: ``size``, ``stride`` and offset in elements. RuntimeError outside of the storage."""
    size, stride = ints((size,)), ints((stride,))
    if len(size) != len(stride):
        raise RuntimeError(f"as_strided: mismatch in length of strides and shape: {list(size)} and {list(stride)}")
    offset = input.storage_offset()
    return _as_strided(
        input,
        size,
        stride,
        offset if storage_offset is None else operator.index(storage_offset),
        (tuple(input.shape), input.stride(), offset),
    )


# Several views at once.


def _filled(g, shapes):
    """The gradients of parts of these shapes; one that there is none of as zeros."""
    some = next(x for x in g if x is not None)
    return [some.new_zeros(()).expand(shape) if x is None else x for x, shape in zip(g, shapes)]


def _joined(g, sizes, shape, dim):
    """The gradients of the parts side by side."""
    return FUNCTIONS["cat"](_filled(g, [(*shape[:dim], n, *shape[dim + 1 :]) for n in sizes]), dim)


def _stacked(g, shape, dim, stride):
    """The gradients of the entries side by side, in memory as the input lies: what made that a view of something
    contiguous need not copy."""
    parts = _filled(g, [(*shape[:dim], *shape[dim + 1 :])] * shape[dim])
    order = sorted(range(len(shape)), key=lambda d: -stride[d])
    if order == [*range(len(shape))]:
        return FUNCTIONS["stack"](parts, dim)
    parts = [x.permute([d - (d > dim) for d in order if d != dim]) for x in parts]
    return FUNCTIONS["stack"](parts, order.index(dim)).permute(sorted(order, key=order.__getitem__))


@primitive(name="split", outputs=(), input=lambda g, input_shape, sizes, dim: _joined(g, sizes, input_shape, dim))
def _split(input, sizes, dim):
    n, size = len(sizes), sizes[0]
    return _views(input, _parts, n, dim, size, NULL)


@primitive(
    name="split_with_sizes", outputs=(), input=lambda g, input_shape, sizes, dim: _joined(g, sizes, input_shape, dim)
)
def _split_with_sizes(input, sizes, dim):
    return _views(input, _parts, len(sizes), dim, 0, sizes)


@primitive(
    name="unbind",
    outputs=(),
    input=lambda g, input_shape, input_stride, dim: _stacked(g, input_shape, dim, input_stride),
)
def _unbind(input, dim):
    return _views(input, _entries, input._h.shape[dim], dim)


_VIEWS = ffi.typeof("tt_array *[]")


_parts, _entries = gives_array(lib.tt_view_parts), gives_array(lib.tt_view_entries)


def _views(input, call, n, *args):
    """The ``n`` views that ``call`` makes, one of these, without history."""
    h = input._h
    base = input._view if h.flags & FLAG_VIEW else input
    out = call(h, *args, n, ffi.new(_VIEWS, n))
    if out is None:
        raise error("split")
    for t in out:
        t._view = base
    return out


@both
def unbind(input, dim=0):
    """The entries along ``dim`` as a tuple of views. Follows ``torch.unbind``.

    Returns:
        A tuple of views without dimension ``dim``.
    Raises:
        IndexError: ``dim`` is out of range
    """
    h = input._h
    if h.ndim == 0:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    dim = dim if 0 <= dim < h.ndim else input._dim(dim)
    return _unbind(input, dim)


@method
def split(self, split_size, dim=0):
    """Consecutive parts along ``dim``: of one size (the last may be smaller), or of the given sizes. Follows
    ``torch.Tensor.split``.

    Args:
        split_size: the size of each part, or a list of their sizes
    Returns:
        A tuple of views; the last may be smaller.
    Raises:
        RuntimeError: the sizes do not add up to that of ``dim``, or are negative
    """
    h = self._h
    if h.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    dim = dim if 0 <= dim < h.ndim else self._dim(dim)
    n = h.shape[dim]
    size = int(split_size) if isinstance(split_size, Tensor) else split_size
    if isinstance(size, int):
        if size is True or size is False:
            raise TypeError("split(): argument 'split_size' must be int, not bool")
        if size < 0 or (size == 0 and n):
            raise RuntimeError(f"split expects split_size be non-negative, but got split_size={size}")
        if n:
            return _split(self, (size,) * (n // size) + (n % size,) * (n % size > 0), dim)
        sizes = (0,)
    else:
        sizes = ints((size,))
        if sum(sizes) != n or min(sizes, default=0) < 0:
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at "
                f"dimension {dim}), but got split_sizes={list(sizes)}"
            )
    return _split_with_sizes(self, sizes, dim)


_split_method = split


@function  # noqa: F811
def split(input, split_size_or_sections, dim=0):  # noqa: F811
    """Consecutive parts along ``dim``: of one size (the last may be smaller), or of the given sizes. Follows
    ``torch.split``.

    Args:
        split_size_or_sections: the size of each part, or a list of their sizes
    Returns:
        A tuple of views; the last may be smaller.
    Raises:
        RuntimeError: the sizes do not add up to that of ``dim``, or are negative
    """
    return _split_method(input, split_size_or_sections, dim)


@both
def split_with_sizes(input, split_sizes, dim=0):
    """``split`` by sizes."""
    return split(input, list(split_sizes), dim)


@both
def chunk(input, chunks, dim=0):
    """At most ``chunks`` equal parts along ``dim``; the last may be smaller.

    Args:
        chunks: how many
    Returns:
        A tuple of views.
    Raises:
        RuntimeError: ``chunks`` is not positive
    """
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    h = input._h
    if h.ndim == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    dim = dim if 0 <= dim < h.ndim else input._dim(dim)
    n = h.shape[dim]
    if not n:
        return _split_with_sizes(input, (0,) * chunks, dim)
    size = -(-n // chunks)
    return _split(input, (size,) * (n // size) + (n % size,) * bool(n % size), dim)


def cuts_of(op: str, *given):
    """Of the names under which PyTorch takes the number of parts, or the indices where to cut, the one that is given.
    TypeError unless it is one."""
    found = [x for x in given if x is not None]
    if len(found) != 1:
        raise TypeError(f"{op}(): expected sections or indices, got {len(found)} of them")
    return found[0]


@both
def tensor_split(
    input, indices_or_sections=None, dim=0, *, sections=None, indices=None, tensor_indices_or_sections=None
):
    """Parts along ``dim``: as equal as possible in number, or cut at the given indices. Follows ``torch.tensor_split``.

    Args:
        indices_or_sections: how many parts, or where to cut
        sections: how many parts
        indices: where to cut
        tensor_indices_or_sections: either, as a tensor
    Returns:
        A tuple of views.
    Raises:
        RuntimeError: the number of parts is not positive
    """
    if input._h.ndim == 0:
        raise RuntimeError("tensor_split expected at least a 1-dimensional tensor, but got a tensor with 0 dims")
    dim = input._dim(dim)
    n = input._h.shape[dim]
    cuts = cuts_of("tensor_split", indices_or_sections, sections, indices, tensor_indices_or_sections)
    if isinstance(cuts, Tensor):
        if cuts._h.ndim > 1 or cuts._h.dtype != lib.TT_I64:
            raise RuntimeError(
                "tensor_split expected tensor_indices_or_sections to be a 0-d or 1-d tensor of int64, "
                f"got {cuts._h.ndim} dimensions and {cuts.dtype!r}"
            )
        cuts = cuts.tolist()
    if not isinstance(cuts, (tuple, list)):
        cuts = operator.index(cuts)
        if cuts <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {cuts}")
        small, larger = divmod(n, cuts)
        bounds = [0] * (cuts + 1)  # at once MemoryError, where there are too many
        for k in range(1, cuts + 1):
            bounds[k] = k * small + min(k, larger)
    else:
        bounds = [0, *(min(max(c + n if c < 0 else c, 0), n) for c in cuts), n]
    return tuple([narrow(input, dim, a, max(b - a, 0)) for a, b in zip(bounds, bounds[1:])])
