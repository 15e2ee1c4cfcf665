"""Functions of tinytorch.signal.windows. Written by .ci/stubs.py: do not edit."""

from typing import Any
from ...tensor import Tensor
from ...types import Device, _bool, _dtype, _float, _int, _layout

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming", "hann",
    "kaiser", "nuttall",
]

def bartlett(
    M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ...,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def blackman(
    M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ...,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def cosine(
    M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ...,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def exponential(
    M: _int, *, center: _float | None = None, tau: _float = 1.0, sym: _bool = True, dtype: _dtype | None = None,
    layout: _layout | None = ..., device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def gaussian(
    M: _int, *, std: _float = 1.0, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ...,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def general_cosine(
    M: _int, *, a: Any, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ...,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def general_hamming(
    M: _int, *, alpha: _float = 0.54, sym: _bool = True, dtype: _dtype | None = None,
    layout: _layout | None = ..., device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def hamming(
    M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ...,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def hann(
    M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ...,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def kaiser(
    M: _int, *, beta: _float = 12.0, sym: _bool = True, dtype: _dtype | None = None,
    layout: _layout | None = ..., device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def nuttall(
    M: _int, *, sym: _bool = True, dtype: _dtype | None = None, layout: _layout | None = ...,
    device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
