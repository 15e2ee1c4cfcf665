"""Padding as modules."""

from __future__ import annotations

from ..tensor import Tensor
from . import functional as F
from .module import Module


class _Pad(Module):
    """``padding`` as F.pad takes it, or a number for all sides."""

    def __init__(self, padding):
        super().__init__()
        self.padding = tuple(padding) if isinstance(padding, (tuple, list)) else (padding,) * (2 * self._dims)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self):
        return f"{self.padding}"


class _ConstantPad(_Pad):
    def __init__(self, padding, value):
        super().__init__(padding)
        self.value = value

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self):
        return f"padding={self.padding}, value={self.value}"


class _ZeroPad(_ConstantPad):
    def __init__(self, padding):
        super().__init__(padding, 0.0)

    def extra_repr(self):
        return f"{self.padding}"


class _CircularPad(_Pad):
    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class ConstantPad1d(_ConstantPad):
    """A number before and behind the last dimension. Follows ``torch.nn.ConstantPad1d``."""

    _dims = 1


class ConstantPad2d(_ConstantPad):
    """A number before and behind the last 2 dimensions. Follows ``torch.nn.ConstantPad2d``."""

    _dims = 2


class ConstantPad3d(_ConstantPad):
    """A number before and behind the last 3 dimensions. Follows ``torch.nn.ConstantPad3d``."""

    _dims = 3


class ZeroPad1d(_ZeroPad):
    """Zeros before and behind the last dimension. Follows ``torch.nn.ZeroPad1d``."""

    _dims = 1


class ZeroPad2d(_ZeroPad):
    """Zeros before and behind the last 2 dimensions. Follows ``torch.nn.ZeroPad2d``."""

    _dims = 2


class ZeroPad3d(_ZeroPad):
    """Zeros before and behind the last 3 dimensions. Follows ``torch.nn.ZeroPad3d``."""

    _dims = 3


class ReflectionPad1d(_Pad):
    """The elements, mirrored, before and behind the last dimension. Follows ``torch.nn.ReflectionPad1d``."""

    _dims, _mode = 1, "reflect"


class ReflectionPad2d(_Pad):
    """The elements, mirrored, before and behind the last 2 dimensions. Follows ``torch.nn.ReflectionPad2d``."""

    _dims, _mode = 2, "reflect"


class ReflectionPad3d(_Pad):
    """The elements, mirrored, before and behind the last 3 dimensions. Follows ``torch.nn.ReflectionPad3d``."""

    _dims, _mode = 3, "reflect"


class ReplicationPad1d(_Pad):
    """The first and last elements before and behind the last dimension. Follows ``torch.nn.ReplicationPad1d``."""

    _dims, _mode = 1, "replicate"


class ReplicationPad2d(_Pad):
    """The first and last elements before and behind the last 2 dimensions. Follows ``torch.nn.ReplicationPad2d``."""

    _dims, _mode = 2, "replicate"


class ReplicationPad3d(_Pad):
    """The first and last elements before and behind the last 3 dimensions. Follows ``torch.nn.ReplicationPad3d``."""

    _dims, _mode = 3, "replicate"


class CircularPad1d(_CircularPad):
    """The elements of the other end before and behind the last dimension. Follows ``torch.nn.CircularPad1d``."""

    _dims = 1


class CircularPad2d(_CircularPad):
    """The elements of the other end before and behind the last 2 dimensions. Follows ``torch.nn.CircularPad2d``."""

    _dims = 2


class CircularPad3d(_CircularPad):
    """The elements of the other end before and behind the last 3 dimensions. Follows ``torch.nn.CircularPad3d``."""

    _dims = 3
