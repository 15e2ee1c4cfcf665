"""Fourier transforms. Three kernels (kernels/api/fft.h): between complex numbers, from real to complex ones, and to
real ones. A transform is linear, and the derivative of each is one of them.

The transform of n real numbers is symmetric: its second half are the conjugates of the first, and is left out. So a
number of the first half counts twice, unless it is its own counterpart (the first, and the last of an even n): Note
[Halves].
"""

from __future__ import annotations

import math

from ..backends import fft as _numpy
from ..backends.cpu import lib
from ..dtypes import COMPLEX, FLOATING, as_dtype, get_default_dtype
from ..tensor import Tensor, owned
from .convert import in_dtype
from .declare import function, ints, primitive, write_out
from .pad import pad
from .ranges import arange
from .rearrange import roll

_numpy.announce()

# Note [Halves]
# Where f is the transform of a real x, and g the gradient of its half, the gradient of x is the real part of the
# inverse transform of (g, 0). _c2r takes its argument for a half, whose inner numbers count twice: so they are halved
# before. The other way round, the inner numbers of a half that _c2r has read are counted twice after _r2c. The inverse
# has the conjugates of the factors that the transform has: so these formulas are the gradients of complex numbers.


def _weighted(g, dim: int, size: int, weight: float):
    """The half ``g`` of ``size`` numbers along ``dim``, with those that count twice times ``weight``."""
    inner = g.new_ones(g.shape[dim], dtype=g.dtype.to_real())
    inner[1 : (size + 1) // 2] = weight
    return g * inner.reshape(-1, *[1] * (g.ndim - 1 - dim))


def _r2c_gradient(g, input_shape, dims, scale, half):
    if not half:
        return _c2c(g, dims, scale, False).real
    size = input_shape[dims[-1]]
    return _c2r(_weighted(g, dims[-1], size, 0.5), dims, scale, size)


@primitive(
    name="fft_c2c",
    title="FftC2CBackward0",
    conjugates=False,
    input=lambda g, dims, scale, forward: _c2c(g, dims, scale, not forward),
)
def _c2c(input, dims, scale, forward):
    return owned.tt_fft(input._h, len(dims), dims, scale, forward)


@primitive(name="fft_r2c", title="FftR2CBackward0", conjugates=False, input=_r2c_gradient)
def _r2c(input, dims, scale, half):
    return owned.tt_fft_real(input._h, len(dims), dims, scale, half)


@primitive(
    name="fft_c2r",
    title="FftC2RBackward0",
    input=lambda g, dims, scale, size: _weighted(_r2c(g, dims, scale, True), dims[-1], size, 2),
)
def _c2r(input, dims, scale, size):
    return owned.tt_fft_to_real(input._h, len(dims), dims, scale, size)


# What all have in common.


def _input(op: str, input, real: bool = False, complex: bool = False) -> Tensor:
    """``input`` as a transform takes it: of float32, float64 or their complex dtypes."""
    if not isinstance(input, Tensor):
        raise TypeError(f"fft_{op}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    code = input._h.dtype
    if COMPLEX[code]:
        if real:
            raise RuntimeError(f"{op} expects a real input tensor, but got {input.dtype!r}")
        return input
    if code == lib.TT_F32 and not complex:
        return input
    dtype = input.dtype if FLOATING[code] else get_default_dtype()
    if dtype.code not in (lib.TT_F32, lib.TT_F64):
        raise RuntimeError(f"{op}: Unsupported dtype {dtype!r}")
    return in_dtype(input, dtype.to_complex() if complex else dtype)


def scale_of(norm: str | None, n: int, forward: bool) -> float:
    """What multiplies a transform of ``n`` numbers."""
    norm = norm.decode() if isinstance(norm, bytes) else norm
    if norm is None or norm == "backward":
        return 1.0 if forward else 1 / n
    if not isinstance(norm, str):
        raise TypeError(f"argument 'norm' must be str, not {type(norm).__name__}")
    if norm == "forward":
        return 1 / n if forward else 1.0
    if norm == "ortho":
        return 1 / math.sqrt(n)
    raise RuntimeError(f'Invalid normalization mode: "{norm}"')


def _dim(input: Tensor, dim) -> int:
    if not input._h.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    return input._dim(dim)


def _resized(input: Tensor, dim: int, n: int) -> Tensor:
    """Cut, or with zeros at the end, to ``n`` along ``dim``."""
    have = input._h.shape[dim]
    if n <= have:
        return input if n == have else input.narrow(dim, 0, n)
    return pad(input, (0, 0) * (input.ndim - 1 - dim) + (0, n - have))


def _all_resized(input: Tensor, dims, sizes) -> Tensor:
    for dim, n in zip(dims, sizes):
        input = _resized(input, dim, n)
    return input


def _points(n) -> int:
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"argument 'n' must be int, not {type(n).__name__}")
    n = n.__index__()
    if n < 1:
        raise RuntimeError(f"Invalid number of data points ({n}) specified")
    return n


def _many(op: str, input: Tensor, s, dim, some: bool = True) -> tuple[tuple[int, ...], list[int]]:
    """The dimensions, all unless given, and the sizes there, as they are unless given or for -1."""
    ndim = input._h.ndim
    dims = None if dim is None else tuple([_dim(input, d) for d in ints((dim,))])
    if dims is not None and len(set(dims)) != len(dims):
        raise RuntimeError("FFT dims must be unique")
    if s is None:
        dims = tuple(range(ndim)) if dims is None else dims
        sizes = [input.shape[d] for d in dims]
    else:
        s = ints((s,))
        if dims is not None and len(dims) != len(s):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
        if len(s) > ndim:
            raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
        dims = tuple(range(ndim - len(s), ndim)) if dims is None else dims
        sizes = [input.shape[d] if n == -1 else n for d, n in zip(dims, s)]
    if some and not dims:
        raise RuntimeError(f"{op} must transform at least one axis")
    return dims, sizes


def _to_real_sizes(s, sizes: list[int]) -> tuple[list[int], int]:
    """The sizes that a transform to real numbers reads, and the last of its result."""
    given = s is not None and ints((s,))[-1] != -1
    last = _points(sizes[-1] if given else 2 * (sizes[-1] - 1))
    return [*sizes[:-1], last // 2 + 1], last


# Along one dimension.


def _complex_1d(op: str, input, n, dim, norm, out, forward: bool):
    input = _input(op, input)
    dim = _dim(input, dim)
    n = _points(input._h.shape[dim] if n is None else n)
    input, scale = _resized(input, dim, n), scale_of(norm, n, forward)
    if COMPLEX[input._h.dtype]:
        result = _c2c(input, (dim,), scale, forward)
    else:
        result = _r2c(input, (dim,), scale, False)
        result = result if forward else result.conj()
    return result if out is None else write_out(op, result, out)


def _half_1d(op: str, input, n, dim, norm, forward: bool):
    input = _input(op, input, real=True)
    dim = _dim(input, dim)
    n = _points(input._h.shape[dim] if n is None else n)
    result = _r2c(_resized(input, dim, n), (dim,), scale_of(norm, n, forward), True)
    return result if forward else result.conj()


def _real_1d(op: str, input, n, dim, norm, out, forward: bool):
    input = _input(op, input, complex=True)
    dim = _dim(input, dim)
    n = _points(2 * (input._h.shape[dim] - 1) if n is None else n)
    input = _resized(input, dim, n // 2 + 1)
    result = _c2r(input.conj() if forward else input, (dim,), scale_of(norm, n, forward), n)
    _check_real(op, out)
    return write_out(op, result, out)


def _check_real(op: str, out) -> None:
    if isinstance(out, Tensor) and not FLOATING[out._h.dtype]:
        raise RuntimeError(f"{op} expects a floating point output tensor, but got {out.dtype!r}")


@function(namespace="fft")
def fft(input, n=None, dim=-1, norm=None, *, out=None):
    """The discrete Fourier transform along a dimension: sum_j input[j] exp(-2 pi i j k / n). Follows
    ``torch.fft.fft``.

    Args:
        n: how many elements take part: ``input`` is cut there, or followed by zeros; its size unless given
        norm: ``"backward"`` (None): this sum; ``"forward"``: divided by n; ``"ortho"``: divided by its root
    Returns:
        A complex tensor with n elements along ``dim``.
    Raises:
        RuntimeError: n is not positive, ``norm`` is unknown, or the dtype is a half one
        IndexError: ``dim`` is out of range
        NotImplementedError: tensors of another device than the CPU
    """
    return _complex_1d("fft", input, n, dim, norm, out, True)


@function(namespace="fft")
def ifft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of ``fft``: sum_k input[k] exp(2 pi i j k / n) / n. Follows ``torch.fft.ifft``."""
    return _complex_1d("ifft", input, n, dim, norm, out, False)


@function(namespace="fft")
def rfft(input, n=None, dim=-1, norm=None, *, out=None):
    """``fft`` of real numbers: its first n // 2 + 1 elements, of which the others are the conjugates. Follows
    ``torch.fft.rfft``.

    Args:
        n: how many elements take part: ``input`` is cut there, or followed by zeros; its size unless given
        norm: ``"backward"`` (None): the plain sum; ``"forward"``: divided by n; ``"ortho"``: divided by its root
    Returns:
        A complex tensor with n // 2 + 1 elements along ``dim``.
    Raises:
        RuntimeError: ``input`` is complex, n is not positive, ``norm`` is unknown, or the dtype is a half one
        IndexError: ``dim`` is out of range
        NotImplementedError: tensors of another device than the CPU
    """
    return write_out("rfft", _half_1d("rfft", input, n, dim, norm, True), out)


@function(namespace="fft")
def irfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of ``rfft``: ``n`` real numbers, 2 (size - 1) unless given. Follows ``torch.fft.irfft``."""
    return _real_1d("irfft", input, n, dim, norm, out, False)


@function(namespace="fft")
def hfft(input, n=None, dim=-1, norm=None, *, out=None):
    """``fft`` of numbers whose second half are the conjugates of the first, of which ``input`` is the first: ``n`` real
    numbers, 2 (size - 1) unless given. Follows ``torch.fft.hfft``."""
    return _real_1d("hfft", input, n, dim, norm, out, True)


@function(namespace="fft")
def ihfft(input, n=None, dim=-1, norm=None, *, out=None):
    """The inverse of ``hfft``: the first half of ``ifft`` of real numbers. Follows ``torch.fft.ihfft``."""
    return write_out("ihfft", _half_1d("ihfft", input, n, dim, norm, False), out, True)


# Along several dimensions.


def _complex_nd(op: str, input, s, dim, norm, out, forward: bool):
    input = _input(op, input, complex=True)
    dims, sizes = _many(op, input, s, dim, some=False)
    scale = scale_of(norm, math.prod(map(_points, sizes)), forward)
    return write_out(op, _c2c(_all_resized(input, dims, sizes), dims, scale, forward), out)


def _half_nd(op: str, input, s, dim, norm, out, forward: bool):
    input = _input(op, input, real=True)
    dims, sizes = _many(op, input, s, dim)
    scale = scale_of(norm, math.prod(map(_points, sizes)), forward)
    input = _all_resized(input, dims, sizes)
    if forward:
        return write_out(op, _r2c(input, dims, scale, True), out)
    result = _r2c(input, dims[-1:], scale, True).conj()
    return write_out(op, _c2c(result, dims[:-1], 1.0, False) if len(dims) > 1 else result, out)


def _real_nd(op: str, input, s, dim, norm, out, forward: bool):
    input = _input(op, input, complex=True)
    dims, sizes = _many(op, input, s, dim)
    sizes, last = _to_real_sizes(s, sizes)
    scale = scale_of(norm, math.prod(map(_points, sizes[:-1])) * last, forward)
    input = _all_resized(input, dims, sizes)
    if forward:
        input = _c2c(input, dims[:-1], 1.0, True) if len(dims) > 1 else input
        result = _c2r(input.conj(), dims[-1:], scale, last)
    else:
        result = _c2r(input, dims, scale, last)
    _check_real(op, out)
    return write_out(op, result, out)


@function(namespace="fft")
def fftn(input, s=None, dim=None, norm=None, *, out=None):
    """``fft`` along several dimensions. Follows ``torch.fft.fftn``.

    Args:
        s: how many elements take part, for each dimension: ``input`` is cut there, or followed by zeros; -1 for all
        dim: the dimensions; as many of the last ones as ``s`` has numbers, or all, unless given
        norm: ``"backward"`` (None): the plain sum; ``"forward"``: divided by the number of elements that take part;
            ``"ortho"``: divided by its root
    Returns:
        A complex tensor.
    Raises:
        RuntimeError: ``s`` and ``dim`` do not fit, ``norm`` is unknown, or the dtype is a half one
        IndexError: a dimension is out of range
        NotImplementedError: tensors of another device than the CPU
    """
    return _complex_nd("fftn", input, s, dim, norm, out, True)


@function(namespace="fft")
def ifftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of ``fftn``. Follows ``torch.fft.ifftn``."""
    return _complex_nd("ifftn", input, s, dim, norm, out, False)


@function(namespace="fft")
def rfftn(input, s=None, dim=None, norm=None, *, out=None):
    """``fftn`` of real numbers, the first half along the last of the dimensions. Follows ``torch.fft.rfftn``."""
    return _half_nd("rfftn", input, s, dim, norm, out, True)


@function(namespace="fft")
def irfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of ``rfftn``: real numbers. Follows ``torch.fft.irfftn``."""
    return _real_nd("irfftn", input, s, dim, norm, out, False)


@function(namespace="fft")
def hfftn(input, s=None, dim=None, norm=None, *, out=None):
    """``fftn`` of numbers of which ``input`` is the first half along the last of the dimensions, and the others are the
    conjugates: real numbers. Follows ``torch.fft.hfftn``."""
    return _real_nd("hfftn", input, s, dim, norm, out, True)


@function(namespace="fft")
def ihfftn(input, s=None, dim=None, norm=None, *, out=None):
    """The inverse of ``hfftn``: half of ``ifftn`` of real numbers. Follows ``torch.fft.ihfftn``."""
    return _half_nd("ihfftn", input, s, dim, norm, out, False)


@function(namespace="fft")
def fft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``fftn`` along two dimensions. Follows ``torch.fft.fft2``."""
    return fftn(input, s, dim, norm, out=out)


@function(namespace="fft")
def ifft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``ifftn`` along two dimensions. Follows ``torch.fft.ifft2``."""
    return ifftn(input, s, dim, norm, out=out)


@function(namespace="fft")
def rfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``rfftn`` along two dimensions. Follows ``torch.fft.rfft2``."""
    return rfftn(input, s, dim, norm, out=out)


@function(namespace="fft")
def irfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``irfftn`` along two dimensions. Follows ``torch.fft.irfft2``."""
    return irfftn(input, s, dim, norm, out=out)


@function(namespace="fft")
def hfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``hfftn`` along two dimensions. Follows ``torch.fft.hfft2``."""
    return hfftn(input, s, dim, norm, out=out)


@function(namespace="fft")
def ihfft2(input, s=None, dim=(-2, -1), norm=None, *, out=None):
    """``ihfftn`` along two dimensions. Follows ``torch.fft.ihfft2``."""
    return ihfftn(input, s, dim, norm, out=out)


# Frequencies.


def _rolled(input: Tensor, dim, back: int):
    if not input._h.ndim and not dim and dim != 0:
        raise RuntimeError("`shifts` required")
    dims = tuple(range(input._h.ndim)) if dim is None else ints((dim,))
    sizes = [input.shape[_dim(input, d)] for d in dims]
    return roll(input, [(n + back) // 2 for n in sizes], dims)


@function(namespace="fft")
def fftshift(input, dim=None):
    """The result of ``fftn`` in the order of its frequencies, 0 in the middle. Follows ``torch.fft.fftshift``.

    Args:
        dim: the dimensions; all unless given
    Returns:
        A copy.
    """
    return _rolled(input, dim, 0)


@function(namespace="fft")
def ifftshift(input, dim=None):
    """The inverse of ``fftshift``. Follows ``torch.fft.ifftshift``. Otherwise like ``fftshift``."""
    return _rolled(input, dim, 1)


def _frequencies(op: str, n, d, count, negative, out, dtype, device, requires_grad):
    """The numbers 0 ... count - 1, over n d, those from ``negative`` on less n."""
    dtype = (get_default_dtype() if out is None else out.dtype) if dtype is None else as_dtype(dtype, op)
    if not dtype.is_floating_point and not dtype.is_complex:
        raise RuntimeError(f"{op} requires a floating point or complex dtype")
    result = arange(count, dtype=dtype, device=device)
    result[negative:] -= n
    result *= 1 / (n * d) if n * d else math.inf
    if out is not None:
        return write_out(op, result, out)
    return result.requires_grad_() if requires_grad else result


@function(namespace="fft")
def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of ``fft`` of n samples: [0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (n d). Follows
    ``torch.fft.fftfreq``.

    Args:
        n: how many samples
        d: the time between two samples
    Returns:
        A vector of n numbers.
    Raises:
        RuntimeError: n is negative, or the dtype is an integer one
    """
    return _frequencies("fftfreq", n, d, ints((n,))[0], (n + 1) // 2, out, dtype, device, requires_grad)


@function(namespace="fft")
def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of ``rfft`` of n samples: [0, 1, ..., n // 2] / (n d). Follows ``torch.fft.rfftfreq``.

    Args:
        n: how many samples
        d: the time between two samples
    Returns:
        A vector of n // 2 + 1 numbers.
    Raises:
        RuntimeError: the dtype is an integer one
    """
    count = max(0, ints((n,))[0] // 2 + 1)
    return _frequencies("rfftfreq", n, d, count, count, out, dtype, device, requires_grad)
