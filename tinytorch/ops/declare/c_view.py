"""The form of views that are one C call on a descriptor (kernels: views.c): a forward path as short as the elementwise
operators'. What that call does not do, it leaves, untouched, to the operator's general path, which finds out what is
unusual, or wrong."""

from __future__ import annotations

from ...autograd.node import link
from ...autograd.views import FLAG_VIEW, refresh, track
from ...tensor import gives_tensor
from .op import Op
from .templates import BLOCK, build

_SOURCE = """
def function({params}):
    try:
        x = input._h
        viewed = x.flags & FLAG_VIEW
        if viewed:
            refresh(input)
        {prepare}
        out = call(x, {arguments})
    except (AttributeError, OverflowError, TypeError, ValueError):
        out = None
    if out is None:
        try:
            return general({passed})
        except Exception as exc:
            refuse(exc)
            raise
    out._view = input._view if viewed else input
    edge = input._node
    if modes:
        track(input, out)
        if edge is not None and modes.get(get_ident(), DEFAULT).grad:
            out._node = link({node}, (edge,), {saves}, ())
        return out
    if edge is None:
        return out
"""

SHAPE = "(shape_of(input),)"  # saves the input's shape
# f(2, 3) and f((2, 3)); a list display with a star takes 40 ns, a tuple of one 10
_ONE_OR_MANY = "sizes = ({0}, *rest) if rest else ({0},) if type({0}) is int else {0}"


def c_view(call, kernel, *, params: str, arguments: str, saves: str = SHAPE, node: str = "Node"):
    """Declares the decorated function, an operator's general path, as the view that the C function ``call`` makes. Its
    Nodes are those of ``kernel``, the operator that the general path records.

    ``params`` are its parameters, the first one ``input``. ``size, *rest`` (whatever the name of the first) takes
    integers, and one sequence of them alike: they are ``sizes`` in ``arguments``, the expressions that ``call`` gets;
    ``of_sequence`` takes a sequence alone. ``saves`` is what a Node saves. ``node`` is their class:
    Note [Names] in autograd/formulas.py.
    """

    def declare(general):
        op = Op(general.__name__, "view", params=kernel.op.params, node=kernel.op.node, diff=(0,))
        names = [p.partition("=")[0] for p in params.split(", ")]
        apply = make(op, general, params, names)
        if "*rest" in names:  # as a function of tinytorch, which takes a sequence alone
            names.remove("*rest")
            apply.of_sequence = make(op, general, params.replace(", *rest", ""), names)
        return apply

    def make(op, general, params, names):
        passed, prepare = names, "pass"
        if "*rest" in names:
            at = names.index("*rest")
            passed = names[: at + 1] + [f"{n}={n}" for n in names[at + 1 :]]
            prepare = _ONE_OR_MANY.format(names[at - 1])
        elif "sizes" in arguments:
            passed = [names[0], f"tuple({names[1]})", *[f"{n}={n}" for n in names[2:]]]
            prepare = f"sizes = {names[1]}"
        source = _SOURCE.format(
            params=params, passed=", ".join(passed), prepare=prepare, arguments=arguments, saves=saves, node=node
        )
        source += BLOCK.format(edges="(edge,)", saves=saves, versions="()", node=node)
        (apply,) = build(
            op,
            source,
            f"<eager view {general.__name__}({params})>",
            ("function",),
            call=gives_tensor(call),
            general=general,
            link=link,
            track=track,
            refresh=refresh,
            FLAG_VIEW=FLAG_VIEW,
        )
        apply.__doc__ = general.__doc__
        return apply

    return declare
