"""The grad modes under the name of PyTorch's module, ``torch.autograd.grad_mode``."""

from __future__ import annotations

from ..tensor import Tensor
from .modes import enable_grad, inference_mode, no_grad, set_grad_enabled, set_multithreading_enabled

__all__ = ["enable_grad", "inference_mode", "no_grad", "set_grad_enabled", "set_multithreading_enabled"]


class _unsafe_preserve_version_counter:
    """Writes inside do not count for these tensors: backward does not notice them."""

    def __init__(self, tensors):
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.versions = [t._version for t in self.tensors]

    def __enter__(self):
        return None

    def __exit__(self, *exc_info):
        for t, version in zip(self.tensors, self.versions):
            (t._h.counter or t._h.storage).version = version
