"""``torch.cuda.nccl``: there is no communication between devices."""

from __future__ import annotations

__all__ = ["is_available", "version"]


def is_available(tensors) -> bool:
    """False."""
    return False


def version() -> tuple[int, int, int]:
    """(0, 0, 0)."""
    return 0, 0, 0
