"""``backward`` and ``grad``: roots and targets checked, then the engine."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ..backends.cpu import lib
from ..devices import on_device
from ..dtypes import COMPLEX
from ..tensor import FUNCTIONS, Tensor, gives_tensor, owned
from . import engine
from .graph import GradientEdge, node_of
from .modes import set_grad_enabled
from .node import Node, describe
from .views import refresh

_INT, _DEVICE = lib.TT_KIND_INT, lib.TT_FLAG_DEVICE
_full = gives_tensor(lib.tt_full)


def _sequence(x) -> tuple:
    """``x`` as a tuple: of itself alone, if it is one place in the graph, or nothing of the kind."""
    return (x,) if isinstance(x, (Tensor, GradientEdge)) or not isinstance(x, Iterable) else tuple(x)


def _roots(op: str, tensors, grads) -> list:
    """The Nodes to start from, with their gradients; ones for scalars without a gradient."""
    tensors = _sequence(tensors)
    grads = (None,) * len(tensors) if grads is None else _sequence(grads)
    if len(grads) != len(tensors):
        raise RuntimeError(f"{op}: got {len(tensors)} tensors and {len(grads)} gradients")
    roots = []
    for k, (t, g) in enumerate(zip(tensors, grads)):
        if not isinstance(t, Tensor):
            if isinstance(t, GradientEdge) and isinstance(g, Tensor):
                roots.append((node_of(t), g))
                continue
            if isinstance(t, GradientEdge):
                raise RuntimeError(f"grad can be implicitly created only for scalar outputs; {op} was given an edge")
            raise TypeError(f"{op}: element {k} of outputs must be a Tensor, got {type(t).__name__}")
        refresh(t)
        if t._node is None:
            raise RuntimeError(
                f"{op}: element {k} of tensors does not require grad and does not have a grad_fn ({describe(t)})"
            )
        if g is None:
            if t._h.numel != 1:
                raise RuntimeError(
                    f"grad can be implicitly created only for scalar outputs; {op} was given a "
                    f"{describe(t)} without a gradient"
                )
            h = t._h
            if COMPLEX[h.dtype]:
                raise RuntimeError(
                    f"grad can be implicitly created only for real scalar outputs but got {t.dtype!r}: {op} needs a "
                    "gradient"
                )
            one = h.dtype, h.ndim, h.shape, _INT, 0.0, 1
            g = on_device(t.device, owned.tt_full, *one) if h.flags & _DEVICE else _full(*one)
        elif not isinstance(g, Tensor):
            raise TypeError(f"{op}: gradients can be either Tensors or None, but got {type(g).__name__}")
        elif g.shape != t.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{k}] has a shape of {g.shape} and output[{k}] has a "
                f"shape of {t.shape}."
            )
        elif g._h.storage.device != t._h.storage.device and g.ndim > 0:
            raise RuntimeError(f"{op}: invalid gradient at index {k} - expected device {t.device} but got {g.device}")
        elif g.dtype is not t.dtype or g._h.storage.device != t._h.storage.device:
            g = g.to(t.device, t.dtype)
        roots.append((t._node, g))
    return roots


def backward(tensors, grad_tensors=None, retain_graph=None, create_graph=False, grad_variables=None, inputs=None):
    """Adds to ``.grad`` of every leaf (or of ``inputs`` alone) the derivative of ``tensors``, weighted by
    ``grad_tensors`` (ones for scalars). Follows ``torch.autograd.backward``.

    RuntimeError: no graph; a non-scalar without its gradient; a gradient of another shape; a graph already freed
    (``retain_graph``); a saved value overwritten in place.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError(
                "backward: give either `grad_tensors` or `grad_variables`, which is deprecated, not both"
            )
        grad_tensors = grad_variables
    keep = create_graph if retain_graph is None else retain_graph
    roots = _roots("backward", tensors, grad_tensors)
    if create_graph:
        warnings.warn(
            "Using backward() with create_graph=True will create a reference cycle between the parameter and its "
            "gradient which can cause a memory leak. We recommend using autograd.grad when creating the graph to avoid "
            "this. If you have to use this function, make sure to reset the .grad fields of your parameters to None "
            "after use to break the cycle and avoid the leak.",
            stacklevel=3,
        )
    if inputs is None:
        engine.run(roots, keep, create_graph)
        return
    inputs = _sequence(inputs)
    nodes = _targets("backward", inputs)
    for t in inputs:
        if isinstance(t, Tensor) and not t.is_leaf:
            engine.retain(t)
    engine.run(roots, keep, create_graph, dict.fromkeys(nodes, ()))


def _targets(op: str, inputs: tuple) -> list[Node]:
    """The Nodes whose gradients are those of ``inputs``."""
    if not inputs:
        raise RuntimeError(f"`inputs` argument to `{op}()` cannot be empty.")
    nodes = []
    for k, t in enumerate(inputs):
        if not isinstance(t, Tensor):
            if isinstance(t, GradientEdge):
                nodes.append(node_of(t))
                continue
            raise RuntimeError(
                f"{op}: all inputs have to be Tensors or GradientEdges, element {k} is a {type(t).__name__}"
            )
        refresh(t)
        if t._node is None:
            raise RuntimeError(f"One of the differentiated Tensors does not require grad (input {k}, a {describe(t)})")
        nodes.append(t._node)
    return nodes


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The derivatives of ``outputs``, weighted by ``grad_outputs``, with respect to ``inputs``: a tuple. With
    ``create_graph`` they can be derived again. Follows ``torch.autograd.grad``.

    ``allow_unused``: None for inputs that were not used, instead of a RuntimeError; ``materialize_grads``: zeros.
    ``is_grads_batched``: the first dimension of ``grad_outputs`` is a batch of gradients to run, one after the other.
    """
    inputs = _sequence(inputs)
    if materialize_grads and allow_unused is False:
        raise ValueError(
            "Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False."
        )
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    keep = create_graph if retain_graph is None else retain_graph
    if is_grads_batched:
        return _batched(
            _sequence(outputs), inputs, _sequence(grad_outputs), keep, create_graph, allow_unused, materialize_grads
        )
    roots = _roots("grad", outputs, grad_outputs)
    captures: dict[Node, list[int]] = {}
    for k, node in enumerate(_targets("grad", inputs)):
        captures.setdefault(node, []).append(k)
    found = engine.run(roots, keep, create_graph, captures, len(inputs))
    for k, (t, g) in enumerate(zip(inputs, found)):
        if g is None:
            if not allow_unused:
                raise RuntimeError(
                    "One of the differentiated Tensors appears to not have been used in the graph. Set "
                    f"allow_unused=True if this is the desired behavior. (input {k}, "
                    f"{f'a {describe(t)}' if isinstance(t, Tensor) else t})"
                )
            if materialize_grads:
                if isinstance(t, GradientEdge):
                    raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
                found[k] = t.new_zeros(t.shape)
    return tuple(found)


def _batched(outputs, inputs, grad_outputs, keep, create_graph, allow_unused, materialize):
    for g in grad_outputs:
        if g is not None and not (isinstance(g, Tensor) and g._h.ndim):
            raise TypeError(
                f"grad: is_grads_batched=True needs Tensors of a dimension at least, got {type(g).__name__}"
            )
    sizes = {g.shape[0] for g in grad_outputs if g is not None}
    if len(sizes) != 1:
        raise RuntimeError(f"grad: is_grads_batched=True needs gradients of one batch size, got {sorted(sizes)}")
    n = sizes.pop()
    rows = [
        grad(
            outputs,
            inputs,
            tuple(g[i] if g is not None else None for g in grad_outputs),
            retain_graph=keep or i < n - 1,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize,
        )
        for i in range(n)
    ]
    with set_grad_enabled(create_graph):
        return tuple(None if column[0] is None else FUNCTIONS["stack"](column) for column in zip(*rows))


def _tensor_backward(self, gradient=None, retain_graph=None, create_graph=False, inputs=None):
    """Adds the derivative of this tensor to ``.grad`` of the leaves. See ``autograd.backward``."""
    backward(self, gradient, retain_graph, create_graph, inputs=inputs)


Tensor.backward = _tensor_backward
