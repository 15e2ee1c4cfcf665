"""How the threads of a fused kernel that reduces share a row, and where its values wait between stages.

The text of a kernel over rows follows from the power of 2 that a row's length is not above, and from whether the row
fills its threads' elements; that of a kernel over columns from how many a thread block has.
"""

from __future__ import annotations

from typing import NamedTuple

from ..backends.cpu import lib
from .codegen import SIZES

THREADS = 256
BLOCK = 1024      # elements that are joined in 32 lanes: Note [The tree of a reduction]
REGISTERS = 65536  # of a multiprocessor, and its shared memory
SHARED = 200 * 1024
MOST_SHARED = 227 * 1024  # of any GPU, in a thread block
SPARE = 32        # registers beside a thread's elements
MOST_WORDS = 6    # of an element, in registers
MOST_BLOCKS = 32  # of a row: warps of a thread block
LEAST_COLUMNS = 8


class Waiting(NamedTuple):
    """What of a row's elements waits from one stage to the next."""

    slots: list[int]  # values, and operands that several stages load
    words: int        # of registers, for an element, where it is most
    again: bool       # operators that are cheap are computed anew in each stage

    @classmethod
    def of(cls, kernel, stages, again: bool, loads: bool, room: int = 1 << 30) -> Waiting:
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
        return cls(slots, max(ends), again)


class Planning:
    """The part of codegen_cuda.Kernel that decides this: what is ``waiting``, ``held`` in registers or ``shared`` in
    memory; and ``detail``, what the launch has to know."""

    def is_kept(self, s: int, loads: bool) -> bool:
        kinds = (lib.TT_SLOT_TEMP, lib.TT_SLOT_LOAD) if loads else (lib.TT_SLOT_TEMP,)
        return self.slots[s].level == 1 and self.slots[s].kind in kinds

    def words(self, s: int) -> int:
        return 2 if SIZES[self.type_of(s)] == 8 else 1

    def plan_columns(self) -> None:
        """``detail``: the columns of a thread block, fewer where few thread blocks are made more by that."""
        k = self.k
        size = max((SIZES[self.access_type(a)] for a in self.touched()), default=4)
        self.detail = max(1 << lib.tt_cuda_columns(k.inner, size, k.rows * -(-k.row // BLOCK)), LEAST_COLUMNS)

    def plan_rows(self, stages_of) -> None:
        """How a row is shared out, and where its values wait: in registers where they fit, or else in shared memory.
        ``stages_of(again)`` gives the stages, with cheap operators computed anew or kept."""
        row = self.k.row
        self.log = max(row - 1, 0).bit_length()
        self.each = 1 << max(min(self.log, 10) - 5, 0)
        self.warps = 1 << max(self.log - 10, 0)  # that share a row, at most
        self.whole = row == 32 * self.each if self.warps == 1 else row % BLOCK == 0
        self.most = THREADS if self.warps == 1 else 32 * self.warps
        choices = {again: stages_of(again) for again in (False, True)}
        room = min((min(REGISTERS // self.most, 224) - SPARE) // self.each, MOST_WORDS)
        for loads in (True, False):  # operands that several stages need are read once, if that may be
            plans = [Waiting.of(self, choices[again], again, loads) for again in (False, True)]
            self.waiting = min(plans, key=lambda plan: plan.words)
            if self.waiting.words <= room:
                break
        self.stages = choices[self.waiting.again]
        held = Waiting.of(self, self.stages, self.waiting.again, loads, room)
        self.held, self.held_words = frozenset(held.slots), held.words
        self.shared = [s for s in self.waiting.slots if s not in self.held]
        self.detail = sum((row * SIZES[self.type_of(s)] + 15) // 16 * 16 for s in self.shared)
