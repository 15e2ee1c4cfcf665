"""Operators that replace a tensor's values: copy_, fill_, zero_, and the pattern of every such write."""

from __future__ import annotations

from ..autograd.node import link, need_extra, node_class
from ..autograd.views import FLAG_VIEW, check_inplace, rebase, writer_number, wrote
from ..backends.cpu import error, lib
from ..tensor import Tensor
from .create import check_fits
from .declare import function, method, operand, requires, scalar_kind


def _nothing(g):
    return g.new_zeros(()).expand(g.shape)


def _plain(t: Tensor) -> bool:
    """Has ``t`` no history, and can it get none by a write to its base?"""
    return t._node is None and not t._h.flags & FLAG_VIEW


class Overwrite:
    """An in-place operator after which nothing is left of the old values: their gradient is zero."""

    def __init__(self, name: str, title: str | None = None, source=None):
        """``source(g, ...)``: the gradient of the tensor that is written into it, if there is one."""
        self.name = name
        self.writer = writer_number(name)
        vjps = {"input": _nothing, **({"source": source} if source else {})}
        self.node = node_class(name, tuple(vjps), vjps, title=title)

    def __call__(self, out: Tensor, write, *args, source: Tensor | None = None) -> Tensor:
        """Runs ``write(out._h, *args)``, a C function that returns a status, and records it."""
        if _plain(out) and (source is None or _plain(source)):
            recording = False
        else:
            recording = requires(out, source) and out._h.dtype >= 6
            check_inplace(out, self.name, recording)
        if recording:
            edges = (out._node,) if source is None else (out._node, source._node)
        if write(out._h, *args) < 0:
            raise error(self.name)
        lib.tt_bump(out._h, self.writer)
        wrote(out)
        if recording:
            node = link(self.node, edges, (), ())
            if source is not None and (source.shape != out.shape or source._h.dtype != out._h.dtype or
                                       source.device is not out.device):
                need_extra(node).adjust = (None, (source.shape, source.dtype, source.device))
            rebase(out, node)
        return out


_copy = Overwrite("copy_", "CopyBackwards", lambda g: g)
_fill_number = Overwrite("fill_", "FillBackward0")
_fill_tensor = Overwrite("fill_", "FillBackward1", lambda g: g)
_zero = Overwrite("zero_", "ZeroBackward0")


@method
def copy_(self, src, non_blocking=False):
    """Writes ``src``, broadcast and cast, into this tensor; ``non_blocking``: without waiting for a copy between a CUDA
    device and page-locked memory. Follows ``torch.Tensor.copy_``. RuntimeError if its shape does not broadcast to this
    one's."""
    if not isinstance(src, Tensor):
        src = operand(src, "copy_", "other")
    if not non_blocking:
        return _copy(self, lib.tt_copy, src._h, source=src)
    try:  # Note [Interrupts] in kernels/cpu/py_contexts.c
        lib.tt_cuda_non_blocking(1)
        return _copy(self, lib.tt_copy, src._h, source=src)
    finally:
        lib.tt_cuda_non_blocking(0)


@function
@method
def fill_(input, value):
    """Writes a number, or the value of a 0-d tensor, everywhere. Follows ``torch.Tensor.fill_``."""
    if isinstance(value, Tensor):
        if value._h.ndim:
            raise RuntimeError("fill_ only supports 0-dimension value tensor but got tensor with "
                               f"{value._h.ndim} dimensions.")
        return _fill_tensor(input, lib.tt_copy, value._h, source=value)
    try:
        kind = scalar_kind(value)
    except TypeError:
        raise TypeError(f"fill_(): argument 'value' must be Number, not {type(value).__name__}") from None
    check_fits(input._h.dtype, kind, value)
    if kind == 2:
        return _fill_number(input, lib.tt_fill, 2, float(value), 0)
    return _fill_number(input, lib.tt_fill, kind, 0.0, int(value))


@function
def fill(input, value):
    """A copy of ``input`` with ``value`` everywhere. Follows ``torch.fill``."""
    return fill_(input.clone(), value)


@function
@method
def zero_(input):
    """Writes zero everywhere. Follows ``torch.Tensor.zero_``."""
    return _zero(input, lib.tt_fill, 1, 0.0, 0)
