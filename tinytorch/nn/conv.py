"""Convolutions and transposed convolutions; blocks of images as columns, and back."""

from __future__ import annotations

import math

from ..ops.create import empty
from ..tensor import Tensor
from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter

_MODES = ("zeros", "reflect", "replicate", "circular")


def _each(value, n: int) -> tuple:
    """One of each dimension, where a number means all."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


def _check(in_channels, out_channels, groups, stride, padding, padding_mode) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    if in_channels % groups != 0:
        raise ValueError("in_channels must be divisible by groups")
    if out_channels % groups != 0:
        raise ValueError("out_channels must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of 'same', 'valid'")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _MODES:
        raise ValueError(f"padding_mode must be one of {_MODES}, but got padding_mode='{padding_mode}'")


class _ConvNd(Module):
    """What convolutions of any number of dimensions have in common; ``dimensions`` is a class's own."""

    dimensions = 0
    transposed = False

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        super().__init__()
        n = self.dimensions
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size, self.stride, self.dilation = _each(kernel_size, n), _each(stride, n), _each(dilation, n)
        self.padding = padding if isinstance(padding, str) else _each(padding, n)
        self.output_padding, self.padding_mode = _each(output_padding, n), padding_mode
        _check(in_channels, out_channels, groups, self.stride, self.padding, padding_mode)
        channels = (in_channels, out_channels // groups) if self.transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*channels, *self.kernel_size), device=device, dtype=dtype))
        self.register_parameter("bias", Parameter(empty(out_channels, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform within 1 / sqrt(the elements of a filter)."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            elements = self.weight.shape[1] * math.prod(self.kernel_size)
            bound = 1 / math.sqrt(elements) if elements > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def _sides(self) -> list[int]:
        """Elements before and behind each dimension, the last dimension first."""
        sides = []
        for d in reversed(range(self.dimensions)):
            reach = self.dilation[d] * (self.kernel_size[d] - 1)
            if self.padding == "same":
                sides += [reach // 2, reach - reach // 2]
            else:
                sides += [0, 0] if self.padding == "valid" else [self.padding[d]] * 2
        return sides

    def extra_repr(self):
        shown = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        usual = {"padding": 0, "dilation": 1, "output_padding": 0}
        for name, value in usual.items():
            if getattr(self, name) != (value,) * self.dimensions:
                shown += f", {name}={getattr(self, name)}"
        if self.groups != 1:
            shown += f", groups={self.groups}"
        if self.bias is None:
            shown += ", bias=False"
        return shown if self.padding_mode == "zeros" else f"{shown}, padding_mode={self.padding_mode}"


class _Convolution(_ConvNd):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        how = stride, padding, dilation, 0, groups, bias, padding_mode, device, dtype
        super().__init__(in_channels, out_channels, kernel_size, *how)

    def forward(self, input: Tensor) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = F.pad(input, self._sides(), mode=self.padding_mode), 0
        convolve = (F.conv1d, F.conv2d, F.conv3d)[self.dimensions - 1]
        return convolve(input, *self._weights(), self.stride, padding, self.dilation, self.groups)


class Conv1d(_Convolution):
    """The convolution of (N, in_channels, L), or of (in_channels, L), with filters of ``kernel_size``. Follows
    ``torch.nn.Conv1d``."""

    dimensions = 1


class Conv2d(_Convolution):
    """The convolution of (N, in_channels, H, W), or without N, with filters of ``kernel_size``. Follows
    ``torch.nn.Conv2d``."""

    dimensions = 2


class Conv3d(_Convolution):
    """The convolution of (N, in_channels, D, H, W), or without N, with filters of ``kernel_size``. Follows
    ``torch.nn.Conv3d``."""

    dimensions = 3


class _TransposedConvolution(_ConvNd):
    transposed = True

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation=1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        how = stride, padding, dilation, output_padding, groups, bias, padding_mode, device, dtype
        super().__init__(in_channels, out_channels, kernel_size, *how)

    def _output_padding(self, input: Tensor, output_size) -> tuple[int, ...]:
        """What makes the result that large."""
        if output_size is None:
            return self.output_padding
        n, wanted = self.dimensions, list(output_size)
        others = input.ndim - n
        if len(wanted) == others + n:
            wanted = wanted[others:]
        if len(wanted) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.ndim}D input, output_size must have {n} or {others + n} elements "
                f"(got {len(wanted)})"
            )
        smallest = [
            (input.shape[others + d] - 1) * self.stride[d]
            - 2 * self.padding[d]
            + self.dilation[d] * (self.kernel_size[d] - 1)
            + 1
            for d in range(n)
        ]
        largest = [size + stride - 1 for size, stride in zip(smallest, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(smallest, wanted, largest)):
            raise ValueError(
                f"requested an output size of {wanted}, but valid sizes range from {smallest} to {largest} (for an "
                f"input of {input.shape[2:]})"
            )
        return tuple([size - low for size, low in zip(wanted, smallest)])

    def forward(self, input: Tensor, output_size=None) -> Tensor:
        convolve = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)[self.dimensions - 1]
        output_padding = self._output_padding(input, output_size)
        how = self.stride, self.padding, output_padding, self.groups, self.dilation
        return convolve(input, *self._weights(), *how)


class ConvTranspose1d(_TransposedConvolution):
    """The transposed convolution of (N, in_channels, L), or without N. Follows ``torch.nn.ConvTranspose1d``."""

    dimensions = 1


class ConvTranspose2d(_TransposedConvolution):
    """The transposed convolution of (N, in_channels, H, W), or without N. Follows ``torch.nn.ConvTranspose2d``."""

    dimensions = 2


class ConvTranspose3d(_TransposedConvolution):
    """The transposed convolution of (N, in_channels, D, H, W), or without N. Follows ``torch.nn.ConvTranspose3d``."""

    dimensions = 3


class _Blocks(Module):
    def extra_repr(self):
        return ", ".join(f"{name}={getattr(self, name)}" for name in self.shown)


class Unfold(_Blocks):
    """The blocks of an image as columns: (N, C, H, W) to (N, C * elements of a block, blocks). Follows
    ``torch.nn.Unfold``."""

    shown = ("kernel_size", "dilation", "padding", "stride")

    def __init__(self, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)


class Fold(_Blocks):
    """The sum of columns at their places in an image: (N, C * elements of a block, blocks) to (N, C, *output_size).
    Follows ``torch.nn.Fold``."""

    shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def __init__(self, output_size, kernel_size, dilation=1, padding=0, stride=1):
        super().__init__()
        self.output_size, self.kernel_size = output_size, kernel_size
        self.dilation, self.padding, self.stride = dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)
