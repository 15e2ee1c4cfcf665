"""Further names of ``torch.optim.optimizer``."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Union

import tinytorch
from tinytorch import Tensor

__all__ = ["ParamsT", "_RequiredParameter", "_default_to_fused_or_foreach", "_dispatch_sqrt",
           "_get_capturable_supported_devices", "_get_value", "_params_t", "_stack_if_compiling",
           "_use_grad_for_differentiable", "_view_as_real", "required"]  # fmt: skip

ParamsT = Union[Iterable[Tensor], Iterable[dict[str, Any]], Iterable[tuple[str, Tensor]]]
_params_t = ParamsT


class _RequiredParameter:
    """The default of an option that must be given."""

    def __repr__(self):
        return "<required parameter>"


required = _RequiredParameter()


def _default_to_fused_or_foreach(params, differentiable: bool, use_fused: bool = False) -> tuple[bool, bool]:
    """Neither: the program's own loop over tensors runs."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """["cuda"]."""
    return ["cuda"]


def _get_value(x):
    """The number of a tensor of one element, or the number."""
    return x.item() if isinstance(x, Tensor) else x


def _stack_if_compiling(x):
    """``x`` itself."""
    return x


def _dispatch_sqrt(x):
    """The square root of a tensor or number."""
    return x.sqrt() if isinstance(x, Tensor) else x**0.5


def _view_as_real(params, *state_and_grads) -> None:
    """Puts real views in the places of complex tensors, in all lists."""
    for k, p in enumerate(params):
        if p.is_complex():
            params[k] = tinytorch.view_as_real(p)
            for tensors in state_and_grads:
                tensors[k] = tinytorch.view_as_real(tensors[k])


def _use_grad_for_differentiable(step):
    """A step that records gradients where the optimizer is ``differentiable``, and not otherwise."""

    @functools.wraps(step)
    def stepping(self, *args, **kwargs):
        with tinytorch.set_grad_enabled(self.defaults["differentiable"]):
            return step(self, *args, **kwargs)

    return stepping
