"""Operators that are one C call on descriptors, with a forward path as short as the elementwise operators' (see
_hot in declare.py), for what every training step runs: products of matrices, softmax."""

from __future__ import annotations

import linecache
from _thread import get_ident

from ..autograd.modes import DEFAULT, current, modes
from ..autograd.node import alias, count, link, node_class, saved_versions
from ..autograd.views import refresh
from ..backends.cpu import error, ffi
from ..tensor import Tensor, gives_tensor, new, own

_SOURCE = """
def apply({params}):
    try:
        out = call({arguments})
        {edge_names} = {edges}
    except (AttributeError, TypeError):
        raise wrong_type(name, params, ({params},), optional) from None
    if out is None:
        freshen(({tensors},))
        out = call({arguments})
        if out is None:
            raise error(name)
        {edge_names} = {edges}
    if {no_edge}:
        return out
    edges = ({edge_names},)
    h = out._h
    if h.stamp & 8 and recording():
        raise RuntimeError(name + INFERENCE)
    if modes:
        mode = modes.get(get_ident(), DEFAULT)
        if mode is not DEFAULT:
            if mode.grad:
                out._node = link(Node, edges, {saves}, h.stamp)
            return out
    node = new(Node)
    node.edges = edges
    node.saved = {saves}
    node.versions = h.stamp
    node.key = -count()
    node.extra = None
    out._node = node
    return out
"""

_INFERENCE = (": Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
              "tensor and use it in autograd.")


def direct(name: str, call, *, params: tuple[str, ...], doc: str, optional: tuple[str, ...] = (), constants: str = "",
           title: str | None = None, fast: dict | None = None, **vjps):
    """Declares an operator computed by the C function ``call`` from the descriptors of the differentiable parameters
    (the names of ``vjps``, among them the ``optional`` ones that may be None) and the other ``params`` as they are,
    with ``constants`` after them. The first two tensors may be saved: their versions come in the result's stamp."""
    node = node_class(name, params, vjps, fast, title=title)
    arguments = [(f"NULL if {p} is None else {p}._h" if p in optional else f"{p}._h") if p in vjps else p
                 for p in params]
    edges = [f"None if {p} is None else {p}._node" if p in optional else f"{p}._node" for p in vjps]
    names = [f"edge_{p}" for p in vjps]
    source = _SOURCE.format(params=", ".join(params), arguments=", ".join(arguments) + constants,
                            tensors=", ".join(vjps), edges=", ".join(edges), edge_names=", ".join(names),
                            no_edge=" and ".join(f"{e} is None" for e in names), saves=node.saves)
    namespace = {"call": gives_tensor(call), "name": name, "params": params, "optional": optional, "Node": node,
                 "new": new, "count": count, "modes": modes, "DEFAULT": DEFAULT, "get_ident": get_ident, "link": link,
                 "alias": alias, "NULL": ffi.NULL, "error": error, "INFERENCE": _INFERENCE,
                 "recording": recording, "freshen": freshen, "wrong_type": wrong_type}
    filename = f"<eager {title or name}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    exec(compile(source, filename, "exec"), namespace)
    apply = namespace["apply"]
    apply.__name__ = apply.__qualname__ = name
    apply.__doc__, apply.node = doc, node
    return apply


def recording() -> bool:
    """Does this thread record?"""
    return current().grad


def freshen(tensors) -> None:
    """Brings the histories of views up to date."""
    for t in tensors:
        if t is not None:
            refresh(t)


def wrong_type(op: str, params, args, optional) -> TypeError:
    """The error for an argument that is no tensor; None stands for nothing only where it is ``optional``."""
    for p, a in zip(params, args):
        if not isinstance(a, Tensor) and not (a is None and p in optional):
            return TypeError(f"{op}(): argument '{p}' must be Tensor, not {type(a).__name__}")
    return TypeError(f"{op}(): an argument has the wrong type: {', '.join(type(a).__name__ for a in args)}")


def computed(h, fallback, *args) -> Tensor:
    """A derivative's own kernel has given ``h``; where it declined, the formula computes."""
    return own(h) if h else fallback(*args)


def record(out: Tensor, cls: type, edges: tuple, saved: tuple) -> Tensor:
    """Gives ``out``, computed by a kernel, the history of a Node class of its own."""
    for e in edges:
        if e is not None:
            if not modes or current().grad:
                out._node = link(cls, edges, saved, saved_versions(cls, saved))
            break
    return out
