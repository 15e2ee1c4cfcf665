"""Rules of costs.py: the bytes and operations of an operator, from its operands that are tensors and from its results,
as far as they are known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple


class Cost(NamedTuple):
    """Of one call."""

    bytes: int
    flops: int


class Operand(NamedTuple):
    """A tensor as costs see it."""

    shape: tuple[int, ...]
    itemsize: int

    @property
    def numel(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.numel * self.itemsize


NOTHING = Cost(0, 0)
Operands = Sequence[Operand]
Rule = Callable[[Operands, Operands], "Cost | None"]


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def total(operands: Iterable[Operand]) -> int:
    return sum(o.nbytes for o in operands)


def broadcast(operands: Operands) -> tuple[int, ...]:
    """The shape that operands broadcast to."""
    shape: list[int] = []
    for o in operands:
        shape[:0] = [1] * (len(o.shape) - len(shape))
        for k in range(1, len(o.shape) + 1):
            if shape[-k] == 1:
                shape[-k] = o.shape[-k]
    return tuple(shape)


def pointwise(work: int, itemsize: int = 0) -> Rule:
    """Each element of the result from those of the operands at its place."""

    def rule(ins: Operands, outs: Operands) -> Cost | None:
        if not outs:
            if not ins:
                return None
            outs = [Operand(broadcast(ins), itemsize or max(o.itemsize for o in ins))]
        return Cost(total(ins) + total(outs), work * sum(o.numel for o in outs[:1]))

    return rule


def folded(work: int) -> Rule:
    """Many elements to one. What is written, where it is not known, is small beside what is read."""
    return lambda ins, outs: Cost(total(ins) + total(outs), work * ins[0].numel) if ins else None


def along(work: int, extra: int = 0) -> Rule:
    """Along rows or columns, the result as large as the first operand; ``extra`` bytes for each element beside it."""

    def rule(ins: Operands, outs: Operands) -> Cost | None:
        if not ins:
            return None
        written = total(outs) if outs else ins[0].nbytes + extra * ins[0].numel
        return Cost(total(ins) + written, work * ins[0].numel)

    return rule


def dropped(ins: Operands, outs: Operands) -> Cost | None:
    """Elements multiplied, and a byte noted of each."""
    return Cost(2 * ins[0].nbytes + ins[0].numel, ins[0].numel) if ins else None


def into(work: int = 0) -> Rule:
    """The first operand is overwritten, in full, from the others."""
    return lambda ins, outs: Cost(total(ins), work * ins[0].numel) if ins else None


def moved(ins: Operands, outs: Operands) -> Cost | None:
    """All operands are copied to the result."""
    return Cost(total(ins) + (total(outs) if outs else total(ins)), 0) if ins else None


def picked(ins: Operands, outs: Operands) -> Cost | None:
    """Elements of the first operand that the others, or numbers, choose."""
    if not ins or not outs and len(ins) < 2:
        return None
    if not outs:
        outs = [Operand(ins[1].shape, ins[0].itemsize)]
    return Cost(total(ins[1:]) + 2 * total(outs), 0)


def indexed(ins: Operands, outs: Operands) -> Cost | None:
    """With a tensor in the brackets a copy, else a view."""
    return picked(ins, outs) if len(ins) > 1 else NOTHING


def looked_up(ins: Operands, outs: Operands) -> Cost | None:
    """Rows of a table, an operand of two dimensions, by the numbers in the other."""
    table = next((o for o in ins if o.itemsize < 8 and len(o.shape) == 2), ins[-1] if ins else None)
    if len(ins) < 2 or not table.shape:
        return None
    numbers = sum(o.numel for o in ins if o is not table)
    return Cost(total(o for o in ins if o is not table) + 2 * numbers * table.shape[-1] * table.itemsize, 0)


def scattered(inplace: bool, work: int) -> Rule:
    """What the later operands hold is put into, or added to, chosen elements of the first, or of a copy of it."""

    def rule(ins: Operands, outs: Operands) -> Cost | None:
        if not ins:
            return None
        numbers = [o for o in ins[1:] if o.itemsize == 8]
        values = next((o for o in reversed(ins[1:]) if o.numel and o.itemsize == ins[0].itemsize), None)
        put = values.numel if values else max((o.numel for o in numbers), default=0)
        moved = total(ins[1:]) + put * ins[0].itemsize * (2 if work else 1)
        return Cost(moved + (0 if inplace else 2 * ins[0].nbytes), work * put)

    return rule


def made(work: int = 0) -> Rule:
    """From nothing; what is not known to be made costs nothing known."""
    return lambda ins, outs: Cost(total(outs), work * sum(o.numel for o in outs)) if outs else None


def ordered(ins: Operands, outs: Operands) -> Cost | None:
    """Values and their numbers; a comparison for each level."""
    if not ins:
        return None
    levels = max(1, math.ceil(math.log2(max(2, ins[0].shape[-1] if ins[0].shape else 1))))
    return Cost(total(ins) + (total(outs) if outs else ins[0].nbytes + 8 * ins[0].numel), levels * ins[0].numel)


def _multiplied(a: Operand, b: Operand, outs: Operands, extra: Operands = (), more: int = 0) -> Cost:
    """a @ b, of any dimensions, by matmul's rules; ``extra`` operands are added, ``more`` operations for an element."""
    rows = a.shape[-2] if len(a.shape) > 1 else 1
    inner = a.shape[-1] if a.shape else 1
    cols = b.shape[-1] if len(b.shape) > 1 else 1
    batch = math.prod(broadcast([Operand(a.shape[:-2], 1), Operand(b.shape[:-2], 1)]))
    count = batch * rows * cols
    written = total(outs) if outs else count * max(a.itemsize, b.itemsize)
    return Cost(a.nbytes + b.nbytes + total(extra) + written, 2 * count * inner + more * count)


def product(ins: Operands, outs: Operands) -> Cost | None:
    return _multiplied(ins[0], ins[1], outs) if len(ins) > 1 else None


def added_product(ins: Operands, outs: Operands) -> Cost | None:
    """input + a @ b; addbmm's sum over the stack too."""
    if len(ins) < 3:
        return None
    return _multiplied(ins[1], ins[2], outs or [ins[0]], ins[:1], 1)


def linear(ins: Operands, outs: Operands) -> Cost | None:
    """x (*, k) by weight (n, k), transposed, and bias (n)."""
    if len(ins) < 2 or not ins[0].shape:
        return None
    x, weight = ins[0], ins[1]
    flat = Operand((x.numel // max(1, x.shape[-1]), x.shape[-1]), x.itemsize)
    return _multiplied(flat, Operand(weight.shape[::-1], weight.itemsize), outs, ins[2:], len(ins) > 2)


def outer(ins: Operands, outs: Operands) -> Cost | None:
    if len(ins) < 2:
        return None
    a, b = ins[-2:]
    return Cost(total(ins) + a.numel * b.numel * a.itemsize, (len(ins) - 1) * a.numel * b.numel)


def distances(ins: Operands, outs: Operands) -> Cost | None:
    """Between each two rows of one matrix: a difference, its power, a sum."""
    n, m = ins[0].shape
    pairs = n * (n - 1) // 2
    return Cost(total(ins) + pairs * ins[0].itemsize, 3 * pairs * m)


def bilinear(ins: Operands, outs: Operands) -> Cost | None:
    """x (*, i), y (*, j), weight (o, i, j), bias (o)."""
    if len(ins) < 3 or len(ins[2].shape) != 3:
        return None
    o, i, j = ins[2].shape
    rows = ins[0].numel // max(1, i)
    return Cost(total(ins) + rows * o * ins[0].itemsize, rows * o * (2 * i * j + 2 * j))


def attention(ins: Operands, outs: Operands) -> Cost | None:
    """query (*, l, e), key (*, s, e), value (*, s, v): two products, and a softmax of (*, l, s)."""
    if len(ins) < 3 or min(len(o.shape) for o in ins[:3]) < 2:
        return None
    q, k, v = ins[:3]
    scores = math.prod(q.shape[:-1]) * k.shape[-2]
    written = math.prod(q.shape[:-1]) * v.shape[-1]
    return Cost(total(ins) + written * q.itemsize, scores * (2 * q.shape[-1] + 2 * v.shape[-1] + 22))


def convolved(ins: Operands, outs: Operands) -> Cost | None:
    """Input, weight (o, i, *taps) and bias; each element of the result from i times taps elements."""
    if len(ins) < 2 or not outs:
        return None
    weight = ins[1]
    each = 2 * weight.numel // max(1, weight.shape[0]) + (len(ins) > 2)
    return Cost(total(ins) + total(outs), each * outs[0].numel)


def convolved_back(ins: Operands, outs: Operands) -> Cost | None:
    """Input, weight (i, o, *taps) and bias; each element of the input goes into o times taps elements."""
    if len(ins) < 2 or not outs:
        return None
    each = 2 * ins[1].numel // max(1, ins[1].shape[0])
    return Cost(total(ins) + total(outs), each * ins[0].numel + (len(ins) > 2) * outs[0].numel)


def free(ins: Operands, outs: Operands) -> Cost:
    return NOTHING


def decomposed(flops: Callable[[int, int, int], float]) -> Rule:
    """Each matrix of a stack is decomposed; ``flops(long, k, r)`` of its longer and shorter side, and the columns of B
    (Golub and Van Loan, "Matrix Computations"). Where the results are not known, they are taken to be as large as A."""

    def rule(ins: Operands, outs: Operands) -> Cost | None:
        if not ins or len(ins[0].shape) < 2:
            return None
        *batch, m, n = ins[0].shape
        columns = ins[-1].shape[-1] if len(ins) > 1 and len(ins[-1].shape) > 1 else 1
        work = math.prod(batch) * flops(max(m, n), min(m, n), columns)
        return Cost(total(ins) + (total(outs) if outs else total(ins[-1:])), round(work))

    return rule


def transformed(of_one: float, several: bool) -> Rule:
    """``of_one`` operations for each element and each halving of the last dimension, or of ``several``: of all."""

    def rule(ins: Operands, outs: Operands) -> Cost | None:
        if not ins or not ins[0].shape:
            return None
        x, written = ins[0], outs or ins[:1]
        numel = max(x.numel, written[0].numel)
        size = numel if several else max(x.shape[-1], written[0].shape[-1])
        return Cost(total(ins) + total(written), round(of_one * numel * math.log2(max(size, 2))))

    return rule
