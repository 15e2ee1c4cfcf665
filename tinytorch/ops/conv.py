"""Convolutions of one to three dimensions. Three kernels, each of two operands (kernels/api/conv.h): the result, and
the gradients of input and weight. A derivative of one of the three is another one of them, so that derivatives of every
order follow; a transposed convolution is the gradient of input.

``geometry`` is strides, paddings and dilations, one of each dimension, and groups; ``size`` the last sizes of what is
computed.
"""

from __future__ import annotations

import functools

from ..backends.cpu import ffi
from ..tensor import Tensor, owned
from .complex_numbers import complex as from_parts
from .declare import flags_only, function, primitive
from .join import cat

NULL = ffi.NULL


def _channel_sums(g):
    return g.sum((0, *range(2, g.ndim)))


@primitive(
    title="ConvolutionBackward0",
    input=lambda g, weight, input_shape, geometry: _transposed(g, weight, None, input_shape[2:], geometry),
    weight=lambda g, input, weight_shape, geometry: _weight_gradient(g, input, weight_shape[2:], geometry),
    bias=lambda g: _channel_sums(g),
)
def _convolution(input, weight, bias, size, geometry):
    return owned.tt_conv(input._h, weight._h, NULL if bias is None else bias._h, size, geometry)


@primitive(
    name="convolution_input",
    title="ConvolutionBackward0",
    grad=lambda g, weight, grad_shape, geometry: _convolution(g, weight, None, grad_shape[2:], geometry),
    weight=lambda g, grad, weight_shape, geometry: _weight_gradient(grad, g, weight_shape[2:], geometry),
    bias=lambda g: _channel_sums(g),
)
def _transposed(grad, weight, bias, size, geometry):
    return owned.tt_conv_input(grad._h, weight._h, NULL if bias is None else bias._h, size, geometry)


@primitive(
    name="convolution_weight",
    title="ConvolutionBackward0",
    grad=lambda g, input, grad_shape, geometry: _convolution(input, g, None, grad_shape[2:], geometry),
    input=lambda g, grad, input_shape, geometry: _transposed(grad, g, None, input_shape[2:], geometry),
)
def _weight_gradient(grad, input, size, geometry):
    return owned.tt_conv_weight(grad._h, input._h, size, geometry)


def _apply(kernel, input, weight, bias, size, geometry):
    """The kernel; of complex numbers by the real convolutions of their parts, both parts of ``input`` in one batch."""
    if not input.is_complex():
        return kernel(input, weight, bias, size, geometry)
    n, parts = input.shape[0], cat((input.real, input.imag))
    by_real, by_imag = (kernel(parts, w, None, size, geometry) for w in (weight.real, weight.imag))
    out = from_parts(by_real[:n] - by_imag[n:], by_real[n:] + by_imag[:n])
    return out if bias is None else out + bias.reshape(-1, *[1] * len(size))


# Arguments.


def integers(op: str, name: str, value, n: int) -> tuple[int, ...]:
    """A number for all ``n`` dimensions, or one for each. TypeError, and RuntimeError for another number of them."""
    if type(value) is int:
        return (value,) * n
    if type(value) is tuple and len(value) == n and set(map(type, value)) == {int}:
        return value
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    for v in values:
        if isinstance(v, (str, bytes)) or not hasattr(v, "__index__"):
            raise TypeError(f"{op}(): argument '{name}' must be tuple of ints, not {type(v).__name__}")
    if len(values) not in (1, n) or not values:
        raise RuntimeError(
            f"expected {name} to be a single integer value or a list of {n} values to match the "
            f"convolution dimensions, but got {name}={list(values)}"
        )
    return tuple([v.__index__() for v in values] * (n // len(values)))


_NOT_TRANSPOSED = frozenset(("uint8", "int8", "int16", "int32"))


def _check_tensors(op: str, input, weight, bias, transposed: bool) -> None:
    if input.dtype.name == "bool" or (transposed and input.dtype.name in _NOT_TRANSPOSED):
        raise NotImplementedError(f"{op}: not implemented for '{input.dtype.name}'")
    for name, x in (("weight", weight), ("bias", bias)):
        if x is not None and x.dtype is not input.dtype:
            raise RuntimeError(f"Input type ({input.dtype.name}) and {name} type ({x.dtype.name}) should be the same")


def _check_shapes(shape: list[int], size: list[int], bias, groups: int, transposed: bool) -> None:
    """Of a batch, the weight and the bias, if there is one."""
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
    channels = size[0] if transposed else size[1] * groups
    given = f"Given transposed=1, weight of size {size}" if transposed else f"{given}weight of size {size}"
    if shape[1] != channels:
        raise RuntimeError(
            f"{given}, expected input{shape} to have {channels} channels, but got {shape[1]} channels instead"
        )
    made = size[1] * groups if transposed else size[0]
    if bias is not None and list(bias) != [made]:
        given = given if transposed else f"Given weight of size {size}"
        raise RuntimeError(
            f"{given}, expected bias to be 1-dimensional with {made} elements, but got bias of size "
            f"{list(bias)} instead"
        )
    if 0 in shape[2:] and (transposed or 0 not in size):
        raise RuntimeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {shape}")


def _positive(**values) -> None:
    for name, value in values.items():
        if min(value) <= 0:
            raise RuntimeError(f"non-positive {name} is not supported")


def _times(values) -> str:
    return " x ".join(map(str, values))


def _places(sizes, taps, stride, padding, dilation) -> list[int]:
    """The last sizes of a convolution's result."""
    padded = [n + 2 * p for n, p in zip(sizes, padding)]
    reach = [d * (k - 1) + 1 if k else 0 for k, d in zip(taps, dilation)]
    if 0 in taps or any(r > n for r, n in zip(reach, padded)):
        raise RuntimeError(
            f"Calculated padded input size per channel: ({_times(padded)}). Kernel size: ({_times(reach)}). Kernel "
            f"size can't be {'0' if 0 in taps else 'greater than actual input size'}"
        )
    return [(n - r) // s + 1 for n, r, s in zip(padded, reach, stride)]


def _transposed_sizes(places, taps, stride, padding, output_padding, dilation) -> list[int]:
    """The last sizes of a transposed convolution's result."""
    if min(output_padding) < 0:
        raise RuntimeError("negative output_padding is not supported")
    if any(o >= s and o >= d for o, s, d in zip(output_padding, stride, dilation)):
        raise RuntimeError(
            "output padding must be smaller than either stride or dilation, but got output_padding: "
            f"{list(output_padding)} stride: {list(stride)} dilation: {list(dilation)}"
        )
    sizes = [
        (n - 1) * s - 2 * p + d * (k - 1) + o + 1
        for n, k, s, p, o, d in zip(places, taps, stride, padding, output_padding, dilation)
    ]
    if min(sizes) < 1 or 0 in taps:
        raise RuntimeError(
            f"Given input size per channel: ({_times(places)}). Calculated output size per channel: "
            f"({_times(sizes)}). Output size is too small"
        )
    return sizes


@functools.lru_cache(maxsize=1024)
def _geometry(op, shape, taken, bias, stride, padding, dilation, transposed, output_padding, groups):
    """The last sizes of the result, and the geometry: of an input of this shape, a weight of the shape ``taken``,
    and a bias, whose shape may be None. Numbers are tuples of ints; padding may be a word."""
    _positive(groups=(groups,))
    _check_shapes(list(shape), list(taken), bias, groups, transposed)
    _positive(stride=stride, dilation=dilation)
    sizes, taps = shape[2:], taken[2:]
    if isinstance(padding, (str, bytes)):
        if padding not in ("same", "valid"):
            raise RuntimeError(f"Invalid padding string: '{padding}'")
        if padding == "same" and max(stride) > 1:
            raise RuntimeError("padding='same' is not supported for strided convolutions")
        same = padding == "same" and 0 not in taps
        padding = tuple([d * (k - 1) // 2 if same else 0 for k, d in zip(taps, dilation)])
        size = list(sizes) if same else _places(sizes, taps, stride, padding, dilation)
    elif min(padding) < 0:
        raise RuntimeError("negative padding is not supported")
    elif transposed:
        size = _transposed_sizes(sizes, taps, stride, padding, output_padding, dilation)
    else:
        size = _places(sizes, taps, stride, padding, dilation)
    return tuple(size), (*stride, *padding, *dilation, groups)


def _convolve(op, input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """Of a batch, with as many dimensions as the weight has."""
    n = weight.ndim - 2
    if transposed or not isinstance(padding, (str, bytes)):
        padding = integers(op, "padding", padding, n)
    size, geometry = _geometry(
        op,
        input.shape,
        weight.shape,
        None if bias is None else bias.shape,
        integers(op, "stride", stride, n),
        padding,
        integers(op, "dilation", dilation, n),
        transposed,
        integers(op, "output_padding", output_padding, n) if transposed else None,
        integers(op, "groups", groups, 1)[0],
    )
    return _apply(_transposed if transposed else _convolution, input, weight, bias, size, geometry)


def _walk(op: str, weight_size, *how) -> tuple[int, ...]:
    """Strides, paddings and dilations, one of each dimension, and groups."""
    *each, groups = how
    values = zip(("stride", "padding", "dilation"), each, strict=True)
    n = len(weight_size) - 2
    return (*(v for name, value in values for v in integers(op, name, value, n)), *integers(op, "groups", groups, 1))


def gradient_by_input(op, input_size, weight, grad, *how) -> Tensor:
    """The gradient of a convolution with this stride, padding, dilation and groups by its input."""
    for name, t in (("weight", weight), ("grad_output", grad)):
        if not isinstance(t, Tensor):
            raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(t).__name__}")
    return _transposed(grad, weight, None, tuple(input_size[2:]), _walk(op, weight.shape, *how))


def gradient_by_weight(op, input, weight_size, grad, *how) -> Tensor:
    """The gradient of a convolution with this stride, padding, dilation and groups by its weight."""
    for name, t in (("input", input), ("grad_output", grad)):
        if not isinstance(t, Tensor):
            raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(t).__name__}")
    return _weight_gradient(grad, input, tuple(weight_size[2:]), _walk(op, weight_size, *how))


def _convolve_dimensions(n: int, op: str, input, weight, bias, *how):
    """Of ``n`` dimensions, with a batch or without."""
    _check_tensors(op, input, weight, bias, op.startswith("conv_transpose"))
    if input.ndim not in (n + 1, n + 2):
        raise RuntimeError(
            f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {op}, but got input of size: "
            f"{list(input.shape)}"
        )
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if weight.ndim != n + 2:
        raise RuntimeError(f"{op}: weight should have {n + 2} dimensions, but got weight of size {list(weight.shape)}")
    if input.ndim == n + 2:
        return _convolve(op, input, weight, bias, *how)
    return _convolve(op, input.unsqueeze(0), weight, bias, *how).squeeze(0)


_SIZES = {1: "L", 2: "H, W", 3: "D, H, W"}
_TAPS = {1: "K", 2: "KH, KW", 3: "KD, KH, KW"}
_CONVOLUTION = """The convolution (cross-correlation) of ``input``, of shape (N, C, {sizes}) or (C, {sizes}), with
    ``weight``, of shape (O, C / groups, {taps}), plus ``bias`` (O). Follows
    ``torch.nn.functional.{name}``.

    Args:
        weight: a filter for each channel of the result
        bias: a number for each channel of the result
        stride: the step from one place of the filter to the next; here and below, a number, or one of each dimension
        padding: how many zeros are put before and behind ``input``; "valid" for 0, or "same" for as many as keep its
            size, the larger half behind
        dilation: the step between the elements that a filter takes
        groups: into how many parts channels are divided, each seeing its own
    Returns:
        A tensor of shape (N, O, ...) or (O, ...), whose last sizes are
        (n + 2 padding - dilation (k - 1) - 1) // stride + 1 for n elements and k taps. Its channels lie next to each
        other if those of ``input`` or ``weight`` do.
    Raises:
        RuntimeError: shapes or dtypes do not fit, or the filter is larger than the padded input
        NotImplementedError: bools, and tensors of another device
    """
_TRANSPOSED = """The transposed convolution of ``input``, of shape (N, C, {sizes}) or (C, {sizes}), with ``weight``, of
    shape (C, O / groups, {taps}), plus ``bias`` (O): each element adds its multiple of the filter to the result. It is
    the gradient of a convolution's input. Follows ``torch.nn.functional.{name}``.

    Args:
        weight: a filter for each channel of ``input``
        bias: a number for each channel of the result
        stride: the step from one place of the filter to the next; here and below, a number, or one of each dimension
        padding: how many elements are left out at each side of the result
        output_padding: how many elements the result has beyond those at its end
        groups: into how many parts channels are divided, each seeing its own
        dilation: the step between the elements that a filter takes
    Returns:
        A tensor of shape (N, O, ...) or (O, ...), whose last sizes are
        (n - 1) stride - 2 padding + dilation (k - 1) + output_padding + 1 for n elements and k taps.
    Raises:
        RuntimeError: shapes or dtypes do not fit, or nothing would be left of the result
        NotImplementedError: integers other than int64, bools, and tensors of another device
    """


def _declare(n: int):
    """The two public functions of ``n`` dimensions."""
    name, transposed_name = f"conv{n}d", f"conv_transpose{n}d"

    def conv(input, weight, bias=None, stride=1, padding=0, dilation=1, groups=1):
        how = stride, padding, dilation, False, 0, groups
        return _convolve_dimensions(n, name, input, weight, bias, *how)

    def conv_transpose(input, weight, bias=None, stride=1, padding=0, output_padding=0, groups=1, dilation=1):
        how = stride, padding, dilation, True, output_padding, groups
        return _convolve_dimensions(n, transposed_name, input, weight, bias, *how)

    for fn, named, doc in ((conv, name, _CONVOLUTION), (conv_transpose, transposed_name, _TRANSPOSED)):
        fn.__name__ = fn.__qualname__ = named
        fn.__doc__ = doc.format(name=named, sizes=_SIZES[n], taps=_TAPS[n])
    return function(conv), function(conv_transpose)


conv1d, conv_transpose1d = _declare(1)
conv2d, conv_transpose2d = _declare(2)
conv3d, conv_transpose3d = _declare(3)


@function
def convolution(input, weight, bias, stride, padding, dilation, transposed, output_padding, groups):
    """The convolution of a batch, ``input``, of one to three dimensions, which those of ``weight`` tell; or the
    transposed convolution. Follows ``torch.convolution``.

    Args:
        weight: the filters
        bias: a number for each channel of the result, or None
        stride: the step from one place of the filter to the next; here and below, a list of one number, or of one of
            each dimension
        padding: how many zeros are put before and behind ``input``
        dilation: the step between the elements that a filter takes
        transposed: is it the transposed convolution?
        output_padding: how many elements a transposed convolution has beyond those at its end
        groups: into how many parts channels are divided
    Returns:
        A tensor of as many dimensions as ``input``.
    Raises:
        RuntimeError: shapes or dtypes do not fit
        NotImplementedError: bools, complex numbers, and tensors of another device
    """
    flags_only("convolution", transposed=transposed)
    _check_tensors("convolution", input, weight, bias, transposed)
    if input.is_complex():
        raise NotImplementedError(f"convolution: not implemented for '{input.dtype.name}'")
    lists = {"stride": stride, "padding": padding, "dilation": dilation, "output_padding": output_padding}
    for name, value in lists.items():
        if not isinstance(value, (tuple, list)):
            raise TypeError(f"convolution(): argument '{name}' must be tuple of ints, not {type(value).__name__}")
    if weight.ndim < 3:
        raise RuntimeError("weight should have at least three dimensions")
    if input.ndim != weight.ndim:
        raise RuntimeError(
            f"Expected {weight.ndim}-dimensional input for {weight.ndim}-dimensional weight {list(weight.shape)}, but "
            f"got {input.ndim}-dimensional input of size {list(input.shape)} instead"
        )
    return _convolve(
        "convolution", input, weight, bias, stride, padding, dilation, bool(transposed), output_padding, groups
    )
