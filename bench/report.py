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
    def demands(self):
        """What the row asks for: (sides of which the best is judged, against what or None, limit)."""
        row = self.row
        judged = row.ours or (self.suite.ours,)
        first = [] if row.target is None else [(judged, None if row.absolute else row.against, row.target)]
        return [*first, *row.also]

    @property
    def ok(self):
        """Whether all that is asked of the row is met; None if nothing is, or what is needed to tell is missing."""
        verdicts = [self._met(*demand) for demand in self.demands]
        verdicts += [None if ratio is None else ratio <= limit for ratio, limit in self.limits]
        verdicts = [verdict for verdict in verdicts if verdict is not None]
        return all(verdicts) if verdicts else None

    def _met(self, judged, against, limit):
        if all(side in self.errors for side in judged):
            return False
        reached = self._reached(judged, against)
        if reached is None:
            return None
        return reached >= limit if self.row.is_rate else reached <= limit

    def _reached(self, judged, against):
        """The best of the judged sides, over that of the side (or `BEST`) ``against``."""
        reached = self._best(judged)
        if against is None or reached is None:
            return reached
        other = self._best(self.suite.peers if against == BEST else (against,))
        return None if other is None else reached / other

    def _best(self, sides):
        values = [self.values[side] for side in sides if side in self.values]
        return (max if self.row.is_rate else min)(values, default=None)

    def _over(self, side):
        """ours / that side, which may be `BEST`."""
        return self._reached((self.suite.ours,), side)

    def _quotient(self, side, value):
        return self.values[side] / value if side in self.values and value is not None else None

    @property
    def target(self):
        """All targets in words."""
        return "; ".join(self._in_words(*demand) for demand in self.demands)

    def _in_words(self, judged, against, limit):
        sign = "≥" if self.row.is_rate else "≤"
        words = f"{sign} {_scaled(limit)}" if against is None else f"{sign} {limit:.3g} × {against}"
        if judged == (self.suite.ours,) and not self.row.also:
            return words
        reached = None if against is None else self._reached(judged, against)
        return f"{' or '.join(judged)} {words}" + ("" if reached is None else f" ({reached:.2f})")

    def line(self, width):
        """The row as a line of the table, and one more for each error."""
        cells = [f"{self.row.name:{width}}"]
        for side in self.suite.sides:
            cells.append(f"{'error' if side in self.errors else self._shown(side):>{_CELL}}")
        for name, ratio in zip(_ratio_names(self.suite), [self.ratio, *(ratio for ratio, _ in self.limits)]):
            cells.append(f"{'' if ratio is None else format(ratio, '.3f'):>{_wide(name)}}")
        cells.append(f"  {self.target:16}{' ' * (len(self.target) > 15)}{_VERDICTS[self.ok]}")
        errors = [f"    {side} ({self.suite.sides[side]}): {first_line(text)}" for side, text in self.errors.items()]
        return "\n".join(["".join(cells).rstrip(), *errors])

    def _shown(self, side):
        return "" if side not in self.values else shown(self.values[side], self.row.unit)

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


def first_line(text):
    """The first line of an error's message, which may be long."""
    return text.strip().partition("\n")[0]


def shown(value, unit):
    """A value of a row for a reader."""
    if unit == "s":
        return _scaled(value)
    if value < 1e4:
        return f"{value:.0f} {unit}"
    return f"{value / 1e3:.3g} {unit.translate({ord('G'): 'T', ord('M'): 'G'})}"


def _ratio_names(suite):
    best = suite.peers[0] if len(suite.peers) == 1 else BEST
    return [f"{suite.ours}/{best}", *(f"{a}/{b} (≤ {limit:g})" for (a, b), limit in suite.limits.items())]


def _wide(name):
    return max(_CELL, len(name) + 2)


def header(suite, width):
    """The table's first line."""
    names = [*suite.sides, *_ratio_names(suite)]
    return f"{'':{width}}" + "".join(f"{name:>{_wide(name)}}" for name in names) + "  target"


def circumstances(suite, sides):
    """When, on what and with which modules: without these, a figure means nothing."""
    modules = dict.fromkeys(suite.sides[side] for side in sides)
    return {
        "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds"),
        "command": " ".join(["python", *sys.orig_argv[1:]]),
        "python": platform.python_version(),
        "cpu": _cpu_name(),
        "cores": len(os.sched_getaffinity(0)),
        "load": os.getloadavg()[0],
        "versions": {module: _version(module) for module in modules},
        **(suite.facts() if suite.facts else {}),
    }


def described(facts):
    """Those facts for a reader, with a warning where they spoil the figures."""
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    text = f"{facts['cpu']}, {facts['cores']} cores; Python {facts['python']}, {versions}"
    if "gpu" in facts:
        text = f"{facts['gpu']}; {text}"
    if facts["load"] > facts["cores"] / 2:
        text += f"\nThe machine is busy (load {facts['load']:.1f}), so ratios will stray."
    return text


def whole(suite_name, facts, outcomes):
    """The whole run as what JSON can hold; times are in seconds."""
    sides = list(outcomes[0].suite.sides)
    return {"suite": suite_name, **facts, "sides": sides, "rows": [outcome.as_json() for outcome in outcomes]}


def merged(path, run):
    """The run saved at ``path``, if there is one, in which the rows of this one take the places of those of their
    names, or come last. They bring the circumstances that are not those of the saved run."""
    if not os.path.exists(path):
        return run
    with open(path, encoding="utf-8") as file:
        saved = json.load(file)
    own = {name: value for name, value in run.items() if name != "rows" and saved.get(name) != value}
    rows = {row["row"]: row for row in saved["rows"]}
    for row in run["rows"]:
        of = own | row.get("of", {})
        rows[row["row"]] = row | ({"of": of} if of else {})
    return saved | {"rows": list(rows.values())}


def save(path, run):
    """Write a run to ``path`` as JSON."""
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
