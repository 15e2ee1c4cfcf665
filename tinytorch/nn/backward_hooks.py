"""Hooks around a module's derivative: the two sides of a module in the graph, where gradients enter and leave it."""

from __future__ import annotations

import warnings

from ..autograd.function import Function
from ..autograd.modes import is_grad_enabled
from ..tensor import Tensor


class Boundary:
    """Where gradients enter and leave a module in one call of it: its backward hooks run there."""

    def __init__(self, module, pre_hooks: list, hooks: list):
        self.module, self.pre_hooks, self.hooks = module, pre_hooks, hooks
        self.grad_outputs = None  # there from when the gradients of the outputs come until the hooks have run
        self.num_inputs = self.num_outputs = 0
        self.inputs_at: list[int] = []  # which arguments are recorded
        self.outputs_at: list[int] = []

    def enter(self, args: tuple) -> tuple:
        """The arguments, with those that need a gradient led through the inner side of the boundary."""
        self.num_inputs = len(args)
        args, self.inputs_at = _through(self.inputs_done, args)
        return args

    def leave(self, output):
        """The output, a tensor or a tuple of tensors, led through the outer side."""
        if not isinstance(output, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(output)}",
                UserWarning,
                stacklevel=4,
            )
            return output
        outputs = output if isinstance(output, tuple) else (output,)
        self.num_outputs = len(outputs)
        outputs, self.outputs_at = _through(self.outputs_done, outputs)
        return outputs if isinstance(output, tuple) else outputs[0]

    def outputs_done(self, grads: tuple) -> tuple:
        """The gradients of the outputs are there: pre-hooks, and, when no input needs one, the hooks themselves."""
        full = _spread(grads, self.outputs_at, self.num_outputs)
        for hook in self.pre_hooks:
            full = changed(hook(self.module, full), full, "Backward pre hook", "grad_output")
        self.grad_outputs = full
        if not self.inputs_at:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients.",
                UserWarning,
                stacklevel=2,
            )
            nothing = (None,) * self.num_inputs
            for hook in self.hooks:
                found = hook(self.module, nothing, full)
                if found is not None and not (isinstance(found, tuple) and all(g is None for g in found)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        "for all gradients."
                    )
            self.grad_outputs = None
        return tuple(full[i] for i in self.outputs_at)

    def inputs_done(self, grads: tuple) -> tuple:
        """The gradients of the inputs are there. Those that come by another way than through the outputs, as in a
        double backward, are none of the hooks' business."""
        if self.grad_outputs is None:
            return grads
        full = _spread(grads, self.inputs_at, self.num_inputs)
        for hook in self.hooks:
            full = changed(hook(self.module, full, self.grad_outputs), full, "Backward hook", "grad_input")
        self.grad_outputs = None
        return tuple(full[i] for i in self.inputs_at)


def _through(done, values: tuple) -> tuple:
    """The values, with the tensors that need a gradient led through a Node that gives their gradients to ``done``; and
    where these are."""
    at = [i for i, v in enumerate(values) if isinstance(v, Tensor) and v.requires_grad] if is_grad_enabled() else []
    if not at:
        return values, at
    passed = BackwardHookFunction.apply(done, *[values[i] for i in at])
    made = list(values)
    for i, t in zip(at, passed):
        made[i] = t
    return (tuple(made) if type(values) is tuple else type(values)(*made)), at  # a named tuple, perhaps


def _spread(grads: tuple, at: list[int], length: int) -> tuple:
    """The gradients at their places among ``length``, None elsewhere."""
    full = [None] * length
    for i, g in zip(at, grads):
        full[i] = g
    return tuple(full)


def changed(returned, grads: tuple, who: str, what: str) -> tuple:
    """The gradients as a hook wants them. RuntimeError when it returns another number of them."""
    if returned is None:
        return grads
    returned = returned if isinstance(returned, tuple) else (returned,)
    if len(returned) != len(grads):
        raise RuntimeError(
            f"{who} returned an invalid number of {what}, got {len(returned)}, but expected {len(grads)}"
        )
    return returned


class BackwardHookFunction(Function):
    """One side of a boundary."""

    @staticmethod
    def forward(ctx, done, *tensors):
        ctx.done = done
        ctx.set_materialize_grads(False)
        return tuple([t.view_as(t) for t in tensors])

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.done(grads))


# Hooks of old, which hang on the Node of the output.


def hook_last_node(module, hooks: list, args: tuple, output) -> None:
    """Lets ``hooks`` run as hooks of the Node that made the output, with what that Node gets and gives; warns where
    this is not what enters and leaves the module."""
    first = output
    while not isinstance(first, Tensor):
        first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
    node = first.grad_fn
    if node is None:
        return
    for hook in hooks:
        node.register_hook(
            lambda grads, grad_outputs, hook=hook: changed(
                hook(module, grads, grad_outputs), tuple(grads), "Backward hook", "grad_input"
            )
        )
    reason = _not_the_modules_own(args, output, node)
    if reason:
        warnings.warn(
            f"Using a non-full backward hook when {reason} is deprecated and will be removed in future versions. "
            "Please use register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=4,
        )


def _not_the_modules_own(args: tuple, output, node) -> str:
    """Why the gradients at a Node are not those of the module; empty if they are."""
    for what, values in (("does not return", output), ("does not take as input", args)):
        if not isinstance(values, Tensor) and not (
            isinstance(values, tuple) and all(isinstance(v, Tensor) for v in values)
        ):
            return f"the module {what} a single Tensor or a tuple of Tensors"
    outputs = output if isinstance(output, tuple) else (output,)
    nodes = {t.grad_fn for t in outputs} - {None}
    if len(nodes) > 1:
        return "outputs are generated by different autograd Nodes"
    if node not in nodes:
        return "outputs are nested in python data structure"
    if {t.grad_fn for t in args} - {None} != {n for n, _ in node.next_functions}:
        return "the forward contains multiple autograd Nodes"
    return ""
