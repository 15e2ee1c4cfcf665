"""What is printed and saved: the table, and the same as JSON."""

import datetime
import importlib.metadata
import json
import os
import platform
import sys

from .suite import SIDES

_CELL = 13
_VERDICTS = {True: "ok", False: "MISS", None: ""}
#: Largest unit first; the last one takes whatever is smaller still.
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


class Outcome:
    """A row beside what was measured, and the verdict on it."""

    def __init__(self, row, measured):
        self.row = row
        self.errors = measured.errors
        self.values = {side: row.value(seconds) for side, seconds in measured.seconds.items()}

    @property
    def ratio(self):
        """ours / torch, or None where one of them is missing."""
        if {"ours", "torch"} <= self.values.keys():
            return self.values["ours"] / self.values["torch"]
        return None

    @property
    def ok(self):
        """Whether the target is met; None without a target, or without PyTorch to compare with."""
        if self.row.target is None:
            return None
        if "ours" in self.errors:
            return False
        reached = self.values["ours"] if self.row.absolute else self.ratio
        if reached is None:
            return None
        return reached <= self.row.target if self.row.flops is None else reached >= self.row.target

    @property
    def target(self):
        """The target in words."""
        if self.row.target is None:
            return ""
        sign = "≤" if self.row.flops is None else "≥"
        return f"{sign} {self.row.target:g} {'s' if self.row.absolute else '× torch'}"

    def line(self, width):
        """The row as a line of the table, and one more for each error."""
        cells = [f"{self.row.name:{width}}"]
        for side in SIDES:
            cells.append(f"{'error' if side in self.errors else self._shown(side):>{_CELL}}")
        cells.append(f"{'' if self.ratio is None else format(self.ratio, '.3f'):>{_CELL}}")
        cells.append(f"  {self.target:16}{_VERDICTS[self.ok]}")
        errors = [f"    {SIDES[side]}: {error}" for side, error in self.errors.items()]
        return "\n".join(["".join(cells).rstrip(), *errors])

    def _shown(self, side):
        if side not in self.values:
            return ""
        value = self.values[side]
        if self.row.flops is not None:
            return f"{value:.0f} {self.row.unit}"
        scale, unit = next((scale for scale in _SCALES if value >= scale[0]), _SCALES[-1])
        return f"{value / scale:.3g} {unit}"

    def as_json(self):
        return {
            "row": self.row.name,
            "unit": self.row.unit,
            **{side: self.values.get(side) for side in SIDES},
            "ratio": self.ratio,
            "target": self.target or None,
            "ok": self.ok,
            "errors": self.errors,
        }


def header(width):
    """The table's first line."""
    return f"{'':{width}}" + "".join(f"{name:>{_CELL}}" for name in [*SIDES, "ours/torch"]) + "  target"


def circumstances(sides):
    """When, on what and with what: without these, a figure means nothing."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.orig_argv[1:]]),
        "python": platform.python_version(),
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "versions": {SIDES[side]: _version(SIDES[side]) for side in sides},
    }


def described(facts):
    """Those facts for a reader, with a warning where they spoil the figures."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    text = f"{facts['cpu']}, {facts['cores']} cores; Python {facts['python']}, {versions}"
    if facts["load"] > facts["cores"] / 2:
        text += f"\nThe machine is busy (load {facts['load']:.1f}), so ratios will stray."
    return text


def save(path, suite_name, facts, outcomes):
    """Write the whole run to ``path`` as JSON; times are in seconds."""
    run = {"suite": suite_name, **facts, "rows": [outcome.as_json() for outcome in outcomes]}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(run, file, indent=1, ensure_ascii=False)
        file.write("\n")


def _version(distribution):
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "(source tree)"


def _cpu_name():
    with open("/proc/cpuinfo") as lines:
        names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
        return next(names, platform.machine())
