"""``Variable``: what tensors with history were called once. Old programs make and test for them."""

from __future__ import annotations

from _thread import get_ident

from ..tensor import FUNCTIONS, Tensor, owned
from . import engine
from .leaf import make_leaf

__all__ = ["Variable"]


class _IsTensor(type):
    def __instancecheck__(cls, instance):
        return isinstance(instance, Tensor)


class _Engine:
    """The engine as programs with hooks know it: ``Variable._execution_engine``."""

    @staticmethod
    def queue_callback(callback) -> None:
        """Calls ``callback()`` when the backward that now runs in this thread has ended."""
        engine.afterwards.setdefault(get_ident(), []).append(callback)


class Variable(metaclass=_IsTensor):
    """``Variable(data, requires_grad)`` is a leaf on the memory of ``data``; every Tensor is an instance. Follows
    ``torch.autograd.Variable``."""

    _execution_engine = _Engine()

    def __new__(cls, data=None, requires_grad=False, volatile=None):
        if data is None:
            return FUNCTIONS["empty"](0)
        if not isinstance(data, Tensor):
            raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
        made = owned.tt_alias(data._h)
        return make_leaf(made) if requires_grad else made
