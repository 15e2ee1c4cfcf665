"""``torch.backends.opt_einsum``: the order of contractions, which einsum chooses by itself."""

from __future__ import annotations

__all__ = ["enabled", "get_opt_einsum", "is_available", "strategy"]

enabled, strategy = False, None


def is_available() -> bool:
    """False."""
    return False


def get_opt_einsum() -> None:
    """None."""
