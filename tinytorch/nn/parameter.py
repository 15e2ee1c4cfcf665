"""Parameters and buffers: tensors that a Module takes note of when they become its attributes."""

from __future__ import annotations

from ..autograd.node import AccumulateGrad, alias
from ..backends.cpu import ffi
from ..backends.native import TensorBase
from ..dtypes import get_default_dtype
from ..ops.create import empty
from ..pickling import reduced, state_of
from ..torch_function import _disabled_torch_function_impl
from ..tensor import Tensor, as_class, operator_above, owned

__all__ = [
    "Buffer",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "UninitializedTensorMixin",
    "is_lazy",
]


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

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(owned.tt_clone(self._h), self._node is not None)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return reduced(self, _rebuild, (type(self), alias(self), self._node is not None), state_of(self))

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

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(owned.tt_clone(self._h), persistent=getattr(self, "persistent", True))
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        persistent = getattr(self, "persistent", True)  # a class of one's own need not set it
        return reduced(self, _rebuild_buffer, (type(self), alias(self), persistent), state_of(self))


def _rebuild(cls, data, requires_grad):
    """A parameter of class ``cls``, made without a call of it: it can take other arguments."""
    return _share(cls, data).requires_grad_(requires_grad)


def _rebuild_buffer(cls, data, persistent):
    made = _share(cls, data)
    made.persistent = persistent
    return made


# Parameters and buffers whose shape the first input will tell.

_H = TensorBase._h


class UninitializedTensorMixin:
    """What a parameter and a buffer without shape have in common: a dtype and a device, and no elements. Operators take
    the descriptor, ``_h``, and so raise ValueError. Follows ``torch.nn.parameter.UninitializedTensorMixin``."""

    __slots__ = ()
    cls_to_become: type[Tensor]

    def materialize(self, shape, device=None, dtype=None) -> None:
        """Makes it a Parameter, or a Buffer, of this shape, in place, with values yet to be set. Its device and dtype
        stay unless others are given."""
        own = self.data
        device, dtype = own.device if device is None else device, own.dtype if dtype is None else dtype
        self.__class__ = self.cls_to_become
        self.data = empty(shape, device=device, dtype=dtype)

    @property
    def _h(self):
        raise ValueError(
            f"{operator_above()}Attempted to use an uninitialized parameter. This error happens when you are using a "
            f"`LazyModule` or explicitly manipulating `nn.parameter.{type(self).__name__}` objects. When using "
            "LazyModules call `forward` with a dummy batch to initialize the parameters before using them"
        )

    @property
    def shape(self):
        """RuntimeError: it has none yet."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to initialize the parameters before accessing their attributes."
        )

    def share_memory_(self):
        """RuntimeError: it has no memory yet."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    @property
    def data(self) -> Tensor:
        """A tensor without elements, of its dtype and device; assignable."""
        return owned.tt_alias(_H.__get__(self))

    @data.setter
    def data(self, value: Tensor) -> None:
        taken, mine = owned.tt_alias(value._h), _H.__get__(self)
        _H.__set__(self, taken._h)
        taken._h = mine

    @property
    def requires_grad(self) -> bool:
        """Will gradients be wanted?"""
        return self._node is not None

    @requires_grad.setter
    def requires_grad(self, flag: bool) -> None:
        self.data.requires_grad = flag  # what refuses is refused here
        self._node = AccumulateGrad(self) if flag else None

    is_leaf = property(lambda self: True)

    def copy_(self, src, non_blocking: bool = False):
        """Nothing, where ``src`` has no elements either."""
        self.data.copy_(src.data, non_blocking)
        return self

    @staticmethod
    def _converted(t: Tensor) -> Tensor:
        return t

    def __repr__(self):
        return f"<{type(self).__name__}>"

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            fn, args = self.__reduce_ex__(4)
            memo[id(self)] = fn(*args)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        own = self.data
        return type(self), (self.requires_grad, own.device, own.dtype)


def _told_by_data(name: str):
    return lambda self, *args: getattr(self.data, name)(*args)


def _cast(name: str):
    return lambda self, *args, **kwargs: self._converted(getattr(self.data, name)(*args, **kwargs))


for _name in ("size", "is_complex", "is_floating_point", "get_device"):
    setattr(UninitializedTensorMixin, _name, _told_by_data(_name))
for _name in ("device", "dtype", "is_cpu", "is_cuda", "layout"):
    setattr(UninitializedTensorMixin, _name, property(lambda self, name=_name: getattr(self.data, name)))
for _name in ("to", "cpu", "cuda", "half", "bfloat16", "float", "double", "char", "short", "int", "long"):
    setattr(UninitializedTensorMixin, _name, _cast(_name))


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape is not known yet: ``materialize`` makes it a Parameter. Follows
    ``torch.nn.parameter.UninitializedParameter``; RuntimeError for a dtype that has no gradients, unless
    ``requires_grad=False``."""

    __slots__ = ()
    __hash__ = object.__hash__
    cls_to_become = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        made = _share(cls, empty(0, device=device, dtype=dtype))
        made.requires_grad = requires_grad
        return made


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A buffer whose shape is not known yet: ``materialize`` makes it a Buffer. Follows
    ``torch.nn.parameter.UninitializedBuffer``."""

    __slots__ = ()
    __hash__ = object.__hash__
    cls_to_become = Buffer

    def __new__(cls, requires_grad=False, device=None, dtype=None, persistent=True):
        made = _share(cls, empty(0, device=device, dtype=dtype))
        made.requires_grad, made.persistent = requires_grad, persistent
        return made

    def _converted(self, t: Tensor) -> Tensor:
        return UninitializedBuffer(self.requires_grad, t.device, t.dtype, self.persistent)

    def __reduce_ex__(self, protocol):
        cls, args = super().__reduce_ex__(protocol)
        return cls, (*args, self.persistent)


def is_lazy(param) -> bool:
    """Is it a parameter or a buffer without shape? Follows ``torch.nn.parameter.is_lazy``."""
    return isinstance(param, UninitializedTensorMixin)
