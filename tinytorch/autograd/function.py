"""Functions with a derivative of the user's own."""

from __future__ import annotations

import functools
import inspect
import warnings
import weakref
from _thread import get_ident

from ..backends.cpu import lib
from ..backends.native import new_node
from ..tensor import Tensor
from .engine import nested, unbroadcast
from .modes import current, is_grad_enabled, no_grad
from .node import FREED, Node, Packed, SavedTensor, alias, make_ports, need_extra, pack_with, port
from .views import CUSTOM, FLAG_VIEW, check_inplace, rebase, refresh, refuse_saved, track, writer_number, wrote

FROZEN = ()  # stands for the metadata of an input that requires no gradient: what backward gives for it is dropped


class FunctionCtx:
    """What a Function's forward and backward share. Any attribute may be set on it: what backward needs otherwise is
    kept by its Node, which owns it."""

    _node = None  # once recorded: a weak reference to the Node

    def __init__(self):
        self.to_save = self.dirty_tensors = self.non_differentiable = ()
        self.materialize_grads = True
        self.needs_input_grad: tuple[bool, ...] = ()

    def name(self) -> str:
        """The name of its Node."""
        return type(self).__name__

    def save_for_backward(self, *tensors):
        """Keeps inputs, outputs or intermediate tensors (or None) for backward, guarded against writes in place."""
        for t in tensors:
            if t is not None and not isinstance(t, Tensor):
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type {type(t).__name__}"
                )
        self.to_save = tensors

    def mark_dirty(self, *tensors):
        """Names the inputs that forward wrote in place."""
        self.dirty_tensors = tensors

    def mark_non_differentiable(self, *tensors):
        """Names the outputs that have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool):
        """Shall undefined gradients reach backward as zeros (True, the default) or as None?"""
        self.materialize_grads = bool(value)

    save_for_forward = save_for_backward  # there are no forward-mode derivatives

    @property
    def saved_tensors(self) -> tuple:
        """The kept tensors. RuntimeError once backward has freed them, or if one was overwritten."""
        node = self._node() if self._node is not None else None
        return self.to_save if node is None else node.restore()  # without a Node, in forward

    saved_variables = saved_tensors


class FunctionNode(Node):
    """A custom Function's place in the graph. What users set on ``ctx`` they find here, too."""

    op = "Function"
    holds = 1
    function: type  # the user's Function

    def __getattr__(self, name: str):
        if name == "ctx":
            raise AttributeError(name)
        return getattr(self.ctx, name)

    def restore(self) -> tuple:
        """The saved tensors, with their histories."""
        if self.saved is FREED:
            raise RuntimeError(
                "Trying to backward through the graph a second time (or directly access saved tensors "
                f"after they have already been freed): {self.name()}'s saved tensors are gone. Specify "
                "retain_graph=True if you need to backward through the graph a second time."
            )
        return tuple([self._restore(k) for k in range(len(self.saved))])

    @property
    def _raw_saved_tensors(self) -> tuple:
        return tuple([SavedTensor(self, k) for k in range(len(self.saved))])

    def _restore(self, k):
        t = self.saved[k]
        if t is None:
            return None
        if type(t) is Packed:
            return t.hook(t.value)
        version, owner = self.versions[k]
        if type(owner) is int:  # one of its own outputs, by number
            owner = self if self.num_outputs == 1 else port(self, owner)
        if lib.tt_version_of(t._h) != version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                f"{self.name()} saved a tensor of shape {tuple(t.shape)} at version {version}; it is at version "
                f"{t._version} now."
            )
        return t if t._node is owner else alias(t, owner)

    def keep(self, tensors, outputs) -> None:
        """Saves what forward asked for, its own outputs as aliases without history."""
        hooks = current().saved_hooks
        refuse_saved(self.name(), tensors)
        kept, versions = [], []
        for t in tensors:
            own = next((k for k, o in enumerate(outputs) if t is o), None) if t is not None else None
            versions.append((lib.tt_version_of(t._h), t._node if own is None else own) if t is not None else None)
            t = t if own is None else alias(t)
            kept.append(Packed(pack_with(hooks[-1], t), hooks[-1][1]) if hooks and t is not None else t)
        self.saved, self.versions = tuple(kept), tuple(versions)

    def backward(self, g, saved, edges):
        """Calls the user's backward with the outputs' gradients, and brings what it gives to the inputs' shapes."""
        grads = list(g) if type(g) is list else [g]
        if self.ctx.materialize_grads:
            grads = [_zeros(meta) if x is None and meta is not None else x for x, meta in zip(grads, self.outputs)]
        derivative, thread = derivative_of(self.function), get_ident()
        depth = nested.get(thread, 0)
        try:
            nested[thread] = depth + 1
            results = derivative(self.ctx, *grads)
        finally:
            if depth:
                nested[thread] = depth
            else:
                nested.pop(thread, None)
        results = list(results) if isinstance(results, (tuple, list)) else [results]
        if len(results) > len(self.inputs) and all(r is None for r in results[len(self.inputs) :]):
            del results[len(self.inputs) :]
        if len(results) != len(self.inputs):
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected "
                f"{len(self.inputs)}, got {len(results)})"
            )
        for k, (r, meta) in enumerate(zip(results, self.inputs)):
            if r is None:
                continue
            if meta is None:
                raise RuntimeError(
                    f"function {self.name()} returned a gradient different than None at position {k + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
            if not isinstance(r, Tensor):
                raise RuntimeError(f"{self.name()}: expected a Tensor or None as gradient {k}, got {type(r).__name__}")
            if meta is FROZEN:
                results[k] = None
                continue
            if r.shape != meta[0] or r.dtype is not meta[1] or r.device is not meta[2]:
                if not _reducible(r.shape, meta[0]):
                    raise RuntimeError(
                        f"Function {self.name()} returned an invalid gradient at index {k} - got "
                        f"{list(r.shape)} but expected shape compatible with {list(meta[0])}"
                    )
                if r.device is not meta[2] and r.ndim > 0:
                    raise RuntimeError(
                        f"Function {self.name()} returned an invalid gradient at index {k} - expected "
                        f"device {meta[2]} but got {r.device}"
                    )
                results[k] = unbroadcast(r, *meta)
        return results

    first_order = backward


def derivative_of(function: type):
    """What a Function's subclass implements: ``backward``, or ``vjp``, its other name. RuntimeError for both."""
    if function.vjp is Function.vjp:
        return function.backward
    if function.backward is not Function.backward:
        raise RuntimeError(
            "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only implement "
            "one of them."
        )
    return function.vjp


def _zeros(meta):
    shape, like = meta
    return like.new_zeros(shape)


def _reducible(shape, to) -> bool:
    """Is ``shape`` one that ``to`` broadcasts to?"""
    lead = len(shape) - len(to)
    return lead >= 0 and all(t in (1, s) for s, t in zip(shape[lead:], to))


class _Meta(type):
    """Makes the classes of each Function's contexts and Nodes, so that they carry its name."""

    def __init__(cls, name, bases, body):
        super().__init__(name, bases, body)
        title, module = name + "Backward", cls.__module__
        cls._ctx = type(title, (FunctionCtx,), {"__module__": module})
        cls._node = type(title, (FunctionNode,), {"function": cls, "op": name, "__module__": module})


class Function(metaclass=_Meta):
    """An operation with a derivative of its own: subclass it with static methods ``forward(ctx, *args)`` (or
    ``forward(*args)`` and ``setup_context(ctx, inputs, output)``) and ``backward(ctx, *grad_outputs)``, and call
    ``apply(*args)``. Follows ``torch.autograd.Function``."""

    @staticmethod
    def forward(*args, **kwargs):
        """Computes the result; nothing is recorded inside."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx, *grad_outputs):
        """Gives the gradient of each argument of forward (None where there is none)."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    vjp = backward  # its other name
    setup_context = None

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so "
            "you should invoke them on the class itself: use .apply().",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use a static forward "
            "method, and call .apply() of the class."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Runs forward and records it."""
        ctx = cls._ctx()
        if kwargs or cls.setup_context is not None:
            args = _positional(cls, args, kwargs)
        tensors = [a if isinstance(a, Tensor) else None for a in args]
        for t in tensors:
            if t is not None:
                refresh(t)
        ctx.needs_input_grad = tuple(t is not None and t._node is not None for t in tensors)
        recording = is_grad_enabled() and any(ctx.needs_input_grad)
        with no_grad():
            if cls.setup_context is None:
                result = cls.forward(ctx, *args)
            else:
                result = cls.forward(*args)
                cls.setup_context(ctx, args, result)
        outputs = list(result) if isinstance(result, tuple) else [result]
        dirty = ctx.dirty_tensors
        if dirty and not all(any(d is o for o in outputs) for d in dirty):
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that "
                "are modified inplace must all be outputs of the Function."
            )
        if recording:
            _record(cls._node, ctx, tensors, outputs)
        else:
            for k, o in enumerate(outputs):  # an input is given back as another tensor
                if isinstance(o, Tensor) and any(o is t for t in tensors) and not any(o is d for d in dirty):
                    outputs[k] = alias(o)
        ctx.to_save = ctx.dirty_tensors = ctx.non_differentiable = ()
        return tuple(outputs) if isinstance(result, tuple) else outputs[0]


class InplaceFunction(Function):
    """A Function, as old programs name those that write their inputs."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace


def _positional(function: type, args: tuple, kwargs: dict) -> tuple:
    """All arguments of forward by position, those left out by their defaults: backward gives a gradient for each."""
    if function.setup_context is None:
        raise TypeError(f"{function.__name__}.apply() takes keyword arguments only where setup_context is defined")
    bound = inspect.signature(function.forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _record(cls: type, ctx: FunctionCtx, tensors: list, outputs: list) -> None:
    """Makes a Node of ``ctx`` the history of the outputs."""
    node = new_node(cls, tuple([t._node if t is not None else None for t in tensors]), (), ())
    node.ctx, ctx._node = ctx, weakref.ref(node)
    mode = current()
    if mode.anomaly:
        need_extra(node).trace = mode.anomaly()
    node.inputs = tuple(
        [None if t is None else FROZEN if t._node is None else (t.shape, t.dtype, t.device) for t in tensors]
    )
    written = []
    for k, t in enumerate(outputs):
        if not isinstance(t, Tensor):
            continue
        if any(t is d for d in ctx.dirty_tensors):
            check_inplace(t, node.name(), True)
            if len(outputs) > 1 and t._h.flags & FLAG_VIEW:
                raise RuntimeError(
                    "If your Function modifies inplace an input that is a view of another Tensor, your Function cannot "
                    "return more than one Tensor. This is not supported by the current autograd engine."
                )
            lib.tt_bump(t._h, writer_number(node.name()))  # forward may have written it by other means
            wrote(t)
            written.append(t)
        elif any(t is i for i in tensors):
            outputs[k] = track(t, alias(t), CUSTOM)
            t = outputs[k]
        elif t._h.flags & FLAG_VIEW and any(i is not None and i._h.storage == t._h.storage for i in tensors):
            track(t, t, CUSTOM)
    node.keep(ctx.to_save, outputs)
    node.outputs = [(t.shape, t.new_empty(())) if isinstance(t, Tensor) else None for t in outputs]
    differentiable = [
        t if isinstance(t, Tensor) and not any(t is n for n in ctx.non_differentiable) else None for t in outputs
    ]
    node.num_outputs = len(outputs)
    if len(outputs) > 1:
        make_ports(node, differentiable)
        return
    for t in differentiable:
        if t is not None and t.dtype.is_floating_point:
            if any(t is w for w in written):
                rebase(t, node)
            else:
                t._node = node


class _Twice(Node):
    """Stands behind the results of a once-differentiable backward."""

    __slots__ = ()
    op = "once_differentiable"

    def backward(self, g, saved, edges):
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    first_order = backward


def once_differentiable(fn):
    """Marks a Function's backward as not differentiable itself: deriving its result raises RuntimeError."""

    @functools.wraps(fn)
    def wrapper(ctx, *grads):
        with no_grad():
            results = fn(ctx, *grads)
        sources = tuple(g._node for g in grads if isinstance(g, Tensor))
        if not is_grad_enabled() or not any(e is not None for e in sources):
            return results
        marked = []
        for r in results if isinstance(results, tuple) else (results,):
            if isinstance(r, Tensor):
                r = alias(r)
                r._node = new_node(_Twice, sources, (), ())
            marked.append(r)
        return tuple(marked) if isinstance(results, tuple) else marked[0]

    return wrapper
