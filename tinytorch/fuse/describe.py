"""Programs and kernels as Python objects, for people: what explain shows, and the lines of TINYTORCH_DEBUG."""

import math
from typing import NamedTuple

from ..backends.cpu import lib
from ..dtypes import ALL
from ..scalar import ELEMENTWISE, REDUCERS
from ..dot import Picture
from . import trace
from .dot import program_picture
from .trace import Trace
from .listeners import Place, Run, call_of, operator_of, place_of
from .work import kernel_work

PATTERNS = {
    lib.TT_PATTERN_POINTWISE: "pointwise",
    lib.TT_PATTERN_ROW_REDUCTION: "row_reduction",
    lib.TT_PATTERN_SPLIT_REDUCTION: "split_reduction",
    lib.TT_PATTERN_OUTER_REDUCTION: "outer_reduction",
    lib.TT_PATTERN_EXTERN: "extern",
}
_SPELLED = {
    "__bool__": "bool()",
    "__repr__": "print",
    "__str__": "print",
    "__format__": "format()",
    "__int__": "int()",
    "__float__": "float()",
    "__complex__": "complex()",
    "__index__": "an index",
    "__contains__": "in",
}


class Kernel(NamedTuple):
    """A kernel as it was when its program ran."""

    pattern: str  # of iteration: "pointwise", "row_reduction", ...: TT_PATTERN_ in kernels/api/fuse.h
    operators: tuple[str, ...]  # in order
    shape: tuple[int, ...]  # of iteration
    dtype: str  # of its results
    inputs: int  # operands in memory
    outputs: int
    stages: int  # passes over a row
    compiled: bool
    reads: int  # bytes
    writes: int
    nanoseconds: int  # of that run
    operations: int  # floating-point ones, of that run: see work.py
    nodes: tuple[int, ...]  # numbers of the recorded operators

    @property
    def name(self) -> str:
        """Made of its operators."""
        return joined(self.operators)


class Program(NamedTuple):
    """A program and how it came to run."""

    number: int
    known: bool  # it had been planned before
    reason: str  # why the trace ended, for people
    cause: str  # the same as a word: "leave", "value", "operator", ...
    operator: str  # the operator that could not be fused, or wrote, or shared; "" for other causes
    place: Place | None  # the user's line that ended it
    kernels: tuple[Kernel, ...]
    reads: int  # bytes
    writes: int
    eager_reads: int  # the same of its operators one by one
    eager_writes: int
    temporaries: int  # bytes of values that only its kernels hand each other
    trace: Trace
    places: tuple[Place | None, ...]  # where each operator was recorded

    @property
    def operators(self) -> int:
        """How many were recorded."""
        return len(self.trace.nodes)

    def to_dot(self) -> Picture:
        """Its graph as DOT text that can draw itself: ``.svg()``, ``.text()``."""
        return program_picture(self)


def program_of(run: Run) -> Program:
    """All that there is to know of a run."""
    p = run.program
    recorded = trace.read(p, run.record.numbers)
    cause, operator, text = why(run)
    kernels = tuple(kernel_of(p.kernels[k], recorded) for k in range(p.num_kernels))
    return Program(
        p.number,
        bool(run.record.known),
        text,
        cause,
        operator,
        place_of(run.frame),
        kernels,
        p.reads,
        p.writes,
        p.eager_reads,
        p.eager_writes,
        p.temporaries,
        recorded,
        run.lines.places if run.lines else (),
    )


def why(run: Run) -> tuple[str, str, str]:
    """Why a program ended: a word, the operator at fault, a sentence."""
    reason = run.record.reason
    call, operator = call_of(run.frame), operator_of(run.frame)
    called = _SPELLED.get(call, f"{call}()")
    if reason == lib.TT_FLUSH_LEAVE:
        return "leave", "", "end of the mode"
    if reason == lib.TT_FLUSH_VALUE:
        return "value", "", f"value read by {called}"
    if reason == lib.TT_FLUSH_OPERATOR:
        return "operator", operator, f"{operator or called} is not fused"
    if reason == lib.TT_FLUSH_WRITE:
        return "write", operator, f"{operator or called} writes and is not fused"
    if reason == lib.TT_FLUSH_LIMIT:
        return "limit", "", "size limit of a program"
    if reason == lib.TT_FLUSH_THREAD:
        return "thread", "", f"needed by another thread, in {called}"
    if reason == lib.TT_FLUSH_SHARED:
        return "shared", operator, f"memory shared by {operator or call}()"
    if reason == lib.TT_FLUSH_STEP:
        return "step", "", "one step"
    if reason == lib.TT_FLUSH_REPLAY:
        return "replay", "", "replayed, a pure function's"
    return "asked", "", f"asked to run by {called}"


def kernel_of(k, recorded: Trace) -> Kernel:
    """Of a ``tt_kernel *``."""
    done = _steps(k)
    done += [
        (_random_node(recorded, s), -1, "random") for s in k.slots[0 : k.num_slots] if s.kind == lib.TT_SLOT_RANDOM
    ]
    done += [
        (n, 0, "fill")
        for s in k.stores[0 : k.num_stores]
        if k.slots[s.slot].kind == lib.TT_SLOT_CONST
        for n in recorded.fills(k.accesses[s.access].storage)
    ]
    done.sort()
    nodes = tuple(dict.fromkeys(node for node, _, _ in done))
    shape = max((recorded.nodes[n].shape for n in nodes), key=math.prod, default=())
    inputs = sum(s.kind in (lib.TT_SLOT_LOAD, lib.TT_SLOT_ONE) for s in k.slots[0 : k.num_slots])
    reductions = [f for f in k.reductions[0 : k.num_reductions] if f.access >= 0]
    inputs += sum((f.param >= 0) + (k.pattern == lib.TT_PATTERN_EXTERN) for f in reductions)
    outputs = [s.access for s in k.stores[0 : k.num_stores]] + [f.access for f in reductions]
    dtypes = dict.fromkeys(ALL[k.accesses[a].dtype].name for a in outputs)
    return Kernel(
        PATTERNS[k.pattern],
        tuple(name for _, _, name in done),
        shape,
        "/".join(dtypes),
        inputs,
        len(outputs),
        k.num_stages,
        k.was_compiled == 1,
        k.reads,
        k.writes,
        k.nanoseconds,
        kernel_work(k),
        nodes,
    )


def name_of(k) -> str:
    """Of a ``tt_kernel *``, made of its operators."""
    return joined(tuple(name for _, _, name in sorted(_steps(k))))


def joined(operators: tuple[str, ...], most: int = 6) -> str:
    """A kernel's name; long ones are cut."""
    shown = [o for o in operators if o not in ("cast", "copy")] or list(operators)
    return "_".join(shown if len(shown) <= most else [*shown[: most - 1], f"{len(shown) - most + 1}_more"])


def _steps(k) -> list[tuple[int, int, str]]:
    """(node, order, operator) of a kernel's instructions and reductions."""
    steps = [(i.node, at, _instruction(i)) for at, i in enumerate(k.instrs[0 : k.num_instrs])]
    reductions = enumerate(k.reductions[0 : k.num_reductions], k.num_instrs)
    return steps + [(f.node, at, REDUCERS[f.reducer].name) for at, f in reductions]


def _random_node(recorded: Trace, slot) -> int:
    """The node whose random numbers stand in a slot."""
    return next(
        n for n, node in enumerate(recorded.nodes) if node.kind == trace.RANDOM and node.inputs[0].id == slot.index
    )


def _instruction(i) -> str:
    if i.kind == lib.TT_INSTR_OP:
        return ELEMENTWISE[i.op].name
    return "cast" if i.kind == lib.TT_INSTR_CAST else "copy"


def bytes_text(n: float) -> str:
    """``"1.2 MB"``."""
    units = ["GB", "MB", "kB", "B"]
    while n >= 1000 and len(units) > 1:
        n /= 1000
        units.pop()
    return f"{n:.0f} {units[-1]}" if units[-1] == "B" or n >= 100 else f"{n:.1f} {units[-1]}"


def count_text(n: int, what: str) -> str:
    """``"1 kernel"``, ``"2 kernels"``."""
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def places_text(places) -> str:
    """Lines in few words: ``"net.py:10-12, 20; loss.py:5"``."""
    files: dict[str, set[int]] = {}
    for p in places:
        if p:
            file, _, _ = str(p).rpartition(":")
            files.setdefault(file, set()).add(p.line)
    parts = []
    for file, lines in files.items():
        runs: list[list[int]] = []
        for line in sorted(lines):
            if runs and line == runs[-1][1] + 1:
                runs[-1][1] = line
            else:
                runs.append([line, line])
        parts.append(f"{file}:" + ", ".join(f"{a}" if a == b else f"{a}-{b}" for a, b in runs))
    return "; ".join(parts)
