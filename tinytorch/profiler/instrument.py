"""Instrumentation: operators that record when they ran.

Note [Zero cost while off]
No operator looks whether it is profiled. While a profiler is open, the *code* of every published function is replaced
by a wrapper's: all references to the function, in whatever module, see it, and no other object changes. The wrapper
has the function's own parameters (so its defaults go on working) and as many free variables; the original, a function
of the old code, and what the wrapper calls stand among its constants. Derivatives are attributes of Node classes, and
are replaced as such by functions that are bound to the Node, and so know its number. What the engine knows about the
calls that a gradient goes through is measured again: Note [Owned gradients] in autograd/engine.py. When the profiler
closes, the old objects are put back.
"""

from __future__ import annotations

import inspect
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import CodeType, FunctionType

from .. import nn, optim
from ..amp import autocast_mode
from ..autograd import api, engine
from ..autograd.formulas import Unwritten
from ..autograd.node import Node
from ..backends.cpu import ffi, lib
from ..cache import Cache
from ..fuse import compiler
from ..fuse.listeners import users_frame
from ..ops.declare import NAMESPACES
from ..overrides.overridable import renew
from ..tensor import Tensor
from ..utils.data._utils.iterators import _BaseDataLoaderIter
from ..wrapper_code import original_of, wrapper_code

MOST_FRAMES = 64  # of a stack

# What a name beginning with _p_ stands for is a text among the constants at first, then the thing itself: see _code.
_WRAPPER = """
def outer({free}):
    def wrapper({params}):
        {things}
        _p_start = _p_clock()
        try:
            _p_out = _p_original({call})
        except BaseException:
            _p_span({name}, _p_start, -1, {stack}, {operands}, _p_null)
            raise
        if _p_type(_p_out) is _p_Tensor:
            _p_node = _p_out._node
            _p_span({name}, _p_start, 0 if _p_node is None else -_p_node.key, {stack}, {operands}, _p_out._h)
        else:
            _p_key, _p_h = _p_other(_p_out)
            _p_span({name}, _p_start, _p_key, {stack}, {operands}, _p_h)
        return _p_out
        ({free})
"""
_BACKWARD = """
def wrapper(node, g, saved, edges):
    {things}
    _p_start = _p_clock()
    try:
        return _p_original(g, saved, edges)
    finally:
        _p_span(_p_names[_p_type(node)], _p_start, -node.key, 0, _p_get(g, "_h", _p_null), _p_null, _p_null, _p_null)
"""


class Names(dict):
    """Numbers of names, and what they are names of: ``known[number]`` is (name, kind, the user's arguments)."""

    def __init__(self):
        super().__init__()
        self.known: list[tuple[str, str, str | None]] = []
        self.lock = threading.Lock()

    def number(self, name: str, kind: str, args: str | None = None) -> int:
        """Of a name of that kind: the same every time."""
        with self.lock:
            key = (name, kind, args)
            if key not in self:
                self.known.append(key)
                self[key] = len(self.known) - 1
            return self[key]


names = Names()


class _By(dict):
    """Numbers of names by what ``describe`` makes (name, kind) of."""

    def __init__(self, describe: Callable[[object], tuple[str, str]]):
        super().__init__()
        self.describe = describe

    def __missing__(self, key):
        self[key] = number = names.number(*self.describe(key))
        return number


_NODES = _By(lambda cls: (cls.__name__, "backward"))
_MODULES = _By(lambda cls: (f"nn.Module: {cls.__name__}", "module"))
_STEPS = _By(lambda cls: (f"Optimizer.step#{cls.__name__}.step", "module"))
_LOADERS = _By(lambda cls: (f"enumerate(DataLoader)#{cls.__name__}.__next__", "module"))
_ZEROS = _By(lambda cls: (f"Optimizer.zero_grad#{cls.__name__}.zero_grad", "module"))


class Target:
    """A function to be wrapped. ``number`` is an expression of its parameters: see _By; ``operands`` those that are
    looked at."""

    def __init__(self, fn: FunctionType, number, *, by: _By | None = None, operands: tuple[str, ...] | None = None):
        self.fn, self.number, self.by, self.operands = fn, number, by, operands


class Stacks:
    """The user's lines above an operator, by number; 0 is none."""

    def __init__(self):
        self.numbers: dict[tuple, int] = {}
        self.texts: dict[int, tuple[str, ...]] = {0: ()}

    def __call__(self) -> int:
        """The number of the present stack."""
        frame = users_frame(sys._getframe(2))
        key = []
        while frame is not None and len(key) < MOST_FRAMES:
            key.append((frame.f_code, frame.f_lineno))
            frame = users_frame(frame.f_back)
        return self.numbers.setdefault(tuple(key), len(self.numbers) + 1)  # numbers may be left out

    def clear(self) -> None:
        """Lets go of the code objects."""
        self.numbers = {}

    def read(self) -> dict[int, tuple[str, ...]]:
        """The texts by number."""
        return {0: ()} | {
            n: tuple(f"{c.co_filename}:{line} {c.co_name}" for c, line in key) for key, n in self.numbers.items()
        }


stacks = Stacks()


def _other(out) -> tuple[int, object]:
    """Number of the Node and descriptor of a result that is no plain Tensor: of the first of several."""
    if type(out) in (tuple, list) or hasattr(out, "_fields"):
        out = next((o for o in out if isinstance(o, Tensor)), None)
    if not isinstance(out, Tensor):
        return 0, ffi.NULL
    node = out._node
    if node is not None and node.op == "output":  # a Port
        node = node.edges[0]
    return 0 if node is None else -node.key, out._h


_THINGS = {
    "_p_clock": time.perf_counter_ns,
    "_p_span": lib.tt_profile_span,
    "_p_get": getattr,
    "_p_null": ffi.NULL,
    "_p_type": type,
    "_p_Tensor": Tensor,
    "_p_other": _other,
    "_p_stack": stacks,
    "_p_original": None,
    "_p_names": None,
    "_p_number": None,
}


def _code(template: str, indent: str, things: dict, title: str, **parts: str) -> CodeType:
    """The code of the template's function ``wrapper``, with the things that it names among its constants."""
    text = template.format(things="{things}", **parts)
    return wrapper_code(text, indent, _THINGS | things, "<eager, profiled>", title)


def _code_around(target: Target, with_stack: bool) -> CodeType:
    """The code that takes the place of a function's."""
    fn, code = target.fn, target.fn.__code__
    names_of = code.co_varnames
    n, only = code.co_argcount, code.co_kwonlyargcount
    plain, keywords = names_of[:n], names_of[n : n + only]
    rest = list(names_of[n + only :])
    star = rest.pop(0) if code.co_flags & inspect.CO_VARARGS else None
    double = rest.pop(0) if code.co_flags & inspect.CO_VARKEYWORDS else None
    params = list(plain)
    if code.co_posonlyargcount:
        params.insert(code.co_posonlyargcount, "/")
    params += [f"*{star}"] if star else ["*"] if keywords else []
    params += [*keywords, *([f"**{double}"] if double else [])]
    call = [
        *plain,
        *([f"*{star}"] if star else []),
        *(f"{k}={k}" for k in keywords),
        *([f"**{double}"] if double else []),
    ]
    operands = list(plain if target.operands is None else target.operands)
    if star and target.operands is None:
        operands += [f"{star}[{k}] if {star}[{k}:] else None" for k in range(3)]
    shown = [f'_p_get({o}, "_h", _p_null)' for o in operands[:3]] + ["_p_null"] * 3
    things = {"_p_original": original_of(fn), "_p_names": target.by, "_p_number": target.number}
    return _code(
        _WRAPPER,
        " " * 8,
        things,
        code.co_name,
        free=", ".join(code.co_freevars),
        params=", ".join(params),
        call=", ".join(call),
        name="_p_number" if target.by is None else f"_p_names[{target.number}]",
        stack="_p_stack()" if with_stack else "0",
        operands=", ".join(shown[:3]),
    )


def _operators() -> Iterator[tuple[str, FunctionType]]:
    """The public functions and methods of operators, each once, with its name: of ``__radd__`` "add"."""
    seen: set[int] = set()
    for fn in (*(fn for namespace in NAMESPACES.values() for fn in namespace.values()), *vars(Tensor).values()):
        if isinstance(fn, FunctionType) and id(fn) not in seen and hasattr(fn, "op") and fn.op.kind != "query":
            seen.add(id(fn))
            yield fn.op.name, fn


def targets() -> Iterator[Target]:
    """All functions to instrument."""
    for name, fn in _operators():
        yield Target(fn, names.number(name, "op"))
    for fn in (
        nn.utils.clip_grad_norm_,
        nn.utils.clip_grads_with_norm_,
        nn.utils.clip_grad_value_,
        nn.utils.get_total_norm,
        nn.utils.parameters_to_vector,
        nn.utils.vector_to_parameters,
    ):
        yield Target(fn, names.number(fn.__name__, "op"))
    for fn in (api.backward, api.grad, Tensor.backward):
        yield Target(fn, names.number("grad" if fn is api.grad else "backward", "op"))
    yield Target(engine.accumulate, "type(node)", by=_NODES, operands=("g",))
    yield Target(nn.Module.__call__, "self.__class__", by=_MODULES, operands=("args[0] if args else None",))
    for cls in (optim.Optimizer, *_subclasses(optim.Optimizer)):
        if isinstance(fn := cls.__dict__.get("step"), FunctionType):
            yield Target(
                fn, "args[0].__class__" if fn.__code__.co_argcount == 0 else "self.__class__", by=_STEPS, operands=()
            )
    yield Target(optim.Optimizer.zero_grad, "self.__class__", by=_ZEROS, operands=())
    yield Target(_BaseDataLoaderIter.__next__, "self.__class__", by=_LOADERS, operands=())
    yield Target(compiler.compile_file, names.number("C compiler", "compile"), operands=())
    yield Target(Cache.get, names.number("cache lookup", "cache"), operands=())
    yield Target(Cache.build, names.number("cache build", "cache"), operands=())


def _subclasses(cls: type) -> Iterator[type]:
    for sub in cls.__subclasses__():
        yield sub
        yield from _subclasses(sub)


_codes: dict[tuple[int, bool], tuple[FunctionType, CodeType, CodeType]] = {}  # function, its code, the wrapper's


class Instrumentation:
    """Wrappers in place; ``remove`` puts the originals back."""

    def __init__(self, with_stack: bool):
        self.functions: list[tuple[FunctionType, CodeType]] = []
        self.attributes: list[tuple[type, str, object]] = []
        self.owned_refcount = engine.owned_refcount
        try:
            for target in list(targets()):
                self._wrap(target, with_stack)
            for cls in list(_subclasses(Node)):
                self._wrap_node(cls)
            engine.measure_owned_refcount()
        except BaseException:
            self.remove()
            raise

    def _wrap(self, target: Target, with_stack: bool) -> None:
        fn, old = target.fn, target.fn.__code__
        kept = _codes.get((id(fn), with_stack))
        if kept is None or kept[0] is not fn or kept[1] is not old:
            kept = _codes[id(fn), with_stack] = fn, old, _code_around(target, with_stack)
        self.functions.append((fn, old))
        fn.__code__ = kept[2]

    def _wrap_node(self, cls: type) -> None:
        made: dict[int, FunctionType] = {}
        for attribute in ("first_order", "backward"):
            if isinstance(cls.__dict__.get(attribute), Unwritten):
                getattr(cls, attribute)  # writes it
            old = cls.__dict__.get(attribute)
            if isinstance(old, staticmethod):
                original = old.__func__
            elif isinstance(old, FunctionType):  # a method: bound to the Node it is called with the same
                original = None
            else:
                continue
            if original is None:
                if id(old) not in made and not any(fn is old for fn, _ in self.functions):
                    made[id(old)] = old
                    self._wrap(Target(old, "self.__class__", by=_NODES, operands=("g",)), False)
                continue
            self.attributes.append((cls, attribute, old))
            setattr(cls, attribute, _bound(original))

    def remove(self) -> None:
        """Everything is as before."""
        engine.owned_refcount = self.owned_refcount  # first: never more than there are
        for fn, code in self.functions:
            fn.__code__ = code
        for cls, attribute, old in self.attributes:
            setattr(cls, attribute, old)
        self.functions, self.attributes = [], []
        renew()  # what became overridable meanwhile
        autocast_mode.renew()


def _bound(original: FunctionType) -> FunctionType:
    """A derivative that is bound to its Node, and records its calls."""
    things = {"_p_original": original, "_p_names": _NODES}
    return FunctionType(_code(_BACKWARD, " " * 4, things, original.__name__), original.__globals__, original.__name__)
