"""Operators: random counts, drawn by NumPy on the CPU. Its generator is seeded by a draw of ours for each call."""

from __future__ import annotations

import numpy as np

from ..dtypes import FLOATING, float64, int64
from ..tensor import FUNCTIONS, Tensor
from .create import from_numpy
from .declare import function, primitive

_EXACT = 1e15  # above it counts are normal numbers: the difference is below their rounding


def _numpy_generator(generator) -> np.random.Generator:
    key = FUNCTIONS["empty"](2, dtype=int64).random_(generator=generator).tolist()
    return np.random.Generator(np.random.Philox(key=np.array(key, np.uint64)))


def _parameter(op: str, t: Tensor) -> np.ndarray:
    if not t.is_cpu:
        raise NotImplementedError(f"{op}: not implemented on {t.device}")
    return t.detach().to(float64).numpy()


def _no_gradient(g):
    return g.new_zeros(()).expand(g.shape)


@primitive(title="PoissonBackward0", input=_no_gradient)
def _poisson(input, generator):
    rates = _parameter("poisson", input)
    if not (rates >= 0).all():
        raise RuntimeError("poisson: invalid Poisson rate, expected rate to be non-negative")
    draw = _numpy_generator(generator)
    drawn = np.asarray(draw.poisson(np.minimum(rates, _EXACT)), np.float64)
    if (rates > _EXACT).any():
        drawn = np.where(rates > _EXACT, np.rint(draw.normal(rates, np.sqrt(rates))), drawn)
    return from_numpy(drawn).to(input.dtype)


@function(pure=False)
def poisson(input, generator=None):
    """Numbers of events, where ``input`` holds how many there are on average. No gradient flows. Follows
    ``torch.poisson``.

    Args:
        input: rates, floating, not negative
    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        RuntimeError: a rate is negative or NaN
        NotImplementedError: the dtype is not floating, or the tensor is not on the CPU
    """
    if not FLOATING[input._h.dtype]:
        raise NotImplementedError(f"poisson: not implemented for {input.dtype!r}")
    return _poisson(input, generator)


@function(pure=False)
def binomial(count: Tensor, prob: Tensor, generator=None):
    """How many of ``count`` trials succeed, each with the probability ``prob``. No gradient flows. Follows
    ``torch.binomial``.

    Args:
        count: numbers of trials, floating
        prob: probabilities, broadcast with ``count``, of its dtype
    Returns:
        A tensor of the dtype of ``count``, NaN where one of them is.
    Raises:
        ValueError: ``count`` is not floating
        RuntimeError: the dtypes differ
        NotImplementedError: the tensors are not on the CPU
    """
    if not FLOATING[count._h.dtype]:
        raise ValueError(f"binomial only supports floating-point dtypes for count, got: {count.dtype!r}")
    if count.dtype is not prob.dtype:
        raise RuntimeError(f"binomial: found prob of dtype {prob.dtype!r}, expected {count.dtype!r}")
    n, p = np.broadcast_arrays(_parameter("binomial", count), _parameter("binomial", prob))
    unknown = np.isnan(n) | np.isnan(p)
    trials = np.floor(np.where(unknown, 0, n).clip(0, _EXACT)).astype(np.int64)
    drawn = _numpy_generator(generator).binomial(trials, np.where(unknown, 0, p).clip(0, 1))
    return from_numpy(np.asarray(np.where(unknown, np.nan, drawn))).to(count.dtype)
