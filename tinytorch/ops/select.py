"""Elements chosen by a condition, a mask or bounds: where, masked_fill, clamp."""

from __future__ import annotations

import warnings

from ..backends.cpu import lib
from ..dtypes import bool as _bool
from ..tensor import Tensor
from ..warn_once import first_time
from .convert import can_cast
from .declare import both, composite, function, method, refuse
from .fitting import fitted
from .pointwise import _clamp, _clamp_max, _clamp_min, _masked_fill, _where


def _as_bool(condition):
    """The condition; a bool tensor of one of uint8, which PyTorch takes, too."""
    if not isinstance(condition, Tensor) or condition._h.dtype != lib.TT_U8:
        return condition
    if first_time("conditions of uint8"):
        warnings.warn("where: a condition of dtype uint8 is deprecated, use one of bool", stacklevel=3)
    return condition != 0


@function
def where(condition, input=None, other=None, *, out=None):
    """``input`` where the bool tensor ``condition`` holds, else ``other``; all three broadcast. With the condition
    alone, the indices where it holds, as ``nonzero(as_tuple=True)``. Follows ``torch.where``.

    Args:
        condition: a bool tensor; one of uint8 holds where it is not 0, and warns
        input: a tensor, or a number
        other: a tensor, or a number
    Returns:
        A tensor of the shape that the three broadcast to and the dtype that ``input`` and ``other`` promote to.
    Raises:
        RuntimeError: the shapes do not broadcast, or ``condition`` is not bool
    """
    try:
        if input is None and other is None and out is None:
            return condition.nonzero(as_tuple=True)
        if out is not None:
            for name, t in (("input", input), ("other", other)):
                if not isinstance(t, Tensor):
                    raise TypeError(f"where(): argument '{name}' must be Tensor, not {type(t).__name__}")
        return _where(_as_bool(condition), input, other, out=out)
    except Exception as exc:
        refuse(exc)
        raise


@both
def masked_fill(input, mask, value):
    """``input`` with ``value`` (a number or 0-d tensor) where the bool tensor ``mask`` holds.

    Args:
        mask: a bool tensor, broadcast with ``input``
        value: a number, or a 0-d tensor
    Returns:
        A tensor of the dtype of ``input``.
    Raises:
        RuntimeError: ``mask`` is not bool, or the dtype cannot hold ``value``
    """
    try:
        return _masked_fill(*_masked("masked_fill", input, mask, value))
    except Exception as exc:
        refuse(exc)
        raise


@method
def where(self, condition, other):  # noqa: F811
    """``self`` where ``condition`` holds, else ``other``."""
    try:
        return _where(_as_bool(condition), self, other)
    except Exception as exc:
        refuse(exc)
        raise


def _masked(op, input, mask, value):
    """The arguments of ``where`` that fill ``value`` into ``input``, whose dtype stays."""
    if not isinstance(mask, Tensor):
        raise TypeError(f"{op}(): argument 'mask' must be Tensor, not {type(mask).__name__}")
    if mask.dtype is not _bool:
        raise RuntimeError(f"{op}: expected mask to be a bool tensor, got {mask.dtype!r}")
    if isinstance(value, Tensor):
        if value.ndim:
            raise RuntimeError(f"{op}: value must be a number or 0-dimensional, got shape {tuple(value.shape)}")
        if not can_cast(value.dtype, input.dtype):
            raise RuntimeError(f"{op}: value of dtype {value.dtype.name} cannot be converted to {input.dtype.name}")
        return mask, value.to(input.dtype), input
    return mask, fitted(value, input._h.dtype), input


@method
def masked_fill_(self, mask, value):
    """In place: ``value`` where ``mask`` holds."""
    try:
        return _masked_fill.op.write(self, _masked("masked_fill_", self, mask, value), "masked_fill_")
    except Exception as exc:
        refuse(exc)
        raise


_SMALL = 65504.0  # the largest number of float16


def _bounds(op, input, min, max):
    if min is None and max is None:
        raise RuntimeError(f"{op}: At least one of 'min' or 'max' must not be None")
    # One bound alone is maximum or minimum; both in one pass.
    if min is None or max is None:
        pick, bound = (_clamp_max, max) if min is None else (_clamp_min, min)
        if type(bound) is float and not -_SMALL <= bound <= _SMALL and input.is_floating_point():
            fitted(bound, input._h.dtype)  # C's way for few elements and a number does not look
        return pick, (input, bound)
    return _clamp, (input, min, max)


@both
def clamp(input, min=None, max=None, *, out=None):
    """``input`` with values below ``min`` or above ``max`` replaced by them (numbers or tensors). The gradient flows
    where the value was kept. Follows ``torch.clamp``.

    Args:
        min: a number, a tensor or None
        max: a number, a tensor or None
    Returns:
        A tensor of the shape that the inputs broadcast to.
    Raises:
        RuntimeError: neither bound is given, or the shapes do not broadcast
    """
    try:
        fn, args = _bounds("clamp", input, min, max)
        return fn(*args) if out is None else fn.op.write(out, args, "clamp")
    except Exception as exc:
        refuse(exc)
        raise


@both(kind="update")
def clamp_(input, min=None, max=None):
    """``clamp`` in place."""
    try:
        fn, args = _bounds("clamp_", input, min, max)
        return fn.op.write(input, args, "clamp_")
    except Exception as exc:
        refuse(exc)
        raise


@composite
def clamp_min(input, min):
    """``clamp`` from below alone."""
    return clamp(input, min)


@composite
def clamp_max(input, max):
    """``clamp`` from above alone."""
    return clamp(input, None, max)
