"""Pooling as modules. Each holds the arguments of the function of nn.functional that it calls."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module


def _each(value, n: int) -> tuple:
    """One for each dimension, where a number means all."""
    return tuple(value) if isinstance(value, (tuple, list)) else (value,) * n


class _MaxPool(Module):
    def __init__(self, kernel_size, stride=None, padding=0, dilation=1, return_indices=False, ceil_mode=False):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Tensor):
        return self._function(
            input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices
        )

    def extra_repr(self):
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """The largest element of each window of (N, C, L) or (C, L). Follows ``torch.nn.MaxPool1d``."""

    _function = staticmethod(F.max_pool1d)


class MaxPool2d(_MaxPool):
    """The largest element of each window of (N, C, H, W) or (C, H, W). Follows ``torch.nn.MaxPool2d``."""

    _function = staticmethod(F.max_pool2d)


class MaxPool3d(_MaxPool):
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W). Follows ``torch.nn.MaxPool3d``."""

    _function = staticmethod(F.max_pool3d)


class AvgPool1d(Module):
    """The mean of each window of (N, C, L) or (C, L). Follows ``torch.nn.AvgPool1d``."""

    def __init__(self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True):
        super().__init__()
        self.kernel_size = _each(kernel_size, 1)
        self.stride, self.padding = _each(stride if stride is not None else kernel_size, 1), _each(padding, 1)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Module):
    def __init__(
        self, kernel_size, stride=None, padding=0, ceil_mode=False, count_include_pad=True, divisor_override=None
    ):
        super().__init__()
        self.kernel_size, self.stride = kernel_size, stride if stride is not None else kernel_size
        self.padding, self.ceil_mode = padding, ceil_mode
        self.count_include_pad, self.divisor_override = count_include_pad, divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return self._function(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool):
    """The mean of each window of (N, C, H, W) or (C, H, W). Follows ``torch.nn.AvgPool2d``."""

    _function = staticmethod(F.avg_pool2d)


class AvgPool3d(_AvgPool):
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W). Follows ``torch.nn.AvgPool3d``."""

    _function = staticmethod(F.avg_pool3d)


class _LPPool(Module):
    def __init__(self, norm_type, kernel_size, stride=None, ceil_mode=False):
        super().__init__()
        self.norm_type, self.kernel_size = norm_type, kernel_size
        self.stride, self.ceil_mode = stride, ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self):
        return (
            f"norm_type={self.norm_type}, kernel_size={self.kernel_size}, stride={self.stride}, "
            f"ceil_mode={self.ceil_mode}"
        )


class LPPool1d(_LPPool):
    """The norm of each window of (N, C, L) or (C, L). Follows ``torch.nn.LPPool1d``."""

    _function = staticmethod(F.lp_pool1d)


class LPPool2d(_LPPool):
    """The norm of each window of (N, C, H, W) or (C, H, W). Follows ``torch.nn.LPPool2d``."""

    _function = staticmethod(F.lp_pool2d)


class LPPool3d(_LPPool):
    """The norm of each window of (N, C, D, H, W) or (C, D, H, W). Follows ``torch.nn.LPPool3d``."""

    _function = staticmethod(F.lp_pool3d)


class _FractionalMaxPool(Module):
    def __init__(self, kernel_size, output_size=None, output_ratio=None, return_indices=False, _random_samples=None):
        super().__init__()
        n, name = self._dims, type(self).__name__
        if output_size is None and output_ratio is None:
            raise ValueError(f"{name} requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        self.kernel_size = _each(kernel_size, n)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else _each(output_size, n)
        self.output_ratio = None if output_ratio is None else _each(output_ratio, n)
        if self.output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor):
        return self._function(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPool):
    """The largest elements of windows of (N, C, H, W) or (C, H, W) at random distances. Follows
    ``torch.nn.FractionalMaxPool2d``."""

    _dims, _function = 2, staticmethod(F.fractional_max_pool2d)


class FractionalMaxPool3d(_FractionalMaxPool):
    """The largest elements of windows of (N, C, D, H, W) or (C, D, H, W) at random distances. Follows
    ``torch.nn.FractionalMaxPool3d``."""

    _dims, _function = 3, staticmethod(F.fractional_max_pool3d)


class _MaxUnpool(Module):
    def __init__(self, kernel_size, stride=None, padding=0):
        super().__init__()
        n = self._dims
        self.kernel_size = _each(kernel_size, n)
        self.stride, self.padding = _each(stride if stride is not None else kernel_size, n), _each(padding, n)

    def forward(self, input: Tensor, indices: Tensor, output_size=None) -> Tensor:
        return self._function(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self):
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class MaxUnpool1d(_MaxUnpool):
    """Maxima put back where MaxPool1d has found them. Follows ``torch.nn.MaxUnpool1d``."""

    _dims, _function = 1, staticmethod(F.max_unpool1d)


class MaxUnpool2d(_MaxUnpool):
    """Maxima put back where MaxPool2d has found them. Follows ``torch.nn.MaxUnpool2d``."""

    _dims, _function = 2, staticmethod(F.max_unpool2d)


class MaxUnpool3d(_MaxUnpool):
    """Maxima put back where MaxPool3d has found them. Follows ``torch.nn.MaxUnpool3d``."""

    _dims, _function = 3, staticmethod(F.max_unpool3d)


class _AdaptiveAvgPool(Module):
    def __init__(self, output_size):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return self._function(input, self.output_size)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """The means of windows that share (N, C, L) or (C, L) out. Follows ``torch.nn.AdaptiveAvgPool1d``."""

    _function = staticmethod(F.adaptive_avg_pool1d)


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """The means of windows that share (N, C, H, W) or (C, H, W) out. Follows ``torch.nn.AdaptiveAvgPool2d``."""

    _function = staticmethod(F.adaptive_avg_pool2d)


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """The means of windows that share (N, C, D, H, W) or (C, D, H, W) out. Follows
    ``torch.nn.AdaptiveAvgPool3d``."""

    _function = staticmethod(F.adaptive_avg_pool3d)


class _AdaptiveMaxPool(Module):
    def __init__(self, output_size, return_indices=False):
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Tensor):
        return self._function(input, self.output_size, self.return_indices)

    def extra_repr(self):
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """The largest elements of windows that share (N, C, L) or (C, L) out. Follows ``torch.nn.AdaptiveMaxPool1d``."""

    _function = staticmethod(F.adaptive_max_pool1d)


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """The largest elements of windows that share (N, C, H, W) or (C, H, W) out. Follows
    ``torch.nn.AdaptiveMaxPool2d``."""

    _function = staticmethod(F.adaptive_max_pool2d)


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """The largest elements of windows that share (N, C, D, H, W) or (C, D, H, W) out. Follows
    ``torch.nn.AdaptiveMaxPool3d``."""

    _function = staticmethod(F.adaptive_max_pool3d)
