"""Autocast switched on and off without a context, and its functions' older names. Follows ``torch``."""

from __future__ import annotations

import threading
import warnings

from ..autograd.modes import ModeSwitch
from ..dtypes import dtype
from . import autocast_mode
from .autocast_mode import get_autocast_dtype, is_autocast_enabled, set_autocast_dtype

__all__ = [
    "autocast_decrement_nesting",
    "autocast_increment_nesting",
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_cpu_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_enabled",
    "set_autocast_gpu_dtype",
]


class _Switch(ModeSwitch):
    """Autocast for one kind of device, on or off from now on."""

    def configure(self, device_type: str, enabled: bool):
        self.device, self.dtype = device_type, get_autocast_dtype(device_type) if enabled else None
        if enabled:
            autocast_mode.install()

    def inside(self, outside):
        return autocast_mode.switched(outside, self.device, self.dtype, autocast_mode.is_autocast_cache_enabled())


def set_autocast_enabled(device_type, enabled: bool | None = None) -> None:
    """Switches this thread's autocast on or off for a kind of device, "cuda" where ``enabled`` is all that is given.
    The contexts around restore what was before them. Follows ``torch.set_autocast_enabled``."""
    if enabled is None:
        device_type, enabled = "cuda", device_type
    autocast_mode.check_device(device_type)
    if not isinstance(enabled, bool):
        raise TypeError(f"set_autocast_enabled(): argument 'enabled' must be bool, not {type(enabled).__name__}")
    _Switch(device_type, enabled)


class _Depth(threading.local):
    depth = 0


_nesting = _Depth()


def autocast_increment_nesting() -> int:
    """One level more of a program's own contexts; returns how many there are in this thread."""
    _nesting.depth += 1
    return _nesting.depth


def autocast_decrement_nesting() -> int:
    """One level less; at 0 a program calls ``clear_autocast_cache``."""
    _nesting.depth -= 1
    return _nesting.depth


def _deprecated(old: str, new: str) -> None:
    warnings.warn(
        f"tinytorch.{old} is deprecated. Please use tinytorch.{new} instead.", DeprecationWarning, stacklevel=3
    )


def is_autocast_cpu_enabled() -> bool:
    """Deprecated: ``is_autocast_enabled("cpu")``."""
    _deprecated("is_autocast_cpu_enabled()", "is_autocast_enabled('cpu')")
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """Deprecated: ``set_autocast_enabled("cpu", enabled)``."""
    _deprecated("set_autocast_cpu_enabled(enabled)", "set_autocast_enabled('cpu', enabled)")
    set_autocast_enabled("cpu", enabled)


def get_autocast_gpu_dtype() -> dtype:
    """Deprecated: ``get_autocast_dtype("cuda")``."""
    _deprecated("get_autocast_gpu_dtype()", "get_autocast_dtype('cuda')")
    return get_autocast_dtype("cuda")


def get_autocast_cpu_dtype() -> dtype:
    """Deprecated: ``get_autocast_dtype("cpu")``."""
    _deprecated("get_autocast_cpu_dtype()", "get_autocast_dtype('cpu')")
    return get_autocast_dtype("cpu")


def set_autocast_gpu_dtype(dtype: dtype) -> None:
    """Deprecated: ``set_autocast_dtype("cuda", dtype)``."""
    _deprecated("set_autocast_gpu_dtype(dtype)", "set_autocast_dtype('cuda', dtype)")
    set_autocast_dtype("cuda", dtype)


def set_autocast_cpu_dtype(dtype: dtype) -> None:
    """Deprecated: ``set_autocast_dtype("cpu", dtype)``."""
    _deprecated("set_autocast_cpu_dtype(dtype)", "set_autocast_dtype('cpu', dtype)")
    set_autocast_dtype("cpu", dtype)
