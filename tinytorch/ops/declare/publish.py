"""Publishing: where an operator can be called. ``tinytorch.<name>``, ``Tensor.<name>``, or a namespace's.

@function                            # tinytorch.<name>
@method                              # Tensor.<name>
@both                                # function and method alike
@both(apart=True)                    # ... that refuse arguments each in its own way
@function(namespace="linalg")        # tinytorch.linalg.<name>
@composite                           # function (with out), method and in-place method, made of other operators
alias("abs", "absolute")             # further names: tinytorch.absolute and Tensor.absolute,
alias("sigmoid", "expit", namespace="special")  # ... tinytorch.special.expit
"""

from __future__ import annotations

import functools
import inspect
from types import FunctionType

from ...autograd.formulas import claim
from ...tensor import FUNCTIONS, Tensor
from .arguments import castable, requires, write_out
from .docs import documented
from .op import OPS, Op, names_of
from .public import outermost
from .refusals import guards

MODULE = __name__.partition(".")[0]


def publish(
    fn, *, name: str | None = None, namespace: str = "", method=None, kind: str | None = None, pure: bool = True
):
    """Publishes ``fn`` under its name, and ``method`` (a function; True: ``fn``) as Tensor's. The kernel of that name
    becomes its record; without one, a record of this ``kind`` is made. Returns what is published."""
    name = name or fn.__name__
    fn = outermost(fn, names=not namespace)
    op = record_of(name, namespace, kind, pure)
    names_of(namespace)[name] = op.function = fn
    _name(fn, f"{MODULE}.{namespace}" if namespace else MODULE, name, op)
    fn.__doc__ = documented(fn, op, f"{namespace}.{name}" if namespace else name)
    if method is not None:
        method = fn if method is True else outermost(method)
        if method is not fn:
            _name(method, MODULE, f"Tensor.{name}", op)
            method.__doc__ = documented(method, op, name)
        op.method = method
        setattr(Tensor, name, method)
    return fn


def record_of(name: str, namespace: str = "", kind: str | None = None, pure: bool = True) -> Op:
    """The record of a public operator: that of the kernel of its name, if there is one, else a new one."""
    qualified = f"{namespace}.{name}" if namespace else name
    op = OPS.get(qualified)
    if op is None and namespace and name in OPS and OPS[name].function is None and OPS[name].method is None:
        op = OPS[qualified] = OPS.pop(name)  # a kernel that is public in a namespace alone
        op.namespace = namespace
    op = op or Op(name, kind or "composite", namespace=namespace)
    op.kind, op.pure = kind or op.kind, op.pure and pure
    return op


def attach(fn, name: str, op: Op) -> None:
    """Makes ``fn`` the method ``Tensor.<name>`` of the operator."""
    _name(fn, MODULE, f"Tensor.{name}", op)
    fn.__doc__ = documented(fn, op, f"Tensor.{name}")
    setattr(Tensor, name, fn)


def _name(fn, module: str, qualname: str, op: Op):
    """Gives a function the name under which pickle finds it, and its operator."""
    fn.__module__, fn.__qualname__, fn.__name__ = module, qualname, qualname.rpartition(".")[2]
    fn.op = op
    inner = fn
    while inner is not None:
        if inner.__closure__:  # the code of a def within a function is shared by all functions it makes
            inner.__code__ = inner.__code__.replace(co_name=fn.__name__)
        claim(inner, op.name)
        inner = getattr(inner, "__wrapped__", None)
    if inspect.isfunction(fn):
        guards(fn.__code__, fn)
    return fn


def name_methods() -> None:
    """Gives the methods that the tape and interop.py attached the name under which pickle finds them."""
    for name, member in vars(Tensor).items():
        if isinstance(member, FunctionType) and member.__module__ != MODULE:
            member.__module__, member.__qualname__, member.__name__ = MODULE, f"Tensor.{name}", name


def function(fn=None, **fields):
    """Publishes ``fn`` as ``tinytorch.<name>``, or in a ``namespace``; see ``publish``."""
    return functools.partial(function, **fields) if fn is None else publish(fn, **fields)


def method(fn=None, **fields):
    """Attaches ``fn`` to Tensor under its name."""
    if fn is None:
        return functools.partial(method, **fields)
    fn = outermost(fn)
    op = record_of(fn.__name__, **fields)
    attach(fn, fn.__name__, op)
    op.method = fn
    return fn


def both(fn=None, *, apart: bool = False, **fields):
    """A function and a method alike; ``apart``: whose arguments are judged each by its own name (refusals.py)."""
    if fn is None:
        return functools.partial(both, apart=apart, **fields)
    return publish(fn, method=fn if apart else True, **fields)


def alias(name: str, *others: str, namespace: str = "") -> None:
    """Publishes the operator of the qualified ``name`` under ``others`` too: with its method and what it is in place,
    or in another ``namespace`` its function alone."""
    op = OPS[name]
    op.aliases += tuple([f"{namespace}.{other}" for other in others]) if namespace else others
    for other in others:
        if op.function is not None:
            names_of(namespace)[other] = op.function
        if namespace:
            continue
        for suffix in ("", "_"):
            if hasattr(Tensor, name + suffix):
                setattr(Tensor, other + suffix, getattr(Tensor, name + suffix))
        if f"{name}_" in FUNCTIONS:
            FUNCTIONS[f"{other}_"] = FUNCTIONS[f"{name}_"]
            OPS[f"{name}_"].aliases += (f"{other}_",)


def shown(like):
    """Decorator: shows a function that tells by place from by name with the parameters of ``like``."""

    def show(fn):
        fn.__signature__ = inspect.signature(like)
        return fn

    return show


def same_parameters(fn, like) -> None:
    """Shows ``fn``, which hands its arguments on, with the parameters of ``like``, but ``out``."""
    shown = inspect.signature(like)
    fn.__signature__ = shown.replace(parameters=[p for p in shown.parameters.values() if p.name != "out"])


def composite(fn=None, *, same_dtype: bool = False):
    """Publishes ``fn``, made of other operators, as function (with ``out``, of the result's dtype alone if
    ``same_dtype``) and method, and in place."""
    if fn is None:
        return functools.partial(composite, same_dtype=same_dtype)
    name = fn.__name__

    def rewritten(self, *args, **kwargs):
        # What is recorded saves the old values, which the write is about to replace.
        result = fn(self.clone() if requires(self, *args) else self, *args, **kwargs)
        if not castable(result, self):
            raise RuntimeError(
                f"{name}_: result type {result.dtype.name} can't be cast to the desired output type {self.dtype.name}"
            )
        return self.copy_(result)

    inplace = outermost(fn, "rewritten({passed})", rewritten=rewritten)
    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"In place: {fn.__doc__}"
    both(inplace)
    written = f"write_out(NAME, fn({{passed}}), out, {same_dtype})"
    return both(outermost(fn, written, ("out",), write_out=write_out))
