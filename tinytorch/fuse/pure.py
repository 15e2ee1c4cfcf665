"""Pure functions: a call is one C call, without recording.

A call that can be replayed computed its tensors from tensors by one program and nothing else. That a function is pure
was promised, or seen: Note [Seen to be pure] in purity/__init__.py. Two calls in a row must show the same program with
the same constants and the same tensors from outside. Tensors from outside are read in every call; of a promised
function they must stay the same objects, and until it was called with others its replays are for those arguments alone
(which may be the very tensors that it reads outside). A result with history is never replayed: such a call runs ``fn``.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import NamedTuple

from ..autograd.modes import current, modes
from ..autograd.node import AccumulateGrad
from ..backends.cpu import error, ffi, lib
from ..tensor import Tensor, own
from .purity import DATA, PLAIN, Unproven, is_tensor, prove

_PATIENCE = 4  # shapes that may fail to be replayed before no more are tried
_MOST = 8  # shapes that are kept
_LOOKED_AT = 3  # the call in which a function's source is read: the first ones are to be quick
_PROOFS = 4  # as often what it reads outside may change
_NUMBERS = frozenset((int, float, bool, str, type(None)))
_USUAL = ()  # the key of a call with grad mode on, of tensors that do not require grad


class Plan(NamedTuple):
    """What is known of a function while the names that it reads outside give what they gave."""

    outside: Callable[[], tuple | None]  # the tensors that it reads there; None when it no longer holds
    replays: list[tuple]  # (key, replay, how results are packed, their number), latest first
    kinds: list | None = None  # of the arguments with which it was seen to be pure


class Pure:
    """``fn``, replayed where it can be. ``hopeful``: it may be, now or later."""

    def __init__(self, fn, mode, promised: bool):
        if promised:
            functools.update_wrapper(self, fn)
        self.fn, self.mode, self.promised = fn, mode, promised
        self.hopeful = not mode.step
        self.code = None  # of the function that stands for it: see Fused
        self.why = ""  # it was not seen to be pure
        self.calls = 0
        self.proofs = _PROOFS
        self.plan = Plan(tuple, []) if promised else _NONE
        self.candidate = None
        self.patience = _PATIENCE

    @property
    def replays(self) -> list[tuple]:
        """Programs of calls, to be replayed."""
        return self.plan.replays

    def __call__(self, *args, **kwargs):
        outside, replays, _ = self.plan
        if replays and not kwargs:
            key, tensors = _USUAL, outside()
            if tensors is None:
                return self.record(args, kwargs)
            tensors = args + tensors
            try:
                handles = [a._h for a in tensors]
                for a in tensors:
                    if a._node is not None or type(a) is not Tensor:
                        key = None
            except AttributeError:
                key = None
            if modes or key is None:
                key, tensors = self.look(tensors)
                handles = [a._h for a in tensors]
            for like, replay, many, count in replays:
                if like != key:
                    continue
                out = ffi.new("tt_array *[]", count)
                ran = lib.tt_replay_run(replay, len(handles), handles, out)
                if ran:
                    if ran < 0:
                        raise error("fuse")
                    if many is None:
                        return own(out[0])
                    return many([own(h) for h in out])
        return self.record(args, kwargs)

    def look(self, args: tuple) -> tuple:
        """What a call depends on beside its tensors' shapes, dtypes and devices, and these tensors: grad mode, which of
        them require grad, numbers. The key is None where the call is not to be replayed."""
        mode = current()
        if not self.hopeful or mode.anomaly or mode.saved_hooks or mode.hooks_refused or mode.autocast:
            return None, ()
        key, tensors, usual = [mode.grad, mode.inference], [], mode.grad and not mode.inference
        for a in args:
            if is_tensor(a):
                node = None if self.promised and not mode.grad else a._node
                if node is not None and (type(node) is not AccumulateGrad or node.extra is not None):
                    return None, ()  # a graph from outside, hooks
                usual = usual and node is None
                key.append(node is not None)
                tensors.append(a)
            elif type(a) in _NUMBERS:
                usual = False
                key.append((type(a), a.hex() if type(a) is float else a))
            else:
                return None, ()
        return _USUAL if usual else tuple(key), tensors

    def record(self, args, kwargs):
        """Runs ``fn`` fused; keeps its program if it can be replayed."""
        if kwargs or self.patience <= 0 or not lib.tt_replay_may(self.promised):
            with self.mode:
                return self.fn(*args, **kwargs)
        plan = self.prepared(args)
        outside = plan.outside()
        key, tensors = (None, ()) if outside is None else self.look(args + outside)
        with self.mode:
            before = list(map(_state, tensors))
            if key is not None:
                lib.tt_fuse_read_in_place()
            result = self.fn(*args)
            # An argument may be written without being recorded; what is read outside may be another thread's.
            if key is not None and before == list(map(_state, tensors)) and _same(outside, plan.outside()):
                self.learn(plan, key, tensors, result)
            elif outside is not None and not self.promised:
                self.tire(plan)
        return result

    def prepared(self, args) -> Plan:
        """The plan for a call that is about to be recorded."""
        plan = self.plan
        if plan.outside() is not None:
            return plan if self.promised or plan.kinds == _kinds(args) else _NONE
        self.calls += 1
        if self.calls >= _LOOKED_AT:
            self.prove(args)
        return self.plan

    def prove(self, args) -> None:
        """Looks whether ``fn`` is pure."""
        self.candidate, self.patience = None, _PATIENCE
        kinds, self.proofs = _kinds(args), self.proofs - 1
        try:
            if None in kinds:
                raise Unproven(f"argument {kinds.index(None)} is neither a tensor nor a number")
            if self.proofs < 0:
                raise Unproven("what it reads outside keeps changing")
            self.plan = Plan(prove(self.fn, kinds).tensors, [], kinds)
        except Unproven as why:
            self.why, self.hopeful, self.plan = str(why), False, _NONE

    def verdict(self, args) -> str:
        """Whether a call with such arguments may be replayed, and why not."""
        if self.promised:
            return "it was promised to be pure"
        if self.hopeful and self.plan.outside() is None:
            self.prove(args)
        if self.why:
            return f"every call is recorded, since it was not seen to be pure: {self.why}"
        if not self.hopeful:
            return "every call is recorded, since its programs could not be replayed"
        return "it was seen to be pure: calls are replayed where they can be"

    def learn(self, plan: Plan, key: tuple, tensors: list, result) -> None:
        """Looks at what was recorded for this result."""
        many = type(result) if type(result) in (tuple, list) else None
        outs = result if many else (result,)
        replay = None
        if all(type(o) is Tensor and o._node is None for o in outs):
            handles = [t._h for t in tensors]
            replay = lib.tt_replay_new(self.promised, len(handles), handles, len(outs), [o._h for o in outs])
        if not replay:
            self.tire(plan)
            return
        replay = ffi.gc(replay, lib.tt_replay_free)
        candidate = self.candidate
        earlier = [r for like, r, _, _ in plan.replays if like == key] + [candidate] * (candidate is not None)
        if [r for r in earlier if lib.tt_replay_agrees(r, replay)]:  # all are asked: see there
            self.candidate = None
            plan.replays.insert(0, (key, replay, many, len(outs)))
            del plan.replays[_MOST:]
        else:
            self.candidate = replay
            if candidate is not None:
                self.tire(plan)

    def tire(self, plan: Plan) -> None:
        """After a call that could not be replayed."""
        self.patience -= 1
        self.hopeful = self.promised or self.patience > 0 or len(plan.replays) > 0


def _never() -> None:
    """No tensors from outside are known."""


_NONE = Plan(_never, [])


def _kinds(args) -> list:
    return [DATA if is_tensor(a) else PLAIN if type(a) in _NUMBERS else None for a in args]


def _state(t: Tensor) -> tuple:
    """What an operator may change of a tensor."""
    return t._h, lib.tt_version_of(t._h), t.shape, t.stride(), t._node


def _same(a: tuple, b: tuple | None) -> bool:
    return b is not None and all(map(operator.is_, a, b))
