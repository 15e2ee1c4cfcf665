"""Memory of CUDA devices shared with other libraries: version 3 of ``__cuda_array_interface__``, both ways."""

from __future__ import annotations

import numpy as np

from ..backends.cpu import error, ffi, lib
from ..backends.cuda import runtime
from ..layouts import row_major
from ..tensor import Tensor, address_of, tensor_on
from .from_python import numpy_code

_LEGACY = 1  # the default stream, as the protocol calls it
_READONLY = lib.TT_FLAG_READONLY


def share_device(source):
    """A tensor on the device memory of an object with ``__cuda_array_interface__``, which it keeps alive. Our
    current stream waits for the object's. TypeError for dtypes without a counterpart, ValueError for negative
    strides."""
    interface = source.__cuda_array_interface__
    if not isinstance(interface, dict):  # a class has the property, and no array
        raise TypeError(f"expected an array on a device, got {type(source).__name__}")
    if interface.get("mask") is not None:
        raise NotImplementedError("as_tensor: arrays with a mask are not supported")
    code = numpy_code(np.dtype(interface["typestr"]))
    size, shape = lib.tt_itemsize(code), tuple(interface["shape"])
    address, readonly = interface["data"]
    steps = interface.get("strides")
    if steps is None:
        strides = row_major(shape)
    else:
        if any(n > 1 and (s < 0 or s % size) for n, s in zip(shape, steps)):
            raise ValueError(
                f"as_tensor: the strides {tuple(steps)} are negative or no multiples of the element's {size} bytes"
            )
        strides = [max(s // size, 0) for s in steps]
    extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, strides))
    index = runtime.current_device() if not address else _device_of(address)
    runtime.open_device(index)
    if (stream := interface.get("stream")) is not None:
        runtime.let_wait(index, runtime.current_handle(index), stream)
    memory = ffi.cast("void *", address)
    t = tensor_on(source, "as_tensor", code, shape, strides, memory, extent * size, index + 1)
    if readonly:
        t._h.flags |= _READONLY
    return t


def _device_of(address: int) -> int:
    runtime.open_device(runtime.current_device())
    return runtime.driver().device_of(address)


def _interface(self) -> dict:
    """This tensor's device memory for other libraries: version 3 of the CUDA array interface. AttributeError for
    tensors of the CPU, RuntimeError if it requires grad, TypeError for bfloat16, which the protocol lacks."""
    if not self.is_cuda:
        raise AttributeError(
            f"Can't get __cuda_array_interface__ on non-CUDA tensor type: {self.type()} If CUDA data "
            "is required use tensor.cuda() to copy tensor to device memory."
        )
    if self.requires_grad:
        raise RuntimeError(
            "Can't get __cuda_array_interface__ on Variable that requires grad. If gradients aren't "
            "required, use var.detach() to get Variable that doesn't require grad."
        )
    h = self._h
    typestr = self.dtype.typestr
    if typestr is None:
        raise TypeError(f"__cuda_array_interface__: {self.dtype!r} has no type string")
    strides = None if h.flags & lib.TT_FLAG_CONTIGUOUS else tuple(s * self.itemsize for s in self.stride())
    if lib.tt_sync(h, 1) < 0:
        raise error("__cuda_array_interface__")
    return {
        "version": 3,
        "shape": tuple(self.shape),
        "typestr": typestr,
        "strides": strides,
        "data": (address_of(self) if h.numel else 0, h.flags & _READONLY != 0),
        "stream": runtime.current_handle(self.get_device()) or _LEGACY,
    }


Tensor.__cuda_array_interface__ = property(_interface)
