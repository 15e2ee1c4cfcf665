"""Attention of half types by cuDNN: the graphs that its fused kernels are found by. Forward, the scores, their mask, the
softmax with its statistics, and the product with the values; backward, the formulas of tinytorch/ops/attention.py."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..cpu import ffi, lib
from . import cudnn
from .cudnn import BACKEND_DESCRIPTOR, BOOLEAN, DATA_BOOLEAN, DATA_FLOAT, DATA_INT32, DATA_TYPE, INT64, Descriptor

# Kinds of descriptors.
_POINTWISE, _OPERATION_POINTWISE, _MATMUL, _OPERATION_MATMUL = 0, 13, 18, 19
_REDUCTION, _OPERATION_REDUCTION, _OPERATION_RESHAPE = 21, 22, 31
# Modes of pointwise operations, and reductions.
_ADD, _MUL, _DIV, _SUB, _EXP, _LOG, _IDENTITY = 0, 1, 6, 9, 13, 15, 21
_GREATER_OR_EQUAL, _INDEX, _SELECT = 303, 501, 601
_SUM, _MAX = 0, 3


class Heads(NamedTuple):
    """A tensor (N, heads, rows, columns)."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def transposed(self) -> Heads:
        """With rows and columns exchanged."""
        (*batch, rows, cols), (*steps, row, col) = self
        return self


def _turned(x: tuple) -> tuple:
    return (*x[:2], x[3], x[2])


def _dense(*shape: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    strides = [1]
    for size in shape[:0:-1]:
        strides.insert(0, strides[0] * size)
    return shape, tuple(strides)


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


def _backward(p, whole: bool):
    """... and of query, key, value, out, lse, g, the three gradients, delta and, unless ``whole``, the sums of the
    gradient of the queries. ``whole``: with memory for all scores, and in an order that is always the same."""
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
    if whole:
        graph.product(of_query, slopes, straight)
        return graph, (q, k, v, o, s, g_, dq, dk, dv, d)
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
