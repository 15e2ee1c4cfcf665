"""How the threads of a fused kernel that reduces share a row, and where its values wait between stages.

The text of a kernel over rows follows from the power of 2 that a row's length is not above, and from whether the row
fills its threads' elements; that of a kernel over columns from how many a thread block has.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from ..backends.cpu import lib
from ..dtypes import ALL
from ..scalar import CHEAP, ELEMENTWISE
from .codegen import SIZES

THREADS = 256
BLOCK = 1024  # elements that are joined in 32 lanes: Note [The tree of a reduction]
REGISTERS = 65536  # of a multiprocessor, and its shared memory
SHARED = 200 * 1024
MOST_SHARED = 227 * 1024  # of any GPU, in a thread block
PARTS = 256  # bytes of it that a reduction takes: kernels/cuda/host/fuse.c
SPARE = 32  # registers beside a thread's elements
MOST_WORDS = 6  # of an element, in registers
MOST_BLOCKS = 32  # of a row: warps of a thread block
LEAST_COLUMNS = 8


def inputs_of(instr) -> set[int]:
    """The slots that an instruction reads."""
    return {s for s in getattr(instr, "in") if s >= 0}


class Waiting(NamedTuple):
    """What of a row's elements waits from one stage to the next."""

    stages: list
    loads: bool  # so do operands that several stages load
    slots: list[int]
    words: int  # of registers, for an element, where it is most

    @classmethod
    def of(cls, kernel, stages, loads: bool, room: int = 1 << 30) -> Waiting:
        """Of as many slots as there is ``room`` for, in words."""
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for stage in stages:
            for s in {i.out for i in stage.instrs} | set(kernel.loads(stage) if loads else ()):
                first.setdefault(s, stage.number)
            for s in kernel.wanted(stage):
                last[s] = stage.number
        slots: list[int] = []
        ends = [0] * len(stages)  # words that wait at a stage's end
        for s in sorted(first):
            spans = range(first[s], last.get(s, 0))
            size = kernel.words(s)
            if spans and kernel.is_kept(s, loads) and all(ends[n] + size <= room for n in spans):
                slots.append(s)
                for n in spans:
                    ends[n] += size
        return cls(stages, loads, slots, max(ends))


class Planning:
    """The part of codegen_cuda.Kernel that decides this: what is ``waiting``, ``held`` in registers or ``shared`` in
    memory; and ``detail``, what the launch has to know."""

    def is_kept(self, s: int, loads: bool) -> bool:
        kinds = (lib.TT_SLOT_TEMP, lib.TT_SLOT_LOAD) if loads else (lib.TT_SLOT_TEMP,)
        return self.slots[s].level == 1 and self.slots[s].kind in kinds

    def words(self, s: int) -> int:
        return 2 if SIZES[self.type_of(s)] == 8 else 1

    def plan_columns(self) -> None:
        """``pair``: a thread takes two columns, of elements of less than 4 bytes. ``detail``: the columns of a thread
        block, fewer where few thread blocks are made more by that."""
        k, touched = self.k, [self.accesses[a] for a in self.touched()]
        sizes = [ALL[x.dtype].itemsize for x in touched if not x.one]
        made = {i.out for stage in self.stages for i in stage.instrs}
        self.pair = (
            min(sizes, default=4) < 4
            and max(sizes) <= 4
            and k.inner % 2 == 0
            and all(x.flat or x.one for x in touched)
            and all(x.slot in made for x in self.stores)
            and all(f.param < 0 for f in self.reductions)
        )
        size = max(sizes, default=4)
        columns = lib.tt_cuda_columns(k.inner >> self.pair, size << self.pair, k.rows * -(-k.row // BLOCK))
        self.detail = max(1 << columns, LEAST_COLUMNS) << self.pair

    def recompute_costs(self) -> dict[int, float]:
        """Rematerialisation cost of each slot in a later stage, from operands and values of rows, in the weights of
        loops.py. Infinite where a store may have overwritten an operand by then."""
        written = {self.accesses[x.access].storage for x in self.stores if x.stage < self.k.num_stages - 1}
        lost = {
            s
            for s in range(self.k.num_slots)
            if self.slots[s].kind == lib.TT_SLOT_LOAD and self.accesses[self.slots[s].index].storage in written
        }
        costs: dict[int, float] = {}
        for i in self.instrs:
            of_inputs = (math.inf if s in lost else costs.get(s, 0) for s in inputs_of(i))
            costs[i.out] = sum(of_inputs, ELEMENTWISE[i.op].cost if i.kind == lib.TT_INSTR_OP else CHEAP)
        return costs

    def deferred(self, costs: dict[int, float]) -> set[int]:
        """The values that only one later stage uses, and that need not wait for it: they are made of operands alone."""
        uses: dict[int, set[int]] = {i.out: set() for i in self.instrs}
        for x in (*self.stores, *self.reductions):
            uses.setdefault(x.slot, set()).add(x.stage)
        late: set[int] = set()
        for i in reversed(self.instrs):
            if len(uses[i.out]) == 1 and min(uses[i.out]) > i.stage and costs[i.out] < math.inf:
                late.add(i.out)
            for s in inputs_of(i):
                uses.setdefault(s, set()).update(uses[i.out] if i.out in late else {i.stage})
        for i in self.instrs:
            if not late.issuperset(costs.keys() & inputs_of(i)):
                late.discard(i.out)
        return late

    def choose(self, plan: Waiting, room: int) -> None:
        """Registers hold what there is room for, shared memory the rest."""
        held = Waiting.of(self, plan.stages, plan.loads, room)
        self.stages, self.waiting = plan.stages, plan.slots
        self.held, self.held_words = frozenset(held.slots), held.words
        self.shared = [s for s in plan.slots if s not in self.held]
        self.detail = sum((self.k.row * SIZES[self.type_of(s)] + 15) // 16 * 16 for s in self.shared)

    def fits(self) -> bool:
        return self.detail + PARTS * len(self.reductions) <= MOST_SHARED

    def plan_rows(self) -> bool:
        """Divides a row among threads, and keeps its values in registers where they fit, else in shared memory. False
        if shared memory is too small although every slot that can be recomputed is."""
        row = self.k.row
        self.log = max(row - 1, 0).bit_length()
        self.each = 1 << max(min(self.log, 10) - 5, 0)
        self.warps = 1 << max(self.log - 10, 0)  # that share a row, at most
        self.whole = row == 32 * self.each if self.warps == 1 else row % BLOCK == 0
        self.most = THREADS if self.warps == 1 else 32 * self.warps
        room = min((min(REGISTERS // self.most, 224) - SPARE) // self.each, MOST_WORDS)
        self.instrs = sorted((i for i in self.k.instrs[0 : self.k.num_instrs] if i.level == 1), key=lambda i: i.out)
        costs = self.recompute_costs()
        late = self.deferred(costs)
        choices = [late, late.union(i.out for i in self.instrs if i.recompute), set()]
        for loads in (True, False):  # operands that several stages need are read once, if that may be
            plans = [Waiting.of(self, self.stages_of(recompute), loads) for recompute in choices]
            plan = min(plans, key=lambda plan: plan.words)
            if plan.words <= room:
                break
        self.choose(plan, room)
        by_cost = sorted((s for s, cost in costs.items() if cost < math.inf), key=lambda s: costs[s])
        for n in range(1, len(by_cost) + 1):  # what is made from another costs more
            if self.fits():
                break
            self.choose(Waiting.of(self, self.stages_of(late.union(by_cost[:n])), False), room)
        return self.fits()
