"""Normalisation over the batch and whatever else is not a channel (Ioffe and Szegedy 2015, arXiv:1502.03167), and what
is made of it.

With h the normalised input, d = g w and m(.) the mean over all but the channels, dx = rstd (d - m(d) - h m(d h)) where
the statistics are the input's own, and rstd d where they are given.
"""

from __future__ import annotations

import math

from ..autograd.views import writer_number
from ..backends.cpu import ffi, lib
from ..dtypes import ALL, FLOATING
from ..tensor import Tensor, gives_tensors, owned
from .addcmul import addcmul
from .convert import in_dtype
from .declare import flags_only, function, primitive, tensors_only
from .pad import pad
from .pooling import avg_pool2d, avg_pool3d
from .statistics import var_mean


NULL = ffi.NULL
_writer = writer_number("batch_norm")
_own_statistics, _backward = gives_tensors(lib.tt_batch_statistics), gives_tensors(lib.tt_batch_norm_backward)


def _handle(t: Tensor | None):
    return NULL if t is None else t._h


def _over(input: Tensor) -> list[int]:
    """All dimensions but that of the channels."""
    return [0, *range(2, input._h.ndim)]


def _along(t: Tensor, input: Tensor) -> Tensor:
    """A number for each channel, to be broadcast with ``input``."""
    return t.reshape(-1, *[1] * (input._h.ndim - 2))


def _formula(g, input, weight, bias_shape, mean, rstd, training, edges):
    """In differentiable operations."""
    dtype, over = input.dtype, _over(input)
    input, g = in_dtype(input, rstd.dtype), in_dtype(g, rstd.dtype)
    if training:
        variance, mean = var_mean(input, over, correction=0)
        rstd = (variance + (rstd.detach() ** -2 - variance.detach())).rsqrt()  # the eps that was added
    h = (input - _along(mean, input)) * _along(rstd, input)
    grad = None
    if edges[0] is not None:
        grad = g if weight is None else g * _along(weight, input)
        if training:
            grad = grad - grad.mean(over, keepdim=True) - h * (grad * h).mean(over, keepdim=True)
        grad = in_dtype(grad * _along(rstd, input), dtype)
    return (
        grad,
        None if edges[1] is None else in_dtype((g * h).sum(over), weight.dtype),
        None if edges[2] is None else in_dtype(g.sum(over), dtype if weight is None else weight.dtype),
    )


def _first_order(g, input, weight, bias_shape, mean, rstd, training, edges):
    """The same with as few passes over the input as may be."""
    if lib.tt_batch_norm_fits(input._h) and g.dtype is input.dtype:
        return _by_kernels(g, input, weight, bias_shape, mean, rstd, training, edges)
    dtype, over = input.dtype, _over(input)
    input, g = in_dtype(input, rstd.dtype), in_dtype(g, rstd.dtype)
    scale = rstd if weight is None else rstd * weight.detach()
    center = total = products = grad = None
    if edges[1] is not None or (training and edges[0] is not None):
        center = input - _along(mean, input)
        products = (g * center).sum(over) * rstd
    if edges[2] is not None or (training and edges[0] is not None):
        total = g.sum(over)
    if edges[0] is not None and training:
        n = input._h.numel / (input.shape[1] or 1)
        rest = addcmul(_along(scale * total / -n, input), center, _along(scale * rstd * products / -n, input))
        grad = in_dtype(addcmul(rest, g, _along(scale, input)), dtype)
    elif edges[0] is not None:
        grad = in_dtype(g * _along(scale, input), dtype)
    return (
        grad,
        None if edges[1] is None else in_dtype(products, weight.dtype),
        None if edges[2] is None else in_dtype(total, dtype if weight is None else weight.dtype),
    )


def _by_kernels(g, input, weight, bias_shape, mean, rstd, training, edges):
    """The same, of kernels for whole arrays."""
    of_weight = of_bias = grad = None
    if edges[0] is not None:
        operands = g._h, input._h, _handle(weight), mean._h, rstd._h, training
        grad, of_weight, of_bias = _backward(*operands, ffi.new("tt_array *[2]"))
    if of_weight is None and not edges[1] is edges[2] is None:
        sums = owned.tt_batch_norm_sums(g._h, input._h, mean._h)
        of_bias, of_weight = sums[0], sums[1] * rstd
    return (
        grad,
        None if edges[1] is None else in_dtype(of_weight, weight.dtype),
        None if edges[2] is None else in_dtype(of_bias, input.dtype if weight is None else weight.dtype),
    )


@primitive(
    name="batch_norm",
    title="NativeBatchNormBackward0",
    inputs=("input", "weight", "bias"),
    vjp=_formula,
    first_order=_first_order,
)
def _batch_norm(input, weight, bias, mean, rstd, training):
    if lib.tt_batch_norm_fits(input._h):
        return owned.tt_batch_norm(input._h, _handle(weight), _handle(bias), mean._h, rstd._h)
    x = in_dtype(input.detach(), rstd.dtype)
    scale = rstd if weight is None else rstd * weight.detach()
    shift = -mean * scale if bias is None else bias.detach() - mean * scale
    return in_dtype(addcmul(_along(shift, x), x, _along(scale, x)), input.dtype)


def _mixes(running_mean, running_var, dtype) -> bool:
    """Can a kernel write the running statistics?"""
    given = [t._h for t in (running_mean, running_var) if t is not None]
    return all(
        h.flags & lib.TT_FLAG_CONTIGUOUS and h.dtype == given[0].dtype and ALL[ALL[h.dtype].compute] is dtype
        for h in given
    )


def _statistics(input: Tensor, running_mean, running_var, training: bool, momentum: float, eps: float):
    """Mean and 1 / standard deviation of each channel: the input's own, which are mixed into the running ones, or
    these."""
    dtype = ALL[input.dtype.compute]
    if not training:
        return in_dtype(running_mean.detach(), dtype), (in_dtype(running_var.detach(), dtype) + eps).rsqrt()
    if lib.tt_batch_norm_fits(input._h) and _mixes(running_mean, running_var, dtype):
        running = _handle(running_mean), _handle(running_var)
        return _own_statistics(input._h, *running, momentum, eps, _writer, ffi.new("tt_array *[2]"))[1:]
    variance, mean = var_mean(in_dtype(input.detach(), dtype), _over(input), correction=0)
    n = input._h.numel // (input.shape[1] or 1)
    for running, new in ((running_mean, mean), (running_var, variance * (n / max(n - 1, 1)))):
        if running is not None:
            running = running.detach()
            running.mul_(1 - momentum).add_(new, alpha=momentum)
    return mean, (variance + eps).rsqrt()


def _normalized(op: str, input, weight, bias, running_mean, running_var, training, momentum, eps):
    """The result, and the statistics that were used."""
    if not isinstance(input, Tensor):
        tensors_only(op, input=input)
    if training is not True and training is not False:
        flags_only(op, training=training)
    if training and tuple(input.shape) == (1,):
        raise ValueError(f"{op}: Expected more than 1 value per channel when training, got input size [1]")
    channels, wrong = input.shape[1] if input._h.ndim > 1 else 0, None
    for name, t in (
        ("running_mean", running_mean),
        ("running_var", running_var),
        ("weight", weight),
        ("bias", bias),
    ):
        if t is None:
            if input._h.numel and not training and name.startswith("running"):
                raise RuntimeError(f"{op}: {name} must be defined in evaluation mode")
            continue
        if not isinstance(t, Tensor):
            tensors_only(op, **{name: t})
        h = t._h
        if not input._h.numel:
            continue
        if h.ndim != 1 or h.numel != channels:
            raise RuntimeError(f"{op}: {name} should contain {channels} elements not {h.numel}")
        if not FLOATING[h.dtype]:
            wrong = name, t
    if (running_mean is None) != (running_var is None):
        cast = op == "instance_norm" and running_var is None and running_mean.dtype is not input.dtype
        kind = RuntimeError if cast else ValueError
        raise kind(f"{op}: running_mean and running_var must either both be None or neither be None")
    if wrong:
        raise RuntimeError(f"{op}: expected {wrong[0]} of a floating dtype, got {wrong[1].dtype.name}")
    if input._h.ndim < 2 and input._h.numel:
        raise IndexError(f"{op}: expected a tensor of at least 2 dimensions, got {input._h.ndim}")
    if not input._h.numel:  # no statistics, and none to mix
        out = input.clone() if weight is None else input * weight[0]
        return out if bias is None else out + bias[0], input.new_zeros(channels), input.new_zeros(channels)
    if not input.is_floating_point():
        raise NotImplementedError(f"{op}: not implemented for '{input.dtype.name}'")
    mean, rstd = _statistics(input, running_mean, running_var, bool(training), momentum, eps)
    return _batch_norm(input, weight, bias, mean, rstd, bool(training)), mean, rstd


@function(namespace="nn.functional")
def batch_norm(input, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1, eps=1e-05):
    """(x - mean) / sqrt(variance + eps) for each channel (dimension 1), then times ``weight`` plus ``bias``. Follows
    ``torch.nn.functional.batch_norm``.

    Args:
        input: a tensor (N, C, *)
        running_mean: a mean for each channel, or None
        running_var: a variance for each channel, or None
        weight: a vector (C), or None
        bias: a vector (C), or None
        training: whether the statistics are those of ``input``, which are then mixed into the running ones in place
        momentum: the part of the new statistics in that mixture
        eps: a number added to the variance
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        ValueError: there is but one element of each channel in training, or ``eps`` is not positive
        RuntimeError: sizes do not match, or there are no running statistics where they are needed
    """
    if training and isinstance(input, Tensor) and input._h.ndim > 1 and input._h.numel == input.shape[1] != 0:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}")
    if eps < 0 or (training and eps == 0):
        raise ValueError(f"batch_norm: eps must be positive during training, and never be negative, but got {eps}")
    return _normalized("batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps)[0]


@function
def native_batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps):
    """``nn.functional.batch_norm``, and the mean and 1 / standard deviation of each channel that training has used.
    Follows ``torch.native_batch_norm``. Otherwise like ``batch_norm``.

    Returns:
        A tensor of the shape of ``input``, and two vectors, without elements unless ``training``.
    Raises:
        RuntimeError: sizes do not match, or there are no running statistics where they are needed
    """
    out, *used = _normalized(
        "native_batch_norm", input, weight, bias, running_mean, running_var, training, momentum, eps
    )
    return (out, *used) if training else (out, *[t.new_empty(0) for t in used])


@function(namespace="nn.functional")
def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-05,
):
    """``batch_norm`` of each sample by itself. Follows ``torch.nn.functional.instance_norm``. Otherwise like
    ``batch_norm``.

    Args:
        use_input_stats: whether the statistics are those of ``input``, which are then mixed into the running ones
    Raises:
        ValueError: there is but one element of each channel in a sample
        RuntimeError: sizes do not match, or there are no running statistics where they are needed
    """
    shape = input.shape
    if use_input_stats and math.prod(shape[2:]) == 1:
        raise ValueError(f"Expected more than 1 spatial element when training, got input size {shape}")
    if not use_input_stats and (running_mean is None or running_var is None):
        raise RuntimeError(
            "instance_norm: Expected running_mean and running_var to be defined when use_input_stats is false"
        )
    n, channels = shape[0], shape[1]
    running = [t if t is None else t.detach().repeat(n) for t in (running_mean, running_var)]
    affine = [t if t is None else t.repeat(n) for t in (weight, bias)]
    flat = input.contiguous().reshape(1, n * channels, *shape[2:])
    out = _normalized("instance_norm", flat, *affine, *running, bool(use_input_stats), momentum, eps)[0]
    for t, new in zip((running_mean, running_var), running):
        if t is not None and use_input_stats:
            t.detach().copy_(new.reshape(n, channels).mean(0))
    return out.reshape(shape)


@function(namespace="nn.functional")
def local_response_norm(input, size, alpha=0.0001, beta=0.75, k=1.0):
    """``input`` over (k + alpha m)^beta, with m the mean of the squares of ``size`` neighbouring channels. Follows
    ``torch.nn.functional.local_response_norm``.

    Args:
        input: a tensor (N, C, *)
        size: how many channels
        alpha: a factor of the mean
        beta: an exponent
        k: a number added to the mean
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        ValueError: the tensor has less than three dimensions
    """
    shape = input.shape
    if len(shape) < 3:
        raise ValueError(f"Expected 3D or higher dimensionality input (got {len(shape)} dimensions)")
    if not input._h.numel:
        return input
    squares, around = input * input, (size // 2, (size - 1) // 2)
    if len(shape) == 3:
        means = avg_pool2d(pad(squares.unsqueeze(1), (0, 0, *around)), (size, 1), stride=1)
    else:
        planes = squares.reshape(shape[0], 1, shape[1], shape[2], -1)
        means = avg_pool3d(pad(planes, (0, 0, 0, 0, *around)), (size, 1, 1), stride=1)
    return input / (means.reshape(shape) * alpha + k) ** beta
