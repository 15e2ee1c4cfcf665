"""Further names of ``torch.cuda``."""

from __future__ import annotations

import tinytorch
from tinytorch.cuda import max_memory_reserved as max_memory_cached
from tinytorch.cuda import memory_reserved as memory_cached
from tinytorch.cuda import reset_peak_memory_stats
from tinytorch.ops.typed import TYPES

from . import nvtx

__all__ = [
    *TYPES,
    "get_arch_list",
    "get_sync_debug_mode",
    "has_half",
    "ipc_collect",
    "max_memory_cached",
    "memory_cached",
    "nvtx",
    "reset_max_memory_allocated",
    "reset_max_memory_cached",
    "set_sync_debug_mode",
]

has_half = True
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
