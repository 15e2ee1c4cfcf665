"""DLPack: tensors handed to and taken from other libraries without a copy.

The structures are made in C (kernels/core/dlpack.c); the capsules that carry them are Python objects, made here.
"""

from __future__ import annotations

import ctypes

from .backends.cpu import error, ffi, lib
from .backends.cuda import runtime
from .ops.declare import function
from .tensor import Tensor, attempted

_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED = 1, 2, 3, 13
_LEGACY = 1  # the default stream, as the protocol calls it
_NAMES = (b"dltensor", b"dltensor_versioned")
_USED = (b"used_dltensor", b"used_dltensor_versioned")

_api = ctypes.pythonapi
_new_capsule = _api.PyCapsule_New
_new_capsule.restype, _new_capsule.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_GetPointer", _api))
_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_IsValid", _api))
_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p)(("PyCapsule_SetName", _api))


lib.tt_dlpack_use(
    ffi.new(
        "tt_capsules *",
        [
            ffi.cast("void *", ctypes.cast(symbol, ctypes.c_void_p).value)
            for symbol in (
                _api.PyCapsule_IsValid,
                _api.PyCapsule_GetPointer,
                _api.PyErr_Fetch,
                _api.PyErr_Restore,
                _api.PyEval_SaveThread,
                _api.PyEval_RestoreThread,
            )
        ],
    )
)
_destructor = int(ffi.cast("intptr_t", ffi.addressof(lib, "tt_dlpack_end")))


def _export(self, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A DLPack capsule on this tensor's memory. ``stream``, where the tensor is on a CUDA device, is the consumer's:
    its work waits for what our current stream has to do by now; None and 1 mean the default stream, -1 that nothing is
    to wait. BufferError if it requires grad, or for another device. Follows ``torch.Tensor.__dlpack__``."""
    if stream is not None and (not isinstance(stream, int) or isinstance(stream, bool)):
        raise TypeError(f"__dlpack__: stream must be int or None, not {type(stream).__name__}")
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if dl_device is not None and tuple(map(int, dl_device)) != _device(self):
        raise BufferError(f"__dlpack__: the tensor is on {self.device}, wanted DLPack device {tuple(dl_device)}")
    t = self.clone() if copy else self
    if lib.tt_sync(t._h, 1) < 0:  # before the consumer's stream is told what to wait for
        raise error("__dlpack__")
    if t.is_cuda:
        _await_current(t.get_device(), stream)
    elif stream not in (None, -1):
        raise AssertionError("__dlpack__: stream should be None on cpu.")
    versioned = int(max_version is not None and max_version[0] >= 1)
    managed = lib.tt_to_dlpack(t._h, versioned, bool(copy))
    if not managed:
        raise error("__dlpack__")
    return _new_capsule(int(ffi.cast("intptr_t", managed)), _NAMES[versioned], _destructor)


def _await_current(index: int, stream) -> None:
    """The consumer's stream waits for our current one."""
    if stream is not None and type(stream) is not int:
        raise TypeError(f"__dlpack__: stream must be int or None, not {type(stream).__name__}")
    if stream == 0:
        raise BufferError("__dlpack__: stream 0 is ambiguous: 1 is the default stream, 2 that of the thread")
    if stream != -1:
        runtime.let_wait(index, _LEGACY if stream is None else stream, runtime.current_handle(index))


def _device(self) -> tuple[int, int]:
    """The DLPack device: (1, 0), the CPU, or (2, k) for cuda:k."""
    return (_CUDA, self.get_device()) if self.is_cuda else (_CPU, 0)


@function
def from_dlpack(ext_tensor, *, device=None, copy=None) -> Tensor:
    """A tensor on the memory of another library's array, or of a DLPack capsule. RuntimeError for dtypes and devices
    that are not supported. Follows ``torch.from_dlpack``."""
    if hasattr(ext_tensor, "__dlpack__"):
        kind, index = map(int, ext_tensor.__dlpack_device__())
        if kind not in (_CPU, _CUDA, _CUDA_HOST, _CUDA_MANAGED):
            raise RuntimeError(f"from_dlpack: unsupported DLPack device {kind, index}")
        options = {} if copy is None else {"copy": copy}
        stream = {}
        if kind in (_CUDA, _CUDA_MANAGED):  # the producer lets our current stream wait for its own
            runtime.open_device(index)
            stream["stream"] = runtime.current_handle(index) or _LEGACY
        try:
            capsule = ext_tensor.__dlpack__(max_version=(1, 0), **options, **stream)
        except TypeError:  # made before version 1
            capsule = ext_tensor.__dlpack__(**stream)
    else:
        capsule = ext_tensor
    address = id(capsule)
    for versioned, name in enumerate(_NAMES):
        if type(capsule).__name__ == "PyCapsule" and _is_valid(address, name):
            managed = ffi.cast("void *", _get_pointer(address, name))
            t = attempted.tt_from_dlpack(managed, versioned)
            if t is None:
                raise error("from_dlpack")
            _set_name(address, _USED[versioned])  # it is ours now: its destructor must not free it
            if t.is_cuda:
                runtime.open_device(t.get_device())
            return t if device is None else t.to(device)
    raise RuntimeError(
        "from_dlpack: wanted an object with __dlpack__ or a capsule that was not consumed yet, got "
        f"{type(ext_tensor).__name__}"
    )


@function
def to_dlpack(tensor):
    """A DLPack capsule on ``tensor``'s memory. Follows ``torch.utils.dlpack.to_dlpack``."""
    return tensor.__dlpack__()


Tensor.__dlpack__, Tensor.__dlpack_device__ = _export, _device
