"""A line search for the strong Wolfe conditions (Nocedal and Wright 2006, algorithms 3.5 and 3.6), by cubic
interpolation."""

from __future__ import annotations

import math
from typing import NamedTuple

from ..tensor import Tensor


class Point(NamedTuple):
    """A step length ``t`` along the line: loss there, gradient, and slope along the line."""

    t: float
    loss: float
    grad: Tensor
    slope: float


def minimum(p: Point, q: Point, least: float, largest: float) -> float:
    """Where the cubic through two points with these slopes is least, within bounds; the middle where it has no
    minimum (Nocedal and Wright, equation 3.59)."""
    a, b = (p, q) if p.t <= q.t else (q, p)
    d1 = a.slope + b.slope - 3 * (p.loss - q.loss) / (p.t - q.t)
    square = d1 * d1 - a.slope * b.slope
    if not square >= 0:
        return (least + largest) / 2
    d2 = math.sqrt(square)
    at = b.t - (b.t - a.t) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2))
    return min(max(at, least), largest)


def strong_wolfe(
    evaluate, start: Point, t: float, size: float, evaluations: int, c1=1e-4, c2=0.9, tolerance=1e-9
) -> tuple[Point, int]:
    """A point where the loss has decreased enough and the slope is small enough, or the best of at most
    ``evaluations`` + 1 points. ``evaluate(t)`` gives a `Point`; ``start`` is that of t = 0; ``size``: the largest
    element of the direction. Returns the point, and how often ``evaluate`` was called."""

    def too_high(p: Point) -> bool:
        return p.loss > start.loss + c1 * p.t * start.slope

    def flat(p: Point) -> bool:
        return abs(p.slope) <= -c2 * start.slope

    # A bracket: two points between which there is one that is wanted.
    before, point, calls = start, evaluate(t), 1
    bracket = None
    for i in range(evaluations):
        if too_high(point) or (i > 1 and point.loss >= before.loss) or point.slope >= 0 and not flat(point):
            bracket = [before, point]
            break
        if flat(point):
            return point, calls
        t = minimum(before, point, point.t + 0.01 * (point.t - before.t), point.t * 10)
        before, point = point, evaluate(t)
        calls += 1
    if bracket is None:
        bracket = [start, point]

    # Zoom in: the lower point is kept, the other one moves.
    lower, higher = sorted(bracket, key=lambda p: p.loss)
    stalled = False
    while calls <= evaluations and abs(lower.t - higher.t) * size >= tolerance:
        first, last = sorted((lower.t, higher.t))
        t = minimum(*bracket, first, last)
        margin = 0.1 * (last - first)
        near_end = min(last - t, t - first) < margin
        if near_end and (stalled or t >= last or t <= first):
            t = last - margin if abs(t - last) < abs(t - first) else first + margin
            near_end = False
        stalled = near_end
        point = evaluate(t)
        calls += 1
        if too_high(point) or point.loss >= lower.loss:
            higher = point
            if higher.loss < lower.loss:
                lower, higher = higher, lower
        else:
            if flat(point):
                return point, calls
            if point.slope * (higher.t - lower.t) >= 0:
                higher = lower
            lower = point
        bracket = [higher, lower]
    return lower, calls
