"""The default generators of the CUDA devices: each has a stream of its own, which for the same seed is the CPU's."""

from __future__ import annotations

from ..backends.cuda import runtime
from ..generator import Generator, default_of, seed_defaults
from ..tensor import Tensor
from .devices import known_index


def _generator(device) -> Generator:
    return default_of(known_index(device) + 1)


def manual_seed(seed: int) -> None:
    """Starts the stream of ``seed`` in the current device's generator."""
    _generator(None).manual_seed(seed)


def manual_seed_all(seed: int) -> None:
    """Starts the stream of ``seed`` in the generators of all devices."""
    seed_defaults(seed, first=1)


def seed() -> int:
    """Starts an unforeseeable stream in the current device's generator; returns its seed."""
    return _generator(None).seed()


def seed_all() -> None:
    """Starts one unforeseeable stream in the generators of all devices."""
    seed_defaults(_generator(None).seed(), first=1)


def initial_seed() -> int:
    """The seed of the current device's generator."""
    return _generator(None).initial_seed()


def get_rng_state(device="cuda") -> Tensor:
    """The place in the stream of ``device``'s generator, as bytes on the CPU."""
    return _generator(device).get_state()


def set_rng_state(new_state: Tensor, device="cuda") -> None:
    """Goes to a place that ``get_rng_state`` told."""
    _generator(device).set_state(new_state)


def get_rng_state_all() -> list[Tensor]:
    """The states of all devices' generators."""
    return [get_rng_state(k) for k in range(runtime.device_count())]


def set_rng_state_all(new_states) -> None:
    """Sets the states of all devices' generators."""
    for k, state in enumerate(new_states):
        set_rng_state(state, k)
