"""Operators: copies, casts, layouts."""

from __future__ import annotations

import numbers
import warnings

from .. import library_name
from ..backends.cpu import check, error, lib
from ..devices import CPU, CUDA, cuda_device, number_of, on_device
from ..devices import device as _device
from ..dtypes import (
    ALL,
    COMPLEX,
    as_dtype,
    bfloat16,
    complex32,
    complex64,
    complex128,
    dtype,
    dtype_code,
    float16,
    float32,
    float64,
    get_default_dtype,
    int8,
    int16,
    int32,
    int64,
    promoted,
    uint8,
)
from ..dtypes import bool as _bool
from ..layouts import contiguous_format, memory_format, preserve_format, strides_of
from ..layouts import memory_format as _memory_format
from ..tensor import Tensor, attempted, owned
from ..warn_once import first_time
from .create import pinned
from .declare import attach, both, function, method, refuse, Op, operand, primitive, publish, record_of, requires

_CONTIGUOUS = lib.TT_FLAG_CONTIGUOUS
TYPE_NAMES = {f"{d.scalar_type}Tensor": d for d in ALL}


@primitive(input=lambda g: g)
def _clone(input):
    return owned.tt_clone(input._h)


@primitive(input=lambda g: g, title="CloneBackward0")
def _clone_contiguous(input):
    return owned.tt_contiguous(input._h)


def in_dtype(g, dtype):
    """The gradient ``g`` in the dtype of what it is the gradient of: of a real number's, the real part counts."""
    if g.dtype is dtype:
        return g
    if COMPLEX[g._h.dtype] and not dtype.is_complex:
        g = g.real
    return g.to(dtype)


def warn_of_discarded(source: Tensor, code: int) -> None:
    """Warns, once in a process, where complex numbers become real ones of that dtype."""
    discards = COMPLEX[source._h.dtype] and not COMPLEX[code] and code != lib.TT_BOOL
    if discards and first_time("imaginary parts"):
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=4)


@primitive(input=lambda g, input_dtype: in_dtype(g, input_dtype))
def _to_copy(input, code):
    if COMPLEX[input._h.dtype]:
        warn_of_discarded(input, code)
    return owned.tt_cast(input._h, code)


@primitive(input=lambda g, input_device: _to_device(g, number_of(input_device)))
def _to_device(input, number):
    return owned.tt_to_device(input._h, number)


def _moved(t: Tensor, number: int, non_blocking) -> Tensor:
    """``t`` on another device."""
    if not non_blocking:
        return _to_device(t, number)
    try:  # Note [Interrupts] in kernels/python/contexts.c
        lib.tt_cuda_non_blocking(1)
        return _to_device(t, number)
    finally:
        lib.tt_cuda_non_blocking(0)


def _sum_back(g, input_shape):
    return g if g.shape == input_shape else g.sum_to_size(input_shape)


@primitive(input=_sum_back, title="CloneBackward0")
def _with_layout(input, shape, stride):
    out = on_device(input.device, attempted.tt_empty_strided, input._h.dtype, len(shape), shape, stride)
    if out is None:
        raise error("with_layout")
    check(lib.tt_copy(out._h, input._h, -1), "with_layout")
    return out


@method
def with_layout(self, shape, stride):
    """This tensor, broadcast to ``shape``, in an array of exactly these strides: itself if it is one already."""
    if self.shape == tuple(shape) and self.stride() == tuple(stride):
        return self
    return _with_layout(self, tuple(shape), tuple(stride))


def _formatted(input: Tensor, form: memory_format, op: str) -> Tensor:
    return _with_layout(input, input.shape, strides_of(input.shape, form, op))


@both
def clone(input, *, memory_format=preserve_format):
    """A copy with history. Dense inputs keep their strides, others become row-major, unless ``memory_format`` says
    otherwise. Follows ``torch.clone``.

    Args:
        memory_format: the order of the copy's elements in memory
    Returns:
        A tensor with memory of its own.
    """
    try:
        if memory_format is preserve_format or memory_format is None:
            return _clone(input)
        if memory_format is contiguous_format:
            return _clone_contiguous(input)
        return _formatted(input, memory_format, "clone")
    except Exception as exc:
        refuse(exc)
        raise


@method
def contiguous(self, memory_format=contiguous_format):
    """This tensor if its elements are row-major without gaps, else a copy that is so. Follows
    ``torch.Tensor.contiguous``.

    Args:
        memory_format: the order wanted
    Returns:
        ``self``, or a copy.
    """
    try:
        if memory_format is contiguous_format:
            return self if self._h.flags & _CONTIGUOUS else _clone_contiguous(self)
        if memory_format is preserve_format:
            raise RuntimeError("preserve memory format is unsupported by the contiguous operator")
        return self if is_contiguous(self, memory_format) else _formatted(self, memory_format, "contiguous")
    except Exception as exc:
        refuse(exc)
        raise


@method(kind="query")
def is_contiguous(self, memory_format=contiguous_format) -> bool:
    """Do the elements lie without gaps, in this format? Follows ``torch.Tensor.is_contiguous``."""
    if memory_format is contiguous_format:
        return self._h.flags & _CONTIGUOUS != 0
    if not isinstance(memory_format, _memory_format):
        raise TypeError(f"is_contiguous(): argument 'memory_format' must not be {type(memory_format).__name__}")
    shape = self.shape
    if len(shape) != (4 if memory_format.name == "channels_last" else 5):
        return False
    wanted = strides_of(shape, memory_format, "is_contiguous")
    return all(n == 1 or s == w for n, s, w in zip(shape, self.stride(), wanted))


def cast(input: Tensor, code: int) -> Tensor:
    """``input`` in the dtype numbered ``code``: itself if that is its dtype."""
    return input if input._h.dtype == code else _to_copy(input, code)


def asked_of_to(args: tuple, device, dtype, non_blocking, copy) -> tuple:
    """``to``'s device, dtype, non_blocking and copy, where some are given by position. TypeError for what is none."""
    if not args:
        return device, dtype, non_blocking, copy
    first, rest = args[0], args[1:]
    if isinstance(first, _dtype):
        dtype = first
    elif isinstance(first, Tensor):
        dtype, device = first.dtype, first.device
    elif first is None or isinstance(first, (str, bytes, _device)) or _is_integer(first):
        device = first
        if rest:
            dtype, rest = (rest[0] if rest[0] is not None else dtype), rest[1:]
    elif first in (float, int, bool, complex):
        dtype = ALL[dtype_code(first, "to")]
    else:
        raise TypeError(
            f"to() received an invalid combination of arguments: got {type(first).__name__}; wanted a "
            "dtype, a device or a Tensor"
        )
    if rest:
        if len(rest) > 2 or not all(type(r) is bool for r in rest):
            raise TypeError(
                "to() received an invalid combination of arguments: after the dtype, device or Tensor "
                f"come the bools non_blocking and copy, got {', '.join(map(repr, rest))}"
            )
        non_blocking, copy = rest[0], rest[1] if len(rest) > 1 else copy
    return device, dtype, non_blocking, copy


@method
def to(self, *args, dtype=None, device=None, non_blocking=False, copy=False, memory_format=preserve_format):
    """This tensor in another dtype or on another device: ``to(dtype)``, ``to(device)``, ``to(device, dtype)``,
    ``to(other)``. Itself when nothing changes, unless ``copy``. ``non_blocking``: without waiting for a copy between a
    device and page-locked memory; then the CPU's values are there when the device is synchronized. Follows
    ``torch.Tensor.to``.

    Args:
        dtype: a dtype, or None
        device: a device, or None
        non_blocking: whether not to wait for the copy
        copy: whether to copy even where nothing changes
        memory_format: the order of a copy's elements in memory
        args: the same by position, or a tensor whose dtype and device are wanted
    Returns:
        ``self``, or a copy.
    Raises:
        TypeError: an argument is neither
    """
    if args:
        device, dtype, non_blocking, copy = asked_of_to(args, device, dtype, non_blocking, copy)
    code = self._h.dtype if dtype is None else dtype_code(dtype, "to")
    number = self._h.storage.device if device is None else number_of(device)
    out = self
    if number == self._h.storage.device:
        out = cast(out, code)
    elif ALL[code].itemsize > self.itemsize:  # the fewer bytes travel
        out = cast(_moved(out, number, non_blocking), code)
    else:
        out = _moved(cast(out, code), number, non_blocking)
    if memory_format is not preserve_format and memory_format is not None:
        same = out.contiguous(memory_format=memory_format)
        return same.clone() if copy and same is self else same
    return _clone(out) if copy and out is self else out


_dtype = dtype


def _is_integer(x) -> bool:
    """Is it an integer of Python's or NumPy's, but no bool?"""
    return isinstance(x, numbers.Integral) and not isinstance(x, bool)


def _cast_method(name: str, d: dtype):
    code = d.code

    def convert(self, memory_format=preserve_format):
        if memory_format is not preserve_format:
            return to(self, d, memory_format=memory_format)
        return self if self._h.dtype == code else _to_copy(self, code)

    convert.__name__ = convert.__qualname__ = name
    convert.__doc__ = f"This tensor in {d!r}; itself if it is so already. Follows ``torch.Tensor.{name}``."
    return method(convert)


for _name, _d in (
    ("float", float32),
    ("double", float64),
    ("half", float16),
    ("bfloat16", bfloat16),
    ("int", int32),
    ("long", int64),
    ("short", int16),
    ("char", int8),
    ("byte", uint8),
    ("bool", _bool),
    ("chalf", complex32),
    ("cfloat", complex64),
    ("cdouble", complex128),
):
    _cast_method(_name, _d)


def _type(self, dtype=None, non_blocking=False):
    """The name of this tensor's type, or this tensor in another: ``type(tinytorch.int64)``, or by its name,
    ``type("tinytorch.cuda.LongTensor")``, which says where it is, too; ``Tensor`` is that of the default dtype.
    Follows ``torch.Tensor.type``."""
    if dtype is None:
        return f"{library_name.shown}.{'cuda.' if self.is_cuda else ''}{self.dtype.scalar_type}Tensor"
    device = None
    if isinstance(dtype, str):
        whole = dtype.removeprefix("tiny").removeprefix("torch.")
        name = whole.removeprefix("cuda.")
        if (whole != name) != self.is_cuda:
            device = CPU if self.is_cuda else CUDA
        if name == "Tensor" and whole != dtype:
            dtype = get_default_dtype()
        elif name in TYPE_NAMES:
            dtype = TYPE_NAMES[name]
        else:
            raise ValueError(f"invalid type: '{dtype}'")
    elif dtype is Tensor:
        dtype, device = get_default_dtype(), CPU
    elif isinstance(dtype, type):
        if dtype.__name__ not in TYPE_NAMES:
            raise ValueError(f"invalid type: '{dtype.__name__}'")
        dtype, device = TYPE_NAMES[dtype.__name__], CPU
    return to(self, dtype=dtype, device=device, non_blocking=non_blocking)


attach(_type, "type", Op("type", "composite"))


@method
def type_as(self, other):
    """This tensor in the dtype and on the device of ``other``. Follows ``torch.Tensor.type_as``."""
    if not isinstance(other, Tensor):
        raise TypeError(f"type_as(): argument 'other' must be Tensor, not {type(other).__name__}")
    return to(self, other)


@method
def cpu(self, memory_format=preserve_format):
    """This tensor in the CPU's memory. Follows ``torch.Tensor.cpu``."""
    return to(self, CPU, memory_format=memory_format)


@method
def cuda(self, device=None, non_blocking=False, memory_format=preserve_format):
    """This tensor in a CUDA device's memory (the current device's). RuntimeError for another kind of device. Follows
    ``torch.Tensor.cuda``."""
    where = CUDA if device is None else cuda_device(device)
    return to(self, where, non_blocking=non_blocking, memory_format=memory_format)


@method(kind="query")
def is_pinned(self, device=None) -> bool:
    """Is this tensor in page-locked memory? Follows ``torch.Tensor.is_pinned``."""
    return lib.tt_is_pinned(self._h) == 1


@method
def pin_memory(self, device=None):
    """This tensor in page-locked memory of the CPU's, itself if it is there: copies from and to it need not be waited
    for. RuntimeError for a tensor of a device, or where there is no CUDA device. Follows
    ``torch.Tensor.pin_memory``."""
    if lib.tt_is_pinned(self._h):
        return self
    out = pinned(self.detach(), "pin_memory")
    return out.copy_(self) if requires(self) else out


# Promotion.


@function(kind="query")
def result_type(tensor1, tensor2):
    """The dtype that arithmetic between the two gives. Follows ``torch.result_type``."""
    tensors = operand(tensor1, "result_type", "tensor1"), operand(tensor2, "result_type", "tensor2")
    return promoted(lib.tt_result_type(*(t._h for t in tensors)), "result_type")


@function(kind="query")
def promote_types(type1, type2):
    """The dtype that tensors of the two dtypes give. Follows ``torch.promote_types``."""
    codes = [as_dtype(d, "promote_types", name).code for d, name in ((type1, "type1"), (type2, "type2"))]
    return promoted(lib.tt_promote(*codes), "promote_types")


publish(Tensor.detach, name="detach", method=True, kind="view")
attach(Tensor.detach_, "detach_", record_of("detach_", kind="update"))


@function(kind="query")
def can_cast(from_, to):
    """May an in-place operator put results of dtype ``from_`` into ``to``? Follows ``torch.can_cast``."""
    return as_dtype(from_, "can_cast", "from_").kind <= as_dtype(to, "can_cast", "to").kind
