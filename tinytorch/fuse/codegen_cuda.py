"""CUDA C++ for a kernel of fused mode: what its eager kernels would do one by one, with intermediates in registers.

The text mirrors the ``tt_kernel`` (kernels/cpu/api/fuse.h): the same scalar functions (kernels/scalar), the same
reduction trees (Note [The tree of a reduction] in kernels/cpu/reduce.h: 1024 elements are a warp's, a lane is a
thread), so the same bits. It follows from the kernel's structure, not from sizes or addresses; those come in the
arguments, which kernels/cuda/fuse.c packs in the order of ``arguments``.

  FLAT     a thread takes some elements, by accesses of 16 bytes where all operands lie one after the other. It first
           computes as for usual arguments (kernels/cuda/usual.cuh), and anew if one was not
  ROWS     a warp takes a row of up to 1024 elements, a thread block a longer one; a stage's values that a later one
           needs wait in shared memory
  FOLD     a warp takes 1024 elements of a row and leaves its accumulators; a second kernel joins them
  COLUMNS  a thread block takes 1024 rows of 32 columns, likewise
"""

from __future__ import annotations

from collections.abc import Callable

from ..backends.cpu import ffi, lib
from ..backends.cuda.source import PERIODIC
from .codegen import C_TYPES, SIZES, SUFFIXES, Stage

THREADS = 256
FLAT_THREADS = 128  # TT_FLAT_THREADS in kernels/cuda/args.h
USUAL = {"exp", "log", "sin", "cos", "reciprocal", "div", "sqrt", "rsqrt"}  # of float32: in usual.cuh
_WALKS = {
    lib.TT_WALK_FLAT: "flat",
    lib.TT_WALK_ROWS: "rows",
    lib.TT_WALK_FOLD: "fold",
    lib.TT_WALK_COLUMNS: "columns",
}


class Refused(Exception):
    """The kernel stays with the eager ones."""


class Elements(Stage):
    """A stage's instructions on elements, for one thread at a time: a row's values are scalars."""

    @staticmethod
    def rows_apart(kernel) -> bool:
        return True


def source(kernel, vectors: int, lines: Callable[[int], str] | None = None) -> str:
    """The CUDA source of a ``tt_kernel *``, of whose operands a thread takes so many vectors; ``lines`` as for
    codegen.source. Refused for one that has none."""
    return Kernel(kernel, vectors).text(lines)


class Kernel:
    """What the text of one kernel is made from."""

    def __init__(self, kernel, vectors: int):
        self.k = kernel
        self.vectors = vectors
        self.walk = _WALKS.get(kernel.walk)
        if self.walk is None:
            raise Refused("a reduction alone is no fused kernel")
        self.slots = kernel.slots
        self.stages = [Elements(kernel, number) for number in range(kernel.num_stages)]
        for stage in self.stages:
            stage.names = {s: self.name(s) for s in range(kernel.num_slots)}
        self.folds = [kernel.folds[i] for i in range(kernel.num_folds)]
        self.stores = [kernel.stores[i] for i in range(kernel.num_stores)]
        self.accesses = [kernel.accesses[i] for i in range(kernel.num_accesses)]
        self.constants = [s for s in range(kernel.num_slots) if self.slots[s].kind == lib.TT_SLOT_CONST]
        if any(self.slots[s].kind == lib.TT_SLOT_RANDOM for s in range(kernel.num_slots)):
            raise Refused("random numbers are drawn by their own kernel")
        if self.walk == "rows" and any(f.out < 0 for f in self.folds):
            raise Refused("a total over rows is reduced by its own kernel")
        self.kept = sorted(
            {
                s
                for s in range(kernel.num_slots)
                if self.slots[s].kind == lib.TT_SLOT_TEMP
                and self.slots[s].level == 1
                and self.slots[s].last > self.slots[s].stage
            }
        )
        self.flat = all(a.flat or a.one or a.level == 0 for a in self.accesses)

    # Names and types.

    def type_of(self, s: int) -> str:
        return C_TYPES[SUFFIXES[self.slots[s].dtype]]

    def name(self, s: int) -> str:
        """The variable of a slot's value."""
        slot = self.slots[s]
        if slot.kind == lib.TT_SLOT_ROW:
            return self.name(getattr(slot, "from"))
        return f"v{s}"

    def access_type(self, a: int) -> str:
        return C_TYPES[SUFFIXES[self.accesses[a].dtype]]

    def place(self, a: int, index: str, dims: str = "at") -> str:
        """The element of an access as an lvalue; ``index``: its row-major position."""
        x, t = self.accesses[a], self.access_type(a)
        if x.one:
            return f"*({t} *)p.access[{a}]"
        if x.flat:
            return f"(({t} *)p.access[{a}])[{index}]"
        return f"*({t} *)(p.access[{a}] + {dims}{a})"

    def arguments(self) -> list[str]:
        """The structure that kernels/cuda/fuse.c packs."""
        n, nd = len(self.accesses), max(self.k.ndim, 1)
        return [
            "typedef struct {",
            "    int64_t numel, rows, row, inner, aligned;",
            f"    char *access[{max(n, 1)}];",
            f"    char *part[{max(len(self.folds), 1)}];",
            f"    int64_t number[{max(len(self.constants), 1)}];",
            f"    int64_t size[{nd}];",
            f"    tt_divider by[{nd}];",
            f"    int64_t step[{max(n, 1)}][{nd}];",
            "} fused_args;",
            "#define TT_ARGS fused_args",
        ]

    def text(self, lines) -> str:
        """All of it."""
        head = ["/* A fused kernel: what it computes, in order.", " *"]
        for stage in self.stages:
            head += [f" * stage {stage.number}"] if len(self.stages) > 1 else []
            for i in stage.instrs:
                where = lines(i.node) if lines else ""
                head.append(
                    f" *   v{i.out} = {i.name}({', '.join(map(self.name, i.inputs))})  {i.dtype}  {where}".rstrip()
                )
        head += [" */", '#include "cuda/usual.cuh"', '#include "scalar/reducers.h"', ""]
        return "\n".join([*head, *self.arguments(), "", *_HELPERS, "", *getattr(self, f"_{self.walk}")()]) + "\n"

    # Pieces.

    def numbers(self) -> list[str]:
        """The Python numbers."""
        return [
            f"const {self.type_of(s)} v{s} = tt_number_as<{self.type_of(s)}>(p.number[{j}]);"
            for j, s in enumerate(self.constants)
        ]

    def ones(self) -> list[str]:
        """Operands that are one element for all."""
        return [
            f"const {self.type_of(s)} v{s} = {self.place(self.slots[s].index, '0')};"
            for s in range(self.k.num_slots)
            if self.slots[s].kind == lib.TT_SLOT_ONE
        ]

    def statement(self, stage, instr) -> str:
        if (instr.name, instr.dtype) in PERIODIC:
            instr = instr._replace(name=f"quick_{instr.name}")
        return f"const {self.type_of(instr.out)} v{instr.out} = {stage.expression(instr)};"

    def usual(self, stage, instr) -> str:
        """The statement for usual arguments."""
        if instr.dtype != "f32" or instr.name not in USUAL:
            return self.statement(stage, instr)
        inputs = ", ".join(map(self.name, instr.inputs))
        return f"const float v{instr.out} = tt_usual_{instr.name}_f32({inputs}, odd);"

    def loads(self, stage) -> list[int]:
        """The slots of operands in memory that a stage needs on elements, and those from earlier stages."""
        used = {s for i in stage.instrs for s in i.inputs}
        used |= {x.slot for x in self.stores if x.stage == stage.number and self.accesses[x.access].level == 1}
        used |= {f.slot for f in self.folds if f.stage == stage.number}
        made = {i.out for i in stage.instrs}
        return sorted(s for s in used - made if self.slots[s].kind == lib.TT_SLOT_LOAD and self.slots[s].level == 1)

    def earlier(self, stage) -> list[int]:
        """Values of earlier stages."""
        used = {s for i in stage.instrs for s in i.inputs}
        used |= {x.slot for x in self.stores if x.stage == stage.number and self.accesses[x.access].level == 1}
        used |= {f.slot for f in self.folds if f.stage == stage.number}
        made = {i.out for i in stage.instrs}
        return sorted(s for s in used - made if s in self.kept)

    def strided(self, wanted, first: int, last: int, index: str, indent: str, prefix: str = "at") -> list[str]:
        """The offsets of accesses that do not lie one after the other, from a row-major position in dimensions."""
        apart = sorted(a for a in wanted if not (self.accesses[a].flat or self.accesses[a].one))
        if not apart:
            return []
        text = [f"uint32_t rest{prefix} = (uint32_t)({index});", *(f"int64_t {prefix}{a} = 0;" for a in apart)]
        for d in range(last - 1, first - 1, -1):
            if d > first:
                text.append(f"{{ const uint32_t up = tt_quotient(rest{prefix}, p.by[{d}]);")
                text.append(f"  const int64_t x = rest{prefix} - up * p.by[{d}].size;")
            else:
                text.append(f"{{ const int64_t x = rest{prefix};")
            text += [f"  {prefix}{a} += x * p.step[{a}][{d}];" for a in apart]
            text.append(f"  rest{prefix} = up; }}" if d > first else "}")
        return [indent + line for line in text]

    def element(self, stage, index: str, indent: str, keep: str | None = None) -> list[str]:
        """A stage's work on the element at a row-major position."""
        loads = self.loads(stage)
        stores = [x for x in self.stores if x.stage == stage.number and self.accesses[x.access].level == 1]
        touched = {self.slots[s].index for s in loads} | {x.access for x in stores}
        text = self.strided(touched, 0, self.k.ndim, index, indent)
        text += [f"{indent}const {self.type_of(s)} v{s} = {self.place(self.slots[s].index, index)};" for s in loads]
        text += [f"{indent}const {self.type_of(s)} v{s} = kept{s}[{keep}];" for s in self.earlier(stage)]
        text += [f"{indent}{self.statement(stage, i)}" for i in stage.instrs]
        made = {i.out for i in stage.instrs}
        text += [f"{indent}kept{s}[{keep}] = v{s};" for s in self.kept if s in made]
        return text + [f"{indent}{self.place(x.access, index)} = {self.name(x.slot)};" for x in stores]

    # FLAT.

    def _flat(self) -> list[str]:
        stage = self.stages[0]
        head = [
            f'extern "C" __global__ void __launch_bounds__({FLAT_THREADS})',
            "tt_kernel(const __grid_constant__ TT_ARGS p) {",
            "    const uint32_t numel = (uint32_t)p.numel; /* below 2^31 */",
            *("    " + line for line in self.numbers() + self.ones()),
        ]
        if self.flat:
            head += self._vectors(stage)
        return [
            *head,
            f"    const uint32_t i = blockIdx.x * {FLAT_THREADS} + threadIdx.x;",
            "    if (i >= numel) return;",
            *self.element(stage, "i", "    "),
            "}",
        ]

    def _vectors(self, stage) -> list[str]:
        """The way through whole vectors, where everything is aligned; the last few elements go one by one, and so do
        those of a thread that came upon an unusual one."""
        loads = self.loads(stage)
        largest = max(
            [SIZES[self.type_of(s)] for s in loads] + [SIZES[self.access_type(x.access)] for x in self.stores]
        )
        unroll = self.vectors
        v, tile = 16 // largest, 16 // largest * FLAT_THREADS * unroll
        each = [
            "#pragma unroll",
            f"            for (int u = 0; u < {unroll}; u++) {{",
            f"                const uint32_t i = first + u * {FLAT_THREADS * v};",
        ]
        text = [
            "    if ((int)p.aligned) {",
            f"        const uint32_t first = blockIdx.x * {tile} + threadIdx.x * {v};",
            f"        if (first + {tile - FLAT_THREADS * v} + {v} <= numel) {{",
            *(f"            tt_pack<{self.type_of(s)}, {v}> in{s}[{unroll}];" for s in loads),
            *(
                f"            tt_pack<{self.access_type(x.access)}, {v}> out{n}[{unroll}];"
                for n, x in enumerate(self.stores)
            ),
            "            bool odd = false;",
            *each,
        ]
        for s in loads:
            a, t = self.slots[s].index, self.type_of(s)
            text.append(f"                in{s}[u] = *(const tt_pack<{t}, {v}> *)(({t} *)p.access[{a}] + i);")
        text += [
            "            }",
            "#pragma unroll",
            f"            for (int u = 0; u < {unroll}; u++) {{",
            "#pragma unroll",
            f"                for (int e = 0; e < {v}; e++) {{",
            *(f"                    const {self.type_of(s)} v{s} = in{s}[u].at[e];" for s in loads),
            *(f"                    {self.usual(stage, i)}" for i in stage.instrs),
            *(f"                    out{n}[u].at[e] = {self.name(x.slot)};" for n, x in enumerate(self.stores)),
            "                }",
            "            }",
            "            if (!odd) {",
            *("    " + line if line[0] != "#" else line for line in each),
        ]
        for n, x in enumerate(self.stores):
            t = self.access_type(x.access)
            text.append(f"                    *(tt_pack<{t}, {v}> *)(({t} *)p.access[{x.access}] + i) = out{n}[u];")
        text += [
            "                }",
            "                return;",
            "            }",
            "        }",
            f"        for (int u = 0; u < {unroll}; u++)",
            f"            for (int e = 0; e < {v}; e++) {{",
            f"                const uint32_t i = first + u * {FLAT_THREADS * v} + e;",
            "                if (i >= numel) return;",
            *self.element(stage, "i", "                "),
            "            }",
            "        return;",
            "    }",
        ]
        return text

    # Folds.

    def begin(self, fold, n: int, indent: str) -> str:
        t, x = C_TYPES[SUFFIXES[fold.acc]], SUFFIXES[fold.dtype]
        return f"{indent}{t} acc{n} = ({t})TT_NONE_{self.reducer(fold)}({x});"

    def add(self, fold, n: int, indent: str, to: str = "") -> str:
        t, x, name = C_TYPES[SUFFIXES[fold.acc]], SUFFIXES[fold.dtype], self.reducer(fold)
        acc = to or f"acc{n}"
        value = f"({t})TT_MAP_{name}({x}, {self.name(fold.slot)}, param{n})"
        return f"{indent}{acc} = ({t})TT_JOIN_{name}({x}, {acc}, {value});"

    def join(self, fold, a: str, b: str) -> str:
        t, x, name = C_TYPES[SUFFIXES[fold.acc]], SUFFIXES[fold.dtype], self.reducer(fold)
        return f"{a} = ({t})TT_JOIN_{name}({x}, {a}, {b});"

    def shuffle(self, fold, n: int, indent: str) -> list[str]:
        t = C_TYPES[SUFFIXES[fold.acc]]
        return [
            f"{indent}for (int h = 16; h > 0; h /= 2) {{",
            f"{indent}    const {t} other = __shfl_down_sync(0xffffffffu, acc{n}, h);",
            f"{indent}    {self.join(fold, f'acc{n}', 'other')}",
            f"{indent}}}",
        ]

    @staticmethod
    def reducer(fold) -> str:
        return ffi.string(lib.tt_reducer_name(fold.reducer)).decode()

    def param(self, fold, n: int, index: str, indent: str) -> str:
        t = C_TYPES[SUFFIXES[fold.acc]]
        if fold.param < 0:
            return f"{indent}const {t} param{n} = 0;"
        value = self.name(fold.param) if self.walk == "rows" else f"(({t} *)p.access[{fold.param}])[{index}]"
        return f"{indent}const {t} param{n} = {value};"

    # ROWS.

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
        return f"tt_{ffi.string(lib.tt_op_name(i.op)).decode()}_{SUFFIXES[i.dtype]}({inputs})"

    def _rows(self) -> list[str]:
        text = [
            'extern "C" __global__ void __launch_bounds__(1024) tt_kernel(const __grid_constant__ TT_ARGS p) {',
            "    TT_DYNAMIC_SHARED(shared);",
            "    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;",
            "    const bool single = p.row <= 1024;",
            "    const int64_t blocks = (p.row + 1023) / 1024;",
            "    const int64_t r = single ? (int64_t)blockIdx.x * warps + warp : (int64_t)blockIdx.x;",
            "    if (r >= p.rows) return;",
            "    const bool leader = lane == 0 && (single || warp == 0);",
            "    (void)leader;",
            *("    " + line for line in self.numbers() + self.ones()),
        ]
        for n, fold in enumerate(self.folds):
            text.append(f"    __shared__ {C_TYPES[SUFFIXES[fold.acc]]} parts{n}[33];")
        if self.kept:
            sizes = [f"(p.row * {SIZES[self.type_of(s)]} + 15) / 16 * 16" for s in self.kept]
            text += [f"    unsigned char *room = shared + (single ? warp : 0) * ({' + '.join(sizes)});"]
            for s, size in zip(self.kept, sizes):
                text += [f"    {self.type_of(s)} *kept{s} = ({self.type_of(s)} *)room;", f"    room += {size};"]
        rows = [a for a, x in enumerate(self.accesses) if x.level == 0]
        text += self.strided(rows, 0, self.k.kept, "r", "    ", "row")
        for s in range(self.k.num_slots):
            if self.slots[s].kind == lib.TT_SLOT_LOAD and self.slots[s].level == 0:
                text.append(f"    const {self.type_of(s)} v{s} = {self.place(self.slots[s].index, 'r', 'row')};")
        for stage in self.stages:
            text += self._stage(stage)
        return [*text, "}"]

    def _stage(self, stage) -> list[str]:
        folds = [(n, f) for n, f in enumerate(self.folds) if f.stage == stage.number]
        text = [self.param(f, n, "0", "    ") for n, f in folds]
        text += [f"    {C_TYPES[SUFFIXES[f.acc]]} whole{n} = 0;" for n, f in folds]
        body = self.element(stage, "i", "                ", "e")
        if body or folds:
            text += ["    for (int64_t b = single ? 0 : warp; b < blocks; b += single ? 1 : warps) {"]
            text += [self.begin(f, n, "        ") for n, f in folds]
            text += [
                "        const int64_t end = p.row - b * 1024 < 1024 ? p.row - b * 1024 : 1024;",
                "#pragma unroll 4",
                "        for (int64_t q = lane; q < end; q += 32) {",
                "            const int64_t e = b * 1024 + q, i = r * p.row + e;",
                "            {",
                *body,
                *(self.add(f, n, "                ") for n, f in folds),
                "            }",
                "        }",
            ]
            if folds:
                text.append("        __syncwarp();")
            for n, f in folds:
                text += self.shuffle(f, n, "        ")
                text += [
                    f"        if (single) whole{n} = __shfl_sync(0xffffffffu, acc{n}, 0);",
                    f"        else if (lane == 0) parts{n}[b] = acc{n};",
                ]
            text.append("    }")
        if folds:
            text += [
                "    if (!single) {",
                "        __syncthreads();",
                "        if (threadIdx.x == 0)",
                "            for (int64_t s = 1; s < blocks; s *= 2)",
                "                for (int64_t m = 0; m + s < blocks; m += 2 * s) {",
            ]
            text += [f"                    {self.join(f, f'parts{n}[m]', f'parts{n}[m + s]')}" for n, f in folds]
            text += [
                "                }",
                "        __syncthreads();",
                *(f"        whole{n} = parts{n}[0];" for n, f in folds),
                "    }",
            ]
            text += [f"    const {self.type_of(f.out)} v{f.out} = whole{n};" for n, f in folds]
        return text + self.level0(stage.number, "    ")

    # FOLD and COLUMNS.

    def _fold(self) -> list[str]:
        folds = list(enumerate(self.folds))
        text = [
            f'extern "C" __global__ void __launch_bounds__({THREADS}) tt_kernel(const __grid_constant__ TT_ARGS p) {{',
            "    const int lane = threadIdx.x & 31;",
            "    const int64_t blocks = (p.row + 1023) / 1024;",
            f"    const int64_t u = (int64_t)blockIdx.x * {THREADS // 32} + (threadIdx.x >> 5);",
            "    const int64_t r = u / blocks, b = u % blocks;",
            "    if (u >= p.rows * blocks) return;",
            *("    " + line for line in self.numbers() + self.ones()),
        ]
        text += [self.param(f, n, "r", "    ") for n, f in folds] + [self.begin(f, n, "    ") for n, f in folds]
        text += [
            "    const int64_t end = p.row - b * 1024 < 1024 ? p.row - b * 1024 : 1024;",
            "#pragma unroll 8",
            "    for (int64_t q = lane; q < end; q += 32) {",
            "        const int64_t i = r * p.row + b * 1024 + q;",
            *self.element(self.stages[0], "i", "        "),
            *(self.add(f, n, "        ") for n, f in folds),
            "    }",
            "    __syncwarp();",
        ]
        for n, f in folds:
            text += self.shuffle(f, n, "    ")
            text.append(f"    if (lane == 0) (({C_TYPES[SUFFIXES[f.acc]]} *)p.part[{n}])[u] = acc{n};")
        return [*text, "}"]

    def _columns(self) -> list[str]:
        """32 columns are a thread block's; of each column's 32 lanes a thread has four, eight apart."""
        folds = list(enumerate(self.folds))
        text = [
            f'extern "C" __global__ void __launch_bounds__({THREADS}) tt_kernel(const __grid_constant__ TT_ARGS p) {{',
            "    const int column = threadIdx.x & 31, group = threadIdx.x >> 5;",
            "    const int64_t blocks = (p.row + 1023) / 1024, tiles = (p.inner + 31) / 32;",
            "    const int64_t c = blockIdx.x % tiles * 32 + column, b = blockIdx.x / tiles % blocks;",
            "    const int64_t r = blockIdx.x / tiles / blocks;",
            "    const int64_t end = c >= p.inner ? 0 : p.row - b * 1024 < 1024 ? p.row - b * 1024 : 1024;",
            *("    " + line for line in self.numbers() + self.ones()),
        ]
        for n, f in folds:
            t, x = C_TYPES[SUFFIXES[f.acc]], SUFFIXES[f.dtype]
            text += [
                self.param(f, n, "c < p.inner ? r * p.inner + c : 0", "    "),
                f"    __shared__ {t} lanes{n}[8][32];",
                f"    {t} acc{n}[4];",
                "#pragma unroll",
                f"    for (int l = 0; l < 4; l++) acc{n}[l] = ({t})TT_NONE_{self.reducer(f)}({x});",
            ]
        text += [
            "    for (int64_t q = group; q < end; q += 32) {",
            "#pragma unroll",
            "        for (int l = 0; l < 4; l++) {",
            "            if (q + 8 * l >= end) break;",
            "            const int64_t i = (r * p.row + b * 1024 + q + 8 * l) * p.inner + c;",
            *self.element(self.stages[0], "i", "            "),
            *(self.add(f, n, "            ", f"acc{n}[l]") for n, f in folds),
            "        }",
            "    }",
        ]
        for n, f in folds:
            text += [
                f"    {self.join(f, f'acc{n}[0]', f'acc{n}[2]')}",
                f"    {self.join(f, f'acc{n}[1]', f'acc{n}[3]')}",
                f"    {self.join(f, f'acc{n}[0]', f'acc{n}[1]')}",
                f"    lanes{n}[group][column] = acc{n}[0];",
            ]
        text += ["    for (int h = 4; h > 0; h /= 2) {", "        __syncthreads();"]
        for n, f in folds:
            here, other = f"lanes{n}[group][column]", f"lanes{n}[group + h][column]"
            text.append(f"        if (group < h) {self.join(f, here, other)}")
        text.append("    }")
        for n, f in folds:
            place = f"(({C_TYPES[SUFFIXES[f.acc]]} *)p.part[{n}])[(r * blocks + b) * p.inner + c]"
            text.append(f"    if (group == 0 && c < p.inner) {place} = lanes{n}[0][column];")
        return [*text, "}"]


_HELPERS = [
    "template <typename T> static TT_DEVICE T tt_number_as(int64_t bits) {",
    "    union { int64_t bits; T value; } u;",
    "    u.bits = bits;",
    "    return u.value;",
    "}",
]
