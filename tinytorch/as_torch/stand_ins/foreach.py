"""``torch._foreach_*``: an operator on each tensor of a list. PyTorch fuses them; here they are loops."""

from __future__ import annotations

import tinytorch
from tinytorch import Tensor

_UNARY = [
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "clone",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "expm1",
    "floor",
    "frac",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "neg",
    "reciprocal",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "zero",
]
_MORE = [
    "add",
    "sub",
    "mul",
    "div",
    "clamp_max",
    "clamp_min",
    "maximum",
    "minimum",
    "pow",
    "lerp",
    "addcmul",
    "addcdiv",
    "copy",
]
_NAMES = {"maximum": "clamp_min", "minimum": "clamp_max"}  # with a number


def _nth(value, k: int):
    """The k-th of a list or of a one-dimensional tensor of numbers, or the number or tensor itself."""
    if isinstance(value, (list, tuple)):
        return value[k]
    return value[k] if isinstance(value, Tensor) and value.ndim else value


def _each(name: str, in_place: bool):
    method = name + "_" * in_place

    def of_one(t: Tensor, args: list, kwargs: dict):
        other = method
        if name in _NAMES and not isinstance(args[0], Tensor):
            other = _NAMES[name] + "_" * in_place
        if name in ("addcmul", "addcdiv") and len(args) == 3:
            return getattr(t, method)(*args[:2], value=args[2])
        if name == "pow" and not isinstance(t, Tensor):
            return tinytorch.pow(t, *args)
        return getattr(t, other)(*args, **kwargs)

    def foreach(tensors, *args, **kwargs):
        count = len(args[0]) if name == "pow" and not isinstance(tensors, (list, tuple)) else len(tensors)
        if count == 0 and not in_place:
            raise RuntimeError("Tensor list must have at least one tensor.")
        made = [
            of_one(_nth(tensors, k), [_nth(a, k) for a in args], {key: _nth(v, k) for key, v in kwargs.items()})
            for k in range(count)
        ]
        return None if in_place else tuple(made)

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{method}"
    foreach.__doc__ = f"``{method}`` of each tensor."
    return foreach


def _foreach_norm(tensors, ord=2, dtype=None):
    """The norm of each tensor."""
    return tuple(tinytorch.linalg.vector_norm(t, ord, dtype=dtype) for t in tensors)


FOREACH = {f"_foreach_{name}{'_' * w}": _each(name, bool(w)) for name in (*_UNARY, *_MORE) for w in (0, 1)}
del FOREACH["_foreach_zero"], FOREACH["_foreach_clone_"], FOREACH["_foreach_copy"]
FOREACH["_foreach_norm"] = _foreach_norm
__all__ = ["FOREACH"]
