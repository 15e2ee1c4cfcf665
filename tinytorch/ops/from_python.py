"""Python values as memory: numbers, nested sequences of numbers, NumPy's scalars and arrays."""

from __future__ import annotations

import operator
import warnings
from array import array
from itertools import chain, islice

import numpy as np

from ..backends.cpu import error, ffi, lib
from ..dtypes import ALL, BY_NUMPY, COMPLEX, INTEGRAL, default_complex, get_default_dtype, iinfo, promoted
from ..layouts import row_major
from ..tensor import Tensor, attempted, tensor_on
from ..warn_once import first_time

_PLAIN = frozenset((bool, int, float, complex))
_SEQUENCES = frozenset((list, tuple))
_DEEPEST = 128  # nested sequences, as in PyTorch: one that holds itself has no end
_BOOL, _UINT64, _INT64, _FLOAT64, _COMPLEX128 = lib.TT_BOOL, lib.TT_U64, lib.TT_I64, lib.TT_F64, lib.TT_C128
_SUPPORTED = (
    "float64, float32, float16, complex64, complex128, int64, int32, int16, int8, uint64, uint32, uint16, uint8, and "
    "bool"
)


def numpy_code(d: np.dtype) -> int:
    """The number of a NumPy dtype; TypeError if there is none, ValueError for foreign byte order."""
    ours = BY_NUMPY.get(d)
    if ours is None:
        if d.newbyteorder("=") in BY_NUMPY:
            raise ValueError(
                "given numpy array has byte order different from the native byte order. Conversion "
                "between byte orders is currently not supported."
            )
        raise TypeError(
            f"can't convert np.ndarray of type numpy.{d.type.__name__}. The only supported types are: {_SUPPORTED}."
        )
    return ours.code


def share_numpy(a: np.ndarray, code: int | None = None):
    """A tensor on an ndarray's own memory, which it keeps alive; ``code`` if its elements are to be seen as of
    another dtype of the same size."""
    if code is None:
        code = numpy_code(a.dtype)
    flags = a.flags
    if flags.c_contiguous and flags.aligned:
        memory, reach, strides = ffi.from_buffer(a), a.nbytes, row_major(a.shape)
    else:
        memory, reach, strides = _strided_memory(a)
    t = tensor_on(a, "from_numpy", code, a.shape, strides, memory, reach)
    if not flags.writeable:
        t._h.flags |= lib.TT_FLAG_READONLY
        _warn_of_read_only_memory()
    return t


def _warn_of_read_only_memory() -> None:
    """Once in a process, as PyTorch does."""
    if first_time("read-only memory"):
        warnings.warn(
            "The given NumPy array or buffer is not writable. The tensor shares its memory, and operators that write "
            "to the tensor raise RuntimeError; clone() gives one that may be written. This warning is given once.",
            UserWarning,
            stacklevel=4,
        )


def _strided_memory(a: np.ndarray):
    """An ndarray's first element, the bytes from there to its end, its strides in elements."""
    size = a.itemsize
    strides, reach = [], 1 if a.size else 0
    for n, s in zip(a.shape, a.strides):
        if s < 0 and n > 1:
            raise ValueError(
                "At least one stride in the given numpy array is negative, and tensors with negative "
                "strides are not currently supported. (You can probably work around this by making a "
                "copy of your array  with array.copy().)"
            )
        if s % size and n > 1:
            raise ValueError(
                "given numpy array strides not a multiple of the element byte size. Copy the numpy array "
                "to reallocate the memory."
            )
        strides.append(max(s // size, 0))
        reach += (n - 1) * strides[-1] if reach else 0
    address = a.__array_interface__["data"][0]
    if address % size and a.size:
        raise ValueError(
            "given numpy array is not aligned to its element size. Copy the numpy array to reallocate the memory."
        )
    return ffi.cast("void *", address), reach * size, strides


def copy_numpy(a: np.ndarray, code: int | None):
    """A tensor on fresh memory with an ndarray's (or NumPy scalar's) values, cast to ``code``."""
    a = np.asarray(a)
    own = numpy_code(a.dtype)
    if not a.flags.c_contiguous:
        a = np.ascontiguousarray(a).reshape(a.shape)
    return _filled(own, a.shape, a, own if code is None else code)


def _filled(own: int, shape, memory, code: int):
    """A fresh tensor of dtype ``code`` from contiguous ``memory`` of dtype ``own``."""
    t = attempted.tt_empty(own, len(shape), shape)
    if t is None:
        raise error("tensor")
    h = t._h
    if h.numel:
        ffi.memmove(h.data, memory, h.numel * lib.tt_itemsize(own))
    if own != code:
        t = attempted.tt_cast(h, code)
        if t is None:
            raise error("tensor")
    return t


def pack(data, code: int | None):
    """A tensor on fresh memory holding ``data``: a number or a nested sequence of them. The dtype is inferred when
    ``code`` is None: complex numbers and floats give the default dtypes, integers int64, bools bool."""
    kind = type(data)
    if kind is list or kind is tuple:
        shape, flat = flatten(data)
    elif kind in _PLAIN:
        shape, flat = (), (data,)
    elif isinstance(data, (np.ndarray, np.generic)):
        return copy_numpy(data, code)
    else:
        _check_depth(data)
        data = _as_sequence(data)
        shape, flat = flatten(data) if type(data) is list else ((), (data,))
    kinds = set(map(type, flat))
    inferred = _BOOL
    if not kinds <= _PLAIN:
        flat, inferred = _plain(flat, len(shape) > 0, code)
        kinds = set(map(type, flat))
    elif complex in kinds:
        inferred = default_complex().code
    elif float in kinds:
        inferred = get_default_dtype().code
    elif int in kinds:
        inferred = _INT64
    elif not kinds:
        inferred = get_default_dtype().code
    if code is None:
        code = inferred
    return _filled(*_memory(flat, kinds, code, shape), code)


def _memory(flat, kinds, code: int, shape):
    """Numbers as contiguous memory: its dtype, the shape, the memory."""
    if code == _BOOL:
        return _BOOL, shape, array("b", map(bool, flat))
    if COMPLEX[code]:
        return _COMPLEX128, shape, np.array(flat, np.complex128)
    if complex in kinds:
        raise TypeError(f"tensor(): must be real number, not complex, for {ALL[code]!r}")
    try:
        if ALL[code].compute != code or (float in kinds and INTEGRAL[code]):  # halves; floats cut to integers
            if INTEGRAL[code]:
                limits = iinfo(ALL[code])
                if not all(limits.min - 1 < x < limits.max + 1 for x in flat):  # false for NaN
                    raise RuntimeError(f"value cannot be converted to type {ALL[code].name} without overflow")
                return _INT64, shape, array("q", map(int, flat))
            return _FLOAT64, shape, array("d", flat)
        top = 1 << 8 * ALL[code].itemsize
        if not ALL[code].is_signed and code != _UINT64 and flat and -top < min(flat) < 0:
            flat = [x % top for x in flat]  # negative numbers wrap, as in C
        return code, shape, array(ALL[code].numpy.char, flat)
    except OverflowError:
        if code == _INT64:
            raise ValueError("Overflow when unpacking long long: tensor() got an integer beyond int64") from None
        raise RuntimeError(f"value cannot be converted to type {ALL[code].name} without overflow") from None


def _plain(values, nested: bool, wanted: int | None):
    """Tensors and NumPy's scalars among ``values`` as Python numbers, and the dtype that all of them promote to. Other
    objects are what they say they are as numbers of the dtype that is ``wanted``."""
    numbers, inferred = [], _BOOL
    for x in values:
        kind = type(x)
        if kind in _PLAIN:
            code = _BOOL if kind is bool else _INT64 if kind is int else get_default_dtype().code
            code = default_complex().code if kind is complex else code
        elif isinstance(x, Tensor):
            code = x._h.dtype
            x = x.item()
        elif isinstance(x, np.generic):
            code = numpy_code(x.dtype)
            x = x.item()
        elif isinstance(x, complex):
            code, x = default_complex().code, complex(x)
        elif isinstance(x, float):
            code, x = get_default_dtype().code, float(x)
        elif isinstance(x, int):
            code, x = _INT64, int(x)
        elif isinstance(x, (str, bytes)):
            if nested and not numbers:
                raise ValueError(f"tensor(): too many dimensions '{kind.__name__}'")
            raise TypeError(f"new(): invalid data type '{kind.__name__}'")
        elif wanted is None:
            raise RuntimeError(f"Could not infer dtype of {kind.__name__}")
        else:
            code = wanted
            x = bool(x) if code == _BOOL else operator.index(x) if INTEGRAL[code] else _inexact(code)(x)
        numbers.append(x)
        inferred = promoted(lib.tt_promote(inferred, code), "tensor").code
    return numbers, inferred


def _inexact(code: int) -> type:
    return complex if COMPLEX[code] else float


def _is_sequence(x) -> bool:
    """Does the object present itself as a sequence? Arrays and tensors are looked at otherwise."""
    return hasattr(x, "__len__") and hasattr(x, "__getitem__") and not hasattr(x, "keys")


def _items(x) -> list:
    """The items of a sequence; ValueError unless there are as many as it says."""
    n = len(x)
    items = list(islice(x, n + 1)) if n else []
    if len(items) != n:
        raise ValueError(f"expected sequence of length {n} ({type(x).__name__}, got {len(items)} items or more)")
    return items


def _as_sequence(x):
    """A list for anything that is a sequence, else ``x`` itself. Tensors of one element stand for that element."""
    if type(x) in _PLAIN or isinstance(x, (str, bytes, np.generic)):
        return x
    if isinstance(x, Tensor):
        if x._h.numel != 1:
            raise ValueError("tensor(): only one element tensors can be converted to Python scalars; stack() takes all")
        return x
    if isinstance(x, np.ndarray):
        return list(x) if x.ndim else x[()]
    return _items(x) if _is_sequence(x) else x


def _check_depth(data) -> None:
    """ValueError for sequences in sequences without end, along the first items."""
    for _ in range(_DEEPEST):
        if type(data) not in _SEQUENCES:
            if type(data) in _PLAIN or isinstance(data, (str, bytes, np.generic, Tensor, np.ndarray)):
                return
            if not _is_sequence(data):
                return
        if not len(data):
            return
        data = data[0]
    if type(data) in _SEQUENCES or _is_sequence(data):
        raise ValueError(f"tensor(): too many dimensions '{type(data).__name__}'")


def flatten(data):
    """The shape of nested lists and tuples, and their numbers in one list. ValueError when they are ragged, or nested
    too deep."""
    if data and type(data[0]) not in _PLAIN:
        _check_depth(data)
    shape = [len(data)]
    level = data
    while level:
        kinds = set(map(type, level))
        if not kinds <= _SEQUENCES:
            if kinds <= _PLAIN:
                break
            level = [_as_sequence(x) for x in level]
            kinds = set(map(type, level))
            if not kinds & _SEQUENCES:
                break
            if not kinds <= _SEQUENCES:
                raise TypeError(
                    f"tensor(): not a sequence: at dim {len(shape)} some elements are numbers and others sequences"
                )
        lengths = set(map(len, level))
        if len(lengths) > 1:
            n = len(level[0])
            other = next(len(x) for x in level if len(x) != n)
            raise ValueError(f"expected sequence of length {n} at dim {len(shape)} (got {other})")
        shape.append(lengths.pop())
        level = list(chain.from_iterable(level))
    return shape, level
