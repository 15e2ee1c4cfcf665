"""Is a function seen to be pure? Its source is read, and what it uses from outside is found.

Note [Seen to be pure]
A call is replayed (pure.py) where nothing but its program could be seen of it, and where that program would be the same.
Two sides make sure of it, of which each does what the other cannot:

What a recorded call did is known from the recording (tt_replay_new): all of it is one program that ran at the end, no
element was looked at (tt_looks), no random number drawn, no storage used but those of arguments, results and
temporaries, no argument changed. So no value had a part in what the call did; and an operator that is not recorded, or
that reads values, needs no list here.

What is left is what Python did, and that is read off the source, by walking through it with kinds in the place of
values: a result of an operator ("data"), numbers and the like that depend on shapes and constants alone ("plain"), and
objects from outside that are known, such as modules and functions. Functions that are called are walked through in turn.
Where the walk meets anything that could have an effect, or could depend on more, it ends: ``Unproven``. So the same
arguments, as far as the replay compares them, make Python do the same again, without effects, as long as every name
looked up outside gives what it gave. Those names are guarded: before every replay each must give the same object. One
that gives a tensor may give any: such tensors become arguments of the replay.

That the source is the function's is seen by compiling it again: the code must be equal. What is taken on trust: nobody
replaces attributes of tensors or of tinytorch's own functions, and operators are pure (all that is in tinytorch.ops).
"""

from __future__ import annotations

import __future__

import ast
import functools
import linecache
import math
import operator
import os
import sys
import types
from collections.abc import Callable
from typing import NamedTuple

from .. import devices, dtypes
from ..autograd import api
from ..autograd.modes import no_grad
from ..layouts import layout, memory_format
from ..tensor import FUNCTIONS, Tensor

_PACKAGE = __name__.split(".")[0]
_MOST_LINES = 5000    # of a file that is read
_MOST_STEPS = 20_000  # of a walk
_DEEP = 20            # functions within functions
_FEATURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)

# Kinds, next to Known, Items, Each, Local and Bound.
DATA = "data"    # tensors, and sequences made in the call that hold nothing but data and plain things
PLAIN = "plain"  # an immutable object that depends on shapes and constants alone

_PLAIN_TYPES = frozenset((int, float, complex, bool, str, bytes, types.NoneType, types.EllipsisType, slice, dtypes.dtype,
                          dtypes.Size, devices.device, layout, memory_format))
_ABOUT = frozenset(("shape", "ndim", "dtype", "device", "itemsize", "nbytes", "is_cuda", "is_cpu"))
_ASKS = frozenset(("size", "stride", "dim", "ndimension", "numel", "nelement", "element_size", "is_contiguous",
                   "is_floating_point", "is_complex", "is_signed", "get_device"))
_PARTS = frozenset(("T", "mT", "H", "mH", "data", "values", "indices"))
_COMPARED = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
             ast.GtE: operator.ge, ast.Is: operator.is_, ast.IsNot: operator.is_not}
_OF_PLAIN = frozenset((abs, bool, divmod, float, int, max, min, pow, round, sorted, slice))
_TOLD_APART = (Tensor, int, float, bool, str, tuple, list)
_ITERABLE = frozenset((enumerate, list, reversed, tuple, zip))


class Unproven(Exception):
    """Why a function is not seen to be pure."""


class Known(NamedTuple):
    """This very object."""

    value: object


class Items(NamedTuple):
    """A tuple, or what can be iterated over, of items of these kinds."""

    kinds: tuple


class Each(NamedTuple):
    """Any number of items of that kind, to be iterated over."""

    kind: object


class Bound(NamedTuple):
    """A method of data."""

    name: str


class Local:
    """A function or lambda that the walk came across."""

    def __init__(self, node, scope: Scope, defaults: dict):
        self.node, self.scope, self.defaults = node, scope, defaults


class Scope:
    """The names of a function that is walked through: its own, then those of the functions around it."""

    def __init__(self, names: dict, node=None, fn: types.FunctionType | None = None, around: Scope | None = None):
        self.names, self.fn, self.around = names, fn, around
        self.own = _bound(node) if node else frozenset(names)
        self.loops = 0  # within which an assignment may or may not be the last one


class Proof:
    """What must be as it was for a function to be pure: ``tensors()`` gives those from outside, or None."""

    def __init__(self):
        self.things: dict[int, tuple[str, object]] = {}  # names in the guard's code
        self.tests: dict[str, None] = {}
        self.outside: dict[int, tuple[str, Tensor]] = {}  # tensors, and where they are
        self.tensors: Callable[[], tuple | None] | None = None

    def name(self, thing) -> str:
        """A name for an object in expressions."""
        return self.things.setdefault(id(thing), (f"k{len(self.things)}", thing))[0]

    def take(self, expression: str, value) -> object:
        """The kind of what the expression gives, which from now on it must always give: the value, or some tensor."""
        if is_tensor(value):
            first, _ = self.outside.setdefault(id(value), (expression, value))
            if first != expression:
                self.tests[f"{expression} is {first}"] = None
            return DATA
        self.tests[f"{expression} is {self.name(value)}"] = None
        return Known(value)

    def finish(self) -> None:
        """Makes ``tensors``."""
        self.take(f"{self.name(vars(dtypes))}['_default']", dtypes._default)
        self.take(f"{self.name(vars(devices))}['_default']", devices._default)
        found = "".join(f"{expression}, " for expression, _ in self.outside.values())
        source = (f"def tensors():\n    try:\n        if {' and '.join(self.tests)}:\n            return ({found})\n"
                  "    except (LookupError, ValueError):\n        pass\n    return None\n")
        names = dict(self.things.values())
        exec(compile(source, "<guard>", "exec"), names)
        self.tensors = names["tensors"]
        self.outside.clear()  # they may go


def is_tensor(x) -> bool:
    """Is ``x`` a tensor whose operators nobody has replaced: a Tensor, a Parameter or a Buffer?"""
    kind = type(x)
    return kind is Tensor or (issubclass(kind, Tensor) and kind.__module__ == f"{_PACKAGE}.nn.parameter")


def prove(fn: Callable, kinds: list) -> Proof:
    """That ``fn``, called with arguments of these kinds, is pure. Raises Unproven."""
    walk = _Walk()
    try:
        walk.call(Known(fn), kinds, {})
    except Unproven as why:
        raise Unproven(f"{os.path.basename(walk.file)}, line {walk.line}: {why}" if walk.line else str(why)) from None
    except RecursionError:
        raise Unproven("it is nested too deeply") from None
    walk.proof.finish()
    return walk.proof


# Sources.


@functools.lru_cache(maxsize=16)
def _parsed(text: str) -> dict[int, list]:
    """The functions of a file's text, by first line."""
    functions: dict[int, list] = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.Lambda)):
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))])
            functions.setdefault(first, []).append(node)
    return functions


def source_of(fn: types.FunctionType):
    """The FunctionDef or Lambda that ``fn`` was made from. Unproven if there is none that compiles to its code."""
    code = fn.__code__
    lines = linecache.getlines(code.co_filename, fn.__globals__)
    if not lines:
        raise Unproven(f"the source of {fn.__name__} is not there")
    if len(lines) > _MOST_LINES:
        raise Unproven(f"the file of {fn.__name__} has more than {_MOST_LINES} lines")
    try:
        for node in _parsed("".join(lines)).get(code.co_firstlineno, ()):
            if _compiled(node, code) == code:
                return node
    except (SyntaxError, ValueError):
        pass
    raise Unproven(f"the source of {fn.__name__} is no longer what runs")


def _compiled(node, code: types.CodeType) -> types.CodeType | None:
    """The code that a function's source has where ``code`` stands: its free variables are those of a function around."""
    whole = node if isinstance(node, ast.FunctionDef) else ast.Expr(node)
    if code.co_flags & 0x10:  # CO_NESTED
        around = ast.parse(f"def around({', '.join(code.co_freevars)}): pass").body[0]
        around.body = [whole]
        whole = around
    flags = code.co_flags & _FEATURES
    made = compile(ast.fix_missing_locations(ast.Module([whole], [])), code.co_filename, "exec", flags, True)
    for _ in range(1 + bool(code.co_flags & 0x10)):
        made = next((c for c in made.co_consts if isinstance(c, types.CodeType)
                     and c.co_name in (code.co_name, "around")), None)
        if made is None:
            return None
    return made


def _bound(node) -> frozenset[str]:
    """The names that are a function's own."""
    args = node.args
    names = {a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg) if a}
    left = list(node.body) if isinstance(node, ast.FunctionDef) else []
    while left:
        n = left.pop()
        if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load):
            names.add(n.id)
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)):
            names.add(n.name)
        elif not isinstance(n, (ast.Lambda, ast.ListComp, ast.GeneratorExp)):
            left += ast.iter_child_nodes(n)
    return frozenset(names)


# Operators.


@functools.lru_cache(maxsize=None)
def _operators() -> tuple[dict[int, object], frozenset[str]]:
    """The functions that are operators, by id, and the names of the methods that are."""
    functional = vars(sys.modules[f"{_PACKAGE}.nn.functional"])
    named = {name: fn for name, fn in functional.items() if not name.startswith("_")}
    functions = [fn for fn in (*FUNCTIONS.values(), *named.values(), *vars(Tensor).values()) if _is_operator(fn)]
    methods = frozenset(name for name, fn in vars(Tensor).items() if _is_operator(fn))
    return {id(fn): fn for fn in functions}, methods | {"detach"}


def _is_operator(fn) -> bool:
    """Is it declared among the operators? as_strided looks beyond its argument, random numbers have a state."""
    if not isinstance(fn, types.FunctionType) or "as_strided" in fn.__name__:
        return False
    if fn.__module__ is None:  # made from a template
        return fn.__code__.co_filename.startswith("<eager")
    return fn.__module__ == f"{_PACKAGE}.nn.functional" or (
        fn.__module__.startswith(f"{_PACKAGE}.ops.") and fn.__module__[len(_PACKAGE) + 5:] not in ("random", "foreign"))


# Kinds.


def is_plain(kind) -> bool:
    """Is it an immutable thing, all of whose parts are?"""
    if type(kind) is Known:
        return type(kind.value) in _PLAIN_TYPES or (type(kind.value) is tuple and all(is_plain(Known(v)) for v in kind.value))
    return kind is PLAIN or (type(kind) is Items and all(map(is_plain, kind.kinds)))


def join(a, b):
    """A kind that both are of; None where there is none."""
    if a is b or (type(a) is type(b) is Known and a.value is b.value) or (type(a) is type(b) is Bound and a == b):
        return a
    if type(a) is type(b) is Items and len(a.kinds) == len(b.kinds):
        return Items(tuple(map(join, a.kinds, b.kinds)))
    if is_plain(a) and is_plain(b):
        return PLAIN
    return DATA if is_data(a) and is_data(b) else None


def is_data(kind) -> bool:
    """May it stand for data?"""
    return kind is DATA or is_plain(kind) or (type(kind) is Items and all(map(is_data, kind.kinds)))


def _spelled(value) -> str:
    return getattr(value, "__qualname__", None) or f"an object of type {type(value).__name__}"


class _Walk:
    """A walk through functions: what it meets from outside is written down in ``proof``."""

    def __init__(self):
        self.proof = Proof()
        self.file, self.line = "", 0  # where it is
        self.steps = 0
        self.under_way: list = []

    # Calls.

    def call(self, callee, args: list, keywords: dict):
        """The kind of a call's result. ``args`` may end in an Each or DATA within a _Rest."""
        if type(callee) is Local:
            return self.enter(callee.node, Scope({}, callee.node, None, callee.scope), args, keywords, callee.defaults)
        if type(callee) is Bound:
            self.all_data(args, keywords)
            return PLAIN if callee.name in _ASKS else DATA
        if type(callee) is not Known:
            raise Unproven("calls what is not known to be a function")
        fn = callee.value
        if id(fn) in _operators()[0] or fn is api.grad:
            self.all_data(args, keywords)
            return DATA
        if isinstance(fn, type) or isinstance(fn, types.BuiltinFunctionType):
            return self.call_builtin(fn, args, keywords)
        if type(fn) is functools.partial:
            return self.call_partial(fn, args, keywords)
        if type(fn) is types.MethodType:
            return self.call(Known(fn.__func__), [Known(fn.__self__), *args], keywords)
        if type(fn) is not types.FunctionType:
            raise Unproven(f"calls {_spelled(fn)}, whose parts may be replaced")
        if getattr(vars(fn).get("purity"), "code", None) is fn.__code__:  # fused itself: it is recorded with the rest
            return self.call(Known(fn.purity.fn), args, keywords)
        return self.call_function(fn, args, keywords)

    def call_function(self, fn, args, keywords):
        name = self.proof.name(fn)
        for part in ("__code__", "__defaults__", "__kwdefaults__"):
            self.proof.take(f"{name}.{part}", getattr(fn, part))
        if fn.__code__.co_flags & 0x2a0:  # CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR
            raise Unproven(f"{fn.__name__} is a generator or coroutine")
        if (fn.__module__ or "").split(".")[0] == _PACKAGE:
            raise Unproven(f"calls {_spelled(fn)}, which is no operator")
        node = source_of(fn)
        plain = [*node.args.posonlyargs, *node.args.args]
        defaults = {a.arg: self.item(fn.__defaults__, k)
                    for k, a in enumerate(plain[len(plain) - len(fn.__defaults__ or ()):])}
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
        if any(type(a) is _Rest for a in args):
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
        if fn is isinstance and is_data(args[0]) and type(args[1]) is Known and args[1].value in _TOLD_APART:
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
        """Walks through a function's body; the kind of what it returns."""
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
        rest = args.pop().kind if args and type(args[-1]) is _Rest else None
        for a in (*params.posonlyargs, *params.args):
            if args:
                names[a.arg] = args.pop(0)
            else:
                self.bind_one(a.arg, names, keywords, defaults, rest)
        if params.vararg:
            names[params.vararg.arg] = Items(tuple(args)) if rest is None else self.as_data(Each(
                functools.reduce(join, args, rest)))
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
        """Nothing; nor do these, whose walk is the loop's or ends here."""

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
        self.assign(target, self.combined(self.value(load, scope), self.value(node.value, scope)), scope)

    def do_FunctionDef(self, node, scope, returned) -> None:
        if node.decorator_list:
            raise Unproven("has a decorated function inside")
        self.assign(ast.Name(node.name, ast.Store()), self.local(node, scope), scope)

    def do_If(self, node, scope, returned) -> None:
        truth = self.truth(self.value(node.test, scope))
        before = dict(scope.names)
        if truth is not False:
            self.body(node.body, scope, returned)
        after, scope.names = scope.names, before
        if truth is not True:
            self.body(node.orelse, scope, returned)
        scope.names = after if truth is True else scope.names if truth is False else _either(after, scope.names)

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
            scope.names = _either(before, scope.names)
        scope.loops -= 1
        self.body(node.orelse, scope, returned)

    def do_With(self, node, scope, returned) -> None:
        for item in node.items:
            made = item.context_expr
            plain = isinstance(made, ast.Call) and not made.args and not made.keywords and item.optional_vars is None
            if not plain or getattr(self.value(made.func, scope), "value", None) is not no_grad:
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
            if name in _ABOUT:
                return PLAIN
            if name in _PARTS:
                return DATA
            if name in _ASKS or name in _operators()[1] or name in ("append", "extend"):
                return Bound(name)
            raise Unproven(f"uses .{name} of a tensor, which reads values or has effects, or may")
        if is_plain(kind):
            return PLAIN
        value = kind.value if type(kind) is Known else None
        if type(value) in (types.ModuleType, types.SimpleNamespace):
            if name not in vars(value):
                raise Unproven(f"uses .{name} of {_spelled(value)}, which is made when it is asked for")
            return self.item(vars(value), name)
        if value is Tensor and name in _operators()[1]:
            return Known(vars(Tensor)[name])
        raise Unproven(f"uses .{name} of {_spelled(value) if value is not None else 'something'}, which may change")

    def of_Subscript(self, node, scope):
        kind, index = self.value(node.value, scope), self.value(node.slice, scope)
        if type(kind) is Items:
            if type(index) is Known and type(index.value) is int and -len(kind.kinds) <= index.value < len(kind.kinds):
                return kind.kinds[index.value]
            kind = self.as_data(kind.kinds)
        if type(kind) is Known and type(kind.value) in (tuple, list, dict) and type(index) is Known and type(
                index.value) in (int, str):
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
            if args and type(args[-1]) is _Rest:
                args[-1] = _Rest(join(args[-1].kind, self.element(self.items(self.value(a.value, scope))) if isinstance(
                    a, ast.Starred) else self.value(a, scope)))
            elif isinstance(a, ast.Starred):
                items = self.items(self.value(a.value, scope))
                args += [_Rest(items.kind)] if isinstance(items, Each) else items
            else:
                args.append(self.argument(a, scope))
        if any(k.arg is None for k in node.keywords):
            raise Unproven("gives keyword arguments that it does not name")
        keywords = {k.arg: self.value(k.value, scope) for k in node.keywords}
        self.line = node.lineno
        return self.call(callee, args, keywords)

    def argument(self, node, scope):
        """A generator expression stands for a list: whoever may be called here takes all of it at once."""
        return self.of_ListComp(node, scope) if isinstance(node, ast.GeneratorExp) else self.value(node, scope)

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
            if len(kinds) == 2 and any(k == Known(None) for k in kinds):
                return self.compared(node.ops[0], *kinds) or PLAIN
            raise Unproven("asks whether two things are the same object")
        self.all_data(kinds, {})
        if all(map(is_plain, kinds)):
            return (len(kinds) == 2 and self.compared(node.ops[0], *kinds)) or PLAIN
        if len(kinds) > 2 or isinstance(node.ops[0], (ast.In, ast.NotIn)):
            raise Unproven("branches on a tensor's value")
        return DATA

    @staticmethod
    def compared(op, a, b):
        """The result where both are known and of the simplest types, or None."""
        simple = all(type(k) is Known and type(k.value) in (int, float, bool, str, types.NoneType) for k in (a, b))
        return Known(_COMPARED[type(op)](a.value, b.value)) if simple and type(op) in _COMPARED and (
            isinstance(op, (ast.Is, ast.IsNot, ast.Eq, ast.NotEq)) or type(a.value) is type(b.value)) else None

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
        inner = Scope({}, None, None, scope)
        for g in node.generators:
            items = self.items(self.value(g.iter, inner))
            self.assign(g.target, self.element(items), inner)
            for test in g.ifs:
                self.truth(self.value(test, inner))
        return self.as_data(Each(self.value(node.elt, inner)))

    def of_Lambda(self, node, scope):
        return self.local(node, scope)

    def local(self, node, scope: Scope) -> Local:
        args = node.args
        plain = [*args.posonlyargs, *args.args]
        given = [*zip(plain[len(plain) - len(args.defaults):], args.defaults),
                 *((a, d) for a, d in zip(args.kwonlyargs, args.kw_defaults) if d)]
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
            if type(kind) is _Rest:
                kind = kind.kind
            if type(kind) is Known and type(kind.value) in (tuple, list):
                self.all_data(self.items(kind), {})
            elif not (is_data(kind) or (type(kind) is Known and any(kind.value is t for t in (int, float, bool)))):
                what = _spelled(kind.value) if type(kind) is Known else "something"
                raise Unproven(f"gives {what} to an operator")

    def truth(self, kind) -> bool | None:
        """Of a condition; None where it depends on shapes."""
        if type(kind) is Known and type(kind.value) in _PLAIN_TYPES:
            return bool(kind.value)
        if type(kind) is Items:
            return len(kind.kinds) > 0
        if not is_plain(kind):
            raise Unproven("branches on a tensor's value" if kind is DATA else "branches on something from outside")
        return None


class _Rest(NamedTuple):
    """The last of a call's arguments: any number of that kind."""

    kind: object


def _either(a: dict, b: dict) -> dict:
    """The names after one way or another."""
    return {name: join(a[name], b[name]) if name in a and name in b else a.get(name, b.get(name)) for name in {**a, **b}}
