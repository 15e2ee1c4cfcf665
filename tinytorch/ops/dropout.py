"""Dropout of elements and of channels, and the activation whose slopes are random."""

from __future__ import annotations

import functools
import math

from ..backends.cpu import error, lib
from ..dtypes import bool as bool_
from ..generator import pointer
from ..tensor import Tensor, attempted, gives_two
from .activation import leaky_relu, overwrite
from .declare import flags_only, function, primitive, refuse, tensors_only, ternary, without_history
from .fitting import fitted
from .pointwise import _where
from .pointwise_activation import _leaky_relu
from .random import _MASK, _draw

function = function(pure=False)  # a draw changes its generator


@functools.lru_cache
def _dropout_scale(p: float, code: int) -> float:
    """What elements that are kept are multiplied by, as a dtype holds it."""
    return lib.tt_rounded(code, 1.0 / (1.0 - p) if p < 1 else 0.0)


@function(namespace="internal")
def dropout_mask(input: Tensor, p: float) -> Tensor:
    """Like ``input``: 0 with probability ``p``, else 1 / (1 - p)."""
    code = input._h.dtype
    return _draw(attempted.tt_empty_like(input._h, code), _MASK, "dropout", None, 1.0 - p, _dropout_scale(p, code))


_masked_scale = ternary(
    "masked_scale",
    None,
    lambda g, mask, scale: _masked_scale(mask, g, scale),
    params=("mask", "input", "scale"),
    doc="input scale where the mask holds, else input 0.",
)
_scaled, _times = without_history("masked_scale", "mask", "g", "scale"), without_history("mul", "g", "mask")


_dropout = gives_two(lib.tt_dropout)


def _dropout_formula(g, mask, scale):
    return g * (mask.to(g.dtype) * scale if mask.dtype is bool_ else mask)  # of one name, whatever the mask


def _dropout_first_order(g, mask, scale):
    return _scaled(mask, g, scale) if mask.dtype is bool_ else _times(g, mask)


@primitive(
    name="dropout",
    title="NativeDropoutBackward0",
    extra=("mask",),
    input=_dropout_formula,
    first_order={"input": _dropout_first_order},
)
def _dropped(input, p, scale):
    out = _dropout(input._h, 1.0 - p, scale, pointer(None, "dropout", input._h.storage.device))
    if out is None:
        raise error("dropout")
    return out


@function(namespace="internal")
def dropped(input: Tensor, p: float) -> Tensor:
    """``input * dropout_mask(input, p)``: in eager mode one kernel draws and multiplies where the elements are floating
    and lie in their order, and a byte of each is kept for the gradient."""
    return _dropped(input, p, _dropout_scale(p, input._h.dtype))[0]


# Public.


def _check_probability(op, p):
    if not 0 <= p <= 1:
        error = RuntimeError if p != p else ValueError  # NaN is not compared in Python
        raise error(f"{op}: dropout probability has to be between 0 and 1, but got {p}")


@function
def dropout(input, p=0.5, training=True, inplace=False):
    """In training, elements become 0 with probability ``p`` and the others are divided by 1 - p. Where there is nothing
    to drop, ``input`` itself. Follows ``torch.nn.functional.dropout``.

    Args:
        p: the probability of an element to become 0
    Returns:
        A tensor of the shape and dtype of ``input``.
    Raises:
        ValueError: ``p`` is below 0 or above 1
    """
    try:
        _check_probability("dropout", p)
        if training is not True and training is not False:
            flags_only("dropout", training=training)
        if not training or p == 0 or not input._h.numel:
            return input if isinstance(input, Tensor) else tensors_only("dropout", input=input)
        return input.mul_(dropout_mask(input, p)) if inplace else dropped(input, p)
    except Exception as exc:
        refuse(exc)
        raise


def _channels(op, input, p, training, inplace, dims):
    """Dropout of whole channels of (N, C, ...) or, with one dimension less, (C, ...)."""
    _check_probability(op, p)
    if input._h.ndim not in dims:
        raise RuntimeError(
            f"{op}: Expected {' or '.join(f'{d}D' for d in dims)} input, got {input._h.ndim}D input of "
            f"shape {tuple(input.shape)}"
        )
    if not training or p == 0 or not input._h.numel:
        return input
    keep = 2 if input._h.ndim == max(dims) else 1
    mask = dropout_mask(_one_per_channel(input, keep), p)
    return input.mul_(mask) if inplace else input * mask


def _one_per_channel(input, keep):
    return input.detach().new_empty([*input.shape[:keep], *[1] * (input._h.ndim - keep)])


def dropout1d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, L) or (C, L). Follows ``torch.nn.functional.dropout1d``."""
    return _channels("dropout1d", input, p, training, inplace, (2, 3))


def dropout2d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, H, W). Follows ``torch.nn.functional.dropout2d``."""
    return _channels("dropout2d", input, p, training, inplace, (3, 4))


def dropout3d(input, p=0.5, training=True, inplace=False):
    """Dropout of whole channels of (N, C, D, H, W). Follows ``torch.nn.functional.dropout3d``."""
    return _channels("dropout3d", input, p, training, inplace, (4, 5))


def _alpha_dropout(op, input, p, training, inplace, pattern):
    """Dropped elements become -alpha' (selu's lower limit), and an affine map brings mean 0 and variance 1 back
    (Klambauer et al. 2017, arXiv:1706.02515, section "new dropout technique")."""
    _check_probability(op, p)
    tensors_only(op, input=input)
    flags_only(op, training=training)
    if not training or p == 0 or not input._h.numel:
        return input
    if p == 1:
        return input.mul_(0) if inplace else input * 0
    low = -1.7580993408473766  # - selu's scale times its alpha
    kept = dropout_mask(pattern, p) != 0
    scale = 1 / math.sqrt((1 - p) * (1 + p * low * low))
    out = _where(kept, input * scale, scale * low) - scale * low * p
    return input.copy_(out) if inplace else out


def alpha_dropout(input, p=0.5, training=False, inplace=False):
    """Dropout that keeps mean and variance, for selu. Follows ``torch.nn.functional.alpha_dropout``."""
    return _alpha_dropout("alpha_dropout", input, p, training, inplace, input)


def feature_alpha_dropout(input, p=0.5, training=False, inplace=False):
    """alpha_dropout of whole channels (dimension 1). Follows ``torch.nn.functional.feature_alpha_dropout``."""
    if input._h.ndim < 2 and training and 0 < p < 1:
        raise RuntimeError("feature_alpha_dropout: Feature dropout requires at least 2 dimensions in the input")
    pattern = input if input._h.ndim < 2 else _one_per_channel(input, 2)
    return _alpha_dropout("feature_alpha_dropout", input, p, training, inplace, pattern)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu whose slopes are drawn from [lower, upper) in training, else their mean. Follows
    ``torch.nn.functional.rrelu``."""
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(fitted(bound, input._h.dtype, True)):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(f"rrelu: lower bound {lower} should be less than or equal to the upper bound {upper}")
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slopes = input.new_empty(input.shape).uniform_(lower, upper)
    return overwrite(inplace, _leaky_relu, input, slopes)
