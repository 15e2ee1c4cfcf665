"""What makes a layer lazy. Follows ``torch.nn.modules.lazy``."""

from ..lazy import LazyModuleMixin

__all__ = ["LazyModuleMixin"]
