"""Mixed precision under its older names. Follows ``torch.cpu.amp``."""

from __future__ import annotations

import warnings

from ..amp import autocast_mode, grad_scaler
from ..dtypes import bfloat16

__all__ = ["GradScaler", "autocast"]


class autocast(autocast_mode.autocast):
    """Deprecated: ``amp.autocast("cpu", ...)``. Follows ``torch.cpu.amp.autocast``."""

    def __init__(self, enabled: bool = True, dtype=bfloat16, cache_enabled: bool = True):
        _warn("autocast")
        super().__init__("cpu", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """Deprecated: ``amp.GradScaler("cpu", ...)``. Follows ``torch.cpu.amp.GradScaler``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        _warn("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def _warn(name: str) -> None:
    warnings.warn(
        f"`tinytorch.cpu.amp.{name}(args...)` is deprecated. "
        f"Please use `tinytorch.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )
