"""Operators: the memory beneath tensors, and memory that processes share."""

from __future__ import annotations

from ..autograd.views import CREATION_BITS, FLAG_VIEW, base_of
from ..backends.cpu import error, lib
from ..dtypes import uint8
from ..shared_memory import block_of, shared_copy
from ..storage import TypedStorage, UntypedStorage, held_storage, storage_of, typed, vector, warn_of_typed_storage
from .declare import function, method
from .shape import show


@method(kind="query")
def untyped_storage(self):
    """The whole memory that this tensor and its views show, as bytes: the same object for all of them while it lives.
    Follows ``torch.Tensor.untyped_storage``."""
    return storage_of(self)


@method(kind="query")
def storage(self):
    """The whole memory that this tensor and its views show, as elements of its dtype; deprecated, with a warning.
    Follows ``torch.Tensor.storage``."""
    warn_of_typed_storage(4)
    return typed(storage_of(self), self.dtype)


@function(kind="query")
def is_storage(obj):
    """Is ``obj`` a storage? Follows ``torch.is_storage``."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


@method(kind="query")
def is_shared(self):
    """Is it in memory that other processes can have? All memory of devices is. Follows ``torch.Tensor.is_shared``."""
    return self.is_cuda or block_of(self) is not None


@method(kind="query")
def share_memory_(self):
    """Moves the elements to memory that other processes can have; nothing for a tensor that is there already, or on a
    device. Returns this very tensor. Follows ``torch.Tensor.share_memory_``.

    Raises:
        RuntimeError: other tensors show the same memory
    """
    if self.is_shared() or not self.numel():
        return self
    if lib.tt_sync(self._h, 1) < 0:
        raise error("share_memory_")
    base, held = base_of(self), held_storage(self)
    moving = [self] if base is None else [self, base]
    if self._h.storage.refs > len(moving) + (held is not None):
        raise RuntimeError("share_memory_: other tensors show the same memory, and would not move with this one")
    whole = shared_copy(vector(self, uint8))
    for t in moving:
        by = show(vector(whole, t.dtype), t.shape, t.stride(), t.storage_offset())
        by._h.flags |= t._h.flags & (FLAG_VIEW | CREATION_BITS)
        by._h.seen_version = t._h.seen_version
        if lib.tt_keep_counter(by._h, t._h) < 0:
            raise error("share_memory_")
        t._h, by._h = by._h, t._h
    if held is not None:
        held.move_to(whole)
    return self
