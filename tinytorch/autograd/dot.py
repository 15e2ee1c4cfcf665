"""The backward graph as a picture: ``graph_to_dot``."""

from __future__ import annotations

from ..dot import Edge, Picture
from ..dot import Node as Box
from ..tensor import Tensor
from .node import FREED, AccumulateGrad, Node, Packed, Port
from .views import refresh


def graph_to_dot(tensor, params=None, *, saved: bool = True) -> Picture:
    """The graph that ``tensor.backward()`` would walk through, as DOT text that can draw itself: ``.svg()`` through
    graphviz (in a notebook by itself), ``.text()`` without.

    ``tensor``   a tensor that requires grad, or several
    ``params``   names of leaves: a module, a dict or pairs such as ``model.named_parameters()``
    ``saved``    with the tensors that each Node has saved

    Arrows lead from what is computed to what it was computed from, as gradients flow. Built without recursion.
    TypeError for what is no tensor, RuntimeError for a tensor without a graph.
    """
    roots = list(tensor) if isinstance(tensor, (tuple, list)) else [tensor]
    names = _names(params)
    starts: dict[Node, list[str]] = {}
    for t in roots:
        if not isinstance(t, Tensor):
            raise TypeError(f"graph_to_dot: argument 'tensor' must be a Tensor or several, got {type(t).__name__}")
        refresh(t)
        if t._node is None:
            raise RuntimeError(
                f"graph_to_dot: argument 'tensor' has no graph: a tensor of shape {tuple(t.shape)} that "
                "does not require grad"
            )
        node, output = _target(t._node)
        starts.setdefault(node, []).append(_of(t) + ("" if output is None else f", output {output}"))
    if not starts:
        raise TypeError("graph_to_dot: argument 'tensor' must be a Tensor or several, got none")
    order = list(starts)
    number = {node: k for k, node in enumerate(order)}
    boxes, edges = [], []
    for node in order:  # which grows meanwhile
        boxes.append(_box(node, starts.get(node, ()), names, saved))
        metas = node.extra.unbroadcast_to if node.extra is not None and node.extra.unbroadcast_to is not None else ()
        for place, edge in enumerate(node.edges):
            if edge is None:
                continue
            target, output = _target(edge)
            if target not in number:
                number[target] = len(order)
                order.append(target)
            label = [] if output is None else [f"output {output}"]
            if place < len(metas) and metas[place] is not None:
                label.append(f"back to {tuple(metas[place][0])}")
            edges.append(Edge(number[node], number[target], ", ".join(label)))
    return Picture("backward graph", boxes, edges)


def _target(node: Node) -> tuple[Node, int | None]:
    """The Node of an edge, and which of its outputs, if it has several."""
    return (node.edges[0], node.saved[0]) if isinstance(node, Port) else (node, None)


def _box(node: Node, results, names: dict[int, str], saved: bool) -> Box:
    lines = [node.name()]
    lines += [f"{text}, the root" for text in results]
    if isinstance(node, AccumulateGrad):
        leaf = node.variable
        if leaf is None:
            return Box((*lines, "a leaf that is gone"), "leaf")
        return Box(
            (*lines, *([names[id(leaf)]] if id(leaf) in names else []), _of(leaf)), "root" if results else "leaf"
        )
    if saved:
        lines += _saved(node)
    return Box(tuple(lines), "root" if results else "operator")


def _saved(node: Node) -> list[str]:
    """A line for each tensor that the Node has saved."""
    if node.saved is FREED:
        return ["saved: freed by backward"]
    if node.tensors:
        pairs = [(name, node.saved[position]) for position, name, _ in node.tensors]
    else:
        pairs = [(f"[{k}]", value) for k, value in enumerate(node.saved)]
    lines = []
    for name, value in pairs:
        if isinstance(value, Tensor):
            lines.append(f"saved {name}: {_of(value)}")
        elif isinstance(value, Packed):
            lines.append(f"saved {name}: packed, {type(value.value).__name__}")
    return lines


def _of(t: Tensor) -> str:
    return f"{t.dtype.name} {tuple(t.shape)}" + ("" if t.is_cpu else f" {t.device}")


def _names(params) -> dict[int, str]:
    """By a tensor's id: its name."""
    if params is None:
        return {}
    if hasattr(params, "named_parameters"):
        params = params.named_parameters()
    elif hasattr(params, "items"):
        params = params.items()
    return {id(t): name for name, t in params}
