"""Further names of ``torch.nn.init``."""

from __future__ import annotations

from tinytorch import no_grad
from tinytorch.nn.init import _calculate_fan_in_and_fan_out, trunc_normal_

__all__ = ["_calculate_correct_fan", "_no_grad_fill_", "_no_grad_normal_", "_no_grad_trunc_normal_",
           "_no_grad_uniform_", "_no_grad_zero_"]  # fmt: skip


def _calculate_correct_fan(tensor, mode: str) -> int:
    """How many numbers a unit takes in ("fan_in"), or gives out ("fan_out"). ValueError for another mode."""
    if mode.lower() not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode.lower() == "fan_out"]


@no_grad()
def _no_grad_uniform_(tensor, a: float, b: float, generator=None):
    """Writes numbers between a and b."""
    return tensor.uniform_(a, b, generator=generator)


@no_grad()
def _no_grad_normal_(tensor, mean: float, std: float, generator=None):
    """Writes normal numbers."""
    return tensor.normal_(mean, std, generator=generator)


def _no_grad_trunc_normal_(tensor, mean: float, std: float, a: float, b: float, generator=None):
    """Writes normal numbers between a and b."""
    return trunc_normal_(tensor, mean, std, a, b, generator=generator)


@no_grad()
def _no_grad_fill_(tensor, val: float):
    """Writes a number."""
    return tensor.fill_(val)


@no_grad()
def _no_grad_zero_(tensor):
    """Writes zeros."""
    return tensor.zero_()
