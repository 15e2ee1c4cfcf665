"""Pooling over windows of the last one to three dimensions: one kernel for maxima and one for means, whatever the
windows are (kernels/api/windows.h), and one each for their derivatives.

``spec`` holds, for each dimension, (taps, stride, padding, step, size of the result); a stride of 0 makes windows
adaptive. The derivative of maxima goes to where they were, and the derivative of that picks elements there.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Sized

from ..backends.cpu import error, ffi, lib
from ..tensor import Tensor, attempted, gives_tensors, owned
from .ranges import arange
from .declare import primitive, requires
from .join import cat
from .random import rand

NULL = ffi.NULL
_indexed = gives_tensors(lib.tt_max_pool, raises=False)


def _flat(spec) -> list[int]:
    return [n for axis in spec for n in axis]


_MAX_TITLES = {
    **{f"AdaptiveMaxPool{n}DBackward0": f"len(spec) == {n} and not spec[0][1]" for n in (1, 2, 3)},
    **{f"FractionalMaxPool{n}DBackward0": f"len(spec) == {n} and starts is not None" for n in (2, 3)},
    **{f"MaxPool{n}DWithIndicesBackward0": f"len(spec) == {n}" for n in (1, 2)},
    "MaxPool3DWithIndicesBackward0": "",
}
_AVG_TITLES = {
    **{f"AdaptiveAvgPool{n}DBackward0": f"len(spec) == {n} and not spec[0][1]" for n in (1, 2, 3)},
    **{f"AvgPool{n}DBackward0": f"len(spec) == {n}" for n in (1, 2)},
    "AvgPool3DBackward0": "",
}


@primitive(
    name="max_pool",
    title=_MAX_TITLES,
    extra=("index",),
    input=lambda g, index, input_shape, spec, starts: _max_backward(g, index, input_shape[-len(spec) :], spec, starts),
)
def _max_pool(input, spec, starts, indexed):
    operands = input._h, len(spec), _flat(spec), NULL if starts is None else starts._h
    made = _indexed(*operands, ffi.new("tt_array *[1]")) if indexed else attempted.tt_max_pool(*operands, NULL)
    if made is None:
        raise error("max_pool")
    return made if indexed else (made, None)


@primitive(name="max_pool_backward", g=lambda g, index, spec: picked(g, index, len(spec)))
def _max_backward(g, index, sizes, spec, starts):
    return owned.tt_max_pool_backward(
        g._h, index._h, len(spec), sizes, _flat(spec), NULL if starts is None else starts._h
    )


def picked(x: Tensor, index: Tensor, dims: int) -> Tensor:
    """The elements of the last ``dims`` dimensions, taken as one, that ``index`` names."""
    return x.flatten(-dims).gather(-1, index.flatten(-dims)).reshape(index.shape)


@primitive(
    name="avg_pool",
    title=_AVG_TITLES,
    input=lambda g, input_shape, spec, padded, divisor: _avg_backward(
        g, input_shape[-len(spec) :], spec, padded, divisor
    ),
)
def _avg_pool(input, spec, padded, divisor):
    return owned.tt_avg_pool(input._h, len(spec), _flat(spec), padded, divisor)


@primitive(name="avg_pool_backward", g=lambda g, spec, padded, divisor: _avg_pool(g, spec, padded, divisor))
def _avg_backward(g, sizes, spec, padded, divisor):
    return owned.tt_avg_pool_backward(g._h, len(spec), sizes, _flat(spec), padded, divisor)


# Arguments.


def per_dim(op: str, name: str, value, dims: int) -> tuple[int, ...]:
    """A number for each dimension, from one number or a sequence of one or of as many."""
    if type(value) is int:
        return (value,) * dims
    values = tuple(value) if isinstance(value, (tuple, list)) else (value,)
    values = tuple([operator.index(v) for v in values])
    if len(values) not in (1, dims):
        raise RuntimeError(f"{op}: {name} must either be a single int, or a tuple of {dims} ints")
    return values * dims if len(values) == 1 else values


#: Operators that ask for the size of a dimension before they look at their number.
_LEAST = {"avg_pool2d": 3}


def spatial(op: str, input: Tensor, dims: int) -> tuple[int, ...]:
    """The sizes of the last ``dims`` dimensions; RuntimeError unless the tensor is (C, *) or (N, C, *), and nothing but
    N is 0."""
    shape = tuple(input.shape)
    least = _LEAST.get(op, 0)
    if len(shape) < least:
        raise IndexError(f"{op}: Dimension out of range: expected {least} dimensions or more, but got: {list(shape)}")
    if len(shape) not in (dims + 1, dims + 2) or 0 in shape[len(shape) - dims - 1 :]:
        raise RuntimeError(
            f"{op}: Expected {dims + 1}D or {dims + 2}D (batch mode) tensor with optional 0 dim batch size for input, "
            f"but got: {list(shape)}"
        )
    return shape[-dims:]


def _regular(op: str, input: Tensor, dims: int, kernel_size, stride, padding, dilation, ceil_mode):
    """The spec of windows of one size at one distance."""
    taps = per_dim(op, "kernel_size", kernel_size, dims)
    stride = (
        taps
        if stride is None or (isinstance(stride, (tuple, list)) and not stride)
        else per_dim(op, "stride", stride, dims)
    )
    padding, step = per_dim(op, "padding", padding, dims), per_dim(op, "dilation", dilation, dims)
    return _windows(op, spatial(op, input, dims), taps, stride, padding, step, bool(ceil_mode))


@functools.lru_cache(1024)  # a network asks for few windows, often: 5.4 to 4.0 us for a small input
def _windows(op: str, sizes, taps, stride, padding, step, ceil_mode: bool) -> tuple:
    """The same of numbers for each dimension."""
    for name, values in (("kernel size", taps), ("stride", stride), ("dilation", step)):
        if min(values) <= 0:
            raise RuntimeError(f"{op}: {name} should be greater than zero, but got {list(values)}")
    spec = []
    for n, k, s, p, d in zip(sizes, taps, stride, padding, step):
        if p < 0:
            raise RuntimeError(f"{op}: pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"{op}: pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )
        out = (n + 2 * p - d * (k - 1) - 1 + (s - 1 if ceil_mode else 0)) // s + 1
        if ceil_mode and (out - 1) * s >= n + p:
            out -= 1
        if out < 1:
            raise RuntimeError(
                f"{op}: Given input size {list(sizes)} and windows of {list(taps)}, the calculated output size is too "
                "small"
            )
        spec.append((k, s, p, d, out))
    return tuple(spec)


def _adaptive(op: str, input: Tensor, dims: int, output_size):
    """The spec of windows that share the input out; None where means of all are wanted, which need no windows."""
    several = isinstance(output_size, (tuple, list) if dims == 1 else Iterable)
    if dims > 1 and several and len(output_size) >= input._h.ndim:
        raise ValueError(f"{op}: Input dimension should be at least {len(output_size) + 1}")
    given = tuple(output_size) if several else (output_size,) * dims
    if given and type(given[0]) is bool:  # PyTorch's parser looks for it at the first place
        raise TypeError(f"{op}(): argument 'output_size' must be tuple of ints, not bool")
    given = tuple([n if n is None and dims > 1 else operator.index(n) for n in given])
    if len(given) != dims:
        raise RuntimeError(f"{op}: output_size must be {dims} numbers, but got {len(given)}")
    sizes = input.shape[-dims:]
    out = tuple([sizes[k] if n is None else n for k, n in enumerate(given)])
    if out == (1,) * dims > (1,) and "avg" in op:
        return None  # the mean, of tensors of any number of dimensions
    spatial(op, input, dims)
    if min(out) < 0:
        raise RuntimeError(f"{op}: elements of output_size must be greater than or equal to 0, but got {list(out)}")
    return tuple((1, 0, 0, 1, n) for n in out)


def check_tensor(op: str, input) -> None:
    """TypeError unless it is a tensor."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{op}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")


def check_dtype(op: str, input: Tensor, kinds: str) -> None:
    """NotImplementedError unless PyTorch has a kernel for the dtype: ``floating``, or ``long`` or all ``real`` numbers
    among them. The kernel is looked for last."""
    code, kind = input._h.dtype, input.dtype.kind
    integral = kind == lib.TT_KIND_INT and (kinds == "real" or (kinds == "long" and code == lib.TT_I64))
    if kind != lib.TT_KIND_FLOAT and not integral:
        raise NotImplementedError(f"{op}: not implemented for '{input.dtype.name}'")


def _maxima(input: Tensor, spec, starts, indexed):
    out, index = _max_pool(input, spec, starts, bool(indexed) or requires(input))
    return (out, index) if indexed else out


def max_windows(op, dims, input, kernel_size, stride, padding, dilation, ceil_mode, indexed):
    check_tensor(op, input)
    spec = _regular(op, input, dims, kernel_size, stride, padding, dilation, ceil_mode)
    check_dtype(op, input, "floating" if dims == 1 else "real")
    return _maxima(input, spec, None, indexed)


def adaptive_max(op, dims, input, output_size, indexed):
    check_tensor(op, input)
    spec = _adaptive(op, input, dims, output_size)
    check_dtype(op, input, "floating")
    return _maxima(input, spec, None, indexed)


def mean_windows(op, dims, input, kernel_size, stride, padding, ceil_mode, padded, divisor=None):
    check_tensor(op, input)
    if divisor is not None and divisor == 0:
        raise RuntimeError(f"{op}: divisor must be not zero")
    spec = _regular(op, input, dims, kernel_size, stride, padding, 1, ceil_mode)
    check_dtype(op, input, "long")
    return _avg_pool(input, spec, bool(padded), 0 if divisor is None else operator.index(divisor))


def adaptive_mean(op, dims, input, output_size):
    check_tensor(op, input)
    spec = _adaptive(op, input, dims, output_size)
    if spec is None:
        return input.mean(list(range(-dims, 0)), keepdim=True)
    check_dtype(op, input, "floating")
    return _avg_pool(input, spec, False, 0)


def fractional(op, dims, input, kernel_size, output_size, output_ratio, indexed, samples):
    """Maxima of windows whose distances are random: of each plane others, by one number for each dimension."""
    check_tensor(op, input)
    if output_size is None and output_ratio is None:
        raise ValueError(f"{op} requires specifying either an output_size or an output_ratio")
    if output_size is None:
        if dims == 2 and isinstance(output_ratio, Sized) and len(output_ratio) > 2:
            raise ValueError(f"{op} requires output_ratio to either be a single number or two")
        ratios = tuple(output_ratio) if isinstance(output_ratio, Iterable) else (output_ratio,) * dims
        output_size = [int(input.size(k - dims) * ratios[k]) for k in range(dims)]
    if samples is None:
        input.size(-dims - 1)  # IndexError where there is no such dimension
    taps, sizes = per_dim(op, "kernel_size", kernel_size, dims), spatial(op, input, dims)
    out = per_dim(op, "output_size", output_size, dims)
    for n, k, m in zip(sizes, taps, out):
        if k < 1 or m < 1:
            raise RuntimeError(f"{op}: kernel_size and output_size must be greater than zero")
        if m + k - 1 > n - (dims == 3):  # PyTorch wants one more of three dimensions
            raise RuntimeError(f"{op}: pool size {k} too large relative to input size {n}")
    check_dtype(op, input, "floating")
    lead = input.shape[:-dims]
    planes = (lead[0] if len(lead) == 2 else 1, lead[-1], dims)
    if samples is None:
        samples = rand(planes, dtype=input.dtype, device=input.device)
    elif samples.dtype is not input.dtype or samples._h.ndim != 3 or tuple(samples.shape)[1:] != planes[1:]:
        raise RuntimeError(f"{op}: expected _random_samples of shape {planes} and the dtype of input")
    elif samples.shape[0] < planes[0]:
        raise RuntimeError(f"{op}: expected _random_samples of shape {planes}")
    samples = samples.detach()[: planes[0]].reshape(-1, dims)
    starts = [_random_starts(samples[:, a], n, k, m) for a, n, k, m in zip(_SAMPLE_OF[dims], sizes, taps, out)]
    spec = tuple((k, 1, 0, 1, m) for k, m in zip(taps, out))
    return _maxima(input, spec, cat(starts, 1), indexed)


_SAMPLE_OF = {2: (1, 0), 3: (0, 1, 2)}  # the number of each dimension's sample: PyTorch's order


def _random_starts(sample: Tensor, n: int, taps: int, out: int) -> Tensor:
    """Where ``out`` windows of ``taps`` elements begin in n: (planes, out). The last ends at the end."""
    u = sample.unsqueeze(1)
    last = u.new_full((len(u), 1), n - taps).long()
    if out == 1:
        return last
    step = ((n - taps) / u.new_ones((), dtype=u.dtype)) / (out - 1)
    places = ((arange(out - 1, dtype=u.dtype, device=u.device) + u) * step).long() - (u * step).long()
    return cat([places.clamp(0, n - taps), last], 1)
