"""``torch.nn.parallel`` on one device."""

from .distributed import DistributedDataParallel
from .data_parallel import DataParallel

__all__ = ["DataParallel", "DistributedDataParallel"]
