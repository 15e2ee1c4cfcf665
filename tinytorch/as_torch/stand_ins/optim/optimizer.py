"""Further names of ``torch.optim.optimizer``."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Union

import tinytorch
from tinytorch import Tensor

__all__ = ["ParamsT", "_RequiredParameter", "_default_to_fused_or_foreach", "_dispatch_sqrt",
           "_capturable_doc", "_differentiable_doc", "_disable_dynamo_if_unsupported", "_foreach_doc", "_fused_doc",
           "_get_capturable_supported_devices", "_get_scalar_dtype", "_get_value", "_maximize_doc", "_params_doc",
           "_params_t", "_stack_if_compiling", "_to_scalar", "_use_grad_for_differentiable", "_view_as_real",
           "required"]  # fmt: skip

ParamsT = Union[Iterable[Tensor], Iterable[dict[str, Any]], Iterable[tuple[str, Tensor]]]
_params_t = ParamsT


_params_doc = "params: the tensors to be optimized, or groups of them"
_capturable_doc = "capturable: chooses an implementation"
_differentiable_doc = "differentiable: whether gradients flow through a step"
_foreach_doc = "foreach: chooses an implementation"
_fused_doc = "fused: chooses an implementation"
_maximize_doc = "maximize: go up instead of down"


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


def _to_scalar(x):
    """A tensor of one element without dimensions, or the number."""
    return x.squeeze() if isinstance(x, Tensor) and x.ndim else x


def _get_scalar_dtype(is_fused=None):
    """The dtype of a step's number: float32, or float64 where that is the default."""
    double = tinytorch.get_default_dtype() is tinytorch.float64 and not is_fused
    return tinytorch.float64 if double else tinytorch.float32


def _disable_dynamo_if_unsupported(single_tensor_fn=None):
    """A decorator that changes nothing."""
    return lambda fn: fn
