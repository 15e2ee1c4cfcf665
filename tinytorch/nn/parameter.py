"""Parameters and buffers: tensors that a Module takes note of when they become its attributes."""

from __future__ import annotations

from ..autograd.node import alias
from ..backends.cpu import ffi
from ..dtypes import get_default_dtype
from ..torch_function import _disabled_torch_function_impl
from ..tensor import Tensor, as_class, owned

__all__ = ["Buffer", "Parameter"]


def _share(cls, data: Tensor | None):
    """A tensor of class ``cls`` on the memory of ``data``, without history."""
    if data is None:
        data = owned.tt_empty(get_default_dtype().code, 1, ffi.new("int64_t[]", [0]))
    elif not isinstance(data, Tensor):
        raise TypeError(f"{cls.__name__}: argument 'data' must be Tensor, not {type(data).__name__}")
    made = as_class(data, cls)
    made._grad = None
    return made


class Parameter(Tensor):
    """A leaf tensor that a Module lists among its ``parameters()``. It shares the memory of ``data``. Follows
    ``torch.nn.Parameter``; RuntimeError for a dtype that has no gradients, unless ``requires_grad=False``."""

    __slots__ = ()
    __hash__ = object.__hash__
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data=None, requires_grad=True):
        if requires_grad and isinstance(data, Tensor) and not data.dtype.is_floating_point:
            raise RuntimeError(
                f"Parameter: Only Tensors of floating point dtype can require gradients, got {data.dtype.name}"
            )
        made = _share(cls, data)
        if requires_grad:
            made.requires_grad_()
        return made

    def __init__(self, data=None, requires_grad=True):
        """All is done in ``__new__``."""

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(owned.tt_clone(self._h), self._node is not None)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return _rebuild, (type(self), alias(self), self._node is not None), self.__dict__ or None

    def __repr__(self):
        return "Parameter containing:\n" + super().__repr__()


class Buffer(Tensor):
    """A tensor that a Module lists among its ``buffers()``; part of the state dict if ``persistent``. Follows
    ``torch.nn.Buffer``."""

    __slots__ = ("persistent",)
    __hash__ = object.__hash__
    __torch_function__ = _disabled_torch_function_impl

    def __new__(cls, data=None, *, persistent=True):
        made = _share(cls, data)
        made.persistent = persistent
        return made

    def __init__(self, data=None, *, persistent=True):
        """All is done in ``__new__``."""

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(owned.tt_clone(self._h), persistent=self.persistent)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return _rebuild_buffer, (type(self), alias(self), self.persistent), self.__dict__ or None


def _rebuild(cls, data, requires_grad):
    return cls(data, requires_grad)


def _rebuild_buffer(cls, data, persistent):
    return cls(data, persistent=persistent)
