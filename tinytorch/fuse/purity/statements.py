"""Abstract interpretation of calls and statements: Note [Seen to be pure]."""

from __future__ import annotations

import ast
import functools
import math
import os
import types
from collections.abc import Callable

from ...autograd import api
from ...autograd.modes import no_grad
from ...tensor import Tensor
from .lattice import (
    ASKS,
    DATA,
    PACKAGE,
    PLAIN,
    Bound,
    Each,
    Items,
    Known,
    Local,
    Rest,
    Scope,
    Unproven,
    either,
    is_data,
    is_plain,
    join,
    operators,
    spelled,
)
from .guards import Proof, source_of
from .expressions import Expressions

_MOST_STEPS = 20_000  # of a proof
_DEEP = 20  # functions within functions
_OF_PLAIN = frozenset((abs, bool, divmod, float, int, max, min, pow, round, sorted, slice))
_ITERABLE = frozenset((enumerate, list, reversed, tuple, zip))
_TOLD_APART = (Tensor, int, float, bool, str, tuple, list)


class Interpreter(Expressions):
    """Interprets functions on kinds; records the outside objects that it meets in ``proof``."""

    def __init__(self):
        self.proof = Proof()
        self.file, self.line = "", 0  # where it is
        self.steps = 0
        self.under_way: list = []

    # Calls.

    def call(self, callee, args: list, keywords: dict):
        """The kind of a call's result. ``args`` may end in an Each or DATA within a Rest."""
        if type(callee) is Local:
            return self.enter(callee.node, Scope({}, callee.node, None, callee.scope), args, keywords, callee.defaults)
        if type(callee) is Bound:
            self.all_data(args, keywords)
            return PLAIN if callee.name in ASKS else DATA
        if type(callee) is not Known:
            raise Unproven("calls what is not known to be a function")
        fn = callee.value
        if id(fn) in operators()[0] or fn is api.grad:
            self.all_data(args, keywords)
            return DATA
        if isinstance(fn, (type, types.BuiltinFunctionType)):
            return self.call_builtin(fn, args, keywords)
        if type(fn) is functools.partial:
            return self.call_partial(fn, args, keywords)
        if type(fn) is types.MethodType:
            return self.call(Known(fn.__func__), [Known(fn.__self__), *args], keywords)
        if type(fn) is not types.FunctionType:
            raise Unproven(f"calls {spelled(fn)}, whose parts may be replaced")
        if getattr(vars(fn).get("purity"), "code", None) is fn.__code__:  # fused itself: it is recorded with the rest
            return self.call(Known(fn.purity.fn), args, keywords)
        return self.call_function(fn, args, keywords)

    def call_function(self, fn, args, keywords):
        name = self.proof.name(fn)
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            self.proof.take(f"{name}.{part}", getattr(fn, part))
        if fn.__code__.co_flags & 0x2A0:  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
            raise Unproven(f"{fn.__name__} is a generator or coroutine")
        if (fn.__module__ or "").split(".")[0] == PACKAGE:
            raise Unproven(f"calls {spelled(fn)}, which is no operator")
        node = source_of(fn)
        plain = [*node.args.posonlyargs, *node.args.args]
        defaults = {
            a.arg: self.item(fn.__defaults__, k) for k, a in enumerate(plain[len(plain) - len(fn.__defaults__ or ()) :])
        }
        for a in fn.__kwdefaults__ or ():
            defaults[a] = self.item(fn.__kwdefaults__, a)
        before = self.file, self.line
        self.file = fn.__code__.co_filename
        kind = self.enter(node, Scope({}, node, fn), args, keywords, defaults)
        self.file, self.line = before
        return kind

    def call_partial(self, fn, args, keywords):
        name = self.proof.name(fn)
        self.proof.take(f"{name}.func", fn.func)
        self.proof.take(f"{name}.args", fn.args)
        self.proof.tests[f"len({name}.keywords) == {len(fn.keywords)}"] = None
        given = [self.item(fn.args, k) for k in range(len(fn.args))]
        named = {k: self.item(fn.keywords, k) for k in fn.keywords}
        return self.call(Known(fn.func), given + args, named | keywords)

    def call_builtin(self, fn, args, keywords):
        """Some of Python's own, and math's."""
        if any(type(a) is Rest for a in args):
            raise Unproven(f"calls {fn.__name__} with arguments whose number is not known")
        if fn is sum and args:
            args = [self.element(self.items(args[0])), *args[1:]]
        plain = all(map(is_plain, (*args, *keywords.values())))
        of_data = fn in (abs, sum, pow) and all(map(is_data, args))
        if fn in _OF_PLAIN or fn is sum or getattr(fn, "__self__", None) is math:
            if plain or of_data:
                return PLAIN if plain else DATA
            raise Unproven(f"calls {fn.__name__} with a tensor, whose value it reads")
        if fn is range and plain:
            return Each(PLAIN)
        if fn is len and len(args) == 1:
            if type(args[0]) is Known:
                return Known(len(self.items(args[0])))
            return Known(len(args[0].kinds)) if type(args[0]) is Items else PLAIN
        if fn is isinstance and is_data(args[0]) and any(args[1] == Known(t) for t in _TOLD_APART):
            return PLAIN
        if fn in _ITERABLE and set(keywords) <= {"start", "strict"} and all(map(is_plain, keywords.values())):
            return self.call_iterable(fn, args)
        raise Unproven(f"calls {fn.__name__}, which has effects, or may have")

    def call_iterable(self, fn, args):
        if fn in (tuple, list):
            items = self.items(args[0]) if args else ()
            if fn is tuple and not isinstance(items, Each):
                return Items(items)
            return self.as_data(items)
        if fn is enumerate:
            args = [Each(PLAIN), args[0]]
        elif fn is reversed:
            items = self.items(args[0])
            return items if isinstance(items, Each) else Items(items[::-1])
        return Each(Items(tuple(self.element(self.items(a)) for a in args)))

    def enter(self, node, scope: Scope, args, keywords, defaults):
        """Interprets a function's body; returns the kind of its result."""
        if len(self.under_way) >= _DEEP or node in self.under_way:
            raise Unproven("calls itself, or calls are nested too deeply")
        self.bind(node.args, scope, list(args), dict(keywords), defaults)
        self.under_way.append(node)
        if isinstance(node, ast.Lambda):
            kind = self.value(node.body, scope)
        else:
            returned = [Known(None)]
            self.body(node.body, scope, returned)
            kind = functools.reduce(join, returned[1:], returned[1] if returned[1:] else Known(None))
            if returned[1:] and not isinstance(node.body[-1], (ast.Return, ast.Raise)):
                kind = join(kind, Known(None))
        self.under_way.pop()
        return kind

    def bind(self, params, scope: Scope, args: list, keywords: dict, defaults: dict) -> None:
        """Gives the parameters their kinds. Python itself checks the number of arguments."""
        names = scope.names
        rest = args.pop().kind if args and type(args[-1]) is Rest else None
        for a in (*params.posonlyargs, *params.args):
            if args:
                names[a.arg] = args.pop(0)
            else:
                self.bind_one(a.arg, names, keywords, defaults, rest)
        if params.vararg:
            names[params.vararg.arg] = (
                Items(tuple(args)) if rest is None else self.as_data(Each(functools.reduce(join, args, rest)))
            )
        for a in params.kwonlyargs:
            self.bind_one(a.arg, names, keywords, defaults, None)
        if params.kwarg or keywords:
            raise Unproven("takes or is given keyword arguments that it does not name")

    @staticmethod
    def bind_one(name: str, names: dict, keywords: dict, defaults: dict, rest) -> None:
        if name in keywords:
            names[name] = keywords.pop(name)
        elif rest is not None:
            names[name] = join(rest, defaults[name]) if name in defaults else rest
        elif name in defaults:
            names[name] = defaults[name]

    # Statements.

    def body(self, statements, scope: Scope, returned: list) -> None:
        for node in statements:
            self.step(node)
            visit = getattr(self, f"do_{type(node).__name__}", None)
            if visit is None:
                raise Unproven(f"has a statement of the kind {type(node).__name__}")
            visit(node, scope, returned)

    def step(self, node) -> None:
        self.line = node.lineno
        self.steps += 1
        if self.steps > _MOST_STEPS:
            raise Unproven("it is too long")

    def do_Pass(self, node, scope, returned) -> None:
        """No effect. ``break`` and ``continue`` belong to the loop's handler; ``raise`` ends the path."""

    do_Break = do_Continue = do_Raise = do_Pass

    def do_Expr(self, node, scope, returned) -> None:
        self.value(node.value, scope)

    def do_Return(self, node, scope, returned) -> None:
        returned.append(self.value(node.value, scope) if node.value else Known(None))

    def do_Assert(self, node, scope, returned) -> None:
        self.truth(self.value(node.test, scope))

    def do_Assign(self, node, scope, returned) -> None:
        kind = self.value(node.value, scope)
        for target in node.targets:
            self.assign(target, kind, scope)

    def do_AnnAssign(self, node, scope, returned) -> None:
        if node.value:
            self.assign(node.target, self.value(node.value, scope), scope)

    def do_AugAssign(self, node, scope, returned) -> None:
        target = node.target
        load = ast.copy_location(ast.Name(target.id, ast.Load()), target) if isinstance(target, ast.Name) else target
        before = self.value(load, scope)
        if not is_data(before):
            raise Unproven("changes something from outside")
        self.assign(target, self.combined(before, self.value(node.value, scope)), scope)

    def do_FunctionDef(self, node, scope, returned) -> None:
        annotations = [node.returns, *(a.annotation for a in ast.walk(node.args) if isinstance(a, ast.arg))]
        if node.decorator_list or any(isinstance(n, ast.Call) for a in annotations if a for n in ast.walk(a)):
            raise Unproven("has a function inside that is decorated, or calls something where it is made")
        self.assign(ast.Name(node.name, ast.Store()), self.local(node, scope), scope)

    def do_If(self, node, scope, returned) -> None:
        truth = self.truth(self.value(node.test, scope))
        before = dict(scope.names)
        if truth is not False:
            self.body(node.body, scope, returned)
        after, scope.names = scope.names, before
        if truth is not True:
            self.body(node.orelse, scope, returned)
        scope.names = after if truth is True else scope.names if truth is False else either(after, scope.names)

    def do_For(self, node, scope, returned) -> None:
        items = self.items(self.value(node.iter, scope))
        self.loop(node, scope, returned, lambda: self.assign(node.target, self.element(items), scope))

    def do_While(self, node, scope, returned) -> None:
        self.loop(node, scope, returned, lambda: self.truth(self.value(node.test, scope)))

    def loop(self, node, scope, returned, head) -> None:
        """Until the kinds of names change no more. Within a loop an assignment leaves the kind before possible, so that
        it does not matter where the loop is left."""
        scope.loops += 1
        before = None
        while before != scope.names:
            before = dict(scope.names)
            head()
            self.body(node.body, scope, returned)
        scope.loops -= 1
        self.body(node.orelse, scope, returned)

    def do_With(self, node, scope, returned) -> None:
        for item in node.items:
            made = item.context_expr
            plain = isinstance(made, ast.Call) and not made.args and not made.keywords and item.optional_vars is None
            if not plain or self.value(made.func, scope) != Known(no_grad):
                raise Unproven("has a with block that is not no_grad()")
        self.body(node.body, scope, returned)

    def assign(self, target, kind, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            names = scope.names
            names[target.id] = join(names[target.id], kind) if scope.loops and target.id in names else kind
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target.elts, self.items(kind), scope)
        elif isinstance(target, ast.Subscript) and self.value(target.value, scope) is DATA and is_data(kind):
            self.all_data([self.value(target.slice, scope)], {})
        else:
            what = "an attribute" if isinstance(target, ast.Attribute) else "an item of something from outside"
            raise Unproven(f"sets {what}")

    def unpack(self, targets, items, scope: Scope) -> None:
        starred = [k for k, t in enumerate(targets) if isinstance(t, ast.Starred)]
        if not isinstance(items, Each) and not starred and len(items) == len(targets):
            kinds = items
        else:
            kinds = [self.element(items)] * len(targets)
        for k, target in enumerate(targets):
            if k in starred:
                self.assign(target.value, self.as_data(Each(kinds[k])), scope)
            else:
                self.assign(target, kinds[k], scope)


def prove(fn: Callable, kinds: list) -> Proof:
    """That ``fn``, called with arguments of these kinds, is pure. Raises Unproven."""
    interpreter = Interpreter()
    try:
        interpreter.call(Known(fn), kinds, {})
    except Unproven as why:
        place = f"{os.path.basename(interpreter.file)}, line {interpreter.line}: " if interpreter.line else ""
        raise Unproven(f"{place}{why}") from None
    except Exception as failed:  # no reason for the user's call to fail
        raise Unproven(f"reading it failed: {failed!r}") from failed
    interpreter.proof.finish()
    return interpreter.proof
