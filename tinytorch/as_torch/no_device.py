"""``torch.mps``, ``torch.mtia``, ``torch.xpu``: there is no such device."""

from __future__ import annotations

__all__ = ["current_device", "device_count", "empty_cache", "is_available", "is_bf16_supported", "manual_seed",
           "manual_seed_all", "synchronize"]  # fmt: skip


def is_available() -> bool:
    """False."""
    return False


is_bf16_supported = is_available


def device_count() -> int:
    """0."""
    return 0


def manual_seed(seed: int) -> None:
    """Nothing: there is no generator to seed."""


def empty_cache() -> None:
    """Nothing: no memory is kept."""


manual_seed_all = manual_seed


def synchronize(device=None) -> None:
    """RuntimeError: there is nothing to wait for."""
    raise RuntimeError("tinytorch has no such device")


current_device = synchronize
