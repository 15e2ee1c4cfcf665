"""Hooks on tensors and on what is saved; places in the graph. The names of ``torch.autograd.graph``."""

from __future__ import annotations

import functools
from _thread import get_ident
from typing import NamedTuple

from ..backends.cpu import lib
from ..tensor import Tensor
from . import engine
from .modes import ModeContext, current
from .mutation import allow_mutation_on_saved_tensors
from .node import AccumulateGrad, Handle, Node, Port, need_extra, port
from .views import refresh, writer_number, wrote

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]


def register_hook(self, hook):
    """Calls ``hook(grad)`` when this tensor's gradient is complete; a Tensor it returns replaces the gradient. Returns
    a handle with ``remove()``. RuntimeError if the tensor needs no gradient. Follows ``torch.Tensor.register_hook``."""
    refresh(self)
    if self._node is None:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    node = self._node
    extra = need_extra(node)
    extra.hooked = True
    if extra.tensor_hooks is None:
        extra.tensor_hooks = {}
        if type(node) is Port:  # where no gradient arrives, the Node of all outputs runs the hooks
            whole = need_extra(node.edges[0])
            whole.hooked = True
            whole.output_hooks = {**(whole.output_hooks or {}), node.saved[0]: extra.tensor_hooks}
    return Handle(extra.tensor_hooks, hook)


def register_post_accumulate_grad_hook(self, hook):
    """Calls ``hook(tensor)`` after a gradient was added to this leaf's ``.grad``. RuntimeError for a non-leaf."""
    if not isinstance(self._node, AccumulateGrad):
        raise RuntimeError(
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
            if self._node
            else "cannot register a hook on a tensor that doesn't require gradient"
        )
    if self._node.post_accumulate is None:
        self._node.post_accumulate = {}
    return Handle(self._node.post_accumulate, hook)


Tensor.register_hook = register_hook
Tensor.register_post_accumulate_grad_hook = register_post_accumulate_grad_hook


class saved_tensors_hooks(ModeContext):
    """Inside, what operations save for backward goes through ``pack_hook(tensor)``, and through
    ``unpack_hook(packed)`` when backward wants it. Follows ``torch.autograd.graph.saved_tensors_hooks``."""

    def __init__(self, pack_hook, unpack_hook):
        super().__init__()
        self.hooks = (pack_hook, unpack_hook)

    def changes(self):
        mode = current()
        if mode.hooks_refused:
            raise RuntimeError(mode.hooks_refused)
        return {"saved_hooks": (*mode.saved_hooks, self.hooks)}

    def clone(self):
        return type(self)(*self.hooks)


class save_on_cpu(saved_tensors_hooks):
    """Keeps what is saved on the CPU. With ``pin_memory`` what a CUDA device has is kept in page-locked memory, and the
    copies there and back are queued with the device's work: nobody waits. Follows
    ``torch.autograd.graph.save_on_cpu``."""

    def __init__(self, pin_memory=False, device_type="cuda"):
        def pack(t):
            return t.device, t.to("cpu", non_blocking=pin_memory)  # whose result is page-locked

        super().__init__(pack, lambda packed: packed[1].to(packed[0], non_blocking=pin_memory))
        self.pin_memory, self.device_type = pin_memory, device_type

    def clone(self):
        return type(self)(self.pin_memory, self.device_type)


class disable_saved_tensors_hooks(ModeContext):
    """Inside, ``saved_tensors_hooks`` raises RuntimeError with this message."""

    def __init__(self, message):
        super().__init__()
        self.message = message

    def changes(self):
        return {"hooks_refused": self.message}

    def clone(self):
        return type(self)(self.message)


class GradientEdge(NamedTuple):
    """A place in the graph: a Node and the number of its output. ``backward`` and ``grad`` take it for a tensor."""

    node: Node
    output_nr: int
    ownership_token: object = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where the gradient of ``tensor`` arrives. RuntimeError if it needs none."""
    if isinstance(tensor, Tensor):
        refresh(tensor)
    if not tensor.requires_grad:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor._node
    return GradientEdge(node.edges[0], node.saved[0]) if isinstance(node, Port) else GradientEdge(node, 0)


class _MultiGradHook:
    """What the hooks of several tensors share in each backward: what has arrived, and how much is to come."""

    looks = True  # at which Nodes a backward reaches

    def __init__(self, tensors, fn, mode: str):
        self.nodes = []
        for t in tensors:
            if not isinstance(t, Tensor):
                raise TypeError(f"register_multi_grad_hook(): expected Tensors, but got {type(t).__name__}")
            refresh(t)
            self.nodes.append(t._node)
        self.fn, self.mode = fn, mode
        self.runs: dict[int, list] = {}  # of each thread, what its backwards have; the innermost is last
        self.handles = [t.register_hook(functools.partial(self.arrived, k)) for k, t in enumerate(tensors)]
        engine.observers.append(self)

    def begin(self, reached) -> None:
        expected = sum([(n.edges[0] if type(n) is Port else n) in reached for n in self.nodes])
        self.runs.setdefault(get_ident(), []).append([[None] * len(self.nodes), expected])

    def end(self) -> None:
        runs = self.runs[get_ident()]
        runs.pop()
        if not runs:
            del self.runs[get_ident()]

    def arrived(self, k: int, grad):
        run = self.runs[get_ident()][-1]
        grads, expected = run
        if self.mode == "any":
            if expected > 0:
                run[1] = 0
                self.fn(grad)
            return
        grads[k] = grad
        run[1] -= 1
        if run[1] == 0:
            self.fn(grads)

    def remove(self) -> None:
        """Takes the hook out."""
        for handle in self.handles:
            handle.remove()
        if self in engine.observers:
            engine.observers.remove(self)

    def __enter__(self):
        return self

    def __exit__(self, *exc_info):
        self.remove()


def register_multi_grad_hook(tensors, fn, *, mode="all"):
    """Calls ``fn(grads)`` in a backward when the gradients of all ``tensors`` that it computes have arrived: a list,
    with None for the others. With ``mode="any"``, ``fn(grad)`` when the first has. Returns a handle with ``remove()``.
    Follows ``torch.autograd.graph.register_multi_grad_hook``."""
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    return _MultiGradHook(tuple(tensors), fn, mode)


def node_of(edge: GradientEdge) -> Node:
    """The Node that a gradient at ``edge`` goes to: one of several outputs' has its Port."""
    return edge.node if edge.node.num_outputs == 1 else port(edge.node, edge.output_nr)


def increment_version(tensor) -> None:
    """Counts a write in place that tinytorch did not make itself, for one tensor or several."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"increment_version expects each element of the iterable to be a tensor, got {t!r}")
        lib.tt_bump(t._h, writer_number("increment_version"))
        wrote(t)
