"""``torch.backends.mps``: there is no such device."""

from __future__ import annotations

__all__ = ["is_available", "is_built", "is_macos13_or_newer", "is_macos_or_newer"]


def is_available() -> bool:
    """False."""
    return False


is_built = is_available


def is_macos_or_newer(major: int = 13, minor: int = 0) -> bool:
    """False."""
    return False


is_macos13_or_newer = is_macos_or_newer
