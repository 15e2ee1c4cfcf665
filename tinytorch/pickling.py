"""Pickling and copying of tensors. Views that share a storage share one again afterwards.

A tensor is reduced to its storage and its place in it; a pickler, or a deepcopy's memo, holds the storage, and so sees
that it is the same.
"""

from __future__ import annotations

import copy

from .autograd.leaf import make_leaf
from .backends.cpu import error, lib
from .backends.native import owned_result
from .dtypes import dtype
from .storage import UntypedStorage, load_storage, storage_of, vector  # noqa: F401 (pickles name load_storage here)
from .tensor import Tensor


def rebuild(cls, storage: UntypedStorage, of: dtype, shape, stride, offset: int, requires_grad: bool) -> Tensor:
    """The tensor at this place of a storage, without history."""
    whole = vector(storage.whole, of)
    t = owned_result(cls, lib.tt_view)(whole._h, len(shape), shape, stride, offset)
    if t is None:
        raise error("unpickling")
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


def set_state(t: Tensor, state) -> None:
    """Gives a tensor what pickle kept beside its elements."""
    if state is None:
        return
    if hasattr(t, "__setstate__"):
        t.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    t.__dict__.update(attributes or {})
    for name, value in (slots or {}).items():
        setattr(t, name, value)


def rebuild_with_state(make, args: tuple, state) -> Tensor:
    """The tensor that ``make`` makes, with its attributes."""
    t = make(*args)
    set_state(t, state)
    return t


def reduces_itself(cls: type) -> bool:
    """Has a class of tensors a ``__reduce_ex__`` that is not the library's?"""
    return next(c for c in cls.__mro__ if "__reduce_ex__" in vars(c)).__module__.partition(".")[0] != __package__


def reduced(t: Tensor, make, args: tuple, state) -> tuple:
    """What ``__reduce_ex__`` gives: a function, its arguments, and the state apart, so that it may hold the tensor. A
    class that has one of its own calls this one for a pair, as PyTorch's is, takes it apart and adds to it."""
    if state is None:
        return make, args
    return (rebuild_with_state, (make, args, state)) if reduces_itself(type(t)) else (make, args, state)


def __reduce_ex__(self, protocol):
    """How pickle and copy make the tensor again: its storage, its place in it, and the attributes set on it."""
    return reduced(self, rebuild, (type(self), storage_of(self), *_place(self)), state_of(self))


def __deepcopy__(self, memo):
    """A copy of a leaf and of its ``grad``. RuntimeError for computed tensors. Follows PyTorch's deepcopy."""
    if not isinstance(memo, dict):
        raise TypeError(f"__deepcopy__(): argument 'memo' must be dict, not {type(memo).__name__}")
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
