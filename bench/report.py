"""What is printed and saved: the table, and the same as JSON."""

import datetime
import importlib.metadata
import json
import os
import platform
import sys

from .suite import BEST

_CELL = 13
_VERDICTS = {True: "ok", False: "MISS", None: ""}
#: Largest unit first; the last one takes whatever is smaller still.
_SCALES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))


class Outcome:
    """A row of a suite beside what was measured, and the verdict on it."""

    def __init__(self, suite, row, measured):
        self.suite, self.row = suite, row
        self.errors = measured.errors
        self.values = {side: row.value(seconds) for side, seconds in measured.seconds.items()}

    @property
    def ratio(self):
        """ours / the best peer, or None where one of them is missing."""
        return self._over(BEST)

    @property
    def limits(self):
        """(a / b, what it may be at most) for every pair the suite limits; the ratio is None where one is missing."""
        return [(self._quotient(a, self.values.get(b)), limit) for (a, b), limit in self.suite.limits.items()]

    @property
    def ok(self):
        """Whether all that is asked of the row is met; None if nothing is, or what is needed to tell is missing."""
        verdicts = [self._target_met(), *(None if ratio is None else ratio <= limit for ratio, limit in self.limits)]
        verdicts = [verdict for verdict in verdicts if verdict is not None]
        return all(verdicts) if verdicts else None

    def _target_met(self):
        if self.row.target is None:
            return None
        if self.suite.ours in self.errors:
            return False
        reached = self.values.get(self.suite.ours) if self.row.absolute else self._over(self.row.against)
        if reached is None:
            return None
        return reached <= self.row.target if self.row.flops is None else reached >= self.row.target

    def _over(self, side):
        """ours / that side, which may be `BEST`."""
        if side != BEST:
            return self._quotient(self.suite.ours, self.values.get(side))
        peers = [self.values[peer] for peer in self.suite.peers if peer in self.values]
        fastest = min if self.row.flops is None else max
        return self._quotient(self.suite.ours, fastest(peers, default=None))

    def _quotient(self, side, value):
        return self.values[side] / value if side in self.values and value is not None else None

    @property
    def target(self):
        """The target in words."""
        if self.row.target is None:
            return ""
        sign = "≤" if self.row.flops is None else "≥"
        if self.row.absolute:
            return f"{sign} {_scaled(self.row.target)}"
        return f"{sign} {self.row.target:g} × {self.row.against}"

    def line(self, width):
        """The row as a line of the table, and one more for each error."""
        cells = [f"{self.row.name:{width}}"]
        for side in self.suite.sides:
            cells.append(f"{'error' if side in self.errors else self._shown(side):>{_CELL}}")
        for name, ratio in zip(_ratio_names(self.suite), [self.ratio, *(ratio for ratio, _ in self.limits)]):
            cells.append(f"{'' if ratio is None else format(ratio, '.3f'):>{_wide(name)}}")
        cells.append(f"  {self.target:16}{_VERDICTS[self.ok]}")
        errors = [f"    {side} ({self.suite.sides[side]}): {error}" for side, error in self.errors.items()]
        return "\n".join(["".join(cells).rstrip(), *errors])

    def _shown(self, side):
        if side not in self.values:
            return ""
        value = self.values[side]
        return _scaled(value) if self.row.flops is None else f"{value:.0f} {self.row.unit}"

    def as_json(self):
        return {
            "row": self.row.name,
            "unit": self.row.unit,
            **{side: self.values.get(side) for side in self.suite.sides},
            "ratio": self.ratio,
            **{"/".join(pair): ratio for pair, (ratio, _) in zip(self.suite.limits, self.limits)},
            "target": self.target or None,
            "ok": self.ok,
            "errors": self.errors,
        }


def _scaled(seconds):
    scale, unit = next((scale for scale in _SCALES if seconds >= scale[0]), _SCALES[-1])
    return f"{seconds / scale:.3g} {unit}"


def _ratio_names(suite):
    best = suite.peers[0] if len(suite.peers) == 1 else BEST
    return [f"{suite.ours}/{best}", *(f"{a}/{b} (≤ {limit:g})" for (a, b), limit in suite.limits.items())]


def _wide(name):
    return max(_CELL, len(name) + 2)


def header(suite, width):
    """The table's first line."""
    names = [*suite.sides, *_ratio_names(suite)]
    return f"{'':{width}}" + "".join(f"{name:>{_wide(name)}}" for name in names) + "  target"


def circumstances(modules):
    """When, on what and with which modules: without these, a figure means nothing."""
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.orig_argv[1:]]),
        "python": platform.python_version(),
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "versions": {module: _version(module) for module in modules},
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
