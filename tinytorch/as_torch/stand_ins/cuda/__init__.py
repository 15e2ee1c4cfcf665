"""Further names of ``torch.cuda``."""

from __future__ import annotations

import tinytorch
from tinytorch.cuda import max_memory_reserved as max_memory_cached
from tinytorch.cuda import memory_reserved as memory_cached
from tinytorch.cuda import get_device_capability, is_available, memory_stats, reset_peak_memory_stats
from tinytorch.ops.typed import TYPES

from . import nvtx

__all__ = [
    *TYPES,
    "AcceleratorError",
    "CudaError",
    "get_arch_list",
    "get_gencode_flags",
    "get_sync_debug_mode",
    "has_half",
    "has_magma",
    "ipc_collect",
    "is_tf32_supported",
    "max_memory_cached",
    "memory_cached",
    "memory_stats_as_nested_dict",
    "nvtx",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "set_sync_debug_mode",
]

has_half, has_magma = True, False


class AcceleratorError(RuntimeError):
    """PyTorch's error of a device."""


class CudaError(RuntimeError):
    """PyTorch's error of a call of CUDA."""


def is_tf32_supported() -> bool:
    """Has the device TF32?"""
    return is_available() and get_device_capability() >= (8, 0)


def memory_stats_as_nested_dict(device=None) -> dict:
    """``memory_stats`` as dictionaries within dictionaries; empty without a device."""
    made: dict = {}
    for name, value in memory_stats(device).items() if is_available() else ():
        *path, last = name.split(".")
        inner = made
        for part in path:
            inner = inner.setdefault(part, {})
        inner[last] = value
    return made


def get_gencode_flags() -> str:
    """Kernels are compiled for the device that is there."""
    return ""


reset_max_memory_allocated = reset_max_memory_cached = reset_peak_memory_stats


def _of_device(name: str, cpu: type):
    """``cuda.<name>``: makes tensors of a dtype on the device; an instance is such a tensor."""

    class OnDevice(type):
        def __call__(cls, *args, **kwargs):
            return cpu(*args, device="cuda", **kwargs)

        def __instancecheck__(cls, x) -> bool:
            return isinstance(x, tinytorch.Tensor) and x.dtype is cpu.dtype and x.is_cuda

    return OnDevice(name, (), {"__module__": "tinytorch.cuda", "__doc__": f"Tensors of {cpu.dtype!r} on the device."})


globals().update({name: _of_device(name, cpu) for name, cpu in TYPES.items()})


def ipc_collect() -> None:
    """Nothing."""


def get_arch_list() -> list[str]:
    """Kernels are compiled for the device that is there."""
    return []


def get_sync_debug_mode() -> int:
    """0."""
    return 0


def set_sync_debug_mode(debug_mode) -> None:
    """Changes nothing."""
