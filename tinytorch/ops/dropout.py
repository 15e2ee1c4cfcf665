"""Dropout: what nn.functional's dropouts multiply by."""

from __future__ import annotations

import functools

from ..backends.cpu import error, lib
from ..dtypes import bool as bool_
from ..generator import pointer
from ..tensor import Tensor, attempted, gives_two
from .declare import function, primitive, ternary, without_history
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
    return _masked_scale(mask, g, scale) if mask.dtype is bool_ else g * mask


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
