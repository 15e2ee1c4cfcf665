"""Utilities. Follows ``torch.utils``."""

from . import data, dlpack

__all__ = ["data", "dlpack"]
