"""What a row is, and how a suite collects its rows."""

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field

#: The sides of every comparison, in the order of the table's columns, and the module that each one imports.
SIDES = {"ours": "tinytorch", "torch": "torch", "numpy": "numpy"}


@dataclass(frozen=True)
class Row:
    """One line of the table: a piece of work, and what is asked of it.

    ``make(torch)`` builds the data and returns the call to time; it receives tinytorch and PyTorch in turn.
    ``numpy(np)`` does the same for NumPy, where NumPy has the operation.
    """

    name: str
    make: Callable
    numpy: Callable | None = None
    #: The limit on ours / torch, or, if ``absolute``, on ours alone (seconds). None: for information only.
    target: float | None = None
    absolute: bool = False
    #: The call does this many ops: report the time of one.
    per: int = 1
    #: Floating-point operations of a call: report GFLOP/s, where more is better.
    flops: float | None = None
    #: The call times itself and returns seconds, because part of what it does must not count.
    self_timed: bool = False

    def on(self, side):
        """Whether that side has a version of this row."""
        return side != "numpy" or self.numpy is not None

    def prepare(self, side, threads):
        """Import the side's library, limit its threads, build the data; return the call to time."""
        module = importlib.import_module(SIDES[side])
        if side == "numpy":
            return self.numpy(module)
        module.set_num_threads(threads)
        module.manual_seed(0)
        return self.make(module)

    def value(self, seconds):
        """What the table shows for a call that took ``seconds``: seconds per op, or GFLOP/s."""
        return seconds / self.per if self.flops is None else self.flops / seconds / 1e9

    @property
    def unit(self):
        return "s" if self.flops is None else "GFLOP/s"


@dataclass
class Suite:
    """Rows that are measured in the same manner.

    ``measure(row, sides, rounds)`` is `timing.together` or `timing.apart`; ``rounds`` is its default.
    """

    about: str
    measure: Callable
    rounds: int
    rows: list[Row] = field(default_factory=list)

    def row(self, name, **details):
        """Decorate a ``make(torch)`` function: add it as a row called ``name``."""

        def add(make):
            self.rows.append(Row(name, make, **details))
            return make

        return add
