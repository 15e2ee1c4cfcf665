"""What a call reads and changes, so that the same work can be done again from the same start: found, kept, put back.

Found are tensors, modules, and whatever has state_dict and load_state_dict (optimizers, schedules), among a call's
arguments and what its function refers to: closure, globals, the object of a method. Other objects of Python's are left
alone.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import random
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from ..autograd.modes import no_grad
from ..backends.cpu import check, lib
from ..config import config
from ..dtypes import ALL
from ..generator import get_rng_state, set_rng_state
from ..nn import Module
from ..tensor import Tensor

_DEEP = 4  # containers within containers
_INTEGERS = {d.itemsize: d for d in reversed(ALL) if d.kind == lib.TT_KIND_INT}  # one of each size


@contextlib.contextmanager
def eagerly() -> Iterator[None]:
    """Inside, this thread is not in fused mode, wherever it was before."""
    check(lib.tt_fuse_flush(), "compare")
    with config(fuse=0):
        depth = lib.tt_fuse_depth()
        for _ in range(depth):
            check(lib.tt_fuse_leave(), "compare")
        try:
            yield
        finally:
            for _ in range(depth):
                check(lib.tt_fuse_enter(), "compare")


class State:
    """What ``fn(*args, **kwargs)`` may change."""

    def __init__(self, fn: Callable, args: tuple, kwargs: dict):
        self.tensors: dict[int, tuple[str, Tensor]] = {}
        self.others: dict[int, Any] = {}  # with state_dict
        for name, value in _reached(fn, args, kwargs):
            self._find(name, value, _DEEP)
        self.save()

    def _find(self, name: str, value, depth: int) -> None:
        if isinstance(value, Tensor):
            self.tensors.setdefault(id(value), (name, value))
        elif isinstance(value, Module):
            for pairs in (value.named_parameters(), value.named_buffers()):
                for inner, t in pairs:
                    self.tensors.setdefault(id(t), (f"{name}.{inner}", t))
        elif isinstance(value, type):
            pass
        elif hasattr(value, "state_dict") and hasattr(value, "load_state_dict"):
            self.others[id(value)] = value
        elif depth and isinstance(value, (list, tuple, dict)):
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            for key, inner in list(pairs):
                self._find(f"{name}[{key!r}]", inner, depth - 1)

    @property
    def on_device(self) -> bool:
        """Is any tensor a CUDA device's?"""
        return any(t.is_cuda for _, t in self.tensors.values())

    def save(self) -> None:
        """Keeps everything as it is now."""
        with no_grad():
            self.kept = [(t, t.detach().clone(), _clone(_gradient(t))) for _, t in self.tensors.values()]
            self.dicts = [(other, _clone(other.state_dict())) for other in self.others.values()]
        self.random = get_rng_state(), random.getstate(), np.random.get_state()

    def restore(self) -> None:
        """Makes everything as it was."""
        with no_grad():
            for t, value, gradient in self.kept:
                if not _equal(t, value):
                    t.detach().copy_(value)
                if t.is_leaf and (t.requires_grad or gradient is not None):
                    t.grad = _clone(gradient)
            for other, kept in self.dicts:
                other.load_state_dict(_clone(kept))
        ours, pythons, numpys = self.random
        set_rng_state(ours)
        random.setstate(pythons)
        np.random.set_state(numpys)

    def results(self, result) -> dict[str, Any]:
        """By name: the tensors and numbers of a result, and of what the call may have changed."""
        found = dict(flat("result", result))
        for name, t in self.tensors.values():
            found[name] = t
            if _gradient(t) is not None:
                found[f"{name}.grad"] = t.grad
        for k, other in enumerate(self.others.values()):
            found.update(flat(f"{type(other).__name__}{k}", other.state_dict()))
        return {name: _kept(value) for name, value in found.items()}


def _reached(fn: Callable, args: tuple, kwargs: dict) -> Iterator[tuple[str, Any]]:
    """What a call can see, by name."""
    yield from ((f"argument {k}", value) for k, value in enumerate(args))
    yield from kwargs.items()
    while isinstance(fn, functools.partial):
        yield from ((f"argument {k} of the partial", value) for k, value in enumerate(fn.args))
        yield from fn.keywords.items()
        fn = fn.func
    fn = inspect.unwrap(fn)
    owner = getattr(fn, "__self__", None)
    if owner is None and not inspect.isroutine(fn):
        owner = fn  # an object that can be called
    if owner is not None and not inspect.ismodule(owner):
        yield type(owner).__name__, owner
        if not isinstance(owner, Module):
            yield from getattr(owner, "__dict__", {}).items()
    fn = getattr(fn, "__func__", fn)
    if inspect.isfunction(fn):
        seen = inspect.getclosurevars(fn)
        yield from seen.nonlocals.items()
        yield from seen.globals.items()


def _gradient(t: Tensor) -> Tensor | None:
    return t.grad if t.is_leaf else None


def _clone(value):
    """A copy that shares no memory: of tensors, and of dicts, lists and tuples of such."""
    if isinstance(value, Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: _clone(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        copied = [_clone(inner) for inner in value]
        return type(value)(*copied) if hasattr(value, "_fields") else type(value)(copied)
    return value


def flat(name: str, value) -> Iterator[tuple[str, Any]]:
    """The leaves of nested containers, by name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from flat(f"{name}[{key!r}]", inner)
    elif isinstance(value, (list, tuple)):
        for k, inner in enumerate(value):
            yield from flat(f"{name}[{k}]", inner)
    else:
        yield name, value


class Bits(NamedTuple):
    """The values of a tensor."""

    dtype: str
    shape: tuple[int, ...]
    integers: np.ndarray  # the bits
    values: np.ndarray  # float64 for floating dtypes, else the integers


def _kept(value):
    return bits(value) if isinstance(value, Tensor) else value


def bits(t: Tensor) -> Bits:
    """The values of a tensor as they are now."""
    with no_grad():
        t = t.detach().cpu().contiguous()
        integers = t.reshape(-1).view(_INTEGERS[t.itemsize]).numpy().copy()
        values = t.reshape(-1).double().numpy().copy() if t.dtype.is_floating_point else integers
    return Bits(t.dtype.name, tuple(t.shape), integers, values)


def _equal(t: Tensor, value: Tensor) -> bool:
    return t.shape == value.shape and np.array_equal(bits(t).integers, bits(value).integers)


def disagreement(a: dict[str, Any], b: dict[str, Any]) -> str:
    """Where two calls differ, bit by bit: "" if nowhere. Any NaN equals any other: which of two NaNs a sum hands on is
    the C compiler's choice."""
    for name in [*a, *(n for n in b if n not in a)]:
        if name not in a or name not in b:
            return f"{name} is there in one only"
        x, y = a[name], b[name]
        if isinstance(x, Bits) and isinstance(y, Bits):
            if x.dtype != y.dtype or x.shape != y.shape:
                return f"{name} is {x.dtype} {x.shape} and {y.dtype} {y.shape}"
            unlike = x.integers != y.integers
            if unlike.any() and x.dtype.startswith(("float", "bfloat")):
                unlike &= ~(np.isnan(x.values) & np.isnan(y.values))
            if unlike.any():
                return f"{name} differs in {int(unlike.sum())} of {unlike.size} elements"
        elif isinstance(x, Bits) or isinstance(y, Bits) or not _same(x, y):
            return f"{name} is {x!r:.60} and {y!r:.60}"
    return ""


def _same(x, y) -> bool:
    if isinstance(x, float) and isinstance(y, float):
        return x == y or (math.isnan(x) and math.isnan(y))
    if isinstance(x, (bool, int, str, bytes, type(None))) or isinstance(y, (bool, int, str, bytes, type(None))):
        return type(x) is type(y) and x == y
    return type(x) is type(y)  # objects of the user's: what they hold is not looked at


def distance(ours: dict[str, np.ndarray], theirs: dict[str, np.ndarray], rtol: float, atol: float) -> tuple[str, float]:
    """Where PyTorch's numbers are too far from ours ("" if nowhere), and the largest difference."""
    worst, text = 0.0, ""
    for name, x in ours.items():
        y = theirs.get(name)
        if y is None or x.shape != y.shape:
            return f"{name}: {x.shape} here, {'nothing' if y is None else y.shape} there", math.inf
        with np.errstate(invalid="ignore"):
            far = ~np.isclose(x, y, rtol=rtol, atol=atol, equal_nan=True)
            gap = np.nanmax(np.where(x == y, 0.0, np.abs(x - y)), initial=0.0)
        worst = max(worst, float(gap))
        if far.any() and not text:
            text = f"{name} is too far off in {int(far.sum())} of {far.size} elements"
    return text, worst
