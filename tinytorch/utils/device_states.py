"""Where random generators stand before a checkpointed part, and setting them back."""

from __future__ import annotations

import contextlib

from .. import cuda
from ..tensor import FUNCTIONS, Tensor


class DefaultDeviceType:
    """The kind of device whose random generators ``set_device_states`` sets where it is not told one. Follows
    ``torch.utils.checkpoint.DefaultDeviceType``."""

    _default_device_type: str | None = None

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        """Sets it."""
        DefaultDeviceType._default_device_type = device

    @staticmethod
    def get_device_type() -> str:
        """What was set, or "cuda" where there is a CUDA device, else "cpu"."""
        return DefaultDeviceType._default_device_type or ("cuda" if cuda.is_available() else "cpu")


def _on_devices(args):
    """The CUDA tensors among arguments, in containers too."""
    for a in args:
        if isinstance(a, Tensor):
            if a.is_cuda:
                yield a
        elif isinstance(a, (list, tuple)):
            yield from _on_devices(a)
        elif isinstance(a, dict):
            yield from _on_devices(a.values())


def get_device_states(*args) -> tuple[list[int], list[Tensor]]:
    """The numbers of the devices of the tensors among ``args``, and in containers there, but the CPU, and the states of
    their generators. Follows ``torch.utils.checkpoint.get_device_states``."""
    devices = [a.get_device() for a in _on_devices(args)]
    return devices, [cuda.get_rng_state(d) for d in devices]


def set_device_states(devices, states, *, device_type=None) -> None:
    """Sets the devices' random generators to ``states``, which are CUDA's unless ``device_type`` is another. Follows
    ``torch.utils.checkpoint.set_device_states``."""
    if (device_type or DefaultDeviceType.get_device_type()) == "meta":
        return
    for device, state in zip(devices, states):
        cuda.set_rng_state(state, device)


class RandomStates:
    """Where the random generators stand: the CPU's, and those of the arguments' devices."""

    def __init__(self, args):
        devices = {a.device for a in _on_devices(args)}
        self.cpu, self.cuda = FUNCTIONS["get_rng_state"](), [(d, cuda.get_rng_state(d)) for d in devices]

    @contextlib.contextmanager
    def again(self):
        """Inside, the generators go on from here."""
        now = RandomStates(())
        now.cuda = [(d, cuda.get_rng_state(d)) for d, _ in self.cuda]
        self.restore()
        try:
            yield
        finally:
            now.restore()

    def restore(self):
        FUNCTIONS["set_rng_state"](self.cpu)
        for device, state in self.cuda:
            cuda.set_rng_state(state, device)
