"""DLPack: tensors handed to and taken from other libraries without a copy.

The structures are made in C (kernels/cpu/dlpack.c); the capsules that carry them are Python objects, made here.
"""

from __future__ import annotations

import ctypes

from .backends.cpu import error, ffi, lib
from .ops.declare import function
from .tensor import Tensor, wrap

_CPU = 1
_NAMES = (b"dltensor", b"dltensor_versioned")
_USED = (b"used_dltensor", b"used_dltensor_versioned")

_api = ctypes.pythonapi
_new_capsule = _api.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", _api))


@ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
def _destroy(capsule, names=_NAMES, is_valid=_is_valid, get_pointer=_get_pointer, delete=lib.tt_dlpack_delete,
             cast=ffi.cast):
    """A capsule that nobody took goes: lets go of what it carries."""
    for versioned, name in enumerate(names):
        if is_valid(capsule, name):
            delete(cast("void *", get_pointer(capsule, name)), versioned)


_destroy_address = ctypes.cast(_destroy, ctypes.c_void_p)


def _export(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule on this tensor's memory. BufferError if it requires grad, or for another device. Follows
    ``torch.Tensor.__dlpack__``."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if dl_device is not None and int(dl_device[0]) != _CPU:
        raise BufferError(f"__dlpack__: the tensor is on the CPU, wanted DLPack device {tuple(dl_device)}")
    if stream not in (None, -1):
        raise AssertionError("__dlpack__: stream should be None on cpu.")
    t = self.clone() if copy else self
    versioned = int(max_version is not None and max_version[0] >= 1)
    managed = lib.tt_to_dlpack(t._h, versioned, bool(copy))
    if not managed:
        raise error("__dlpack__")
    return _new_capsule(int(ffi.cast("intptr_t", managed)), _NAMES[versioned], _destroy_address)


def _device(self) -> tuple[int, int]:
    """The DLPack device: (1, 0), the CPU."""
    return _CPU, 0


@function
def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    """A tensor on the memory of another library's array, or of a DLPack capsule. RuntimeError for dtypes and devices
    that are not supported. Follows ``torch.from_dlpack``."""
    if hasattr(ext_tensor, "__dlpack__"):
        if ext_tensor.__dlpack_device__()[0] != _CPU:
            raise RuntimeError(f"from_dlpack: unsupported DLPack device {tuple(ext_tensor.__dlpack_device__())}")
        options = {} if copy is None else {"copy": copy}
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0), **options)
        except TypeError:  # made before version 1
            capsule = ext_tensor.__dlpack__()
    else:
        capsule = ext_tensor
    address = id(capsule)
    for versioned, name in enumerate(_NAMES):
        if type(capsule).__name__ == "PyCapsule" and _is_valid(address, name):
            managed = ffi.cast("void *", _get_pointer(address, name))
            h = lib.tt_from_dlpack(managed, versioned)
            if not h:
                raise error("from_dlpack")
            _set_name(address, _USED[versioned])  # it is ours now: its destructor must not free it
            return wrap(h)
    raise RuntimeError("from_dlpack: wanted an object with __dlpack__ or a capsule that was not consumed yet, got "
                       f"{type(ext_tensor).__name__}")


@function
def to_dlpack(tensor):
    """A DLPack capsule on ``tensor``'s memory. Follows ``torch.utils.dlpack.to_dlpack``."""
    return tensor.__dlpack__()


Tensor.__dlpack__, Tensor.__dlpack_device__ = _export, _device
