"""The forms in which operators are declared, and what they share: publishing, arguments, results into ``out``.

    @primitive(input=lambda g, input_shape, dim: ...)
    def name(input, dim): ...         # computes, without history

    @composite
    def name(input): ...              # made of other operators

Elementwise operators have a form of their own, in elementwise.py. See node_class in autograd/node.py for what a formula
may name.
"""

from __future__ import annotations

import functools
import inspect

from ..autograd.modes import current, modes
from ..autograd.node import code_of, link, make_ports, node_class, parameters, saved_versions
from ..autograd.views import FLAG_VIEW, MULTI_OUTPUT, refresh, track, writer_number, wrote
from ..backends.cpu import error, ffi, lib
from ..tensor import FUNCTIONS, Tensor, operator_above, wrap

_KINDS = {bool: 0, int: 1, float: 2}


def function(fn):
    """Publishes ``fn`` as ``tinytorch.<name>``."""
    FUNCTIONS[fn.__name__] = fn = numpy_names(fn)
    return fn


def method(fn):
    """Attaches ``fn`` to Tensor under its name."""
    fn = numpy_names(fn)
    setattr(Tensor, fn.__name__, fn)
    return fn


def both(fn):
    """A function and a method alike."""
    return method(function(fn))


_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}
_LEFT_OUT = object()
_WITH_NUMPY_NAMES = """
def {name}({params}):
    if {given}:
        {renamed}
    {need}
    return fn({passed})
"""


def numpy_names(fn):
    """``fn``, whose parameters ``dim`` and ``keepdim`` may be given as ``axis=`` and ``keepdims=`` too, as PyTorch
    allows. A function is left as it is where it has neither, or has ``axis`` itself (what every training step runs: the
    names cost it less so), or takes a parameter without default after ``dim``; and so are views."""
    if not inspect.isfunction(fn) or hasattr(fn, "__wrapped__") or hasattr(fn, "node"):
        return fn
    params = inspect.signature(fn).parameters.values()
    names = [p.name for p in params if p.name in _NUMPY_NAMES]
    if not names or any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or p.name == "axis" for p in params):
        return fn
    plain = [p for p in params if p.kind is p.POSITIONAL_OR_KEYWORD]
    first = [p.name for p in plain].index("dim") if "dim" in [p.name for p in plain] else len(plain)
    if any(p.default is p.empty for p in plain[first + 1:]):
        return fn
    defaults = {p.name: _LEFT_OUT if p.name == "dim" and p.default is p.empty else p.default for p in params}
    shown = [p.name if defaults[p.name] is p.empty else f"{p.name}=defaults['{p.name}']" for p in plain]
    only = [f"{p.name}=defaults['{p.name}']" for p in params if p.kind is p.KEYWORD_ONLY]
    only += [f"{_NUMPY_NAMES[n]}=LEFT_OUT" for n in names]
    passed = [p.name if p in plain else f"{p.name}={p.name}" for p in params]
    given = " or ".join(f"{_NUMPY_NAMES[n]} is not LEFT_OUT" for n in names)
    renamed = "\n        ".join(f"{n} = either({fn.__name__!r}, {n!r}, {n}, defaults[{n!r}], {_NUMPY_NAMES[n]})"
                                for n in names)
    need = "pass"  # the error for a dim that is missing
    if defaults.get("dim") is _LEFT_OUT:
        need = f"if dim is LEFT_OUT: return fn({', '.join(p.name for p in plain[:first])})"
    source = _WITH_NUMPY_NAMES.format(name=fn.__name__, params=", ".join([*shown, "*", *only]), given=given,
                                      renamed=renamed, passed=", ".join(passed), need=need)
    namespace = {"fn": fn, "defaults": defaults, "LEFT_OUT": _LEFT_OUT, "either": _either}
    exec(code_of(source, f"<eager names of {fn.__name__}>"), namespace)
    return functools.wraps(fn)(namespace[fn.__name__])


def _either(op: str, name: str, given, default, other):
    """A parameter's value, given under its own name or NumPy's."""
    if other is _LEFT_OUT:
        return given
    if given is not default:
        raise TypeError(f"{op}(): got values for '{name}' and for '{_NUMPY_NAMES[name]}', which are the same argument")
    return other


def dim_or_axis(op: str, dim, axis):
    """A dimension, or dimensions, given under either name; TypeError for both."""
    if axis is None:
        return dim
    return _either(op, "dim", None if dim == () else dim, None, axis)


def composite(fn):
    """Publishes ``fn``, made of other operators, as function (with ``out``), method and in-place method."""

    fn = numpy_names(fn)

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


def is_number(x) -> bool:
    """Is ``x`` a Python or NumPy number?"""
    try:
        scalar_kind(x)
    except TypeError:
        return False
    return True


# Operators with a forward function of their own.


def primitive(*, name: str | None = None, title: str | None = None, view: bool = False,
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
