"""The layout of convolutions' weights. Follows ``torch.nn.utils.memory_format``."""

from __future__ import annotations

from ...layouts import memory_format as _memory_format
from ..conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d
from ..module import Module

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Module, kinds: tuple[type, ...], memory_format: _memory_format) -> Module:
    for part in module.modules():
        if isinstance(part, kinds):
            part.weight.data = part.weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Module, memory_format: _memory_format) -> Module:
    """Lays out the weights of all ``Conv2d`` and ``ConvTranspose2d`` inside, in place. Returns the module."""
    return _convert(module, (Conv2d, ConvTranspose2d), memory_format)


def convert_conv3d_weight_memory_format(module: Module, memory_format: _memory_format) -> Module:
    """Lays out the weights of all ``Conv3d`` and ``ConvTranspose3d`` inside, in place. Returns the module."""
    return _convert(module, (Conv3d, ConvTranspose3d), memory_format)
