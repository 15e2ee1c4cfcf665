"""The forms of operators that write into a tensor."""

from __future__ import annotations

from ...autograd.formulas import node_class, parameters
from ...autograd.views import refresh
from ...backends.native import count, has_views, is_quiet, last_write
from ...tensor import Tensor, owned
from .inplace import in_place
from .op import Op


def update(
    name: str, *, title: str | dict[str, str] | None = None, inplace: str | None = None, first_order=None, **vjps
):
    """Declares an operator by the function that writes: ``write(h, writer, *args)`` puts the result into the
    descriptor ``h``, which holds the first argument's values, checks all before it writes, and gives the C call's
    status. ``args`` are the other arguments; the formulas are as for ``primitive``; the first parameter is ``input``.

    Gives the pair ``(functional, in_place)``. A formula may name ``input``: in place, a copy of it is kept then.
    """

    def declare(write):
        params = ("input", *parameters(write)[2:])
        node = node_class(name, params, vjps, first_order, title=title)
        written = inplace or name + "_"
        op = Op(name, "update", params=params, node=node, diff=tuple(params.index(p) for p in vjps), writes=written)

        def functional(*args):
            if has_views(args):
                refresh(*[a for a in args if isinstance(a, Tensor)])
            out = owned.tt_clone(args[0]._h)
            write(out._h, -1, *args[1:])
            return op.record(out, args)

        def in_place_(self, *args):
            h, everything = self._h, (self, *args)
            if is_quiet(everything) and write(h, op.writer, *args) >= 0:
                last_write[0] = count()
                return self
            return in_place(op, self, everything, written, False, write, h, op.writer, *args)

        for fn, called in ((functional, name), (in_place_, written)):
            fn.__name__ = fn.__qualname__ = called
            fn.__doc__, fn.op = write.__doc__, op
        return functional, in_place_

    return declare


def overwrite(name: str, title: str | dict[str, str] | None = None, source=None):
    """Declares an in-place operator after which nothing is left of the old values: their gradient is zero.
    ``source(g, ...)``: the gradient of the tensor that is written into it, if there is one.

    Gives ``fn(out, write, *values, source=None)``, which runs ``write(out._h, *values, writer)``, a C
    function."""
    vjps = {"input": _zero, **({"source": source} if source else {})}
    node = node_class(name, tuple(vjps), vjps, title=title)
    op = Op(name, "update", params=tuple(vjps), node=node, diff=tuple(range(len(vjps))), writes=name)

    def run(out: Tensor, write, *values, source: Tensor | None = None) -> Tensor:
        args = (out,) if source is None else (out, source)
        try:
            h = out._h
        except AttributeError:
            raise TypeError(f"{name}(): argument 'input' must be Tensor, not {type(out).__name__}") from None
        if is_quiet(args) and write(h, *values, op.writer) >= 0:
            last_write[0] = count()
            return out
        return in_place(op, out, args, name, source is not None, write, h, *values, op.writer)

    run.op = op
    return run


def _zero(g):
    return g.new_zeros(()).expand(g.shape)
