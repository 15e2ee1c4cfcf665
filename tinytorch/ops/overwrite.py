"""Operators that replace a tensor's values: copy_, fill_, zero_."""

from __future__ import annotations

from ..backends.cpu import lib
from ..backends.native import copy_into, fill_into
from ..tensor import Tensor
from .convert import warn_of_discarded
from .fitting import check_fits
from .declare import function, method, number_parts, operand, overwrite, refuse, scalar_kind

_copy = overwrite("copy_", "CopyBackwards", lambda g: g)
_fill_number = overwrite("fill_", "FillBackward0")
_fill_tensor = overwrite("fill_", "FillBackward1", lambda g: g)
_zero = overwrite("zero_", "ZeroBackward0")


@method
def copy_(self, other, non_blocking=False):
    """Writes ``other``, broadcast and cast, into this tensor; ``non_blocking``: without waiting for a copy between a
    CUDA device and page-locked memory. Follows ``torch.Tensor.copy_``. RuntimeError if its shape does not broadcast
    to this one's."""
    try:
        written = None if non_blocking else copy_into(self, other, _copy.op.writer)
        if written is not None:
            return written
        if not isinstance(other, Tensor):
            other = operand(other, "copy_", "other")
        warn_of_discarded(other, self._h.dtype)
        if not non_blocking:
            return _copy(self, lib.tt_copy, other._h, source=other)
        try:  # Note [Interrupts] in kernels/python/contexts.c
            lib.tt_cuda_non_blocking(1)
            return _copy(self, lib.tt_copy, other._h, source=other)
        finally:
            lib.tt_cuda_non_blocking(0)
    except Exception as exc:
        refuse(exc)
        raise


@function
@method
def fill_(input, value):
    """Writes a number, or the value of a 0-d tensor, everywhere. Follows ``torch.Tensor.fill_``."""
    try:
        written = fill_into(input, value, _fill_number.op.writer)
        if written is not None:
            return written
        if isinstance(value, Tensor):
            if value._h.ndim:
                raise RuntimeError(
                    f"fill_ only supports 0-dimension value tensor but got tensor with {value._h.ndim} dimensions."
                )
            return _fill_tensor(input, lib.tt_copy, value._h, source=value)
        try:
            kind = scalar_kind(value)
        except TypeError:
            raise TypeError(f"fill_(): argument 'value' must be Number, not {type(value).__name__}") from None
        check_fits(input._h.dtype, kind, value)
        return _fill_number(input, lib.tt_fill, *number_parts(kind, value))
    except Exception as exc:
        refuse(exc)
        raise


@function
def fill(input, value):
    """A copy of ``input`` with ``value`` everywhere. Follows ``torch.fill``."""
    return fill_(input.clone(), value)


@function
@method
def zero_(input):
    """Writes zero everywhere. Follows ``torch.Tensor.zero_``."""
    try:
        written = fill_into(input, 0, _zero.op.writer)
        return written if written is not None else _zero(input, lib.tt_fill, lib.TT_KIND_INT, 0.0, 0)
    except Exception as exc:
        refuse(exc)
        raise
