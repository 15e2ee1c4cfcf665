"""``torch.distributed.algorithms``."""

from . import join

__all__ = ["join"]
