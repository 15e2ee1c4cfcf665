"""Losses made of other operators. Those of class indices are in class_loss.py."""

from __future__ import annotations

import math
import warnings

from ..backends.cpu import ffi
from ..tensor import Tensor
from .activation import floating
from .declare import binary, broadcast_shape, primitive, real_only, refuse, tensors_only, ternary, without_history
from .fitting import fitted
from .declare.arguments import requires
from .pointwise import _where as where
from .pointwise_activation import _hardtanh, _logsigmoid

NULL = ffi.NULL
_REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}


def reduction_code(reduction: str) -> int:
    """0, 1 or 2; ValueError for a word that is no reduction."""
    code = _REDUCTIONS.get(reduction) if isinstance(reduction, str) else None
    if code is None:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return code


def legacy(reduction: str, size_average, reduce) -> str:
    """The reduction that the older arguments ``size_average`` and ``reduce`` meant."""
    if size_average is None and reduce is None:
        return reduction
    found = "none" if reduce is False else "sum" if size_average is False else "mean"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{found}' instead.", stacklevel=3
    )
    return found


def reduce_losses(losses: Tensor, reduction: str) -> Tensor:
    """The losses of all elements, their mean or their sum."""
    code = reduction_code(reduction)
    return losses if code == 0 else losses.mean() if code == 1 else losses.sum()


# Differences.


def _same_size(op, input, target):
    """A warning where shapes differ, or RuntimeError: what PyTorch looks at first."""
    if not (isinstance(input, Tensor) and isinstance(target, Tensor)):
        tensors_only(op, input=input, target=target)
    if input.shape != target.shape:
        warnings.warn(
            f"Using a target size ({tuple(target.shape)}) that is different to the input size "
            f"({tuple(input.shape)}). This will likely lead to incorrect results due to broadcasting. Please "
            "ensure they have the same size.",
            stacklevel=3,
        )
        broadcast_shape(op, [input._h, target._h])


ternary("squared_difference_backward", params=("g", "a", "b"), doc="g 2 (a - b).")
_squared_difference = binary(
    "squared_difference",
    lambda g, a, b: g * (2 * (a - b)),
    lambda g, a, b: -(g * (2 * (a - b))),
    title="MseLossBackward0",
    first_order={"a": without_history("squared_difference_backward", "g", "a", "b")},
    public=False,
    doc="(a - b)^2.",
)


def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """(input - target)^2. Follows ``torch.nn.functional.mse_loss``.

    Args:
        target: a tensor, broadcast with ``input``
        weight: a weight for each element, or None
    Returns:
        A 0-d tensor, or losses of the shape that the inputs broadcast to.
    Raises:
        ValueError: ``reduction`` is unknown
    """
    try:
        reduction = legacy(reduction, size_average, reduce)
        _same_size("mse_loss", input, target)
        floating("mse_loss", input)
        return _weighted(_squared_difference(input, target), input, weight, reduction)
    except Exception as exc:
        refuse(exc)
        raise


def _weighted(losses, input, weight, reduction, of_weights: bool = True):
    """The losses, weighted and reduced; ``of_weights``: a mean is the sum over that of the weights."""
    if weight is None:
        return reduce_losses(losses, reduction)
    code = reduction_code(reduction)
    if not isinstance(weight, Tensor):
        raise TypeError(f"argument 'weight' must be Tensor, not {type(weight).__name__}")
    if weight.shape != input.shape:
        raise ValueError("Weights and input must have the same size.")
    losses = losses * weight
    return losses.sum() / weight.sum() if code == 1 and of_weights else reduce_losses(losses, reduction)


def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """|input - target|. Follows ``torch.nn.functional.l1_loss``. Otherwise like ``mse_loss``."""
    reduction = legacy(reduction, size_average, reduce)
    _same_size("l1_loss", input, target)
    return _weighted((input - target).abs(), input, weight, reduction)


# Of a difference a and the bound b of the part that is a parabola. Their slopes' own kernels are for when no higher
# derivative is asked.
ternary("smooth_l1_backward", params=("g", "a", "b"), doc="g a / b, a / b within [-1, 1].")
ternary("huber_backward", params=("g", "a", "b"), doc="g a, a within [-b, b].")
# Where no derivative is asked, the difference is not made apart, unless it would be rounded to a half type.
_smooth_l1_between = ternary("smooth_l1_between", params=("a", "b", "bound"), doc="smooth_l1 of a - b.")
_huber_between = ternary("huber_between", params=("a", "b", "bound"), doc="huber of a - b.")
_smooth_l1 = binary(
    "smooth_l1",
    lambda g, a, b: g * _hardtanh(a / b, -1, 1),
    title="SmoothL1LossBackward0",
    first_order={"a": without_history("smooth_l1_backward", "g", "a", "b")},
    public=False,
    doc="a^2 / (2 b) where |a| is below b, else |a| - b / 2.",
)
_huber = binary(
    "huber",
    lambda g, a, b: g * _hardtanh(a, -b, b),
    title="HuberLossBackward0",
    first_order={"a": without_history("huber_backward", "g", "a", "b")},
    public=False,
    doc="a^2 / 2 where |a| is below b, else b (|a| - b / 2).",
)


def _apart(input, target):
    return requires(input, target) or min(input.dtype.itemsize, target.dtype.itemsize) < 4


def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """d^2 / (2 beta) where d = |input - target| is below beta, else d - beta / 2. Follows
    ``torch.nn.functional.smooth_l1_loss``. Otherwise like ``mse_loss``.

    Args:
        beta: where the square ends
    """
    reduction = legacy(reduction, size_average, reduce)
    _same_size("smooth_l1_loss", input, target)
    floating("smooth_l1_loss", input)
    if not beta >= 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta, got {beta}")
    if beta == 0:
        losses = (input - target).abs()
    elif _apart(input, target):
        losses = _smooth_l1(input - target, beta)
    else:
        losses = _smooth_l1_between(input, target, beta)
    return reduce_losses(losses, reduction)


def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """d^2 / 2 where d = |input - target| is below delta, else delta (d - delta / 2). Follows
    ``torch.nn.functional.huber_loss``. Otherwise like ``mse_loss``.

    Args:
        delta: where the square ends
    """
    _same_size("huber_loss", input, target)
    reduction_code(reduction)
    floating("huber_loss", input)
    if isinstance(delta, complex):
        raise TypeError(f"huber_loss: delta must be a float or int, got: {type(delta)}")
    if not delta > 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta, got {delta}")
    apart = _apart(input, target)
    losses = _huber(input - target, delta) if apart else _huber_between(input, target, delta)
    return _weighted(losses, input, weight, reduction, False)


# Probabilities.


@primitive(
    title="BinaryCrossEntropyBackward0",
    input=lambda g, input, target: g * (input - target) / ((1 - input) * input).clamp(min=1e-12),
    target=lambda g, input: g * ((-input).log1p() - input.log()),
)
def _bce(input, target):
    input, target = input.detach(), target.detach()
    return (target - 1) * (-input).log1p().clamp(min=-100) - target * input.log().clamp(min=-100)


def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """-(target log(input) + (1 - target) log(1 - input)) for probabilities, the logarithms not below -100. Follows
    ``torch.nn.functional.binary_cross_entropy``.

    Args:
        input: probabilities
        target: probabilities of the same shape
        weight: a weight for each element, or None
    Returns:
        A 0-d tensor, or losses of the shape of ``input``.
    Raises:
        ValueError: the shapes differ
        RuntimeError: an input is below 0 or above 1
    """
    reduction = legacy(reduction, size_average, reduce)
    reduction_code(reduction)
    if not isinstance(target, Tensor):
        raise TypeError(f"binary_cross_entropy(): argument 'target' must be Tensor, not {type(target).__name__}")
    if input.shape != target.shape:
        raise ValueError(
            f"binary_cross_entropy: Using a target size ({tuple(target.shape)}) that is different to the "
            f"input size ({tuple(input.shape)}) is deprecated. Please ensure they have the same size."
        )
    floating("binary_cross_entropy", input, target)
    if input._h.numel and not bool(((input >= 0) & (input <= 1)).all()):
        raise RuntimeError("binary_cross_entropy: all elements of input should be between 0 and 1")
    losses = _bce(input, target)
    return reduce_losses(losses if weight is None else losses * weight, reduction)


def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """binary_cross_entropy of sigmoid(input), accurate for large logits; ``pos_weight`` multiplies the loss of the
    positive part. Follows ``torch.nn.functional.binary_cross_entropy_with_logits``. Otherwise like
    ``binary_cross_entropy``.

    Args:
        input: logits
        pos_weight: a weight of the positive part, broadcast with ``target``, or None
    Raises:
        ValueError: the shapes differ
    """
    reduction = legacy(reduction, size_average, reduce)
    if input.shape != target.shape:
        raise ValueError(
            "binary_cross_entropy_with_logits: Target size "
            f"({tuple(target.shape)}) must be the same as input size ({tuple(input.shape)})"
        )
    floating("binary_cross_entropy_with_logits", input)
    log_p = _logsigmoid(input)
    if pos_weight is None:
        losses = (1 - target) * input - log_p
    else:
        losses = (1 - target) * input - ((pos_weight - 1) * target + 1) * log_p
    return reduce_losses(losses if weight is None else losses * weight, reduction)


def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """target (log target - input) for log-probabilities ``input``; "batchmean" divides the sum by the batch. Follows
    ``torch.nn.functional.kl_div``. Otherwise like ``mse_loss``.

    Args:
        input: log-probabilities
        target: probabilities
        log_target: whether ``target`` are logarithms, too
        reduction: ``'mean'``, ``'batchmean'`` or ``'sum'`` of the losses, or ``'none'``: all of them
    """
    real_only("kl_div", input=input, target=target)
    reduction = legacy(reduction, size_average, reduce)
    if log_target:
        losses = target.exp() * (target - input)
    else:
        losses = target.xlogy(target) - target * input
    if reduction == "batchmean":
        return losses.sum() / input.shape[0] if input._h.ndim else losses.sum()
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size."
            "'batchmean' divides only by the batch size, and aligns with the KL div math definition.",
            stacklevel=2,
        )
    return reduce_losses(losses, reduction)


def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """exp(input) - target input, or with ``log_input`` False input - target log(input + eps); ``full`` adds Stirling's
    term. Follows ``torch.nn.functional.poisson_nll_loss``."""
    reduction = legacy(reduction, size_average, reduce)
    losses = input.exp() - target * input if log_input else input - target * (input + float(eps)).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        losses = losses + stirling.masked_fill(target <= 1, 0)
    return reduce_losses(losses, reduction)


def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """(log var + (input - target)^2 / var) / 2, var not below eps. Follows
    ``torch.nn.functional.gaussian_nll_loss``."""
    if isinstance(var, float):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = input.new_full(tuple(input.shape), var)
    elif not isinstance(var, Tensor):
        raise TypeError(f"gaussian_nll_loss(): argument 'var' must be Tensor or float, not {type(var).__name__}")
    elif bool((var < 0).any()):
        raise ValueError("var has negative entry/entries")
    if var.shape != input.shape:
        if tuple(input.shape[:-1]) == tuple(var.shape):
            var = var.unsqueeze(-1)
        elif input._h.ndim != var._h.ndim or [n for n, m in zip(var.shape, input.shape) if n != m] != [1]:
            raise ValueError("var is of incorrect size")
    reduction_code(reduction)
    eps = fitted(eps, var._h.dtype)
    kept = where(var.detach() < eps, var.detach() * 0 + eps, var)
    losses = 0.5 * (kept.log() + (input - target).square() / kept)
    return reduce_losses(losses + 0.5 * math.log(2 * math.pi) if full else losses, reduction)
