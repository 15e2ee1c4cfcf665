"""The form of reductions: a name in kernels/scalar/reducers.h, and a derivative.

In formulas ``g`` is the gradient of the result ``out``. ``how`` and ``dims`` say which dimensions are reduced, as the C
side wants it (kernels/api/reduce.h).
"""

from __future__ import annotations

import inspect

from ...autograd.formulas import node_class
from ...autograd.views import outrun, refresh
from ...backends.cpu import error, lib
from ...tensor import gives_tensor
from .op import Op
from .templates import build, recording

_PARAMS = ("input", "how", "dims", "keepdim", "dtype")
_call = gives_tensor(lib.tt_reduce)
_CALLED = """
    try:
        out = call(code, input._h, {how})
        while out is None:
            refresh(input)
            out = call(code, input._h, {how})
            if out is None and not outrun(input):
                raise error(name)
    except Exception as exc:
        refuse(exc)
        raise
    edge = input._node
    if edge is None or Node is None:
        return out
"""
_KERNEL = f"""
def function(input, how, dims, keepdim, dtype):{_CALLED.format(how="how, dims, keepdim, dtype")}
    if dtype >= 0:
        return op_record(out, (input, how, dims, keepdim, dtype))
"""
_PUBLIC = f"""
def function(input, dim={{default}}, keepdim=False, *, {{dtype_}}out=None, axis=None, keepdims=False):
    if dim is not {{default}} or out is not None or axis is not None{{cast}}:
        try:
            return general(input, dim, keepdim, {{passed}}out=out, axis=axis, keepdims=keepdims)
        except Exception as exc:
            refuse(exc)
            raise
{_CALLED.format(how="0, 0, keepdim or keepdims, -1")}
    how = dims = 0
    dtype, keepdim = -1, keepdim or keepdims
"""


def reduction(name: str, formula=None, *, first_order=None, title: str | dict[str, str] | None = None):
    """Declares a reduction of ``input`` with parameters ``how, dims, keepdim, dtype`` (a code, or -1). Of several names
    in ``title``, the last is that of all dimensions reduced."""
    code = lib.tt_reduce_code(name.encode())
    if code < 0:
        raise LookupError(f"kernels/scalar/reducers.h has no reduction '{name}'")
    node = None
    if formula is not None:
        node = node_class(
            name, _PARAMS, {"input": formula}, {"input": first_order} if first_order else None, title=title
        )
    op = Op(name, "reduction", params=_PARAMS, node=node, diff=(0,))
    op.code = code
    return _build(op, _KERNEL, "reduction", node.choice if node else "Node")


def _build(op: Op, source: str, title: str, node: str = "Node", **things):
    """The function of a source that begins with the kernel's call."""
    saves, versions = op.node.saves if op.node else "()", "()"
    if op.node and op.node.tensors:
        saves, versions = f"(saved := {saves})", "versions_of(Node.tensors, saved)"
    source += recording(f"({', '.join(_PARAMS)})", "(edge,)", saves, versions, node)
    (fn,) = build(
        op,
        source,
        f"<eager {title}, saving {saves}>",
        ("function",),
        call=_call,
        code=op.code,
        refresh=refresh,
        outrun=outrun,
        error=error,
        **things,
    )
    return fn


def shortcut(kernel):
    """Declares the decorated function, the general path of a public reduction, as one that reduces all dimensions by
    ``kernel`` in its own frame where nothing else is asked: 0.1 us less of 1.1."""

    def declare(general):
        names = inspect.signature(general).parameters
        has_dtype = "dtype" in names
        source = _PUBLIC.format(
            default=repr(names["dim"].default),
            dtype_="dtype=None, " if has_dtype else "",
            cast=" or dtype is not None" if has_dtype else "",
            passed="dtype=dtype, " if has_dtype else "",
        )
        fn = _build(kernel.op, source, f"reduction {names['dim'].default}", general=general)
        fn.__doc__ = general.__doc__
        return fn

    return declare
