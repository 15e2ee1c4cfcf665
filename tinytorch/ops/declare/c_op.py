"""The form of operators that are one C call on descriptors, with a forward path as short as the elementwise operators':
what every training step runs, such as products of matrices and softmax."""

from __future__ import annotations

from ...autograd.formulas import node_class
from ...autograd.views import outrun, refresh
from ...backends.cpu import error
from ...tensor import Tensor, gives_tensor
from .op import Op
from .templates import build, recording

_SOURCE = """
def function({params}):
    out = call({arguments})
    {edge_names} = {edges}
    while out is None:
        refresh({tensors})
        out = call({arguments})
        if out is None and not outrun({tensors}):
            raise error(name)
        {edge_names} = {edges}
    if {no_edge}:
        return out
"""


def c_op(
    name: str,
    call,
    *,
    params: tuple[str, ...],
    doc: str,
    optional: tuple[str, ...] = (),
    counted: tuple[str, ...] = (),
    constants: str = "",
    title: str | dict[str, str] | None = None,
    first_order: dict | None = None,
    **vjps,
):
    """Declares an operator computed by the C function ``call`` from the descriptors of the differentiable parameters
    (the names of ``vjps``, among them the ``optional`` ones that may be None) and the other ``params`` as they are,
    those that are ``counted`` after their lengths, with ``constants`` after them. The first two tensors may be saved:
    their versions come in the result's stamp."""
    node = node_class(name, params, vjps, first_order, title=title)
    op = Op(name, "primitive", params=params, node=node, diff=tuple(params.index(p) for p in vjps))
    arguments = [
        (f"NULL if {p} is None else {p}._h" if p in optional else f"{p}._h")
        if p in vjps
        else (f"len({p}), {p}" if p in counted else p)
        for p in params
    ]
    edges = [f"None if {p} is None else {p}._node" if p in optional else f"{p}._node" for p in vjps]
    names = [f"edge_{p}" for p in vjps]
    source = _SOURCE.format(
        params=", ".join(params),
        arguments=", ".join(arguments) + constants,
        tensors=", ".join(vjps),
        edges=", ".join(edges),
        edge_names=", ".join(names),
        no_edge=" and ".join(f"{e} is None" for e in names),
    )
    source += recording(f"({', '.join(params)},)", f"({', '.join(names)},)", node.saves, "stamp")
    (apply,) = build(
        op,
        source,
        f"<eager {title or name}>",
        ("function",),
        call=gives_tensor(call),
        error=error,
        refresh=refresh,
        outrun=outrun,
    )
    apply.__doc__ = doc
    return apply


def computed(result: Tensor | None, fallback, *args) -> Tensor:
    """What a derivative's own kernel has given; where it declined, the formula computes."""
    return fallback(*args) if result is None else result
