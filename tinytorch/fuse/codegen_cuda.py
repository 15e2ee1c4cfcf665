"""CUDA C++ for a kernel of fused mode: what its eager kernels would do one by one, with intermediates in registers.

The text mirrors the ``tt_kernel`` (kernels/api/fuse.h): the same scalar functions (kernels/scalar), the same
reduction trees (Note [The tree of a reduction] in kernels/backend/reduction.h: 1024 elements are a warp's, a lane is a
thread), so the same bits. It follows from the kernel's structure, not from sizes or addresses; those come in the
arguments, which kernels/cuda/host/fuse.c packs in the order of ``arguments``. (Only how a thread's elements are shared
out is a matter of sizes: codegen_cuda_plan, and tt_kernel_vectors, which looks at "approximate" too.)

  pointwise        a thread takes some elements, by accesses of up to 16 bytes where all operands' elements lie one
                   after the other, if only within rows, or are one for a row. It first computes as for usual arguments
                   (kernels/cuda/device/common_case.cuh), and recomputes if one was not
  row_reduction    a warp takes a row of up to 1024 elements, a thread block a longer one; a stage's values that a later
                   one needs wait in registers, or in shared memory, or are recomputed where they do not fit there
  split_reduction  a warp takes 1024 elements of a row; the results of a thread block's warps are joined, and a second
                   kernel joins those of the thread blocks
  outer_reduction  a thread block takes 1024 rows of up to 32 columns; a second kernel likewise
"""

from __future__ import annotations

from collections.abc import Callable, Set

from ..backends.cpu import lib
from ..backends.cuda.source import quick
from ..dtypes import ALL
from .codegen import SIZES, Stage, is_special
from .codegen_cuda_plan import BLOCK, MOST_BLOCKS
from .codegen_cuda_rows import Reducing

FLAT_THREADS = 128  # TT_FLAT_THREADS in kernels/cuda/device/args.h
USUAL = {"exp", "log", "sin", "cos", "reciprocal", "div", "sqrt", "rsqrt"}  # of float32: in common_case.cuh
_PATTERNS = {
    lib.TT_PATTERN_POINTWISE: "pointwise",
    lib.TT_PATTERN_ROW_REDUCTION: "row_reduction",
    lib.TT_PATTERN_SPLIT_REDUCTION: "split_reduction",
    lib.TT_PATTERN_OUTER_REDUCTION: "outer_reduction",
}


class Refused(Exception):
    """The kernel stays with the eager ones."""


class Elements(Stage):
    """A stage's instructions on elements, for one thread at a time: a row's values are scalars."""

    @staticmethod
    def rows_apart(kernel) -> bool:
        return True


def source(kernel, lines: Callable[[int], str] | None = None) -> tuple[str, int]:
    """The CUDA source of a ``tt_kernel *``, and its ``detail``, for tt_kernel_install_device; ``lines`` as for
    codegen.source. Refused for one that has none."""
    made = Kernel(kernel)
    return made.text(lines), made.detail


class Kernel(Reducing):
    """What the text of one kernel is made from."""

    def __init__(self, kernel):
        self.k = kernel
        self.pattern = _PATTERNS.get(kernel.pattern)
        if self.pattern is None:
            raise Refused("a reduction alone is no fused kernel")
        self.slots = kernel.slots
        self.stages = self.stages_of(set())
        self.reductions = [kernel.reductions[i] for i in range(kernel.num_reductions)]
        self.stores = [kernel.stores[i] for i in range(kernel.num_stores)]
        self.accesses = [kernel.accesses[i] for i in range(kernel.num_accesses)]
        self.constants = [s for s in range(kernel.num_slots) if self.slots[s].kind == lib.TT_SLOT_CONST]
        self.waiting, self.held, self.shared = [], frozenset(), []
        self.detail = 0
        if self.pattern == "pointwise":
            self.detail = lib.tt_kernel_vectors(self.k) if self.has_vectors() else 0
        elif self.pattern == "row_reduction":
            if kernel.row > BLOCK * MOST_BLOCKS:
                raise Refused("its rows are too long for a thread block")
            if not self.plan_rows():
                raise Refused("what has to wait of a row is more than a thread block's shared memory holds")
        elif self.pattern == "outer_reduction":
            self.plan_columns()

    def stages_of(self, recompute: Set[int]) -> list[Elements]:
        """The stages; ``recompute``: slots rematerialised in each stage that uses them."""
        stages = [Elements(self.k, number, recompute) for number in range(self.k.num_stages)]
        for stage in stages:
            stage.names = {s: self.name(s) for s in range(self.k.num_slots)}
        return stages

    # Names and types.

    def type_of(self, s: int) -> str:
        return ALL[self.slots[s].dtype].c_type

    def name(self, s: int) -> str:
        """The variable of a slot's value."""
        slot = self.slots[s]
        if slot.kind == lib.TT_SLOT_ROW:
            return self.name(getattr(slot, "from"))
        return f"v{s}"

    def access_type(self, a: int) -> str:
        return ALL[self.accesses[a].dtype].c_type

    def place(self, a: int, index: str, dims: str = "at") -> str:
        """The element of an access as an lvalue; ``index``: its row-major position."""
        x, t = self.accesses[a], self.access_type(a)
        if x.one:
            return f"*({t} *)p.access[{a}]"
        if x.flat:
            return f"(({t} *)p.access[{a}])[{index}]"
        return f"*({t} *)(p.access[{a}] + {dims}{a})"

    def arguments(self) -> list[str]:
        """The structure that kernels/cuda/host/fuse.c packs."""
        n, nd = len(self.accesses), max(self.k.ndim, 1)
        return [
            "typedef struct {",
            "    int64_t numel, rows, row, inner, aligned;",
            f"    char *access[{max(n, 1)}];",
            f"    char *part[{max(len(self.reductions), 1)}];",
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
        special = ['#include "scalar/special.h"'] if any(is_special(stage.instrs) for stage in self.stages) else []
        head += [" */", '#include "cuda/device/common_case.cuh"', *special, '#include "scalar/reducers.h"', ""]
        return "\n".join([*head, *self.arguments(), "", *_HELPERS, "", *getattr(self, f"_{self.pattern}")()]) + "\n"

    # Pieces.

    @staticmethod
    def opening(bounds: str) -> list[str]:
        """A kernel's first lines; ``bounds``: its threads, and at least how many blocks a processor has."""
        return [
            f'extern "C" __global__ void __launch_bounds__({bounds})',
            "    tt_kernel(const __grid_constant__ TT_ARGS p) {",
        ]

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
        instr = instr._replace(name=quick(instr.name, instr.dtype))
        return f"const {self.type_of(instr.out)} v{instr.out} = {stage.expression(instr)};"

    def usual(self, stage, instr) -> str:
        """The statement for usual arguments."""
        if instr.dtype != "f32" or instr.name not in USUAL:
            return self.statement(stage, instr)
        inputs = ", ".join(map(self.name, instr.inputs))
        return f"const float v{instr.out} = tt_usual_{instr.name}_f32({inputs}, odd);"

    def wanted(self, stage) -> set[int]:
        """The slots that a stage needs on elements and does not make."""
        used = {s for i in stage.instrs for s in i.inputs}
        used |= {x.slot for x in self.stores if x.stage == stage.number and self.accesses[x.access].level == 1}
        used |= {f.slot for f in self.reductions if f.stage == stage.number}
        return used - {i.out for i in stage.instrs}

    def loads(self, stage) -> list[int]:
        """Those of operands in memory."""
        kinds = ((s, self.slots[s]) for s in sorted(self.wanted(stage)))
        return [s for s, slot in kinds if slot.kind == lib.TT_SLOT_LOAD and slot.level == 1]

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

    def element(self, stage, index: str, indent: str) -> list[str]:
        """A stage's work on the element at a row-major position."""
        loads = self.loads(stage)
        stores = [x for x in self.stores if x.stage == stage.number and self.accesses[x.access].level == 1]
        touched = {self.slots[s].index for s in loads} | {x.access for x in stores}
        text = self.strided(touched, 0, self.k.ndim, index, indent)
        text += [f"{indent}const {self.type_of(s)} v{s} = {self.place(self.slots[s].index, index)};" for s in loads]
        text += [f"{indent}{self.statement(stage, i)}" for i in stage.instrs]
        return text + [f"{indent}{self.place(x.access, index)} = {self.name(x.slot)};" for x in stores]

    # Pointwise.

    def _pointwise(self) -> list[str]:
        stage = self.stages[0]
        head = [
            *self.opening(f"{FLAT_THREADS}"),
            "    const uint32_t numel = (uint32_t)p.numel; /* below 2^31 */",
            *("    " + line for line in self.numbers() + self.ones()),
        ]
        if self.detail:
            head += self._vectors(stage)
        return [
            *head,
            f"    const uint32_t i = blockIdx.x * {FLAT_THREADS} + threadIdx.x;",
            "    if (i >= numel) return;",
            *self.element(stage, "i", "    "),
            "}",
        ]

    def vector(self) -> int:
        """The elements of a vector."""
        return 16 // max((SIZES[self.access_type(a)] for a, x in enumerate(self.accesses) if not x.one), default=16)

    def has_vectors(self) -> bool:
        """Can a thread take vectors? Then those of operands that do not lie one after the other lie within a row, in
        which their elements do, or are one."""
        last, v = self.k.ndim - 1, self.vector()
        apart = [a for a, x in enumerate(self.accesses) if not (x.flat or x.one)]
        return not apart or (
            self.k.shape[last] % v == 0
            and all(self.accesses[a].strides[last] in (0, SIZES[self.access_type(a)]) for a in apart)
        )

    def vector_at(self, a: int) -> str:
        """C++ lvalue of the 16-byte vector of access ``a`` that starts at element i."""
        x, pack = self.accesses[a], f"tt_pack<{self.access_type(a)}, {self.vector()}>"
        if x.flat:
            return f"*({pack} *)(({self.access_type(a)} *)p.access[{a}] + i)"
        return f"*({pack} *)(p.access[{a}] + at{a})"

    def loaded(self, s: int, indent: str) -> list[str]:
        """A slot's vector."""
        a = self.slots[s].index
        if self.accesses[a].flat or self.accesses[a].strides[self.k.ndim - 1]:
            return [f"{indent}in{s}[u] = {self.vector_at(a)};"]
        loop = f"for (int e = 0; e < {self.vector()}; e++) in{s}[u].at[e] = {self.place(a, 'i')};"
        return ["#pragma unroll", indent + loop]

    def _vectors(self, stage) -> list[str]:
        """The way through whole vectors, where everything is aligned; the last few elements go one by one, and so do
        those of a thread that came upon an unusual one."""
        loads = self.loads(stage)
        unroll, v = self.detail, self.vector()
        tile = v * FLAT_THREADS * unroll
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
        text += self.strided({self.slots[s].index for s in loads}, 0, self.k.ndim, "i", " " * 16)
        for s in loads:
            text += self.loaded(s, " " * 16)
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
        text += self.strided({x.access for x in self.stores}, 0, self.k.ndim, "i", " " * 20)
        text += [f"{' ' * 20}{self.vector_at(x.access)} = out{n}[u];" for n, x in enumerate(self.stores)]
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


_HELPERS = [
    "template <typename T> static TT_DEVICE T tt_number_as(int64_t bits) {",
    "    union { int64_t bits; T value; } u;",
    "    u.bits = bits;",
    "    return u.value;",
    "}",
]
