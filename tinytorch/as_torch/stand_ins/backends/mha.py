"""``torch.backends.mha``: the fast path of MultiheadAttention, which has one path here."""

from __future__ import annotations

__all__ = ["get_fastpath_enabled", "set_fastpath_enabled"]

_enabled = [True]


def get_fastpath_enabled() -> bool:
    """What was set."""
    return _enabled[0]


def set_fastpath_enabled(value: bool) -> None:
    """Changes no result."""
    _enabled[0] = value
