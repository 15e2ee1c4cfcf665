"""The forms in which operators are declared. One declaration gives a function, a method, the in-place variant, the
reflected operator, the ``out`` variant, and derivatives of every order.

    exp = unary("exp", lambda g, out: g * out)
    mul = binary("mul", lambda g, b: g * b, lambda g, a: g * a)

    @primitive(input=lambda g, input_shape, dim: ...)
    def name(input, dim): ...         # computes, without history

See node_class in autograd/node.py for what a formula may name.
"""

from __future__ import annotations

import functools
from _thread import get_ident

from ..autograd.modes import DEFAULT, current, modes
from ..autograd.node import alias, code_of, count, link, make_ports, need_extra, node_class, parameters, saved_versions
from ..autograd.views import FLAG_VIEW, MULTI_OUTPUT, check_inplace, rebase, refresh, track, writer_number, wrote
from ..backends.cpu import error, ffi, lib
from ..tensor import FUNCTIONS, Tensor, new, operator_above, wrap

_KINDS = {bool: 0, int: 1, float: 2}


def function(fn):
    """Publishes ``fn`` as ``tinytorch.<name>``."""
    FUNCTIONS[fn.__name__] = fn
    return fn


def method(fn):
    """Attaches ``fn`` to Tensor under its name."""
    setattr(Tensor, fn.__name__, fn)
    return fn


def both(fn):
    """A function and a method alike."""
    return method(function(fn))


def composite(fn):
    """Publishes ``fn``, made of other operators, as function (with ``out``), method and in-place method."""

    @functools.wraps(fn)
    def public(*args, out=None, **kwargs):
        return deliver(fn.__name__, fn(*args, **kwargs), out)

    def inplace(self, *args, **kwargs):
        # What is recorded saves the old values, which the write is about to replace.
        result = fn(self.clone() if requires(self, *args) else self, *args, **kwargs)
        if not castable(result, self):
            raise RuntimeError(f"{fn.__name__}_: result type {result.dtype.name} can't be cast to the desired "
                               f"output type "
                               f"{self.dtype.name}")
        return self.copy_(result)

    inplace.__name__ = inplace.__qualname__ = fn.__name__ + "_"
    inplace.__doc__ = f"In place: {fn.__doc__}"
    method(inplace)
    return both(public)


def castable(result: Tensor, out: Tensor) -> bool:
    """May ``out`` take what has the dtype of ``result``: is its category (bool, integer, floating) not lower?"""
    kinds = [2 if t._h.dtype >= 6 else int(t._h.dtype > 0) for t in (result, out)]
    return kinds[0] <= kinds[1]


def deliver(op: str, result: Tensor, out: Tensor | None, same_dtype: bool = False) -> Tensor:
    """The result of ``op``, put into ``out`` if there is one, which takes the result's shape."""
    if out is None:
        return result
    if (result._node is not None or out._node is not None) and not (modes and not current().grad):
        raise RuntimeError(f"{op}(): functions with out=... arguments don't support automatic differentiation, but one "
                           "of the arguments requires grad.")
    if same_dtype and out.dtype is not result.dtype:
        raise RuntimeError(f"{op}(): Expected out tensor to have dtype {result.dtype!r}, but got {out.dtype!r} instead")
    if not castable(result, out):
        raise RuntimeError(f"{op}: result type {result.dtype.name} can't be cast to the desired output type "
                           f"{out.dtype.name}")
    if out.shape != result.shape:
        out.resize_(result.shape)
    if lib.tt_copy(out._h, result._h) < 0 or lib.tt_bump(out._h, writer_number(op)) < 0:
        raise error(op)
    wrote(out)
    return out


def requires(*args) -> bool:
    """Will an operation on these arguments be recorded?"""
    if modes and not current().grad:
        return False
    for a in args:
        if isinstance(a, Tensor):
            refresh(a)
            if a._node is not None:
                return True
    return False


def scalar_kind(x) -> int:
    """0, 1 or 2 for a Python bool, integer or float (NumPy's scalars among them); TypeError for anything else."""
    kind = _KINDS.get(type(x))
    if kind is None:
        if isinstance(x, bool) or type(x).__name__ == "bool":
            kind = 0
        elif hasattr(x, "__len__"):  # arrays offer __index__ and __float__ too
            raise TypeError(type(x).__name__)
        elif hasattr(x, "__index__"):
            kind = 1
        elif hasattr(x, "__float__"):
            kind = 2
        else:
            raise TypeError(type(x).__name__)
    return kind


def number(x) -> Tensor:
    """A Python number as an operand: 0-d, and weak in promotion."""
    kind = scalar_kind(x)
    if kind == 1 and not -(1 << 63) <= int(x) < 1 << 63:
        raise RuntimeError(f"value cannot be converted to type int64_t without overflow: {x}")
    return wrap(lib.tt_scalar(kind, float(x) if kind == 2 else 0.0, 0 if kind == 2 else int(x)))


def broadcast_shape(op: str, handles: list) -> tuple:
    """The shape that operands broadcast to. RuntimeError when they do not."""
    shape = ffi.new("int64_t[16]")
    ndim = lib.tt_broadcast(len(handles), handles, shape)
    if ndim < 0:
        raise error(op)
    return tuple(shape[0:ndim])


def operand(x, op: str, name: str) -> Tensor:
    """An argument as a tensor whose history is up to date; TypeError naming operator and argument."""
    if isinstance(x, Tensor):
        refresh(x)
        return x
    try:
        return number(x)
    except TypeError:
        raise TypeError(f"{op}(): argument '{name}' must be Tensor or a number, not {type(x).__name__}") from None


# Elementwise operators.

# The history of a tensor overwritten by an operator that has no derivative.
Forgotten = node_class("overwrite", ("input",), {"input": lambda g: g.new_zeros(()).expand(g.shape)})


class Elementwise:
    """What is known of an elementwise operator; tests and later backends read it."""

    TABLE: dict[str, Elementwise] = {}

    def __init__(self, name, params, formulas, fast, title):
        self.name, self.params = name, params
        self.code = lib.tt_op_code(name.encode())
        if self.code < 0:
            raise LookupError(f"kernels/scalar/ops.h has no operator '{name}'")
        vjps = {p: f for p, f in zip(params, formulas) if f is not None}
        self.node = node_class(name, params, vjps, fast, title=title) if vjps else None
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
            (args[i].shape, args[i].dtype) if bits >> i & 1 and isinstance(args[i], Tensor) else None
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
            if any(t._h.dtype != out._h.dtype or t.shape != out.shape for t in tensors):
                self.adjust(node, args, 7)
            rebase(out, node)
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
    h = call(code, input._h)
    if not h:
        return info.slow((input,))
    out = new(Tensor)
    out._h = h
    out._node = None
    edge = input._node
    if edge is None or Node is None:
        return out
""" + _RECORD.format(args="(input,)", edges="(edge,)")

_BINARY = """
def apply(a, b):
    kind = type(b)
    if kind is Tensor:
        h = call(code, a._h, b._h)
        edge_b = b._node
    elif kind is float:
        h = call_scalar(code, a._h, 2, b, 0, 0)
        edge_b = None
    elif kind is int and -0x8000000000000000 <= b <= 0x7FFFFFFFFFFFFFFF:
        h = call_scalar(code, a._h, 1, 0.0, b, 0)
        edge_b = None
    elif isinstance(b, Tensor):
        h = call(code, a._h, b._h)
        edge_b = b._node
    elif is_number(b):
        return info.slow((a, b))
    else:
        return NotImplemented  # as an operator: the other type's turn; a method makes it an error
    if not h:
        return info.slow((a, b))
    out = new(Tensor)
    out._h = h
    out._node = None
    edge_a = a._node
    if (edge_a is None and edge_b is None) or Node is None:
        return out
""" + _RECORD.format(args="(a, b)", edges="(edge_a, edge_b)")

_REFLECTED = """
def apply(b, a):
    kind = type(a)
    if kind is float:
        h = call_scalar(code, b._h, 2, a, 0, 1)
    elif kind is int and -0x8000000000000000 <= a <= 0x7FFFFFFFFFFFFFFF:
        h = call_scalar(code, b._h, 1, 0.0, a, 1)
    elif is_number(a):
        return info.slow((a, b))
    else:
        return NotImplemented
    if not h:
        return info.slow((a, b))
    out = new(Tensor)
    out._h = h
    out._node = None
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
    apply = _named(_hot(_UNARY, info, call=lib.tt_unary), name, doc, info)

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


def binary(name: str, formula_a=None, formula_b=None, *, fast=None, title=None, doc: str, inplace: bool = True,
           dunder: str | None = None, kernel: str | None = None, attach: bool = True):
    """Declares an elementwise operator of two inputs, ``a`` and ``b`` in formulas. ``dunder="add"`` makes it Python's
    ``+`` with its reflected and in-place forms."""
    info = Elementwise(kernel or name, ("a", "b"), (formula_a, formula_b), fast, title)
    apply = _hot(_BINARY, info, call=lib.tt_binary, call_scalar=lib.tt_binary_scalar)

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
    """The binary ``kernel`` as a formula of parameters ``names``, for derivatives that nobody derives again: it does
    not look for history to record."""
    code, call = lib.tt_op_code(kernel.encode()), lib.tt_binary

    def apply(a, b):
        h = call(code, a._h, b._h) if isinstance(b, Tensor) else None
        if not h:
            return Elementwise.TABLE[kernel].slow((a, b))
        out = new(Tensor)
        out._h = h
        out._node = None
        return out

    apply.parameters = names
    return apply


def ternary(name: str, *formulas, params, title=None, doc: str):
    """Declares an elementwise operator of three inputs, named in formulas as in ``params``; attaches nothing."""
    info = Elementwise(name, params, formulas, None, title)

    def apply(*args, out=None):
        return info.slow(args) if out is None else info.into(out, args, name)

    return _named(apply, name, doc, info)


def attach_inplace(info: Elementwise, name: str, doc: str) -> None:
    """``Tensor.<name>_``."""

    def inplace(self, *others):
        if len(others) + 1 != len(info.params):
            raise TypeError(f"{name}_() takes {len(info.params) - 1} arguments, got {len(others)}")
        return info.into(self, (self, *others), name + "_")

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

    reflected = _hot(_REFLECTED, info, call_scalar=lib.tt_binary_scalar)

    def update(self, other):
        if not isinstance(other, Tensor) and not is_number(other):
            return NotImplemented
        return info.into(self, (self, other), f"{info.name}_")

    for prefix, fn in (("", apply), ("r", reflected)) + ((("i", update),) if inplace else ()):
        fn.__name__ = fn.__qualname__ = f"__{prefix}{dunder}__"
        setattr(Tensor, fn.__name__, fn)


def is_number(x) -> bool:
    """Is ``x`` a Python or NumPy number?"""
    try:
        scalar_kind(x)
    except TypeError:
        return False
    return True


# Operators with a forward function of their own.


def primitive(*, name: str | None = None, title: str | None = None, outputs: int = 1, view: bool = False,
              variadic: bool = False, fast: dict | None = None, **vjps):
    """Declares an operator whose forward is the decorated function: it computes a Tensor (or a tuple of them) without
    history from positional arguments; keyword arguments here are the formulas, by parameter.

    ``view``: the result shows elements of the first argument. ``variadic``: the first parameter is a sequence of
    tensors, and its formula gives as many gradients.
    """

    def declare(forward):
        op = name or forward.__name__.strip("_")
        params = parameters(forward)
        node_cls = node_class(op, params, vjps, fast, title=title, variadic=variadic) if vjps else None
        diff = tuple(params.index(p) for p in vjps)

        def call(*args):
            for a in args[0] if variadic else args:
                if isinstance(a, Tensor) and a._h.flags & FLAG_VIEW:
                    refresh(a)
            out = forward(*args)
            if view:
                many = type(out) is tuple
                for o in out if many else (out,):
                    track(args[0], o, MULTI_OUTPUT if many else 0)
            if node_cls is None:
                return out
            candidates = args[0] if variadic else [args[i] for i in diff]
            edges = tuple([a._node if isinstance(a, Tensor) else None for a in candidates])
            for e in edges:
                if e is not None:
                    break
            else:
                return out
            if modes and not current().grad:
                return out
            if type(out) is tuple:
                if any(o._h.dtype >= 6 for o in out):
                    saved = node_cls.save(edges, out, *args)
                    make_ports(link(node_cls, edges, saved, saved_versions(node_cls, saved)), out)
            elif out._h.dtype >= 6:
                saved = node_cls.save(edges, out, *args)
                out._node = link(node_cls, edges, saved, saved_versions(node_cls, saved) if node_cls.tensors else ())
            return out

        call.__name__ = call.__qualname__ = op
        call.__doc__ = forward.__doc__
        call.node = node_cls
        return call

    return declare


def ints(values) -> tuple[int, ...]:
    """``f(2, 3)`` and ``f((2, 3))`` alike: the arguments of a variadic shape as a tuple of Python integers."""
    if len(values) == 1 and isinstance(values[0], (tuple, list)):
        values = values[0]
    for v in values:
        if isinstance(v, str) or not hasattr(v, "__index__"):
            raise TypeError(f"{operator_above()}expected sizes as integers, got {type(v).__name__}")
    return tuple([int(v) for v in values])
