"""Gradient clipping. Follows ``torch.nn.utils``."""

from __future__ import annotations

import math
import warnings

from ...autograd.modes import no_grad
from ...autograd.views import writer_number, wrote
from ...backends.cpu import ffi, lib
from ...dtypes import float32
from ...ops.create import tensor
from ...ops.join import stack
from ...tensor import Tensor, attempted

__all__ = ["clip_grad_norm", "clip_grad_norm_", "clip_grad_value_", "clip_grads_with_norm_", "get_total_norm"]

NULL = ffi.NULL
_REDUCERS = {p: lib.tt_reduce_code(b"norm_%g" % p) for p in (1.0, 2.0, math.inf, -math.inf)}
_writer = writer_number("clip_grad_norm_")


def _tensors(tensors) -> list[Tensor]:
    return [tensors] if isinstance(tensors, Tensor) else list(tensors)


def _grads(parameters) -> list[Tensor]:
    return [p.grad for p in _tensors(parameters) if p.grad is not None]


def get_total_norm(tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach=None) -> Tensor:
    """The norm of all tensors as if they were one vector, on the device of the first. RuntimeError if it is not finite
    and that is asked for."""
    tensors = _tensors(tensors)
    if not tensors:
        return tensor(0.0)
    norm_type = float(norm_type)
    try:
        handles = [t._h for t in tensors]
    except AttributeError as exc:
        raise TypeError(f"get_total_norm(): expected Tensors, but got {type(exc.obj).__name__}") from None
    with no_grad():
        op = _REDUCERS.get(norm_type)
        norms = None if op is None else attempted.tt_norms(op, len(tensors), handles)
        if norms is None:
            norms = [t.detach().reshape(-1).norm(norm_type) for t in tensors]
            dtypes = {n.dtype for n in norms}
            norms = stack([n.to(tensors[0].device, float32 if len(dtypes) > 1 else None) for n in norms])
        total = norms.norm(norm_type)
    if error_if_nonfinite and not math.isfinite(total.item()):
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` is non-finite, so "
            "it cannot be clipped. To disable this error and scale the gradients by the non-finite norm "
            "anyway, set `error_if_nonfinite=False`"
        )
    return total


def clip_grads_with_norm_(parameters, max_norm: float, total_norm: Tensor, foreach=None) -> None:
    """Scales the gradients by ``max_norm / total_norm`` where that is less than 1."""
    grads = _grads(parameters)
    with no_grad():
        if not isinstance(total_norm, Tensor):
            raise TypeError(f"clip_grads_with_norm_: total_norm must be Tensor, not {type(total_norm).__name__}")
        scale = (max_norm / (total_norm + 1e-6)).clamp(max=1.0)
        handles = [g._h for g in grads]
        apart = len({h.storage for h in handles}) == len(handles)
        together = apart and lib.tt_scale(len(handles), handles, scale._h, _writer) == 0
        for g in grads:
            if together:
                wrote(g)
            else:
                g.mul_(scale.to(g.device))


def clip_grad_norm_(
    parameters, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach=None
) -> Tensor:
    """Scales all gradients alike so that together they have at most the norm ``max_norm``. Returns the norm they
    had."""
    parameters = _tensors(parameters)
    total = get_total_norm(_grads(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, float(max_norm), total)
    return total


def clip_grad_value_(parameters, clip_value: float, foreach=None) -> None:
    """Clamps every element of the gradients to within ``clip_value`` of 0."""
    clip_value = float(clip_value)
    with no_grad():
        for g in _grads(parameters):
            g.clamp_(-clip_value, clip_value)


def clip_grad_norm(parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None) -> Tensor:
    """``clip_grad_norm_``, by its name of old."""
    warnings.warn(
        "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`.",
        FutureWarning,
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
