"""``torch.ao``: quantization is not there."""

from . import quantization

__all__ = ["quantization"]
