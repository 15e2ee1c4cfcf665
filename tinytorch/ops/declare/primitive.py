"""The form of operators whose forward is a function of their own, with one output or several.

    @primitive(input=lambda g, input_shape, dims: ...)
    def name(input, dims): ...                       # computes, without history

    @primitive(outputs=("U", "S", "Vh"), inputs=("A",), vjp=lambda g_U, g_S, g_Vh, U, S, Vh: ...)
    def svd(A): ...                                  # gives a tuple

What formulas may name: Note [Formulas] in autograd/formulas.py. A formula that names outputs sees them with their
history when higher derivatives are asked.
"""

from __future__ import annotations

from ...autograd.formulas import claim, node_class, parameters
from ...autograd.views import MULTI_OUTPUT, outrun, refresh, track
from ...backends.native import edges_of, has_views
from ...tensor import Tensor
from .op import COMPUTES, Op


class _Contents:
    """A closure's variable, as a mapping of one key."""

    def __init__(self, cell):
        self.cell = cell

    def __getitem__(self, key):
        return self.cell.cell_contents

    def __setitem__(self, key, value):
        self.cell.cell_contents = value


def primitive(
    *,
    name: str | None = None,
    namespace: str = "",
    title: str | dict[str, str] | None = None,
    view: bool = False,
    variadic: bool = False,
    outputs: tuple[str, ...] = ("out",),
    extra: tuple[str, ...] = (),
    inputs: tuple[str, ...] = (),
    vjp=None,
    first_order=None,
    conjugates: bool = True,
    **vjps,
):
    """Declares an operator by its forward function, which computes a Tensor, or a tuple of them (the ``outputs``, then
    the ``extra`` results, which have no gradient), from positional arguments. The keyword arguments are the formulas,
    by parameter; where derivatives share work, ``vjp`` gives the gradients of all ``inputs`` at once.
    ``first_order``: the same for first derivatives only, without history.

    ``view``: the result shows elements of the first argument. ``variadic``: the first parameter is a sequence of
    tensors, and its formula gives as many gradients. ``conjugates``: are the formulas of complex results those of real
    numbers? If not, they have the conjugates themselves: Note [Complex gradients] in autograd/complex_nodes.py.
    """

    def declare(forward):
        called = name or forward.__name__.strip("_")
        params = parameters(forward)
        node = (
            node_class(
                called,
                params,
                vjp or vjps,
                first_order,
                title=title,
                variadic=variadic,
                outputs=outputs,
                extra=extra,
                inputs=inputs,
            )
            if vjp or vjps
            else None
        )
        if node is not None:
            node.conjugates = conjugates and not view  # which only moves numbers
        op = Op(
            called,
            "view" if view else "primitive",
            namespace=namespace,
            params=params,
            node=node,
            diff=tuple(params.index(p) for p in inputs or vjps),
            variadic=variadic,
        )
        record, diff = op.record, op.diff

        def call(*args):
            given = args[0] if variadic else args
            if has_views(given):
                refresh(*[a for a in given if isinstance(a, Tensor)])
            try:
                out = forward(*args)
            except NotImplementedError:
                if outrun(*given):
                    return call(*args)
                raise
            if view:
                many = type(out) is tuple
                for o in out if many else (out,):
                    track(args[0], o, MULTI_OUTPUT if many else 0)
            if node is None or (not variadic and edges_of(args, diff) is None):
                return out
            return record(out, args)

        call.__code__ = call.__code__.replace(co_name=called)
        claim(call, called)
        call.__name__ = call.__qualname__ = called
        call.__doc__ = forward.__doc__
        call.op = op
        if not view:
            cell = call.__closure__[call.__code__.co_freevars.index("forward")]
            COMPUTES.append((_Contents(cell), "forward", op))
        return call

    return declare
