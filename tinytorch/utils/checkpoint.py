"""Checkpointing: memory for time. A checkpointed part keeps none of its intermediate values and computes them again
when backward asks (Chen et al. 2016, arXiv:1604.06174). Follows ``torch.utils.checkpoint``.

Note [Recomputation]
What the part's Nodes would save is replaced by Slots, numbered in the order of saving. The first Slot that backward
asks for makes the part run again; what that saves, in the same order, are the values of all Slots. It is stopped as
soon as it has saved as many as there are Slots. A value lives as long as its Slot, which is until its Node has let go
of it, or is handed out once: another backward computes anew."""

from __future__ import annotations

import contextlib
import warnings
import weakref

from .. import cuda
from ..autograd.api import backward
from ..autograd.function import Function
from ..autograd.graph import saved_tensors_hooks
from ..autograd.modes import PARTIAL, current, enable_grad, is_grad_enabled, no_grad
from ..autograd.node import describe, pack_with
from ..tensor import FUNCTIONS, Tensor

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

_settings = {"early_stop": True, "debug": None}


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
    """Inside, may checkpoints stop recomputing once all is there that backward wants (the default)?"""

    name = "early_stop"


class set_checkpoint_debug_enabled(_setting):
    """Inside, ``debug`` of all checkpoints; None leaves it to each."""

    name = "debug"


def noop_context_fn():
    """Two contexts that change nothing: of the forward pass, and of the recomputation."""
    return contextlib.nullcontext(), contextlib.nullcontext()


class _Random:
    """Where the random generators stand: the CPU's, and those of the arguments' devices."""

    def __init__(self, args):
        devices = {a.device for a in args if isinstance(a, Tensor) and a.is_cuda}
        self.cpu, self.cuda = FUNCTIONS["get_rng_state"](), [(d, cuda.get_rng_state(d)) for d in devices]

    @contextlib.contextmanager
    def again(self):
        """Inside, the generators go on from here."""
        now = _Random(())
        now.cuda = [(d, cuda.get_rng_state(d)) for d, _ in self.cuda]
        self.restore()
        try:
            yield
        finally:
            now.restore()

    def restore(self):
        FUNCTIONS["set_rng_state"](self.cpu)
        for device, state in self.cuda:
            cuda.set_rng_state(state, device)


class _Slot:
    """Stands for a saved value in the graph."""

    __slots__ = ("__weakref__", "facts")

    def __init__(self, facts):
        self.facts = facts


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


class _Part:
    """One checkpointed call: Note [Recomputation]."""

    def __init__(self, function, args, kwargs, random, context, determinism_check, early_stop):
        hooks = current().saved_hooks
        keep = [_Argument(a, hooks) if isinstance(a, Tensor) else a for a in args]
        self.function, self.args, self.kwargs = function, keep, kwargs
        self.random, self.context, self.early_stop = random, context, early_stop
        self.facts = facts_of if determinism_check == "default" else lambda t: None
        self.slots: list[weakref.ref] = []
        self.values: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()

    def pack(self, tensor) -> _Slot:
        slot = _Slot(self.facts(tensor))
        self.slots.append(weakref.ref(slot))
        return slot

    def unpack(self, slot: _Slot) -> Tensor:
        if slot not in self.values:
            self.recompute()
        return self.values.pop(slot)

    def recompute(self) -> None:
        expected, number, differ = len(self.slots), 0, []

        def pack(tensor):
            nonlocal number
            slot = self.slots[number]() if number < expected else None
            number += 1
            if slot is not None:
                self.values[slot] = tensor
                if slot.facts != self.facts(tensor):
                    differ.append((number - 1, slot.facts, self.facts(tensor)))
            if number == expected and self.early_stop:
                raise _Stop
            return tensor

        random = self.random.again() if self.random is not None else contextlib.nullcontext()
        args = [a.get() if isinstance(a, _Argument) else a for a in self.args]
        with contextlib.suppress(_Stop), random, self.context, enable_grad(), saved_tensors_hooks(pack, _as_it_is):
            self.function(*args, **self.kwargs)
        if number != expected:
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {expected}\nNumber of tensors saved during "
                f"recomputation: {number}"
            )
        if differ:
            lines = [f"\ntensor at position {k}: saved {before}, recomputed {after}" for k, before, after in differ]
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.{''.join(lines)}"
            )


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
        ctx.run_function, ctx.random = run_function, _Random(args) if preserve_rng_state else None
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
        with ctx.random.again() if ctx.random is not None else contextlib.nullcontext(), enable_grad():
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
        debug: taken as in PyTorch; errors tell what differs in any case
        early_stop: whether the recomputation stops when all is there that backward wants
    Raises:
        CheckpointError: in backward, if the function has not saved the same when called again
        ValueError: an argument that ``use_reentrant=True`` does not take
    """
    if _reentrance(use_reentrant, ""):
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve_rng_state, *args)
    if determinism_check not in ("default", "none"):
        raise ValueError(f"determinism_check should be one of ['default', 'none'], but got {determinism_check}")
    forward_context, context = context_fn()
    if not is_grad_enabled():
        with forward_context:
            return function(*args, **kwargs)
    random = _Random(args) if preserve_rng_state else None
    part = _Part(function, args, kwargs, random, context, determinism_check, early_stop and _settings["early_stop"])
    with forward_context, saved_tensors_hooks(part.pack, part.unpack):
        return function(*args, **kwargs)


def checkpoint_sequential(functions, segments, input, use_reentrant=None, preserve_rng_state=True):
    """Runs a sequence of functions in ``segments`` checkpointed parts; the last part is not checkpointed. ValueError
    for more parts than functions. Follows ``torch.utils.checkpoint.checkpoint_sequential``."""
    reentrant = _reentrance(use_reentrant, ".checkpoint_sequential")
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
