"""The largest and the smallest elements, and where they are."""

from __future__ import annotations

import operator

from .. import return_types
from ..backends.cpu import ffi, lib
from ..devices import on_device
from ..dtypes import bool as _bool
from ..tensor import Tensor, gives_tensors, owned
from .declare import both, dim_or_axis, primitive, reduction, refuse, shown, write_all_out, write_out
from .pointwise import maximum, minimum
from .reduce import _sum, expand_reduced, parse_dims

# amax, amin, and max and min of everything, share the gradient among equal elements.


def shared(g, input, out, how, dims, keepdim):
    """``g`` in equal parts where ``input`` has its chosen value ``out``."""
    best = expand_reduced(out, input.shape, how, dims, keepdim)
    chosen = ((input == best) | (input.isnan() & best.isnan())).to(g.dtype)
    many = _sum(chosen, how, dims, keepdim, -1)
    return expand_reduced(g / many, input.shape, how, dims, keepdim) * chosen


_amax = reduction("amax", shared)
_amin = reduction("amin", shared)
_max = reduction("max", shared, title="MaxBackward1")
_min = reduction("min", shared, title="MinBackward1")


@both
def amax(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=False):
    """The largest elements over ``dim``; NaN where there is one. Equal ones share the gradient. Follows
    ``torch.amax``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d where ``dim`` is ().
    Raises:
        IndexError: ``dim`` is out of range, or has no elements
    """
    try:
        how, dims = parse_dims("amax", input, dim, axis)
        return write_out("amax", _amax(input, how, dims, keepdim or keepdims, -1), out, True)
    except Exception as exc:
        refuse(exc)
        raise


@both
def amin(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=False):
    """The smallest elements over ``dim``; NaN where there is one. Equal ones share the gradient. Follows
    ``torch.amin``. Otherwise like ``amax``."""
    try:
        how, dims = parse_dims("amin", input, dim, axis)
        return write_out("amin", _amin(input, how, dims, keepdim or keepdims, -1), out, True)
    except Exception as exc:
        refuse(exc)
        raise


def _aminmax_vjp(g_min, g_max, input, min, max, how, dims, keepdim):
    grads = [shared(g, input, o, how, dims, keepdim) for g, o in ((g_min, min), (g_max, max)) if g is not None]
    return (grads[0] if len(grads) == 1 else grads[0] + grads[1],)


@primitive(title="AminmaxBackward0", outputs=("min", "max"), inputs=("input",), vjp=_aminmax_vjp)
def _aminmax(input, how, dims, keepdim):
    return tuple([owned.tt_reduce(f.op.code, input._h, how, dims, keepdim, -1) for f in (_amin, _amax)])


@both
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """``amin`` and ``amax`` together. Follows ``torch.aminmax``.

    Args:
        out: two tensors
    Returns:
        A named tuple (min, max).
    Raises:
        RuntimeError: no elements
    """
    if not input._h.numel and dim is not None and not input.shape[input._dim(dim)]:
        raise IndexError(f"aminmax(): Expected reduction dim {dim} to have non-zero size.")
    if not input._h.numel and dim is None:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    how, dims = parse_dims("aminmax", input, dim)
    return return_types.aminmax(*write_all_out("aminmax", _aminmax(input, how, dims, keepdim), out))


def put_back(g, shape, indices, dim, keepdim=True):
    """``g`` scattered to the places along ``dim`` where the values had been selected."""
    if not len(shape):
        return g.reshape(())
    if not keepdim:
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    zeros = on_device(g.device, owned.tt_full, g._h.dtype, len(shape), shape, lib.TT_KIND_FLOAT, 0.0, 0)
    return zeros.scatter_add(dim, indices, g)


def selection(name: str, forward, title: str | None = None):
    """An operator ``(input, *args, dim, keepdim)`` whose ``forward`` gives values that are elements of ``input``, and
    where they were along ``dim``. They send their gradient back there."""
    return primitive(
        name=name,
        title=title or name.capitalize() + "Backward0",
        extra=("indices",),
        input=lambda g, input_shape, indices, dim, keepdim: put_back(g, input_shape, indices, dim, keepdim),
    )(forward)


def _placed(name: str, given: tuple, dim, keepdim, other) -> tuple:
    """``dim``, ``keepdim`` and ``other``, of which some were given by place: a tensor there is the other one. By its
    name it is a dimension."""
    first, more = given[0], given[1:]
    if isinstance(first, Tensor):
        if more or other is not None:
            raise TypeError(f"{name}(): another tensor is the only positional argument after 'input'")
        return dim, keepdim, first
    if first is None or dim is not None or len(more) > 1:
        raise TypeError(f"{name}() takes 'input', 'dim' and 'keepdim' by place, each once, and no None")
    return first, more[0] if more else keepdim, other


_reduce_index = gives_tensors(lib.tt_reduce_index)


def _extreme(name: str, largest: int, of_all, of_two, result):
    def forward(input, dim, keepdim):
        indices, values = _reduce_index(largest, input._h, 1, dim, keepdim, ffi.new("tt_array *[1]"))
        return values, indices

    select = selection(name, forward)

    @shown(lambda input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=False: None)
    def extreme(input, *rest, dim=None, keepdim=False, other=None, out=None, axis=None, keepdims=False):
        try:
            at, keep, second = dim, keepdim, other  # parameters keep what they were given: refusals.py
            if rest:
                if len(rest) == 1 and type(rest[0]) is int and dim is None:
                    (at,) = rest
                else:
                    at, keep, second = _placed(name, rest, dim, keepdim, other)
            at, keep = dim_or_axis(name, at, axis), keep or keepdims
            if second is not None:
                if at is not None or keep:
                    raise TypeError(f"{name}(): another tensor, or a dimension, not both")
                return of_two(input, second, out=out)
            if at is None:
                if keep:
                    raise TypeError(f"{name}(): argument 'keepdim' needs argument 'dim'")
                return write_out(name, of_all(input, 0, 0, False, -1), out)
            if type(at) is not int:
                if not hasattr(at, "__index__") or isinstance(at, bool) or getattr(at, "dtype", None) is _bool:
                    raise TypeError(f"{name}(): argument 'dim' must be int, not {type(at).__name__}")
                at = operator.index(at)
            values, indices = select(input, at, keep)
            if out is not None:
                return result(write_out(name, values, out[0]), write_out(name, indices, out[1]))
            return result(values, indices)
        except Exception as exc:
            refuse(exc)
            raise

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"""The {name}imum of all elements; over one dimension, also where it is first; or, of two
    tensors, ``{name}imum``. Follows ``torch.{name}``.

    Args:
        dim: the dimension; or the other tensor
        other: a tensor to compare ``input`` with
        out: a tensor, or for one dimension a pair of them
    Returns:
        A 0-d tensor, or over one dimension a named tuple (values, indices); indices are int64.
    Raises:
        IndexError: ``dim`` is out of range
        RuntimeError: there are no elements
    """
    return both(extreme)


max = _extreme("max", 1, _max, maximum, return_types.max)
min = _extreme("min", 0, _min, minimum, return_types.min)


@primitive(name="argmax")
def _index_of_extreme(input, largest, how, dims, keepdim):
    return owned.tt_reduce_index(largest, input._h, how, dims, keepdim, ffi.NULL)


@both
def argmax(input, dim=None, keepdim=False, *, axis=None, keepdims=False):
    """The first index of the largest element, in the flattened tensor or along ``dim``; int64. Follows
    ``torch.argmax``.

    Returns:
        int64: a tensor without dimension ``dim``, or 0-d.
    Raises:
        IndexError: ``dim`` is out of range, or there are no elements
    """
    try:
        how, dims = parse_dims("argmax", input, dim, axis)
        return _index_of_extreme(input, 1, how, dims, keepdim or keepdims)
    except Exception as exc:
        refuse(exc)
        raise


@both
def argmin(input, dim=None, keepdim=False, *, axis=None, keepdims=False):
    """The first index of the smallest element, in the flattened tensor or along ``dim``; int64. Follows
    ``torch.argmin``. Otherwise like ``argmax``."""
    try:
        how, dims = parse_dims("argmin", input, dim, axis)
        return _index_of_extreme(input, 0, how, dims, keepdim or keepdims)
    except Exception as exc:
        refuse(exc)
        raise
