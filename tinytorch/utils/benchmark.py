"""Times of statements. Follows ``torch.utils.benchmark``: Timer, Measurement, Compare."""

from __future__ import annotations

import math
import statistics
import sys
import textwrap
import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass, field

from .. import library_name
from ..backends.cpu import get_num_threads, set_num_threads
from ..cuda import is_available, synchronize

__all__ = ["Compare", "Measurement", "TaskSpec", "Timer", "timer"]

_UNITS = (
    ("s", "seconds", 1.0),
    ("ms", "milliseconds", 1e-3),
    ("us", "microseconds", 1e-6),
    ("ns", "nanoseconds", 1e-9),
)


def timer() -> float:
    """Seconds, when all kernels of the device have run."""
    if is_available():
        synchronize()
    return time.perf_counter()


def _unit(seconds: float) -> tuple:
    """The largest unit of which it is one or more."""
    return next((unit for unit in _UNITS if seconds >= unit[2]), _UNITS[-1])


@dataclass(frozen=True)
class TaskSpec:
    """What is measured, and what it is called."""

    stmt: str
    setup: str = ""
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        name = self.label or self.stmt if "\n" not in self.stmt else self.label or "[multiple lines]"
        return f"{name}: {self.sub_label}" if self.sub_label else name


@dataclass
class Measurement:
    """Seconds of ``number_per_run`` runs, as often as they were taken."""

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict | None = field(default=None)

    def __getattr__(self, name: str):
        if name in ("stmt", "setup", "label", "sub_label", "description", "env", "num_threads", "title"):
            return getattr(self.task_spec, name)
        raise AttributeError(name)

    @property
    def as_row_name(self) -> str:
        """What its row is called in a table."""
        return self.sub_label or self.stmt or "[Unknown]"

    @property
    def times(self) -> list[float]:
        """Seconds of one run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """Their mean."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """Their median."""
        return statistics.median(self.times)

    def _quartiles(self) -> tuple[float, float]:
        ordered = sorted(self.times)
        at = [(len(ordered) - 1) * q for q in (0.25, 0.75)]
        low, high = (ordered[int(a)] + (ordered[math.ceil(a)] - ordered[int(a)]) * (a % 1) for a in at)
        return low, high

    @property
    def iqr(self) -> float:
        """The distance of their quartiles."""
        low, high = self._quartiles()
        return high - low

    @property
    def significant_figures(self) -> int:
        """How many digits the spread leaves, 1 to 4: the median over the confidence interval (of 90 %) of the middle
        half's mean, of which the clock leaves no less than 25 ns."""
        n = len(self.times)
        middle = sorted(self.times)[n // 4 : math.ceil(3 * n / 4)]
        interval = max(1.645 * statistics.pstdev(middle) / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(math.log10(self.median / interval)), 1), 4) if self.median > 0 else 1

    @property
    def has_warnings(self) -> bool:
        """Is their spread more than a tenth of the median?"""
        return self.iqr > 0.1 * self.median

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Is their spread less than that part of the median?"""
        return self.iqr < threshold * self.median

    @staticmethod
    def merge(measurements) -> list[Measurement]:
        """Those of one task as one."""
        tasks: dict = {}
        for m in measurements:
            tasks.setdefault(m.task_spec, []).extend(m.times)
        return [Measurement(1, times, task) for task, times in tasks.items()]

    def __repr__(self):
        short, _, scale = _unit(self.median)
        low, high = (q / scale for q in self._quartiles())
        n, plural = len(self.raw_times), "" if len(self.raw_times) == 1 else "s"
        lines = [f"<{type(self).__module__}.{type(self).__name__} object at {hex(id(self))}>", self.title]
        if self.description:
            lines.append(self.description)
        if self.setup:
            lines.append("setup:\n" + textwrap.indent(self.setup, "  "))
        lines.append(f"  {'Median: ' if n > 1 else ''}{self.median / scale:.2f} {short}")
        if n > 1:
            lines.append(f"  IQR:    {high - low:.2f} {short} ({low:.2f} to {high:.2f})")
        threads = f"{self.num_threads} thread{'' if self.num_threads == 1 else 's'}"
        runs = f"{self.number_per_run} run{'' if self.number_per_run == 1 else 's'}"
        lines.append(f"  {n} measurement{plural}, {runs} {'per measurement, ' if n > 1 else ', '}{threads}")
        return "\n".join(lines)


class Timer:
    """Measures a statement of Python, with ``num_threads`` threads. ``globals`` are its names, and the library's;
    ``setup`` runs before each measurement; ``label``, ``sub_label``, ``description`` and ``env`` are for ``Compare``.
    Follows ``torch.utils.benchmark.Timer``."""

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: str = "python",
    ):
        language = str(language).lower().rpartition(".")[2]
        if language in ("c++", "cpp"):
            raise NotImplementedError("Timer: statements are Python's")
        if language not in ("python", "py"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(f"global_setup is C++ only, got `{global_setup}`.")
        names = {library_name.shown: sys.modules[library_name.shown], **(globals or {})}
        stmt, setup = (textwrap.dedent(code).strip() for code in (stmt, setup))
        shown = "" if setup == "pass" else setup
        self._task_spec = TaskSpec(stmt, shown, "", label, sub_label, description, env, num_threads)
        self._timer = timeit.Timer(stmt, setup, timer, names)

    def _run(self, number: int) -> float:
        threads = get_num_threads()
        set_num_threads(self._task_spec.num_threads)
        try:
            return max(self._timer.timeit(number), 1e-9)
        finally:
            set_num_threads(threads)

    def timeit(self, number: int = 1000000) -> Measurement:
        """That many runs, after a few to warm up."""
        self._run(max(number // 100, 2))
        return Measurement(number, [self._run(number)], self._task_spec)

    def _block(self, min_run_time: float) -> int:
        """How many runs take a thousandth of the time, and long enough for the clock."""
        number, wanted = 1, max(min_run_time / 1000, 1e-4)
        while self._run(number) < wanted:
            number *= 10
        return number

    def blocked_autorange(self, callback=None, min_run_time: float = 0.2) -> Measurement:
        """As many runs as the time allows, in blocks of which each is measured. ``callback(number, seconds)`` is called
        after each."""
        number = self._block(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time:
            times.append(self._run(number))
            if callback is not None:
                callback(number, times[-1])
        return Measurement(number, times, self._task_spec)

    def adaptive_autorange(
        self, threshold: float = 0.1, *, min_run_time: float = 0.01, max_run_time: float = 10.0, callback=None
    ) -> Measurement:
        """Runs until the spread is below ``threshold`` of the median, or the time is over."""
        number = self._block(min_run_time)
        made = Measurement(number, [], self._task_spec)
        while sum(made.raw_times) < max_run_time:
            made.raw_times.append(self._run(number))
            if callback is not None:
                callback(number, made.raw_times[-1])
            if len(made.raw_times) > 3 and sum(made.raw_times) >= min_run_time and made.meets_confidence(threshold):
                break
        return made


class Compare:
    """A table of measurements: a row for each ``sub_label`` and number of threads, a column for each ``description``.
    Follows ``torch.utils.benchmark.Compare``."""

    def __init__(self, results):
        self._results: list[Measurement] = []
        self._trim = False
        self.extend_results(results)

    def extend_results(self, results) -> None:
        """More measurements. ValueError for anything else."""
        for r in results:
            if not isinstance(r, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(r)} instead.")
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Leaves out digits that the spread makes chance."""
        self._trim = True

    def colorize(self, rowwise: bool = False) -> None:
        """Changes nothing: there are no colours."""

    def print(self) -> None:
        """Prints the table."""
        print(self)

    def _shown(self, m: Measurement, scale: float) -> str:
        if not self._trim:
            return f"{m.median / scale:.1f}"
        digits = m.significant_figures - 1 - math.floor(math.log10(m.median / scale))
        return f"{round(m.median / scale, digits):.{max(digits, 0)}f}"

    def _table(self, label: str, results: list[Measurement]) -> str:
        short, long, scale = _unit(min(m.median for m in results))
        columns = list(dict.fromkeys(m.description or "" for m in results))
        rows = list(dict.fromkeys((m.num_threads, m.env or "", m.as_row_name) for m in results))
        rows.sort(key=lambda row: row[0])
        cells = {(m.num_threads, m.env or "", m.as_row_name, m.description or ""): m for m in results}
        text = [["", *columns]]
        for row in rows:
            found = [cells.get((*row, column)) for column in columns]
            text.append([f"  {row[2]}", *["" if m is None else self._shown(m, scale) for m in found]])
        widths = [max(len(line[k]) for line in text) for k in range(len(columns) + 1)]
        lines = ["  |  ".join(cell.rjust(w) if k else cell.ljust(w) for k, (cell, w) in enumerate(zip(line, widths)))
                 for line in text]  # fmt: skip
        width = len(lines[0])
        made = [f"[{f' {label} '.center(width - 2, '-')}]", lines[0]]
        for k, (row, line) in enumerate(zip(rows, lines[1:])):
            if not k or row[0] != rows[k - 1][0]:
                made.append(f"{row[0]} threads: ".ljust(width, "-"))
            made.append(line)
        return "\n".join([*made, "", f"Times are in {long} ({short})."])

    def __str__(self):
        labels = dict.fromkeys(m.label or m.stmt for m in self._results)
        merged = Measurement.merge(self._results)
        return "\n\n".join(self._table(label, [m for m in merged if (m.label or m.stmt) == label]) for label in labels)
