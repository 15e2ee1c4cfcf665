"""Generators of random numbers: a seed and a count of draws. See Note [Random streams] in kernels/scalar/philox.h."""

from __future__ import annotations

import os

from .backends.cpu import check, ffi, lib
from .backends.cuda import runtime
from .devices import device as _device
from .tensor import Tensor, owned

_START = 67280421310721  # PyTorch's seed before any is set
_MASK = (1 << 64) - 1


class Generator:
    """A stream of random numbers of its own. Each call that draws takes the next number of a count, atomically, so
    threads may share one. Follows ``torch.Generator``."""

    __slots__ = ("_g", "device")

    def __init__(self, device="cpu"):
        self.device = _device(device)
        if self.device.type not in ("cpu", "cuda"):
            raise RuntimeError(f"Device type {self.device.type} is not supported for Generator")
        self._g = ffi.new("tt_generator *", (_START, 0))

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream of ``seed`` from its beginning; negative seeds count from 2**64 down. ValueError outside of
        [-2**63, 2**64)."""
        seed = int(seed)
        if not -(1 << 63) <= seed <= _MASK:
            raise ValueError(
                f"manual_seed: Overflow when unpacking long long: the seed {seed} is outside of [-2**63, 2**64)"
            )
        self._check_not_recorded("manual_seed")
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
        state = owned.tt_empty(lib.TT_U8, 1, (16,))
        ffi.memmove(state._h.data, self._g, 16)
        return state

    def set_state(self, state: Tensor) -> Generator:
        """Goes to a place that ``get_state`` told. TypeError for anything but a uint8 tensor of the CPU, RuntimeError
        for another number of bytes."""
        if not isinstance(state, Tensor) or state._h.dtype != lib.TT_U8:
            raise TypeError(
                "set_state: expected a tinytorch.ByteTensor (uint8), got "
                f"{state.dtype if isinstance(state, Tensor) else type(state).__name__}"
            )
        if state.is_cuda:
            raise TypeError(f"set_state: expected a state on the CPU, got one on {state.device}; use state.cpu()")
        if state._h.numel != 16:
            raise RuntimeError(f"set_state: expected a state of 16 bytes, got {state._h.numel}")
        self._check_not_recorded("set_state")
        plain = state.contiguous()
        check(lib.tt_sync(plain._h, 0), "set_state")
        ffi.memmove(self._g, plain._h.data, 16)
        return self

    def _check_not_recorded(self, op: str) -> None:
        if self.device.type == "cuda" and runtime.is_capturing(runtime.current_device()):
            raise RuntimeError(
                f"{op}: a CUDA generator cannot go to another place during CUDA graph capture: what is "
                "recorded draws from where the generator is when it runs"
            )

    def clone_state(self) -> Generator:
        """Another generator at the same place."""
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self):
        return _at, (self._g.seed, self._g.draw, self.device)


def _at(seed: int, draw: int, device="cpu") -> Generator:
    """A generator at a place in a stream."""
    made = Generator(device)
    made._g.seed, made._g.draw = seed, draw
    return made


default_generator = Generator()
_defaults = [default_generator]  # by the C side's number of the device; those of CUDA devices are made when asked for
_seed = _START  # of those that are not made yet


def default_of(number: int) -> Generator:
    """The default generator of the device that the C side numbers so."""
    while number >= len(_defaults):
        _defaults.append(_at(_seed, 0, _device("cuda", len(_defaults) - 1)))
    return _defaults[number]


def seed_defaults(seed: int, first: int = 0) -> None:
    """Starts the stream of ``seed`` in the default generators from the device numbered ``first`` on."""
    global _seed
    for generator in reversed(_defaults[first:]):  # one of a CUDA device may refuse, before anything is done
        generator.manual_seed(seed)
    _seed = Generator().manual_seed(seed).initial_seed()


def manual_seed(seed: int) -> Generator:
    """Starts the stream of ``seed`` in the default generators of all devices; returns the CPU's. Follows
    ``torch.manual_seed``."""
    seed_defaults(seed)
    return default_generator


def seed() -> int:
    """Starts an unforeseeable stream in the default generators; returns its seed. Follows ``torch.seed``."""
    chosen = default_generator.seed()
    seed_defaults(chosen)
    return chosen


def initial_seed() -> int:
    """The default generator's seed. Follows ``torch.initial_seed``."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state. Follows ``torch.get_rng_state``."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Sets the default generator's state. Follows ``torch.set_rng_state``."""
    default_generator.set_state(new_state)


def pointer(generator: Generator | None, op: str, number: int = 0):
    """The C side of a generator for tensors of the device that the C side numbers so: the default one's if None.
    RuntimeError for one of another kind of device."""
    if generator is None:
        generator = default_of(number)
    elif not isinstance(generator, Generator):
        raise TypeError(f"{op}(): argument 'generator' must be Generator, not {type(generator).__name__}")
    elif generator.device.type != (wanted := "cuda" if number else "cpu"):
        raise RuntimeError(f"{op}: Expected a '{wanted}' device type for generator but found '{generator.device.type}'")
    capture = runtime.capture_of(number - 1) if number else None
    return generator._g if capture is None else capture.counter(generator)
