"""The source of hot paths. What every eager call runs is generated text, so that what an operator saves for backward
stands in it as an expression instead of behind a call.

Note [Recording]
``BLOCK`` is how every form ends: a plain call in the default grad mode is recorded by one C call (node.c in
kernels/python). All else (saved-tensor hooks, anomaly mode, broadcast or cast operands, inference tensors) goes
through ``Op.record``.
"""

from __future__ import annotations

from _thread import get_ident

from ...autograd.formulas import generate
from ...autograd.modes import DEFAULT, modes
from ...autograd.node import new_alias
from ...backends.cpu import ffi
from ...backends.native import dtype_of, record, record_stamped, shape_of, versions_of
from ...tensor import Tensor
from .op import COMPUTES
from .refusals import refuse

_MODES = """
    if modes:
        mode = modes.get(get_ident(), DEFAULT)
        if mode is not DEFAULT:
            return op_record(out, {args}{stamp}) if mode.grad else out
"""
BLOCK = """
    edges = {edges}
    return record(out, {node}, edges, {saves}, {versions})
"""
_STAMPED = """
    edges = {edges}
    if record_stamped(out, {node}, edges, {saves}) is None:
        return op_record(out, {args}, out._h.stamp)
    return out
"""


_JUDGED = """
    try:{}
    except Exception as exc:
        refuse(exc)
        raise
"""


def recording(args: str, edges: str, saves: str, versions: str = "()", node: str = "Node") -> str:
    """The end of a form's source: the recording block, and Op.record for all that is not plain. ``args``, ``edges`` and
    ``saves`` are expressions of the tuples of arguments, Nodes and saved values; with ``versions="stamp"`` the C call
    has stamped its result. ``node``: that of the Node's class."""
    stamped = versions == "stamp"
    head = _MODES.format(args=args, stamp=", out._h.stamp" if stamped else "")
    return head + (_STAMPED if stamped else BLOCK).format(
        args=args, edges=edges, saves=saves, versions=versions, node=node
    )


def judged(body: str) -> str:
    """The ``body`` of a public function, from the end of its first line on; what goes wrong in it is judged
    (refusals.py)."""
    return _JUDGED.format(body.rstrip().replace("\n    ", "\n        "))


def build(op, source: str, filename: str, names: tuple[str, ...], **things) -> list:
    """The functions ``names`` of the source of an operator's hot path; ``things`` are further globals of it."""
    namespace = {
        "op": op,
        "name": op.name,
        "Node": op.node,
        **(op.node.variants if op.node else {}),
        "op_record": op.record,
        "record": record,
        "record_stamped": record_stamped,
        "shape_of": shape_of,
        "dtype_of": dtype_of,
        "Tensor": Tensor,
        "modes": modes,
        "DEFAULT": DEFAULT,
        "get_ident": get_ident,
        "alias": new_alias,
        "versions_of": versions_of,
        "NULL": ffi.NULL,
        "refuse": refuse,
        "unpack": ffi.unpack,
        **things,
    }
    generate(source, filename, namespace, op.name, *names)
    if op.kind != "view":
        COMPUTES.extend([(namespace, key, op) for key in ("call", "call_scalar") if key in things])
    made = [namespace[n] for n in names]
    for fn in made:
        fn.op = op
    return made
