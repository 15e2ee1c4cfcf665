"""What a call is refused for, found out after something went wrong in it: an argument of the wrong type comes before
all else, as in PyTorch, whose parser looks at every argument before an operator sees any. Nothing here runs while all
is right."""

from __future__ import annotations

import inspect

from ...dtypes import dtype as _dtype
from ...tensor import Tensor

_VARARGS = inspect.CO_VARARGS
#: Parameters that are tensors, or sequences of them, wherever a tensor's attribute was wanted.
_TENSORS = frozenset(
    """
    input self tensor tensors other input1 input2 x1 x2 target anchor positive negative query key value attn_mask weight
    weights out mask index indices source src condition operands
    """.split()  # noqa: SIM905 (a list of words)
)


def positional(fn) -> tuple[str, ...]:
    """The names of a function's positional parameters; that of ``*args`` comes last."""
    code = fn.__code__
    more = code.co_argcount + code.co_kwonlyargcount
    return code.co_varnames[: code.co_argcount] + code.co_varnames[more : more + (code.co_flags & _VARARGS > 0)]


def named(names, args: tuple, kwargs: dict) -> tuple[tuple, tuple]:
    """The names of the arguments of a call, and the arguments."""
    given = [names[min(k, len(names) - 1)] for k in range(len(args))] if names else ["input"] * len(args)
    return (*given, *kwargs), (*args, *kwargs.values())


def not_a_tensor(op: str, exc: AttributeError, names, args) -> Exception:
    """The error for an argument that was asked for a tensor's attribute and has none: TypeError, naming operator and
    argument; ``exc`` itself where that was no argument's fault."""
    if isinstance(exc.obj, Tensor) and exc.name in ("_h", "_node"):
        return exc  # a Tensor that was never initialized
    for name, a in zip(names, args):
        if a is exc.obj:
            must = "must not be" if isinstance(a, Tensor) else "must be Tensor, not"
            return TypeError(f"{op}(): argument '{name}' {must} {type(a).__name__}")
        if isinstance(a, (tuple, list)) and any(x is exc.obj for x in a):
            return TypeError(f"{op}(): expected Tensors in argument '{name}', but got {type(exc.obj).__name__}")
    for name, a in zip(names, args):  # what was computed of it has none
        if name in _TENSORS and not isinstance(a, (Tensor, tuple, list, type(None))):
            return TypeError(f"{op}(): argument '{name}' must be Tensor, not {type(a).__name__}")
    return exc


def _is_int(x) -> bool:
    if isinstance(x, Tensor):
        return x.numel() == 1 and not x.is_floating_point()
    return hasattr(x, "__index__") and not isinstance(x, bool) and type(x).__module__ in ("builtins", "numpy")


def _is_number(x) -> bool:
    if isinstance(x, Tensor):
        return x.numel() == 1
    return isinstance(x, (int, float, complex)) or (type(x).__module__ == "numpy" and not hasattr(x, "__len__"))


def _is_dim(x) -> bool:
    return all(map(_is_dim, x)) if isinstance(x, (tuple, list)) else _is_int(x) or isinstance(x, str)


_TYPES = {
    "bool": (
        lambda x: isinstance(x, bool),
        """keepdim unbiased descending stable largest sorted sparse_grad accumulate include_self as_tuple right
        out_int32 return_inverse return_counts upper left unitriangular full_matrices compute_uv with_replacement
        equal_nan assume_unique invert""",
    ),
    "int": (_is_int, "n k diagonal offset dim0 dim1 dim2 num_classes minlength bins padding_idx ignore_index"),
    "a number": (_is_number, "alpha beta eps margin negative_slope lambd threshold rtol atol correction delta"),
    "int or tuple of ints": (_is_dim, "dim dims axis"),
    "str": (lambda x: isinstance(x, str), "reduce mode indexing approximate rounding_mode side"),
    "tinytorch.dtype": (lambda x: isinstance(x, (_dtype, type)), "dtype"),
    "Tensor": (
        lambda x: isinstance(x, Tensor),
        "input mask mat1 mat2 batch1 batch2 vec vec1 vec2",
    ),
}
_TYPE_OF = {name: (wanted, fits) for wanted, (fits, names) in _TYPES.items() for name in names.split()}


def refuse(op: str, exc: Exception, names, args) -> None:
    """Raises TypeError where ``exc`` came of a call with an argument of the wrong type; else its caller raises ``exc``
    again. Nobody holds the new exception, whose traceback holds the frames."""
    if isinstance(exc, AttributeError):
        raise not_a_tensor(op, exc, names, args) from None
    if isinstance(exc, TypeError):
        return
    for name, a in zip(names, args):
        wanted, fits = _TYPE_OF.get(name, (None, None))
        if wanted and a is not None and not fits(a):
            raise TypeError(f"{op}(): argument '{name}' must be {wanted}, not {type(a).__name__}") from None


def real_only(op: str, *tensors) -> None:
    """RuntimeError where one of the tensors is complex: for operators made of others that would take it."""
    for t in tensors:
        if isinstance(t, Tensor) and t.is_complex():
            raise RuntimeError(f"{op} is not supported for complex tensors.")
