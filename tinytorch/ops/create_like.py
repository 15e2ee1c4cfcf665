"""Operators: creation after another tensor's shape, dtype and device."""

from __future__ import annotations

from ..backends.cpu import check, lib
from ..devices import on_device
from ..dtypes import dtype_code
from ..layouts import preserve_format, strides_of
from ..tensor import Tensor, attempted, owned
from .create import code_of, finish, full_tensor, pinned, size_argument, sizes, tensor
from .declare import both, function, method, number_parts, refuse, scalar_kind
from .fitting import check_fits


def empty_as(input: Tensor, dtype, memory_format, device, op: str):
    """A descriptor with the shape of ``input``, its order of dimensions in memory, and its dtype and device unless
    others are given."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{op}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    code = input._h.dtype if dtype is None else dtype_code(dtype, op)
    plain = memory_format is preserve_format or memory_format is None
    if plain and device is None:
        return attempted.tt_empty_like(input._h, code)
    shape = input.shape
    strides = like_strides(input) if plain else strides_of(shape, memory_format, op)
    return on_device(
        input.device if device is None else device, attempted.tt_empty_strided, code, len(shape), shape, strides
    )


def like_strides(input: Tensor) -> tuple[int, ...]:
    """The strides of ``empty_like``: without gaps, in the order of the input's."""
    return owned.tt_empty_like(input._h, lib.TT_BOOL).stride()


@function
def empty_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=preserve_format
) -> Tensor:
    """A tensor like ``input`` whose values are whatever the memory held. Follows ``torch.empty_like``.

    Returns:
        A tensor of the shape of ``input``, and of its dtype and device unless others are given.
    """
    try:
        made = empty_as(input, dtype, memory_format, device, "empty_like")
        return finish(made, "empty_like", requires_grad, pin_memory)
    except Exception as exc:
        refuse(exc)
        raise


@function
def full_like(
    input,
    fill_value,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    memory_format=preserve_format,
) -> Tensor:
    """A tensor like ``input`` filled with a number. Follows ``torch.full_like``.

    Args:
        fill_value: a number
    Returns:
        A tensor of the shape of ``input``, and of its dtype and device unless others are given.
    Raises:
        RuntimeError: the dtype cannot hold the number
    """
    try:
        if isinstance(fill_value, Tensor):
            fill_value = fill_value.item()
        return _filled_like(input, fill_value, dtype, device, requires_grad, pin_memory, memory_format, "full_like")
    except Exception as exc:
        refuse(exc)
        raise


def _filled_like(input, value, dtype, device, requires_grad, pin_memory, memory_format, op: str) -> Tensor:
    made = empty_as(input, dtype, memory_format, device, op)
    if made is not None:
        kind = scalar_kind(value)
        out = finish(made, op)
        check_fits(out._h.dtype, kind, value)
        check(lib.tt_fill(out._h, *number_parts(kind, value), -1), op)
        out = pinned(out, op) if pin_memory else out
        return out.requires_grad_() if requires_grad else out
    return finish(made, op)


@function
def zeros_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=preserve_format
) -> Tensor:
    """A tensor like ``input`` filled with 0. Follows ``torch.zeros_like``. Otherwise like ``empty_like``."""
    try:
        return _filled_like(input, 0, dtype, device, requires_grad, pin_memory, memory_format, "zeros_like")
    except Exception as exc:
        refuse(exc)
        raise


@function
def ones_like(
    input, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, memory_format=preserve_format
) -> Tensor:
    """A tensor like ``input`` filled with 1. Follows ``torch.ones_like``. Otherwise like ``empty_like``."""
    try:
        return _filled_like(input, 1, dtype, device, requires_grad, pin_memory, memory_format, "ones_like")
    except Exception as exc:
        refuse(exc)
        raise


@method
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False) -> Tensor:
    """A copy of ``data`` in this tensor's dtype. Follows ``torch.Tensor.new_tensor``."""
    try:
        return tensor(
            data,
            dtype=self.dtype if dtype is None else dtype,
            device=self.device if device is None else device,
            requires_grad=requires_grad,
            pin_memory=pin_memory,
        )
    except Exception as exc:
        refuse(exc)
        raise


@method
def new_empty(
    self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **named
) -> Tensor:
    """A tensor of shape ``size`` in this tensor's dtype, values undefined. Follows ``torch.Tensor.new_empty``."""
    shape = sizes(size_argument("new_empty", size, named) if named else size, "new_empty")
    code = self._h.dtype if dtype is None else dtype_code(dtype, "new_empty")
    where = self.device if device is None else device
    return finish(on_device(where, attempted.tt_empty, code, len(shape), shape), "new_empty", requires_grad, pin_memory)


@method
def new_full(
    self, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False
) -> Tensor:
    """A tensor of shape ``size`` filled with a number, in this tensor's dtype. Follows ``torch.Tensor.new_full``."""
    try:
        if isinstance(fill_value, Tensor):
            fill_value = fill_value.item()
        shape = sizes((size,), "new_full")
        code = self._h.dtype if dtype is None else dtype_code(dtype, "new_full")
        kind = scalar_kind(fill_value)
        where = self.device if device is None else device
        return finish(full_tensor(code, shape, kind, fill_value, where), "new_full", requires_grad, pin_memory)
    except Exception as exc:
        refuse(exc)
        raise


def _new_filled(op: str, value: int):
    def create(self, *size, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False, **named):
        shape = sizes(size_argument(op, size, named) if named else size, op)
        code = self._h.dtype if dtype is None else dtype_code(dtype, op)
        where = self.device if device is None else device
        made = on_device(where, attempted.tt_full, code, len(shape), shape, lib.TT_KIND_INT, 0.0, value)
        return finish(made, op, requires_grad, pin_memory)

    create.__name__ = create.__qualname__ = op
    create.__doc__ = (
        f"A tensor of shape ``size`` filled with {value}, in this tensor's dtype. Follows ``torch.Tensor.{op}``."
    )
    return method(create)


_new_filled("new_zeros", 0)
_new_filled("new_ones", 1)


@function
def empty_strided(
    size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A tensor of this shape and these strides, values undefined. Follows ``torch.empty_strided``."""
    shape, steps = sizes((size,), "empty_strided"), sizes((stride,), "empty_strided")
    if len(shape) != len(steps):
        raise RuntimeError(
            f"empty_strided: dimensionality of sizes ({len(shape)}) must match dimensionality of strides ({len(steps)})"
        )
    made = on_device(device, attempted.tt_empty_strided, code_of(dtype, "empty_strided"), len(shape), shape, steps)
    return finish(made, "empty_strided", requires_grad, pin_memory)


@function
def empty_permuted(
    size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A dense tensor, values undefined, whose dimensions lie in memory in the order ``physical_layout``, the outermost
    first. Follows ``torch.empty_permuted``."""
    shape, order = sizes((size,), "empty_permuted"), sizes((physical_layout,), "empty_permuted")
    if len(shape) != len(order):
        raise RuntimeError(
            "empty_permuted: Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(shape)} is not equal to len(physical_layout) = {len(order)}"
        )
    if sorted(order) != list(range(len(order))):
        raise RuntimeError(f"empty_permuted: every dimension once expected in physical_layout, got {tuple(order)}")
    steps, reach = [0] * len(shape), 1
    for d in reversed(order):
        steps[d], reach = reach, reach * max(shape[d], 1)
    return empty_strided(shape, steps, dtype=dtype, device=device, requires_grad=requires_grad, pin_memory=pin_memory)


@method
def new_empty_strided(
    self, size, stride, *, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False
) -> Tensor:
    """``empty_strided`` in this tensor's dtype. Follows ``torch.Tensor.new_empty_strided``."""
    return empty_strided(
        size,
        stride,
        dtype=self.dtype if dtype is None else dtype,
        device=self.device if device is None else device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )


@both(kind="query")
def is_same_size(input, other) -> bool:
    """Have both tensors the same shape?"""
    return input.shape == other.shape
