"""Publishing: where an operator can be called. ``tinytorch.<name>``, ``Tensor.<name>``, or a namespace's.

    @function                            # tinytorch.<name>
    @method                              # Tensor.<name>
    @both                                # function and method alike
    @function(namespace="linalg")        # tinytorch.linalg.<name>
    @composite                           # function (with out), method and in-place method, made of other operators
"""

from __future__ import annotations

import functools

from ...autograd.formulas import CODES
from ...tensor import Tensor
from .arguments import castable, deliver, numpy_names, requires
from .op import OPS, Op, names_of

MODULE = __name__.partition(".")[0]


def publish(fn, *, name: str | None = None, namespace: str = "", function: bool = True, method=None,
            kind: str = "composite"):
    """Publishes ``fn`` under its name, and ``method`` (a function; True: ``fn``) as Tensor's. The kernel of that name
    becomes its record; without one, a record of this ``kind`` is made. Returns what is published."""
    name = name or fn.__name__
    fn = numpy_names(fn)
    qualified = f"{namespace}.{name}" if namespace else name
    op = getattr(fn, "op", None)
    if op is None or op.qualified != qualified:
        op = OPS.get(qualified) or Op(name, kind, namespace=namespace)
    if function:
        names_of(namespace)[name] = op.function = fn
    _name(fn, f"{MODULE}.{namespace}" if namespace else MODULE, name, op)
    if method is not None:
        op.method = attach(fn if method is True else numpy_names(method), name, op, shared=method is True)
    return fn


def attach(fn, name: str, op: Op | None = None, shared: bool = False):
    """Makes ``fn`` the method ``Tensor.<name>``. A function that is published too keeps its name as such."""
    if not shared:
        _name(fn, MODULE, f"Tensor.{name}", op or fn.op)
    setattr(Tensor, name, fn)
    return fn


def _name(fn, module: str, qualname: str, op: Op) -> None:
    """Gives a function the name under which pickle finds it, and its operator."""
    fn.__module__, fn.__qualname__, fn.__name__ = module, qualname, qualname.rpartition(".")[2]
    fn.op = op
    inner = fn
    while inner is not None:
        if inner.__closure__:  # the code of a def within a function is shared by all functions it makes
            inner.__code__ = inner.__code__.replace(co_name=fn.__name__)
        CODES[inner.__code__] = op.name
        inner = getattr(inner, "__wrapped__", None)


def function(fn=None, *, namespace: str = ""):
    """Publishes ``fn`` as ``tinytorch.<name>``, or in a namespace."""
    if fn is None:
        return functools.partial(function, namespace=namespace)
    return publish(fn, namespace=namespace)


def method(fn):
    """Attaches ``fn`` to Tensor under its name."""
    fn = numpy_names(fn)
    op = OPS.get(fn.__name__) or Op(fn.__name__, "composite")
    op.method = attach(fn, fn.__name__, op)
    return fn


def both(fn):
    """A function and a method alike."""
    return publish(fn, method=True)


def alias(name: str, *others: str, namespace: str = "") -> None:
    """Publishes the operator ``name`` under ``others`` too, with its method and its in-place method."""
    functions = names_of(namespace)
    OPS[f"{namespace}.{name}" if namespace else name].aliases += others
    for other in others:
        if name in functions:
            functions[other] = functions[name]
        for suffix in ("", "_"):
            if not namespace and hasattr(Tensor, name + suffix):
                setattr(Tensor, other + suffix, getattr(Tensor, name + suffix))


def composite(fn):
    """Publishes ``fn``, made of other operators, as function (with ``out``), method and in-place method."""
    fn = numpy_names(fn)
    name = fn.__name__

    @functools.wraps(fn)
    def public(*args, out=None, **kwargs):
        return deliver(name, fn(*args, **kwargs), out)

    def inplace(self, *args, **kwargs):
        # What is recorded saves the old values, which the write is about to replace.
        result = fn(self.clone() if requires(self, *args) else self, *args, **kwargs)
        if not castable(result, self):
            raise RuntimeError(f"{name}_: result type {result.dtype.name} can't be cast to the desired output type "
                               f"{self.dtype.name}")
        return self.copy_(result)

    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"In place: {fn.__doc__}"
    method(inplace)
    return both(public)
