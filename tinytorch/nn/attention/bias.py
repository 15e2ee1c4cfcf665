"""Causal masks that know what they are: attention need not read them. Follows ``torch.nn.attention.bias``.

Not imported by ``nn``: a subclass of Tensor makes every function look for overrides.
"""

from __future__ import annotations

import enum
import warnings

from ...dtypes import bool as bool_
from ...ops.create import empty, ones
from ...tensor import Tensor
from .. import functional as F

__all__ = ["CausalBias", "CausalVariant", "causal_lower_right", "causal_upper_left"]


class CausalVariant(enum.IntEnum):
    """The corner of the scores in which the diagonal ends: where the sequences begin together, or end together."""

    UPPER_LEFT = enum.auto()
    LOWER_RIGHT = enum.auto()


class CausalBias(Tensor):
    """The mask of ``seq_len_q`` positions that each see the keys up to their own. It is there for
    ``scaled_dot_product_attention`` alone. Follows ``torch.nn.attention.bias.CausalBias``.

    Raises:
        AssertionError: ``variant`` is no CausalVariant
    """

    def __new__(cls, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        if not isinstance(variant, CausalVariant):
            raise AssertionError(f"variant must be a CausalVariant, got {type(variant).__name__}")
        return empty(()).expand(1, seq_len_q, seq_len_kv).as_subclass(cls)

    def __init__(self, variant: CausalVariant, seq_len_q: int, seq_len_kv: int):
        self.variant, self.seq_len_q, self.seq_len_kv = variant, seq_len_q, seq_len_kv
        if seq_len_q > seq_len_kv and variant == CausalVariant.LOWER_RIGHT:
            warnings.warn(
                "Lower right causal bias will produce NaNs in the output when seq_len_q > seq_len_kv!", stacklevel=2
            )

    def _materialize(self, device=None) -> Tensor:
        """The mask, True where a key is seen."""
        shift = self.seq_len_kv - self.seq_len_q if self.variant == CausalVariant.LOWER_RIGHT else 0
        return ones(self.seq_len_q, self.seq_len_kv, dtype=bool_, device=device).tril(shift)

    @staticmethod
    def _dispatch(query, key, value, attn_mask, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        if is_causal:
            raise ValueError("CausalBias should not be used with causal=True")
        corner = attn_mask.variant == CausalVariant.UPPER_LEFT or attn_mask.seq_len_q == attn_mask.seq_len_kv
        mask = None if corner else attn_mask._materialize(query.device)
        return F.scaled_dot_product_attention(query, key, value, mask, dropout_p, corner, scale, enable_gqa)

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func is F.scaled_dot_product_attention:
            return cls._dispatch(*args, **(kwargs or {}))
        return super().__torch_function__(func, types, args, kwargs or {})

    def __repr__(self):
        return repr(self._materialize())


def _sizes(name: str, size) -> tuple[int, int]:
    if len(size) != 2:
        raise AssertionError(f"{name} only supports 2D tensors")
    return size


def causal_upper_left(*size: int) -> CausalBias:
    """The causal mask of (L, S) scores whose sequences begin together. Follows
    ``torch.nn.attention.bias.causal_upper_left``."""
    return CausalBias(CausalVariant.UPPER_LEFT, *_sizes("causal_upper_left", size))


def causal_lower_right(*size: int) -> CausalBias:
    """The causal mask of (L, S) scores whose sequences end together, as with a cache of keys. Follows
    ``torch.nn.attention.bias.causal_lower_right``."""
    return CausalBias(CausalVariant.LOWER_RIGHT, *_sizes("causal_lower_right", size))
