"""What DataLoader is made of. Follows ``torch.utils.data._utils``."""

from . import channel, collate, fetch, pin_memory, worker
from .worker import ExceptionWrapper

#: Seconds that workers are given to end by themselves.
MP_STATUS_CHECK_INTERVAL = 5.0

__all__ = ["ExceptionWrapper", "MP_STATUS_CHECK_INTERVAL", "channel", "collate", "fetch", "pin_memory", "worker"]
