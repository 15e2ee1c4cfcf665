"""Automatic mixed precision. Follows ``torch.amp``."""

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

from ..cpu import amp as _of_cpu  # isort: skip (they are made of the above)
from ..cuda import amp as _of_cuda  # isort: skip

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
