"""Generators of random numbers: a seed and a count of draws. See Note [Random streams] in kernels/scalar/philox.h."""

from __future__ import annotations

import os

from .backends.cpu import check, error, ffi, lib
from .devices import device as _device
from .tensor import Tensor, wrap

_START = 67280421310721  # PyTorch's seed before any is set
_MASK = (1 << 64) - 1


class Generator:
    """A stream of random numbers of its own. Each call that draws takes the next number of a count, atomically, so
    threads may share one. Follows ``torch.Generator``."""

    __slots__ = ("_g", "device")

    def __init__(self, device="cpu"):
        self.device = _device(device)
        self._g = ffi.new("tt_generator *", (_START, 0))

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of ``seed`` from its beginning; negative seeds count from 2**64 down. ValueError outside of
        [-2**63, 2**64)."""
        seed = int(seed)
        if not -(1 << 63) <= seed <= _MASK:
            raise ValueError(f"manual_seed: Overflow when unpacking long long: the seed {seed} is outside of "
                             "[-2**63, 2**64)")
        self._g.draw = 0
        self._g.seed = seed & _MASK
        return self

    def seed(self) -> int:
        """Starts a stream that nobody can foresee, and returns its seed."""
        seed = int.from_bytes(os.urandom(8), "little")
        self.manual_seed(seed)
        return seed

    def initial_seed(self) -> int:
        """The seed of the present stream."""
        return self._g.seed

    def get_state(self) -> Tensor:
        """The place in the stream, as 16 bytes in a uint8 tensor."""
        h = lib.tt_empty(1, 1, (16,))
        if not h:
            raise error("get_state")
        ffi.memmove(h.data, self._g, 16)
        return wrap(h)

    def set_state(self, state: Tensor) -> Generator:
        """Goes to a place that ``get_state`` told. TypeError for anything but a uint8 tensor, RuntimeError for another
        number of bytes."""
        if not isinstance(state, Tensor) or state._h.dtype != 1:
            raise TypeError("set_state: expected a tinytorch.ByteTensor (uint8), got "
                            f"{state.dtype if isinstance(state, Tensor) else type(state).__name__}")
        if state._h.numel != 16:
            raise RuntimeError(f"set_state: expected a state of 16 bytes, got {state._h.numel}")
        plain = state.contiguous()
        check(lib.tt_sync(plain._h, 0), "set_state")
        ffi.memmove(self._g, plain._h.data, 16)
        return self

    def clone_state(self) -> Generator:
        """Another generator at the same place."""
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self):
        return _at, (self._g.seed, self._g.draw)


def _at(seed: int, draw: int) -> Generator:
    """A generator at a place in a stream."""
    made = Generator()
    made._g.seed, made._g.draw = seed, draw
    return made


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Starts the default generator's stream of ``seed``; returns the generator. Follows ``torch.manual_seed``."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Starts an unforeseeable stream in the default generator; returns its seed. Follows ``torch.seed``."""
    return default_generator.seed()


def initial_seed() -> int:
    """The default generator's seed. Follows ``torch.initial_seed``."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state. Follows ``torch.get_rng_state``."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the default generator's state. Follows ``torch.set_rng_state``."""
    default_generator.set_state(new_state)


def pointer(generator: Generator | None, op: str):
    """The C side of a generator: the default one's if None."""
    if generator is None:
        return default_generator._g
    if not isinstance(generator, Generator):
        raise TypeError(f"{op}(): argument 'generator' must be Generator, not {type(generator).__name__}")
    return generator._g
