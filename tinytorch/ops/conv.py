"""Convolutions. Three kernels, each of two operands (kernels/api/conv.h): the result, and the gradients of input and
weight. A derivative of one of the three is another one of them, so that derivatives of every order follow.

``walk`` is (stride, padding, dilation, groups); ``size`` that of what is computed, along the convolved dimension.
"""

from __future__ import annotations

import operator

from ..tensor import Tensor, owned
from .declare import function, primitive


@primitive(
    title="ConvolutionBackward0",
    input=lambda g, weight, input_shape, walk: _input_gradient(g, weight, input_shape[2], walk),
    weight=lambda g, input, weight_shape, walk: _weight_gradient(g, input, weight_shape[2], walk),
)
def _conv1d(input, weight, size, walk):
    return owned.tt_conv1d(input._h, weight._h, size, *walk)


@primitive(
    name="conv1d_input",
    grad=lambda g, weight, grad_shape, walk: _conv1d(g, weight, grad_shape[2], walk),
    weight=lambda g, grad, weight_shape, walk: _weight_gradient(grad, g, weight_shape[2], walk),
)
def _input_gradient(grad, weight, size, walk):
    return owned.tt_conv1d_input(grad._h, weight._h, size, *walk)


@primitive(
    name="conv1d_weight",
    grad=lambda g, input, grad_shape, walk: _conv1d(input, g, grad_shape[2], walk),
    input=lambda g, grad, input_shape, walk: _input_gradient(grad, g, input_shape[2], walk),
)
def _weight_gradient(grad, input, size, walk):
    return owned.tt_conv1d_weight(grad._h, input._h, size, *walk)


def _of_one_dimension(name: str, value) -> int:
    """A number, or a sequence of one."""
    if isinstance(value, (tuple, list)):
        if len(value) != 1:
            raise RuntimeError(
                f"expected {name} to be a single integer value or a list of 1 values to match the "
                f"convolution dimensions, but got {name}={list(value)}"
            )
        value = value[0]
    if not hasattr(value, "__index__"):
        raise TypeError(f"conv1d(): argument '{name}' must be tuple of ints, not {type(value).__name__}")
    return value.__index__()


def _check_operands(input, weight, bias, groups: int) -> None:
    for name, x in (("input", input), ("weight", weight), ("bias", bias)):
        if not isinstance(x, Tensor) and (name != "bias" or x is not None):
            raise TypeError(f"conv1d(): argument '{name}' must be Tensor, not {type(x).__name__}")
    shape, size = list(input.shape), list(weight.shape)
    if len(shape) not in (2, 3):
        raise RuntimeError(f"Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: {shape}")
    if len(size) != 3:
        raise RuntimeError(
            "weight should have at least three dimensions"
            if len(size) < 3
            else f"conv1d: weight should have three dimensions, but got weight of size {size}"
        )
    groups = operator.index(groups)
    if groups <= 0:
        raise RuntimeError("non-positive groups is not supported")
    given = f"Given groups={groups}, "
    if size[0] < groups:
        raise RuntimeError(
            f"{given}expected weight to be at least {groups} at dimension 0, but got weight of size {size} instead"
        )
    if size[0] % groups:
        raise RuntimeError(
            f"{given}expected weight to be divisible by {groups} at dimension 0, but got weight of size "
            f"[{size}] instead"
        )
    if shape[-2] != size[1] * groups:
        raise RuntimeError(
            f"{given}weight of size {size}, expected input{shape} to have {size[1] * groups} channels, "
            f"but got {shape[-2]} channels instead"
        )
    if bias is not None and list(bias.shape) != size[:1]:
        raise RuntimeError(
            f"Given weight of size {size}, expected bias to be 1-dimensional with {size[0]} elements, "
            f"but got bias of size {list(bias.shape)} instead"
        )
    for name, x in (("weight", weight), ("bias", bias)):
        if x is not None and x.dtype is not input.dtype:
            raise RuntimeError(f"Input type ({input.dtype.name}) and {name} type ({x.dtype.name}) should be the same")


def _walk(length: int, taps: int, stride, padding, dilation, groups: int) -> tuple[int, tuple[int, int, int, int]]:
    """The length of the result, and the walk."""
    stride, dilation = _of_one_dimension("stride", stride), _of_one_dimension("dilation", dilation)
    for name, value in (("stride", stride), ("dilation", dilation)):
        if value <= 0:
            raise RuntimeError(f"non-positive {name} is not supported")
    reach = dilation * (taps - 1) + 1
    if padding == "same":
        if stride != 1:
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        return length, (1, (reach - 1) // 2, dilation, groups)
    if isinstance(padding, (str, bytes)) and padding != "valid":
        raise RuntimeError(f"Invalid padding string: '{padding}'")
    padding = 0 if padding == "valid" else _of_one_dimension("padding", padding)
    if padding < 0:
        raise RuntimeError("negative padding is not supported")
    padded = length + 2 * padding
    if taps == 0 or reach > padded:
        raise RuntimeError(
            f"Calculated padded input size per channel: ({padded}). Kernel size: "
            f"({reach if taps else 0}). Kernel size can't be "
            f"{'greater than actual input size' if taps else '0'}"
        )
    return (padded - reach) // stride + 1, (stride, padding, dilation, groups)


@function
def conv1d(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
    """The convolution (cross-correlation) of ``input``, of shape (N, C, L) or (C, L), with ``weight``, of shape
    (O, C / groups, K), plus ``bias`` (O). On the CPU alone. Follows ``torch.nn.functional.conv1d``.

    Args:
        weight: a filter for each channel of the result
        bias: a number for each channel of the result
        stride: the step from one place of the filter to the next
        padding: how many zeros are put before and behind ``input``; "valid" for 0, or "same" for as many as keep its
            length, the larger half behind
        dilation: the step between the elements that a filter takes
        groups: into how many parts channels are divided, each seeing its own
    Returns:
        A tensor of shape (N, O, M) or (O, M), where M = (L + 2 padding - dilation (K - 1) - 1) // stride + 1.
    Raises:
        RuntimeError: shapes or dtypes do not fit, or the filter is longer than the padded input
        NotImplementedError: bools, and tensors of another device
    """
    _check_operands(input, weight, bias, groups)
    size, walk = _walk(input.shape[-1], weight.shape[2], stride, padding, dilation, groups)
    batched = len(input.shape) == 3
    out = _conv1d(input if batched else input.unsqueeze(0), weight, size, walk)
    out = out if bias is None else out + bias.unsqueeze(1)
    return out if batched else out.squeeze(0)
