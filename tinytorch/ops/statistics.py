"""Variances, norms, logsumexp."""

from __future__ import annotations

import math
from types import NoneType

from ..dtypes import ALL, COMPLEX, FLOATING, as_dtype, get_default_dtype
from ..tensor import Tensor, owned
from .convert import in_dtype
from .declare import both, primitive, write_out
from .extremes import _amax
from .reduce import _mean, _sum, count, expand_reduced, parse_dims, reduction

# Variance. d var / dx = 2 (x - mean) / (N - correction).


def _var_formula(g, input, how, dims, keepdim, correction):
    freedom = count(input.shape, g) - correction
    center = input - _mean(input, how, dims, True, -1)
    return expand_reduced(g * (2 / freedom if freedom > 0 else math.inf), input.shape, how, dims, keepdim) * center


def _std_formula(g, input, out, how, dims, keepdim, correction):
    return _var_formula((g / (2 * out)).masked_fill(out == 0, 0), input, how, dims, keepdim, correction)


@primitive(title="VarBackward0", input=_var_formula)
def _var(input, how, dims, keepdim, correction):
    return owned.tt_reduce_var(input._h, how, dims, correction, 0, keepdim)


@primitive(title="StdBackward0", input=_std_formula)
def _std(input, how, dims, keepdim, correction):
    return owned.tt_reduce_var(input._h, how, dims, correction, 1, keepdim)


def _with_mean(formula, g, g_mean, input, *how):
    """The gradients through a variance or deviation, and through the mean beside it."""
    through = None if g is None else formula(g, input, *how)
    if g_mean is None:
        return (through,)
    share = in_dtype(expand_reduced(g_mean / (count(input.shape, g_mean) or 1), input.shape, *how[-4:-1]), input.dtype)
    return (share if through is None else through + share,)


@primitive(
    title="VarMeanBackward0",
    outputs=("var", "mean"),
    inputs=("input",),
    vjp=lambda g_var, g_mean, input, how, dims, keepdim, correction: _with_mean(
        _var_formula, g_var, g_mean, input, how, dims, keepdim, correction
    ),
)
def _var_mean(input, how, dims, keepdim, correction):
    return _moments(input, how, dims, keepdim, correction, 0)


@primitive(
    title="StdMeanBackward0",
    outputs=("std", "mean"),
    inputs=("input",),
    vjp=lambda g_std, g_mean, input, std, how, dims, keepdim, correction: _with_mean(
        _std_formula, g_std, g_mean, input, std, how, dims, keepdim, correction
    ),
)
def _std_mean(input, how, dims, keepdim, correction):
    return _moments(input, how, dims, keepdim, correction, 1)


def _moments(input, how, dims, keepdim, correction, root):
    mean = owned.tt_reduce(_mean.op.code, input._h, how, dims, keepdim, -1)
    return owned.tt_reduce_var(input._h, how, dims, correction, root, keepdim), mean


def _freedom(op, dim, unbiased, correction, keepdim, out=None):
    """torch's two signatures: ``(dim, unbiased, keepdim)`` and ``(dim, *, correction, keepdim)``."""
    if out is not None and (dim is None or isinstance(dim, bool)) and unbiased is not None:
        raise TypeError(f"{op}(): arguments 'unbiased' and 'out' need argument 'dim'")
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if not isinstance(unbiased, (bool, NoneType)):
        raise TypeError(f"{op}(): argument 'unbiased' must be bool, not {type(unbiased).__name__}")
    if unbiased is not None and correction is not None:
        raise TypeError(f"{op}(): give either 'unbiased' or 'correction', not both")
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    return dim, float(correction), keepdim


def _is_complex(op: str, input: Tensor) -> bool:
    """Is the tensor complex? RuntimeError if it is not floating either, before its dimensions are looked at."""
    code = input._h.dtype
    if FLOATING[code]:
        return False
    if not COMPLEX[code]:
        raise RuntimeError(f"{op} only support floating point and complex dtypes")
    return True


@primitive(name="sqrt", input=lambda g, out: (g / (2 * out)).masked_fill(out == 0, 0))
def _root(input):
    """The root of a variance, whose slope counts as 0 at 0."""
    return input.detach().sqrt()


# The variance of complex numbers is that of their real parts and that of their imaginary parts.


@both
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The variance over all dimensions or those of ``dim``: squared deviations over N - correction (1 unless given;
    ``unbiased=False`` means 0). Floating and complex dtypes; the result is real. Follows ``torch.var``.

    Args:
        unbiased: an older form of ``correction``: True is 1, False 0
        correction: what is subtracted from the number of elements in the divisor; 1 unless given
    Returns:
        A tensor without the dimensions of ``dim``, or 0-d; NaN where the divisor is 0.
    Raises:
        RuntimeError: integers
    """
    dim, correction, keepdim = _freedom("var", dim, unbiased, correction, keepdim, out)
    if _is_complex("var", input):
        parts = [_var(x, *parse_dims("var", input, dim), keepdim, correction) for x in (input.real, input.imag)]
        return write_out("var", parts[0] + parts[1], out)
    return write_out("var", _var(input, *parse_dims("var", input, dim), keepdim, correction), out)


@both
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None):
    """The standard deviation: the root of ``var``. Follows ``torch.std``. Otherwise like ``var``."""
    dim, correction, keepdim = _freedom("std", dim, unbiased, correction, keepdim, out)
    if _is_complex("std", input):
        return write_out("std", _root(var(input, dim, keepdim=keepdim, correction=correction)), out)
    return write_out("std", _std(input, *parse_dims("std", input, dim), keepdim, correction), out)


@both
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """``(var, mean)``. Follows ``torch.var_mean``. Otherwise like ``var``.

    Returns:
        A pair of tensors without the dimensions of ``dim``, or 0-d.
    """
    dim, correction, keepdim = _freedom("var_mean", dim, unbiased, correction, keepdim)
    if _is_complex("var_mean", input):
        return var(input, dim, keepdim=keepdim, correction=correction), input.mean(dim, keepdim=keepdim)
    how, dims = parse_dims("var_mean", input, dim)
    return _var_mean(input, how, dims, keepdim, correction)


@both
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None):
    """``(std, mean)``. Follows ``torch.std_mean``."""
    dim, correction, keepdim = _freedom("std_mean", dim, unbiased, correction, keepdim)
    if _is_complex("std_mean", input):
        return std(input, dim, keepdim=keepdim, correction=correction), input.mean(dim, keepdim=keepdim)
    how, dims = parse_dims("std_mean", input, dim)
    return _std_mean(input, how, dims, keepdim, correction)


# Norms. d |x|_p / dx = sign(x) |x|^(p-1) / |x|_p^(p-1), taken as 0 where the norm is 0.


def _norm_2_formula(g, input, out, how, dims, keepdim):
    scale = in_dtype(g, ALL[out.dtype.compute]) / out.masked_fill(out == 0, math.inf)
    return in_dtype(input * expand_reduced(scale, input.shape, how, dims, keepdim), input.dtype)


def _norm_inf_formula(g, input, out, how, dims, keepdim):
    chosen = (input.abs() == expand_reduced(out, input.shape, how, dims, keepdim)).to(g.dtype)
    share = expand_reduced(g / _sum(chosen, how, dims, keepdim, -1), input.shape, how, dims, keepdim)
    return in_dtype(share * chosen * input.sign(), input.dtype)


_norm_0 = reduction("norm_0", lambda g, input: input * 0, title="LinalgVectorNormBackward0")
_norm_1 = reduction(
    "norm_1",
    lambda g, input, how, dims, keepdim: in_dtype(
        expand_reduced(g, input.shape, how, dims, keepdim) * input.sign(), input.dtype
    ),
    title="LinalgVectorNormBackward0",
)
_norm_2 = reduction("norm_2", _norm_2_formula, title="LinalgVectorNormBackward0")
_norm_inf = reduction("norm_inf", _norm_inf_formula, title="LinalgVectorNormBackward0")
_norm_minus_inf = reduction("norm_-inf", _norm_inf_formula, title="LinalgVectorNormBackward0")
_NORMS = {0.0: _norm_0, 1.0: _norm_1, 2.0: _norm_2, math.inf: _norm_inf, -math.inf: _norm_minus_inf}


def _norm_p_formula(g, input, out, p, how, dims, keepdim):
    dtype, wide = input.dtype, ALL[out.dtype.compute]
    input, out = in_dtype(input, wide), in_dtype(out, wide)
    scale = (g * out ** (1 - p)).masked_fill(out == 0, 0)
    slope = input.sign() * input.abs() ** (p - 1)
    if p < 1:
        slope = slope.masked_fill(input == 0, 0)
    return in_dtype(slope * expand_reduced(scale, input.shape, how, dims, keepdim), dtype)


@primitive(title="LinalgVectorNormBackward0", input=_norm_p_formula)
def _norm_p(input, p, how, dims, keepdim, dtype):
    x = Tensor.detach(input)
    result = input.dtype if dtype == -1 else ALL[dtype]
    x = in_dtype(x, ALL[x.dtype.compute])  # powers of a half type overflow
    return in_dtype(_sum(x.abs() ** p, how, dims, keepdim, ALL[result.compute].code) ** (1 / p), result)


def vector_norm(input, p, dim, keepdim, dtype, op="norm"):
    """The p-norm of the elements over ``dim``."""
    if not input.dtype.is_differentiable:
        raise RuntimeError(f"{op}: Expected a floating point or complex tensor as input. Got {input.dtype.name}")
    if isinstance(p, (str, bytes)):
        raise TypeError(f"{op}(): argument 'ord' must be Number, not {type(p).__name__}")
    p = float(p)
    dtype = None if dtype is None else as_dtype(dtype, op)
    if input.is_complex():
        input, dtype = input.abs(), None if dtype is None else dtype.to_real()
    how, dims = parse_dims(op, input, dim)
    if math.isinf(p) and not input._h.numel:
        shape = input.shape
        gone = shape if how == 0 else [shape[d] for d in (dim if how == 2 else (dim,))]
        if 0 in gone:
            raise RuntimeError(
                f"{op} cannot compute the {p} norm on an empty tensor because the operation does not have an identity"
            )
    code = -1 if dtype is None else dtype.code
    if p in _NORMS:
        return _NORMS[p](input, how, dims, keepdim, code)
    return _norm_p(input, p, how, dims, keepdim, code)


def _complex_logsumexp(x, how, dims, keepdim):
    """By the largest real part, but not an infinite one."""
    if not x.numel():
        return _sum(x.exp(), how, dims, keepdim, -1).log()
    most = _amax(x.real, how, dims, True, -1)
    most = most.masked_fill(most.isinf(), 0)
    total = _sum((x - most).exp(), how, dims, True, -1).log() + most
    return total if keepdim else _sum(total, how, dims, False, -1)


# log sum exp. Its derivative is softmax; an infinite result stands for no slope.


def _logsumexp_formula(g, input, out, how, dims, keepdim):
    finite = out.masked_fill(out == -math.inf, 0)
    weights = (input - expand_reduced(finite, input.shape, how, dims, keepdim)).exp()
    return expand_reduced(g, input.shape, how, dims, keepdim) * weights


@primitive(title="LogsumexpBackward0", input=_logsumexp_formula)
def _logsumexp(input, how, dims, keepdim):
    if input.is_complex():
        return _complex_logsumexp(input.detach(), how, dims, keepdim)
    return owned.tt_reduce_logsumexp(input._h, how, dims, keepdim)


def _complex_logsumexp(input, dim, keepdim):
    if not input._h.ndim:
        dim = ()
    top = input.real.detach().amax(dim, keepdim=True) if input._h.numel else input.real.sum(dim, keepdim=True)
    top = top.masked_fill(top.abs() == math.inf, 0)
    out = (input - top).exp().sum(dim, keepdim=keepdim).log()
    return out + (top if keepdim else top.reshape(out.shape))


@both
def logsumexp(input, dim, keepdim=False, *, out=None):
    """log(sum(exp(x))) over ``dim``, without overflow; integers become the default dtype. Follows
    ``torch.logsumexp``.

    Args:
        dim: the dimension, or several
    Returns:
        A tensor without the dimensions of ``dim``.
    Raises:
        IndexError: ``dim`` is out of range
    """
    if input.is_complex():
        return write_out("logsumexp", _complex_logsumexp(input, dim, keepdim), out)
    x = input if input.dtype.is_differentiable else input.to(get_default_dtype())
    return write_out("logsumexp", _logsumexp(x, *parse_dims("logsumexp", input, dim), keepdim), out)
