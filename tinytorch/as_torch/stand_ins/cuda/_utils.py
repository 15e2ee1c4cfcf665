"""``torch.cuda._utils``."""

from .._utils import _get_device_index

__all__ = ["_get_device_index"]
