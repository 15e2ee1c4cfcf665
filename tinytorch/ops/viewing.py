"""The form in which views are declared that are one C call on a descriptor (kernels/core/views.c): a forward path as
short as the elementwise operators'. What that call does not do, it leaves, untouched, to the operator's general path,
which finds out what is unusual, or wrong."""

from __future__ import annotations

from _thread import get_ident

from ..autograd.modes import DEFAULT, modes
from ..autograd.node import code_of, count, link
from ..autograd.views import FLAG_VIEW, refresh, track
from ..backends.cpu import ffi
from ..tensor import Tensor, new

_SOURCE = """
def apply({params}):
    try:
        x = input._h
        viewed = x.flags & FLAG_VIEW
        if viewed:
            refresh(input)
        {prepare}
        h = call(x, {arguments})
    except (AttributeError, OverflowError, TypeError):
        h = NULL
    if not h:
        return general({params})
    out = new(Tensor)
    out._h = h
    out._view = input._view if viewed else input
    edge = input._node
    if modes:
        track(input, out)
        out._node = None
        if edge is not None and modes.get(get_ident(), DEFAULT).grad:
            out._node = link(Node, (edge,), {saves}, ())
        return out
    if edge is None:
        out._node = None
        return out
    out._node = node = new(Node)
    node.edges = (edge,)
    node.saved = {saves}
    node.versions = ()
    node.key = -count()
    node.extra = None
    return out
"""

SHAPE = "(unpack(x.shape, x.ndim),)"  # saves the input's shape, as a list
_ONE_OR_MANY = "sizes = {0}[0] if len({0}) == 1 and type({0}[0]) is not int else {0}"  # f(2, 3) and f((2, 3))


def viewing(call, node: type, *, params: str, arguments: str, saves: str = SHAPE):
    """Declares the decorated function, an operator's general path, as the view that the C function ``call`` makes.

    ``params`` are its parameters, the first one ``input``. A last one with a star takes integers, and one sequence of
    them alike: they are ``sizes`` in ``arguments``, the expressions that ``call`` gets. ``saves`` is what ``node``
    saves.
    """

    def declare(general):
        many = params.partition("*")[2]
        source = _SOURCE.format(params=params, prepare=_ONE_OR_MANY.format(many) if many else "pass",
                                arguments=arguments, saves=saves)
        namespace = {"call": call, "Node": node, "general": general, "Tensor": Tensor, "new": new, "count": count,
                     "modes": modes, "DEFAULT": DEFAULT, "get_ident": get_ident, "link": link, "track": track,
                     "refresh": refresh, "FLAG_VIEW": FLAG_VIEW, "NULL": ffi.NULL, "unpack": ffi.unpack}
        exec(code_of(source, f"<eager view {general.__name__}({params})>"), namespace)
        apply = namespace["apply"]
        apply.__name__ = apply.__qualname__ = general.__name__
        apply.__doc__ = general.__doc__
        apply.node = node
        return apply

    return declare
