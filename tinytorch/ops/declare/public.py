"""The outermost function of a public operator: it takes NumPy's names of parameters, ``axis=`` for ``dim=`` and
``keepdims=`` for ``keepdim=``, as PyTorch does, and what goes wrong in it is judged (refusals.py)."""

from __future__ import annotations

import functools
import inspect

from ...generated_code import code_of
from .refusals import refuse

_NUMPY_NAMES = {"dim": "axis", "keepdim": "keepdims"}
_UNSET = {"dim": None, "keepdim": False}  # the defaults that signatures show
_LEFT_OUT = object()
_SOURCE = """
def call({params}):{renamed}
    try:
        return {result}
    except Exception as exc:
        refuse(exc)
        raise
"""
_RENAMED = """
    if {other} is not LEFT_OUT:
        {name} = either(NAME, {name!r}, {name}, UNGIVEN[{name!r}], {other})"""
_NEEDED = """
    if dim is LEFT_OUT:
        return fn({before})"""

# Functions that a training step runs, for which a further frame would show: others of its kind have refuse() in their
# own bodies, these check their arguments themselves.
UNJUDGED = frozenset(
    """
    tensor as_tensor from_numpy zeros ones full empty rand randn rand_like randn_like randint new_empty new_zeros
    new_ones to float double half bfloat16 int long bool type_as cpu cuda is_contiguous
    """.split()  # noqa: SIM905 (a list of words)
)


def is_outermost(fn) -> bool:
    """Is ``fn`` as it should be called? So are generated functions, those made here, and classes."""
    return not inspect.isfunction(fn) or hasattr(fn, "__wrapped__") or hasattr(fn, "op")


def outermost(fn, result: str = "fn({passed})", more: tuple[str, ...] = (), names: bool = True, **things):
    """The outermost function of ``fn``; ``fn`` itself where it needs none.

    ``result`` is what it gives, an expression of ``fn``, its own parameters, and ``things``; ``{passed}`` stands for
    the arguments. ``more``: keyword parameters that it has beside those of ``fn``, None unless given. ``names``: may it
    take NumPy's names? It does not where ``fn`` has ``axis`` itself, or a parameter without default after ``dim``.
    """
    if is_outermost(fn):
        return fn
    code = fn.__code__
    count, end = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    positional, only = code.co_varnames[:count], code.co_varnames[count:end]
    rest = code.co_varnames[end : end + (code.co_flags & inspect.CO_VARARGS > 0)]
    named = code.co_varnames[end + len(rest) :][: code.co_flags & inspect.CO_VARKEYWORDS > 0]
    defaults, required = fn.__defaults__ or (), count - len(fn.__defaults__ or ())
    renamed = (
        [] if not names or rest or named or "axis" in only else [n for n in _NUMPY_NAMES if n in positional + only]
    )
    at = positional.index("dim") if "dim" in positional else count
    if at < required - 1:
        renamed = []
    if (fn.__name__ in UNJUDGED or "refuse" in code.co_names) and not renamed and not more:
        return fn
    needed = ""
    if renamed and at < required:  # the error for a dim that is missing is Python's
        defaults, needed = (_LEFT_OUT, *defaults), _NEEDED.format(before=", ".join(positional[:at]))
    first = len(positional) - len(defaults)
    others = [_NUMPY_NAMES[n] for n in renamed]
    after = [f"*{rest[0]}" if rest else "*"] if rest or only or more or others else []
    given = [f"{n}=None" if k >= first else n for k, n in enumerate(positional)]
    source = _SOURCE.format(
        params=", ".join([*given, *after, *[f"{n}=None" for n in (*only, *more, *others)], *[f"**{n}" for n in named]]),
        renamed="".join(_RENAMED.format(name=n, other=_NUMPY_NAMES[n]) for n in renamed) + needed,
        result=result.format(
            passed=", ".join(
                [*positional, *[f"*{n}" for n in rest], *[f"{n}={n}" for n in only], *[f"**{n}" for n in named]]
            )
        ),
    )
    kept = fn.__kwdefaults__ or {}
    ungiven = dict(zip(positional[first:], defaults)) | kept
    things |= {"fn": fn, "LEFT_OUT": _LEFT_OUT, "either": _either, "UNGIVEN": ungiven, "NAME": fn.__name__}
    things["refuse"] = refuse
    exec(code_of(source, f"<eager public: {', '.join((*positional, *only, *more))}>"), things)
    call = functools.wraps(fn)(things["call"])
    call.__code__ = call.__code__.replace(co_name=fn.__name__)
    call.__defaults__ = defaults
    call.__kwdefaults__ = (
        {n: kept[n] for n in only if n in kept} | dict.fromkeys(more) | dict.fromkeys(others, _LEFT_OUT)
    )
    if renamed or more:
        call.__signature__ = _shown(fn, more, renamed)
    return call


def _shown(fn, more, renamed) -> inspect.Signature:
    """The signature of ``fn`` with keyword parameters that ``outermost`` adds."""
    signature = inspect.signature(fn)
    added = dict.fromkeys(more) | {_NUMPY_NAMES[n]: _UNSET[n] for n in renamed}
    only = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=value) for n, value in added.items()]
    return signature.replace(parameters=[*signature.parameters.values(), *only])


def _either(op: str, name: str, given, ungiven, other):
    """A parameter's value, given under its own name or NumPy's; ``ungiven`` is its default."""
    if given is not ungiven:
        raise TypeError(f"{op}(): got values for '{name}' and for '{_NUMPY_NAMES[name]}', which are the same argument")
    return other


def dim_or_axis(op: str, dim, axis):
    """A dimension, or dimensions, given under either name; TypeError for both."""
    if axis is None:
        return dim
    if dim is not None and dim != ():
        raise TypeError(f"{op}(): got values for 'dim' and for 'axis', which are the same argument")
    return axis
