"""Hooks of modules: what may be called before and after ``forward`` and around its derivative."""

from __future__ import annotations

from ..autograd.function import Function
from ..autograd.node import Handle
from ..tensor import Tensor

GLOBAL_PRE: dict = {}  # hooks on every module; ``handle id -> hook``
GLOBAL_POST: dict = {}


class Hook:
    """A hook and how it wants to be called."""

    __slots__ = ("fn", "with_kwargs", "always_call")

    def __init__(self, fn, with_kwargs=False, always_call=False):
        self.fn, self.with_kwargs, self.always_call = fn, with_kwargs, always_call

    def __call__(self, *args):
        return self.fn(*args)


def register(hooks: dict, hook, prepend: bool = False) -> Handle:
    """Adds a hook, at the end or in front."""
    handle = Handle(hooks, hook)
    if prepend:
        rest = {k: v for k, v in hooks.items() if k != handle.id}
        for k, v in rest.items():
            del hooks[k]
            hooks[k] = v
    return handle


def register_module_forward_pre_hook(hook) -> Handle:
    """``hook(module, args)`` before every module's forward. For debugging."""
    return register(GLOBAL_PRE, Hook(hook))


def register_module_forward_hook(hook, *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """``hook(module, args, output)`` after every module's forward. For debugging."""
    return register(GLOBAL_POST, Hook(hook, with_kwargs, always_call))


class HookMethods:
    """The part of Module that has to do with hooks."""

    def register_forward_pre_hook(self, hook, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """``hook(module, args)`` before forward; it may return other arguments (not a tuple: a single one). With
        ``with_kwargs``, ``hook(module, args, kwargs)`` and it may return a pair."""
        return register(self._forward_pre_hooks, Hook(hook, with_kwargs), prepend)

    def register_forward_hook(
        self, hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """``hook(module, args, output)`` after forward, or ``hook(module, args, kwargs, output)`` with
        ``with_kwargs``; it may return another output. With ``always_call`` it is also called when forward raises."""
        return register(self._forward_hooks, Hook(hook, with_kwargs, always_call), prepend)

    def register_full_backward_pre_hook(self, hook, prepend: bool = False) -> Handle:
        """``hook(module, grad_output)`` before the derivative of this module is taken; it may return another
        ``grad_output``."""
        return register(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook, prepend: bool = False) -> Handle:
        """``hook(module, grad_input, grad_output)`` when the gradients of the inputs are there; it may return another
        ``grad_input``. Both are tuples, with None for what is no tensor or needs no gradient."""
        return register(self._backward_hooks, hook, prepend)

    register_backward_hook = register_full_backward_hook

    def _call_with_hooks(self, args: tuple, kwargs: dict):
        called = set()
        output = None
        try:
            args, kwargs = self._run_pre_hooks(args, kwargs)
            boundary = None
            if self._backward_hooks or self._backward_pre_hooks:
                boundary = Boundary(self)
                args = boundary.enter(args)
            output = self.forward(*args, **kwargs)
            for hooks in (GLOBAL_POST, self._forward_hooks):
                for key, hook in list(hooks.items()):
                    called.add(key)
                    output = self._run_hook(hook, args, kwargs, output)
            return boundary.leave(output) if boundary is not None else output
        except Exception:
            for hooks in (GLOBAL_POST, self._forward_hooks):
                for key, hook in list(hooks.items()):
                    if hook.always_call and key not in called:
                        output = self._run_hook(hook, args, kwargs, output)
            raise

    def _run_pre_hooks(self, args, kwargs):
        for hooks in (GLOBAL_PRE, self._forward_pre_hooks):
            for hook in list(hooks.values()):
                if hook.with_kwargs:
                    changed = hook.fn(self, args, kwargs)
                    if changed is not None:
                        if not isinstance(changed, tuple) or len(changed) != 2:
                            raise RuntimeError(
                                "forward pre-hook must return None or a tuple of (new_args, "
                                f"new_kwargs), but got {changed}."
                            )
                        args, kwargs = changed
                else:
                    changed = hook.fn(self, args)
                    if changed is not None:
                        args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _run_hook(self, hook, args, kwargs, output):
        changed = hook.fn(self, args, kwargs, output) if hook.with_kwargs else hook.fn(self, args, output)
        return output if changed is None else changed


class Boundary:
    """Where gradients enter and leave a module in one call of it: its backward hooks run there."""

    def __init__(self, module):
        self.module = module
        self.grad_outputs = None
        self.num_inputs = 0
        self.at: list[int] = []  # which arguments are recorded
        self.recorded = False

    def enter(self, args: tuple) -> tuple:
        """The arguments, with those that need a gradient led through the inner side of the boundary."""
        self.num_inputs = len(args)
        self.at = [i for i, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
        if not self.at:
            return args
        passed = _Inputs.apply(self, *[args[i] for i in self.at])
        passed = passed if isinstance(passed, tuple) else (passed,)
        args = list(args)
        for i, t in zip(self.at, passed):
            args[i] = t
        self.recorded = any(t.requires_grad for t in passed)
        return tuple(args)

    def leave(self, output):
        """The output, with its tensors led through the outer side. Tensors in tuples and lists are found too."""
        tensors = output if isinstance(output, (tuple, list)) else (output,)
        at = [i for i, t in enumerate(tensors) if isinstance(t, Tensor) and t.requires_grad]
        if not at:
            return output
        passed = _Outputs.apply(self, len(tensors), at, *[tensors[i] for i in at])
        passed = passed if isinstance(passed, tuple) else (passed,)
        if not isinstance(output, (tuple, list)):
            return passed[0]
        made = list(output)
        for i, t in zip(at, passed):
            made[i] = t
        if hasattr(output, "_fields"):  # a named tuple
            return type(output)(*made)
        return type(output)(made)

    def outputs_done(self, grads: tuple, length: int, at: list[int]) -> tuple:
        """The gradients of the outputs are there: pre-hooks, and, when no input needs one, the hooks themselves."""
        full: tuple = tuple(grads[at.index(i)] if i in at else None for i in range(length))
        for hook in list(self.module._backward_pre_hooks.values()):
            changed = hook(self.module, full)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                check_length("full_backward_pre_hook", changed, length)
                full = changed
        self.grad_outputs = full
        if not self.recorded:
            self.run_hooks((None,) * self.num_inputs)
        return tuple(full[i] for i in at)

    def inputs_done(self, grads: tuple) -> tuple:
        """The gradients of the inputs are there."""
        full = [None] * self.num_inputs
        for i, g in zip(self.at, grads):
            full[i] = g
        full = self.run_hooks(tuple(full))
        return tuple(full[i] for i in self.at)

    def run_hooks(self, full: tuple) -> tuple:
        """Calls the backward hooks in order; each may replace the gradients of the inputs."""
        for hook in list(self.module._backward_hooks.values()):
            changed = hook(self.module, full, self.grad_outputs)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                check_length("full_backward_hook", changed, len(full))
                full = changed
        return full


def check_length(what: str, given: tuple, wanted: int) -> None:
    """RuntimeError when a hook returns another number of gradients than it was given."""
    if len(given) != wanted:
        raise RuntimeError(
            f"{what}: Backward hook returned an invalid number of grad_input, got {len(given)}, but expected {wanted}"
        )


class _Inputs(Function):
    """The inner side of a boundary."""

    @staticmethod
    def forward(ctx, boundary, *tensors):
        ctx.boundary = boundary
        ctx.set_materialize_grads(False)
        return tuple([t.view_as(t) for t in tensors])

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.boundary.inputs_done(grads))


class _Outputs(Function):
    """The outer side of a boundary."""

    @staticmethod
    def forward(ctx, boundary, length, at, *tensors):
        ctx.boundary, ctx.length, ctx.at = boundary, length, at
        ctx.set_materialize_grads(False)
        return tuple([t.view_as(t) for t in tensors])

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, None, *ctx.boundary.outputs_done(grads, ctx.length, ctx.at))
