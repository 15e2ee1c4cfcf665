"""Mixed precision under its older names. Follows ``torch.cuda.amp``."""

from __future__ import annotations

import warnings

from ..amp import autocast_mode, grad_scaler
from ..dtypes import float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(autocast_mode.autocast):
    """Deprecated: ``amp.autocast("cuda", ...)``. Follows ``torch.cuda.amp.autocast``."""

    def __init__(self, enabled: bool = True, dtype=float16, cache_enabled: bool = True):
        _warn("autocast")
        super().__init__("cuda", dtype, enabled, cache_enabled)


class GradScaler(grad_scaler.GradScaler):
    """Deprecated: ``amp.GradScaler("cuda", ...)``. Follows ``torch.cuda.amp.GradScaler``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        _warn("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """Deprecated: ``amp.custom_fwd(device_type="cuda", ...)``. Follows ``torch.cuda.amp.custom_fwd``."""
    _warn("custom_fwd")
    return autocast_mode.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd):
    """Deprecated: ``amp.custom_bwd(device_type="cuda")``. Follows ``torch.cuda.amp.custom_bwd``."""
    _warn("custom_bwd")
    return autocast_mode.custom_bwd(bwd, device_type="cuda")


def _warn(name: str) -> None:
    warnings.warn(
        f"`tinytorch.cuda.amp.{name}(args...)` is deprecated. "
        f"Please use `tinytorch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
        stacklevel=3,
    )
