"""The same work eagerly, fused (interpreted and compiled), and by PyTorch: does it agree, and what does it cost?"""

from __future__ import annotations

import functools
import json
import math
import os
import pathlib
import statistics
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..fuse import Explanation
from ..fuse.describe import bytes_text, count_text
from ..tensor import Tensor
from . import digest
from .events import Trace
from .gains import Gain, gains_of
from .report import Comparison, limits_of, page, time_text
from .state import State, disagreement, distance, eagerly, flat
from .turns import OURS, THEIRS, Missing, Ours, Torch, foreign, take_turns

_GROUPS = {"fused": ("interpreted", "compiled")}


class Mode(NamedTuple):
    """How one mode did. What could not be found out is None."""

    name: str
    seconds: float | None  # of a call, the median of batches
    spread: tuple[float, float] | None  # quartiles
    first: float | None  # seconds of the first call
    ready: float | None  # seconds until the compiled kernels were there
    kernels: int | None  # launched by a call
    compiled: int | None  # of these, kernels of fused programs that were compiled
    traffic: int | None  # bytes read and written
    peak: int | None  # bytes beyond those in use before the call
    agrees: bool | None  # with the first mode: bit by bit, PyTorch within the tolerance
    remark: str  # where it differs; why there are no figures
    trace: Trace | None  # of one call
    explanation: Explanation | None


class Compared:
    """What ``compare`` found; ``str()`` of it is a table.

    ``modes``    by name: see ``Mode``
    ``gains``    lines of the user's by the time that fused mode saved there: see ``Gain`` in gains.py
    ``agree``    do all modes that ran agree?
    ``result``   what the function returned in the first mode
    """

    def __init__(self, name: str, modes: dict[str, Mode], gains: list[Gain], result):
        self.name, self.modes, self.gains, self.result = name, modes, gains, result

    @property
    def agree(self) -> bool:
        return all(m.agrees is not False for m in self.modes.values())

    @property
    def breaks(self) -> list[tuple[str, str, str, int]]:
        """Why programs ended: (mode, "file:line", reason, operators), in order."""
        return [
            (m.name, str(p.place or ""), p.reason, p.operators)
            for m in self.modes.values()
            if m.explanation
            for p in m.explanation.programs
        ]

    def table(self) -> Comparison:
        """The figures, side by side."""
        modes = list(self.modes.values())
        made = Comparison(
            list(self.modes),
            "Medians of calls that took turns. The first call is the first in this "
            "process: what one mode has warmed up, such as threads and caches, is warm for the next. "
            "Kernels and traffic are those of operators; an optimizer's step that is one call is not "
            "among them.",
        )
        made.add("a call", [m.seconds for m in modes], _seconds, less=True)
        first = modes[0].seconds
        made.add(
            f"{modes[0].name} / this",
            [first / m.seconds if first and m.seconds else None for m in modes],
            "{:.2f} x".format,
        )
        made.add("first call", [m.first for m in modes], _seconds, less=True)
        made.add("compiled after", [m.ready for m in modes], _seconds)
        made.add("kernels launched", [m.kernels for m in modes], "{:,}".format, less=True)
        made.add("of these fused and compiled", [m.compiled for m in modes], "{:,}".format)
        made.add("read and written", [m.traffic for m in modes], bytes_text, less=True)
        made.add("peak memory", [m.peak for m in modes], bytes_text, less=True)
        made.add("results", [_verdict(m, k) for k, m in enumerate(modes)])
        return made

    def __str__(self):
        lines = [self.name, "", str(self.table())]
        lines += [f"{m.name}: {m.remark}" for m in self.modes.values() if m.remark]
        if self.gains:
            before, after = self._compared_modes
            lines += ["", f"lines that gained most, {before} and {after}:"]
            lines += [
                f"  {time_text(g.before):>8}  {time_text(g.after):>8}  {g.place}  {' '.join(g.names[:8])}"
                for g in self.gains[:8]
            ]
        last = self._last_fused
        if last is not None:
            lines += ["", "why programs ended:"]
            lines += [
                f"  {place or 'unknown'}: {reason} ({count_text(operators, 'operator')})"
                for mode, place, reason, operators in self.breaks
                if mode == last.name
            ][:20]
        return "\n".join(lines)

    __repr__ = __str__

    @property
    def _last_fused(self) -> Mode | None:
        return next((m for m in reversed(self.modes.values()) if m.explanation is not None), None)

    @property
    def _compared_modes(self) -> tuple[str, str]:
        return "eager", self._last_fused.name

    def data(self) -> dict[str, Any]:
        """All figures, as JSON has them."""
        modes = {}
        for m in self.modes.values():
            figures = {key: value for key, value in m._asdict().items() if key not in ("trace", "explanation")}
            if m.explanation is not None:
                figures["programs"] = [_program(p) for p in m.explanation.programs]
            if m.trace is not None:
                figures["operators"] = [t._asdict() for t in digest.totals(m.trace)]
            modes[m.name] = figures
        return {"name": self.name, "agree": self.agree, "modes": modes, "gains": [g._asdict() for g in self.gains]}

    def to_json(self, path=None) -> str:
        """All figures as JSON text; also written to ``path``, where one is given."""
        return _written(json.dumps(self.data(), indent=1, default=str), path)

    def to_html(self, path=None) -> str:
        """A page with the timelines, charts and tables; also written to ``path``, where one is given."""
        gains = None
        if self.gains:
            rows = [{**g._asdict(), "names": " ".join(g.names)} for g in self.gains]
            gains = {
                "modes": self._compared_modes,
                "rows": rows,
                "note": "Time of the operators at a line. A kernel's is shared out among the lines of its "
                "operators, by the elements that they compute.",
            }
        traces = {m.name: m.trace for m in self.modes.values() if m.trace is not None}
        text = page(
            traces,
            title=self.name,
            subtitle="the same work in each mode",
            comparison=self.table(),
            gains=gains,
            limits=limits_of(traces),
        )
        return _written(text, path)


def compare(
    fn: Callable,
    *args,
    modes: Sequence[str] = ("eager", "fused"),
    torch=None,
    rounds: int = 15,
    rtol: float = 1e-3,
    atol: float = 1e-5,
    kwargs: dict | None = None,
) -> Compared:
    """Calls ``fn(*args, **kwargs)`` eagerly, fused and by PyTorch, each from the same start, and compares.

    ``modes``   of "eager", "interpreted" and "compiled" (the two tiers of fused mode; "fused" is both), "torch" and
                "torch.compile"
    ``torch``   the same work for PyTorch: a function of the same arguments, whose tensors are PyTorch's; True for
                ``fn`` itself, if it says nothing but methods and Python's operators. Asks for the mode "torch".
    ``rounds``  of timing, in which the modes take turns
    ``rtol, atol``  how near PyTorch's results must be; our own modes must agree bit by bit

    Tensors, modules and optimizers that ``fn`` sees (arguments, closure, globals) are as before in the end, as are
    default generators of random numbers; what they hold after a call must agree too. What ``fn`` raises is raised.
    """
    kwargs = kwargs or {}
    wanted = list(dict.fromkeys(part for mode in modes for part in _GROUPS.get(mode, (mode,))))
    if torch and not any(mode in THEIRS for mode in wanted):
        wanted.append("torch")
    for mode in wanted:
        if mode not in OURS + THEIRS:
            raise ValueError(
                f"compare: argument 'modes' must be of {', '.join(OURS + tuple(_GROUPS) + THEIRS)}, got '{mode}'"
            )
    if rounds < 1:
        raise ValueError(f"compare: argument 'rounds' must be at least 1, got {rounds}")
    theirs = {mode: foreign(fn if torch in (None, True) else torch, mode) for mode in wanted if mode in THEIRS}
    with eagerly():
        return _compare(fn, args, kwargs, wanted, theirs, rounds, rtol, atol)


def _compare(fn, args, kwargs, wanted, theirs, rounds, rtol, atol) -> Compared:
    state = State(fn, args, kwargs)
    sides = {}
    for mode in wanted:
        if mode in OURS:
            sides[mode] = Ours(mode, fn, args, kwargs, state)
        elif isinstance(theirs[mode], str):
            sides[mode] = Missing(mode, theirs[mode])
        else:
            sides[mode] = Torch(mode, theirs[mode], args, kwargs)
    try:
        for side in sides.values():
            state.restore()
            side.begin()
        times = take_turns([s for s in sides.values() if not s.missing], rounds)
        for side in sides.values():
            state.restore()
            side.look()
    finally:
        state.restore()
    return _judged(_name(fn), list(sides.values()), times, rtol, atol)


def _judged(name: str, sides: list, times: dict[str, list[float]], rtol: float, atol: float) -> Compared:
    modes: dict[str, Mode] = {}
    reference = next((s for s in sides if isinstance(s, Ours)), None)
    for side in sides:
        if side.missing:
            modes[side.mode] = Mode(side.mode, *[None] * 9, side.missing, None, None)
            continue
        seconds = times[side.mode]
        agrees, remark = None, ""
        if reference is not None and side is not reference:
            remark = _difference(reference, side, rtol, atol)
            agrees = not remark
        trace = side.trace
        if side.mode == "eager" and any(True for _ in trace.of_kind("program")):
            remark = "the function enters fused mode by itself, here too"
        kernels = digest.launches(trace) if trace is not None else None
        compiled = sum(k.compiled for k in side.explanation.kernels) if side.explanation else None
        modes[side.mode] = Mode(
            side.mode,
            statistics.median(seconds),
            _quartiles(seconds),
            side.first,
            side.ready,
            kernels,
            compiled,
            digest.traffic(trace) if trace is not None else None,
            side.peak,
            agrees,
            remark,
            trace,
            side.explanation,
        )
    fused = next((m for m in reversed(modes.values()) if m.explanation is not None), None)
    gains = gains_of(modes["eager"].trace, fused.trace, fused.explanation) if fused and "eager" in modes else []
    return Compared(name, modes, gains, reference.result if reference else None)


def _difference(ours: Ours, side, rtol: float, atol: float) -> str:
    """Where a mode differs from the first; "" if nowhere."""
    if isinstance(side, Ours):
        return disagreement(ours.results, side.results)
    mine = {}
    for name, value in flat("result", ours.result):
        if isinstance(value, Tensor):
            value = value.detach().cpu().double().numpy()
        mine[name] = np.asarray(value, dtype=np.float64) if isinstance(value, (int, float, np.ndarray)) else np.zeros(0)
    text, worst = distance(mine, side.results, rtol, atol)
    return f"{text} (by at most {worst:.2g})" if text and math.isfinite(worst) else text


def _quartiles(seconds: list[float]) -> tuple[float, float]:
    if len(seconds) < 2:
        return seconds[0], seconds[0]
    low, _, high = statistics.quantiles(seconds, n=4, method="inclusive")
    return low, high


def _verdict(m: Mode, place: int) -> str | None:
    if m.seconds is None:
        return None
    if m.agrees is None:
        return "compared with" if place == 0 else None
    if not m.agrees:
        return "differ"
    return "near" if m.name in THEIRS else "equal bits"


def _seconds(s: float) -> str:
    return time_text(s * 1e9)


def _name(fn: Callable) -> str:
    while isinstance(fn, functools.partial):
        fn = fn.func
    return getattr(fn, "__qualname__", type(fn).__qualname__)


def _program(p) -> dict[str, Any]:
    return {
        "operators": p.operators,
        "reason": p.reason,
        "place": str(p.place or ""),
        "read": p.reads,
        "written": p.writes,
        "kernels": [
            {"name": k.name, "shape": k.shape, "compiled": k.compiled, "nanoseconds": k.nanoseconds} for k in p.kernels
        ],
    }


def _written(text: str, path) -> str:
    if path is not None:
        pathlib.Path(os.fspath(path)).write_text(text, encoding="utf-8")
    return text
