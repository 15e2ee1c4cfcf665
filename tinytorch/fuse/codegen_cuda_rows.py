"""The patterns of kernels that reduce, for codegen_cuda.

A thread has some elements of a row, those of one lane of the reduction's tree (outer reductions: of some lanes). It
works on them in batches, for memory is far away: first it loads a whole batch, then it computes, and then it adds to
accumulators and stores. It computes a few elements at a time as for usual arguments
(kernels/cuda/device/common_case.cuh), and recomputes them if one was not. Elements beyond a row's end are computed too,
from ones: that takes less than to branch.
"""

import math
from typing import NamedTuple

from ..backends.cpu import lib
from ..dtypes import SUFFIXES
from ..scalar import ELEMENTWISE
from .codegen import SIZES
from .codegen_cuda_plan import BLOCK, REGISTERS, SHARED, SPARE, THREADS
from .codegen_cuda_reducers import Joining

LOADS = 32  # words that a thread has under way
LATER = 16  # ... while others wait in its registers
LEAST = 4  # elements of a batch
PART = 8  # elements that are recomputed together where one of them is unusual
ONES = {"f16": "0x3c00", "bf16": "0x3f80"}


class Span(NamedTuple):
    """A thread's elements: ``count``, of which ``e`` is the number. Text in C++ says where they are."""

    count: int
    guard: str  # is the element there? "": all are
    position: str  # row-major
    step: str  # elements between a thread's, where they follow each other
    acc: str = ""  # which of the accumulators is the element's
    held: frozenset = frozenset()  # slots that stay in registers from one stage to the next
    unrolled: bool = True  # all batches
    loads: int = LOADS  # words under way
    pair: bool = False  # two elements that follow each other are of neighbouring columns: they are read together
    going_on: str = ""  # is there anything in a batch that begins at b? "": so there is

    def at(self, e: str) -> tuple[str, str]:
        """Which of a thread's rows an element is in, and which of its columns."""
        return (f"({e} >> 1)", f" + ({e} & 1)") if self.pair else (e, "")


class Reducing(Joining):
    """The part of codegen_cuda.Kernel that writes reductions."""

    # A thread's elements.

    def reach(self, a: int) -> str:
        """How an access gets from one of a thread's elements to the next."""
        x, k = self.accesses[a], self.k
        if x.one:
            return "one"
        if x.flat:
            return "flat"
        if self.pattern == "outer_reduction":  # whose dimensions may be merged with those around them
            shape = list(k.shape)[: k.ndim]
            alone = shape[k.kept : k.kept + 1] == [k.row] and math.prod(shape[: k.kept]) == k.rows
            return "line" if alone else "apart"
        if k.ndim - k.kept != 1:
            return "apart"
        unit = x.strides[k.kept] == SIZES[self.access_type(a)]
        return "unit" if unit else "line"

    def pointers(self, apart: int) -> list[str]:
        """Declares, for each access, the pointer to the thread's first element in row r (and column c), and the byte
        stride between its elements, which are ``apart`` elements of the row from each other. Also the pointers to
        values of one per row."""
        wanted, columns = self.touched(), self.pattern == "outer_reduction"
        moved = [a for a in wanted if self.reach(a) in ("unit", "line")]
        rows = [a for a, x in enumerate(self.accesses) if x.level == 0 and self.pattern == "row_reduction"]
        text = self.strided([*moved, *rows], 0, self.k.kept, "r", "    ", "row")
        if columns:
            text += self.strided(moved, self.k.kept + 1, self.k.ndim, "c", "    ", "column")
        for a in sorted(wanted):
            t, reach, row = self.access_type(a), self.reach(a), f"p.access[{a}] + row{a}"
            place = "(r * p.row + first) * p.inner + c" if columns else "r * p.row + first"
            if reach == "flat":
                text.append(f"    {t} *const to{a} = ({t} *)p.access[{a}] + ({place});")
            elif reach == "unit":
                text.append(f"    {t} *const to{a} = ({t} *)({row}) + first;")
            elif reach == "line":
                step = f"p.step[{a}][{self.k.kept}]"
                column = f" + column{a}" if columns and self.k.ndim > self.k.kept + 1 else ""
                text.append(f"    char *const to{a} = {row}{column} + first * {step};")
                text.append(f"    const int64_t by{a} = {apart} * {step};")
        return text

    def element_at(self, a: int, span: Span) -> str:
        t, reach = self.access_type(a), self.reach(a)
        if reach in ("flat", "unit"):
            row, column = span.at("e")
            return f"to{a}[{row} * {span.step}{column}]"
        if reach == "line":
            return f"*({t} *)(to{a} + e * by{a})"
        return self.place(a, "")

    def offsets(self, wanted, span: Span, indent: str) -> list[str]:
        """Of those accesses that no pointer goes along."""
        return self.strided({a for a in wanted if self.reach(a) == "apart"}, 0, self.k.ndim, span.position, indent)

    def stores_of(self, stage) -> list:
        return [x for x in self.stores if x.stage == stage.number and self.accesses[x.access].level == 1]

    def touched(self) -> set[int]:
        """The accesses to elements."""
        loads = {self.slots[s].index for stage in self.stages for s in self.loads(stage)}
        return loads | {x.access for x in self.stores if self.accesses[x.access].level == 1}

    def guarded(self, span: Span, lines: list[str], indent: str) -> list[str]:
        if not span.guard or not lines:
            return [indent + line for line in lines]
        return [f"{indent}if ({span.guard}) {{", *(f"{indent}    {line}" for line in lines), f"{indent}}}"]

    def work(self, stage, span: Span, loaded: set[int]) -> list[str]:
        """A stage's work on a thread's elements. ``loaded``: slots that are in registers since an earlier stage; it
        gets those that this one loads."""
        reductions = [(n, f) for n, f in enumerate(self.reductions) if f.stage == stage.number]
        stores, loads = self.stores_of(stage), [s for s in self.loads(stage) if s not in loaded]
        made = {i.out for i in stage.instrs}
        kept = [s for s in self.waiting if s in made]
        if not (reductions or stores or kept):
            return []
        out = sorted({x.slot for x in stores if x.slot in made} | set(kept))
        odd = any(self.usual(stage, i) != self.statement(stage, i) for i in stage.instrs)
        odd = odd or any(self.may_be_odd(f) for _, f in reductions)
        under_way = sum(map(self.words, loads))
        most = LATER if loaded & span.held else span.loads
        batch = min(span.count, max(LEAST << span.pair, 1 << (most // max(under_way, 1)).bit_length() >> 1))
        if not under_way:
            batch = min(span.count, LATER) if self.shared or not span.unrolled else span.count
        part = batch
        if odd:
            part = min(batch, PART if len(out) + len(reductions) < 4 else PART // 2)
        unroll = "#pragma unroll" if span.unrolled else "#pragma unroll 1"
        more = f" && ({span.going_on})" if span.going_on else ""
        text = [unroll, f"    for (int b = 0; b < {span.count}{more}; b += {batch}) {{"]
        if span.pair:
            text += self.pairs(span, loads, batch)
        elif loads:
            text += [f"        {self.type_of(s)} in{s}[{batch}];" for s in loads if s not in span.held]
            text += ["#pragma unroll", f"        for (int u = 0; u < {batch}; u++) {{"]
            text.append("            const int e = b + u;")
            fetch = self.offsets({self.slots[s].index for s in loads}, span, "")
            for s in loads:
                to = f"h{s}[e]" if s in span.held else f"in{s}[u]"
                if span.guard:
                    text.append(f"            {to} = {self.one(s)};")
                fetch.append(f"{to} = {self.element_at(self.slots[s].index, span)};")
            text += [*self.guarded(span, fetch, "            "), "        }"]
        text += ["#pragma unroll", f"        for (int k = 0; k < {batch}; k += {part}) {{"]
        text += [f"            {self.type_of(s)} x{s}[{part}];" for s in out]
        text += [f"            {self.acc_type(f)} m{n}[{part}];" for n, f in reductions]
        text += ["            bool odd = false;"] if odd else []
        text += self.computed(stage, span, loads, out, reductions, part)
        text += self.slow_path(stage, span, loads, out, reductions, part) if odd else []
        text += ["#pragma unroll", f"            for (int u = 0; u < {part}; u++) {{"]
        text.append("                const int e = b + k + u;")
        text += [f"                h{s}[e] = x{s}[u];" for s in kept if s in span.held]
        last = self.offsets({x.access for x in stores}, span, "")
        last += self.inputs(stage, span, {x.slot for x in stores} - set(out), loads)
        last += [f"kept{s}[e * 32] = x{s}[u];" for s in kept if s not in span.held]
        last += [self.join(f, f"acc{n}{span.acc}", f"m{n}[u]") for n, f in reductions]
        for x in stores:
            value = f"x{x.slot}[u]" if x.slot in out else self.name(x.slot)
            if span.pair:
                last += self.stored_pair(x, span)
            else:
                last.append(f"{self.element_at(x.access, span)} = {value};")
        loaded.update(s for s in (*loads, *kept) if s in span.held)
        return [*text, *self.guarded(span, last, "                "), "            }", "        }", "    }"]

    def one(self, s: int) -> str:
        return ONES.get(SUFFIXES[self.slots[s].dtype], "1")

    def pairs(self, span: Span, loads, batch: int) -> list[str]:
        """The loads of a batch of which two elements are read together, if they are aligned."""
        together, apart = [], []
        for s in loads:
            t, here = self.type_of(s), self.element_at(self.slots[s].index, span)
            together.append(f"in{s}[u / 2] = *(const tt_pack<{t}, 2> *)&{here};")
            apart.append(f"in{s}[u / 2] = {{{{{here}, (&{here})[1]}}}};")
        return [
            *(f"        tt_pack<{self.type_of(s)}, 2> in{s}[{batch // 2}];" for s in loads),
            "#pragma unroll",
            f"        for (int u = 0; u < {batch}; u += 2) {{",
            "            const int e = b + u;",
            *(f"            in{s}[u / 2] = {{{{{self.one(s)}, {self.one(s)}}}}};" for s in loads),
            f"            if (!({span.guard})) continue;",
            "            if (whole || aligned) {",
            *(f"                {line}" for line in together),
            "            } else {",
            *(f"                {line}" for line in apart),
            "            }",
            "        }",
        ]

    def stored_pair(self, store, span: Span) -> list[str]:
        """The second of two elements stores both."""
        t, here, x = self.access_type(store.access), self.element_at(store.access, span), f"x{store.slot}"
        both = f"*(tt_pack<{t}, 2> *)(&{here} - 1) = {{{{{x}[u - 1], {x}[u]}}}};"
        return [f"if (u % 2 && (whole || aligned)) {both}", f"else if (!(whole || aligned)) {here} = {x}[u];"]

    def array_of(self, s: int, span: Span, loads) -> str:
        """Where a thread has the values of a slot that the stage does not make; "" of one that is the same for all."""
        if s in span.held:
            return f"h{s}[e]"
        if s in loads:
            return f"in{s}[(k + u) / 2].at[(k + u) % 2]" if span.pair else f"in{s}[k + u]"
        if s not in self.waiting:
            return ""
        kept = f"kept{s}[e * 32]"  # which has room for the row alone
        return f"{span.guard} ? {kept} : ({self.type_of(s)})1" if span.guard else kept

    def inputs(self, stage, span: Span, wanted, loads, copied=()) -> list[str]:
        """The variables of values that the stage does not make; some have been ``copied``."""
        places = {s: f"slow{s}[u]" if s in copied else self.array_of(s, span, loads) for s in sorted(wanted)}
        return [f"const {self.type_of(s)} v{s} = {place};" for s, place in places.items() if place]

    def computed(self, stage, span: Span, loads, out, reductions, part: int) -> list[str]:
        """What a stage computes of ``part`` elements whose arguments are usual."""
        return [
            "#pragma unroll",
            f"            for (int u = 0; u < {part}; u++) {{",
            "                const int e = b + k + u;",
            "                (void)e;",
            *(f"                {line}" for line in self.inputs(stage, span, self.wanted(stage), loads)),
            *(f"                {self.usual(stage, i)}" for i in stage.instrs),
            *(f"                x{s}[u] = {self.name(s)};" for s in out),
            *(f"                m{n}[u] = {self.usually(f, n)};" for n, f in reductions),
            "            }",
        ]

    def slow_path(self, stage, span: Span, loads, out, reductions, part: int) -> list[str]:
        """Recomputes a part where an element is unusual, one element after the other, from copies in memory."""
        wanted = self.wanted(stage)
        copied = [s for s in sorted(wanted) if s in span.held or s in loads]
        results = [(f"x{s}", f"slow{s}", self.type_of(s)) for s in out]
        results += [(f"m{n}", f"slow_m{n}", self.acc_type(f)) for n, f in reductions]
        head = [f"for (int u = 0; u < {part}; u++) {{", "    const int e = b + k + u;", "    (void)e;"]
        text = [f"{self.type_of(s)} slow{s}[{part}];" for s in copied]
        text += [f"{t} {name}[{part}];" for _, name, t in results]
        text += ["#pragma unroll", *head]
        text += [f"    slow{s}[u] = {self.array_of(s, span, loads)};" for s in copied]
        text += ["}", "#pragma unroll 1", *head]
        text += ["    " + line for line in self.inputs(stage, span, wanted, loads, copied)]
        text += [f"    {self.statement(stage, i)}" for i in stage.instrs]
        text += [f"    slow{s}[u] = {self.name(s)};" for s in out]
        text += [f"    slow_m{n}[u] = {self.mapped(f, n)};" for n, f in reductions]
        text += ["}", "#pragma unroll", head[0], *(f"    {to}[u] = {name}[u];" for to, name, _ in results), "}"]
        return [
            "            if (odd) {",
            *(line if line[0] == "#" else f"                {line}" for line in text),
            "            }",
        ]

    # Row reductions.

    def level0(self, stage: int, indent: str) -> list[str]:
        """The instructions on rows that follow a stage, and what they leave in memory."""
        text = []
        for i in self.k.instrs[0 : self.k.num_instrs]:
            if i.level == 0 and i.stage == stage:
                text.append(f"{indent}const {self.type_of(i.out)} v{i.out} = {self.scalar(i)};")
        stores = [x for x in self.stores if x.stage == stage and self.accesses[x.access].level == 0]
        if stores:
            text.append(f"{indent}if (leader) {{")
            text += [f"{indent}    {self.place(x.access, 'r', 'row')} = {self.name(x.slot)};" for x in stores]
            text.append(f"{indent}}}")
        return text

    def scalar(self, i) -> str:
        inputs = ", ".join(self.name(s) for s in getattr(i, "in") if s >= 0)
        if i.kind == lib.TT_INSTR_MOVE or (i.kind == lib.TT_INSTR_CAST and i.dtype == i.to):
            return inputs
        if i.kind == lib.TT_INSTR_CAST:
            return f"tt_cast_{SUFFIXES[i.dtype]}_{SUFFIXES[i.to]}({inputs})"
        return f"tt_{ELEMENTWISE[i.op].name}_{SUFFIXES[i.dtype]}({inputs})"

    def _row_reduction(self) -> list[str]:
        single = self.warps == 1
        blocks = max(REGISTERS // (self.most * (self.each * max(self.held_words, 1) + SPARE)), 1)
        if self.shared:
            blocks = min(blocks, max(SHARED // self.detail, 1) if not single else 2)
        text = [
            *self.opening(f"{self.most}, {blocks}"),
            "    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;",
        ]
        if single:
            text.append("    const int64_t r = (int64_t)blockIdx.x * warps + warp;")
            text.append("    if (r >= p.rows) return;")
        else:
            text.append("    const int64_t r = blockIdx.x;")
        text += [
            f"    const int first = {'lane' if single else f'warp * {BLOCK} + lane'}, n = (int)p.row;",
            f"    const bool leader = {'lane == 0' if single else 'threadIdx.x == 0'};",
            "    (void)leader, (void)n, (void)warps;",
            *("    " + line for line in self.numbers() + self.ones()),
        ]
        if not single:
            text += [
                f"    __shared__ {self.acc_type(f)} parts{n}[{self.warps}];" for n, f in enumerate(self.reductions)
            ]
        if self.shared:
            sizes = [f"(p.row * {SIZES[self.type_of(s)]} + 15) / 16 * 16" for s in self.shared]
            text.append("    TT_DYNAMIC_SHARED(shared); /* a thread reads there what it has written itself */")
            text.append(f"    unsigned char *room = shared + {'warp' if single else 0} * ({' + '.join(sizes)});")
            for s, size in zip(self.shared, sizes):
                t = self.type_of(s)
                text += [f"    {t} *const kept{s} = ({t} *)room + first;", f"    room += {size};"]
        text += self.pointers(32)
        for s in range(self.k.num_slots):
            if self.slots[s].kind == lib.TT_SLOT_LOAD and self.slots[s].level == 0:
                text.append(f"    const {self.type_of(s)} v{s} = {self.place(self.slots[s].index, 'r', 'row')};")
        text += [f"    {self.type_of(s)} h{s}[{self.each}];" for s in sorted(self.held)]
        guard = "" if self.whole else "first + e * 32 < n"
        unrolled = bool(self.held) or not self.shared  # else nothing has to be a register
        span = Span(self.each, guard, "r * p.row + first + e * 32", "32", held=self.held, unrolled=unrolled)
        loaded: set[int] = set()
        for stage in self.stages:
            text += self._stage(stage, span, loaded)
        return [*text, "}"]

    def _stage(self, stage, span: Span, loaded: set[int]) -> list[str]:
        reductions = [(n, f) for n, f in enumerate(self.reductions) if f.stage == stage.number]
        text = [self.param(f, n, "0") for n, f in reductions]
        text += [f"    {self.acc_type(f)} acc{n} = {self.nothing(f)};" for n, f in reductions]
        text += self.work(stage, span, loaded)
        for n, f in reductions:
            text += self.shuffle(f, n, "    ", [16, 8, 4, 2, 1])
        if reductions and self.warps > 1:
            text += [f"    if (lane == 0) parts{n}[warp] = acc{n};" for n, f in reductions]
            text.append("    __syncthreads();")
            for n, f in reductions:
                text.append(f"    acc{n} = lane < warps ? parts{n}[lane] : {self.nothing(f)};")
                text += self.shuffle(f, n, "    ", [1 << h for h in range(self.log - 10)])
        text += [
            f"    const {self.type_of(f.out)} v{f.out} = __shfl_sync(0xffffffffu, acc{n}, 0);" for n, f in reductions
        ]
        return text + self.level0(stage.number, "    ")

    # Split and outer reductions.

    def added(self, span: Span, given: str, apart: int) -> list[str]:
        """A function that adds a thread's elements, all of which are there or not."""
        columns = self.pattern == "outer_reduction"
        accs = "".join(f", {self.acc_type(f)} (&acc{n}){given}" for n, f in enumerate(self.reductions))
        body = ["    " + line for line in self.numbers() + self.ones()]
        body += [f"    const int64_t apart = {apart} * p.inner;"] if columns else []
        body += ["    const bool aligned = (int)p.aligned;"] if span.pair else []
        index = "r * p.inner + c" if columns else "r"
        body += [self.param(f, n, index) for n, f in enumerate(self.reductions)]
        body += self.pointers(apart)
        where = "int64_t r, int64_t first, int64_t n" + (", int64_t c" if columns else "")
        return [
            f"template <bool whole> static TT_DEVICE void add(const TT_ARGS &p, {where}{accs}) {{",
            *body,
            *self.work(self.stages[0], span, set()),
            "}",
            "",
        ]

    def _split_reduction(self) -> list[str]:
        """A warp takes 1024 elements; what the thread block's warps have is joined."""
        reductions, warps = list(enumerate(self.reductions)), THREADS // 32
        span = Span(32, "whole || first + e * 32 < n", "r * p.row + first + e * 32", "32")
        accs = "".join(f", acc{n}" for n, _ in reductions)
        text = [
            *self.added(span, "", 32),
            *self.opening(f"{THREADS}, 4"),
            "    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;",
            f"    const uint32_t groups = ((uint32_t)p.row + {BLOCK * warps - 1}) / {BLOCK * warps};",
            f"    const int64_t r = blockIdx.x / groups, b = blockIdx.x % groups * {warps} + warp;",
            *(f"    {self.acc_type(f)} acc{n} = {self.nothing(f)};" for n, f in reductions),
            f"    const int64_t left = p.row - b * {BLOCK};",
            f"    if (left >= {BLOCK}) add<true>(p, r, b * {BLOCK} + lane, p.row{accs});",
            f"    else if (left > 0) add<false>(p, r, b * {BLOCK} + lane, p.row{accs});",
        ]
        for n, f in reductions:
            t = self.acc_type(f)
            text += self.shuffle(f, n, "    ", [16, 8, 4, 2, 1])
            text += [f"    __shared__ {t} parts{n}[{warps}];", f"    if (lane == 0) parts{n}[warp] = acc{n};"]
        text += ["    __syncthreads();", "    if (warp) return;"]
        for n, f in reductions:
            text.append(f"    acc{n} = lane < {warps} ? parts{n}[lane] : {self.nothing(f)};")
            text += self.shuffle(f, n, "    ", [1, 2, 4])
            text.append(f"    if (lane == 0) (({self.acc_type(f)} *)p.part[{n}])[blockIdx.x] = acc{n};")
        return [*text, "}"]

    def _outer_reduction(self) -> list[str]:
        """A thread block takes 1024 rows of some columns; of each column's 32 lanes a thread has some, evenly apart."""
        reductions, pair = list(enumerate(self.reductions)), 1 + self.pair  # columns of a thread
        columns = self.detail // pair
        threads = THREADS // columns  # to a column
        own = 32 // threads  # lanes of a thread
        accs = "".join(f", acc{n}" for n, _ in reductions)
        position = f"(r * p.row + first + e * {threads}) * p.inner + c"
        span = Span(
            32 * own * pair,
            "",
            position,
            "apart",
            f"[(k + u) % {own * pair}]",
            unrolled=False,
            loads=LATER * pair,
            pair=self.pair,
        )
        there = {name: f"whole || first + {span.at(name)[0]} * {threads} < n" for name in "eb"}
        span = span._replace(guard=there["e"], going_on=there["b"])
        whole = f"left >= {BLOCK}" + (" && (int)p.aligned" if self.pair else "")
        text = [
            *self.added(span, f"[{own * pair}]", threads),
            *self.opening(f"{THREADS}, 4"),
            f"    const int column = threadIdx.x % {columns} * {pair}, group = threadIdx.x / {columns};",
            f"    const uint32_t blocks = ((uint32_t)p.row + {BLOCK - 1}) / {BLOCK};",
            f"    const uint32_t tiles = ((uint32_t)p.inner + {self.detail - 1}) / {self.detail};",
            "    const uint32_t upper = blockIdx.x / tiles;",
            f"    const int64_t c = blockIdx.x % tiles * {self.detail} + column;",
            "    const int64_t r = upper / blocks, b = upper % blocks;",
            f"    const int64_t left = p.row - b * {BLOCK};",
        ]
        for n, f in reductions:
            t = self.acc_type(f)
            text += [
                f"    __shared__ {t} lanes{n}[{threads}][{self.detail}];",
                f"    {t} acc{n}[{own * pair}];",
                "#pragma unroll",
                f"    for (int l = 0; l < {own * pair}; l++) acc{n}[l] = {self.nothing(f)};",
            ]
        text += [
            "    if (c < p.inner) {",
            f"        if ({whole}) add<true>(p, r, b * {BLOCK} + group, p.row, c{accs});",
            f"        else add<false>(p, r, b * {BLOCK} + group, p.row, c{accs});",
            "    }",
        ]
        for n, f in reductions:
            h = own * pair // 2
            while h >= pair:
                text += [f"    {self.join(f, f'acc{n}[{i}]', f'acc{n}[{i + h}]')}" for i in range(h)]
                h //= 2
            text += [f"    lanes{n}[group][column + {j}] = acc{n}[{j}];" for j in range(pair)]
        text += [f"    for (int h = {threads // 2}; h > 0; h /= 2) {{", "        __syncthreads();"]
        for n, f in reductions:
            for j in range(pair):
                here, other = (f"lanes{n}[{group}][column + {j}]" for group in ("group", "group + h"))
                text.append(f"        if (group < h) {self.join(f, here, other)}")
        text += ["    }", "    if (group || c >= p.inner) return;"]
        for n, f in reductions:
            place = f"(({self.acc_type(f)} *)p.part[{n}])[(r * blocks + b) * p.inner + c"
            text += [f"    {place} + {j}] = lanes{n}[0][column + {j}];" for j in range(pair)]
        return [*text, "}"]
