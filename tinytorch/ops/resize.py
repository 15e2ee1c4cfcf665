"""Shapes and strides in place: squeeze_, transpose_ and their kin, resize_."""

from __future__ import annotations

import math

from ..autograd.modes import is_grad_enabled
from ..autograd.views import CREATION_BITS, FLAG_VIEW, check_inplace, refuse_inference, writer_number, wrote
from ..backends.cpu import error, lib
from ..devices import on_device
from ..layouts import channels_last, channels_last_3d, contiguous_format, preserve_format, strides_of
from ..storage import TypedStorage, UntypedStorage, vector
from ..tensor import Tensor, owned
from .declare import both, ints, method, same_parameters
from .permute import swapaxes, t, transpose
from .slicing import as_strided
from .shape import contiguous_strides, show, unsqueeze


def _restrides(fn):
    """``Tensor.<name>_``: this very tensor becomes the view that ``fn`` makes of it."""
    name = fn.__name__ + "_"
    writer = writer_number(name)

    def inplace(self, *args, **kwargs):
        if not isinstance(self, Tensor):
            raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(self).__name__}")
        check_inplace(self, name)
        seen = fn(self, *args, **kwargs)
        self._h, seen._h = seen._h, self._h
        bits = FLAG_VIEW | CREATION_BITS
        self._h.flags = self._h.flags & ~bits | seen._h.flags & bits  # not a view of itself
        lib.tt_bump(self._h, writer)
        wrote(self)
        self._h.seen_version = lib.tt_version_of(self._h)
        self._node = seen._node
        return self

    inplace.__name__ = name
    inplace.__doc__ = f"In place: {fn.__doc__}"
    (both if fn is as_strided else method)(inplace, kind="update")
    same_parameters(inplace, fn)


for _fn in (t, transpose, swapaxes, Tensor.squeeze, unsqueeze, as_strided):
    _restrides(_fn)
Tensor.swapdims_ = Tensor.transpose_


@method
def resize_(self, size, *rest, memory_format=None):
    """Gives this very tensor another shape, over the memory that it has, in the order in which elements lie there.
    Where that is too small, it gets new memory, which begins with the old elements; the others have no defined value.
    RuntimeError if it requires grad. Follows ``torch.Tensor.resize_``."""
    sizes = ints((size, *rest))
    if self._node is not None:
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format is not None:
        strides = strides_of(sizes, memory_format, "resize_")
        self.resize_(sizes)
        return _replaced(self, show(self, sizes, strides, self.storage_offset()), "resize_")
    if sizes == self.shape:
        return _moved(self, "resize_")
    room = self._h.storage.nbytes // self.itemsize - self.storage_offset()
    n = math.prod(sizes)
    if 0 <= n <= room:
        h = show(self, sizes, contiguous_strides(sizes), self.storage_offset())
        h._h.flags |= self._h.flags & (FLAG_VIEW | CREATION_BITS)
        _replaced(self, h, "resize_")
        self._h.seen_version = lib.tt_version_of(self._h)
        return self
    h = on_device(self.device, owned.tt_empty, self._h.dtype, len(sizes), sizes)
    if room > 0:
        old, start = show(self, [room], [1], self.storage_offset()), show(h, [room], [1], 0)
        if lib.tt_copy(start._h, old._h, -1) < 0:
            raise error("resize_")
    return _replaced(self, h, "resize_")


def _replaced(t, by, name):
    """Gives ``t`` the memory of ``by``. It counts as a write: backward finds that what was saved is gone."""
    refuse_inference(t, name)
    if lib.tt_keep_counter(by._h, t._h) < 0:
        raise error(name)
    t._h, by._h = by._h, t._h
    return _moved(t, name)


def _moved(t, name):
    lib.tt_bump(t._h, writer_number(name))
    wrote(t)
    return t


@method
def set_(self, source=None, storage_offset=0, size=None, stride=None):
    """Makes this very tensor show another one's memory, or a storage: as that tensor does, or all of the storage, or,
    with ``size``, ``stride`` (row-major if left out) and ``storage_offset``, in another way; without ``source`` it
    becomes empty. RuntimeError for another dtype or device, a layout beyond the memory, or a tensor that requires grad.
    Follows ``torch.Tensor.set_``."""
    if source is None:
        by = self.new_empty(0)
    elif not isinstance(source, (Tensor, UntypedStorage, TypedStorage)):
        raise TypeError(f"set_(): argument 'source' must be Tensor or a storage, not {type(source).__name__}")
    else:
        shown = _of_dtype(source, self)
        if shown.dtype is not self.dtype or shown.device != self.device:
            raise RuntimeError(
                f"Could not set tensor of type {shown.dtype} on {shown.device} to a tensor of type {self.dtype} on "
                f"{self.device}"
            )
        if size is None:
            by = owned.tt_alias(shown._h)
        else:
            size = ints((size,))
            by = show(shown, size, contiguous_strides(size) if stride is None else ints((stride,)), storage_offset)
    check_inplace(self, "set_")
    if self._node is not None and is_grad_enabled():
        raise RuntimeError("cannot set_ the memory of a tensor that requires grad")
    return _replaced(self, by, "set_")


def _of_dtype(source, t):
    """A tensor, or all of a storage, of bytes as elements of the dtype of ``t``."""
    if isinstance(source, Tensor):
        return source
    if isinstance(source, TypedStorage):
        return vector(source.untyped().whole, source.dtype)
    return vector(source.whole, t.dtype)


@both(kind="update")
def resize_as_(input, the_template, *, memory_format=None):
    """``resize_`` to another tensor's shape."""
    if memory_format is preserve_format:
        dense = [f for f in (contiguous_format, channels_last, channels_last_3d) if the_template.is_contiguous(f)]
        memory_format = dense[0] if dense else contiguous_format
    return input.resize_(the_template.shape, memory_format=memory_format)
