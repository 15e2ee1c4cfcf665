"""Abstract interpretation of expressions: Note [Seen to be pure]."""

from __future__ import annotations

import ast
import functools
import operator
import types

from ...tensor import Tensor
from .lattice import (
    ABOUT,
    ASKS,
    DATA,
    PARTS,
    PLAIN,
    PLAIN_TYPES,
    Bound,
    Each,
    Items,
    Known,
    Local,
    Rest,
    Scope,
    Unproven,
    is_data,
    is_plain,
    is_tensor,
    join,
    operators,
    spelled,
)

_REAL = (bool, int, float)
_COMPARED = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


class Expressions:
    """The part of the interpreter that evaluates expressions."""

    # Values.

    def value(self, node, scope: Scope):
        """The kind of an expression's value."""
        self.step(node)
        visit = getattr(self, f"of_{type(node).__name__}", None)
        if visit is None:
            raise Unproven(f"has an expression of the kind {type(node).__name__}")
        kind = visit(node, scope)
        self.line = node.lineno
        if kind is None:
            raise Unproven("uses what may be one of several things")
        return kind

    def of_Constant(self, node, scope):
        return Known(node.value)

    def of_Name(self, node, scope):
        name = node.id
        while scope is not None:
            if name in scope.own or name in scope.names:
                if name not in scope.names:
                    raise Unproven(f"reads {name} before it is set")
                return scope.names[name]
            fn, scope = scope.fn, scope.around
        if name in fn.__code__.co_freevars:
            cell = fn.__closure__[fn.__code__.co_freevars.index(name)]
            try:
                return self.proof.take(f"{self.proof.name(cell)}.cell_contents", cell.cell_contents)
            except ValueError:
                raise Unproven(f"reads {name} before it is set") from None
        if name in fn.__globals__:
            return self.item(fn.__globals__, name)
        if name not in fn.__builtins__:
            raise Unproven(f"reads {name}, which is not there")
        self.proof.tests[f"{name!r} not in {self.proof.name(fn.__globals__)}"] = None
        return self.item(fn.__builtins__, name)

    def of_Attribute(self, node, scope):
        kind, name = self.value(node.value, scope), node.attr
        if kind is DATA:
            if name in ABOUT:
                return PLAIN
            if name in PARTS:
                return DATA
            if name in ASKS or name in operators()[1] or name in ("append", "extend"):
                return Bound(name)
            raise Unproven(f"uses .{name} of a tensor, which reads values or has effects, or may")
        if is_plain(kind):
            return PLAIN
        value = kind.value if type(kind) is Known else None
        if type(value) in (types.ModuleType, types.SimpleNamespace):
            if name not in vars(value):
                raise Unproven(f"uses .{name} of {spelled(value)}, which is made when it is asked for")
            return self.item(vars(value), name)
        if value is Tensor and name in operators()[1]:
            return Known(vars(Tensor)[name])
        raise Unproven(f"uses .{name} of {spelled(value) if value is not None else 'something'}, which may change")

    def of_Subscript(self, node, scope):
        kind, index = self.value(node.value, scope), self.value(node.slice, scope)
        if type(kind) is Items:
            if type(index) is Known and type(index.value) is int and -len(kind.kinds) <= index.value < len(kind.kinds):
                return kind.kinds[index.value]
            kind = self.as_data(kind.kinds)
        if (
            type(kind) is Known
            and type(kind.value) in (tuple, list, dict)
            and type(index) is Known
            and type(index.value) in (int, str)
        ):
            return self.item(kind.value, index.value)
        if is_plain(kind) and is_plain(index):
            return PLAIN
        self.all_data([kind, index], {})
        return DATA

    def of_Slice(self, node, scope):
        self.all_data([self.value(n, scope) for n in (node.lower, node.upper, node.step) if n], {})
        return PLAIN

    def of_Call(self, node, scope):
        callee = self.value(node.func, scope)
        args = []
        for a in node.args:
            if args and type(args[-1]) is Rest:
                args[-1] = Rest(
                    join(
                        args[-1].kind,
                        self.element(self.items(self.value(a.value, scope)))
                        if isinstance(a, ast.Starred)
                        else self.value(a, scope),
                    )
                )
            elif isinstance(a, ast.Starred):
                items = self.items(self.value(a.value, scope))
                args += [Rest(items.kind)] if isinstance(items, Each) else items
            else:
                args.append(self.argument(a, scope))
        if any(k.arg is None for k in node.keywords):
            raise Unproven("gives keyword arguments that it does not name")
        keywords = {k.arg: self.value(k.value, scope) for k in node.keywords}
        self.line = node.lineno
        return self.call(callee, args, keywords)

    def argument(self, node, scope):
        """A generator expression stands for all of its items: a function that is called here takes them at once."""
        return self.elements(node, scope) if isinstance(node, ast.GeneratorExp) else self.value(node, scope)

    def of_BinOp(self, node, scope):
        return self.combined(self.value(node.left, scope), self.value(node.right, scope))

    def combined(self, a, b):
        if type(a) is type(b) is Items:
            return Items(a.kinds + b.kinds) if is_data(a) and is_data(b) else None
        self.all_data([a, b], {})
        return PLAIN if is_plain(a) and is_plain(b) else DATA

    def of_UnaryOp(self, node, scope):
        kind = self.value(node.operand, scope)
        if isinstance(node.op, ast.Not):
            truth = self.truth(kind)
            return PLAIN if truth is None else Known(not truth)
        self.all_data([kind], {})
        return PLAIN if is_plain(kind) else DATA

    def of_BoolOp(self, node, scope):
        kinds = [self.value(n, scope) for n in node.values]
        for kind in kinds[:-1]:
            self.truth(kind)
        return functools.reduce(join, kinds)

    def of_Compare(self, node, scope):
        kinds = [self.value(n, scope) for n in (node.left, *node.comparators)]
        if all(type(op) in (ast.Is, ast.IsNot) for op in node.ops):
            if len(kinds) == 2 and (all(map(is_plain, kinds)) or Known(None) in kinds):
                return self.same(node.ops[0], *kinds)
            raise Unproven("asks whether two things are the same object")
        self.all_data(kinds, {})
        if all(map(is_plain, kinds)):
            return self.compared(node.ops[0], *kinds) if len(kinds) == 2 else PLAIN
        if len(kinds) > 2 or isinstance(node.ops[0], (ast.In, ast.NotIn)):
            raise Unproven("branches on a tensor's value")
        return DATA

    @staticmethod
    def compared(op, a, b):
        """The result, where that is easily said."""
        if type(a) is type(b) is Known and type(op) in _COMPARED:
            kinds = type(a.value), type(b.value)
            if kinds == (str, str) or all(k in _REAL for k in kinds):
                return Known(_COMPARED[type(op)](a.value, b.value))
        return PLAIN

    @staticmethod
    def same(op, a, b):
        """The result of ``is``: whatever it is of two plain things, it will be so again."""
        if type(a) is type(b) is Known and Known(None) in (a, b):
            return Known((a == b) == isinstance(op, ast.Is))
        return PLAIN

    def of_IfExp(self, node, scope):
        truth = self.truth(self.value(node.test, scope))
        kinds = [self.value(n, scope) for n, when in ((node.body, True), (node.orelse, False)) if truth in (None, when)]
        return functools.reduce(join, kinds)

    def of_Tuple(self, node, scope):
        kinds: list = []
        counted = True
        for n in node.elts:
            items = self.items(self.value(n.value, scope)) if isinstance(n, ast.Starred) else (self.value(n, scope),)
            counted = counted and not isinstance(items, Each)
            kinds += [items.kind] if isinstance(items, Each) else items
        return Items(tuple(kinds)) if counted else self.as_data(tuple(kinds))

    def of_List(self, node, scope):
        items = self.of_Tuple(node, scope)
        return items if items is DATA else self.as_data(items.kinds)

    def of_ListComp(self, node, scope):
        return self.as_data((self.elements(node, scope),))

    def elements(self, node, scope):
        """The kind of what a comprehension makes."""
        inner = Scope({}, None, None, scope)
        for g in node.generators:
            items = self.items(self.value(g.iter, inner))
            self.assign(g.target, self.element(items), inner)
            for test in g.ifs:
                self.truth(self.value(test, inner))
        kind = self.value(node.elt, inner)
        return kind if is_plain(kind) else self.as_data((kind,))

    def of_Lambda(self, node, scope):
        return self.local(node, scope)

    def local(self, node, scope: Scope) -> Local:
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        given = [
            *zip(plain[len(plain) - len(args.defaults) :], args.defaults),
            *((a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults) if d),
        ]
        if isinstance(node, ast.FunctionDef) and any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in ast.walk(node)):
            raise Unproven("has a generator inside")
        return Local(node, scope, {a.arg: self.value(d, scope) for a, d in given})

    # Kinds of parts.

    def item(self, container, key):
        """Of a tuple, list or dict from outside."""
        try:
            value = container[key]
        except LookupError:
            raise Unproven(f"reads item {key!r} of a {type(container).__name__}, which is not there") from None
        if type(container) is tuple and not is_tensor(value):
            return Known(value)
        return self.proof.take(f"{self.proof.name(container)}[{key!r}]", value)

    def items(self, kind):
        """The kinds of what iteration gives: a tuple of them, or an Each."""
        if type(kind) is Items:
            return kind.kinds
        if type(kind) is Each:
            return kind
        if type(kind) is Known and type(kind.value) in (tuple, list):
            self.proof.tests[f"len({self.proof.name(kind.value)}) == {len(kind.value)}"] = None
            return tuple(self.item(kind.value, k) for k in range(len(kind.value)))
        if kind is DATA or is_plain(kind):
            return Each(DATA if kind is DATA else PLAIN)
        raise Unproven("iterates over something from outside")

    def element(self, items):
        if isinstance(items, Each):
            return items.kind
        kind = functools.reduce(join, items) if items else PLAIN
        if kind is None:
            raise Unproven("uses what may be one of several things")
        return kind

    def as_data(self, items):
        if not is_data(self.element(items)):
            raise Unproven("keeps functions or objects from outside in a list")
        return DATA

    def all_data(self, args, keywords) -> None:
        """What operators may be given: they call nothing of it."""
        for kind in (*args, *keywords.values()):
            if type(kind) is Rest:
                kind = kind.kind
            if type(kind) is Known and type(kind.value) in (tuple, list):
                self.all_data(self.items(kind), {})
            elif not (is_data(kind) or (type(kind) is Known and any(kind.value is t for t in (int, float, bool)))):
                what = spelled(kind.value) if type(kind) is Known else "something"
                raise Unproven(f"gives {what} to an operator")

    def truth(self, kind) -> bool | None:
        """Of a condition; None where it depends on shapes."""
        if type(kind) is Known and type(kind.value) in PLAIN_TYPES:
            return bool(kind.value)
        if type(kind) is Items:
            return len(kind.kinds) > 0
        if not is_plain(kind):
            raise Unproven("branches on a tensor's value" if kind is DATA else "branches on something from outside")
        return None
