"""Views: other shapes and strides over the same storage."""

from __future__ import annotations


from ..backends.cpu import ffi, lib
from ..dtypes import Size, dtype_code
from ..dtypes import dtype as _dtype
from ..layouts import contiguous_format
from ..tensor import Tensor, attempted, owned
from .declare import both, c_view, function, ints, method, primitive, refuse


def contiguous_strides(shape) -> tuple[int, ...]:
    """Row-major strides."""
    strides, step = [], 1
    for s in reversed(shape):
        strides.append(step)
        step *= max(s, 1)
    return tuple(reversed(strides))


def show(input: Tensor, shape, strides, offset: int) -> Tensor:
    """A view without history; ``offset`` counts from the storage's start."""
    return owned.tt_view(input._h, len(shape), shape, strides, offset)


def _inferred(op: str, shape: tuple, numel: int) -> tuple:
    """``shape`` with its -1 replaced."""
    if -1 not in shape:
        return shape
    known = 1
    for s in shape:
        known *= s if s != -1 else 1
    if shape.count(-1) > 1:
        raise RuntimeError(f"{op}: only one dimension can be inferred, got shape {shape}")
    if known == 0:
        raise RuntimeError(
            f"{op}: cannot reshape tensor of 0 elements into shape {list(shape)} because the "
            f"unspecified "
            "dimension size -1 can be any value and is ambiguous"
        )
    if numel % known or known < 0:
        raise RuntimeError(f"{op}: shape '{list(shape)}' is invalid for input of size {numel}")
    return tuple(numel // known if s == -1 else s for s in shape)


# Shapes.


@primitive(view=True, title="ViewBackward0", input=lambda g, input_shape: g.reshape(input_shape))
def _view(input, shape):
    return owned.tt_reshape_view(input._h, len(shape), shape)


@primitive(title="UnsafeViewBackward0", input=lambda g, input_shape: g.reshape(input_shape))
def _unsafe_view(input, shape):
    """What nobody else shows is a tensor of its own rather than a view."""
    return owned.tt_reshape_view(input._h, len(shape), shape)


@primitive(view=True)
def _view_dtype(input, to):
    return owned.tt_view_dtype(input._h, dtype_code(to, "view"))


@method
@c_view(
    lib.tt_view_shaped,
    _view,
    params="input, size=None, *rest, dtype=None",
    arguments="len(sizes) if dtype is None else None, sizes",
)
def view(self, size=None, *rest, dtype=None):
    """The same elements as another ``shape`` (one -1 is inferred). RuntimeError when the strides do not allow a view:
    use ``reshape``. With a dtype instead, the same bytes as that dtype. Follows ``torch.Tensor.view``.

    Args:
        size: the sizes, one of which may be -1, or a dtype
        dtype: this dtype, instead of a shape
    Returns:
        A view of this shape.
    Raises:
        RuntimeError: the number of elements differs, or the strides do not allow a view
    """
    if size is None or isinstance(size, (_dtype, type)):
        return _view_dtype(self, size if dtype is None else dtype)
    if dtype is not None:
        raise TypeError("view(): a shape or a dtype, not both")
    shape = _inferred("view", ints((size, *rest)), self._h.numel)
    try:
        return _view(self, shape)
    except NotImplementedError as exc:  # declined
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one dimension "
            f"spans across two contiguous subspaces). Use .reshape(...) instead. Got shape "
            f"{tuple(self.shape)}, strides {self.stride()}, wanted {shape}."
        ) from exc
    except RuntimeError as exc:
        raise RuntimeError(f"view: {exc}") from None


@method
@c_view(lib.tt_view_shaped, _view, params="input, shape, *rest", arguments="len(sizes), sizes")
def reshape(self, shape, *rest):
    """The same elements as another shape: a view where the strides allow, else a copy. Follows ``torch.reshape``.

    Args:
        shape: the sizes, one of which may be -1
    Returns:
        A tensor of this shape and the same elements in the same order.
    Raises:
        RuntimeError: the number of elements differs
    """
    return _reshape(self, ints((shape, *rest)))


def _reshape(input, shape):
    shape = _inferred("reshape", shape, input._h.numel)
    h = input._h
    if not h.flags & lib.TT_FLAG_CONTIGUOUS:
        seen = attempted.tt_reshape_view(h, len(shape), shape)
        if seen is None and lib.tt_error_kind() == lib.TT_DECLINED:
            return _unsafe_view(input.clone(memory_format=contiguous_format), shape)
    return _view(input, shape)


@function  # noqa: F811
def reshape(input, shape):  # noqa: F811
    """The same elements as another shape: a view where the strides allow, else a copy. Follows ``torch.reshape``.

    Args:
        shape: the sizes, one of which may be -1
    Returns:
        A tensor of this shape and the same elements in the same order.
    Raises:
        RuntimeError: the number of elements differs
    """
    return _reshape(input, ints((shape,)))


@both
@c_view(lib.tt_view_shaped, _view, params="input, other", arguments="other._h.ndim, other._h.shape")
def view_as(input, other):
    """``input.view(other.shape)``."""
    return input.view(other.shape)


@both
@c_view(lib.tt_view_shaped, _view, params="input, other", arguments="other._h.ndim, other._h.shape")
def reshape_as(input, other):
    """``input.reshape(other.shape)``."""
    return _reshape(input, tuple(other.shape))


@both
def flatten(input, start_dim=0, end_dim=-1):
    """Dimensions ``start_dim`` to ``end_dim`` as one. Follows ``torch.flatten``.

    Args:
        start_dim: the first dimension to join
        end_dim: the last
    Returns:
        A view where the strides allow, else a copy.
    Raises:
        RuntimeError: ``start_dim`` comes after ``end_dim``
    """
    try:
        if start_dim == 0 and end_dim == -1 and input._h.ndim > 1:
            return input.reshape(-1)
        start, end = input._dim(start_dim), input._dim(end_dim)
        if start > end:
            raise RuntimeError(
                f"flatten() has invalid args: start_dim cannot come after end_dim (got {start_dim} and {end_dim})"
            )
        shape = tuple(input.shape)
        n = 1
        for s in shape[start : end + 1]:
            n *= s
        return input if start == end and shape else input.reshape((*shape[:start], n, *shape[end + 1 :]))
    except Exception as exc:
        refuse(exc)
        raise


@both
def ravel(input):
    """All elements in one dimension.

    Returns:
        A vector: a view where the strides allow, else a copy.
    """
    return _reshape(input.contiguous(), (-1,))


@both(apart=True)
def unflatten(input, dim, sizes):
    """Dimension ``dim`` as several of ``sizes``, one of which may be -1.

    Args:
        sizes: the sizes, one of which may be -1
    Returns:
        A view with ``sizes`` in place of dimension ``dim``.
    Raises:
        RuntimeError: the sizes' product is not that of ``dim``
    """
    if not sizes or not input._h.ndim:
        raise RuntimeError("unflatten: sizes must be non-empty, and the input at least 1-dimensional")
    if not isinstance(sizes, (tuple, list)):
        raise TypeError(f"unflatten(): argument 'sizes' must be tuple of ints, not {type(sizes).__name__}")
    dim = input._dim(dim)
    shape = tuple(input.shape)
    sizes = _inferred("unflatten", ints((sizes,)), shape[dim])
    n = 1
    for s in sizes:
        n *= s
    if n != shape[dim]:
        raise RuntimeError(
            f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} "
            f"({shape[dim]}) in the input tensor"
        )
    return _reshape(input, (*shape[:dim], *sizes, *shape[dim + 1 :]))


@primitive(view=True, title="ExpandBackward0", input=lambda g, input_shape: g.sum_to_size(input_shape))
def _expand(input, shape):
    h = input._h
    old, steps = ffi.unpack(h.shape, h.ndim), ffi.unpack(h.strides, h.ndim)
    lead = len(shape) - len(old)
    strides = [0 if o == 1 and s != 1 else st for o, s, st in zip(old, shape[lead:], steps)]
    for d in reversed(range(lead)):
        strides.insert(0, 0 if shape[d] != 1 else shape[d + 1] * strides[0] if strides else 0)
    return show(input, shape, strides, lib.tt_offset(h))


@method
@c_view(lib.tt_view_expanded, _expand, params="input, size, *rest, implicit=False", arguments="len(sizes), sizes")
def expand(self, size, *rest, implicit=False):
    """Dimensions of size 1 shown as larger ones without a copy; -1 keeps a size. Follows ``torch.Tensor.expand``.

    Args:
        size: the sizes; -1 keeps one
        implicit: has no effect, as in PyTorch
    Returns:
        A view, whose new elements share memory: not to be written in place.
    Raises:
        RuntimeError: a dimension of another size than 1 would change
    """
    sizes = ints((size, *rest))
    old = tuple(self.shape)
    lead = len(sizes) - len(old)
    if lead < 0:
        raise RuntimeError(
            f"expand: the number of sizes provided ({len(sizes)}) must be greater or equal to the "
            f"number "
            f"of dimensions in the tensor ({len(old)})"
        )
    shape = []
    for d, s in enumerate(sizes):
        have = old[d - lead] if d >= lead else None
        if s == -1:
            if have is None:
                raise RuntimeError(
                    f"expand: the expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {d}"
                )
            s = have
        if have is not None and s != have and have != 1:
            raise RuntimeError(
                f"The expanded size of the tensor ({s}) must match the existing size ({have}) at "
                f"non-singleton dimension {d}. Target sizes: {list(sizes)}. Tensor sizes: {list(old)}"
            )
        shape.append(s)
    return _expand(self, tuple(shape))


@method
@c_view(lib.tt_view_expanded, _expand, params="input, other", arguments="other._h.ndim, other._h.shape")
def expand_as(input, other):
    """``input.expand(other.shape)``."""
    return input.expand(other.shape)


@both(apart=True)
def broadcast_to(input, size):
    """``input.expand(size)``; for the method ``size`` may be a number.

    Args:
        size: the sizes
    Returns:
        A view of this shape.
    Raises:
        RuntimeError: the shape of ``input`` does not broadcast to it
    """
    return input.expand(ints((size,)))


@function(kind="query")
def broadcast_shapes(*shapes):
    """The shape that tensors of these shapes broadcast to. RuntimeError when they do not.

    Args:
        shapes: tuples of sizes
    Returns:
        A ``Size``.
    Raises:
        RuntimeError: the shapes do not broadcast
    """
    ndim = max((len(s) if isinstance(s, (tuple, list)) else 1 for s in shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        shape = ints((shape,))
        if any(n < 0 for n in shape):
            raise ValueError(f"Attempting to broadcast a dimension with negative length: {shape}")
        for d in range(1, len(shape) + 1):
            if shape[-d] != 1:
                if result[-d] not in (1, shape[-d]):
                    raise RuntimeError(
                        "Shape mismatch: objects cannot be broadcast to a single shape: "
                        f"{', '.join(str(tuple(ints((s,)))) for s in shapes)}"
                    )
                result[-d] = shape[-d]
    return Size(result)


@function
def broadcast_tensors(*tensors):
    """The tensors, expanded to their common shape.

    Args:
        tensors: the tensors
    Returns:
        A tuple of views.
    Raises:
        RuntimeError: the shapes do not broadcast
    """
    shape = broadcast_shapes(*(tuple(t.shape) for t in tensors))
    return tuple([t if t.shape == shape else t.expand(shape) for t in tensors])


@primitive(
    view=True,
    title={"SqueezeBackward0": "dim is None", "SqueezeBackward2": "dim == ()", "SqueezeBackward1": ""},
    input=lambda g, input_shape: g.reshape(input_shape),
)
def _squeeze(input, dims, dim):
    h = input._h
    keep = [d for d in range(h.ndim) if d not in dims or h.shape[d] != 1]
    return show(input, [h.shape[d] for d in keep], [h.strides[d] for d in keep], lib.tt_offset(h))


_SQUEEZE = "Node_0 if dim is None else Node_1 if {}type(dim) is not int else Node"


@method
@c_view(
    lib.tt_view_squeezed,
    _squeeze,
    params="input, dim=None, *rest",
    arguments="-1 if dim is None else len(sizes), sizes or ()",
    node=_SQUEEZE.format("rest or "),
)
def squeeze(input, dim=None, *rest):
    """Without its dimensions of size 1, or those of them among ``dim``. Follows ``torch.Tensor.squeeze``.

    Args:
        dim: a dimension, or several; all unless given
    Returns:
        A view; a dimension of another size stays.
    Raises:
        IndexError: a dimension is out of range
        RuntimeError: one is named twice
    """
    return _squeezed(input, dim, *rest)


def distinct(op: str, input, dims) -> tuple:
    dims = tuple([input._dim(d) for d in dims])
    if len(dims) > 1:
        for d in dims:
            if dims.count(d) > 1:
                raise RuntimeError(f"{op}: dim {d} appears multiple times in the list of dims")
    return dims if input._h.ndim else ()


def _squeezed(input, dim, *rest):
    dims = tuple(range(input._h.ndim)) if dim is None else distinct("squeeze", input, ints((dim, *rest)))
    return _squeeze(input, dims, dim if dim is None or isinstance(dim, int) and not rest else ())


@function  # noqa: F811
@c_view(
    lib.tt_view_squeezed,
    _squeeze,
    params="input, dim=None",
    arguments="-1 if dim is None else 1 if type(dim) is int else len(dim), (dim,) if type(dim) is int else dim or ()",
    node=_SQUEEZE.format(""),
)
def squeeze(input, dim=None):  # noqa: F811
    """Without its dimensions of size 1, or those of them among ``dim``. Follows ``torch.squeeze``.

    Args:
        dim: a dimension, or several; all unless given
    Returns:
        A view; a dimension of another size stays.
    Raises:
        IndexError: a dimension is out of range
        RuntimeError: one is named twice
    """
    return _squeezed(input, dim)


@primitive(view=True, title="UnsqueezeBackward0", input=lambda g, dim: squeeze(g, dim))
def _unsqueeze(input, dim):
    h = input._h
    shape, strides = ffi.unpack(h.shape, h.ndim), ffi.unpack(h.strides, h.ndim)
    strides.insert(dim, shape[dim] * strides[dim] if dim < len(shape) else 1)
    shape.insert(dim, 1)
    return show(input, shape, strides, lib.tt_offset(h))


@both
@c_view(lib.tt_view_unsqueezed, _unsqueeze, params="input, dim", arguments="dim", saves="(dim,)")
def unsqueeze(input, dim):
    """With a dimension of size 1 put before ``dim``. Follows ``torch.unsqueeze``.

    Args:
        dim: where: 0 is before the first dimension, -1 after the last
    Returns:
        A view.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return _unsqueeze(input, input._dim(dim, 1))
