"""Losses with a margin, made of other operators."""

from __future__ import annotations

from ..dtypes import int64
from ..tensor import Tensor
from .activation import floating
from .activation import relu as _relu
from .declare import fits, function, tensors_only
from .fitting import fitted
from .loss import legacy, reduce_losses, reduction_code
from .pointwise_activation import _logsigmoid


def _real(op: str, name: str, x) -> float:
    """A number that is a float whatever it was given as: an integer, or a 0-d tensor."""
    if not fits(x, "_float"):
        raise TypeError(f"{op}(): argument '{name}' must be float, not {type(x).__name__}")
    return float(x)


def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """input where target is 1, max(0, margin - input) where it is -1. Follows
    ``torch.nn.functional.hinge_embedding_loss``."""
    reduction = legacy(reduction, size_average, reduce)
    margin = fitted(_real("hinge_embedding_loss", "margin", margin), input._h.dtype)
    positive = input.masked_fill(target == -1, 0)
    negative = (margin - input).clamp(min=0).masked_fill(target == 1, 0)
    return reduce_losses(positive + negative, reduction)


def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, -target (input1 - input2) + margin). Follows ``torch.nn.functional.margin_ranking_loss``."""
    reduction = legacy(reduction, size_average, reduce)
    if not input1._h.ndim == input2._h.ndim == target._h.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {tuple(input1.shape)}, input2: {tuple(input2.shape)}, target: "
            f"{tuple(target.shape)} "
        )
    margin = _real("margin_ranking_loss", "margin", margin)
    return reduce_losses((-target * (input1 - input2) + margin).clamp(min=0), reduction)


def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target input)). Follows ``torch.nn.functional.soft_margin_loss``."""
    tensors_only("soft_margin_loss", input=input, target=target)
    return reduce_losses(-_logsigmoid(target * input), legacy(reduction, size_average, reduce))


def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos where target is 1, max(0, cos - margin) where it is -1. Follows
    ``torch.nn.functional.cosine_embedding_loss``."""
    tensors_only("cosine_embedding_loss", input1=input1, input2=input2, target=target)
    reduction = legacy(reduction, size_average, reduce)
    if target._h.ndim > 1 or input1._h.ndim != target._h.ndim + 1:
        raise RuntimeError(
            f"cosine_embedding_loss: {target._h.ndim}D target tensor expects {target._h.ndim + 1}D "
            f"input tensors, but found inputs with sizes {list(input1.shape)}, {list(input2.shape)}"
        )
    eps = 1e-12
    dot, n1, n2 = (input1 * input2).sum(-1), (input1 * input1).sum(-1) + eps, (input2 * input2).sum(-1) + eps
    cos = dot / (n1 * n2).sqrt()
    positive = (1 - cos).masked_fill(target != 1, 0)
    negative = (cos - _real("cosine_embedding_loss", "margin", margin)).clamp(min=0).masked_fill(target != -1, 0)
    return reduce_losses(positive + negative, reduction)


def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over classes of binary_cross_entropy_with_logits. Follows
    ``torch.nn.functional.multilabel_soft_margin_loss``."""
    reduction = legacy(reduction, size_average, reduce)
    floating("multilabel_soft_margin_loss", input)
    losses = -(target * _logsigmoid(input) + (1 - target) * _logsigmoid(-input))
    return reduce_losses((losses if weight is None else losses * weight).mean(-1), reduction)


def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """The mean over classes c other than the target t of max(0, margin - x[t] + x[c])^p, times weight[t]. Follows
    ``torch.nn.functional.multi_margin_loss``."""
    reduction = legacy(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if not input.is_floating_point() and input._h.ndim < 3:
        raise NotImplementedError(f"multi_margin_loss: not implemented for '{input.dtype.name}'")
    rows = input if input._h.ndim == 2 else input.reshape(1, -1)
    index = target.reshape(-1, 1)
    chosen = rows.gather(1, index)
    terms = (fitted(float(margin), input._h.dtype) - chosen + rows).clamp(min=0)
    terms = terms if p == 1 else terms.square()
    if weight is not None:
        if weight._h.ndim != 1:
            raise ValueError("multi_margin_loss: weight must be one-dimensional")
        terms = terms * weight.gather(0, index.reshape(-1)).reshape(-1, 1)
    losses = terms.scatter(1, index, 0.0).sum(1) / rows.shape[1]
    return reduce_losses(losses if input._h.ndim == 2 else losses.reshape(()), reduction)


@function
def pairwise_distance(x1, x2, p=2.0, eps=1e-6, keepdim=False):
    """The p-norm of x1 - x2 + eps over the last dimension. Follows ``torch.nn.functional.pairwise_distance``.

    Args:
        x1: a tensor (*, d)
        x2: a tensor (*, d)
        p: the order of the norm
        eps: a number added to the differences
    Returns:
        A tensor (*).
    Raises:
        RuntimeError: the shapes do not broadcast
    """
    tensors_only("pairwise_distance", x1=x1, x2=x2)
    return (x1 - x2 + _real("pairwise_distance", "eps", eps)).norm(p, -1, keepdim)


@function
def triplet_margin_loss(
    anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None, reduction="mean"
):
    """max(0, |anchor - positive| - |anchor - negative| + margin) of p-norms. Follows
    ``torch.nn.functional.triplet_margin_loss``."""
    reduction = legacy(reduction, size_average, reduce)
    return triplet_margin_with_distance_loss(
        anchor,
        positive,
        negative,
        distance_function=lambda a, b: pairwise_distance(a, b, p, eps),
        margin=margin,
        swap=swap,
        reduction=reduction,
    )


def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """triplet_margin_loss with any distance. Follows ``torch.nn.functional.triplet_margin_with_distance_loss``."""
    reduction_code(reduction)
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor._h.ndim == positive._h.ndim == negative._h.ndim:
        raise RuntimeError(
            "triplet_margin_loss: The anchor, positive, and negative tensors are expected to have the "
            f"same number of dimensions, but got: anchor {anchor._h.ndim}D, positive "
            f"{positive._h.ndim}D, and negative {negative._h.ndim}D inputs"
        )
    distance = pairwise_distance if distance_function is None else distance_function
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = far.minimum(distance(positive, negative))
    return reduce_losses((near - far + margin).clamp(min=0), reduction)


def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """The mean over the C classes of the sums of max(0, 1 - x[t] + x[c]) over the targets t, up to the first -1, and
    the classes c that are none. Follows ``torch.nn.functional.multilabel_margin_loss``.

    Args:
        input: scores (N, C) or (C)
        target: classes, an int64 tensor of the shape of ``input``
    Returns:
        A 0-d tensor, or losses (N).
    Raises:
        RuntimeError: the shapes differ, or a class is out of range
    """
    floating("multilabel_margin_loss", input)
    reduction = legacy(reduction, size_average, reduce)
    reduction_code(reduction)
    if not isinstance(target, Tensor):
        raise TypeError(f"multilabel_margin_loss(): argument 'target' must be Tensor, not {type(target).__name__}")
    if input._h.ndim > 2 or target._h.numel != input._h.numel or (input._h.ndim and not input.shape[-1]):
        raise RuntimeError(
            f"multilabel_margin_loss: Expected non-empty vector or matrix with optional 0-dim batch size, and targets "
            f"of its shape, but got: {list(input.shape)} and {list(target.shape)}"
        )
    if target.dtype is not int64:
        raise RuntimeError(f"multilabel_margin_loss: expected targets of int64, but got {target.dtype.name}")
    classes = input.shape[-1] if input._h.ndim else 1
    if target._h.numel and not bool(((target >= -1) & (target < classes)).all()):
        raise RuntimeError("multilabel_margin_loss: a target is out of range")
    rows, target = input.reshape(-1, classes), target.reshape(-1, classes)
    named = (target < 0).long().cumsum(1) == 0
    place = target.masked_fill(named.logical_not(), 0)
    hit = target.new_zeros(tuple(target.shape)).scatter_reduce(1, place, named.long(), "amax") > 0
    terms = _relu(1 - rows.gather(1, place).unsqueeze(2) + rows.unsqueeze(1))
    terms = terms.masked_fill((named.unsqueeze(2) & hit.logical_not().unsqueeze(1)).logical_not(), 0)
    losses = terms.sum((1, 2)) / classes
    return reduce_losses(losses if input._h.ndim == 2 else losses.reshape(()), reduction)
