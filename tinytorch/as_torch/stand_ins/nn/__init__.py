"""Further names of ``torch.nn``."""

from . import common_types, parallel
from .parallel import DataParallel

__all__ = ["DataParallel", "common_types", "parallel"]
