"""Views as copies: ``transpose_copy`` and its like give what a view shows, in memory of its own."""

from __future__ import annotations

import operator

from ..dtypes import dtype as _dtype
from ..layouts import contiguous_format
from ..tensor import FUNCTIONS
from .convert import clone
from .declare import both, function, outermost, write_out
from .slicing import split, unbind


def _slice(input, dim=0, start=None, end=None, step=1):
    step = 1 if step is None else operator.index(step)
    if step < 1:
        raise RuntimeError(f"slice_copy: slice step must be positive, got {step}")
    return input[(slice(None),) * input._dim(dim) + (slice(start, end, step),)]


def _view(input, size=None, *, dtype=None):
    if isinstance(size, _dtype):
        size, dtype = None, size
    if (size is None) == (dtype is None):
        raise TypeError("view_copy(): expected a size or a dtype")
    return input.view(size) if dtype is None else input.view(dtype)


# The views, with the parameters of their copies; and those that are several.
_VIEWS = {
    "alias": lambda input: input,
    "as_strided": lambda input, size, stride, storage_offset=None: input.as_strided(size, stride, storage_offset),
    "detach": lambda input: input.detach(),
    "diagonal": lambda input, offset=0, dim1=0, dim2=1: input.diagonal(offset, dim1, dim2),
    "expand": lambda input, size, *, implicit=False: input.expand(size),
    "narrow": lambda input, dim, start, length: input.narrow(dim, start, length),
    "permute": lambda input, dims: input.permute(dims),
    "select": lambda input, dim, index: input.select(dim, index),
    "slice": _slice,
    "squeeze": lambda input, dim=(): input.squeeze() if dim == () else input.squeeze(dim),
    "t": lambda input: input.t(),
    "transpose": lambda input, dim0, dim1: input.transpose(dim0, dim1),
    "unfold": lambda input, dimension, size, step: input.unfold(dimension, size, step),
    "unsqueeze": lambda input, dim: input.unsqueeze(dim),
    "view": _view,
    "view_as_complex": lambda input: FUNCTIONS["view_as_complex"](input),
    "view_as_real": lambda input: FUNCTIONS["view_as_real"](input),
}
_PARTS = {
    "split": lambda input, split_size, dim=0: split(input, operator.index(split_size), dim),
    "split_with_sizes": lambda input, split_sizes, dim=0: split(input, list(split_sizes), dim),
    "unbind": lambda input, dim=0: unbind(input, dim),
}


def _copied(op: str, view, out):
    return write_out(op, clone(view, memory_format=contiguous_format), out)


def _all_copied(op: str, views, out):
    if out is None:
        return tuple([clone(view, memory_format=contiguous_format) for view in views])
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"{op}(): argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    if len(out) != len(views):
        raise RuntimeError(f"{op}: expected out to have {len(views)} tensors, got {len(out)}")
    for view, to in zip(views, out):
        write_out(op, view, to)


def _publish(name: str, view, result: str) -> None:
    view.__name__ = name
    view.__doc__ = (
        f"``{name.removesuffix('_copy')}`` with memory of its own instead of the input's. Follows ``torch.{name}``."
    )
    publish = both if name == "narrow_copy" else function
    publish(outermost(view, result, ("out",), copied=_copied, all_copied=_all_copied))


for _name, _fn in _VIEWS.items():
    _publish(f"{_name}_copy", _fn, "copied(NAME, fn({passed}), out)")
for _name, _fn in _PARTS.items():
    _publish(f"{_name}_copy", _fn, "all_copied(NAME, fn({passed}), out)")
