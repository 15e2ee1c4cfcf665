"""What registering a hook returns. Follows ``torch.utils.hooks``."""

from ..autograd.node import Handle as RemovableHandle

__all__ = ["RemovableHandle"]
