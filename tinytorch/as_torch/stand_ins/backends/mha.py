"""``torch.backends.mha``: the fast path of MultiheadAttention, which has one path here."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]


def get_fastpath_enabled() -> bool:
    """True."""
    return True


def set_fastpath_enabled(value: bool) -> None:
    """Changes nothing."""
