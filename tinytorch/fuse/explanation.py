"""``tinytorch.fuse.explain``: what fused mode made of a function."""

from __future__ import annotations

import threading

from ..backends.cpu import check, lib
from ..cpu import memory_stats
from .describe import Kernel, Program, bytes_text, count_text, places_text, program_of
from .mode import Fused
from .pure import Pure
from .listeners import LINES, Run, subscribe

_PEAK, _RESERVED = "allocated_bytes.all.peak", "reserved_bytes.all.peak"


class Explanation:
    """How a call ran in fused mode; ``str()`` of it is a table.

    ``result``       what the function returned
    ``programs``     every run of a program, in order: see ``Program`` in describe.py; ``programs[k].kernels``,
                     ``.reason``, ``.place``, ``.trace``
    ``recorded``     operators recorded
    ``bytes_read``, ``bytes_written``, ``eager_bytes_read``, ``eager_bytes_written``   of memory; what eager mode would
    ``peak_memory``  the most bytes of tensors and temporaries during the call, beyond those there before
    ``purity``       of a fused function: whether such calls may be replayed, or else the line why not
    """

    def __init__(self, result, programs: list[Program], peak_memory: int, purity: str = ""):
        self.result = result
        self.programs = programs
        self.peak_memory = peak_memory
        self.purity = purity

    @property
    def recorded(self) -> int:
        """Operators recorded."""
        return sum(p.operators for p in self.programs)

    @property
    def kernels(self) -> list[Kernel]:
        """Of all programs."""
        return [k for p in self.programs for k in p.kernels]

    @property
    def bytes_read(self) -> int:
        return sum(p.reads for p in self.programs)

    @property
    def bytes_written(self) -> int:
        return sum(p.writes for p in self.programs)

    @property
    def eager_bytes_read(self) -> int:
        return sum(p.eager_reads for p in self.programs)

    @property
    def eager_bytes_written(self) -> int:
        return sum(p.eager_writes for p in self.programs)

    def __str__(self):
        compiled = sum(k.compiled for k in self.kernels)
        programs, kernels = count_text(len(self.programs), "program"), count_text(len(self.kernels), "kernel")
        recorded = count_text(self.recorded, "operator")
        lines = [
            f"{recorded} recorded, run as {programs} of {kernels} ({compiled} compiled)",
            f"read {bytes_text(self.bytes_read)} and written {bytes_text(self.bytes_written)}; eagerly "
            f"{bytes_text(self.eager_bytes_read)} and {bytes_text(self.eager_bytes_written)}; "
            f"at most {bytes_text(self.peak_memory)} more memory than before",
        ]
        lines += [self.purity] * bool(self.purity)
        for number, p in enumerate(self.programs, 1):
            where = f"at {p.place}: " if p.place else ""
            lines += ["", f"program {number}: {count_text(p.operators, 'operator')}, ended {where}{p.reason}"]
            lines += [f"  {line}" for line in _table(p)]
        return "\n".join(lines)

    __repr__ = __str__


def explain(fn, *args, **kwargs) -> Explanation:
    """Calls ``fn(*args, **kwargs)`` in fused mode, and tells what became of it: which operators were recorded, the
    programs and kernels that they were run as, how much memory those touch and operators one by one would, and for each
    place where a program ended the reason and the line. What the call raises is raised.

    It looks at this call: whether a kernel is compiled, for one, depends on how often its program has run before.
    """
    check(lib.tt_fuse_flush(), "explain")
    pure = fn if isinstance(fn, Pure) else getattr(fn, "purity", None)
    purity = pure.verdict(args) if isinstance(pure, Pure) and not kwargs else ""
    programs: list[Program] = []
    me = threading.get_ident()

    def ran(run: Run) -> None:
        if (run.lines.thread if run.lines else threading.get_ident()) == me:
            programs.append(program_of(run))

    before = memory_stats()
    lib.tt_reset_peak()
    end = subscribe(LINES, ran)
    try:
        with Fused():
            result = fn(*args, **kwargs)
        check(lib.tt_fuse_flush(), "explain")  # inside of the mode it has not been left
        peak = memory_stats()[_PEAK]
    finally:
        end()
        lib.tt_raise_peak(before[_PEAK], before[_RESERVED])
    return Explanation(result, programs, peak - before["allocated_bytes.all.current"], purity)


_COLUMNS = (
    ("pattern", "<"),
    ("shape", "<"),
    ("dtype", "<"),
    ("in", ">"),
    ("out", ">"),
    ("stages", ">"),
    ("tier", "<"),
    ("read", ">"),
    ("written", ">"),
    ("operators", "<"),
    ("lines", "<"),
)


def _table(p: Program) -> list[str]:
    """The kernels of a program, a line each."""
    rows = [tuple(name for name, _ in _COLUMNS)]
    for k in p.kernels:
        places = places_text(p.places[n] for n in k.nodes if n < len(p.places))
        rows.append(
            (
                k.pattern,
                str(k.shape),
                k.dtype,
                str(k.inputs),
                str(k.outputs),
                str(k.stages),
                "compiled" if k.compiled else "interpreted",
                bytes_text(k.reads),
                bytes_text(k.writes),
                _names(k.operators),
                places,
            )
        )
    widths = [max(len(row[c]) for row in rows) for c in range(len(_COLUMNS))]
    return [
        "  ".join(f"{cell:{side}{width}}" for cell, (_, side), width in zip(row, _COLUMNS, widths)).rstrip()
        for row in rows
    ]


def _names(operators: tuple[str, ...], most: int = 12) -> str:
    shown = operators if len(operators) <= most else (*operators[: most - 1], f"and {len(operators) - most + 1} more")
    return " ".join(shown)
