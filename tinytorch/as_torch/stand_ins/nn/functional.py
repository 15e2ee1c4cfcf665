"""Further names of ``torch.nn.functional``, which copies of its functions use."""

from __future__ import annotations

import warnings

from tinytorch import Tensor, zeros_like
from tinytorch.nn.functional import linear
from tinytorch.overrides import (
    handle_torch_function,
    has_torch_function,
    has_torch_function_unary,
    has_torch_function_variadic,
)

from . import _reduction as _Reduction

__all__ = ["GRID_SAMPLE_INTERPOLATION_MODES", "GRID_SAMPLE_PADDING_MODES", "_Reduction", "_canonical_mask",
           "_get_softmax_dim", "_in_projection", "_in_projection_packed", "_none_or_dtype", "handle_torch_function",
           "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"]  # fmt: skip

GRID_SAMPLE_INTERPOLATION_MODES = {"bilinear": 0, "nearest": 1, "bicubic": 2}
GRID_SAMPLE_PADDING_MODES = {"zeros": 0, "border": 1, "reflection": 2}


def _in_projection(q, k, v, w_q, w_k, w_v, b_q=None, b_k=None, b_v=None) -> tuple:
    """Query, key and value, each through its own layer."""
    return linear(q, w_q, b_q), linear(k, w_k, b_k), linear(v, w_v, b_v)


def _in_projection_packed(q, k, v, w, b=None) -> list:
    """Query, key and value through layers whose weights lie in one matrix, one below the other."""
    if q is k and k is v:
        return list(linear(q, w, b).chunk(3, -1))
    biases = (None,) * 3 if b is None else b.chunk(3)
    return [linear(x, part, bias) for x, part, bias in zip((q, k, v), w.chunk(3), biases)]


def _none_or_dtype(input: Tensor | None):
    """The dtype of a tensor; None of None."""
    if input is not None and not isinstance(input, Tensor):
        raise RuntimeError("input to _none_or_dtype() must be None or a tensor")
    return None if input is None else input.dtype


def _canonical_mask(mask, mask_name: str, other_type, other_name: str, target_type, check_other: bool = True):
    """A mask as numbers that are added: minus infinity where a bool one is True. AssertionError for a mask of
    integers."""
    if mask is None:
        return None
    floating = mask.is_floating_point()
    if mask.dtype.name != "bool" and not floating:
        raise AssertionError(f"only bool and floating types of {mask_name} are supported")
    if check_other and other_type is not None and mask.dtype != other_type:
        warnings.warn(f"Support for mismatched {mask_name} and {other_name} is deprecated. Use same type for both "
                      "instead.", stacklevel=2)  # fmt: skip
    return mask if floating else zeros_like(mask, dtype=target_type).masked_fill_(mask, float("-inf"))


def _get_softmax_dim(name: str, ndim: int, stacklevel: int) -> int:
    """The dimension where none is given."""
    warnings.warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an "
                  "argument.", stacklevel=stacklevel)  # fmt: skip
    return 0 if ndim in (0, 1, 3) else 1
