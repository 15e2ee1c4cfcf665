"""Further modules of ``torch.optim``."""

from . import optimizer

__all__ = ["optimizer"]
