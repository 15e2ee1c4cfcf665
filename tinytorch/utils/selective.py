"""Selective checkpoints: results of some operators are kept, so that the recomputation need not compute them. Follows
``torch.utils.checkpoint``.

Note [Kept results]
In a checkpoint's forward pass a policy says of each operator that is computed whether its result is kept. In the
recomputation, calls are told apart by the operator and how many calls of it came before. A kept result is recorded as
if it had just been computed: what its Node saves are the recomputed operands. While such a context is open anywhere,
the functions that compute (``COMPUTES``) are replaced; a thread without one passes through.
"""

from __future__ import annotations

import enum
import threading
from _thread import get_ident
from collections import defaultdict

from ..backends.cpu import ffi, lib
from ..ops.aten import Packet, overload_of
from ..ops.declare import COMPUTES, OPS, Elementwise, Op
from ..tensor import Tensor, owned

# They show other tensors' elements: nothing to compute, and no policy is asked.
SAC_IGNORED_OPS = {
    OPS[name] for name in ("split", "split_with_sizes", "unbind", "unsafe_view", "expand_reduced", "with_layout")
}

_RECOMPUTE, _CONSUMED = object(), object()
_MISMATCH = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that "
    "changed between forward and backward."
)
_ARRAY = ffi.typeof("tt_array *")


class CheckpointPolicy(enum.Enum):
    """What is to become of an operator's result: kept (``*_SAVE``); kept in page-locked memory of the CPU's
    (``*_CPU_OFFLOAD``), if it is a CUDA device's; or computed again, as all others are. ``MUST`` and ``PREFER`` mean
    the same here. Follows ``torch.utils.checkpoint.CheckpointPolicy``."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_OFFLOADS = (CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)
_SAVES = (True, CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE)


class SelectiveCheckpointContext:
    """What a policy is told besides the operator and its arguments: ``op_output``, the result; ``is_recompute`` is
    False, since policies are asked in the forward pass alone."""

    def __init__(self, *, is_recompute, op_output=None):
        self.is_recompute, self.op_output = is_recompute, op_output


class _Kept:
    """A result: a tensor, or several."""

    def __init__(self, out):
        self.many = type(out) is tuple
        self.parts = []
        for part in out if self.many else (out,):
            h = part._h if isinstance(part, Tensor) else None
            t = part if h is None else owned.tt_alias(h)
            self.parts.append((t, h and lib.tt_version_of(h), h and h.stamp, None))

    def offload(self) -> bool:
        """Moves what is on a device to the CPU, if there is anything; the copies there and back are queued with the
        device's work."""
        self.parts = [
            (t.to("cpu", non_blocking=True), None, stamp, t.device) if isinstance(t, Tensor) and t.is_cuda else
            (t, version, stamp, None)
            for t, version, stamp, _ in self.parts
        ]  # fmt: skip
        return any(part[-1] is not None for part in self.parts)

    def get(self, written_too: bool):
        """The result again. RuntimeError if it was written since, unless ``written_too``."""
        out = []
        for t, version, stamp, device in self.parts:
            if device is not None:
                t = t.to(device, non_blocking=True)
                t._h.stamp = stamp
            elif version is not None:
                if lib.tt_version_of(t._h) != version and not written_too:
                    raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
                t = owned.tt_alias(t._h)
                t._h.stamp = stamp
            out.append(t)
        return tuple(out) if self.many else out[0]


_open: dict[int, list] = {}  # by thread: the contexts entered, the innermost last


class _Selective:
    """A context in which ``compute(op, function, args)`` stands for every computation of this thread."""

    def __init__(self, storage):
        self.storage = storage
        self.calls: dict[Op, int] = defaultdict(int)

    def __enter__(self):
        _replace(1)
        _open.setdefault(get_ident(), []).append(self)

    def __exit__(self, *exc_info):
        stack = _open[get_ident()]
        stack.pop()
        if not stack:
            del _open[get_ident()]
        _replace(-1)

    def compute(self, op: Op, function, args: tuple):
        """What stands for ``function(*args)``."""
        if op in SAC_IGNORED_OPS:
            return function(*args)
        stack = _open.pop(get_ident())  # an operator that is made of others is one
        try:
            return self.selected(overload_of(op, args), function, args)
        finally:
            _open[get_ident()] = stack


class _Keeping(_Selective):
    """The forward pass."""

    def __init__(self, policy, storage):
        super().__init__(storage)
        self.policy = policy

    def selected(self, op, function, args):
        out = function(*args)
        if out is None:  # declined
            return out
        number = self.calls[op]
        self.calls[op] += 1
        kept = _Kept(out)
        given = _arguments(op, args)
        context = SelectiveCheckpointContext(is_recompute=False, op_output=kept.get(True))
        wish = self.policy(context, op, *given)
        keeps = wish in _SAVES or (wish in _OFFLOADS and kept.offload())
        self.storage[op][number] = kept if keeps else _RECOMPUTE
        return out


class _Giving(_Selective):
    """The recomputation."""

    def __init__(self, storage, written_too: bool):
        super().__init__(storage)
        self.written_too = written_too

    def __enter__(self):
        self.calls.clear()
        super().__enter__()

    def selected(self, op, function, args):
        number = self.calls[op]
        found = self.storage[op].get(number) if op in self.storage else None
        if found is _RECOMPUTE or found is None:
            out = function(*args)
            if out is None or (isinstance(out, ffi.CData) and not out):
                return out
        self.calls[op] += 1
        if found is _RECOMPUTE:
            return out
        if found is None:
            which = f"invocation index {number} " if op in self.storage else ""
            raise RuntimeError(f"{op} {which}encountered during backward but not found in storage. {_MISMATCH}")
        if found is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under "
                "selective activation checkpoint."
            )
        self.storage[op][number] = _CONSUMED
        return found.get(self.written_too)


def _arguments(op: Op, args: tuple) -> list:
    """What a policy is shown of the arguments of a function that computes: tensors for descriptors."""
    given = [owned.tt_alias(a) if isinstance(a, ffi.CData) and ffi.typeof(a) is _ARRAY else a for a in args]
    if type(op) is Elementwise and type(args[0]) is int:
        del given[0]  # the number of the scalar function
        if len(given) == 5:  # with a number: tt_binary_scalar
            t, kind, real, integer, reflected = given
            number = real if kind == lib.TT_KIND_FLOAT else integer
            given = [number, t] if reflected else [t, number]
    return given


def _standing_for(op: Op, function):
    def compute(*args):
        stack = _open.get(get_ident())
        return function(*args) if stack is None else stack[-1].compute(op, function, args)

    return compute


_general_path = Elementwise.compute


def _general(op, *handles):
    stack = _open.get(get_ident())
    if stack is None:
        return _general_path(op, *handles)
    return stack[-1].compute(op, lambda *given: _general_path(op, *given), handles)


_lock = threading.Lock()
_entered = [0]
_originals: list = []


def _replace(more: int) -> None:
    """One context more, or less: the first replaces the functions that compute, the last puts them back."""
    with _lock:
        before = _entered[0]
        _entered[0] += more
        if before == 0:
            for mapping, key, op in COMPUTES:
                _originals.append((mapping, key, mapping[key]))
                mapping[key] = _standing_for(op, mapping[key])
            Elementwise.compute = _general
        elif _entered[0] == 0:
            for mapping, key, function in _originals:
                mapping[key] = function
            _originals.clear()
            Elementwise.compute = _general_path


def create_selective_checkpoint_contexts(policy_fn_or_list, allow_cache_entry_mutation=False):
    """The two contexts that ``checkpoint`` wants of its ``context_fn``, for a checkpoint that keeps some results:
    those of the operators in a list, or of the calls for which ``policy(context, op, *args)`` gives a CheckpointPolicy
    that saves. Operators are named as ``torch.ops.aten.mm.default``. Follows
    ``torch.utils.checkpoint.create_selective_checkpoint_contexts``.

    Args:
        policy_fn_or_list: a function, or a list of operators
        allow_cache_entry_mutation: whether a kept result may be written before backward
    Raises:
        TypeError: neither a function nor a list
        ValueError: the list has something else than operators
    """
    policy = policy_fn_or_list
    if isinstance(policy_fn_or_list, list):
        for op in policy_fn_or_list:
            if not isinstance(op, Op):
                more = f" Choose an overload: {op!r}.default." if isinstance(op, Packet) else ""
                raise ValueError(
                    f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}.{more}"
                )

        def policy(context, op, *args):
            return CheckpointPolicy.MUST_SAVE if op in policy_fn_or_list else CheckpointPolicy.PREFER_RECOMPUTE

    elif not callable(policy_fn_or_list):
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    storage: dict[Op, dict[int, object]] = defaultdict(dict)
    return _Keeping(policy, storage), _Giving(storage, allow_cache_entry_mutation)
