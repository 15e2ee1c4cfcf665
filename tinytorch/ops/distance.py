"""Distances between the rows of matrices."""

from __future__ import annotations

import math

from ..dtypes import float32, float64
from ..tensor import FUNCTIONS
from .declare import function, primitive
from .join import cat

# One pass over differences holds at most so many of them.
_ROOM = 1 << 20


def _ratio(g, distance):
    """``g / distance``, and 0 where the distance is 0."""
    return (g / distance.masked_fill(distance == 0, 1)).masked_fill(distance == 0, 0)


def _slopes(g, difference, distance, p):
    """The gradient of the differences, whose p-norms along the last dimension are the distances."""
    if p == 0:
        return difference * 0
    if p == 2:
        return difference * _ratio(g, distance).unsqueeze(-1)
    g, sign = g.unsqueeze(-1), difference.sign()
    if p == 1:
        return sign * g
    size = difference.abs()
    if p == math.inf:
        return sign * (size == distance.unsqueeze(-1)).to(sign.dtype) * g
    size = size.masked_fill(size == 0, 1)  # whose sign is 0
    return sign * (size / distance.masked_fill(distance == 0, 1).unsqueeze(-1)) ** (p - 1) * g


def _of_rows(edges, g, x1, x2, out, p):
    slopes = _slopes(g, x1 - x2, out, p)
    of_x1, of_x2 = edges
    return (
        None if of_x1 is None else slopes.sum_to_size(x1.shape),
        None if of_x2 is None else -slopes.sum_to_size(x2.shape),
    )


@primitive(
    name="rows_distance",
    title="CdistBackward0",
    inputs=("x1", "x2"),
    vjp=lambda edges, g, x1, x2, out, p: _of_rows(edges, g, x1, x2, out, p),
)
def _rows_distance(x1, x2, p):
    """The p-norms of the differences along the last dimension."""
    difference = x1.detach() - x2.detach()
    return FUNCTIONS["norm"](difference, p, -1)


def _of_first(g, x1, x2, out):
    ratio = _ratio(g, out)
    return x1 * ratio.sum(-1, keepdim=True) - ratio @ x2


@primitive(
    name="euclidean_distance",
    title="EuclideanDistBackward0",
    x1=_of_first,
    x2=lambda g, x1, x2, out: _of_first(g.mT, x2, x1, out.mT),
)
def _euclidean(x1, x2):
    """Euclidean distances by a product of matrices: |a - b|^2 = |a|^2 - 2 a b + |b|^2."""
    x1, x2 = x1.detach(), x2.detach()
    squares1, squares2 = ((x * x).sum(-1, keepdim=True) for x in (x1, x2))
    a = cat((x1 * -2, squares1, squares1.new_ones(squares1.shape)), -1)
    b = cat((x2, squares2.new_ones(squares2.shape), squares2), -1)
    return (a @ b.mT).clamp(0).sqrt()


def _check(op: str, p, *inputs) -> None:
    """RuntimeError unless the inputs are of one floating dtype and the order is not negative."""
    for x, name in zip(inputs, ("X1", "X2")):
        if not x.is_floating_point():
            raise RuntimeError(f"{op} only supports floating-point dtypes, {name} got: {x.dtype.name}")
    if any(x.dtype is not inputs[0].dtype for x in inputs):
        _supported(op, inputs[0])
        raise RuntimeError(f"{op}: expected dtype {inputs[0].dtype!r} but found {inputs[1].dtype!r}")
    if not p >= 0:
        raise RuntimeError(f"{op} only supports non-negative p values")


def _supported(op: str, x) -> None:
    if x.dtype not in (float32, float64):
        raise NotImplementedError(f"{op}: not implemented for '{x.dtype.name}'")


def _distance(op: str, x1, x2, p):
    _supported(op, x1)
    return _rows_distance(x1, x2, p) if x1.shape[-1] else (x1 - x2).sum(-1)


_BY_PRODUCTS = {
    "use_mm_for_euclid_dist_if_necessary": 25,
    "use_mm_for_euclid_dist": -1,
    "donot_use_mm_for_euclid_dist": math.inf,
}


@function
def cdist(x1, x2, p=2.0, compute_mode="use_mm_for_euclid_dist_if_necessary"):
    """The distances, in the ``p``-norm, of each row of ``x1`` from each row of ``x2``. Their slope counts as 0 where
    they are 0. Follows ``torch.cdist``.

    Args:
        x1: a tensor (*, P, M)
        x2: a tensor (*, R, M)
        p: the order: a number not below 0, or ``inf``
        compute_mode: whether Euclidean distances are computed by a product of matrices, faster and less exact:
            beyond 25 rows unless ``'use_mm_for_euclid_dist'`` or ``'donot_use_mm_for_euclid_dist'`` is given
    Returns:
        A tensor (*, P, R).
    Raises:
        RuntimeError: shapes or dtypes do not match, or ``p`` is negative
        ValueError: ``compute_mode`` is none of these
    """
    rows = _BY_PRODUCTS.get(compute_mode) if isinstance(compute_mode, str) else None
    if rows is None:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    for x, name in ((x1, "X1"), (x2, "X2")):
        if x._h.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x._h.ndim}D")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    _check("cdist", p, x1, x2)
    p = float(p)
    if p == 2 and max(x1.shape[-2], x2.shape[-2]) > rows and x1._h.numel and x2._h.numel:
        return _euclidean(*_of_one_batch(x1, x2))
    x1, x2 = x1.unsqueeze(-2), x2.unsqueeze(-3)
    dim, n = x1._h.ndim - 3, x1.shape[-3]
    step = max(_ROOM // max(x2._h.numel * x1._h.numel // max(n * x1.shape[-1], 1), 1), 1)
    parts = [_distance("cdist", x1.narrow(dim, k, min(step, n - k)), x2, p) for k in range(0, max(n, 1), step)]
    return cat(parts, -2) if len(parts) > 1 else parts[0]


def _of_one_batch(x1, x2):
    """Both with the batch dimensions that they broadcast to."""
    batch = FUNCTIONS["broadcast_shapes"](x1.shape[:-2], x2.shape[:-2])
    return [x.expand(*batch, *x.shape[-2:]) for x in (x1, x2)]


def _pairs(x):
    """The numbers of the two rows of each pair, in pieces."""
    n = x.shape[0]
    pairs = FUNCTIONS["triu_indices"](n, n, 1, device=x.device)
    count = pairs.shape[1]
    step = max(_ROOM // max(x.shape[1], 1), 1)
    for k in range(0, max(count, 1), step):
        yield pairs.narrow(1, k, min(step, count - k)).unbind()


def _pdist_formula(g, input, out, p):
    at, found = 0, input * 0
    for a, b in _pairs(input):
        n = len(a)
        difference = input.index_select(0, a) - input.index_select(0, b)
        slopes = _slopes(g.narrow(0, at, n), difference, out.narrow(0, at, n), p)
        found, at = found.index_add(0, a, slopes).index_add(0, b, -slopes), at + n
    return found


@primitive(title="PdistBackward0", input=_pdist_formula)
def _pdist(input, p):
    x = input.detach()
    parts = [_distance("pdist", x.index_select(0, a), x.index_select(0, b), p) for a, b in _pairs(x)]
    return cat(parts) if len(parts) > 1 else parts[0]


@function
def pdist(input, p=2.0):
    """The distances, in the ``p``-norm, of all pairs of rows: the part of ``cdist(input, input)`` above the diagonal,
    row by row. Follows ``torch.nn.functional.pdist``.

    Args:
        input: a matrix (N, M)
        p: the order: a number not below 0, or ``inf``
    Returns:
        A vector of N (N - 1) / 2 distances.
    Raises:
        RuntimeError: ``input`` is no floating matrix, or ``p`` is negative
    """
    if input._h.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._h.ndim}D")
    _check("pdist", p, input)
    return _pdist(input, float(p))
