"""Shapes and strides in place: squeeze_, transpose_ and their kin, resize_."""

from __future__ import annotations

from ..autograd.views import CREATION_BITS, FLAG_VIEW, check_inplace, writer_number, wrote
from ..backends.cpu import lib
from ..devices import on_device
from ..tensor import Tensor, wrap
from .declare import ints, method, same_parameters
from .shape import show, squeeze, swapaxes, t, transpose, unsqueeze


def _restrides(fn):
    """``Tensor.<name>_``: this very tensor becomes the view that ``fn`` makes of it."""
    name = fn.__name__ + "_"
    writer = writer_number(name)

    def inplace(self, *args, **kwargs):
        check_inplace(self, name)
        seen = fn(self, *args, **kwargs)
        self._h, seen._h = seen._h, self._h
        bits = FLAG_VIEW | CREATION_BITS
        self._h.flags = self._h.flags & ~bits | seen._h.flags & bits  # not a view of itself
        lib.tt_bump(self._h, writer)
        wrote(self)
        self._h.seen_version = self._h.storage.version
        self._node = seen._node
        return self

    inplace.__name__ = name
    inplace.__doc__ = f"In place: {fn.__doc__}"
    method(inplace, kind="update")
    same_parameters(inplace, fn)


for _fn in (t, transpose, swapaxes, squeeze, unsqueeze):
    _restrides(_fn)
Tensor.swapdims_ = Tensor.transpose_


@method
def resize_(self, size, *rest):
    """Gives this very tensor another shape. Where it grows, its elements keep their order and the new ones have no
    defined value. RuntimeError if it requires grad. Follows ``torch.Tensor.resize_``."""
    sizes = ints((size, *rest))
    if self._node is not None:
        raise RuntimeError("cannot resize variables that require grad")
    h = wrap(on_device(self.device, lib.tt_empty, self._h.dtype, len(sizes), sizes))
    n = min(self._h.numel, h._h.numel)
    if n:
        old = show(self, [n], [1], self.storage_offset()) if self.is_contiguous() else self.reshape(-1)[:n]
        start = show(h, [n], [1], 0)
        lib.tt_copy(start._h, old._h)
    self._h, h._h = h._h, self._h
    return self


@method
def resize_as_(self, the_template):
    """``resize_`` to another tensor's shape."""
    return self.resize_(the_template.shape)
