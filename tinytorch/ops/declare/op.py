"""The record of an operator. Every form of declaration makes one, and whoever asks what an operator is reads it: the
profiler, fused mode's listeners, error messages, the tests and the stubs.

Note [Operators]
``OPS`` holds the operators by qualified name: ``add``, ``linalg.svd``, ``nn.functional.gelu``. A *kernel* is declared
with a form (elementwise, reduction, primitive, view, update) and may have a Node class; a *public function* is
published under the kernel's name and completes its record, or has one of its own, of kind "composite". ``owner_of``
in autograd/formulas.py finds the operator that running code belongs to.
"""

from __future__ import annotations

import inspect
import sys

from ...autograd.formulas import operator_of
from ...autograd.modes import current, inference_used, modes
from ...autograd.node import link, make_ports, need_extra
from ...autograd.views import FLAG_INFERENCE, refuse_saved, writer_number
from ...backends.native import edges_of, new_node, versions_of
from ...dtypes import COMPLEX, DIFFERENTIABLE
from ...tensor import FUNCTIONS, Tensor

OPS: dict[str, Op] = {}
# Where the functions stand that compute without history, (mapping, key, operator): another may take their place for a
# while (utils/selective.py), so that an operator's result is recorded, but not computed.
COMPUTES: list[tuple[object, str, Op]] = []
NAMESPACES: dict[str, dict[str, object]] = {"": FUNCTIONS}  # the public functions of each namespace

UNBROADCAST = 7  # bits of a stamp: which operands were broadcast or cast


class Op:
    """One operator.

    ``name``        as published, without its namespace
    ``namespace``   "", "linalg", "nn.functional", ...; "internal": for other operators, though profilers show it
    ``kind``        its form: "elementwise", "reduction", "primitive", "view", "update" or "composite"; or "query",
                    which tells something about tensors, or "read", which gives their values to Python
    ``params``      the parameters of the kernel, which formulas name
    ``node``        the class of its Nodes; None without a derivative
    ``function``    the public function; None where there is only a method, or the kernel is internal
    ``method``      the method of Tensor, likewise
    ``aliases``     further public names, qualified
    ``pure``        does the result depend on the arguments alone, and nothing else change? Random numbers do not, nor
                    what looks beyond its argument's elements
    """

    __slots__ = (
        "name",
        "namespace",
        "kind",
        "params",
        "node",
        "diff",
        "function",
        "method",
        "aliases",
        "pure",
        "variadic",
        "packed",
        "writer",
        "__dict__",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        *,
        namespace: str = "",
        params: tuple[str, ...] = (),
        node: type | None = None,
        diff: tuple[int, ...] = (),
        variadic: bool = False,
        writes: str | None = None,
    ):
        self.name, self.namespace, self.kind, self.params = name, namespace, kind, params
        self.node, self.diff, self.variadic = node, diff, variadic
        self.function = self.method = None
        self.aliases: tuple[str, ...] = ()
        self.pure = True
        self.writer = writer_number(writes or name + "_")
        # Do the versions of what a Node saves fit into a stamp, which has those of the first two operands?
        self.packed = node is not None and all(
            e is not None and (e < 0 or diff[e] == e < 2) for _, _, e in node.tensors
        )
        OPS.setdefault(self.qualified, self)

    @property
    def qualified(self) -> str:
        """The name with its namespace: ``linalg.norm``."""
        return f"{self.namespace}.{self.name}" if self.namespace else self.name

    @property
    def parameters(self) -> inspect.Signature:
        """The signature of the public function, or of the method."""
        return inspect.signature(self.function or self.method)

    def __repr__(self):
        return f"<Op {self.qualified}: {self.kind}>"

    def edges(self, args: tuple) -> tuple | None:
        """The Nodes that the gradients of the arguments go to; None where there are none."""
        return edges_of(args[0]) if self.variadic else edges_of(args, self.diff)

    def record(self, out, args: tuple, stamp: int | None = None):
        """Gives the result ``out`` of ``args`` its history, where one is wanted, and returns it. Forms call it for
        whatever their own recording block leaves out: grad modes, several outputs, operands that were broadcast.
        ``stamp`` is the result's, where the C call made one."""
        if self.node is None or (modes and not current().grad):
            return out
        edges = edges_of(args[0]) if self.variadic else edges_of(args, self.diff)
        if edges is None:
            return out
        cls = self.node
        several = cls.num_outputs != 1
        result = out[0] if type(out) is tuple and not several else out
        if several:
            for result in out:
                if DIFFERENTIABLE[result._h.dtype]:
                    break
            else:
                return out
        elif not DIFFERENTIABLE[result._h.dtype]:
            return out
        if inference_used[0] and result._h.flags & FLAG_INFERENCE:  # made in the mode, or a view of what was
            return out
        saved = cls.save(edges, out, *args)
        if inference_used[0]:
            refuse_saved(self.name, saved)
        versions = stamp if self.packed and stamp is not None else versions_of(cls.tensors, saved)
        if cls.choose is not None:  # Note [Names] in autograd/formulas.py
            cls = cls.choose(*args)
        if COMPLEX[result._h.dtype]:
            cls = cls.of_complex()
        node = link(cls, edges, saved, versions) if modes else new_node(cls, edges, saved, versions)
        if stamp is not None and stamp & UNBROADCAST:
            self.note_unbroadcast(node, args, stamp)
        if several:
            make_ports(node, out[: cls.num_outputs or None])
        else:
            result._node = node
        return out

    def note_unbroadcast(self, node, args: tuple, bits: int) -> None:
        """Notes the operands whose gradients backward unbroadcasts or casts: those of the lowest bits of a stamp."""
        need_extra(node).unbroadcast_to = tuple(
            (args[i].shape, args[i].dtype, args[i].device) if bits >> i & 1 and isinstance(args[i], Tensor) else None
            for i in self.diff
        )


def names_of(namespace: str) -> dict[str, object]:
    """The public functions of a namespace, by name."""
    return NAMESPACES.setdefault(namespace, {})


def op_of(fn) -> Op | None:
    """The operator that a public function, a method or a kernel belongs to."""
    return getattr(fn, "op", None)


def operator_above() -> str:
    """``"sort: "`` when the operator sort has called this: for messages."""
    name = operator_of(sys._getframe(2))
    return f"{name}: " if name else ""
