"""Automatic mixed precision. Follows ``torch.amp``."""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

from ..cpu import amp as _of_cpu  # noqa: F401 (programs name it so; made of the above)
from ..cuda import amp as _of_cuda  # noqa: F401

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
