"""PyTorch's path to Module, to lazy modules, and to hooks on all modules. Follows ``torch.nn.modules``."""

from . import lazy, module
from .module import Module

__all__ = ["Module", "lazy", "module"]
