"""``tinytorch.fuse.minify``: the smallest program that still fails.

What it is for: fused mode promises eager mode's bits, and who finds that broken has a model, not a bug report. One
wrong operator of sixty is found in 14 runs, three seconds, and becomes a script of 26 lines. Nothing imports this
module until it is asked for.

The call is run eagerly and in both tiers of fused mode. Where they disagree, the traces of the fused call are run
one by one as cases of their own; one that fails is made smaller, and whatever still fails is kept: fewer results, fewer
operators (those before become inputs with eager mode's values), plain operands, shorter dimensions, simpler numbers. A
case is tried as the very text that the script has in the end.
"""

from __future__ import annotations

import copy
import os
import pickle
import signal
import warnings
from collections.abc import Callable, Iterator

import numpy as np

from ..backends.cpu import ffi, lib
from ..config import config
from ..dtypes import ALL
from ..generator import default_generator
from ..layouts import row_major
from ..tensor import Tensor
from .case import Case, View, from_trace
from .describe import count_text
from .mode import fuse, wait
from .trace import read
from .script import LITERALS, array_of, bits_of, function_of, inputs_of, random_array, script_of
from .listeners import DATA, LINES, Lines, Run, subscribe

_PATIENCE = 120.0  # seconds to wait for the compiler
_TIERS = {"interpreted": -1, "compiled": 0}  # fuse_hot

Check = Callable[[tuple, tuple], bool]


class Minified:
    """A small program on which fused and eager mode disagree. ``str()`` of it is a script that shows it.

    ``script``     the same
    ``tier``       "interpreted" or "compiled": which tier of fused mode fails
    ``operators``  how many operators are left
    ``tried``      how many programs were tried
    """

    def __init__(self, script: str, tier: str, operators: int, tried: int):
        self.script, self.tier, self.operators, self.tried = script, tier, operators, tried

    def __str__(self):
        return self.script

    __repr__ = __str__


def minify(fn, *args, check: Check | None = None, tries: int = 400, isolate: bool = False, **kwargs) -> Minified:
    """Reduces a call whose result fused mode gets wrong to the smallest program that it still gets wrong.

    ``fn(*args, **kwargs)`` is called eagerly, interpreted and compiled, each time on copies of the arguments and from
    the same state of the default generator; other state that it changes it must restore itself.
    ``check(fused, eager)``, given the results' tensors as tuples, tells whether the call failed; by default whether a
    bit differs. A fused run that raises has failed, too. ``tries``: programs to run at most.
    ``isolate``: everything is tried in forked processes, so that one that crashes has failed as well.

    RuntimeError when nothing fails, or none of the call's programs fails by itself; NotImplementedError for tensors of
    a device.
    """
    trial = _Trial(check or _differ, tries, isolate)
    tier, traces = _find(fn, args, kwargs, trial)
    for case in traces:
        if trial.fails(case, tier):
            case = _Reduction(case, tier, trial).run()
            return Minified(script_of(case, _TIERS[tier], trial.complaint), tier, len(case.steps), trial.count)
    raise RuntimeError(
        f"minify: {_name(fn)} fails {tier}, but none of the {count_text(len(traces), 'program')} "
        "that it runs as fails by itself"
    )


def _name(fn) -> str:
    return getattr(fn, "__name__", repr(fn))


# Finding what fails.


def _find(fn, args, kwargs, trial: _Trial) -> tuple[str, list[Case]]:
    """The first tier in which the call fails, and its traces there."""
    state = default_generator.get_state()

    def call(target):
        default_generator.set_state(state)
        mine, named = _copied(args), _copied(kwargs)
        before = [(t, t._version) for t in _tensors((mine, named))]
        result = _tensors(target(*mine, **named))
        return tuple(result + [t for t, version in before if t._version != version])

    wanted = call(fn)
    for t in _tensors((args, kwargs, wanted)):
        if t.is_cuda:
            raise NotImplementedError(
                f"minify: {_name(fn)} computes on {t.device}, and only the CPU's programs can be "
                "reduced; call it with tensors of the CPU"
            )
    fused = fuse(fn)

    def attempt(tier: str, runs: list[tuple]) -> tuple[bool, str]:
        """Does the call fail, and with what complaint? ``runs`` takes the data of its programs."""
        with config(fuse_hot=_TIERS[tier], fuse_worth=0):
            try:
                if tier == "compiled":
                    call(fused)
                    wait(_PATIENCE)
                end = subscribe(LINES | DATA, lambda run: runs.append(_data_of(run)))
                try:
                    got = call(fused)
                finally:
                    end()
            except Exception as exc:
                return True, f"the fused run raises {type(exc).__name__}: {exc}"
        return bool(trial.check(got, wanted)), ""

    for tier in _TIERS:
        runs: list[tuple] = []
        failed, trial.complaint = trial.guarded(lambda tier=tier, runs=runs: attempt(tier, runs))
        if failed and trial.isolate:  # what a child noted went with it: the traces are the same, whatever runs them
            runs = _traces(lambda: call(fused), trial)
        if failed:
            return tier, [from_trace(*r) for r in runs]
    default_generator.set_state(state)
    raise RuntimeError(f"minify: {_name(fn)} does not fail, neither interpreted nor compiled")


def _traces(call, trial: _Trial) -> list[tuple]:
    """The data of the programs of a call, run by the interpreter."""
    runs: list[tuple] = []
    with config(fuse_hot=_TIERS["interpreted"], fuse_worth=0):
        crashed, why = trial.guarded(lambda: (bool(call()) and False, ""))
        if crashed:
            raise RuntimeError(f"minify: {why} while it is interpreted, and so does not tell what it recorded")
        end = subscribe(LINES | DATA, lambda run: runs.append(_data_of(run)))
        try:
            call()
        finally:
            end()
    return runs


def _data_of(run: Run) -> tuple:
    """The parts of a case, from a run that was recorded with its data."""
    w, n = run.record, run.program.num_storages
    before = {s: bytes(ffi.buffer(w.before[s], w.sizes[s])) for s in range(n) if w.before[s] != ffi.NULL}
    return read(w.program, w.numbers), before, ffi.unpack(w.origins, n), run.lines or Lines(0, [])


def _tensors(value) -> list[Tensor]:
    """All tensors in nested sequences and dictionaries."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (tuple, list)):
        return []
    return [t for part in value for t in _tensors(part)]


def _copied(value):
    """Tensors, and modules, in nested sequences and dictionaries, copied; other objects as they are."""
    if isinstance(value, Tensor):
        return value.detach().clone().requires_grad_(value.requires_grad)
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    if type(value) in (tuple, list):
        return type(value)(map(_copied, value))
    return copy.deepcopy(value) if hasattr(value, "parameters") else value


def _differ(fused: tuple, eager: tuple) -> bool:
    """The default check."""
    return len(fused) != len(eager) or any(
        f.dtype != e.dtype or f.shape != e.shape or bits_of(f) != bits_of(e) for f, e in zip(fused, eager)
    )


# Trying a case.


class _Trial:
    """Runs cases, and judges them."""

    def __init__(self, check: Check, tries: int, isolate: bool):
        self.check, self.left, self.count, self.isolate = check, tries, 0, isolate
        self.complaint = ""  # what was wrong with the last case that failed

    def guarded(self, judge: Callable[[], tuple[bool, str]]) -> tuple[bool, str]:
        """What ``judge`` says: whether something failed, and the complaint. In a process of its own, if so asked."""
        return _in_child(judge) if self.isolate else judge()

    def fails(self, case: Case, tier: str) -> bool:
        """Does fused mode get the case wrong?"""
        if self.left <= 0 or not case.steps:
            return False
        self.left -= 1
        self.count += 1
        failed, complaint = self.guarded(lambda: self.judge(case, tier))
        if failed:
            self.complaint = complaint
        return failed

    def judge(self, case: Case, tier: str) -> tuple[bool, str]:
        run = function_of(case)
        try:
            eager = run(*inputs_of(case))
        except Exception:  # not a program at all
            return False, ""
        try:
            fused = _fused(run, case, tier)
        except Exception as exc:
            return True, f"the fused run raises {type(exc).__name__}: {exc}"
        try:
            failed = bool(self.check(fused, eager))
        except Exception:  # the user's check is not for results like these
            return False, ""
        return failed, _complaint(fused, eager) if failed else ""


def _in_child(judge: Callable[[], tuple[bool, str]]) -> tuple[bool, str]:
    """What ``judge`` says in a forked process; one that dies has failed."""
    reader, writer = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork beside threads: Note [Forks] in fork.c
        child = os.fork()
    if not child:
        try:
            with open(writer, "wb") as answer:
                pickle.dump(judge(), answer)
        finally:
            os._exit(0)
    os.close(writer)
    with open(reader, "rb") as answer:
        data = answer.read()
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return True, f"the process dies of {signal.Signals(os.WTERMSIG(status)).name}"
    return pickle.loads(data) if data else (False, "")


def _fused(run, case: Case, tier: str) -> tuple:
    with config(fuse_hot=_TIERS[tier], fuse_worth=0):
        got = fuse(run)(*inputs_of(case))
        if tier == "compiled":
            wait(_PATIENCE)
            got = fuse(run)(*inputs_of(case))
    return got


def _complaint(fused: tuple, eager: tuple) -> str:
    for k, (f, e) in enumerate(zip(fused, eager)):
        if f.dtype == e.dtype and f.shape == e.shape:
            differ = np.frombuffer(bits_of(f), np.uint8) != np.frombuffer(bits_of(e), np.uint8)
            if wrong := int(differ.reshape(-1, e.element_size()).any(1).sum()):
                return f"result {k} differs in {wrong} of {count_text(e.numel(), 'element')}"
    return "the check fails"


# Reducing.


class _Reduction:
    """A case that fails, on its way to the smallest."""

    def __init__(self, case: Case, tier: str, trial: _Trial):
        self.case, self.tier, self.trial = case, tier, trial

    def run(self) -> Case:
        """Passes over the case until none makes it smaller."""
        before = None
        while before is not self.case and self.trial.left > 0:
            before = self.case
            self.fewer_results()
            self.shorter()
            self.fewer_steps()
            self.plainer_operands()
            self.smaller()
            self.simpler_numbers()
        return self.case

    def keep(self, candidate: Case | None) -> bool:
        """Goes on with the candidate if it fails."""
        if candidate is None or not self.trial.fails(candidate, self.tier):
            return False
        self.case = candidate
        return True

    def fewer_results(self) -> None:
        """One result, if that will do."""
        results = self.case.results
        for r in results if len(results) > 1 else ():
            if self.keep(self.case._replace(results=(r,)).without_unused()):
                return

    def shorter(self) -> None:
        """The shortest beginning of the program whose values are wrong already: found by halving."""
        case = self.case
        low, high = 0, len(case.steps)  # too short, and long enough
        while high - low > 1:
            middle = (low + high) // 2
            if self.keep(self.beginning(case, middle)):
                high = middle
            else:
                low = middle

    @staticmethod
    def beginning(case: Case, n: int) -> Case | None:
        """The first n steps, and as results whatever is needed after them."""
        steps, rest = case.steps[:n], case.steps[n:]
        written = {s.out.value for s in steps}
        needed = set(case.results).union(*(s.reads() for s in rest))
        results = tuple(sorted(written & needed))
        return case._replace(results=results).with_steps(steps) if results else None

    def fewer_steps(self) -> None:
        """Without runs of steps, long ones first; what they made becomes an input."""
        length = len(self.case.steps) // 2
        while length:
            at = 0
            while at < len(self.case.steps) and len(self.case.steps) > 1:
                if not self.keep(self.without(at, at + length)):
                    at += length
            length //= 2

    def without(self, begin: int, end: int) -> Case | None:
        """Without the steps from begin to end."""
        case = self.case
        gone, rest = case.steps[begin:end], case.steps[:begin] + case.steps[end:]
        made = {s.made for s in gone} - {None}
        read = made.intersection(set().union(*(s.reads() for s in rest)))
        results = tuple(r for r in case.results if r not in made and r in {s.out.value for s in rest})
        if not results:  # then what the last step that is left made
            results = tuple(s.out.value for s in rest[-1:])
        for v, array in self.values_of(case.steps[:end], read).items():
            case = case.with_input(v, array)
        return case._replace(results=results).with_steps(rest).without_unused()

    def values_of(self, steps, wanted: set[int]) -> dict[int, np.ndarray]:
        """What eager mode has for values once these steps have run."""
        if not wanted:
            return {}
        case = self.case._replace(steps=tuple(steps), results=tuple(sorted(wanted)))
        return {v: array_of(t, case.values[v].dtype) for v, t in zip(case.results, function_of(case)(*inputs_of(case)))}

    def plainer_operands(self) -> None:
        """Inputs of their own in the place of views of inputs."""
        for at, step in enumerate(self.case.steps):
            for k, v in enumerate(step.inputs):
                plain = isinstance(v, View) and v.dims == tuple(range(len(self.case.values[v.value].shape)))
                if isinstance(v, View) and not plain and v.value in self.case.inputs:
                    self.keep(self.with_own_input(at, k))

    def with_own_input(self, at: int, k: int) -> Case | None:
        """With an operand of a step as an input of its own."""
        case, step = self.case, self.case.steps[at]
        v = step.inputs[k]
        if any(s.out.value == v.value for s in case.steps[:at]):  # written meanwhile
            return None
        array = case.inputs[v.value]
        dtype = case.values[v.value].dtype if v.dims is not None else v.dtype
        if v.dims is not None:
            strides = [0 if d is None else row_major(array.shape)[d] for d in v.dims]
            shown = np.lib.stride_tricks.as_strided(array, v.shape, [s * array.itemsize for s in strides])
        else:
            flat = array.reshape(-1).view(ALL[dtype].stored)[v.offset :]
            shown = np.lib.stride_tricks.as_strided(flat, v.shape, [s * flat.itemsize for s in v.strides])
        new = max(case.values) + 1
        own = View(new, v.shape, tuple(range(len(v.shape))))
        values = {**case.values, new: case.values[v.value]._replace(dtype=dtype)}
        steps = list(case.steps)
        steps[at] = step._replace(inputs=(*step.inputs[:k], own, *step.inputs[k + 1 :]))
        array = np.ascontiguousarray(shown).reshape(v.shape)
        return case._replace(values=values).with_input(new, array).with_steps(steps)

    def smaller(self) -> None:
        """Shorter dimensions: halves, then one element less, of every size that occurs."""
        while True:
            sizes = sorted({n for x in self.case.values.values() for n in x.shape if n > 1}, reverse=True)
            if not any(self.keep(self.case.resized(n, low, high)) for n in sizes for low, high in _parts(n)):
                return

    def simpler_numbers(self) -> None:
        """Inputs of ones, of rounder numbers, or of random ones that a seed gives."""
        for v in self.case.inputs:
            if v in self.case.inputs and not _is_simple(self.case.inputs[v]):
                any(
                    self.keep(self.case.with_input(v, array))
                    for array in _simpler(self.case.inputs[v], self.case.values[v].dtype)
                )


def _parts(n: int) -> Iterator[tuple[int, int]]:
    """Parts of a dimension to try, small ones first where they are cheap to name."""
    if n > 2:
        yield 0, 1
    half = n // 2
    yield 0, half
    yield half, n
    if n > 3:
        yield n // 4, n // 4 + half
        yield 0, n - 1
        yield 1, n


def _is_simple(a: np.ndarray) -> bool:
    return a.size == 0 or (a.size <= 4 and a.dtype.kind in "fiub" and bool((a == np.rint(a.astype(np.float64))).all()))


def _simpler(a: np.ndarray, dtype: int) -> Iterator[np.ndarray]:
    """Other numbers in an input's place."""
    if ALL[dtype].numpy is None:  # their bits: 1
        yield np.full_like(a, 0x3F80 if dtype == lib.TT_BF16 else 0x3C00)
        return
    yield np.ones_like(a)
    if a.dtype.kind == "f" and np.isfinite(a).all():
        with np.errstate(over="ignore"):
            for digits in (0, 1, 2):
                yield np.round(a, digits).astype(a.dtype)
    if a.size > LITERALS and dtype in (lib.TT_F32, lib.TT_F64):
        yield random_array(a.shape, dtype)
