"""Tensors and the rest of Python: NumPy's protocol, values as Python numbers, iteration, printing."""

from __future__ import annotations

import sys

import numpy as np

from .backends.cpu import error, ffi, lib
from .dtypes import ALL, COMPLEX, FLOATING, INTEGRAL
from .dtypes import bool as _bool
from .ops.create import from_numpy
from .ops.declare import attach, record_of
from .printing import tensor_text
from .tensor import Tensor, owned, operator_above

_BOOL, _UINT64 = lib.TT_BOOL, lib.TT_U64
# By code: what ffi.unpack makes Python numbers of; elements of half types, which C has no type for, are
# cast first, and complex numbers are NumPy's affair.
_POINTERS = tuple(None if d.is_complex else ffi.typeof("_Bool *" if d is _bool else f"{d.c_type} *") for d in ALL)
_CONTIGUOUS, _READONLY = lib.TT_FLAG_CONTIGUOUS, lib.TT_FLAG_READONLY
_ELSEWHERE = lib.TT_FLAG_DEVICE  # the values are on a device
_read_int, _read_float = lib.tt_read_int, lib.tt_read_float


class _Memory:
    """A tensor's memory as NumPy takes it; the ndarray keeps it alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, t: Tensor, stays: bool):
        h = t._h
        computed(h, stays)
        dtype = ALL[h.dtype]
        self.owner = owned.tt_alias(h)
        self.__array_interface__ = {
            "version": 3,
            "typestr": dtype.typestr,
            "shape": tuple(ffi.unpack(h.shape, h.ndim)),
            "strides": tuple([s * dtype.itemsize for s in ffi.unpack(h.strides, h.ndim)]),
            "data": (int(ffi.cast("intptr_t", h.data)), h.flags & _READONLY != 0),
        }


def here(t: Tensor) -> Tensor:
    """``t``, or a copy of its values on the CPU."""
    if not t._h.flags & _ELSEWHERE:
        return t
    plain = owned.tt_alias(t._h)  # what does not look at history: a view's base may have been written
    return owned.tt_to_device(plain._h, 0)


def computed(h, stays: bool = False) -> None:
    """Sees to it that the elements are there. ``stays``: someone outside keeps looking at them, and may write."""
    if lib.tt_sync(h, stays) < 0:
        raise error()


def _for_numpy(t: Tensor) -> Tensor:
    """``t``, or its values in the dtype that they are computed in where NumPy lacks their own."""
    if t.dtype.numpy is not None:
        return t
    t = owned.tt_alias(t._h)  # under a name: it must outlive the next call
    return owned.tt_cast(t._h, t.dtype.compute)


def share(t: Tensor, stays: bool = True) -> np.ndarray:
    """An ndarray on the tensor's memory, for good or (not ``stays``) for a moment. TypeError for a dtype that NumPy
    lacks."""
    if t.dtype.numpy is None:
        raise TypeError(f"Got unsupported ScalarType {t.dtype.scalar_type}")
    return np.asarray(_Memory(t, stays))


def numpy(self, *, force: bool = False) -> np.ndarray:
    """An ndarray sharing this tensor's memory. RuntimeError if it requires grad, unless ``force``; TypeError for
    bfloat16 and complex32. Follows ``torch.Tensor.numpy``."""
    if not force and self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._h.flags & _ELSEWHERE:
        if not force:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the "
                "tensor to host memory first."
            )
        return share(here(self))
    return share(self)


def __array__(self, dtype=None, copy=None) -> np.ndarray:
    """An ndarray of this tensor's values, for NumPy: on the same memory unless ``copy`` or ``dtype`` asks otherwise."""
    a = numpy(self)
    if dtype is not None and a.dtype != dtype:
        if copy is False:
            raise ValueError(f"__array__: a {self.dtype!r} tensor cannot be seen as {np.dtype(dtype)} without a copy")
        return a.astype(dtype)
    return a.copy() if copy else a


def __array_wrap__(self, array, context=None, return_scalar=False):
    """The result of a NumPy function of this tensor, as a tensor."""
    return from_numpy(np.asarray(array))


def item(self):
    """The value of a one-element tensor as a Python number. RuntimeError otherwise.

    Returns:
        A number of Python's: bool, int, float or complex.
    Raises:
        RuntimeError: there is not exactly one element
    """
    h = self._h
    if h.numel != 1:
        raise RuntimeError(f"a Tensor with {h.numel} elements cannot be converted to Scalar")
    if h.flags & _ELSEWHERE:
        return item(here(self))
    if h.storage.lazy:
        computed(h)
    code = h.dtype
    if FLOATING[code]:
        return _read_float(h)
    if COMPLEX[code]:
        return share(_for_numpy(self), False).item()
    value = _read_int(h)
    return value != 0 if code == _BOOL else value % (1 << 64) if code == _UINT64 else value


def flat_values(t: Tensor) -> list:
    """All elements as Python numbers, in row-major order."""
    t = here(t)
    h = t._h
    if h.numel == 0:
        return []
    code = h.dtype
    if ALL[code].compute != code:
        t = owned.tt_alias(h)  # under a name: it must outlive the next call
        t = owned.tt_cast(t._h, ALL[code].compute)
        h, code = t._h, ALL[code].compute
    if not h.flags & _CONTIGUOUS:
        t = owned.tt_alias(h)
        t = owned.tt_contiguous(t._h)
        h = t._h
    if COMPLEX[code]:
        return share(t, False).ravel().tolist()
    computed(h)
    pointer = ffi.cast(_POINTERS[code], h.data)
    return ffi.unpack(pointer, h.numel)


def tolist(self):
    """The values as nested lists of Python numbers; a number for a 0-d tensor.

    Returns:
        Nested lists, or a number for a 0-d tensor.
    """
    shape = self.shape
    if not shape:
        return item(self)
    if 0 in shape:
        values: list = []
        for n in reversed(shape[: shape.index(0) + 1]):
            values = [values if n == 0 else list(values) for _ in range(n)] if n else []
        return values
    values = flat_values(self)
    for n in reversed(shape[1:]):
        values = [values[k : k + n] for k in range(0, len(values), n)]
    return values


def __repr__(self, *, tensor_contents=None) -> str:
    """The tensor's values, and what is not the default about it."""
    shown = here(self)
    return tensor_text(self, share(_for_numpy(shown), False), tensor_contents)


def _no_number(self, kind: type, text: str, depth: int = 2) -> Exception:
    """The error for a tensor that has to be one number: TypeError where the library wanted it, of an argument."""
    caller = sys._getframe(depth)
    if caller.f_globals.get("__name__", "").startswith("tinytorch.") or caller.f_code.co_filename.startswith("<eager"):
        return TypeError(f"{operator_above()}expected a number or a bool, got a Tensor of shape {tuple(self.shape)}")
    return kind(text)


def __bool__(self) -> bool:
    """The truth of the one element. RuntimeError where there are several."""
    h = self._h
    if h.numel != 1:
        if h.numel == 0:
            raise _no_number(self, RuntimeError, "Boolean value of Tensor with no values is ambiguous")
        raise _no_number(self, RuntimeError, "Boolean value of Tensor with more than one value is ambiguous")
    return item(self) != 0


def _scalar(self, real: bool = False):
    if self._h.numel != 1:
        text = f"only one element tensors can be converted to Python scalars, got shape {tuple(self.shape)}"
        raise _no_number(self, ValueError, text, 3)
    value = item(self)
    if real and type(value) is complex:
        if value.imag != 0:
            raise RuntimeError(f"value cannot be converted to a real number without overflow: {value}")
        return value.real
    return value


def __int__(self) -> int:
    """The one element as a Python int."""
    return int(_scalar(self, True))


def __float__(self) -> float:
    """The one element as a Python float."""
    return float(_scalar(self, True))


def __complex__(self) -> complex:
    """The one element as a Python complex."""
    return complex(_scalar(self))


def __index__(self) -> int:
    """The one element of an integer tensor, as an index. TypeError for other tensors."""
    if not INTEGRAL[self._h.dtype] or self._h.numel != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index")
    return int(item(self))


def __len__(self) -> int:
    """The size of the first dimension. TypeError for a 0-d tensor."""
    if self._h.ndim == 0:
        raise TypeError("len() of a 0-d tensor")
    return self._h.shape[0]


def __iter__(self):
    """The entries along the first dimension, as views. TypeError for a 0-d tensor."""
    if self._h.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def __contains__(self, element) -> bool:
    """Is any element equal to ``element``?"""
    if not isinstance(element, (Tensor, bool, int, float, complex)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((self == element).any())


def __format__(self, spec: str) -> str:
    """The text of a 0-d tensor's value in a format, or of the tensor."""
    if self._h.ndim == 0:
        return format(item(self), spec)
    return object.__format__(self, spec)


def _members(self):
    """The names of the type's attributes and of the tensor's own."""
    return sorted(set(dir(type(self))) | set(self.__dict__))


for _fn in (
    numpy,
    __array__,
    __array_wrap__,
    item,
    tolist,
    __repr__,
    __bool__,
    __int__,
    __float__,
    __complex__,
    __index__,
    __len__,
    __iter__,
    __contains__,
    __format__,
):
    if _fn in (numpy, __array__, item, tolist, __repr__):
        attach(_fn, _fn.__name__, record_of(_fn.__name__, kind="read", pure=False))
    else:
        setattr(Tensor, _fn.__name__, _fn)
Tensor.__dir__ = _members  # a function __dir__ would be the module's own
Tensor.__array_priority__ = 1000  # ndarray + Tensor gives a Tensor
