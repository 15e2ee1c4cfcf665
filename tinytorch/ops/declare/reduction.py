"""The form of reductions: a name in kernels/scalar/reducers.h, and a derivative.

In formulas ``g`` is the gradient of the result ``out``. ``how`` and ``dims`` say which dimensions are reduced, as the C
side wants it (kernels/api/reduce.h).
"""

from __future__ import annotations

from ...autograd.formulas import node_class
from ...autograd.views import refresh
from ...backends.cpu import error, lib
from ...dtypes import ALL
from .op import Op
from .templates import build, recording

_PARAMS = ("input", "how", "dims", "keepdim", "dtype")
_SOURCE = """
def function(input, how, dims, keepdim, dtype):
    x = input._h
    h = call(code, x, how, dims, keepdim, dtype)
    if not h:
        refresh(input)
        h = call(code, x, how, dims, keepdim, dtype)
        if not h:
            raise error(name)
    out = new(Tensor)
    out._h = h
    edge = input._node
    if edge is None or Node is None:
        out._node = None
        return out
    if dtype >= 0:
        out._node = None
        return record(out, (input, how, dims, keepdim, dtype))
"""


def reduction(name: str, formula=None, *, fast=None, title: str | None = None):
    """Declares a reduction of ``input`` with parameters ``how, dims, keepdim, dtype`` (a code, or -1)."""
    code = lib.tt_reduce_code(name.encode())
    if code < 0:
        raise LookupError(f"kernels/scalar/reducers.h has no reduction '{name}'")
    node = None
    if formula is not None:
        node = node_class(name, _PARAMS, {"input": formula}, {"input": fast} if fast else None, title=title)
    op = Op(name, "reduction", params=_PARAMS, node=node, diff=(0,))
    saves, versions = node.saves if node else "()", "()"
    if node and node.tensors:
        versions = "saved_versions(Node, node.saved)"
    saves = saves.replace("input.shape", "unpack(x.shape, x.ndim)").replace("input.dtype", "ALL[x.dtype]")
    source = _SOURCE + recording(f"({', '.join(_PARAMS)})", "(edge,)", saves, versions)
    apply, = build(op, source, f"<eager reduction, saving {saves}>", ("function",), call=lib.tt_reduce, code=code,
                   refresh=refresh, error=error, ALL=ALL)
    return apply
