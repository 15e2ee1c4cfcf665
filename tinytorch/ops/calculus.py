"""Functions given by samples: integrals by the trapezoidal rule, derivatives by differences."""

from __future__ import annotations

import numbers

from ..dtypes import bool as _bool
from ..dtypes import uint8 as _uint8
from ..tensor import Tensor
from .declare import alias, function, ints, is_number
from .join import cat


def _dim_of(op: str, y: Tensor, x: Tensor | None, dx, dim: int) -> int:
    """``dim``, not negative, if places and distances are not both given."""
    if dx is not None and x is not None:
        raise TypeError(f"{op}(): got values for 'x' and for 'dx', which exclude each other")
    return y._dim(dim)


def _widths(op: str, y: Tensor, x: Tensor | None, dx, dim: int):
    """The distances of neighbouring samples along ``dim``: a number, or a tensor that broadcasts with y's means."""
    if y.dtype is _bool or (x is not None and x.dtype is _bool):
        raise RuntimeError(f"{op}: received a bool input for `x` or `y`, but bool is not supported")
    if isinstance(dx, (bool, complex)):
        raise RuntimeError(f"{op}: dx must be a real number, got {dx}")
    if x is None:
        return 1 if dx is None else dx
    if x._h.ndim == 1:
        if x._h.numel != y.shape[dim]:
            raise RuntimeError(f"{op}: There must be one `x` value for each sample point")
        x = x.reshape([-1] + [1] * (y._h.ndim - 1 - dim))
        return x[1:] - x[:-1]
    while x._h.ndim < y._h.ndim:
        x = x.unsqueeze(0)
    along = x._dim(dim - y._h.ndim)
    n = x.shape[along]
    return x.narrow(along, 1, max(n - 1, 0)) - x.narrow(along, 0, max(n - 1, 0)) if n else x


def _sums(y: Tensor, dim: int) -> Tensor:
    """The sums of neighbours along ``dim``."""
    n = y.shape[dim] - 1
    return y.narrow(dim, 0, n) + y.narrow(dim, 1, n)


@function
def trapezoid(y, x=None, *, dx=None, dim=-1):
    """The integral along ``dim`` of the function with the values ``y``, by the trapezoidal rule. Follows
    ``torch.trapezoid``.

    Args:
        y: the values
        x: where they are: a vector, or a tensor that broadcasts with ``y``
        dx: or the distance between neighbours; 1 unless given
    Returns:
        A tensor without dimension ``dim``.
    Raises:
        RuntimeError: there are not as many places as values, or bools
    """
    dim = _dim_of("trapezoid", y, x, dx, dim)
    if y.shape[dim] == 0:
        _widths("trapezoid", y, None, dx, dim)
        return y.new_zeros([n for d, n in enumerate(y.shape) if d != dim])
    width = _widths("trapezoid", y, x, dx, dim)
    if not isinstance(width, Tensor):
        return _sums(y, dim).sum(dim) * (width / 2)
    return (_sums(y, dim) * width).sum(dim) / 2


alias("trapezoid", "trapz")


@function
def cumulative_trapezoid(y, x=None, *, dx=None, dim=-1):
    """``trapezoid`` from the start to each of the further samples. Follows ``torch.cumulative_trapezoid``. Otherwise
    like ``trapezoid``.

    Returns:
        A tensor that is shorter by 1 along ``dim``.
    """
    dim = _dim_of("cumulative_trapezoid", y, x, dx, dim)
    width = _widths("cumulative_trapezoid", y, x, dx, dim)
    if y.shape[dim] == 0:
        return y.new_zeros(y.shape) if isinstance(width, Tensor) else y.new_zeros(y.shape) * (width / 2)
    if not isinstance(width, Tensor):
        return (_sums(y, dim) * (width / 2)).cumsum(dim)
    return (_sums(y, dim) * width).cumsum(dim) / 2


def _three(x: Tensor, dim: int, at: int) -> list[Tensor]:
    """Three neighbouring entries along ``dim``, from ``at`` on."""
    return [x.narrow(dim, at + k, 1) for k in range(3)]


def _of_numbers(x: Tensor, dim: int, step, order: int) -> Tensor:
    """The derivative along ``dim`` of samples at equal distances."""
    n = x.shape[dim]
    center = (x.narrow(dim, 2, n - 2) - x.narrow(dim, 0, n - 2)) / step / 2
    if order == 1:
        start = (x.narrow(dim, 1, 1) - x.narrow(dim, 0, 1)) / step
        end = (x.narrow(dim, n - 1, 1) - x.narrow(dim, n - 2, 1)) / step
    else:
        (a, b, c), (p, q, r) = _three(x, dim, 0), _three(x, dim, n - 3)
        start = (-1.5 * a + 2 * b - 0.5 * c) / step
        end = (0.5 * p - 2 * q + 1.5 * r) / step
    return cat((start, center, end), dim)


def _of_places(x: Tensor, dim: int, places: Tensor, order: int) -> Tensor:
    """The derivative along ``dim`` of samples at these places."""
    n = x.shape[dim]
    width = places[1:] - places[:-1]
    shape = [-1] + [1] * (x._h.ndim - 1 - dim)
    d, e = width[:-1].reshape(shape), width[1:].reshape(shape)
    before, at, after = (x.narrow(dim, k, n - 2) for k in range(3))
    center = before * (-e / (d * (d + e))) + at * ((e - d) / (d * e)) + after * (d / (e * (d + e)))
    if order == 1:
        start = (x.narrow(dim, 1, 1) - x.narrow(dim, 0, 1)) / width[0]
        end = (x.narrow(dim, n - 1, 1) - x.narrow(dim, n - 2, 1)) / width[-1]
    else:
        (a, b, c), (p, q, r) = _three(x, dim, 0), _three(x, dim, n - 3)
        d, e = width[0], width[1]
        start = a * (-(2 * d + e) / (d * (d + e))) + b * ((d + e) / (d * e)) + c * (-d / (e * (d + e)))
        d, e = width[-2], width[-1]
        end = p * (e / (d * (d + e))) + q * (-(d + e) / (d * e)) + r * ((2 * e + d) / (e * (d + e)))
    return cat((start, center, end), dim)


@function
def gradient(input, *, spacing=None, dim=None, edge_order=1):
    """The derivatives of the function whose samples are ``input``, along each dimension or those of ``dim``, by central
    differences, at the ends by one-sided ones. Follows ``torch.gradient``.

    Args:
        spacing: the distance between neighbours, or one for each dimension, or a vector of places for each
        dim: the dimension, or several; all unless given
        edge_order: 1 or 2: how exact it is at the ends
    Returns:
        A tuple of tensors of the shape of ``input``, one for each dimension.
    Raises:
        RuntimeError: there are too few samples, or not as many spacings as dimensions
    """
    dims = list(range(input._h.ndim)) if dim is None else list(ints((dim,)))
    if isinstance(spacing, (tuple, list)):
        spacings = list(spacing)
        if not all(isinstance(s, (Tensor, numbers.Number)) for s in spacings):
            raise TypeError(f"gradient(): argument 'spacing' must be numbers or Tensors, not {spacings!r}")
        if len(spacings) != len(dims):
            raise RuntimeError(
                "torch.gradient expected spacing to be unspecified, a scalar or a list of as many as there are "
                f"dimensions, {len(dims)}, but got a list of length {len(spacings)}"
            )
    elif spacing is None or is_number(spacing):
        spacings = [1 if spacing is None else spacing] * len(dims)
    else:
        raise TypeError(f"gradient(): argument 'spacing' must be a number or a sequence, not {type(spacing).__name__}")
    if input.dtype is _uint8:
        raise RuntimeError("torch.gradient does not support uint8 input.")
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    dims = [input._dim(d) for d in dims]
    if len(set(dims)) != len(dims):
        raise RuntimeError(f"torch.gradient: a dim appears multiple times in the list of dims {dims}")
    for d, step in zip(dims, spacings):
        if input.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
        if isinstance(step, Tensor) and step._h.ndim != 1:
            raise RuntimeError(
                f"torch.gradient expected each element of spacing to have one dimension, got {step.ndim}"
            )
        if isinstance(step, Tensor) and step._h.numel != input.shape[d]:
            raise RuntimeError(
                f"torch.gradient expected each element of spacing to have size {input.shape[d]}, got {step._h.numel}"
            )
    return tuple(
        [
            (_of_places if isinstance(step, Tensor) else _of_numbers)(input, d, step, edge_order)
            for d, step in zip(dims, spacings)
        ]
    )
