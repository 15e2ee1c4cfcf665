"""Operators that write into a tensor: one declaration gives the form that writes into a copy, and the one in place."""

from __future__ import annotations

from ..autograd.modes import current, modes
from ..autograd.node import alias, count, link, node_class, parameters, saved_versions
from ..autograd.views import FLAG_VIEW, check_inplace, rebase, refresh, writer_number, wrote
from ..backends.cpu import lib
from ..tensor import Tensor, wrap


def updating(op: str, *, title: str | None = None, inplace: str | None = None, **vjps):
    """Declares an operator by the function that writes: ``write(h, writer, *args)`` puts the result into the
    descriptor ``h``, which holds the first argument's values, and checks all before it writes. ``args`` are the other
    arguments; the formulas are as for ``primitive``, the first parameter being ``input``.

    Gives the pair ``(functional, in_place)``. A formula may name ``input``: in place, a copy of it is kept then.
    """

    def declare(write):
        params = ("input", *parameters(write)[2:])
        cls = node_class(op, params, vjps, title=title)
        diff = tuple(params.index(p) for p in vjps)
        written = inplace or op + "_"
        writer = writer_number(written)
        keeps_input = any(name == "input" for _, name, _ in cls.tensors)

        def edges_of(args):
            """The Nodes of the differentiable arguments, or None when nothing is recorded."""
            for a in args:
                if isinstance(a, Tensor) and a._h.flags & FLAG_VIEW:
                    refresh(a)
            if modes and not current().grad:
                return None
            edges = tuple([args[i]._node if isinstance(args[i], Tensor) else None for i in diff])
            return edges if any(e is not None for e in edges) else None

        def functional(*args):
            edges = edges_of(args)
            out = wrap(lib.tt_clone(args[0]._h))
            write(out._h, -1, *args[1:])
            if edges is not None and out._h.dtype >= 6:
                saved = cls.save(edges, out, *args)
                out._node = link(cls, edges, saved, saved_versions(cls, saved))
            return out

        def in_place(self, *args):
            edges = edges_of((self, *args))
            check_inplace(self, written, edges is not None)
            if edges is None:
                write(self._h, writer, *args)
                wrote(self)
                return self
            kept = self
            if keeps_input:
                kept = wrap(lib.tt_clone(self._h))
                kept._node = self._node
            # A Node must not hold the very tensor whose history it becomes: that would be a cycle.
            others = tuple([alias(a, a._node) if a is self else a for a in args])
            values = dict(zip(params, (kept, *others)))
            key = -count()
            before = {p: v._h.storage.version for p, v in values.items() if isinstance(v, Tensor)}
            write(self._h, writer, *args)
            wrote(self)
            saved = cls.save(edges, self, kept, *others)
            versions = tuple([self._h.storage.version if name == "out" else before.get(name, 0)
                              for _, name, _ in cls.tensors])
            overwritten = any(name != "out" and isinstance(saved[p], Tensor)
                              and saved[p]._h.storage == self._h.storage for p, name, _ in cls.tensors)
            rebase(self, link(cls, edges, saved, versions, key if overwritten else None))
            return self

        for fn, name in ((functional, op), (in_place, written)):
            fn.__name__ = fn.__qualname__ = name
            fn.__doc__ = write.__doc__
            fn.node = cls
        return functional, in_place

    return declare
