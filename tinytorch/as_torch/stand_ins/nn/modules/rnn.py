"""Further names of ``torch.nn.modules.rnn``."""

from __future__ import annotations

__all__ = ["_apply_permutation", "apply_permutation"]


def apply_permutation(tensor, permutation, dim: int = 1):
    """The entries along a dimension in that order."""
    return tensor.index_select(dim, permutation)


_apply_permutation = apply_permutation
