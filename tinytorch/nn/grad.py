"""The gradients of convolutions by input and weight, as functions. Follows ``torch.nn.grad``."""

from __future__ import annotations

from collections.abc import Callable

from ..ops.conv import gradient_by_input, gradient_by_weight
from ..tensor import Tensor

__all__ = ["conv1d_input", "conv1d_weight", "conv2d_input", "conv2d_weight", "conv3d_input", "conv3d_weight"]


def _by_input(n: int) -> Callable:
    def gradient(input_size, weight: Tensor, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1) -> Tensor:
        return gradient_by_input(name, input_size, weight, grad_output, stride, padding, dilation, groups)

    name = gradient.__name__ = gradient.__qualname__ = f"conv{n}d_input"
    gradient.__doc__ = f"The gradient of ``conv{n}d`` by its input, of shape ``input_size``."
    return gradient


def _by_weight(n: int) -> Callable:
    def gradient(input: Tensor, weight_size, grad_output: Tensor, stride=1, padding=0, dilation=1, groups=1) -> Tensor:
        return gradient_by_weight(name, input, weight_size, grad_output, stride, padding, dilation, groups)

    name = gradient.__name__ = gradient.__qualname__ = f"conv{n}d_weight"
    gradient.__doc__ = f"The gradient of ``conv{n}d`` by its weight, of shape ``weight_size``."
    return gradient


conv1d_input, conv2d_input, conv3d_input = map(_by_input, (1, 2, 3))
conv1d_weight, conv2d_weight, conv3d_weight = map(_by_weight, (1, 2, 3))
