"""The default generator's functions, and a context that leaves it as it was."""

from __future__ import annotations

import contextlib

from .generator import default_generator, get_rng_state, initial_seed, manual_seed, seed, set_rng_state

__all__ = ["default_generator", "fork_rng", "get_rng_state", "initial_seed", "manual_seed", "seed", "set_rng_state"]


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, device_type="cpu"):
    """Restores the default generator's state at the end. Follows ``torch.random.fork_rng``."""
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
