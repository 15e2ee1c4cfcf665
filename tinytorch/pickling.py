"""Pickling and copying of tensors. Views that share a storage share one again afterwards.

A tensor is reduced to its storage and its place in it; the storage is an object of its own, one as long as somebody
(a pickler, a deepcopy's memo) holds it, so that these see that it is the same.
"""

from __future__ import annotations

import copy
import weakref

from .autograd.leaf import make_leaf
from .autograd.node import address
from .backends.cpu import check, error, ffi, lib
from .backends.native import owner
from .dtypes import dtype, uint8
from .tensor import Tensor, wrap


class Storage:
    """A tensor's whole memory, as a vector of bytes: elements of its dtype need not fill all of it."""

    __slots__ = ("whole", "__weakref__")
    _alive: weakref.WeakValueDictionary = weakref.WeakValueDictionary()

    def __init__(self, whole: Tensor):
        self.whole = whole

    def __reduce__(self):
        where = (str(self.whole.device),) if self.whole.is_cuda else ()
        return load_storage, (content_of(self.whole), *where)

    def __deepcopy__(self, memo):
        return Storage(wrap(lib.tt_contiguous(self.whole._h)))


def storage_of(t: Tensor) -> Storage:
    """The Storage of ``t``: the same object for all tensors on it while it lives."""
    key = address(t)
    found = Storage._alive.get(key)
    if found is None:
        found = Storage._alive[key] = Storage(vector(t, uint8))
    return found


def vector(t: Tensor, of: dtype) -> Tensor:
    """As many elements of a dtype as the whole memory of ``t`` has room for, without history."""
    nothing = wrap(lib.tt_view(t._h, 1, (0,), (1,), 0))  # which may be viewed as any dtype
    same = wrap(lib.tt_view_dtype(nothing._h, of.code))
    return wrap(lib.tt_view(same._h, 1, (t._h.storage.nbytes // of.itemsize,), (1,), 0))


def content_of(whole: Tensor) -> bytes:
    """The bytes of a vector of them, wherever it is."""
    here = whole.cpu()
    h = here._h
    check(lib.tt_sync(h, 0), "pickling")
    return bytes(ffi.buffer(h.data, h.numel)) if h.numel else b""


def bytes_on_cpu(data: bytes) -> Tensor:
    """A vector of these bytes. OutOfMemoryError when there is no memory for them."""
    made = wrap(lib.tt_empty(uint8.code, 1, (len(data),)))
    if data:
        ffi.memmove(made._h.data, data, len(data))
    return made


def load_storage(data: bytes, where: str = "cpu") -> Storage:
    """A Storage of these bytes on a device. RuntimeError when it is not there."""
    return Storage(bytes_on_cpu(data).to(where))


def rebuild(cls, storage: Storage, of: dtype, shape, stride, offset: int, requires_grad: bool) -> Tensor:
    """The tensor at this place of a storage, without history."""
    whole = vector(storage.whole, of)
    h = lib.tt_view(whole._h, len(shape), shape, stride, offset)
    if not h:
        raise error("unpickling")
    t = owner(cls)(h)
    if requires_grad:
        make_leaf(t)
    return t


def _place(self) -> tuple:
    return self.dtype, tuple(self.shape), self.stride(), self.storage_offset(), self.requires_grad


def slots_of(cls: type) -> set[str]:
    """The names of the ``__slots__`` of a class and its bases; of a kind of tensor, those that it has beyond Tensor."""
    names = set()
    for base in cls.__mro__:
        if base is Tensor:
            break
        slots = base.__dict__.get("__slots__", ())
        names.update((slots,) if isinstance(slots, str) else slots)
    return names - {"__dict__", "__weakref__"}


def state_of(t: Tensor):
    """What pickle keeps of a tensor beside its elements: what its class's ``__getstate__`` gives, or its attributes,
    with a dictionary of those in slots of its class, if there are any."""
    if getattr(type(t), "__getstate__", None) is not getattr(object, "__getstate__", None):
        return t.__getstate__()
    slots = {name: getattr(t, name) for name in slots_of(type(t)) if hasattr(t, name)}
    return (t.__dict__ or None, slots) if slots else t.__dict__ or None


def __reduce_ex__(self, protocol):
    """How pickle and copy make the tensor again: its storage, its place in it, and the attributes set on it."""
    return rebuild, (type(self), storage_of(self), *_place(self)), state_of(self)


def __deepcopy__(self, memo):
    """A copy of a leaf and of its ``grad``. RuntimeError for computed tensors. Follows PyTorch's deepcopy."""
    if id(self) in memo:
        return memo[id(self)]
    if not self.is_leaf:
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol "
            "at the moment. If you were attempting to deepcopy a module, this may be because of a "
            "computed tensor among its attributes."
        )
    t = rebuild(type(self), copy.deepcopy(storage_of(self), memo), *_place(self))
    memo[id(self)] = t
    if self.grad is not None:
        t._grad = copy.deepcopy(self.grad, memo)
    if self.__dict__:
        t.__dict__.update(copy.deepcopy(self.__dict__, memo))
    for name in slots_of(type(self)):
        if hasattr(self, name):
            setattr(t, name, copy.deepcopy(getattr(self, name), memo))
    return t


Tensor.__reduce_ex__, Tensor.__deepcopy__ = __reduce_ex__, __deepcopy__
