"""Losses as modules. ``reduction`` is "mean", "sum" or "none"."""

from __future__ import annotations

import math

from ..ops.linear_cross_entropy import LinearCrossEntropyOptions
from ..tensor import Tensor
from . import functional as F
from .linear import Linear
from .module import Module


def _reduction(reduction: str, size_average, reduce) -> str:
    """The reduction, from PyTorch's two older options if they are given."""
    if size_average is None and reduce is None:
        return reduction
    if reduce is False:
        return "none"
    return "sum" if size_average is False else "mean"


class _Loss(Module):
    def __init__(self, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__()
        self.reduction = _reduction(reduction, size_average, reduce)


class _WeightedLoss(_Loss):
    def __init__(self, weight: Tensor | None = None, size_average=None, reduce=None, reduction: str = "mean"):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)


class L1Loss(_Loss):
    """|input - target|. Follows ``torch.nn.L1Loss``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target) ** 2. Follows ``torch.nn.MSELoss``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(input, target, reduction=self.reduction)


class SmoothL1Loss(_Loss):
    """Half the square over beta where |input - target| < beta, else the distance less beta / 2. Follows
    ``torch.nn.SmoothL1Loss``."""

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", beta: float = 1.0):
        super().__init__(size_average, reduce, reduction)
        self.beta = beta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


class HuberLoss(_Loss):
    """Half the square where |input - target| < delta, else delta times (the distance less delta / 2). Follows
    ``torch.nn.HuberLoss``; TypeError for a ``delta`` that is no real number."""

    def __init__(self, reduction: str = "mean", delta: float = 1.0):
        if not isinstance(delta, (float, int)):
            raise TypeError(f"delta must be a float or int, got: {type(delta)}")
        super().__init__(reduction=reduction)
        self.delta = delta

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


class KLDivLoss(_Loss):
    """target (log(target) - input), where input holds logarithms. Follows ``torch.nn.KLDivLoss``."""

    def __init__(self, size_average=None, reduce=None, reduction: str = "mean", log_target: bool = False):
        super().__init__(size_average, reduce, reduction)
        self.log_target = log_target

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


class NLLLoss(_WeightedLoss):
    """-input at the target's class, where input holds log-probabilities. Follows ``torch.nn.NLLLoss``."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average=None,
        ignore_index: int = -100,
        reduce=None,
        reduction: str = "mean",
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index = ignore_index

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class CrossEntropyLoss(_WeightedLoss):
    """-log_softmax(input) at the target's class, or weighted by target probabilities: input (N, C, ...) or (C,).
    Follows ``torch.nn.CrossEntropyLoss``."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average=None,
        ignore_index: int = -100,
        reduce=None,
        reduction: str = "mean",
        label_smoothing: float = 0.0,
    ):
        super().__init__(weight, size_average, reduce, reduction)
        self.ignore_index, self.label_smoothing = ignore_index, label_smoothing

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.cross_entropy(
            input,
            target,
            weight=self.weight,
            ignore_index=self.ignore_index,
            reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class BCELoss(_WeightedLoss):
    """-(target log(input) + (1 - target) log(1 - input)). Follows ``torch.nn.BCELoss``."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


class BCEWithLogitsLoss(_Loss):
    """BCELoss of sigmoid(input), without its overflow. Follows ``torch.nn.BCEWithLogitsLoss``."""

    def __init__(
        self,
        weight: Tensor | None = None,
        size_average=None,
        reduce=None,
        reduction: str = "mean",
        pos_weight: Tensor | None = None,
    ):
        super().__init__(size_average, reduce, reduction)
        self.register_buffer("weight", weight)
        self.register_buffer("pos_weight", pos_weight)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """The cross entropy of an affine layer's result, which is never there as a whole with ``options``: input (N,
    in_features) or (in_features,); target of classes, or of their probabilities. Follows
    ``torch.nn.LinearCrossEntropyLoss``; RuntimeError for weights that are not one of each class, or a
    ``label_smoothing`` beyond 0 to 1."""

    def __init__(
        self,
        in_features: int,
        num_classes: int,
        *,
        out_features: tuple[int, ...] = (),
        bias: bool = False,
        device=None,
        dtype=None,
        reduction: str = "mean",
        weight: Tensor | None = None,
        ignore_index: int | None = None,
        label_smoothing: float = 0.0,
        options: LinearCrossEntropyOptions | None = None,
    ):
        if weight is not None and weight.shape != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        super().__init__(weight, reduction=reduction)
        self.num_classes, self.out_features, self.ignore_index = num_classes, out_features, ignore_index
        self.label_smoothing, self.options = label_smoothing, options
        self.linear = Linear(in_features, math.prod(out_features, start=num_classes), bias, device, dtype)

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        linear, classes = self.linear, (self.num_classes, *self.out_features)
        return F.linear_cross_entropy(
            input,
            linear.weight.reshape(*classes, linear.in_features),
            target,
            linear_bias=None if linear.bias is None else linear.bias.reshape(classes),
            weight=self.weight,
            reduction=self.reduction,
            ignore_index=self.ignore_index,
            label_smoothing=self.label_smoothing,
            options=self.options,
        )

    def extra_repr(self):
        own = ("reduction", "ignore_index", "label_smoothing", "options")
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, "
            f"out_features={self.out_features}, bias={self.linear.bias is not None}, "
            + ", ".join(f"{name}={getattr(self, name)}" for name in own)
        )
