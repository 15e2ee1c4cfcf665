"""The same work eagerly, fused (interpreted and compiled), and by PyTorch: does it agree, and what does it cost?"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import importlib.util
import json
import math
import os
import pathlib
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import cuda
from ..backends.cpu import lib
from ..cpu import memory_stats
from ..config import config
from ..fuse import Explanation, explain, fuse, wait
from ..fuse.describe import bytes_text, count_text
from ..tensor import Tensor
from . import digest
from .events import Trace
from .gains import Gain, gains_of
from .report import Comparison, limits_of, page, time_text
from .session import profile
from .state import State, disagreement, distance, eagerly, flat

OURS = ("eager", "interpreted", "compiled")
THEIRS = ("torch", "torch.compile")
_GROUPS = {"fused": ("interpreted", "compiled")}
_BATCH = 2e-3  # seconds that a batch of calls should fill
_MOST = 10_000  # calls of a batch
_PAUSE = 0.25  # seconds after PyTorch's turn: its threads go on spinning for a while, and would slow ours
_LOOK, _LOOKS = 1.0, 5  # seconds for looking at calls one by one, and the most that are looked at
_TRIES = 20  # times that the compiled tier is waited for


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
    theirs = {mode: _foreign(fn if torch in (None, True) else torch, mode) for mode in wanted if mode in THEIRS}
    with eagerly():
        return _compare(fn, args, kwargs, wanted, theirs, rounds, rtol, atol)


def _compare(fn, args, kwargs, wanted, theirs, rounds, rtol, atol) -> Compared:
    state = State(fn, args, kwargs)
    sides = {}
    for mode in wanted:
        if mode in OURS:
            sides[mode] = _Ours(mode, fn, args, kwargs, state)
        elif isinstance(theirs[mode], str):
            sides[mode] = _Missing(mode, theirs[mode])
        else:
            sides[mode] = _Torch(mode, theirs[mode], args, kwargs)
    try:
        for side in sides.values():
            state.restore()
            side.begin()
        times = _take_turns([s for s in sides.values() if not s.missing], rounds)
        for side in sides.values():
            state.restore()
            side.look()
    finally:
        state.restore()
    return _judged(_name(fn), list(sides.values()), times, rtol, atol)


class _Missing:
    """A mode that could not run."""

    def __init__(self, mode: str, remark: str):
        self.mode, self.missing = mode, remark

    def begin(self) -> None:
        pass

    look = begin


class _Ours:
    """A mode of this library's."""

    missing = ""
    pause = 0.0

    def __init__(self, mode: str, fn, args, kwargs, state: State):
        self.mode, self.args, self.kwargs, self.state = mode, args, kwargs, state
        self.fn = fn
        self.run = fn if mode == "eager" else fuse(fn)
        self.hot = -1 if mode == "interpreted" else config.get("fuse_hot") if config.get("fuse_hot") > 0 else 3
        self.ready = self.explanation = None

    @contextlib.contextmanager
    def inside(self) -> Iterator[None]:
        """The settings of this mode."""
        with config(fuse_hot=self.hot):
            yield

    def call(self) -> None:
        """Once, to the end."""
        self.run(*self.args, **self.kwargs)
        self.finish()

    def finish(self) -> None:
        """Until all work is done."""
        if self.state.on_device:
            cuda.synchronize()

    def begin(self) -> None:
        """The first call, and what it gave; then whatever is needed until calls are alike."""
        with self.inside():
            start = time.perf_counter()
            self.result = self.run(*self.args, **self.kwargs)
            self.finish()
            self.first = time.perf_counter() - start
            if self.mode == "compiled":
                self.compile(start)
                self.state.restore()
                self.result = self.run(*self.args, **self.kwargs)  # by compiled kernels, this one
                self.finish()
            self.results = self.state.results(self.result)
            self.call()

    def compile(self, start: float) -> None:
        """Calls until every kernel that can be is compiled."""
        compiled, tries = -1, 0
        while tries < _TRIES:
            for _ in range(self.hot + 1):
                self.call()
            wait(60)
            explanation = explain(self.fn, *self.args, **self.kwargs)
            now = sum(k.compiled for k in explanation.kernels)
            if now == len(explanation.kernels) or (now <= compiled and tries > 2):
                break
            compiled, tries = now, tries + 1
        self.ready = time.perf_counter() - start

    def look(self) -> None:
        """Memory and events of a call that is not the first: what that one makes, such as gradients and an optimizer's
        state, is there."""
        with self.inside():
            self.call()
            self.peak = self.measure_peak()
            traces, explanations = [], []
            end = time.perf_counter() + _LOOK
            while len(traces) < _LOOKS and (not traces or time.perf_counter() < end):
                if self.mode != "eager":
                    explanations.append(explain(self.fn, *self.args, **self.kwargs))
                with profile(record_shapes=True, with_stack=True, with_flops=True, profile_memory=True) as profiler:
                    self.call()
                traces.append(profiler.trace)
            self.trace = min(traces, key=lambda t: t.end - t.start)  # the least disturbed
            if explanations:
                self.explanation = min(explanations, key=lambda e: sum(k.nanoseconds for k in e.kernels))

    def measure_peak(self) -> int:
        """Bytes that a call needs beyond those there before."""
        if self.state.on_device:
            cuda.synchronize()
            before = cuda.memory_allocated()
            cuda.reset_peak_memory_stats()
            self.call()
            return cuda.max_memory_allocated() - before
        before = memory_stats()
        lib.tt_reset_peak()
        try:
            self.call()
            return memory_stats()["allocated_bytes.all.peak"] - before["allocated_bytes.all.current"]
        finally:
            lib.tt_raise_peak(before["allocated_bytes.all.peak"], before["reserved_bytes.all.peak"])


class _Torch:
    """The same by PyTorch."""

    missing = ""
    pause = _PAUSE
    trace = explanation = ready = peak = None

    def __init__(self, mode: str, fn, args, kwargs):
        self.mode, self.run = mode, fn
        self.torch = importlib.import_module("torch")
        self.args = [self.convert(a) for a in args]
        self.kwargs = {key: self.convert(a) for key, a in kwargs.items()}

    inside = staticmethod(contextlib.nullcontext)

    def convert(self, value):
        """Our tensors as PyTorch's, those in containers too."""
        if isinstance(value, Tensor):
            half = value.dtype.name == "bfloat16"
            array = (value.detach().float() if half else value.detach()).cpu().numpy().copy()
            made = self.torch.from_numpy(array)
            made = made.bfloat16() if half else made
            if value.is_cuda:
                made = made.cuda(value.get_device())
            return made.requires_grad_() if value.requires_grad else made
        if isinstance(value, (list, tuple)):
            return type(value)(self.convert(v) for v in value)
        return {key: self.convert(v) for key, v in value.items()} if isinstance(value, dict) else value

    def call(self) -> None:
        self.run(*self.args, **self.kwargs)
        if self.torch.cuda.is_initialized():
            self.torch.cuda.synchronize()

    def begin(self) -> None:
        start = time.perf_counter()
        try:
            self.result = self.run(*self.args, **self.kwargs)
        except Exception as error:  # a peer that fails is a line in the table, not the end of it
            self.missing = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
            return
        self.first = time.perf_counter() - start
        self.results = {name: self.number(value) for name, value in flat("result", self.result)}
        self.call()

    def number(self, value) -> np.ndarray:
        """As float64."""
        if isinstance(value, self.torch.Tensor):
            return value.detach().double().cpu().numpy()
        return np.asarray(value, dtype=np.float64) if isinstance(value, (int, float)) else np.zeros(0)

    def look(self) -> None:
        pass


def _foreign(fn: Callable, mode: str):
    """PyTorch's function, or why there is none."""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed"
    return importlib.import_module("torch").compile(fn) if mode == "torch.compile" else fn


def _take_turns(sides: list, rounds: int) -> dict[str, list[float]]:
    """Seconds per call, of a batch of each side in each round."""
    times: dict[str, list[float]] = {side.mode: [] for side in sides}
    counts = {}
    for side in sides:
        with side.inside():
            counts[side.mode] = _fitting(side)
    gc.collect()
    order = list(sides)
    for _ in range(rounds):
        for side in order:
            with side.inside():
                times[side.mode].append(_batch(side, counts[side.mode]))
            if side.pause:
                time.sleep(side.pause)
        order = order[1:] + order[:1]  # no side always goes first
    return times


def _fitting(side) -> int:
    """How many calls fill a batch."""
    count = 1
    while (took := min(_batch(side, count), _batch(side, count)) * count) < _BATCH / 2 and count < _MOST:
        count *= 2
    return max(1, min(_MOST, round(count * _BATCH / took)))


def _batch(side, count: int) -> float:
    """Seconds of a call. Where a batch has several, one before them finds what another mode left in the caches, and
    threads that sleep."""
    if count > 1:
        side.call()
    start = time.perf_counter()
    for _ in range(count):
        side.call()
    return (time.perf_counter() - start) / count


def _judged(name: str, sides: list, times: dict[str, list[float]], rtol: float, atol: float) -> Compared:
    modes: dict[str, Mode] = {}
    reference = next((s for s in sides if isinstance(s, _Ours)), None)
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


def _difference(ours: _Ours, side, rtol: float, atol: float) -> str:
    """Where a mode differs from the first; "" if nowhere."""
    if isinstance(side, _Ours):
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
