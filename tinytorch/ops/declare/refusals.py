"""What a call is refused for, found out after something went wrong in it: an argument of the wrong type comes before
all else, as in PyTorch, whose parser looks at every argument before an operator sees any. Nothing here runs while all
is right.

    try:
        ...                 # what a public function does
    except Exception as exc:
        refuse(exc)         # TypeError, if one of the function's own arguments is none of the types in kinds.py
        raise

A public function has this around its body, or in the wrapper that public.py makes. Its parameters keep what they were
given: who judges reads them in the frame.
"""

from __future__ import annotations

import __future__

import functools
import inspect
import itertools
import operator
import re
from numbers import Integral
from types import CodeType, FunctionType

from ... import return_types
from ...autograd.views import check_inplace
from ...backends.cpu import lib
from ...devices import device
from ...dtypes import dtype
from ...generator import Generator
from ...layouts import layout, memory_format
from ...tensor import Tensor
from .kinds import FORMS, keys_of, kind_of
from .op import NAMESPACES

#: NumPy's errors for arrays.
AN_ARRAY = re.compile("truth value of an|could not be broadcast together")
NUMPYS = re.compile(f"{AN_ARRAY.pattern}|invalid literal|could not convert")
_published: dict[int, tuple[CodeType, FunctionType]] = {}  # by id of the code, which is kept alive


def guards(code: CodeType, fn: FunctionType) -> None:
    """``refuse`` judges what goes wrong in ``code`` as a call of the public function ``fn``."""
    _published[id(code)] = code, fn


def refuse(exc: Exception) -> None:
    """Raises TypeError where ``exc``, which the caller has caught, came of a call of the caller with an argument of the
    wrong type; else its caller raises ``exc`` again. Nobody holds the new exception, whose traceback holds frames."""
    if isinstance(exc, TypeError):
        return
    frame = exc.__traceback__.tb_frame
    code, fn = _published.get(id(frame.f_code), (None, None))
    if fn is None:
        return
    found = frame.f_locals
    given = arguments(fn, code, found)
    if isinstance(found, dict):  # before Python 3.13 a copy, which the frame keeps, and in which is ``exc``
        found.clear()
    if given is None or values_first(fn, exc):
        return
    name = fn.__name__ if fn.op.namespace in ("", "nn.functional") else f"{fn.op.namespace}.{fn.__name__}"
    text = judged(fn, given)
    if text is None and isinstance(exc, OverflowError) and too_far(given):
        raise IndexError(f"{name}(): Dimension out of range, got {given['dim']}") from None
    if text is None and isinstance(exc, AttributeError):
        text = asked(exc, given)
    if text is None and isinstance(exc, ValueError) and AN_ARRAY.search(str(exc)):
        text = f"an argument must not be an array: {exc}"
    if text is not None:
        raise TypeError(f"{name}(): {text}") from None
    written = next(iter(given.values()), None)
    if (
        name.endswith("_") and fn.op.kind != "query" and isinstance(written, Tensor)
    ):  # a leaf, say: before the operator sees any argument
        check_inplace(written, name)


def refuse_call(exc: Exception, fn, args: tuple, kwargs: dict) -> None:
    """Raises TypeError where ``exc`` came of ``fn(*args, **kwargs)`` with an argument of the wrong type."""
    if isinstance(exc, TypeError):
        return
    text = None
    if hasattr(fn, "op"):
        if values_first(fn, exc) or (in_python(fn) and isinstance(exc, NotImplementedError)):
            return
        try:
            given = inspect.signature(fn).bind(*args, **kwargs).arguments
        except TypeError as unbound:
            raise TypeError(f"{fn.__name__}(): {unbound}") from None
        text = judged(fn, given)
    if text is None and isinstance(exc, AttributeError):
        text = asked(exc, {str(place): a for place, a in (*enumerate(args), *kwargs.items())})
    if text is not None:
        raise TypeError(f"{fn.__name__}(): {text}") from None


def values_first(fn: FunctionType, exc: Exception) -> bool:
    """Is it the ValueError of a function that PyTorch has in Python, which looks at values before its parser sees any
    argument?"""
    passed_on = fn.__name__ == "rms_norm"  # as it is
    return in_python(fn) and not passed_on and isinstance(exc, ValueError) and not NUMPYS.search(str(exc))


#: Functions of nn.functional that PyTorch has in C++, whose parser sees every argument first.
IN_CPP = frozenset(
    """
    avg_pool1d avg_pool2d avg_pool3d adaptive_avg_pool1d bilinear celu_ channel_shuffle conv1d conv2d conv3d
    conv_transpose1d conv_transpose2d conv_transpose3d cosine_similarity elu_ gelu hardshrink hardtanh_ leaky_relu_
    linear logsigmoid one_hot pairwise_distance pdist pixel_shuffle pixel_unshuffle prelu relu_ rrelu_
    scaled_dot_product_attention selu_ softplus softshrink threshold_
    """.split()  # noqa: SIM905 (a list of words)
)


def in_python(fn: FunctionType) -> bool:
    """Is it a function that PyTorch has in Python?"""
    return of_functional(fn) or fn.op.namespace == "signal.windows"


def of_functional(fn: FunctionType) -> bool:
    """Is it a function of nn.functional that PyTorch has in Python?"""
    name = fn.__name__
    return NAMESPACES.get("nn.functional", {}).get(name) is fn and name not in IN_CPP


def arguments(fn: FunctionType, code: CodeType, found: dict) -> dict | None:
    """The arguments of a call of ``fn`` that are not their parameters' defaults, of what was ``found`` in its frame;
    None if there is a parameter without value, or too many."""
    names, defaults = iter(code.co_varnames), fn.__kwdefaults__ or {}
    positional = [found[next(names)] for _ in range(code.co_argcount)]
    only = {name: found[name] for name in itertools.islice(names, code.co_kwonlyargcount)}
    only = {name: a for name, a in only.items() if name not in defaults or a is not defaults[name]}
    positional += found[next(names)] if code.co_flags & inspect.CO_VARARGS else ()
    only |= found[next(names)] if code.co_flags & inspect.CO_VARKEYWORDS else {}
    signature = inspect.signature(fn)
    try:
        given = signature.bind(*positional, **only).arguments
    except TypeError:
        return None
    left_out = inspect.Parameter.empty  # the default where None is no argument
    given = {name: a for name, a in given.items() if a is not signature.parameters[name].default and a is not left_out}
    for alias, name in (("axis", "dim"), ("keepdims", "keepdim")):  # which has been given its alias's value
        if alias in given:
            given.pop(name, None)
    return given


def judged(fn: FunctionType, given: dict) -> str | None:
    """What is wrong with the types of the arguments of a call; None if nothing is."""
    names = list(inspect.signature(fn).parameters)
    found = [misfit(form, given, names) for form in declared(fn)]
    if None in found:
        return None
    if len(found) == 1:
        return found[0]
    return f"received an invalid combination of arguments: ({', '.join(type(a).__name__ for a in given.values())})"


@functools.cache
def declared(fn: FunctionType) -> list[dict[str, tuple]]:
    """The forms of a public function: for each parameter, by name, (its kind as in inspect, its type)."""
    op = fn.op
    keys = keys_of(fn, fn.__name__, "Tensor" if fn.__qualname__.startswith("Tensor.") else op.namespace)
    entry = next((key for key in keys if key in FORMS), None)
    if entry is None:
        shown = inspect.signature(fn).parameters.values()
        forms = [[(p, asked_of(p, keys, of_functional(fn))) for p in shown]]
    else:
        forms = [[(p, plain(p.annotation)) for p in parsed(params)] for params, _ in FORMS[entry]]
    several = getattr(return_types, op.qualified.replace(".", "_"), None)
    if several and not entry:
        out = f"tuple[{', '.join(['Tensor'] * len(several._fields))}] | None"
        forms = [[(p, out if p.name == "out" else kind) for p, kind in forms[0]]]
    return [{p.name: (p.kind, kind) for p, kind in form} for form in forms]


# What PyTorch asks of an argument where that is more, or less, than a stub should promise; None: any will do, as in
# functions that it has in Python.
_ASKED = {
    "reduction": None,
    "tensordot.dims": None,
    "normalize.p": None,
    "interpolate.mode": None,
    "interpolate.scale_factor": None,
    "upsample.mode": None,
    "upsample.scale_factor": None,
    "edge_order": "int",
    "window_length": "int",
    "upscale_factor": "int",
    "downscale_factor": "int",
    "mvlgamma.p": "int",
    "unfold_copy.size": "int",
    "unfold_copy.step": "int",
    "split_copy.split_size": "_int",
    "pca_lowrank.q": None,
    "pca_lowrank.niter": None,
    "segment_reduce.axis": "int",
    "nn.functional.fold.output_size": None,
    "svd_lowrank.niter": None,
    "svd_lowrank.q": None,
    "output_ratio": None,
    "hsplit.indices_or_sections": "int | Sequence[_int]",
    "vsplit.indices_or_sections": "int | Sequence[_int]",
    "dsplit.indices_or_sections": "int | Sequence[_int]",
    "Tensor.broadcast_to.size": "_int | Sequence[_int]",
    "broadcast_to.size": "Sequence[_int]",
    "local_response_norm.alpha": None,
    "local_response_norm.beta": None,
    "local_response_norm.k": None,
    **{
        f"nn.functional.{fn}.{name}": None
        for fn in ("unfold", "fold")
        for name in ("kernel_size", "dilation", "stride")
    },
    "nn.functional.unfold.padding": None,
    "nn.functional.fold.padding": None,
    "lp_pool1d.norm_type": None,
    "lp_pool2d.norm_type": None,
    "lp_pool3d.norm_type": None,
    "normalize.eps": None,
    "diagonal.offset": "int",
    "split.split_size": "python int | Tensor | Sequence[_int]",
    "split.split_size_or_sections": "python int | Tensor | Sequence[_int]",
    "count_nonzero.dim": "int | Sequence[_int] | None",
    "Tensor.count_nonzero.dim": "_int | Sequence[_int] | None",
    "local_response_norm.size": None,
    "any.dim": "int | Sequence[_int] | None",
    "all.dim": "int | Sequence[_int] | None",
    "polygamma.n": "int",
    "one_hot.num_classes": "int",
    "Tensor.unflatten.sizes": None,
    "unflatten.sizes": "Sequence[_int]",
    "stft.center": None,
    "view_copy.size": "Sequence[_int] | _dtype",
    "tensor_split.indices_or_sections": "_int | Sequence[_int] | Tensor",
    "margin_ranking_loss.margin": None,
    "nuclear_norm.dim": None,
    "nn.functional.normalize.dim": "_int | Sequence[_int]",
    "linalg.vecdot.dim": "int",
    "signal.windows.exponential.center": None,
    "stft.align_to_window": None,
    "embedding_bag.padding_idx": "int | None",
    "gradient.dim": "int | Sequence[_int] | None",
    "linear_cross_entropy.linear_bias": None,
    "narrow_copy.start": "_int",
    "cov.correction": "int",
    "squeeze_copy.dim": "int | Sequence[_int]",
    **dict.fromkeys(  # a 64-bit number, where others take what is symbolic, too
        """
        combinations.r diff.n round.decimals round_.decimals rot90.k diag.diagonal diag_embed.offset diagflat.offset
        diagonal_scatter.offset diagonal_copy.offset matrix_power.n norm_except_dim.pow swapaxes.axis0 swapaxes.axis1
        tril_indices.row tril_indices.col tril_indices.offset triu_indices.row triu_indices.col triu_indices.offset
        histc.bins stft.n_fft istft.n_fft group_norm.num_groups conv_tbc.pad tensorinv.ind fftfreq.n rfftfreq.n
        linspace.steps logspace.steps nonzero_static.fill_value
        """.split(),  # noqa: SIM905 (a list of words)
        "int",
    ),
    **dict.fromkeys(  # of several sizes or dimensions the first alone must be no bool
        """
        count_nonzero.rest expand.rest flip.rest permute.rest repeat.rest reshape.rest resize.rest squeeze.rest
        sum_to_size.rest tile.rest view.rest
        """.split(),  # noqa: SIM905 (a list of words)
        "_int | _bool",
    ),
    **{f"{fn}.{name}": "int | None" for fn in ("stft", "istft") for name in ("hop_length", "win_length", "length")},
    "scaled_dot_product_attention.is_causal": "_bool",
    "scaled_dot_product_attention.enable_gqa": "_bool",
    "quantile.dim": "int | None",
    "nanquantile.dim": "int | None",
    "affine_grid.size": None,
    "chunk.chunks": "int",
    "unsafe_chunk.chunks": "int",
    "unsafe_split.split_size": "_int",
    "index_put.indices": "Sequence[Tensor]",
    "roll.dims": "_int | Sequence[_int] | None",
    "Tensor.squeeze.dim": "_int | Sequence[_int] | None",
    "Tensor.squeeze_.dim": "_int | Sequence[_int] | None",
    "squeeze.dim": "int | Sequence[_int] | None",
    "triplet_margin_loss.margin": None,
    "triplet_margin_with_distance_loss.margin": None,
}


def asked_of(p: inspect.Parameter, keys: list[str], functional: bool) -> str | None:
    """The type that an argument must have; None where any will do. nn.functional is written in Python: any object is a
    flag there, and what is no reduction, ValueError."""
    name = "dim" if p.name == "axis" and f"{keys[-1]}.axis" not in _ASKED else p.name
    for entry in (f"{keys[0]}.{name}", f"{keys[-1]}.{name}", name):
        if entry in _ASKED:
            return _ASKED[entry]
    kind = kind_of(p, keys)[0]
    if functional and kind in ("_bool", "_bool | None") and p.name not in ("training", "use_input_stats"):
        return None
    return plain(kind) if "dim" in name else kind


def plain(kind: str | None) -> str | None:
    """One integer alone is no other object that is an index."""
    return kind.replace("_int", "int", 1) if kind in ("_int", "_int | None") else kind


def parsed(params: str) -> list[inspect.Parameter]:
    """The parameters of a form in FORMS."""
    namespace: dict = {}
    source = f"def form({params.replace('{t}', 'input: Tensor')}): pass"
    exec(compile(source, "<form>", "exec", flags=__future__.annotations.compiler_flag), namespace)
    return list(inspect.signature(namespace["form"]).parameters.values())


def misfit(form: dict, given: dict, names: list[str]) -> str | None:
    """Which of the given arguments does not fit a form of a function whose parameters are ``names``; None if all do."""
    positional = [name for name, (kind, _) in form.items() if kind in (_EITHER, _FIRST)]
    by_place = all(names.index(name) < len(positional) for name in given)
    for name, a in given.items():
        at = names.index(name)
        if by_place or (name not in form and at < len(positional)):
            name = positional[at]
        if name not in form:
            return f"got an unexpected argument '{name}'"
        kind, wanted = form[name]
        for one in a if type(a) is tuple and kind is _REST else (a,):
            if wanted is not None and not fits(one, wanted):
                wanted = wanted.removesuffix(" | None").replace("_", "").replace(" | ", " or ")
                return f"argument '{name}' must be {wanted}, not {type(one).__name__}"
    return None


def too_far(given: dict) -> bool:
    """Is the dimension an integer that C's int cannot hold?"""
    dim = given.get("dim")
    return isinstance(dim, int) and not -(1 << 31) <= dim < 1 << 31


_EITHER, _FIRST = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY
_REST = inspect.Parameter.VAR_POSITIONAL


def asked(exc: AttributeError, given: dict) -> str | None:
    """What to say where an argument was asked for a tensor's attribute and has none; None where it was no argument's
    fault, as with a Tensor that was never initialized."""
    if isinstance(exc.obj, Tensor):
        return None
    for name, a in given.items():
        if a is exc.obj:
            return f"argument '{name}' must not be {type(a).__name__}"
        if isinstance(a, (tuple, list)) and any(x is exc.obj for x in a):
            return f"expected Tensors in argument '{name}', but got {type(exc.obj).__name__}"
    return None


# Does a value have a type of kinds.py? As PyTorch's parser sees it: a bool is no integer, a number may be a 0-d tensor.


def fits(x, wanted: str) -> bool:
    return any(_fits(x, kind) for kind in wanted.split(" | "))


def _fits(x, kind: str) -> bool:
    if kind in _TYPES:
        return _TYPES[kind](x)
    outer, _, inner = kind.removesuffix("]").partition("[")
    if outer == "Sequence":
        return isinstance(x, (tuple, list)) and all(_fits(one, inner) for one in x)
    if outer == "tuple":
        kinds = inner.split(", ")
        return isinstance(x, (tuple, list)) and len(x) == len(kinds) and all(map(_fits, x, kinds))
    return outer != "Callable" or callable(x)


def _is_number(x) -> bool:
    if isinstance(x, Tensor):
        return x.ndim == 0 and not x.requires_grad
    return isinstance(x, (int, float, complex)) or _is_numpy_scalar(x)


def _is_int(x) -> bool:
    if isinstance(x, (int, Tensor)):
        if isinstance(x, int):
            return not isinstance(x, bool)
        return x.numel() == 1 and not (x.is_floating_point() or x.is_complex())
    try:
        return -(1 << 63) <= operator.index(x) < 1 << 63 and type(x).__name__ != "bool"
    except Exception:  # as any method of an argument may raise
        return False


def _is_plain_int(x) -> bool:
    """An integer, or a 0-d tensor of one, but no other object that is an index."""
    if isinstance(x, Tensor):
        return x.ndim == 0 and x.dtype.kind == lib.TT_KIND_INT
    return _is_int(x) and (isinstance(x, int) or _is_numpy_scalar(x))


def _is_float(x) -> bool:
    return _is_number(x) and not isinstance(x, complex)


def _is_numpy_scalar(x) -> bool:
    return type(x).__module__ == "numpy" and not hasattr(x, "__len__")


_TYPES = {
    "Tensor": lambda x: isinstance(x, Tensor),
    "Number": _is_number,
    "_int": _is_int,
    "int": _is_plain_int,
    "python int": lambda x: isinstance(x, int) and not isinstance(x, bool),
    "_float": _is_float,
    "_bool": lambda x: isinstance(x, bool),
    "str": lambda x: isinstance(x, (str, bytes)),
    "None": lambda x: x is None,
    "_dtype": lambda x: isinstance(x, dtype) or any(x is python for python in (bool, int, float, complex)),
    "_layout": lambda x: isinstance(x, layout),
    "_memory_format": lambda x: isinstance(x, memory_format),
    "Device": lambda x: x is None or (isinstance(x, (device, str, bytes, Integral)) and not isinstance(x, bool)),
    "Generator": lambda x: isinstance(x, Generator),
}


# What operators look at themselves that would give an answer to a wrong argument, so that nothing above is asked.


def tensors_only(op: str, **given) -> None:
    """TypeError for an argument that is no tensor."""
    for name, t in given.items():
        if not isinstance(t, Tensor):
            raise TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(t).__name__}")


def flags_only(op: str, **given) -> None:
    """TypeError for an argument that is no bool: any object would do as a flag."""
    for name, flag in given.items():
        if not isinstance(flag, bool):
            raise TypeError(f"{op}(): argument '{name}' must be bool, not {type(flag).__name__}")


def real_only(op: str, **given) -> None:
    """``tensors_only``, and RuntimeError where one is complex: for operators made of others that would take it."""
    tensors_only(op, **given)
    for t in given.values():
        if t.is_complex():
            raise RuntimeError(f"{op} is not supported for complex tensors.")
