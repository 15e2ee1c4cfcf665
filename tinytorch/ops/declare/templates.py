"""The source of hot paths. What every eager call runs is generated text, so that what an operator saves for backward
stands in it as an expression instead of behind a call.

Note [Recording]
``BLOCK`` is how every form ends: the Node of a plain call in the default grad mode is made in place, a statement a
field. All else (saved-tensor hooks, anomaly mode, operands that were broadcast or cast, inference tensors) goes through
``Op.record``.
"""

from __future__ import annotations

from _thread import get_ident

from ...autograd.formulas import generate
from ...autograd.modes import DEFAULT, modes
from ...autograd.node import alias, count, saved_versions
from ...backends.cpu import ffi
from ...tensor import Tensor, new

BLOCK = """
    out._node = node = new(Node)
    node.edges = edges = {edges}
    node.saved = {saves}
    node.versions = {versions}
    node.key = -count()
    node.extra = None
    return out
"""
_MODES = """
    if modes:
        mode = modes.get(get_ident(), DEFAULT)
        if mode is not DEFAULT:
            out._node = None
            return record(out, {args}{stamp}) if mode.grad else out
"""
_STAMP = """
    stamp = h.stamp
    if stamp & 15:
        out._node = None
        return record(out, {args}, stamp)
"""


def recording(args: str, edges: str, saves: str, versions: str = "()") -> str:
    """The end of a form's source: the recording block, and Op.record for all that is not plain. ``args``, ``edges`` and
    ``saves`` are expressions of the tuples of arguments, Nodes and saved values; with ``versions="stamp"`` the C call
    has stamped its result."""
    stamped = versions == "stamp"
    head = _MODES.format(args=args, stamp=", h.stamp" if stamped else "")
    if stamped:
        head += _STAMP.format(args=args)
    return head + BLOCK.format(edges=edges, saves=saves, versions=versions)


def build(op, source: str, filename: str, names: tuple[str, ...], **things) -> list:
    """The functions ``names`` of the source of an operator's hot path; ``things`` are further globals of it."""
    namespace = {"op": op, "name": op.name, "Node": op.node, "record": op.record, "Tensor": Tensor, "new": new,
                 "count": count, "modes": modes, "DEFAULT": DEFAULT, "get_ident": get_ident, "alias": alias,
                 "saved_versions": saved_versions, "NULL": ffi.NULL, "unpack": ffi.unpack, **things}
    generate(source, filename, namespace, op.name, *names)
    made = [namespace[n] for n in names]
    for fn in made:
        fn.op = op
    return made
