"""The form of elementwise operators. One declaration gives a function, a method, the in-place variant, the reflected
operator, the ``out`` variant, and derivatives of every order.

    exp = unary("exp", lambda g, out: g * out)
    mul = binary("mul", lambda g, b: g * b, lambda g, a: g * a)

The name is that of a scalar function in kernels/scalar. What formulas may name: Note [Formulas] in
autograd/formulas.py. The inputs are ``input``, or ``a`` and ``b``.
"""

from __future__ import annotations

import functools
import re

from ...autograd.formulas import node_class, parameters
from ...autograd.node import link
from ...autograd.views import check_inplace, outrun, rebase, wrote
from ...backends.cpu import error, ffi, lib
from ...backends.native import elementwise_into, elementwise_of
from ...dtypes import ALL
from ...tensor import Tensor, attempted, gives_tensor, gives_two
from .arguments import broadcast_shape, is_number, operand, requires, write_out
from .inplace import in_place
from .kinds import only_tensors
from .op import Op
from .publish import attach, publish, record_of
from .templates import build, judged, recording

_CALLS = (attempted.tt_unary, attempted.tt_binary, attempted.tt_ternary)


class Elementwise(Op):
    """An elementwise operator: ``code`` is the number of its scalar function in kernels/scalar/ops.h."""

    __slots__ = ("code",)
    TABLE: dict[str, Elementwise] = {}  # by the name of the scalar function
    exact_out = False  # must ``out`` have the result's dtype? Otherwise the result is cast
    # The inputs that must be tensors, by name, None for one that may be a number; an operator that has this needs one
    # tensor at least.
    tensors: tuple[str | None, ...] = ()
    # When do formulas do with the result in the place of the first input, as a function of the arguments; and the
    # record with the Node that does: written in place, no copy of the input is kept.
    told: tuple = ()

    def __init__(
        self,
        name,
        params,
        formulas,
        first_order=None,
        title=None,
        joint=None,
        kernel=None,
        holomorphic=True,
        told_when=None,
    ):
        vjps = {p: f for p, f in zip(params, formulas) if f is not None}
        node = node_class(name, params, vjps, first_order, title=title, joint=joint) if vjps else None
        if not holomorphic:
            node.conjugates = False
        super().__init__(
            name, "elementwise", params=params, node=node, diff=tuple(i for i, p in enumerate(params) if p in vjps)
        )
        kernel = kernel or name
        self.code = lib.tt_op_code(kernel.encode())
        if self.code < 0:
            raise LookupError(f"kernels/scalar/ops.h has no operator '{kernel}'")
        self.TABLE.setdefault(kernel, self)
        if told_when:
            given = [{p: _of_result(f, params[0]) for p, f in group.items()} for group in (vjps, first_order)]
            node = node_class(name, params, *given, title=title)
            self.told = told_when, Op(name, "update", params=params, node=node, diff=self.diff)

    def slow(self, args: tuple):
        """The general path: numbers become tensors, views are refreshed, errors raised."""
        self.judge(args, self.name)
        tensors = [operand(a, self.name, p) for a, p in zip(args, self.params)]  # alive until the call is over
        handles = [t._h for t in tensors]
        out = self.compute(*handles)
        if out is None:
            if outrun(*tensors):
                return self.slow(args)
            raise error(self.name)
        return self.record(out, args, out._h.stamp)

    def judge(self, args: tuple, name: str) -> None:
        """TypeError where a number stands for a tensor: ``tensors``."""
        for a, p in zip(args, self.tensors):
            if p is not None and not isinstance(a, Tensor):
                raise TypeError(f"{name}(): argument '{p}' must be Tensor, not {type(a).__name__}")
        if self.tensors and not any(isinstance(a, Tensor) for a in args):
            raise TypeError(f"{name}(): one of the arguments must be Tensor")

    def compute(self, *handles):
        """The result; None where C refuses."""
        return _CALLS[len(handles) - 1](self.code, *handles)

    def into(self, out: Tensor, args: tuple, name: str):
        """Writes into ``out``; recorded when it is one of the arguments (in place). Returns it."""
        if not isinstance(out, Tensor):
            which = "input" if args and args[0] is out else "out"
            raise TypeError(f"{name}(): argument '{which}' must be Tensor, not {type(out).__name__}")
        self.judge(args, name)
        tensors = [operand(a, name, p) for a, p in zip(args, self.params)]
        handles = [t._h for t in tensors]
        everything = (self.code, out._h, *handles, *[ffi.NULL] * (3 - len(handles)), self.writer)
        if any(a is out for a in args):
            if self.node is None and requires(out):
                return in_place(_forgotten, out, (out,), name, False, lib.tt_elementwise_out, *everything)
            op = self.told[1] if self.told and args[0] is out and self.told[0](*args) else self
            return in_place(op, out, args, name, True, lib.tt_elementwise_out, *everything)
        if self.node is not None and requires(out, *args):
            raise RuntimeError(
                f"{name}(): functions with out=... arguments don't support automatic differentiation, "
                "but one of the arguments requires grad."
            )
        if self.exact_out:
            wanted = lib.tt_op_result_type(self.code, *handles, *[ffi.NULL] * (3 - len(handles)))
            if wanted >= 0 and wanted != out._h.dtype:
                raise RuntimeError(f"{name}(): Expected out tensor of dtype {ALL[wanted]!r}, but got {out.dtype!r}")
        if out.shape != broadcast_shape(self.name, handles):
            return write_out(name, self.slow(args), out)
        check_inplace(out, name)
        if lib.tt_elementwise_out(*everything) < 0:
            if outrun(out, *tensors):
                return self.into(out, args, name)
            raise error(name)
        wrote(out)
        if self.node is None and requires(out):
            rebase(out, link(_forgotten.node, (out._node,), (), ()))
        return out

    @functools.cached_property
    def quick(self):
        """``quick(out, *args)`` is ``into`` where nobody has a history, and None where that is called for. A tenth of
        its time: one call of C, with none of Python's tuples and frames."""
        return elementwise_into(Tensor, self.code, self.writer, not any(self.tensors[1:]))

    def write(self, out: Tensor, args: tuple, name: str):
        """Writes into ``out``, which it returns: ``into``, quicker where that is possible."""
        written = self.quick(out, *args)
        return self.into(out, args, name) if written is None else written


def _of_result(formula, name: str):
    """The formula, given the result for its parameter ``name``."""

    def given_result(*args):
        return formula(*args)

    given_result.parameters = tuple("out" if p == name else p for p in parameters(formula))
    return given_result


# The history of a tensor overwritten by an operator that has no derivative.
_forgotten = Op(
    "overwrite",
    "update",
    params=("input",),
    diff=(0,),
    writes="overwrite",
    node=node_class("overwrite", ("input",), {"input": lambda g: g.new_zeros(()).expand(g.shape)}),
)

_UNARY = """
    try:
        out = call(code, input._h)
    except AttributeError:
        return op.slow((input,))
    if out is None:
        return op.slow((input,))
    edge = input._node
    if edge is None or Node is None:
        return out
"""
_TENSORS = """
    try:
        out = call(code, input._h, other._h)
        edge_a, edge_b = input._node, other._node
    except AttributeError:
        return op.slow((input, other))
    if out is None:
        return op.slow((input, other))
    if (edge_a is None and edge_b is None) or Node is None:
        return out
"""
_BINARY = f"""
    kind = type(other)
    try:
        if kind is Tensor:
            out = call(code, input._h, other._h)
            edge_b = other._node
        elif kind is float:
            out = call_scalar(code, input._h, {lib.TT_KIND_FLOAT}, other, 0, 0)
            edge_b = None
        elif kind is int and -0x8000000000000000 <= other <= 0x7FFFFFFFFFFFFFFF:
            out = call_scalar(code, input._h, {lib.TT_KIND_INT}, 0.0, other, 0)
            edge_b = None
        elif isinstance(other, Tensor):
            out = call(code, input._h, other._h)
            edge_b = other._node
        elif is_number(other):
            return op.slow((input, other))
        else:
            {{wrong}}
        edge_a = input._node
    except AttributeError:
        return op.slow((input, other))
    if out is None:
        return op.slow((input, other))
    if (edge_a is None and edge_b is None) or Node is None:
        return out
"""
_REFLECTED = f"""
    kind = type(other)
    if kind is float:
        out = call_scalar(code, input._h, {lib.TT_KIND_FLOAT}, other, 0, 1)
    elif kind is int and -0x8000000000000000 <= other <= 0x7FFFFFFFFFFFFFFF:
        out = call_scalar(code, input._h, {lib.TT_KIND_INT}, 0.0, other, 1)
    elif isinstance(other, Tensor) or is_number(other):
        input._h  # AttributeError of what is no tensor
        return op.slow((other, input))
    else:
        return NotImplemented
    if out is None:
        return op.slow((other, input))
    edge = input._node
    if edge is None or Node is None:
        return out
"""
_TERNARY = """
    result = call({args})
    if result is None:
        return op.slow(({args}))
    return op_record(result, ({args}), result._h.stamp)
"""
_OUT = """
    if out is not None:
        written = quick(out, {args})
        return op.into(out, ({args},), name) if written is None else written
"""
_SLOW = "return op.slow((input, other))"
_NOT_OURS = "return NotImplemented"  # as an operator: the other type's turn


def _saves(op: Elementwise, a: str, b: str) -> str:
    """What the operator saves, as an expression of the public functions' parameters."""
    return _called(op, op.node.saves if op.node else "()", a, b)


def _class(op: Elementwise, a: str, b: str) -> str:
    """The class of its Nodes, likewise; whether ``a`` is a tensor is known."""
    choice = op.node.choice if op.node else "Node"
    return _called(op, choice.replace("isinstance(a, Tensor)", str(a == "input")), a, b)


def _called(op: Elementwise, expression: str, a: str, b: str) -> str:
    return re.sub(r"\b[ab]\b", lambda m: a if m[0] == "a" else b, expression) if len(op.params) == 2 else expression


def _sources_of_unary(op: Elementwise) -> str:
    body = _UNARY + recording("(input,)", "(edge,)", _saves(op, "", ""), "stamp")
    source = f"def function(input, *, out=None):{judged(_OUT.format(args='input') + body)}"
    return f"{source}\ndef method(input):{judged(body)}"


def _sources_of_binary(op: Elementwise, dunder: bool) -> str:
    plain = recording(
        "(input, other)", "(edge_a, edge_b)", _saves(op, "input", "other"), "stamp", _class(op, "input", "other")
    )
    body = (_TENSORS if op.tensors and op.tensors[1] else _BINARY.format(wrong=_SLOW)) + plain
    source = f"def function(input, other, *, out=None):{judged(_OUT.format(args='input, other') + body)}"
    source += f"\ndef method(input, other):{judged(body)}"
    if dunder:
        reflected = recording(
            "(other, input)", "(None, edge)", _saves(op, "other", "input"), "stamp", _class(op, "other", "input")
        )
        source += f"\ndef operator(input, other):{_BINARY.format(wrong=_NOT_OURS)}{plain}"
        source += f"\ndef reflected(input, other):{judged(_REFLECTED + reflected)}"
    return source


def unary(
    name: str,
    formula=None,
    *,
    first_order=None,
    title=None,
    holomorphic=True,
    doc: str,
    inplace: bool = True,
    public: bool = True,
    namespace: str = "",
    first: str = "input",
    kernel: str | None = None,
):
    """Declares an elementwise operator of one input, which formulas call ``input``. Unless ``public``, the function is
    for other operators to call. ``holomorphic``: Note [Complex gradients] in autograd/complex_nodes.py. In a
    ``namespace`` it is a function alone. ``first``: the input's name as an argument. ``kernel``: the name of its scalar
    function, where that is another."""
    first_order = {"input": first_order} if first_order else None
    op = Elementwise(name, ("input",), (formula,), first_order, title, kernel=kernel, holomorphic=holomorphic)
    op.tensors = (first,)
    function, method = build(
        op,
        _sources_of_unary(op).replace("input", first),
        f"<eager, saving {_saves(op, '', '')}>",
        ("function", "method"),
        code=op.code,
        call=gives_tensor(lib.tt_unary),
        quick=op.quick,
    )
    function.__doc__ = method.__doc__ = doc
    if namespace:
        publish(function, namespace=namespace)
    elif public:
        publish(function, method=method)
        if inplace:
            attach_inplace(op, name, doc)
    return function


def binary(
    name: str,
    formula_a=None,
    formula_b=None,
    *,
    first_order=None,
    joint=None,
    title=None,
    doc: str,
    second: str = "other",
    inplace: bool = True,
    dunder: str | None = None,
    public: bool = True,
    namespace: str = "",
    first: str = "input",
    kernel: str | None = None,
    tensors: tuple[str | None, ...] = (),
    told_when=None,
):
    """Declares an elementwise operator of two inputs, ``a`` and ``b`` in formulas. ``first`` and ``second`` are their
    names as arguments. ``dunder="add"`` makes it Python's ``+`` with its reflected and in-place forms. In a
    ``namespace`` it is a function alone. ``kernel``: the name of its scalar function, where that is another.
    ``tensors``: the arguments that must be tensors; unless given, for a public operator what kinds.py says.
    ``told_when(a, b)``: do formulas do with the result in the place of ``a``? In place no copy of it is kept then."""
    op = Elementwise(name, ("a", "b"), (formula_a, formula_b), first_order, title, joint, kernel, told_when=told_when)
    op.tensors = only_tensors(name, first, second) if public else tensors
    names = ("function", "method", "operator", "reflected")[: 4 if dunder else 2]
    made = build(
        op,
        _sources_of_binary(op, dunder is not None).replace("input", first).replace("other", second),
        f"<eager, saving {_saves(op, first, second)}>",
        names,
        code=op.code,
        call=gives_tensor(lib.tt_binary),
        quick=op.quick,
        call_scalar=gives_tensor(lib.tt_binary_scalar),
        is_number=is_number,
    )
    for fn in made:
        fn.__doc__ = doc
    if namespace:
        publish(made[0], namespace=namespace)
    elif public:
        publish(made[0], method=made[1])
        if inplace:
            attach_inplace(op, name, doc, second)
        if dunder:
            attach_operators(op, *made[2:], dunder, inplace)
    return made[0]


def without_history(kernel: str, *names: str):
    """The binary or ternary ``kernel`` as a formula of parameters ``names``, for derivatives that nobody derives again:
    it does not look for history to record. The last of three operands may be a number."""
    code = lib.tt_op_code(kernel.encode())
    call, call_with_number = gives_tensor(lib.tt_binary), gives_tensor(lib.tt_ternary_number)
    call_with_three = gives_tensor(lib.tt_ternary)

    def of_two(a, b):
        out = call(code, a._h, b._h) if isinstance(b, Tensor) else None
        return Elementwise.TABLE[kernel].slow((a, b)) if out is None else out

    def of_three(a, b, c):
        three = isinstance(c, Tensor)
        out = call_with_three(code, a._h, b._h, c._h) if three else call_with_number(code, a._h, b._h, c)
        return Elementwise.TABLE[kernel].slow((a, b, c)) if out is None else out

    apply = of_two if len(names) == 2 else of_three
    apply.parameters = names
    return apply


_mul_backward = gives_two(lib.tt_mul_backward)


def mul_vjp(g, a, b):
    """The gradients of ``a * b``, for derivatives that nobody derives again: ``g * b`` and ``g * a``."""
    both = _mul_backward(g._h, a._h, b._h)
    if both is None:
        mul = Elementwise.TABLE["mul"]
        return mul.slow((g, b)), mul.slow((g, a))
    return both


def ternary(
    name: str,
    *formulas,
    params,
    first_order=None,
    title=None,
    doc: str,
    kernel: str | None = None,
    tensors: tuple[str | None, ...] = (),
    told_when=None,
):
    """Declares an elementwise operator of three inputs, named in formulas as in ``params``; publishes nothing.
    ``kernel``: the name of its scalar function, where that is another. ``tensors``: the arguments that must be
    tensors. ``told_when`` as for ``binary``, of all three."""
    op = Elementwise(name, params, formulas, first_order, title, kernel=kernel, told_when=told_when)
    op.tensors = tensors
    call = elementwise_of(Tensor, op.code, op.writer, not any(tensors[1:]))
    args = ", ".join(params)
    source = f"def function({args}, *, out=None):" + (_OUT + _TERNARY).format(args=args)
    (function,) = build(op, source, f"<eager, of {args}>", ("function",), code=op.code, call=call, quick=op.quick)
    function.__doc__ = doc
    return function


def attach_inplace(op: Elementwise, name: str, doc: str, second: str = "other") -> None:
    """``Tensor.<name>_``, and the function of that name."""
    written = name + "_"
    args = "input" if len(op.params) == 1 else f"input, {second}"
    body = f"""
    result = quick(input, {args})
    return op.into(input, ({args},), written) if result is None else result"""
    source = f"def inplace({args}):{judged(body)}"
    (inplace,) = build(op, source, f"<in place, of {args}>", ("inplace",), written=written, quick=op.quick)
    inplace.__name__, inplace.op = written, record_of(written, kind="update")  # which sees to its arguments itself
    inplace.__doc__ = f"In place: {doc}"
    publish(inplace, method=inplace, kind="update")


_COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")


def attach_operators(op: Elementwise, operator, reflected, dunder: str, inplace: bool) -> None:
    """``a + b``, ``2 + b``, ``a += b``; NotImplemented for operands that are not ours to handle."""
    if dunder in _COMPARISONS:  # Python reflects these by itself
        attach(operator, f"__{dunder}__", op)
        return
    written, quick = f"{op.name}_", op.quick

    def update(self, other):
        if not isinstance(other, (Tensor, float)) and not is_number(other):
            return NotImplemented
        result = quick(self, self, other)
        return op.into(self, (self, other), written) if result is None else result

    update.__doc__ = f"In place: {operator.__doc__}"
    attach(operator, f"__{dunder}__", op)
    attach(reflected, f"__r{dunder}__", op)
    if inplace:
        attach(update, f"__i{dunder}__", record_of(written))
