"""softmax and its logarithm."""

from __future__ import annotations

import warnings

from ..backends.cpu import lib
from ..tensor import Tensor, attempted
from .declare import both, c_op, computed, dim_or_axis, refuse

# softmax: dy = y (g - sum(g y)); its logarithm: g - exp(y) sum(g).


def _softmax_formula(g, out, dim):
    return out * (g - (g * out).sum(dim, keepdim=True))


def _log_softmax_formula(g, out, dim):
    return g - out.exp() * g.sum(dim, keepdim=True)


_softmax = c_op(
    "softmax",
    lib.tt_softmax,
    params=("input", "dim"),
    constants=", 0",
    doc="exp(x) / sum(exp(x)).",
    input=_softmax_formula,
    first_order={
        "input": lambda g, out, dim: computed(
            attempted.tt_softmax_backward(g._h, out._h, dim, 0), _softmax_formula, g, out, dim
        )
    },
)
_log_softmax = c_op(
    "log_softmax",
    lib.tt_softmax,
    params=("input", "dim"),
    constants=", 1",
    doc="x - log(sum(exp(x))).",
    input=_log_softmax_formula,
    first_order={
        "input": lambda g, out, dim: computed(
            attempted.tt_softmax_backward(g._h, out._h, dim, 1), _log_softmax_formula, g, out, dim
        )
    },
)


@both
def softmax(input, dim=None, dtype=None, *, axis=None):
    """exp(x) / sum(exp(x)) along ``dim``, computed in ``dtype`` if given. Follows ``torch.softmax``.

    Returns:
        A tensor of the shape of ``input``, whose sums along ``dim`` are 1.
    Raises:
        RuntimeError: integers without a floating ``dtype``
        IndexError: ``dim`` is out of range
    """
    try:
        if axis is not None or dim is None:
            dim = _needed("softmax", dim, axis)
        return _softmax(input if dtype is None else input.to(dtype), dim)
    except Exception as exc:
        refuse(exc)
        raise


@both
def log_softmax(input, dim=None, dtype=None, *, axis=None):
    """The logarithm of softmax along ``dim``, accurate where softmax is tiny. Follows ``torch.log_softmax``. Otherwise
    like ``softmax``.

    Returns:
        A tensor of the shape of ``input``.
    """
    try:
        if axis is not None or dim is None:
            dim = _needed("log_softmax", dim, axis)
        return _log_softmax(input if dtype is None else input.to(dtype), dim)
    except Exception as exc:
        refuse(exc)
        raise


def _needed(op: str, dim, axis):
    """A dimension that must be given, under either name."""
    if dim is None and axis is None:
        raise TypeError(f"{op}() missing 1 required positional argument: 'dim'")
    return dim_or_axis(op, dim, axis)


def implicit_dim(name: str, input: Tensor, dim) -> int:
    """The dimension that the older forms of softmax took when none was given."""
    if dim is not None:
        return dim
    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.",
        stacklevel=3,
    )
    return 0 if input._h.ndim in (0, 1, 3) else 1


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax of -x. Follows ``torch.nn.functional.softmin``."""
    return softmax(-input, implicit_dim("softmin", input, dim), dtype)
