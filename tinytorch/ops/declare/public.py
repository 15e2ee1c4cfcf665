"""The outermost function of a public operator: it takes NumPy's names of parameters, ``axis=`` for ``dim=`` and
``keepdims=`` for ``keepdim=``, as PyTorch does, and what goes wrong in it is judged (refusals.py)."""

from __future__ import annotations

import functools
import inspect
from types import CodeType, FunctionType

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
    return not inspect.isfunction(fn) or "__wrapped__" in vars(fn) or "op" in vars(fn)


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
    defaults, kept = fn.__defaults__ or (), fn.__kwdefaults__ or {}
    required, at = count - len(defaults), positional.index("dim") if "dim" in positional else count
    renamed = ()
    if names and at >= required - 1 and not (rest or named or "axis" in only):
        renamed = tuple([n for n in _NUMPY_NAMES if n in positional or n in only])
    if (fn.__name__ in UNJUDGED or "refuse" in code.co_names) and not renamed and not more:
        return fn
    if renamed and at < required:  # the error for a dim that is missing is Python's
        defaults = (_LEFT_OUT, *defaults)
    first = count - len(defaults)
    code = _code(positional, first, rest, only, named, more, renamed, first < required, result)
    things |= {"fn": fn, "NAME": fn.__name__, "refuse": refuse}
    if renamed:
        ungiven = dict(zip(positional[first:], defaults)) | kept
        things |= {"LEFT_OUT": _LEFT_OUT, "either": _either, "UNGIVEN": ungiven}
    call = FunctionType(code.replace(co_name=fn.__name__), things, None, defaults)
    functools.update_wrapper(call, fn)
    call.__kwdefaults__ = kept | dict.fromkeys(more) | {_NUMPY_NAMES[n]: _LEFT_OUT for n in renamed}
    if renamed or more:
        call.__signature__ = _shown(fn, more, renamed)
    return call


@functools.cache
def _code(positional, first, rest, only, named, more, renamed, needed, result) -> CodeType:
    """The code of the outermost function of those with such parameters, of which those from ``first`` on have defaults;
    ``needed``: does the last without one get it only here?"""
    added = (*only, *more, *[_NUMPY_NAMES[n] for n in renamed])
    star, stars = "".join([f"*{n}" for n in rest]) or "*" * bool(added), [f"**{n}" for n in named]
    params = [*positional[:first], *[f"{n}=None" for n in positional[first:]], *[star] * bool(star)]
    params += [f"{n}=None" for n in added] + stars
    passed = [*positional, *[f"*{n}" for n in rest], *[f"{n}={n}" for n in only], *stars]
    lines = [_RENAMED.format(name=n, other=_NUMPY_NAMES[n]) for n in renamed]
    if needed:
        lines.append(_NEEDED.format(before=", ".join(positional[:first])))
    source = _SOURCE.format(
        params=", ".join(params), renamed="".join(lines), result=result.format(passed=", ".join(passed))
    )
    made = {}
    exec(code_of(source, f"<eager public: {', '.join((*positional, *only, *more))}>"), made)
    return made["call"].__code__


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
