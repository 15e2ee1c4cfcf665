"""C source for a kernel's stages, which a person can read.

For each stage of a ``tt_kernel`` (kernels/api/fuse.h) there is one function, ``void fused_<stage>(char **slot,
int64_t n)``, that does for n elements what the interpreter does with the stage's instructions on elements: the same
scalar functions (kernels/scalar), so the same bits, but intermediates stay in registers. The text follows from the
kernel's structure alone, not from sizes or addresses, so that the same operators on another shape find it in the cache.

Memory that a function writes may be memory that it reads only element for element (the same address and size): within
a block of BLOCK elements, and within a loop, everything is read before anything is written.
"""

from __future__ import annotations

from collections.abc import Callable, Set

from ..backends.cpu import lib
from ..dtypes import ALL, SUFFIXES
from ..scalar import ELEMENTWISE, OPERATORS
from .loops import Instr, Loop, cut, periodic, truncates

PREFIX = "fused_"
BLOCK = 1024  # elements that several loops work on in turn
BLOCKS_BYTES = 32768  # of values that wait between the loops: they should stay in L1; beyond that, blocks are shorter

C_TYPES = {d.suffix: d.c_type for d in ALL}
SIZES = {d.c_type: d.itemsize for d in ALL}
_KINDS = {
    lib.TT_SLOT_TEMP: "temp",
    lib.TT_SLOT_LOAD: "load",
    lib.TT_SLOT_RANDOM: "load",
    lib.TT_SLOT_ONE: "one",
    lib.TT_SLOT_CONST: "const",
    lib.TT_SLOT_ROW: "row",
}


def source(kernel, lines: Callable[[int], str] | None = None) -> str:
    """The C source of a ``tt_kernel *``.

    ``lines`` maps an instruction's node to the user's "file:line", or "" where it is not known; with it, the list of
    operators at the top names them. ValueError for a kernel that is not as fuse.h describes it.
    """
    stages = [Stage(kernel, number) for number in range(kernel.num_stages)]
    blocks = sorted({instr.name for stage in stages for instr in stage.instrs if stage.is_block(instr)})
    special = ['#include "special.h"'] if any(is_special(stage.instrs) for stage in stages) else []
    parts = ["/* A fused kernel: what it computes, in order.", " *"]
    for stage in stages:
        if len(stages) > 1:
            parts.append(f" * stage {stage.number}")
        texts = [stage.summary(instr) for instr in stage.instrs]
        places = [lines(instr.node) if lines else "" for instr in stage.instrs]
        width = max(map(len, texts), default=0)
        parts += [f" *   {t:{width}}  {p}".rstrip() for t, p in zip(texts, places)]
    parts += [" */", "#include <stdint.h>", '#include "cast.h"', *special, '#include "loop.h"', ""]
    parts += [f"TT_PERIODIC_BLOCK({name})" for name in blocks]
    for stage in stages:
        parts += ["", *stage.function()]
    return "\n".join(parts) + "\n"


def is_special(instrs) -> bool:
    """Is a scalar function of special.h among them, which few kernels pay for?"""
    return any(instr.name in OPERATORS and OPERATORS[instr.name].special for instr in instrs)


def name_of(instr) -> str:
    """Of a ``tt_instr``, as in Instr."""
    if instr.kind == lib.TT_INSTR_OP:
        return ELEMENTWISE[instr.op].name
    return "cast" if instr.kind == lib.TT_INSTR_CAST else "move"


def _needed(wanted: set[int], recomputed: dict[int, Instr], made: set[int]) -> list[Instr]:
    """The instructions of earlier stages that a stage recomputes for the slots ``wanted``, in order."""
    needed = (wanted & recomputed.keys()) - made
    for s in sorted(recomputed, reverse=True):  # slots are numbered in the order of instructions
        if s in needed:
            needed.update(t for t in recomputed[s].inputs if t in recomputed)
    return [recomputed[s] for s in sorted(needed - made)]


class Stage:
    """One stage of a kernel: what it reads, computes and leaves in memory."""

    def __init__(self, kernel, number: int, recompute: Set[int] | None = None):
        """``recompute``: slots rematerialised in each stage that uses them; None: the planner's choice."""
        self.number = number
        self.slots = kernel.slots
        self.one_row = self.rows_apart(kernel)
        own, recomputed = [], {}
        for i in kernel.instrs[0 : kernel.num_instrs]:
            if i.level == 1 and i.stage <= number:
                instr = Instr(
                    name_of(i),
                    SUFFIXES[i.dtype],
                    SUFFIXES[i.to] if i.kind == lib.TT_INSTR_CAST else "",
                    i.out,
                    tuple(s for s in getattr(i, "in") if s >= 0),
                    i.node,
                )
                if i.stage == number:
                    own.append(instr)
                if i.recompute if recompute is None else i.out in recompute:
                    recomputed[i.out] = instr
        made = {instr.out for instr in own}
        if len(made) < len(own):
            raise ValueError(f"codegen: stage {number} writes a slot twice")
        wanted = {s.slot for s in kernel.stores[0 : kernel.num_stores] if s.stage == number}
        wanted |= {f.slot for f in kernel.reductions[0 : kernel.num_reductions] if f.stage == number}
        self.instrs = [*_needed(wanted.union(*(instr.inputs for instr in own)), recomputed, made), *own]
        kept = {s for s in made - recomputed.keys() if self.slots[s].last > number}
        made.update(instr.out for instr in self.instrs)
        self.outputs = [instr.out for instr in self.instrs if instr.out in wanted | kept]
        self._round_halves()
        self._drop_unused()
        used = sorted({s for instr in self.instrs for s in instr.inputs} - made)
        self.ones = [s for s in used if self._is_one(s)]
        self.arrays = [s for s in used if s not in self.ones]
        self.names = {instr.out: f"{instr.name}_{instr.out}" for instr in self.instrs}
        for s in used:
            kind = _KINDS.get(self.slots[s].kind)
            if kind is None or (kind == "temp" and self.slots[s].stage >= number):
                raise ValueError(f"codegen: stage {number} reads slot {s} before it is made")
            self.names[s] = f"{kind}_{s}"
        self.scalars = set(self.ones)  # what is there before the loops
        self.first = [instr for instr in self.instrs if self._is_scalar(instr)]

    @staticmethod
    def rows_apart(kernel) -> bool:
        """Is a row's value one element? With several rows a block it has been spread over the rows' elements."""
        return kernel.block < 2 * kernel.row

    def _round_halves(self) -> None:
        """A cast to a half type and back becomes one operator; the half is only made if it is wanted itself."""
        halves = {}
        for at, instr in enumerate(self.instrs):
            if instr.name != "cast":
                continue
            if instr.dtype == "f32" and instr.to in ("f16", "bf16"):
                halves[instr.out] = instr
            elif instr.to == "f32" and instr.inputs[0] in halves:
                half = halves[instr.inputs[0]]
                self.instrs[at] = Instr(f"round_{half.to}", "f32", "", instr.out, half.inputs, half.node)

    def _is_scalar(self, instr: Instr) -> bool:
        """Is the result the same for all elements, and to be computed once? Not so a float64, of which a compiler might
        see that it is one of two constants, and compute what a function of the library makes of them by itself; nor an
        integer that was a float (see truncates)."""
        if truncates(instr) or self.c_type(instr.out) == "double" or not self.scalars.issuperset(instr.inputs):
            return False
        self.scalars.add(instr.out)
        return True

    def _drop_unused(self) -> None:
        needed, kept = set(self.outputs), []
        for instr in reversed(self.instrs):
            if instr.out in needed:
                needed.update(instr.inputs)
                kept.append(instr)
        self.instrs = kept[::-1]

    def _is_one(self, s: int) -> bool:
        kind = self.slots[s].kind
        return kind in (lib.TT_SLOT_ONE, lib.TT_SLOT_CONST) or (kind == lib.TT_SLOT_ROW and self.one_row)

    def is_block(self, instr: Instr) -> bool:
        """Does a function over a block of arguments compute it?"""
        return periodic(instr) and instr.inputs[0] not in self.scalars

    def c_type(self, s: int) -> str:
        """Of a slot's elements."""
        return C_TYPES[SUFFIXES[self.slots[s].dtype]]

    def summary(self, instr: Instr) -> str:
        """An instruction as the list at the top shows it."""
        arguments = ", ".join(self.names[s] for s in instr.inputs)
        what = f"{instr.dtype} as {instr.to}" if instr.name == "cast" else instr.dtype
        return f"{self.names[instr.out]} = {instr.name}({arguments})  {what}"

    def expression(self, instr: Instr) -> str:
        """What an instruction computes."""
        arguments = ", ".join(self.names[s] for s in instr.inputs)
        if instr.name == "move" or (instr.name == "cast" and instr.dtype == instr.to):
            return arguments
        if instr.name == "cast":
            return f"tt_cast_{instr.dtype}_{instr.to}({arguments})"
        return f"tt_{instr.name}_{instr.dtype}({arguments})"

    def statement(self, instr: Instr) -> str:
        """The variable that an instruction makes."""
        return f"const {self.c_type(instr.out)} {self.names[instr.out]} = {self.expression(instr)};"

    def function(self) -> list[str]:
        """The lines of the stage's function."""
        head = [f"void {PREFIX}{self.number}(char **slot, int64_t n) {{"]
        if not self.instrs:
            return [*head, "    (void)slot, (void)n;", "}"]
        for s in self.arrays:
            head.append(f"    const {self.c_type(s)} *in_{s} = (const {self.c_type(s)} *)slot[{s}];")
        for s in self.outputs:
            head.append(f"    {self.c_type(s)} *out_{s} = ({self.c_type(s)} *)slot[{s}];")
        for s in self.ones:
            head.append(f"    const {self.c_type(s)} {self.names[s]} = *(const {self.c_type(s)} *)slot[{s}];")
        head += [f"    {self.statement(instr)}" for instr in self.first]
        plan = Plan(self, cut((i for i in self.instrs if i.out not in self.scalars), frozenset(self.outputs)))
        if len(plan.loops) == 1 and not plan.loops[0].alone:
            return [*head, *plan.loop(0, "    ", "n"), "}"]
        head += plan.declarations()
        steps = "".join(f", in_{s} += m" for s in self.arrays) + "".join(f", out_{s} += m" for s in self.outputs)
        head += [f"    for (int64_t m; n > 0; n -= m{steps}) {{", f"        m = n < {plan.block} ? n : {plan.block};"]
        for at in range(len(plan.loops)):
            head += plan.loop(at, "        ", "m")
        return [*head, "    }", "}"]


class Plan:
    """Where the values of a stage wait between its loops, and the text of each loop."""

    def __init__(self, stage: Stage, loops: list[Loop]):
        self.stage, self.loops = stage, loops or [Loop()]
        self.place = {instr.out: at for at, loop in enumerate(loops) for instr in loop.instrs}
        reads = {at: {s for i in loop.instrs for s in i.inputs} for at, loop in enumerate(loops)}
        last_read = max((at for at, used in reads.items() if used & set(stage.arrays)), default=0)
        # An output may lie where an array lies: it is written when no later loop reads one.
        self.write: dict[int, int] = {}
        for s in stage.outputs:
            at = max(self.place.get(s, 0), last_read)
            if at != self.place.get(s) and self.loops[at].alone:
                if self.loops[-1].alone:
                    self.loops.append(Loop())
                at = len(self.loops) - 1
            self.write[s] = at
        self.until = dict(self.place)  # the last loop that reads a value from its block
        for at, used in reads.items():
            for s in used & self.place.keys():
                self.until[s] = max(self.until[s], at)
        for s in self.place.keys() & self.write.keys():
            self.until[s] = max(self.until[s], self.write[s])
        self._share()

    def _share(self) -> None:
        """Gives every value that waits a block, which later values of its type take over."""
        self.blocks: dict[int, str] = {}
        counts: dict[str, int] = {}
        free: dict[str, list[int]] = {}
        ends: dict[int, list[tuple[str, int]]] = {}
        for at, loop in enumerate(self.loops):
            for instr in loop.instrs:
                s = instr.out
                if self.until[s] == at or self.write.get(s) == at:
                    continue
                kind = SUFFIXES[self.stage.slots[s].dtype]
                if free.get(kind):
                    number = free[kind].pop()
                else:
                    number = counts[kind] = counts.get(kind, -1) + 1
                self.blocks[s] = f"{kind}[{number}]"
                ends.setdefault(self.until[s], []).append((kind, number))
            for kind, number in ends.get(at, ()):
                free.setdefault(kind, []).append(number)
        self.counts = {kind: last + 1 for kind, last in counts.items()}
        total = sum(n * SIZES[C_TYPES[kind]] for kind, n in self.counts.items())
        self.block = BLOCK
        while self.block > 128 and total * self.block > BLOCKS_BYTES:
            self.block //= 2

    def declarations(self) -> list[str]:
        """Of the blocks."""
        lines = [
            f"    {C_TYPES[kind]} {kind}[{n}][{self.block}] __attribute__((aligned(64)));"
            for kind, n in sorted(self.counts.items())
        ]
        return lines + [f"    {self.stage.c_type(s)} *at_{s} = {where};" for s, where in self.blocks.items()]

    def _from(self, s: int) -> str:
        """Where a slot that was made in an earlier loop, or is no scalar, can be read."""
        return f"at_{s}" if s in self.blocks else f"out_{s}" if s in self.place else f"in_{s}"

    def loop(self, at: int, indent: str, count: str) -> list[str]:
        """The lines of one loop over ``count`` elements."""
        stage, loop = self.stage, self.loops[at]
        if loop.alone and stage.is_block(loop.instrs[0]):
            instr = loop.instrs[0]
            to = f"out_{instr.out}" if self.write.get(instr.out) == at else f"at_{instr.out}"
            return [f"{indent}{instr.name}_block({to}, {self._from(instr.inputs[0])}, {count});"]
        here = {instr.out for instr in loop.instrs}
        late = [s for s, w in self.write.items() if w == at and s not in here]
        reads = {s for i in loop.instrs for s in i.inputs}.union(late) - here - stage.scalars
        body = [f"const {stage.c_type(s)} {stage.names[s]} = {self._from(s)}[i];" for s in sorted(reads)]
        body += [stage.statement(instr) for instr in loop.instrs]
        for s in (*late, *(i.out for i in loop.instrs)):
            if self.write.get(s) == at:
                body.append(f"out_{s}[i] = {stage.names[s]};")
            elif s in self.blocks:
                body.append(f"at_{s}[i] = {stage.names[s]};")
        head = [f"{indent}TT_INDEPENDENT", f"{indent}for (int64_t i = 0; i < {count}; i++) {{"]
        return [*head, *(f"{indent}    {line}" for line in body), f"{indent}}}"]
