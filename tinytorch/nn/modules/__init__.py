"""PyTorch's path to Module, and to hooks on all modules. Follows ``torch.nn.modules``."""

from . import module
from .module import Module

__all__ = ["Module", "module"]
