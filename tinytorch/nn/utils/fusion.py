"""A convolution or a linear layer, and the batch normalisation behind it, as one layer. Follows
``torch.nn.utils.fusion``."""

from __future__ import annotations

import copy

from ...ops.pointwise import rsqrt
from ...tensor import Tensor
from ..module import Module
from ..parameter import Parameter

__all__ = ["fuse_conv_bn_eval", "fuse_conv_bn_weights", "fuse_linear_bn_eval", "fuse_linear_bn_weights"]


def _fused(weight, bias, mean, variance, eps, scale, shift, channel: int) -> tuple[Parameter, Parameter]:
    """The parameters of the one layer; ``channel`` is the weight's dimension of the results' channels."""
    for t in (weight, bias, mean, variance, scale, shift):
        if t is not None and not isinstance(t, Tensor):
            raise TypeError(f"fuse: expected weights and statistics to be Tensors, got {type(t).__name__}")
    bias_dtype, wanted = (weight.dtype, False) if bias is None else (bias.dtype, bias.requires_grad)
    factor = rsqrt(variance + eps)
    if scale is not None:
        factor = factor * scale
    shape = [-1 if d == channel else 1 for d in range(weight.ndim)]
    made = (-mean if bias is None else bias - mean) * factor
    made = made if shift is None else made + shift
    if made.shape[0] == 1:  # one channel for all
        made = made.expand(weight.shape[channel]).contiguous()
    return (
        Parameter((weight * factor.reshape(shape)).detach().to(weight.dtype), weight.requires_grad),
        Parameter(made.detach().to(bias_dtype), wanted),
    )


def fuse_conv_bn_weights(
    conv_w: Tensor,
    conv_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
    transpose: bool = False,
) -> tuple[Parameter, Parameter]:
    """Weight and bias of a convolution that computes what this one and the normalisation by running mean and variance
    behind it do; ``transpose``: of a transposed one. Follows ``torch.nn.utils.fuse_conv_bn_weights``."""
    return _fused(conv_w, conv_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 1 if transpose else 0)


def fuse_linear_bn_weights(
    linear_w: Tensor,
    linear_b: Tensor | None,
    bn_rm: Tensor,
    bn_rv: Tensor,
    bn_eps: float,
    bn_w: Tensor | None,
    bn_b: Tensor | None,
) -> tuple[Parameter, Parameter]:
    """The same of a linear layer. Follows ``torch.nn.utils.fuse_linear_bn_weights``."""
    return _fused(linear_w, linear_b, bn_rm, bn_rv, bn_eps, bn_w, bn_b, 0)


def _check_evaluation(layer, bn):
    for name, module in (("layer", layer), ("bn", bn)):
        if not isinstance(module, Module):
            raise TypeError(f"fuse: argument '{name}' must be Module, not {type(module).__name__}")
        if module.training:
            raise AssertionError("Fusion only for eval!")


def _fuse(layer, bn, channel: int):
    if bn.running_mean is None or bn.running_var is None:
        raise AssertionError("bn.running_mean and bn.running_var must not be None")
    made = copy.deepcopy(layer)
    made.weight, made.bias = _fused(
        layer.weight, layer.bias, bn.running_mean, bn.running_var, bn.eps, bn.weight, bn.bias, channel
    )
    return made


def fuse_conv_bn_eval(conv, bn, transpose: bool = False):
    """A new convolution that computes what ``conv`` and the BatchNorm ``bn`` behind it do in evaluation. Follows
    ``torch.nn.utils.fuse_conv_bn_eval``; AssertionError in training, or without running statistics."""
    _check_evaluation(conv, bn)
    return _fuse(conv, bn, 1 if transpose else 0)


def fuse_linear_bn_eval(linear, bn):
    """A new linear layer that computes what ``linear`` and the BatchNorm ``bn`` behind it do in evaluation. Follows
    ``torch.nn.utils.fuse_linear_bn_eval``; AssertionError in training, without running statistics, or for another
    number of channels, but one."""
    _check_evaluation(linear, bn)
    if bn.num_features not in (linear.out_features, 1):
        raise AssertionError("To fuse, linear.out_features == bn.num_features or bn.num_features == 1")
    return _fuse(linear, bn, 0)
