"""Utilities. Follows ``torch.utils``."""

from . import checkpoint, data, dlpack

__all__ = ["checkpoint", "data", "dlpack"]
