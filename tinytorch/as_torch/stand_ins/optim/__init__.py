"""Further modules of ``torch.optim``."""

from . import lbfgs, optimizer

__all__ = ["lbfgs", "optimizer"]
