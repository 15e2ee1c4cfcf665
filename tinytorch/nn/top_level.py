"""Functions of networks that PyTorch also has in its top namespace: some as they are in ``nn.functional``, and others
with the parameters of its kernels, where a reduction is a number: 0 is "none", 1 is "mean", 2 is "sum". PyTorch's
stubs say that it is 1 where none is given, but PyTorch computes 0."""

from __future__ import annotations

from collections.abc import Sequence

from ..ops.declare import alias, function
from . import functional as F

_SHARED = (
    "alpha_dropout",
    "bilinear",
    "celu_",
    "feature_alpha_dropout",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool3d",
    "rrelu",
    "rrelu_",
    "selu_",
    "threshold",
    "threshold_",
)
for _name in _SHARED:
    alias(f"nn.functional.{_name}", _name)
alias("nn.functional.adaptive_max_pool1d_with_indices", "adaptive_max_pool1d")

_REDUCTIONS = ("none", "mean", "sum")
_MODES, _PADDINGS = ("bilinear", "nearest", "bicubic"), ("zeros", "border", "reflection")


def _word(op: str, number, words=_REDUCTIONS) -> str:
    """What a kernel's number stands for."""
    if not isinstance(number, int):
        raise TypeError(f"{op}(): expected a number for a word, got {type(number).__name__}")
    if number not in range(len(words)):
        raise RuntimeError(f"{op}: expected a number from 0 to {len(words) - 1}, got {number}")
    return words[number]


@function
def batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps, cudnn_enabled):
    """``nn.functional.batch_norm``, with weight and bias first. Follows ``torch.batch_norm``.

    Args:
        weight: of each channel (C), or None
        bias: of each channel (C), or None
        running_mean: of each channel (C), written in training, or None
        running_var: of each channel (C), written in training, or None
        training: whether to take the batch's statistics
        momentum: the share of a batch in the running statistics
        eps: what is added to variances
        cudnn_enabled: taken as in PyTorch
    Returns:
        A tensor of the shape of ``input``.
    """
    return F.batch_norm(input, running_mean, running_var, weight, bias, training, momentum, eps)


@function
def instance_norm(input, weight, bias, running_mean, running_var, use_input_stats, momentum, eps, cudnn_enabled):
    """``nn.functional.instance_norm``, with weight and bias first. Follows ``torch.instance_norm``. Otherwise like
    ``batch_norm``.

    Args:
        running_mean: of each channel (C), or None
        running_var: of each channel (C), or None
        use_input_stats: whether to take each sample's statistics
    """
    return F.instance_norm(input, running_mean, running_var, weight, bias, use_input_stats, momentum, eps)


@function
def binary_cross_entropy_with_logits(input, target, weight=None, pos_weight=None, reduction: int = 0):
    """``nn.functional.binary_cross_entropy_with_logits``, with a number for the reduction. Follows
    ``torch.binary_cross_entropy_with_logits``.

    Args:
        target: probabilities of the shape of ``input``
        weight: a factor of each element, broadcast, or None
        pos_weight: a factor of each class's positive part, or None
        reduction: 0, 1 or 2
    Returns:
        A 0-d tensor, or losses of the shape of ``input``.
    Raises:
        RuntimeError: ``reduction`` is another number
    """
    how = _word("binary_cross_entropy_with_logits", reduction)
    return F.binary_cross_entropy_with_logits(input, target, weight, reduction=how, pos_weight=pos_weight)


@function
def kl_div(input, target, reduction: int = 0, *, log_target=False):
    """``nn.functional.kl_div``, with a number for the reduction. Follows ``torch.kl_div``.

    Args:
        target: probabilities, or with ``log_target`` their logarithms
        reduction: 0, 1 or 2
    Returns:
        A 0-d tensor, or losses of the shape of ``input``.
    Raises:
        RuntimeError: ``reduction`` is another number
    """
    if reduction == 1:
        return F.kl_div(input, target, reduction="none", log_target=log_target).mean()
    return F.kl_div(input, target, reduction=_word("kl_div", reduction), log_target=log_target)


@function
def hinge_embedding_loss(input, target, margin=1.0, reduction: int = 0):
    """``nn.functional.hinge_embedding_loss``, with a number for the reduction. Follows ``torch.hinge_embedding_loss``.

    Args:
        target: 1 or -1, of the shape of ``input``
        margin: what distances of -1 should have
        reduction: 0, 1 or 2
    Returns:
        A 0-d tensor, or losses of the shape of ``input``.
    """
    return F.hinge_embedding_loss(input, target, margin, reduction=_word("hinge_embedding_loss", reduction))


@function
def margin_ranking_loss(input1, input2, target, margin=0.0, reduction: int = 0):
    """``nn.functional.margin_ranking_loss``, with a number for the reduction. Follows ``torch.margin_ranking_loss``.

    Args:
        target: 1 where ``input1`` should be larger, else -1
        margin: by how much
        reduction: 0, 1 or 2
    Returns:
        A 0-d tensor, or losses of the shape of the inputs.
    """
    return F.margin_ranking_loss(input1, input2, target, margin, reduction=_word("margin_ranking_loss", reduction))


@function
def cosine_embedding_loss(input1, input2, target, margin=0.0, reduction: int = 0):
    """``nn.functional.cosine_embedding_loss``, with a number for the reduction. Follows
    ``torch.cosine_embedding_loss``.

    Args:
        target: 1 where the vectors should be alike, else -1: (N), or 0-d
        margin: the cosine that others may have
        reduction: 0, 1 or 2
    Returns:
        A 0-d tensor, or losses of the shape of ``target``.
    """
    return F.cosine_embedding_loss(input1, input2, target, margin, reduction=_word("cosine_embedding_loss", reduction))


@function
def poisson_nll_loss(input, target, log_input, full, eps, reduction: int):
    """``nn.functional.poisson_nll_loss``, with a number for the reduction. Follows ``torch.poisson_nll_loss``.

    Args:
        target: counts of the shape of ``input``
        log_input: whether ``input`` holds logarithms of rates
        full: whether to add Stirling's approximation of log(target!)
        eps: what is added to rates before their logarithm
        reduction: 0, 1 or 2
    Returns:
        A 0-d tensor, or losses of the shape of ``input``.
    """
    how = _word("poisson_nll_loss", reduction)
    return F.poisson_nll_loss(input, target, log_input, full, eps=eps, reduction=how)


@function
def ctc_loss(log_probs, targets, input_lengths, target_lengths, blank=0, reduction: int = 0, zero_infinity=False):
    """``nn.functional.ctc_loss``, with a number for the reduction. Follows ``torch.ctc_loss``.

    Args:
        log_probs: log-probabilities (T, N, C), or (T, C)
        targets: classes (N, S), or those of all one after the other
        input_lengths: of each row
        target_lengths: of each row
        blank: the class of the blank
        reduction: 0, 1 or 2
        zero_infinity: whether infinite losses, and their gradients, are 0
    Returns:
        A 0-d tensor, or losses (N).
    """
    how = _word("ctc_loss", reduction)
    return F.ctc_loss(log_probs, targets, input_lengths, target_lengths, blank, how, zero_infinity)


@function
def constant_pad_nd(input, pad: Sequence[int], value=0):
    """``nn.functional.pad`` by a constant. Follows ``torch.constant_pad_nd``.

    Args:
        pad: elements before and behind each dimension, the last dimension first; fewer where negative
        value: what they are
    Returns:
        A tensor of as many dimensions.
    """
    return F.pad(input, pad, "constant", value)


@function
def grid_sampler(input, grid, interpolation_mode: int, padding_mode: int, align_corners: bool):
    """``nn.functional.grid_sample``, with numbers for the modes. Follows ``torch.grid_sampler``.

    Args:
        grid: places from -1 to 1
        interpolation_mode: 0 is "bilinear", 1 is "nearest", 2 is "bicubic"
        padding_mode: 0 is "zeros", 1 is "border", 2 is "reflection"
        align_corners: whether -1 and 1 are the centers of the elements at the corners
    Returns:
        A tensor of the places of ``grid``.
    """
    mode, padding = _word("grid_sampler", interpolation_mode, _MODES), _word("grid_sampler", padding_mode, _PADDINGS)
    return F.grid_sample(input, grid, mode, padding, align_corners)


@function
def affine_grid_generator(theta, size, align_corners: bool):
    """``nn.functional.affine_grid``. Follows ``torch.affine_grid_generator``.

    Args:
        theta: affine maps (N, 2, 3) or (N, 3, 4)
        size: of the images that the grid is for
        align_corners: whether -1 and 1 are the centers of the elements at the corners
    Returns:
        A grid (N, H, W, 2) or (N, D, H, W, 3).
    """
    return F.affine_grid(theta, size, align_corners)


@function(pure=False)
def dropout_(input, p, train: bool):
    """Dropout in place. Follows ``torch.dropout_``.

    Args:
        p: the probability of an element to become 0
        train: whether to drop
    Returns:
        ``input``.
    """
    return F.dropout(input, p, train, True)


@function(pure=False)
def alpha_dropout_(input, p, train: bool):
    """``alpha_dropout`` in place. Follows ``torch.alpha_dropout_``.

    Args:
        p: the probability of an element to be dropped
        train: whether to drop
    Returns:
        ``input``.
    """
    return F.alpha_dropout(input, p, train, True)


@function(pure=False)
def feature_alpha_dropout_(input, p, train: bool):
    """``feature_alpha_dropout`` in place. Follows ``torch.feature_alpha_dropout_``.

    Args:
        p: the probability of a channel to be dropped
        train: whether to drop
    Returns:
        ``input``.
    """
    return F.feature_alpha_dropout(input, p, train, True)
