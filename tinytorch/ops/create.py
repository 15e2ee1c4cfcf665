"""Operators: creation from values."""

from __future__ import annotations

import operator

import numpy as np

from ..autograd.leaf import make_leaf
from ..backends.cpu import error, lib
from ..devices import get_default_device, number_of, on_device
from ..dtypes import ALL, dtype_code, dtype_of_kind, get_default_dtype
from ..layouts import contiguous_format, strides_of
from ..tensor import Tensor, address_of, attempted, owned
from .cuda_array_interface import share_device
from .declare import function, number_parts, scalar_kind
from .fitting import check_fits
from .from_python import pack, share_numpy


_TOO_LARGE = 1 << 63


def sizes(values, op: str) -> list[int]:
    """``f(2, 3)`` and ``f((2, 3))`` alike, as a list of integers; TypeError naming the operator."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]
    elif not values:
        raise TypeError(f'{op}() missing 1 required positional arguments: "size"')
    for v in values:
        if type(v) is not int or not -_TOO_LARGE <= v < _TOO_LARGE:
            break
    else:
        return list(values)
    checked = []
    for v in values:
        try:
            checked.append(operator.index(v))
        except Exception as why:  # __index__ may raise anything
            raise TypeError(
                f"{op}(): argument 'size' must be tuple of ints, but found element of type "
                f"{type(v).__name__} at pos {len(checked)}"
            ) from (None if type(why) is TypeError else why)
        if not -_TOO_LARGE <= checked[-1] < _TOO_LARGE:
            raise TypeError(f"{op}(): argument 'size' must be tuple of ints, but {v} does not fit 64 bits")
    return checked


def finish(t: Tensor | None, op: str, requires_grad=False, pin_memory=False) -> Tensor:
    """The new tensor ``t``: a leaf, and in page-locked memory, if asked; raises what the C side refused."""
    if t is None:
        raise error(op)
    if pin_memory:
        t = pinned(t, op)
    return make_leaf(t) if requires_grad else t


def pinned(t: Tensor, op: str) -> Tensor:
    """A copy of ``t`` in page-locked memory. RuntimeError where it is not on the CPU, or there is no CUDA device."""
    if t._h.flags & lib.TT_FLAG_DEVICE:
        raise RuntimeError(f"{op}: cannot pin a tensor on {t.device}: only dense CPU tensors can be pinned")
    return finish(attempted.tt_to_pinned(t._h), op)


def code_of(dtype, op: str) -> int:
    """The number of ``dtype``, or the default's."""
    return get_default_dtype().code if dtype is None else dtype_code(dtype, op)


def placed(t: Tensor | None, device) -> Tensor | None:
    """The new tensor ``t`` on ``device``; None: where it is, but on the default device rather than on the CPU."""
    if device is None and (t is None or t._h.flags & lib.TT_FLAG_DEVICE):
        return t
    number = number_of(get_default_device() if device is None else device)
    return t if t is None or t._h.storage.device == number else attempted.tt_to_device(t._h, number)


@function
def tensor(data, *, dtype=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """A new tensor with a copy of ``data``: a number, nested sequences of numbers, an ndarray, a tensor. Follows
    ``torch.tensor``. ValueError for ragged nesting, RuntimeError for numbers that the dtype cannot hold.

    Args:
        data: a number, nested sequences of numbers, an ndarray, or a tensor
        dtype: the dtype; that of the data unless given: the default dtype for floats, int64 for integers
    Returns:
        A tensor with memory of its own.
    Raises:
        ValueError: sequences of different lengths
        RuntimeError: data of another kind
    """
    code = None if dtype is None else dtype_code(dtype, "tensor")
    if isinstance(data, Tensor):
        data = owned.tt_alias(data._h)  # values alone: a view's base may have been written
        same = code is None or code == data._h.dtype
        made = attempted.tt_contiguous(data._h) if same else attempted.tt_cast(data._h, code)
    elif hasattr(data, "__cuda_array_interface__"):
        shared = share_device(data)
        same = code is None or code == shared._h.dtype
        made = attempted.tt_clone(shared._h) if same else attempted.tt_cast(shared._h, code)
    else:
        made = pack(data, code)
    return finish(placed(made, device), "tensor", requires_grad, pin_memory)


@function
def as_tensor(data, dtype=None, device=None) -> Tensor:
    """``data`` as a tensor, without a copy where possible: tensors, ndarrays and what has ``__cuda_array_interface__``
    share memory, if of the right dtype and on the right device. Follows ``torch.as_tensor``.

    Args:
        data: a number, nested sequences of numbers, an ndarray, or a tensor
        dtype: the dtype; that of the data unless given
    Returns:
        ``data`` itself, a tensor on an ndarray's memory, or a copy.
    Raises:
        RuntimeError: data of another kind
    """
    if isinstance(data, Tensor):
        return data.to(device, dtype)
    if isinstance(data, np.ndarray):
        return share_numpy(data).to(get_default_device() if device is None else device, dtype)
    if hasattr(data, "__cuda_array_interface__"):
        return share_device(data).to(device, dtype)
    return tensor(data, dtype=dtype, device=device)


def _address(obj) -> int:
    """Where the elements of a tensor or another library's array are; -1 for what has none."""
    if isinstance(obj, Tensor):
        return address_of(obj)
    if isinstance(obj, np.ndarray):
        return obj.__array_interface__["data"][0]
    return obj.__cuda_array_interface__["data"][0] if hasattr(obj, "__cuda_array_interface__") else -1


def _bytes(buffer, op: str) -> np.ndarray:
    """The memory of a Python buffer. ValueError for other objects, RuntimeError where it has gaps."""
    try:
        with memoryview(buffer) as memory:
            if not memory.c_contiguous:
                raise RuntimeError(f"{op}: could not retrieve buffer from object: it has gaps")
    except TypeError:
        raise ValueError(f"{op}: {type(buffer).__name__} object does not implement Python buffer protocol") from None
    return np.frombuffer(buffer, np.uint8)


def _is_buffer(obj) -> bool:
    try:
        memoryview(obj).release()
    except TypeError:
        return False
    return not isinstance(obj, (np.ndarray, np.generic))


@function
def asarray(obj, *, dtype=None, device=None, copy=None, requires_grad=False) -> Tensor:
    """``obj`` as a tensor: a copy if ``copy`` or if it must be one. A Python buffer's bytes are elements of ``dtype``,
    or the default dtype. ValueError if it must be a copy and ``copy`` is False. Follows ``torch.asarray``."""
    if _is_buffer(obj):
        plain = get_default_dtype() if dtype is None else dtype
        shares = as_tensor(frombuffer(obj, dtype=plain), None, device)
        return (shares.clone() if copy else shares).requires_grad_(requires_grad)
    shares = as_tensor(obj, dtype, device)
    same = _address(obj) == address_of(shares)
    if copy is False and not same:
        raise ValueError(f"asarray: can't alias {type(obj).__name__} of another dtype, or without memory of its own")
    if copy and same:
        shares = shares.detach().clone()
    if shares is not obj or requires_grad != shares.requires_grad:
        shares = shares.detach()
        return make_leaf(shares) if requires_grad else shares
    return shares


@function
def frombuffer(buffer, *, dtype, count=-1, offset=0, requires_grad=False) -> Tensor:
    """A 1-d tensor on the memory of a Python buffer: ``count`` elements (all) from byte ``offset`` on. ValueError if
    they are not there. Follows ``torch.frombuffer``."""
    code = dtype_code(dtype, "frombuffer")
    size = ALL[code].itemsize
    data = _bytes(buffer, "frombuffer")
    if not 0 <= offset < data.size:
        raise ValueError(
            f"frombuffer: offset ({offset} bytes) must be non-negative and no greater than buffer length "
            f"({data.size} bytes) minus 1"
        )
    room = data.size - offset
    if count < 0:
        if room % size:
            raise ValueError(
                f"frombuffer: buffer length ({data.size} bytes) after offset ({offset} bytes) must be a "
                f"multiple of element size ({size})"
            )
        count = room // size
    if count == 0 or count * size > room:
        raise ValueError(
            f"frombuffer: requested buffer length ({count} * {size} bytes) after offset ({offset} bytes) "
            f"must not be 0 or greater than actual buffer length ({data.size} bytes)"
        )
    elements = data[offset : offset + count * size].view(f"u{size}")
    return finish(share_numpy(elements, code), "frombuffer", requires_grad)


@function(kind="query")
def is_tensor(obj) -> bool:
    """Is ``obj`` a Tensor? Follows ``torch.is_tensor``."""
    return isinstance(obj, Tensor)


@function
def from_numpy(ndarray) -> Tensor:
    """A tensor on an ndarray's own memory. TypeError for dtypes without counterpart, ValueError for negative strides
    and foreign byte order. Follows ``torch.from_numpy``.

    Args:
        ndarray: an ndarray
    Returns:
        A tensor that shares the ndarray's memory.
    Raises:
        TypeError: no ndarray, or its dtype has no counterpart
        ValueError: a stride is negative, or the bytes are in another machine's order
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    return share_numpy(ndarray)


def _filled(op: str, value: int):
    def create(*size, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False, out=None, **named):
        if named:
            size = size_argument(op, size, named)
        shape = sizes(size, op)
        if out is not None:
            return into(out, shape, op).fill_(value)
        code = get_default_dtype().code if dtype is None else dtype_code(dtype, op)
        made = on_device(device, attempted.tt_full, code, len(shape), shape, lib.TT_KIND_INT, 0.0, value)
        return finish(made, op, requires_grad, pin_memory)

    create.__name__ = create.__qualname__ = op
    create.__doc__ = f"""A tensor of shape ``size`` filled with {value}. Follows ``torch.{op}``.

    Returns:
        A tensor of the default dtype, unless another is given.
    Raises:
        RuntimeError: a size is negative
    """
    return function(create)


def size_argument(op: str, size: tuple, named: dict) -> tuple:
    """``size=(2, 3)`` by keyword; TypeError for other keywords."""
    if size or set(named) != {"size"}:
        unknown = next((k for k in named if k != "size"), "size")
        raise TypeError(f"{op}() got an unexpected keyword argument '{unknown}'")
    return (named["size"],)


def into(out: Tensor, shape, op: str) -> Tensor:
    """``out`` brought to ``shape``, for the ``out=`` argument of a creation."""
    if not isinstance(out, Tensor):
        raise TypeError(f"{op}(): argument 'out' must be Tensor, not {type(out).__name__}")
    return out if out.shape == tuple(shape) else out.resize_(tuple(shape))


zeros = _filled("zeros", 0)
ones = _filled("ones", 1)


@function
def full(
    size, fill_value, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """A tensor of shape ``size`` filled with a number, whose kind decides the dtype unless given. Follows
    ``torch.full``.

    Args:
        size: the sizes
        fill_value: a number
    Returns:
        A tensor.
    Raises:
        RuntimeError: a size is negative, or the dtype cannot hold the number
    """
    if isinstance(fill_value, Tensor):
        dtype = fill_value.dtype if dtype is None and not fill_value.dtype.is_differentiable else dtype
        fill_value = fill_value.item()
    shape = sizes((size,), "full")
    if out is not None:
        return into(out, shape, "full").fill_(fill_value)
    kind = scalar_kind(fill_value)
    code = dtype_of_kind(kind).code if dtype is None else dtype_code(dtype, "full")
    return finish(full_tensor(code, shape, kind, fill_value, device), "full", requires_grad, pin_memory)


def full_tensor(code: int, shape, kind: int, value, device) -> Tensor | None:
    """A tensor filled with a number; RuntimeError if the dtype cannot hold it."""
    check_fits(code, kind, value)
    return on_device(device, attempted.tt_full, code, len(shape), shape, *number_parts(kind, value))


@function
def empty(
    *size,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
    memory_format=None,
    out=None,
    **named,
) -> Tensor:
    """A tensor of shape ``size`` whose values are whatever the memory held. Follows ``torch.empty``.

    Args:
        size: the sizes, as numbers or one sequence
        memory_format: the order of the elements; row-major unless given
    Returns:
        A tensor.
    Raises:
        RuntimeError: a size is negative
    """
    if named:
        size = size_argument("empty", size, named)
    shape = sizes(size, "empty")
    if out is not None:
        return into(out, shape, "empty")
    code = code_of(dtype, "empty")
    if memory_format is None or memory_format is contiguous_format:
        made = on_device(device, attempted.tt_empty, code, len(shape), shape)
    else:
        strides = strides_of(shape, memory_format, "empty")
        made = on_device(device, attempted.tt_empty_strided, code, len(shape), shape, strides)
    return finish(made, "empty", requires_grad, pin_memory)
