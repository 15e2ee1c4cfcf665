"""What a row is, and how a suite collects its rows."""

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

from .timing import BATCH

#: The sides of an ordinary comparison, in the order of the table's columns, and the module that each one imports.
#: PyTorch's own fused optimizers are a side where there is one.
SIDES = {"ours": "tinytorch", "torch": "torch", "torch-fused": "torch", "numpy": "numpy"}
#: What a target is compared with if it is the fastest of the peers.
BEST = "best"


@dataclass(frozen=True)
class Row:
    """One line of the table: a piece of work, and what is asked of it.

    ``make(torch)`` builds the data and returns the call to time; it receives tinytorch and PyTorch in turn.
    ``numpy(np)`` does the same for NumPy, where NumPy has the operation.
    """

    name: str
    make: Callable
    numpy: Callable | None = None
    #: ``make(torch, **options)`` takes options for an optimizer.
    optimizes: bool = False
    #: The limit on ours / ``against`` (a side, or `BEST`), or, if ``absolute``, on ours alone (seconds).
    #: None: for information only.
    target: float | None = None
    against: str = "torch"
    absolute: bool = False
    #: The side that is judged, or several of which the best is; empty: the suite's.
    ours: tuple[str, ...] = ()
    #: What is demanded besides: (sides of which the best is judged, against which side, limit).
    also: tuple[tuple[tuple[str, ...], str, float], ...] = ()
    #: The call does this many ops: report the time of one.
    per: int = 1
    #: Floating-point operations of a call: report GFLOP/s, where more is better.
    flops: float | None = None
    #: Bytes that a call cannot but read and write: report GB/s.
    nbytes: float | None = None
    #: The call times itself and returns seconds, because part of what it does must not count.
    self_timed: bool = False
    #: What the call measures itself and returns is memory, in megabytes.
    megabytes: bool = False
    #: Only the first call of a new process counts, with nothing of earlier processes in its caches.
    first: bool = False
    #: The call starts processes of its own.
    forks: bool = False
    #: How often every side has its turn, if not as often as the suite says.
    rounds: int | None = None
    #: Seconds that one batch of calls should fill.
    batch: float = BATCH
    #: What the side that was prepared first has found, for the others to be compared with.
    first_results: list = field(default_factory=list, compare=False)

    def on(self, side):
        """Whether that side has a version of this row."""
        return {"numpy": self.numpy is not None, "torch-fused": self.optimizes}.get(side, True)

    def prepare(self, side, threads):
        """Import the side's library, limit its threads, build the data; return the call to time."""
        module = importlib.import_module(SIDES[side])
        if side == "numpy":
            return self.numpy(module)
        module.set_num_threads(threads)
        module.manual_seed(0)
        make = functools.partial(self.make, fused=True) if side == "torch-fused" else self.make
        return make(module)

    def waiter(self, side):
        """What a batch calls at its end to wait for what its calls have begun; None: they have ended."""
        return None

    @property
    def is_rate(self):
        """Is more better?"""
        return self.flops is not None or self.nbytes is not None

    def value(self, seconds):
        """What the table shows for a call that took ``seconds``: seconds per op, GFLOP/s or GB/s."""
        return (self.flops or self.nbytes) / seconds / 1e9 if self.is_rate else seconds / self.per

    @property
    def unit(self):
        if self.megabytes:
            return "MB"
        return "s" if not self.is_rate else "GFLOP/s" if self.flops is not None else "GB/s"


@dataclass
class Suite:
    """Rows that are measured in the same manner.

    ``measure(row, sides, rounds)`` is `timing.together` or `timing.apart`; ``rounds`` is its default. The side
    ``ours`` is the one that is judged: the table gives its ratio to the fastest of the ``peers``. Of two sides
    in ``limits``, the first may take so many times what the second takes, on every row.
    """

    about: str
    measure: Callable
    rounds: int
    sides: dict[str, str] = field(default_factory=lambda: SIDES)
    ours: str = "ours"
    peers: tuple[str, ...] = ("torch", "torch-fused")
    limits: dict[tuple[str, str], float] = field(default_factory=dict)
    #: Says why the suite cannot run on this machine, if it cannot.
    obstacle: Callable | None = None
    #: More circumstances of a run, by name.
    facts: Callable | None = None
    kind: type[Row] = Row
    rows: list[Row] = field(default_factory=list)

    def row(self, name, **details):
        """Decorate a ``make`` function: add it as a row called ``name``."""

        def add(make):
            self.rows.append(self.kind(name, make, **details))
            return make

        return add
