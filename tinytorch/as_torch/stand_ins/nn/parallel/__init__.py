"""``torch.nn.parallel`` on one device."""

from .distributed import DistributedDataParallel
from .data_parallel import DataParallel
from .scatter_gather import gather, scatter

__all__ = ["DataParallel", "DistributedDataParallel", "gather", "scatter"]
