"""Utilities. Follows ``torch.utils``."""

from . import checkpoint, data, dlpack, hooks, serialization

__all__ = ["checkpoint", "data", "dlpack", "hooks", "serialization"]
