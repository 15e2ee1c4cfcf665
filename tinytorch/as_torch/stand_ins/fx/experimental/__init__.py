"""``torch.fx.experimental``."""

from . import proxy_tensor

__all__ = ["proxy_tensor"]
