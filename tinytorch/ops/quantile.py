"""Statistics of samples: quantiles, covariances."""

from __future__ import annotations

import warnings

from ..dtypes import bool as _bool
from ..dtypes import float32, float64
from ..dtypes import int64 as _int64
from ..tensor import FUNCTIONS, Tensor
from .create import tensor
from .declare import both, write_out

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _checked(op: str, input: Tensor, q, interpolation: str) -> Tensor:
    """The quantiles ``q`` as a tensor, after all checks."""
    if not input._h.numel:
        raise RuntimeError(f"{op}() input tensor must be non-empty")
    if input.dtype not in (float32, float64):
        raise RuntimeError(f"{op}() input tensor must be either float or double dtype")
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{op}() q must be in the range [0, 1] but got {q}")
        q = tensor(float(q), dtype=input.dtype, device=input.device)
    if q._h.ndim > 1:
        raise RuntimeError(f"{op}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{op}() q tensor must be same dtype as the input tensor")
    if q.device is not input.device:
        raise RuntimeError(f"{op}() q tensor must be on the same device as the input tensor")
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{op}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    return q


def _quantiles(op: str, input, q, dim, keepdim, interpolation, out, ignore_nan):
    q = _checked(op, input, q, interpolation)
    if isinstance(out, Tensor) and out.dtype is not input.dtype:
        raise RuntimeError(f"{op}() out tensor must be same dtype as the input tensor")
    shape = [1] * input._h.ndim if dim is None else list(input.shape)
    if dim is None:
        rows = input.reshape(-1)
    elif input._h.ndim:
        at = input._dim(dim)
        shape[at] = 1
        rows = input.movedim(at, -1)
    else:
        input._dim(dim)
        rows = input.reshape(1)
    if q._h.numel and not bool(((q >= 0) & (q <= 1)).all()):
        raise RuntimeError(f"{op}() q values must be in the range [0, 1]")
    ordered = FUNCTIONS["sort"](rows, -1)[0]  # NaN last
    last = ordered.shape[-1] - 1
    # The quantiles' places in the order, along a last dimension: of q.
    if ignore_nan:
        places = q.reshape(-1) * (ordered.isnan().logical_not().sum(-1, keepdim=True) - 1).to(q.dtype)
        places = places.clamp(0)
    else:
        places = (q.reshape(-1) * last).masked_fill(ordered[..., -1:].isnan(), last)
    if interpolation in ("lower", "higher", "nearest"):
        places = {"lower": places.floor, "higher": places.ceil, "nearest": places.round}[interpolation]()
    below = places.detach().to(_int64)
    values = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weights = tensor(0.5, dtype=q.dtype, device=q.device) if interpolation == "midpoint" else places - below
        values = values.lerp(ordered.gather(-1, places.detach().ceil().to(_int64)), weights)
    if q._h.ndim:
        values = values.movedim(-1, 0)
        shape = [q._h.numel, *shape]
    else:
        values = values.squeeze(-1)
    if keepdim:
        values = values.reshape(shape)
    return write_out(op, values, out)


@both
def quantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """The numbers below which the fractions ``q`` of the elements lie; NaN where one is NaN. Follows
    ``torch.quantile``.

    Args:
        q: a number from 0 to 1, or a vector of them
        dim: the dimension; the flattened tensor unless given
        interpolation: between two elements ``'linear'``, ``'lower'``, ``'higher'``, ``'nearest'`` or ``'midpoint'``
    Returns:
        A tensor without dimension ``dim``; where ``q`` is a vector, with a first dimension of its size.
    Raises:
        RuntimeError: a number of ``q`` is not from 0 to 1, ``input`` is empty, or not float32 or float64
    """
    return _quantiles("quantile", input, q, dim, keepdim, interpolation, out, False)


@both
def nanquantile(input, q, dim=None, keepdim=False, *, interpolation="linear", out=None):
    """``quantile`` of the elements that are not NaN. Follows ``torch.nanquantile``. Otherwise like ``quantile``."""
    return _quantiles("nanquantile", input, q, dim, keepdim, interpolation, out, True)


def _check_weights(name: str, weights: Tensor, n: int) -> None:
    """RuntimeError unless there is a weight, not negative, for each of ``n`` observations."""
    if weights._h.ndim > 1:
        raise RuntimeError(f"cov(): expected {name} to have one or fewer dimensions but got {weights._h.ndim}")
    floating = weights.is_floating_point()
    if floating != (name == "aweights") or weights.dtype is _bool:
        kind = "floating point" if name == "aweights" else "integral"
        raise RuntimeError(f"cov(): expected {name} to have {kind} dtype but got {name} with {weights.dtype!r} dtype")
    if weights._h.numel != n:
        raise RuntimeError(
            f"cov(): expected {name} to have the same numel as there are observations in the input but got "
            f"{weights._h.numel} != {n}"
        )
    if n and bool((weights < 0).any()):
        raise RuntimeError(f"cov(): {name} cannot be negative")


@both
def cov(input, *, correction=1, fweights=None, aweights=None):
    """The covariances of the rows of ``input``, variables whose observations stand in the columns. Follows
    ``torch.cov``.

    Args:
        input: a matrix (variables, observations), or one variable's vector
        correction: what is subtracted from the number of observations in the divisor
        fweights: how often each observation was made: an integer vector
        aweights: how much each observation counts: a floating vector
    Returns:
        A matrix (variables, variables); 0-d for one variable.
    Raises:
        RuntimeError: more than two dimensions, or weights that are negative or not as many as observations
    """
    if input._h.ndim > 2:
        raise RuntimeError(f"cov(): expected input to have two or fewer dimensions but got {input._h.ndim}")
    if input.dtype is _bool:
        raise RuntimeError("cov(): bool dtype is not supported for input")
    x = input if input._h.ndim == 2 else input.reshape(1, -1)
    n = x.shape[1]
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is not None:
            _check_weights(name, weights, n)
    w = fweights if aweights is None else aweights if fweights is None else fweights * aweights
    if w is None:
        total = tensor(n, device=x.device)
        mean = x.sum(1) / total
    else:
        total = w.sum()
        if n and total.item() == 0:
            raise RuntimeError("cov(): weights sum to zero, can't be normalized")
        mean = (x * w).sum(1) / total
    freedom = total - correction
    if aweights is not None and correction:
        freedom = total - correction * w.reshape(-1).dot(aweights.reshape(-1)) / total
    if freedom.item() <= 0:
        warnings.warn(
            "cov(): degrees of freedom is <= 0. Correction should be strictly less than the number of observations.",
            stacklevel=3,
        )
        freedom = freedom.new_zeros(())
    x = x - mean.unsqueeze(1)
    return (x @ (x if w is None else x * w).t().conj() / freedom).squeeze()


@both
def corrcoef(input):
    """Pearson's correlation coefficients of the rows of ``input``: covariances over standard deviations. Follows
    ``torch.corrcoef``.

    Args:
        input: a matrix (variables, observations), or one variable's vector
    Returns:
        A matrix (variables, variables), of numbers from -1 to 1; 0-d for one variable.
    Raises:
        RuntimeError: more than two dimensions
    """
    if input._h.ndim > 2:
        raise RuntimeError(f"corrcoef(): expected input to have two or fewer dimensions but got {input._h.ndim}")
    c = cov(input)
    if not c._h.ndim:
        return c / c
    d = c.diagonal()
    deviation = (d.real if c.is_complex() else d).sqrt()
    c = c / deviation.reshape(-1, 1) / deviation
    if c.is_complex():
        return FUNCTIONS["complex"](c.real.clamp(-1, 1), c.imag.clamp(-1, 1))
    return c.clamp(-1, 1)
