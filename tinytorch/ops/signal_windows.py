"""Windows: numbers that a signal is multiplied by before its Fourier transform. They are computed in float64, by NumPy,
and rounded to the dtype once.

``tinytorch.hann_window`` and its like are periodic unless told: the first ``window_length`` of a symmetric window that
is longer by one. ``signal.windows`` are symmetric unless told.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from ..backends.cpu import OutOfMemoryError
from ..dtypes import as_dtype, float32, float64, get_default_dtype
from ..layouts import strided
from ..tensor import Tensor
from .create import as_tensor, pinned
from .declare import function


def _made(values, dtype, device, requires_grad, pin_memory=False) -> Tensor:
    """The numbers that ``values`` computes, as a window."""
    try:
        computed = values()
    except MemoryError as exc:
        raise OutOfMemoryError(str(exc)) from None
    window = as_tensor(computed, dtype=get_default_dtype() if dtype is None else dtype, device=device)
    window = pinned(window, "window") if pin_memory else window
    return window.requires_grad_() if requires_grad else window


def _cosines(steps: int, count: int, weights) -> np.ndarray:
    """The sum of (-1)^i weights[i] cos(2 pi i k / steps), for the first ``count`` k."""
    k = np.arange(count) * (2 * math.pi / steps)
    return sum((-1) ** i * w * np.cos(i * k) for i, w in enumerate(weights)) + np.zeros(count)


def _triangle(steps: int, count: int) -> np.ndarray:
    return 1 - np.abs(np.arange(count) * (2 / steps) - 1)


def _bessel(steps: int, count: int, beta: float) -> np.ndarray:
    x = np.arange(count) * (2 / steps) - 1
    return np.i0(beta * np.sqrt(np.maximum(0, 1 - x * x))) / np.i0(beta)


def _length(op: str, n) -> int:
    if isinstance(n, bool):
        raise TypeError(f"{op}(): the length must be int, not bool")
    n = operator.index(n)
    if n >> 59 > 0:
        raise RuntimeError(f"{op}: Storage size calculation overflowed with sizes=[{n}]")
    return n


def _windowed(values, op: str, window_length, periodic, dtype, *options) -> Tensor:
    """``values(steps, count)`` as a window."""
    n = _length(op, window_length)
    if n < 0:
        raise RuntimeError(f"{op} requires non-negative window_length, got window_length={n}")
    if not isinstance(periodic, bool):
        raise TypeError(f"{op}(): argument 'periodic' must be bool, not {type(periodic).__name__}")
    dtype = None if dtype is None else as_dtype(dtype, op)
    if dtype is not None and dtype.is_complex:
        raise NotImplementedError(f"{op}: not implemented for '{dtype!r}'")
    if dtype is not None and not dtype.is_floating_point:
        raise RuntimeError(f"{op} expects floating point dtypes, got: {dtype!r}")
    return _made(lambda: values(n if periodic else n - 1, n) if n > 1 else np.ones(n), dtype, *options)


@function
def bartlett_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """A triangle from 0 up to 1 and down again. Follows ``torch.bartlett_window``.

    Args:
        window_length: how many numbers
        periodic: whether the number that would follow is the first again; else the last is
    Returns:
        A vector of ``window_length`` numbers.
    Raises:
        RuntimeError: ``window_length`` is negative, or the dtype is not floating
    """
    return _windowed(_triangle, "bartlett_window", window_length, periodic, dtype, device, requires_grad, pin_memory)


@function
def blackman_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """0.42 - 0.5 cos(x) + 0.08 cos(2 x), where x goes once round the circle. Follows ``torch.blackman_window``.

    Args:
        window_length: how many numbers
        periodic: whether the number that would follow is the first again; else the last is
    Returns:
        A vector of ``window_length`` numbers.
    """

    def values(steps, count):
        return _cosines(steps, count, (0.42, 0.5, 0.08))

    return _windowed(values, "blackman_window", window_length, periodic, dtype, device, requires_grad, pin_memory)


@function
def hamming_window(
    window_length,
    periodic=True,
    alpha=0.54,
    beta=0.46,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """alpha - beta cos(x), where x goes once round the circle. Follows ``torch.hamming_window``. Otherwise like
    ``blackman_window``.

    Args:
        alpha: the mean
        beta: the amplitude
    """
    alpha, beta = float(alpha), float(beta)

    def values(steps, count):
        return _cosines(steps, count, (alpha, beta))

    return _windowed(values, "hamming_window", window_length, periodic, dtype, device, requires_grad, pin_memory)


@function
def hann_window(
    window_length, periodic=True, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
):
    """0.5 - 0.5 cos(x), where x goes once round the circle. Follows ``torch.hann_window``. Otherwise like
    ``blackman_window``."""

    def values(steps, count):
        return _cosines(steps, count, (0.5, 0.5))

    return _windowed(values, "hann_window", window_length, periodic, dtype, device, requires_grad, pin_memory)


@function
def kaiser_window(
    window_length,
    periodic=True,
    beta=12.0,
    *,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
):
    """I0(beta sqrt(1 - x^2)) / I0(beta), where x goes from -1 to 1 and I0 is a Bessel function. Follows
    ``torch.kaiser_window``. Otherwise like ``blackman_window``.

    Args:
        beta: how narrow
    """
    beta = float(beta)

    def values(steps, count):
        return _bessel(steps, count, beta)

    return _windowed(values, "kaiser_window", window_length, periodic, dtype, device, requires_grad, pin_memory)


# tinytorch.signal.windows.


def _check(op: str, M, dtype, layout) -> int:
    if (isinstance(M, (int, float)) or (isinstance(M, Tensor) and M.numel() == 1)) and M < 0:
        raise ValueError(f"{op} requires non-negative window length, got M={M}")
    M = _length(op, M)
    if layout is not None and layout is not strided:
        raise ValueError(f"{op} is implemented for strided tensors only, got: {layout}")
    if (get_default_dtype() if dtype is None else dtype) not in (float32, float64):
        raise ValueError(f"{op} expects float32 or float64 dtypes, got: {dtype!r}")
    return M


def _positive(name: str, value: float) -> None:
    if value <= 0:
        raise ValueError(f"{name} must be positive, got: {value} instead.")


def _number(name: str, x):
    """A number, or a 0-d tensor's; RuntimeError for other tensors."""
    if isinstance(x, Tensor):
        if x.ndim:
            raise RuntimeError(f"{name} must be a number or a 0-dimensional tensor, got one of shape {tuple(x.shape)}")
        return x.item()
    return x


def _length_of_symmetric(M: int, sym: bool) -> int:
    """Of the symmetric window of which this is all, or the first M numbers."""
    return M + 1 if not sym and M > 1 else M


@function(namespace="signal.windows")
def exponential(
    M, *, center=None, tau=1.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False
) -> Tensor:
    """exp(-abs(k - center) / tau). Follows ``torch.signal.windows.exponential``.

    Args:
        M: how many numbers
        center: where the largest is: the middle unless given
        tau: how fast the numbers fall
        sym: whether the window is symmetric; else it is periodic
    Returns:
        A vector of M numbers.
    Raises:
        ValueError: M is negative, ``tau`` is not positive, the dtype is neither float32 nor float64, or there are
            ``center`` and ``sym``
    """
    M = _check("exponential", M, dtype, layout)
    _positive("Tau", tau)
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    center = (_length_of_symmetric(M, sym) - 1) / 2 if center is None else -_number("center", -center)
    return _made(lambda: np.exp(-np.abs(np.arange(M) - center) / tau), dtype, device, requires_grad)


@function(namespace="signal.windows")
def cosine(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """sin(pi (k + 0.5) / M). Follows ``torch.signal.windows.cosine``.

    Args:
        M: how many numbers
        sym: whether the window is symmetric; else it is periodic
    Returns:
        A vector of M numbers.
    """
    M = _check("cosine", M, dtype, layout)
    n = _length_of_symmetric(M, sym)
    return _made(lambda: np.sin((np.arange(M) + 0.5) * (math.pi / max(n, 1))), dtype, device, requires_grad)


@function(namespace="signal.windows")
def gaussian(M, *, std=1.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """exp(-(x / std)^2 / 2), x being the distance from the middle. Follows ``torch.signal.windows.gaussian``. Otherwise
    like ``exponential``.

    Args:
        std: the standard deviation
    Raises:
        ValueError: M is negative, ``std`` is not positive, or the dtype is neither float32 nor float64
    """
    M = _check("gaussian", M, dtype, layout)
    _positive("Standard deviation", std)
    center = (_length_of_symmetric(M, sym) - 1) / 2
    return _made(lambda: np.exp(-(((np.arange(M) - center) / std) ** 2) / 2), dtype, device, requires_grad)


@function(namespace="signal.windows")
def kaiser(M, *, beta=12.0, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """I0(beta sqrt(1 - x^2)) / I0(beta), where x goes from -1 to 1 and I0 is a Bessel function. Follows
    ``torch.signal.windows.kaiser``. Otherwise like ``exponential``.

    Args:
        beta: how narrow
    Raises:
        ValueError: M or ``beta`` is negative, or the dtype is neither float32 nor float64
    """
    M = _check("kaiser", M, dtype, layout)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    n = _length_of_symmetric(M, sym)
    return _made(lambda: _bessel(n - 1, M, beta) if M > 1 else np.ones(M), dtype, device, requires_grad)


@function(namespace="signal.windows")
def bartlett(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """A triangle from 0 up to 1 and down again. Follows ``torch.signal.windows.bartlett``. Otherwise like
    ``cosine``."""
    M = _check("bartlett", M, dtype, layout)
    n = _length_of_symmetric(M, sym)
    return _made(lambda: _triangle(n - 1, M) if M > 1 else np.ones(M), dtype, device, requires_grad)


def _sum_of_cosines(op: str, M, weights, sym, dtype, layout, device, requires_grad) -> Tensor:
    M = _check(op, M, dtype, layout)
    n = _length_of_symmetric(M, sym)
    return _made(lambda: _cosines(n - 1, M, weights) if M > 1 else np.ones(M), dtype, device, requires_grad)


@function(namespace="signal.windows")
def general_cosine(M, *, a, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """The sum of (-1)^i a[i] cos(i x), where x goes once round the circle. Follows
    ``torch.signal.windows.general_cosine``. Otherwise like ``exponential``.

    Args:
        a: the weights of the cosines
    Raises:
        TypeError: ``a`` is no sequence
        ValueError: M is negative, there are no weights, or the dtype is neither float32 nor float64
    """
    if _check("general_cosine", M, dtype, layout) > 1:
        try:
            a = list(a)
        except TypeError:
            raise TypeError("Coefficients must be a list/tuple") from None
        if not a:
            raise ValueError("Coefficients cannot be empty")
        if any(isinstance(weight, (str, bytes, tuple, list)) for weight in a):
            raise ValueError("Coefficients must be numbers")
    return _sum_of_cosines("general_cosine", M, a, sym, dtype, layout, device, requires_grad)


@function(namespace="signal.windows")
def general_hamming(M, *, alpha=0.54, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """alpha - (1 - alpha) cos(x), where x goes once round the circle. Follows ``torch.signal.windows.general_hamming``.
    Otherwise like ``cosine``.

    Args:
        alpha: the mean
    """
    return _sum_of_cosines("general_hamming", M, (alpha, 1 - alpha), sym, dtype, layout, device, requires_grad)


@function(namespace="signal.windows")
def hamming(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """``general_hamming`` with ``alpha=0.54``. Follows ``torch.signal.windows.hamming``."""
    return _sum_of_cosines("hamming", M, (0.54, 0.46), sym, dtype, layout, device, requires_grad)


@function(namespace="signal.windows")
def hann(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """``general_hamming`` with ``alpha=0.5``. Follows ``torch.signal.windows.hann``."""
    return _sum_of_cosines("hann", M, (0.5, 0.5), sym, dtype, layout, device, requires_grad)


@function(namespace="signal.windows")
def blackman(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """``general_cosine`` of weights 0.42, 0.5, 0.08. Follows ``torch.signal.windows.blackman``."""
    return _sum_of_cosines("blackman", M, (0.42, 0.5, 0.08), sym, dtype, layout, device, requires_grad)


@function(namespace="signal.windows")
def nuttall(M, *, sym=True, dtype=None, layout=strided, device=None, requires_grad=False) -> Tensor:
    """``general_cosine`` of four weights, by Nuttall. Follows ``torch.signal.windows.nuttall``."""
    weights = (0.3635819, 0.4891775, 0.1365995, 0.0106411)
    return _sum_of_cosines("nuttall", M, weights, sym, dtype, layout, device, requires_grad)
