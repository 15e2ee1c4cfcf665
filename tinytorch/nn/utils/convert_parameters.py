"""Parameters as one vector. Follows ``torch.nn.utils``."""

from __future__ import annotations

from ...ops.join import cat
from ...tensor import Tensor

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def _on_one_device(parameters):
    """The parameters. TypeError when they are on several devices."""
    device = None
    for p in parameters:
        if device not in (None, p.device):
            raise TypeError("Found two parameters on different devices, this is currently not supported.")
        device = p.device
        yield p


def parameters_to_vector(parameters) -> Tensor:
    """All parameters as one 1-dimensional tensor; differentiable. TypeError when they are on several devices."""
    return cat([p.reshape(-1) for p in _on_one_device(parameters)])


def vector_to_parameters(vec: Tensor, parameters) -> None:
    """The opposite: each parameter's data becomes a view of ``vec``. TypeError when they are on several devices."""
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected Tensor, but got: {type(vec).__name__}")
    at = 0
    for p in _on_one_device(parameters):
        n = p.numel()
        p.data = vec.detach()[at : at + n].view(tuple(p.shape))
        at += n
