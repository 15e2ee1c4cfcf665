"""What compare() sets side by side: each side runs the same work in one mode; how they take turns."""

from __future__ import annotations

import contextlib
import gc
import importlib
import importlib.util
import time
from collections.abc import Callable, Iterator

import numpy as np

from .. import cuda
from ..backends.cpu import lib
from ..config import config
from ..cpu import memory_stats
from ..fuse import explain, fuse, wait
from ..tensor import Tensor
from .session import profile
from .state import State, flat

OURS = ("eager", "interpreted", "compiled")
THEIRS = ("torch", "torch.compile")
_BATCH = 2e-3  # seconds that a batch of calls should fill
_MOST = 10_000  # calls of a batch
_PAUSE = 0.25  # seconds after PyTorch's turn: its threads go on spinning for a while, and would slow ours
_LOOK, _LOOKS = 1.0, 5  # seconds for looking at calls one by one, and the most that are looked at
_TRIES = 20  # times that the compiled tier is waited for


class Missing:
    """A mode that could not run."""

    def __init__(self, mode: str, remark: str):
        self.mode, self.missing = mode, remark

    def begin(self) -> None:
        pass

    look = begin


class Ours:
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


class Torch:
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


def foreign(fn: Callable, mode: str):
    """PyTorch's function, or why there is none."""
    if importlib.util.find_spec("torch") is None:
        return "PyTorch is not installed"
    return importlib.import_module("torch").compile(fn) if mode == "torch.compile" else fn


def take_turns(sides: list, rounds: int) -> dict[str, list[float]]:
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
