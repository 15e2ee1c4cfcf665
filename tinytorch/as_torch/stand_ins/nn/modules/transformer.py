"""Further names of ``torch.nn.modules.transformer``."""

from __future__ import annotations

from tinytorch.nn import functional as F

__all__ = ["_get_activation_fn"]


def _get_activation_fn(activation: str):
    """``F.relu`` or ``F.gelu``. RuntimeError for another name."""
    if activation not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return getattr(F, activation)
