"""Checkpointing: memory for time. A checkpointed part keeps none of its intermediate values and computes them again
when backward asks (Chen et al. 2016, arXiv:1604.06174). Follows ``torch.utils.checkpoint``.

Note [Recomputation]
What the part's Nodes would save is replaced by Slots, numbered in the order of saving. The first Slot that backward
asks for makes the part run again; what that saves, in the same order, are the values of all Slots. It is stopped as
soon as it has saved as many as there are Slots. A value is handed out once, and all of a backward's are let go when it
ends: another backward computes anew, unless both are in one GraphExecGroup."""

from __future__ import annotations

import contextlib
import sys
import warnings
import weakref
from _thread import get_ident

from ..amp.autocast_mode import autocast_of_here
from ..autograd import engine
from ..autograd.api import backward
from ..autograd.formulas import operator_of
from ..autograd.function import Function
from ..autograd.graph import saved_tensors_hooks
from ..autograd.modes import PARTIAL, current, enable_grad, is_grad_enabled, no_grad
from ..autograd.node import describe, pack_with
from ..fuse.listeners import place_of
from ..tensor import Tensor
from ..weak import End, taken
from .device_states import DefaultDeviceType, RandomStates, get_device_states, set_device_states  # noqa: F401
from .selective import (
    SAC_IGNORED_OPS,  # noqa: F401
    CheckpointPolicy,
    SelectiveCheckpointContext,
    create_selective_checkpoint_contexts,
)

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "CheckpointPolicy",
    "DefaultDeviceType",
    "GraphExecGroup",
    "SelectiveCheckpointContext",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "create_selective_checkpoint_contexts",
    "detach_variable",
    "get_device_states",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
    "set_device_states",
]

_settings: dict[str, bool | None] = {"early_stop": None, "debug": None}


class CheckpointError(RuntimeError):
    """A checkpointed function did something else when it was called again."""


class _Stop(BaseException):
    """Ends a recomputation that has given all that is wanted."""


class _setting:
    """Sets one of this module's settings; back on leaving a ``with``."""

    name: str

    def __init__(self, value):
        self.value = value

    def __enter__(self):
        self.before = _settings[self.name]
        _settings[self.name] = self.value

    def __exit__(self, *exc_info):
        _settings[self.name] = self.before


class set_checkpoint_early_stop(_setting):
    """Inside, ``early_stop`` of all checkpoints: may they stop recomputing once all is there that backward wants?"""

    name = "early_stop"


class set_checkpoint_debug_enabled(_setting):
    """Inside, ``debug`` of all checkpoints; None leaves it to each."""

    name = "debug"


def noop_context_fn():
    """Two contexts that change nothing: of the forward pass, and of the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Slot:
    """Stands for a saved value in the graph, the ``number``th of its part."""

    __slots__ = ("__weakref__", "facts", "number", "values")

    def __init__(self, number: int, facts):
        self.number, self.facts = number, facts
        self.values: dict[object, Tensor] = {}  # by backward


class _Argument:
    """A tensor argument, kept for the recomputation as a Node would keep it: packed by the hooks in force, and guarded
    against writes."""

    def __init__(self, tensor, hooks):
        self.wants_grad = tensor.requires_grad
        self.value, self.unpack = (pack_with(hooks[-1], tensor), hooks[-1][1]) if hooks else (tensor, None)
        self.version = None if hooks or tensor.is_inference() else tensor._version

    def get(self):
        if self.unpack is not None:
            return self.unpack(self.value).detach().requires_grad_(self.wants_grad)
        if self.version is not None and self.value._version != self.version:
            raise RuntimeError(
                "checkpoint: one of the variables needed for gradient computation has been modified by an inplace "
                f"operation: an argument, a {describe(self.value)}, was at version {self.version} and is at version "
                f"{self.value._version} now."
            )
        return self.value


class _Backwards:
    """Which backward each thread is in: the engine tells. What parts have computed for it goes when it ends."""

    looks = False

    def __init__(self):
        self.running: dict[int, list] = {}
        self.parts: dict[object, list[weakref.ref]] = {}
        self.alive: set[End] = set()
        self.ended: list[End] = []

    def watch(self, part: _Part) -> None:
        """The engine tells from now on, until a backward ends and no part is left."""
        self.alive.add(End(part, self.ended.append, None))
        if self not in engine.observers:
            engine.observers.append(self)

    def begin(self, reached) -> None:
        self.running.setdefault(get_ident(), []).append(object())

    def end(self) -> None:
        running = self.running[get_ident()]
        self.forget(running.pop())
        if not running:
            del self.running[get_ident()]
        self.alive.difference_update(taken(self.ended))
        if not self.alive and self in engine.observers:
            engine.observers.remove(self)

    def forget(self, task) -> None:
        for ref in self.parts.pop(task, ()):
            if (part := ref()) is not None:
                part.forget(task)

    def present(self):
        """The group that this thread is in, or its backward; None outside."""
        running = self.running.get(get_ident())
        return _groups.get(get_ident()) or (running[-1] if running else None)


_backwards = _Backwards()
_groups: dict[int, GraphExecGroup] = {}  # by thread


class GraphExecGroup:
    """Inside, several backwards compute a checkpointed part again only once. They may not want the same values. Not
    nested: RuntimeError. Follows ``torch.utils.checkpoint.GraphExecGroup``."""

    def __enter__(self):
        if get_ident() in _groups:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {_groups[get_ident()]}")
        _groups[get_ident()] = self
        return self

    def __exit__(self, *exc_info):
        _backwards.forget(_groups.pop(get_ident()))


class _Part:
    """One checkpointed call: Note [Recomputation]."""

    def __init__(self, function, args, kwargs, random, context, determinism_check, early_stop, debug):
        hooks = current().saved_hooks
        keep = [_Argument(a, hooks) if isinstance(a, Tensor) else a for a in args]
        self.function, self.args, self.kwargs = function, keep, kwargs
        self.random, self.context, self.early_stop = random, context, early_stop
        self.autocast = autocast_of_here()
        self.facts = facts_of if determinism_check == "default" else lambda t: None
        self.slots: list[weakref.ref] = []
        self.completed = False  # has the forward pass ended?
        self.recomputed: set[object] = set()  # the backwards for which the Slots have got their values
        self.notes: tuple[list, list] | None = ([], []) if debug else None  # what saved: first, and again
        _backwards.watch(self)

    def note(self, which: int) -> None:
        """For ``debug``: the operator that saves, and the user's line."""
        if self.notes is not None:
            frame = sys._getframe(2)
            self.notes[which].append(f"{operator_of(frame)} at {place_of(frame)}")

    def pack(self, tensor) -> _Slot:
        self.note(0)
        slot = _Slot(len(self.slots), self.facts(tensor))
        self.slots.append(weakref.ref(slot))
        return slot

    def unpack(self, slot: _Slot) -> Tensor:
        task = _backwards.present()
        if task is None:
            return self.recompute()[slot.number]
        if task not in self.recomputed:
            values = self.recompute()
            _backwards.parts.setdefault(task, []).append(weakref.ref(self))
            self.recomputed.add(task)
            for other in self.living():
                other.values[task] = values[other.number]
        if task not in slot.values:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you "
                "are calling ctx.saved_tensors in backward, make sure to do so only once. Two backwards in one "
                "GraphExecGroup may not want the same values."
            )
        return slot.values.pop(task)

    def living(self) -> list[_Slot]:
        """The Slots that somebody still holds."""
        return [slot for ref in self.slots if (slot := ref()) is not None]

    def forget(self, task) -> None:
        """Lets go of the values of a backward."""
        self.recomputed.discard(task)
        for slot in self.living():
            slot.values.pop(task, None)

    def recompute(self) -> dict[int, Tensor]:
        """The values of the Slots that somebody holds, by number, computed again."""
        expected, number, differ = len(self.slots), 0, []
        values: dict[int, Tensor] = {}

        def pack(tensor):
            nonlocal number
            self.note(1)
            slot = self.slots[number]() if number < expected else None
            number += 1
            if slot is not None:
                values[number - 1] = tensor
                if slot.facts != self.facts(tensor):
                    differ.append((number - 1, slot.facts, self.facts(tensor)))
            if number == expected and self.early_stop:
                raise _Stop
            return tensor

        random = self.random.again() if self.random is not None else contextlib.nullcontext()
        args = [a.get() if isinstance(a, _Argument) else a for a in self.args]
        saving = saved_tensors_hooks(pack, _as_it_is)
        with contextlib.suppress(_Stop), random, self.autocast, self.context, enable_grad(), saving:
            self.function(*args, **self.kwargs)
        if number < expected or (number > expected and self.completed):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {expected}\nNumber of tensors saved during "
                f"recomputation: {number}{self.told()}"
            )
        if differ:
            lines = [f"\ntensor at position {k}: saved {before}, recomputed {after}" for k, before, after in differ]
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.{''.join(lines)}{self.told()}"
            )
        return values

    def told(self) -> str:
        """With ``debug``, what saved values in the forward pass and in the recomputation."""
        if self.notes is None:
            return "\nTip: debug=True, or set_checkpoint_debug_enabled(True), shows what saved them."
        first, again = ["".join(f"\n    {line}" for line in lines) for lines in self.notes]
        return f"\nOperations of the original forward that saved:{first}\nOperations of the recomputation:{again}"


def _as_it_is(packed):
    return packed


def facts_of(t: Tensor) -> tuple:
    """What a recomputed value must have in common with the first one."""
    return tuple(t.shape), t.dtype, t.device


def detach_variable(inputs: tuple) -> tuple:
    """The tensors among ``inputs`` as leaves on the same memory, the others as they are."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple([t.detach().requires_grad_(t.requires_grad) if isinstance(t, Tensor) else t for t in inputs])


def check_backward_validity(inputs) -> None:
    """Warns where none of the inputs requires grad: a reentrant checkpoint then gives no gradients."""
    if not any(t.requires_grad for t in inputs if isinstance(t, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=4)


class CheckpointFunction(Function):
    """The reentrant form: a Function that runs the part without recording, and in backward again, with a backward of
    its own."""

    @staticmethod
    def forward(ctx, run_function, preserve_rng_state, *args):
        check_backward_validity(args)
        ctx.run_function, ctx.random = run_function, RandomStates(args) if preserve_rng_state else None
        ctx.autocast = autocast_of_here()
        ctx.args = [None if isinstance(a, Tensor) else a for a in args]
        ctx.save_for_backward(*[a for a in args if isinstance(a, Tensor)])
        ctx.places = [k for k, a in enumerate(args) if isinstance(a, Tensor)]
        with no_grad():
            return run_function(*args)

    @staticmethod
    def backward(ctx, *grads):
        if current() is PARTIAL:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` "
                "parameter to .backward(). To resolve this error, you can either set use_reentrant=False, or call "
                ".backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.args)
        for k, t in zip(ctx.places, ctx.saved_tensors):
            inputs[k] = t
        inputs = detach_variable(tuple(inputs))
        random = ctx.random.again() if ctx.random is not None else contextlib.nullcontext()
        with random, enable_grad(), ctx.autocast:
            outputs = ctx.run_function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        pairs = [(o, g) for o, g in zip(outputs, grads) if isinstance(o, Tensor) and o.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        with enable_grad():
            backward([o for o, _ in pairs], [g for _, g in pairs])
        return (None, None, *[t.grad if isinstance(t, Tensor) else None for t in inputs])


def _reentrance(use_reentrant, name: str) -> bool:
    if use_reentrant is not None:
        return use_reentrant
    warnings.warn(
        f"checkpoint{name}: give use_reentrant: False is recommended, and True is what leaving it out means today",
        stacklevel=3,
    )
    return True


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    context_fn=noop_context_fn,
    determinism_check="default",
    debug=False,
    early_stop=True,
    preserve_rng_state=True,
    **kwargs,
):
    """``function(*args, **kwargs)``, whose saved values are computed again in backward instead of kept. Random numbers
    are drawn alike both times unless ``preserve_rng_state`` is False. Follows ``torch.utils.checkpoint.checkpoint``.

    Args:
        use_reentrant: False, which is recommended: any order of derivative, keyword arguments, nesting; True: an older
            form, that gives gradients only where an argument requires them, and only to ``backward`` without inputs
        context_fn: gives two contexts, of the forward pass and of the recomputation
        determinism_check: "default": recomputed values must have the shapes, dtypes and devices of the first ones;
            "none": they may differ
        debug: whether a CheckpointError shows what saved values, both times; not with ``context_fn``
        early_stop: whether the recomputation stops when all is there that backward wants
    Raises:
        CheckpointError: in backward, if the function has not saved the same when called again
        ValueError: an argument that ``use_reentrant=True`` does not take, or ``debug`` with ``context_fn``
    """
    if _reentrance(use_reentrant, ""):
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    debug = debug if _settings["debug"] is None else _settings["debug"]
    early_stop = early_stop if _settings["early_stop"] is None else _settings["early_stop"]
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    forward_context, context = context_fn()
    if not is_grad_enabled():
        return function(*args, **kwargs)
    random = RandomStates(args) if preserve_rng_state else None
    part = _Part(function, args, kwargs, random, context, determinism_check, early_stop, debug)
    with saved_tensors_hooks(part.pack, part.unpack), forward_context:
        out = function(*args, **kwargs)
        part.completed = True
    if not part.completed:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during "
            "the checkpointed forward. This is not supported because checkpoint cannot return a value for a failed "
            "forward."
        )
    return out


def checkpoint_sequential(functions, segments, input, use_reentrant=None, **kwargs):
    """Runs a sequence of functions in ``segments`` checkpointed parts; the last part is not checkpointed. Of ``kwargs``
    there is ``preserve_rng_state``. ValueError for more parts than functions, or other keywords. Follows
    ``torch.utils.checkpoint.checkpoint_sequential``."""
    reentrant = _reentrance(use_reentrant, ".checkpoint_sequential")
    preserve_rng_state = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions.children()) if hasattr(functions, "children") else list(functions)
    size = len(functions) // segments
    if not size:
        raise ValueError(f"checkpoint_sequential: {segments} segments of {len(functions)} functions")

    def run(part):
        def forward(x):
            for f in part:
                x = f(x)
            return x

        return forward

    cut = size * (segments - 1)
    for start in range(0, cut, size):
        input = checkpoint(
            run(functions[start : start + size]), input, use_reentrant=reentrant, preserve_rng_state=preserve_rng_state
        )
    return run(functions[cut:])(input)
