"""The lattice of kinds, the abstract values of Note [Seen to be pure]; the operators among functions."""

from __future__ import annotations

import ast
import functools
import sys
import types
from typing import NamedTuple

from ... import devices, dtypes
from ...layouts import layout, memory_format
from ...tensor import FUNCTIONS, Tensor

PACKAGE = __name__.split(".")[0]

# Kinds, next to the classes below.
DATA = "data"  # tensors, and sequences made in the call that hold nothing but data and plain things
PLAIN = "plain"  # an immutable object that depends on shapes and constants alone

# What may be read of a tensor, and called: plain; and what is data, but no operator.
ABOUT = frozenset(("shape", "ndim", "dtype", "device", "itemsize", "nbytes", "is_cuda", "is_cpu"))
ASKS = frozenset(
    (
        "size",
        "stride",
        "dim",
        "ndimension",
        "numel",
        "nelement",
        "element_size",
        "is_contiguous",
        "is_floating_point",
        "is_complex",
        "is_signed",
        "get_device",
    )
)
PARTS = frozenset(("T", "mT", "H", "mH", "data", "values", "indices"))

PLAIN_TYPES = frozenset(
    (
        int,
        float,
        complex,
        bool,
        str,
        bytes,
        types.NoneType,
        types.EllipsisType,
        slice,
        dtypes.dtype,
        dtypes.Size,
        devices.device,
        layout,
        memory_format,
    )
)


class Unproven(Exception):
    """Why a function is not seen to be pure."""


class Known:
    """This very object."""

    __slots__ = ("value",)
    __hash__ = None

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):  # not the objects' own ==, which may be anything
        return type(other) is Known and other.value is self.value


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
    """A function or lambda defined in an interpreted function."""

    def __init__(self, node, scope: Scope, defaults: dict):
        self.node, self.scope, self.defaults = node, scope, defaults


class Scope:
    """The names of an interpreted function: its own, then those of the functions around it."""

    def __init__(self, names: dict, node=None, fn: types.FunctionType | None = None, around: Scope | None = None):
        self.names, self.fn, self.around = names, fn, around
        self.own = bound_names(node) if node else frozenset(names)
        self.loops = 0  # within which an assignment may or may not be the last one


class Rest(NamedTuple):
    """The last of a call's arguments: any number of that kind."""

    kind: object


def is_plain(kind) -> bool:
    """Is it an immutable thing, all of whose parts are?"""
    if type(kind) is Known:
        value = kind.value
        return type(value) in PLAIN_TYPES or (type(value) is tuple and all(is_plain(Known(v)) for v in value))
    return kind is PLAIN or (type(kind) is Items and all(map(is_plain, kind.kinds)))


def join(a, b):
    """A kind that both are of; None where there is none."""
    if a is b or (type(a) is type(b) and type(a) in (Known, Bound) and a == b):
        return a
    if type(a) is type(b) is Items and len(a.kinds) == len(b.kinds):
        return Items(tuple(map(join, a.kinds, b.kinds)))
    if is_plain(a) and is_plain(b):
        return PLAIN
    return DATA if is_data(a) and is_data(b) else None


def is_data(kind) -> bool:
    """May it stand for data?"""
    return kind is DATA or is_plain(kind) or (type(kind) is Items and all(map(is_data, kind.kinds)))


def spelled(value) -> str:
    return getattr(value, "__qualname__", None) or f"an object of type {type(value).__name__}"


def is_tensor(x) -> bool:
    """Is ``x`` a tensor with tinytorch's own operators: a Tensor, a Parameter or a Buffer?"""
    kind = type(x)
    return kind is Tensor or (issubclass(kind, Tensor) and kind.__module__ == f"{PACKAGE}.nn.parameter")


# Operators.


@functools.cache
def operators() -> tuple[dict[int, object], frozenset[str]]:
    """The functions that are pure operators, by id, and the names of the methods that are."""
    functional = vars(sys.modules[f"{PACKAGE}.nn.functional"])
    functions = [fn for fn in (*FUNCTIONS.values(), *functional.values(), *vars(Tensor).values()) if _is_operator(fn)]
    methods = frozenset(name for name, fn in vars(Tensor).items() if _is_operator(fn))
    return {id(fn): fn for fn in functions}, methods


def _is_operator(fn) -> bool:
    """Is it an operator's, whose result depends on its arguments alone?"""
    return isinstance(fn, types.FunctionType) and hasattr(fn, "op") and fn.op.pure


# Names.


def bound_names(node) -> frozenset[str]:
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


def either(a: dict, b: dict) -> dict:
    """The names after one way or another."""
    return a | b | {name: join(a[name], b[name]) for name in a.keys() & b.keys()}
