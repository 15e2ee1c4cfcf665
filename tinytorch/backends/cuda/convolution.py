"""Convolutions by cuDNN: a graph of one operation. The plan for a problem is chosen when it is met first, and kept."""

from __future__ import annotations

from ...determinism import are_deterministic_algorithms_enabled
from .. import cudnn as settings
from ..cpu import OutOfMemoryError, ffi, lib
from . import cudnn
from .cudnn import BACKEND_DESCRIPTOR, CONVOLUTION_MODE, DATA_TYPE, DOUBLE, FLOAT, INT64, Descriptor

_CONVOLUTION = 1  # a descriptor
_CROSS_CORRELATION = 1
_INPUT, _WEIGHT, _RESULT = range(3)  # tt_convolution's `computed`; a tensor's uid is one more
# By what is computed: the operation, and its attributes alpha, beta, the convolution, and then the three tensors.
_OPERATIONS = {
    _RESULT: (10, (700, 701, 702), {_INPUT: 704, _WEIGHT: 703, _RESULT: 705}),
    _INPUT: (12, (706, 707, 708), {_INPUT: 710, _WEIGHT: 709, _RESULT: 711}),
    _WEIGHT: (11, (712, 713, 714), {_INPUT: 716, _WEIGHT: 715, _RESULT: 717}),
}
_KEY_BYTES = ffi.sizeof("tt_convolution")


def _strides(shape: list[int], channels_last: bool) -> list[int]:
    order = [1, *range(len(shape) - 1, 1, -1), 0] if channels_last else range(len(shape) - 1, -1, -1)
    strides, step = [0] * len(shape), 1
    for d in order:
        strides[d] = step
        step *= shape[d]
    return strides


def _end_padding(size: int, reach: int, place: int, stride: int, padding: int) -> int:
    """What must be padded at the end for so many places: as much as at the beginning, if that does."""
    least = (place - 1) * stride + reach - size - padding
    return max(least, min(padding, least + stride - 1))


def operation(p) -> Descriptor | None:
    """The graph's node. None: the library has no such, as the input would have to be cut."""
    dims = slice(3 - p.dims, 3)
    size, taps, places = list(p.size)[dims], list(p.taps)[dims], list(p.places)[dims]
    stride, padding, dilation = list(p.stride)[dims], list(p.padding)[dims], list(p.dilation)[dims]
    after = [
        _end_padding(n, (t - 1) * d + 1, m, s, pad)
        for n, t, m, s, pad, d in zip(size, taps, places, stride, padding, dilation, strict=True)
    ]
    if min(after) < 0:
        return None
    double = p.dtype == lib.TT_F64
    data_type = cudnn.DATA_TYPES[p.dtype]
    shapes = {
        _INPUT: [p.batch, p.groups * getattr(p, "in"), *size],
        _WEIGHT: [p.groups * p.out, getattr(p, "in"), *taps],
        _RESULT: [p.batch, p.groups * p.out, *places],
    }
    convolution = Descriptor(
        _CONVOLUTION,
        [
            (100, DATA_TYPE, cudnn.DATA_DOUBLE if double else cudnn.DATA_FLOAT),
            (101, CONVOLUTION_MODE, _CROSS_CORRELATION),
            (106, INT64, p.dims),
            (102, INT64, *dilation),
            (103, INT64, *stride),
            (105, INT64, *padding),
            (104, INT64, *after),
        ],
    )
    kind, (alpha, beta, how), tensors = _OPERATIONS[p.computed]
    scale = DOUBLE if double else FLOAT
    attributes = [(alpha, scale, 1.0), (beta, scale, 0.0), (how, BACKEND_DESCRIPTOR, convolution)]
    for which, attribute in tensors.items():
        strides = _strides(shapes[which], p.channels_last)
        made = cudnn.tensor(which + 1, data_type, shapes[which], strides, 1 << p.align)
        attributes.append((attribute, BACKEND_DESCRIPTOR, made))
    return Descriptor(kind, attributes)


def _allowed(dtype: int, deterministic: bool, allow_tf32: bool):
    """May an engine with these notes be used?"""
    refused = set()
    if deterministic:
        refused.add(cudnn.NONDETERMINISTIC)
    if dtype == lib.TT_F32 and not allow_tf32:
        refused |= {cudnn.TENSOR_CORE, cudnn.DOWN_CONVERT_INPUTS}
    return refused.isdisjoint


def _is_pointwise(p) -> bool:
    return p.groups == 1 and max(p.taps) == 1 and max(p.padding) == 0


def _choose(handle, p, addresses, stream, how, most_workspace=cudnn.NO_LIMIT):
    """The plan for a problem; None: there is none."""
    benchmark, limit, deterministic, allow_tf32 = how
    if p.computed == _WEIGHT and p.dtype == lib.TT_F32 and not allow_tf32 and _is_pointwise(p):
        return None  # the engines left are slow, and a product of matrices does it
    try:
        node = operation(p)
        if node is None:
            return None
        found = cudnn.plans(handle, [node], _allowed(p.dtype, deterministic, allow_tf32), most_workspace)
        if benchmark and not cudnn.is_capturing(stream):
            return cudnn.fastest(found, limit, addresses, stream)
        return next(found, None)
    except cudnn.GraphError:
        return None


def _how() -> tuple:
    """What a choice depends on besides the problem."""
    deterministic = settings.deterministic or are_deterministic_algorithms_enabled()
    return settings.benchmark, settings.benchmark_limit, deterministic, settings.allow_tf32


def convolve(device: int, problem, input: int, weight: int, result: int, stream: int, keep: bool = False) -> int:
    """The one of the three that is to be computed from the others, as tt_convolution in kernels/api/cuda.h describes
    it, on the device whose context is current. 1: not by cuDNN. ``keep``: in this thread C does the next one itself,
    until a setting is changed."""
    age = lib.tt_cuda_plans_age()
    if not settings.enabled:
        return 1
    handle, how = cudnn.handle_of(device), _how()
    key = ffi.buffer(problem, _KEY_BYTES)[:], how
    addresses = {_INPUT + 1: input, _WEIGHT + 1: weight, _RESULT + 1: result}
    plan = cudnn.kept_plan(handle, key, lambda: _choose(handle, problem, addresses, stream, how))
    while plan is not None:
        try:
            plan.execute(addresses, stream)
            if keep:
                lib.tt_cuda_keep_plan(age, device, problem, _KEY_BYTES, plan.told, ffi.cast("void *", stream))
            return 0
        except OutOfMemoryError:  # for its workspace: the next best with half of it, from now on
            plan = cudnn.keep_plan(handle, key, _choose(handle, problem, addresses, stream, how, plan.workspace // 2))
    return 1
