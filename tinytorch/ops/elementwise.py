"""The form in which elementwise operators are declared. One declaration gives a function, a method, the in-place
variant, the reflected operator, the ``out`` variant, and derivatives of every order.

    exp = unary("exp", lambda g, out: g * out)
    mul = binary("mul", lambda g, b: g * b, lambda g, a: g * a)

The name is that of a scalar function in kernels/scalar; see node_class in autograd/node.py for what a formula may name.
"""

from __future__ import annotations

from _thread import get_ident

from ..autograd.modes import DEFAULT, modes
from ..autograd.node import alias, code_of, count, last_write, link, need_extra, node_class, saved_versions
from ..autograd.views import check_inplace, rebase, writer_number, wrote
from ..backends.cpu import error, ffi, lib
from ..tensor import FUNCTIONS, Tensor, gives_tensor, new, wrap
from .declare import broadcast_shape, deliver, function, is_number, operand, requires

_NO_TENSOR = ffi.NULL
# The history of a tensor overwritten by an operator that has no derivative.
Forgotten = node_class("overwrite", ("input",), {"input": lambda g: g.new_zeros(()).expand(g.shape)})


class Elementwise:
    """What is known of an elementwise operator; tests and later backends read it."""

    TABLE: dict[str, Elementwise] = {}

    def __init__(self, name, params, formulas, fast, title, joint=None):
        self.name, self.params = name, params
        self.code = lib.tt_op_code(name.encode())
        if self.code < 0:
            raise LookupError(f"kernels/scalar/ops.h has no operator '{name}'")
        vjps = {p: f for p, f in zip(params, formulas) if f is not None}
        self.node = node_class(name, params, vjps, fast, title=title, joint=joint) if vjps else None
        self.diff = tuple(i for i, p in enumerate(params) if p in vjps)
        self.writer = writer_number(name + "_")
        self.TABLE[name] = self

    def record(self, out: Tensor, args: tuple, stamp: int) -> None:
        """Gives ``out`` its history. ``args`` are tensors and numbers."""
        if stamp & 8:
            raise RuntimeError(f"{self.name}: Inference tensors cannot be saved for backward. To work around you "
                               f"can make "
                               "a clone to get a normal tensor and use it in autograd.")
        edges = tuple(args[i]._node if isinstance(args[i], Tensor) else None for i in self.diff)
        saved = self.node.save(edges, out, *args)
        node = link(self.node, edges, saved, stamp if len(args) < 3 else saved_versions(self.node, saved))
        if stamp & 7:
            self.adjust(node, args, stamp)
        out._node = node

    def adjust(self, node, args, bits) -> None:
        """Notes the inputs whose gradients must be summed or cast back: those of the lowest bits of a stamp."""
        need_extra(node).adjust = tuple(
            (args[i].shape, args[i].dtype, args[i].device) if bits >> i & 1 and isinstance(args[i], Tensor) else None
            for i in self.diff)

    def slow(self, args: tuple):
        """The general path: numbers become tensors, views are refreshed, errors raised."""
        tensors = [operand(a, self.name, p) for a, p in zip(args, self.params)]
        handles = [t._h for t in tensors]
        h = (lib.tt_unary, lib.tt_binary, lib.tt_ternary)[len(handles) - 1](self.code, *handles)
        out = wrap(h) if h else None
        if out is None:
            raise error(self.name)
        if self.node is not None and out._h.dtype >= 6 and requires(*args):
            self.record(out, args, h.stamp)
        return out

    def into(self, out: Tensor, args: tuple, name: str):
        """Writes into ``out``; recorded when it is one of the arguments (in place). Returns it."""
        inplace = any(a is out for a in args)
        tensors = [operand(a, name, p) for a, p in zip(args, self.params)]
        recording = self.node is not None and requires(out, *args)
        check_inplace(out, name, recording)
        if recording:
            if not inplace:
                raise RuntimeError(f"{name}(): functions with out=... arguments don't support automatic "
                                   "differentiation, but one of the arguments requires grad.")
            edges = tuple(args[i]._node if isinstance(args[i], Tensor) else None for i in self.diff)
            saved, versions = self.before_writing(out, edges, args)
        elif not inplace and out.shape != broadcast_shape(self.name, [t._h for t in tensors]):
            return deliver(name, self.slow(args), out)
        handles = [t._h for t in tensors] + [ffi.NULL] * (3 - len(tensors))
        if lib.tt_elementwise_out(self.code, out._h, *handles, self.writer) < 0:
            raise error(name)
        wrote(out)
        if self.node is None and requires(out):
            rebase(out, link(Forgotten, (out._node,), (), ()))
        elif recording:
            now = out._h.storage.version
            node = link(self.node, edges, saved,
                        tuple(now if n == "out" else v for v, (_, n, _) in zip(versions, self.node.tensors)))
            if any(t._h.dtype != out._h.dtype or t.shape != out.shape or t.device is not out.device for t in tensors):
                self.adjust(node, args, 7)
            rebase(out, node)
        return out

    def update(self, out: Tensor, other, name: str):
        """``into(out, (out, other), name)``, quicker where neither has a history to look after."""
        mode = modes.get(get_ident(), DEFAULT) if modes else DEFAULT
        if mode.anomaly or (mode.grad and out._node is not None):
            return self.into(out, (out, other), name)
        if isinstance(other, Tensor):
            if mode.grad and other._node is not None:
                return self.into(out, (out, other), name)
            status = lib.tt_in_place(self.code, out._h, other._h, 0.0, self.writer)
        elif type(other) is float:
            status = lib.tt_in_place(self.code, out._h, _NO_TENSOR, other, self.writer)
        else:
            return self.into(out, (out, other), name)
        if status <= 0:
            if status < 0:
                raise error(name)
            return self.into(out, (out, other), name)
        last_write[0] = count()
        return out

    def before_writing(self, out: Tensor, edges: tuple, args: tuple) -> tuple[tuple, tuple]:
        """What backward of a write into ``out`` needs, with the versions: of ``out``'s old value, a copy."""
        old = alias(out)  # never ``out`` itself: a Node must not hold the tensor whose history it becomes
        saved = self.node.save(edges, out, *(old if a is out else a for a in args))
        if any(s is old for s in saved):
            copy = wrap(lib.tt_clone(old._h))
            saved = tuple(copy if s is old else s for s in saved)
        return saved, saved_versions(self.node, saved)


def _named(fn, name, doc, info):
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__, fn.info = doc, info
    return fn


# The hot path: what every eager elementwise call runs. It is text, so that what is saved for backward stands in it as
# an expression (SAVES) instead of behind a call; the rest is the same for every operator.

_RECORD = """
    h = out._h
    if modes:
        mode = modes.get(get_ident(), DEFAULT)
        if mode is not DEFAULT:
            if mode.grad and h.dtype >= 6:
                info.record(out, {args}, h.stamp)
            return out
    stamp = h.stamp
    if stamp & 15:
        if h.dtype >= 6:
            info.record(out, {args}, stamp)
        return out
    node = new(Node)
    node.edges = edges = {edges}
    node.saved = SAVES
    node.versions = stamp
    node.key = -count()
    node.extra = None
    out._node = node
    return out
"""

_UNARY = """
def apply(input):
    out = call(code, input._h)
    if out is None:
        return info.slow((input,))
    edge = input._node
    if edge is None or Node is None:
        return out
""" + _RECORD.format(args="(input,)", edges="(edge,)")

_BINARY = """
def apply(a, b):
    kind = type(b)
    if kind is Tensor:
        out = call(code, a._h, b._h)
        edge_b = b._node
    elif kind is float:
        out = call_scalar(code, a._h, 2, b, 0, 0)
        edge_b = None
    elif kind is int and -0x8000000000000000 <= b <= 0x7FFFFFFFFFFFFFFF:
        out = call_scalar(code, a._h, 1, 0.0, b, 0)
        edge_b = None
    elif isinstance(b, Tensor):
        out = call(code, a._h, b._h)
        edge_b = b._node
    elif is_number(b):
        return info.slow((a, b))
    else:
        return NotImplemented  # as an operator: the other type's turn; a method makes it an error
    if out is None:
        return info.slow((a, b))
    edge_a = a._node
    if (edge_a is None and edge_b is None) or Node is None:
        return out
""" + _RECORD.format(args="(a, b)", edges="(edge_a, edge_b)")

_REFLECTED = """
def apply(b, a):
    kind = type(a)
    if kind is float:
        out = call_scalar(code, b._h, 2, a, 0, 1)
    elif kind is int and -0x8000000000000000 <= a <= 0x7FFFFFFFFFFFFFFF:
        out = call_scalar(code, b._h, 1, 0.0, a, 1)
    elif is_number(a):
        return info.slow((a, b))
    else:
        return NotImplemented
    if out is None:
        return info.slow((a, b))
    edge = b._node
    if edge is None or Node is None:
        return out
""" + _RECORD.format(args="(a, b)", edges="(None, edge)")


def _hot(template: str, info: Elementwise, **names):
    """The hot path of one operator, made from its template."""
    source = template.replace("SAVES", info.node.saves if info.node else "()")
    namespace = {"info": info, "code": info.code, "Node": info.node, "Tensor": Tensor, "new": new, "count": count,
                 "modes": modes, "DEFAULT": DEFAULT, "get_ident": get_ident, "alias": alias, "is_number": is_number,
                 **names}
    exec(code_of(source, f"<eager, saving {info.node.saves if info.node else '()'}>"), namespace)
    return namespace["apply"]


def unary(name: str, formula=None, *, fast=None, title=None, doc: str, inplace: bool = True, kernel: str | None = None,
          attach: bool = True):
    """Declares an elementwise operator of one input. ``formula(g, ...)``: see node_class; parameter ``input``."""
    info = Elementwise(kernel or name, ("input",), (formula,), {"input": fast} if fast else None, title)
    apply = _named(_hot(_UNARY, info, call=gives_tensor(lib.tt_unary)), name, doc, info)

    def public(input, *, out=None):
        if out is not None:
            return info.into(out, (input,), name)
        return apply(input) if isinstance(input, Tensor) else info.slow((input,))

    if attach:
        function(_named(public, name, doc, info))
        setattr(Tensor, name, apply)
        if inplace:
            attach_inplace(info, name, doc)
    return public if attach else apply


def binary(name: str, formula_a=None, formula_b=None, *, fast=None, joint=None, title=None, doc: str,
           inplace: bool = True, dunder: str | None = None, kernel: str | None = None, attach: bool = True):
    """Declares an elementwise operator of two inputs, ``a`` and ``b`` in formulas. ``dunder="add"`` makes it Python's
    ``+`` with its reflected and in-place forms."""
    info = Elementwise(kernel or name, ("a", "b"), (formula_a, formula_b), fast, title, joint)
    apply = _hot(_BINARY, info, call=gives_tensor(lib.tt_binary), call_scalar=gives_tensor(lib.tt_binary_scalar))

    def public(input, other, *, out=None):
        if out is not None:
            return info.into(out, (input, other), name)
        return as_method(input, other) if isinstance(input, Tensor) else info.slow((input, other))

    def as_method(self, other):
        out = apply(self, other)
        return info.slow((self, other)) if out is NotImplemented else out

    _named(as_method, name, doc, info)
    if attach:
        function(_named(public, name, doc, info))
        setattr(Tensor, name, as_method)
        if inplace:
            attach_inplace(info, name, doc)
        if dunder:
            attach_operators(info, apply, dunder, inplace)
    return public if attach else as_method


def without_history(kernel: str, *names: str):
    """The binary ``kernel``, or a ternary one whose last operand is a number, as a formula of parameters ``names``, for
    derivatives that nobody derives again: it does not look for history to record."""
    code = lib.tt_op_code(kernel.encode())
    call, call_with_number = gives_tensor(lib.tt_binary), gives_tensor(lib.tt_ternary_number)

    def of_two(a, b):
        out = call(code, a._h, b._h) if isinstance(b, Tensor) else None
        return Elementwise.TABLE[kernel].slow((a, b)) if out is None else out

    def of_three(a, b, c):
        out = call_with_number(code, a._h, b._h, c)
        return Elementwise.TABLE[kernel].slow((a, b, c)) if out is None else out

    apply = of_two if len(names) == 2 else of_three
    apply.parameters = names
    return apply


_mul_backward, _second = gives_tensor(lib.tt_mul_backward), gives_tensor(lib.tt_second)


def both_products(g, a, b):
    """The gradients of ``a * b``, for derivatives that nobody derives again: ``g * b`` and ``g * a``."""
    of_a = _mul_backward(g._h, a._h, b._h)
    if of_a is None:
        mul = Elementwise.TABLE["mul"]
        return mul.slow((g, b)), mul.slow((g, a))
    return of_a, _second()


def ternary(name: str, *formulas, params, title=None, doc: str):
    """Declares an elementwise operator of three inputs, named in formulas as in ``params``; attaches nothing."""
    info = Elementwise(name, params, formulas, None, title)

    def apply(*args, out=None):
        return info.slow(args) if out is None else info.into(out, args, name)

    return _named(apply, name, doc, info)


def attach_inplace(info: Elementwise, name: str, doc: str) -> None:
    """``Tensor.<name>_``."""
    written = name + "_"

    def of_two(self, other):
        return info.update(self, other, written)

    def of_any(self, *others):
        if len(others) + 1 != len(info.params):
            raise TypeError(f"{name}_() takes {len(info.params) - 1} arguments, got {len(others)}")
        return info.into(self, (self, *others), written)

    inplace = of_two if len(info.params) == 2 else of_any
    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"In place: {doc}"
    setattr(Tensor, name + "_", inplace)
    FUNCTIONS[name + "_"] = inplace


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def attach_operators(info: Elementwise, apply, dunder: str, inplace: bool) -> None:
    """``a + b``, ``2 + b``, ``a += b``; NotImplemented for operands that are not ours to handle."""
    if dunder in _COMPARISONS:  # Python reflects these by itself
        setattr(Tensor, f"__{dunder}__", apply)
        return

    reflected = _hot(_REFLECTED, info, call_scalar=gives_tensor(lib.tt_binary_scalar))
    written = f"{info.name}_"

    def update(self, other):
        if not isinstance(other, (Tensor, float)) and not is_number(other):
            return NotImplemented
        return info.update(self, other, written)

    for prefix, fn in (("", apply), ("r", reflected)) + ((("i", update),) if inplace else ()):
        fn.__name__ = fn.__qualname__ = f"__{prefix}{dunder}__"
        setattr(Tensor, fn.__name__, fn)
