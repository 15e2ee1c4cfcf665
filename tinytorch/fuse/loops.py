"""How a stage's instructions are shared out among loops.

One loop for all would be the fewest passes, and half as fast as it should be: a function like ``tanh`` is a chain of
dependent instructions, and a processor hides its latency by working on several iterations at once, which it can only
while the body is short. So a loop holds about one such function, and whatever cheap operators stand around it; between
loops, values wait in blocks that stay in L1. A function that compilers do not vectorise has a loop to itself, for it
would slow down all others in its loop.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ..dtypes import ALL
from ..scalar import CHEAP, ELEMENTWISE, OPERATORS

HALF = 20  # the cost of a cast from or to float16
ROUNDED = {"round_f16": 14, "round_bf16": 8}
HEAVY = 40  # is heavy enough to be the only such function of its loop
MOST = 64  # of all instructions of a loop

REST = 12  # what an operator takes that begins like another of its loop: a compiler does that part once
_DIVISIONS = frozenset({"fmod", "remainder", "floor_divide"})
_SCALAR = {  # what compilers do not vectorise
    "f32": _DIVISIONS | {"zeta"},
    "f64": frozenset(op.name for op in ELEMENTWISE if op.cost > CHEAP) | ROUNDED.keys(),
}
_FLOATS = frozenset(d.suffix for d in ALL if d.is_floating_point)
_SCALAR_INT = _DIVISIONS | {"pow", "trunc_divide"}


class Instr(NamedTuple):
    """An instruction on elements. ``name``: the operator's; "cast" and "move" for the other kinds."""

    name: str
    dtype: str  # suffix of the dtype computed in, or cast from
    to: str  # of the dtype cast to
    out: int
    inputs: tuple[int, ...]
    node: int


def weight(instr: Instr) -> int:
    """About how many vector instructions it takes, as far as that matters here."""
    if instr.name == "cast":
        return HALF if "f16" in (instr.dtype, instr.to) else CHEAP
    if instr.dtype != "f32":
        return CHEAP
    return min(HEAVY, OPERATORS[instr.name].cost) if instr.name in OPERATORS else ROUNDED.get(instr.name, CHEAP)


def periodic(instr: Instr) -> bool:
    """Does the operator look at a block of arguments before it computes?"""
    return instr.dtype == "f32" and instr.name in OPERATORS and OPERATORS[instr.name].periodic


def alone(instr: Instr) -> bool:
    """Must the instruction have a loop to itself?"""
    if instr.name == "cast":  # without AVX-512 there is no vector instruction for these
        kinds = {instr.dtype, instr.to}
        return "i64" in kinds and not kinds.isdisjoint(_FLOATS)
    return periodic(instr) or instr.name in _SCALAR.get(instr.dtype, _SCALAR_INT)


def truncates(instr: Instr) -> bool:
    """Does it make an integer of a float? The next loop reads that from memory: where gcc sees that it becomes a float
    again, it takes the two casts for trunc(), which leaves -0.0 where there should be 0.0."""
    return instr.name == "cast" and instr.dtype in _FLOATS and instr.to not in _FLOATS and instr.to != "b8"


def _pair(instr: Instr) -> int:
    """The pair of operators that begin alike (for the same x, their last operand), or 0."""
    return OPERATORS[instr.name].pair if instr.name in OPERATORS else 0


class Loop:
    """Instructions that run in one pass over a block."""

    def __init__(self, alone: bool = False):
        self.alone = alone
        self.instrs: list[Instr] = []
        self.weight = 0

    def has_room(self, cost: int) -> bool:
        """May an instruction of that weight join?"""
        return not self.alone and (self.weight == 0 or self.weight + cost <= MOST)

    def begins_like(self, instr: Instr) -> bool:
        """Does another instruction here compute part of what this one does?"""
        pair = _pair(instr)
        return pair != 0 and any(
            other is not instr
            and _pair(other) == pair
            and (other.dtype, other.inputs[-1]) == (instr.dtype, instr.inputs[-1])
            for other in self.instrs
        )

    def cost(self, instr: Instr) -> int:
        """What an instruction would add to the weight."""
        return min(REST, weight(instr)) if self.begins_like(instr) else weight(instr)


def cut(instrs: Iterable[Instr], outputs: frozenset[int]) -> list[Loop]:
    """The loops that do ``instrs``, in the order in which they run; ``outputs`` are the slots to be left in memory."""
    loops: list[Loop] = []
    place: dict[int, int] = {}
    first: dict[int, int] = {}  # the loop from which on a value can be used
    for instr in instrs:
        single = alone(instr)
        at = max((first[s] for s in instr.inputs if s in first), default=0)
        if single:
            at = len(loops)
        while at < len(loops) and not loops[at].has_room(loops[at].cost(instr)):
            at += 1
        if at == len(loops):
            loops.append(Loop(single))
        loops[at].weight += loops[at].cost(instr)
        loops[at].instrs.append(instr)
        place[instr.out] = at
        first[instr.out] = at + (single or truncates(instr))
    if len(loops) > 1:
        _sink(loops, place, outputs)
    return [loop for loop in loops if loop.instrs]


def _sink(loops: list[Loop], place: dict[int, int], outputs: frozenset[int]) -> None:
    """Moves instructions to the loop of their only user where fewer values then wait between loops."""
    readers: dict[int, set[int]] = {}  # the loops that read a slot
    for at in range(len(loops) - 1, -1, -1):
        kept = []
        for instr in reversed(loops[at].instrs):
            to = at
            free = not (loops[at].alone or truncates(instr) or instr.out in outputs or loops[at].begins_like(instr))
            if free and len(readers.get(instr.out, ())) == 1:
                to = max(readers[instr.out])
                # Its result need not wait any more, but operands made in this loop must, if they did not anyway.
                more = any(place.get(s) == at and not readers.get(s, set()) - {at} for s in instr.inputs)
                if more or not loops[to].has_room(weight(instr)):
                    to = at
            if to > at:
                loops[to].instrs.insert(0, instr)
                loops[to].weight += weight(instr)
                loops[at].weight -= weight(instr)
                place[instr.out] = to
            else:
                kept.append(instr)
            for s in instr.inputs:
                readers.setdefault(s, set()).add(to)
        loops[at].instrs = kept[::-1]
