"""Functions of tinytorch.fft. Written by .ci/stubs.py: do not edit."""

from collections.abc import Sequence
from ..tensor import Tensor
from ..types import Device, _bool, _dtype, _float, _int, _layout

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]

def fft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def fft2(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = ...,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def fftfreq(
    n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: _dtype | None = None,
    layout: _layout | None = None, device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def fftn(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def fftshift(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor: ...
def hfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def hfft2(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = ...,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def hfftn(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def ifft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def ifft2(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = ...,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def ifftn(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def ifftshift(input: Tensor, dim: _int | Sequence[_int] | None = None) -> Tensor: ...
def ihfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def ihfft2(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = ...,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def ihfftn(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def irfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def irfft2(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = ...,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def irfftn(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def rfft(
    input: Tensor, n: _int | None = None, dim: _int = -1, norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def rfft2(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = ...,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
def rfftfreq(
    n: _int, d: _float = 1.0, *, out: Tensor | None = None, dtype: _dtype | None = None,
    layout: _layout | None = None, device: Device = None, requires_grad: _bool = False,
) -> Tensor: ...
def rfftn(
    input: Tensor, s: _int | Sequence[_int] | None = None, dim: _int | Sequence[_int] | None = None,
    norm: str | None = None, *, out: Tensor | None = None,
) -> Tensor: ...
