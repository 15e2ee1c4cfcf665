"""Publishing: where an operator can be called. ``tinytorch.<name>``, ``Tensor.<name>``, or a namespace's.

@function                            # tinytorch.<name>
@method                              # Tensor.<name>
@both                                # function and method alike
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
from ...tensor import Tensor
from .arguments import castable, numpy_names, requires, write_out
from .docs import documented
from .op import OPS, Op, names_of
from .refusals import named, positional, refuse

MODULE = __name__.partition(".")[0]


# Plain functions that a training step runs: a further frame would show. They see to their arguments themselves.
HOT = frozenset(
    """
    add sub div pow where clamp lerp addcmul addcdiv masked_fill masked_fill_ softmax log_softmax matmul mm bmm mv
    dot addmm baddbmm linear embedding layer_norm cross_entropy nll_loss mse_loss dropout relu gelu silu elu
    leaky_relu flatten clone contiguous to float double half bfloat16 int long bool type_as cpu cuda detach tensor
    as_tensor from_numpy zeros ones full empty zeros_like ones_like full_like empty_like new_tensor new_empty
    new_full new_zeros new_ones rand randn randint rand_like randn_like arange copy_ fill_ zero_ bernoulli_
    normal_ uniform_ gather index_select max min argmax argmin amax amin any all square add_ sub_ subtract_ div_
    divide_ true_divide_ clamp_ clip_ is_contiguous
    """.split()  # noqa: SIM905 (a list of words)
)


def checked(fn):
    """``fn``, a public function, so that an argument of the wrong type is TypeError. What is HOT, generated or wrapped
    already is left as it is."""
    if not inspect.isfunction(fn) or hasattr(fn, "__wrapped__") or hasattr(fn, "op") or fn.__name__ in HOT:
        return fn
    names = positional(fn)

    @functools.wraps(fn)
    def call(*args, **kwargs):
        try:
            return fn(*args, **kwargs)
        except Exception as exc:
            refuse(fn.__name__, exc, *named(names, args, kwargs))
            raise

    return call


def publish(
    fn, *, name: str | None = None, namespace: str = "", method=None, kind: str | None = None, pure: bool = True
):
    """Publishes ``fn`` under its name, and ``method`` (a function; True: ``fn``) as Tensor's. The kernel of that name
    becomes its record; without one, a record of this ``kind`` is made. Returns what is published."""
    name = name or fn.__name__
    fn = checked(fn if namespace else numpy_names(fn))
    op = record_of(name, namespace, kind, pure)
    names_of(namespace)[name] = op.function = fn
    _name(fn, f"{MODULE}.{namespace}" if namespace else MODULE, name, op)
    fn.__doc__ = documented(fn, op, f"{namespace}.{name}" if namespace else name)
    if method is not None:
        method = fn if method is True else checked(numpy_names(method))
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
    fn = checked(numpy_names(fn))
    op = record_of(fn.__name__, **fields)
    attach(fn, fn.__name__, op)
    op.method = fn
    return fn


def both(fn=None, **fields):
    """A function and a method alike."""
    return functools.partial(both, **fields) if fn is None else publish(fn, method=True, **fields)


def alias(name: str, *others: str, namespace: str = "") -> None:
    """Publishes the operator of the qualified ``name`` under ``others`` too: with its method and its in-place method,
    or in another ``namespace`` its function alone."""
    op = OPS[name]
    op.aliases += tuple([f"{namespace}.{other}" for other in others]) if namespace else others
    for other in others:
        if op.function is not None:
            names_of(namespace)[other] = op.function
        for suffix in ("", "_"):
            if not namespace and hasattr(Tensor, name + suffix):
                setattr(Tensor, other + suffix, getattr(Tensor, name + suffix))


def same_parameters(fn, like, out: bool = False) -> None:
    """Shows ``fn``, which hands its arguments on, with the parameters of ``like``, with or without ``out``."""
    shown = inspect.signature(like)
    params = [p for p in shown.parameters.values() if p.name != "out"]
    if out:
        params.append(inspect.Parameter("out", inspect.Parameter.KEYWORD_ONLY, default=None))
    fn.__signature__ = shown.replace(parameters=params)


def composite(fn):
    """Publishes ``fn``, made of other operators, as function (with ``out``), method and in-place method."""
    fn = numpy_names(fn)
    name = fn.__name__

    names = positional(fn)

    @functools.wraps(fn)
    def public(*args, out=None, **kwargs):
        try:
            return write_out(name, fn(*args, **kwargs), out)
        except Exception as exc:
            refuse(name, exc, *named(names, args, kwargs))
            raise

    def inplace(self, *args, **kwargs):
        # What is recorded saves the old values, which the write is about to replace.
        result = fn(self.clone() if requires(self, *args) else self, *args, **kwargs)
        if not castable(result, self):
            raise RuntimeError(
                f"{name}_: result type {result.dtype.name} can't be cast to the desired output type {self.dtype.name}"
            )
        return self.copy_(result)

    inplace.__name__ = inplace.__qualname__ = name + "_"
    inplace.__doc__ = f"In place: {fn.__doc__}"
    method(inplace)
    same_parameters(inplace, fn)
    same_parameters(public, fn, out=True)
    return both(public)
