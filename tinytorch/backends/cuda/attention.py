"""Attention of half types by cuDNN: the graphs that its fused kernels are found by. Forward, the scores, the
mask, the softmax with its statistics and the product with the values; backward, the formulas of
tinytorch/ops/attention.py."""

import functools
import math
from typing import NamedTuple

from ...determinism import are_deterministic_algorithms_enabled
from .. import cudnn as settings
from ..cpu import ffi, lib
from . import cudnn
from .cudnn import BACKEND_DESCRIPTOR, DATA_BOOLEAN, DATA_FLOAT, DATA_INT32, DATA_TYPE, INT64, Descriptor
from .scratch import address, memory

# Kinds of descriptors.
_POINTWISE, _OPERATION_POINTWISE, _MATMUL, _OPERATION_MATMUL = 0, 13, 18, 19
_REDUCTION, _OPERATION_REDUCTION, _OPERATION_RESHAPE = 21, 22, 31
# Modes of pointwise operations, and reductions.
_ADD, _MUL, _DIV, _SUB, _EXP, _LOG, _IDENTITY = 0, 1, 6, 9, 13, 15, 21
_GREATER_OR_EQUAL, _INDEX, _SELECT = 303, 501, 601
_SUM, _MAX = 0, 3

_KEY_BYTES = ffi.sizeof("tt_attend")
_WRONG_TAILS = 91500  # up to this version derivatives are wrong where the last block of keys is not whole


class Heads(NamedTuple):
    """The layout of a tensor (N, heads, rows, columns)."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]


class Problem(NamedTuple):
    """tt_attend of kernels/api/cuda.h, with the layouts of its tensors."""

    batch: int
    heads: int
    of_keys: int
    rows: int
    keys: int
    width: int
    out_width: int
    dtype: int
    causal: bool
    scale: float
    query: Heads
    key: Heads
    value: Heads
    out: Heads
    g: Heads
    grads: tuple[Heads, Heads, Heads]


def _described(p) -> Problem:
    query = p.batch, p.heads, p.rows, p.width
    key, value = (p.batch, p.of_keys, p.keys, p.width), (p.batch, p.of_keys, p.keys, p.out_width)
    out = p.batch, p.heads, p.rows, p.out_width
    shapes = query, key, value, out, out, query, key, value
    of = [Heads(shape, (*p.steps[k], 1)) for k, shape in enumerate(shapes)]
    sizes = p.batch, p.heads, p.of_keys, p.rows, p.keys, p.width, p.out_width
    return Problem(*sizes, p.dtype, bool(p.causal), p.scale, *of[:5], tuple(of[5:]))


def _turned(x: tuple) -> tuple:
    """With the last two exchanged."""
    return (*x[:2], x[3], x[2])


def _dense(*shape: int) -> Heads:
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return Heads(shape, tuple(strides))


class _Graph:
    """Operations, as they are added; tensors have the numbers in which they came."""

    def __init__(self):
        self.operations: list[Descriptor] = []
        self.values: dict[int, object] = {}  # by uid: numbers in the CPU's memory
        self._count = 0

    def tensor(self, dtype: int, shape, strides, **how) -> tuple[int, Descriptor]:
        self._count += 1
        return self._count, cudnn.tensor(self._count, dtype, shape, strides, **how)

    def value(self, number: float) -> Descriptor:
        uid, made = self.tensor(DATA_FLOAT, (1,) * 4, (1,) * 4, by_value=True)
        self.values[uid] = ffi.new("float *", number)
        return made

    def virtual(self, shape, dtype: int = DATA_FLOAT, strides=None) -> Descriptor:
        return self.tensor(dtype, shape, strides or _dense(*shape)[1], virtual=True)[1]

    def pointwise(self, mode: int, y, x, b=None, t=None, axis=None, compute=DATA_FLOAT):
        """y = mode(x), mode(x, b) or t ? x : b"""
        how = [(0, cudnn.POINTWISE_MODE, mode), (1, DATA_TYPE, compute)]
        if axis is not None:
            how.append((9, INT64, axis))
        operands = [(750, Descriptor(_POINTWISE, how)), (751, x), (753, y), (752, b), (758, t)]
        self._add(_OPERATION_POINTWISE, operands)
        return y

    def product(self, c, a, b):
        """c = a b"""
        how = Descriptor(_MATMUL, [(1500, DATA_TYPE, DATA_FLOAT)])
        self._add(_OPERATION_MATMUL, [(1520, a), (1521, b), (1522, c), (1523, how)])
        return c

    def reduction(self, y, mode: int, x):
        how = Descriptor(_REDUCTION, [(1600, cudnn.REDUCTION_OPERATOR_TYPE, mode), (1601, DATA_TYPE, DATA_FLOAT)])
        self._add(_OPERATION_REDUCTION, [(1610, x), (1611, y), (1612, how)])
        return y

    def reshape(self, y, x):
        self._add(_OPERATION_RESHAPE, [(2200, x), (2201, y)])
        return y

    def _add(self, kind: int, operands) -> None:
        attributes = [(number, BACKEND_DESCRIPTOR, x) for number, x in operands if x is not None]
        self.operations.append(Descriptor(kind, attributes))


def _hidden(graph: _Graph, scores, shape):
    """Scores of which those of later keys are minus infinity."""
    row = graph.pointwise(_INDEX, graph.virtual(shape, DATA_INT32), scores, axis=2)
    col = graph.pointwise(_INDEX, graph.virtual(shape, DATA_INT32), scores, axis=3)
    seen = graph.pointwise(_GREATER_OR_EQUAL, graph.virtual(shape, DATA_BOOLEAN), row, col, compute=DATA_BOOLEAN)
    return graph.pointwise(_SELECT, graph.virtual(shape), scores, graph.value(-math.inf), seen)


def _forward(p):
    """The graph, and the uids of query, key, value, out and lse."""
    graph = _Graph()
    dtype = cudnn.DATA_TYPES[p.dtype]
    shape, row = (p.batch, p.heads, p.rows, p.keys), (p.batch, p.heads, p.rows, 1)
    (q, query), (v, value) = (graph.tensor(dtype, *x) for x in (p.query, p.value))
    k, key = graph.tensor(dtype, *map(_turned, p.key))
    o, out = graph.tensor(dtype, *p.out)
    s, lse = graph.tensor(DATA_FLOAT, *_dense(*row))
    scores = graph.product(graph.virtual(shape), query, key)
    scores = graph.pointwise(_MUL, graph.virtual(shape), scores, graph.value(p.scale))
    if p.causal:
        scores = _hidden(graph, scores, shape)
    top = graph.reduction(graph.virtual(row), _MAX, scores)
    less = graph.pointwise(_SUB, graph.virtual(shape), scores, top)
    exponentials = graph.pointwise(_EXP, graph.virtual(shape), less)
    total = graph.reduction(graph.virtual(row), _SUM, exponentials)
    graph.pointwise(_ADD, lse, top, graph.pointwise(_LOG, graph.virtual(row), total))
    weights = graph.pointwise(_DIV, graph.virtual(shape, dtype), exponentials, total)
    graph.product(out, weights, value)
    return graph, (q, k, v, o, s)


def _backward(p):
    """... and of query, key, value, out, lse, g, the three gradients, delta, and the sums that become the gradient of
    the queries."""
    graph = _Graph()
    dtype = cudnn.DATA_TYPES[p.dtype]
    n, h, rows, keys = shape = p.batch, p.heads, p.rows, p.keys
    turned, row = (n, h, keys, rows), (n, h, rows, 1)
    turned_strides = _turned(_dense(*shape)[1])
    (q, query), (o, out), (g_, g) = (graph.tensor(dtype, *x) for x in (p.query, p.out, p.g))
    (k, key), (v, value) = (graph.tensor(dtype, *map(_turned, x)) for x in (p.key, p.value))
    s, lse = graph.tensor(DATA_FLOAT, *_dense(*row))
    (dq, of_query), (dk, of_key), (dv, of_value) = (graph.tensor(dtype, *x) for x in p.grads)
    d, delta = graph.tensor(DATA_FLOAT, *_dense(*row))

    by = graph.pointwise(_MUL, graph.virtual((n, h, rows, p.out_width)), g, out)
    by = graph.reduction(graph.virtual(row), _SUM, by)
    graph.pointwise(_MUL, delta, by, graph.value(1.0))

    scores = graph.product(graph.virtual(shape), query, key)
    scores = graph.pointwise(_MUL, graph.virtual(shape), scores, graph.value(p.scale))
    scores = graph.pointwise(_SUB, graph.virtual(shape), scores, lse)
    if p.causal:
        scores = _hidden(graph, scores, shape)
    weights = graph.pointwise(_EXP, graph.virtual(shape), scores)
    across = graph.reshape(graph.virtual(turned, dtype, turned_strides), weights)
    _onto_heads(graph, p, of_value, across, g, dtype, p.out_width)

    slopes = graph.product(graph.virtual(shape), g, value)
    slopes = graph.pointwise(_SUB, graph.virtual(shape), slopes, delta)
    slopes = graph.pointwise(_MUL, graph.virtual(shape), slopes, weights)
    slopes = graph.pointwise(_MUL, graph.virtual(shape, dtype), slopes, graph.value(p.scale))
    across = graph.reshape(graph.virtual(turned, dtype, turned_strides), slopes)
    _onto_heads(graph, p, of_key, across, query, dtype, p.width)

    straight = graph.reshape(graph.virtual(p.key.shape, dtype, p.key.strides), key)
    a, sums = graph.tensor(DATA_FLOAT, *_dense(n, h, rows, p.width))
    graph.product(sums, slopes, straight)
    graph.pointwise(_IDENTITY, of_query, sums)
    return graph, (q, k, v, o, s, g_, dq, dk, dv, d, a)


def _onto_heads(graph: _Graph, p, out, a, b, dtype: int, width: int) -> None:
    """out = a b, summed over the heads of queries that share one of keys."""
    if p.heads == p.of_keys:
        graph.product(out, a, b)
    else:
        each = graph.product(graph.virtual((p.batch, p.heads, p.keys, width), dtype), a, b)
        graph.reduction(out, _SUM, each)


class Plan(NamedTuple):
    """A plan, the uids of the tensors in their order, and by uid the numbers that the graph has."""

    plan: cudnn.Plan
    uids: tuple[int, ...]
    values: dict[int, object]


def _choose(handle, p, backward: bool) -> Plan | None:
    """How a problem is solved; None: the library has nothing for it."""
    try:
        graph, uids = _backward(p) if backward else _forward(p)
        found = next(cudnn.plans(handle, graph.operations, lambda notes: True), None)
    except cudnn.GraphError:
        return None
    return found and Plan(found, uids, graph.values)


@functools.cache
def _is_installed() -> bool:
    try:
        return cudnn.version() > 0
    except OSError:
        return False


def _is_for_library(p) -> bool:
    """Packs of 16 bytes, no row for several heads, and not what a version is known to do wrong. Derivatives only where
    they may differ in their last bits from run to run: what is found for a query is added up by several blocks, in any
    order."""
    steps = [step for k in range(8 if p.backward else 4) for step in p.steps[k]]
    if p.align < 4 or (p.width | p.out_width) % 8 or any(step % 8 for step in steps) or 0 in steps:
        return False
    if p.rows == p.keys == 1:
        return False
    if not p.backward:
        return True
    deterministic = settings.deterministic or are_deterministic_algorithms_enabled()
    return not deterministic and (p.keys % 128 == 0 or cudnn.version() > _WRONG_TAILS)


def attend(device: int, problem, tensors, stream: int) -> int:
    """Attention or its derivative, as tt_attend in kernels/api/cuda.h describes it, on the device whose context is
    current; ``tensors``: query, key, value, the result, its gradient and theirs, and the logarithms of sums. 1: not by
    cuDNN."""
    if not settings.enabled or not _is_installed() or not _is_for_library(problem):
        return 1
    backward = bool(problem.backward)
    handle = cudnn.handle_of(device)
    key = "attention", ffi.buffer(problem, _KEY_BYTES)[:]
    found = cudnn.kept_plan(handle, key, lambda: _choose(handle, _described(problem), backward))
    if found is None:
        return 1
    given = [int(ffi.cast("intptr_t", tensors[k])) for k in range(9)]
    addresses = given[:4] + given[8:]
    own = []
    if backward:
        rows = problem.batch * problem.heads * problem.rows
        own = [memory(device, 4 * rows * n, "attention") for n in (1, problem.width)]
        addresses += given[4:8] + [address(h) for h in own]
    try:
        by_uid = dict(zip(found.uids, addresses, strict=True))
        by_uid.update((uid, int(ffi.cast("intptr_t", value))) for uid, value in found.values.items())
        found.plan.execute(by_uid, stream)
    finally:
        for h in own:
            lib.tt_free(h)  # the stream's next work may have it
    return 0
