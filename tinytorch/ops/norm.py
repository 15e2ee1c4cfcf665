"""Normalisation of rows: layer_norm, rms_norm, group_norm.

With h the normalised row, d = g w and m(.) the mean over the row, dx = rstd (d - m(d) - h m(d h)); rms_norm has no
m(d) (Ba, Kiros and Hinton 2016, arXiv:1607.06450; Zhang and Sennrich 2019, arXiv:1910.07467).
"""

from __future__ import annotations

from ..backends.cpu import error, ffi, lib
from ..dtypes import ALL, bfloat16, finfo, float16, float32
from ..tensor import Tensor, attempted, gives_tensors
from .convert import in_dtype
from .declare import function, primitive, refuse

NULL = ffi.NULL
_HALVES, _FLOAT32 = (float16.code, bfloat16.code), float32.code


def _normalised(x, over, eps, rms=False):
    """h and 1 / standard deviation, of the dimensions ``over``."""
    x = x if rms else x - x.mean(over, keepdim=True)
    rstd = ((x * x).mean(over, keepdim=True) + eps).rsqrt()
    return x * rstd, rstd


def _gradient(d, h, rstd, over, rms=False):
    """dx."""
    grad = d - h * (d * h).mean(over, keepdim=True)
    return rstd * (grad if rms else grad - d.mean(over, keepdim=True))


def _formula(g, input, weight, bias_shape, dims, eps, rms, edges):
    """In differentiable operations. In a half type the differences from the mean would be mostly rounding."""
    over, dtype = list(range(-dims, 0)), input.dtype
    input, g = in_dtype(input, ALL[dtype.compute]), in_dtype(g, ALL[dtype.compute])
    h, rstd = _normalised(input, over, eps, rms)
    grad = None
    if edges[0] is not None:
        grad = in_dtype(_gradient(g if weight is None else g * weight, h, rstd, over, rms), dtype)
    return (
        grad,
        None if edges[1] is None else in_dtype((g * h).sum_to_size(weight.shape), weight.dtype),
        None if edges[2] is None else in_dtype(g.sum_to_size(bias_shape), dtype),
    )


def _first_order(g, input, weight, rstd, mean, bias_shape, dims, eps, rms, edges):
    stats = rstd._h, NULL if rms else mean._h
    grads = [None, None, None]
    if edges[0] is not None:
        grads[0] = attempted.tt_norm_backward(g._h, input._h, NULL if weight is None else weight._h, *stats, dims)
    if edges[1] is not None:
        grads[1] = attempted.tt_norm_weight(g._h, input._h, *stats, dims)
    if edges[2] is not None:
        grads[2] = attempted.tt_column_sums(g._h, dims)
    if any(grad is None and edge is not None for grad, edge in zip(grads, edges)):  # it declined
        return _formula(g, input, weight, bias_shape, dims, eps, rms, edges)
    return grads


_norm = gives_tensors(lib.tt_norm, raises=False)


def _declare(name: str, title: str):
    """The operator ``(input, weight, bias, dims, eps, rms)``. Besides the result it gives, of each row, 1 / standard
    deviation and the mean (for rms_norm None)."""

    @primitive(
        name=name,
        title=title,
        extra=("rstd", "mean"),
        inputs=("input", "weight", "bias"),
        vjp=_formula,
        first_order=_first_order,
    )
    def norm(input, weight, bias, dims, eps, rms):
        handles = (input._h, NULL if weight is None else weight._h, NULL if bias is None else bias._h)
        made = _norm(*handles, dims, eps, rms, ffi.new("tt_array *[2]"))
        if made is None:
            raise error(name)
        return made

    return norm


_layer_norm = _declare("layer_norm", "NativeLayerNormBackward0")
_rms_norm = _declare("rms_norm", "FusedRmsNormBackward0")


def _of_halves_by_floats(input: Tensor, *parameters) -> bool:
    """Is the input of a half type and are the parameters float32, as in a model under autocast? Then the work is done
    in float32, and the result is of the half type."""
    return input._h.dtype in _HALVES and any(p is not None and p._h.dtype == _FLOAT32 for p in parameters)


def _along(t: Tensor, input: Tensor) -> Tensor:
    """A number for each channel, to be broadcast with ``input``."""
    return t.reshape(-1, *[1] * (input._h.ndim - 2))


def _group_formula(g, input, weight, groups, eps, affine, edges):
    """Of whole groups the formula of rows; of channels weight and bias."""
    dtype, rows, over = input.dtype, (input.shape[0], groups, -1), [0, *range(2, input._h.ndim)]
    g, input = in_dtype(g, ALL[dtype.compute]), in_dtype(input, ALL[dtype.compute])
    h, rstd = _normalised(input.reshape(rows), -1, eps)
    grad = None
    if edges[0] is not None:
        d = (g if weight is None else g * _along(weight, input)).reshape(rows)
        grad = in_dtype(_gradient(d, h, rstd, -1).reshape(input.shape), dtype)
    return (
        grad,
        None if edges[1] is None else in_dtype((g * h.reshape(input.shape)).sum(over), weight.dtype),
        None if edges[2] is None else in_dtype(g.sum(over), affine),
    )


def _group_first_order(g, input, weight, rstd, mean, groups, eps, affine, edges):
    if g.dtype is not input.dtype:
        return _group_formula(g, input, weight, groups, eps, affine, edges)
    handles = g._h, input._h, NULL if weight is None else weight._h, rstd._h, mean._h
    grad, of_weight, of_bias = _group_backward(*handles, ffi.new("tt_array *[2]"))
    return (
        grad,
        None if edges[1] is None else in_dtype(of_weight.sum(0), weight.dtype),
        None if edges[2] is None else in_dtype(of_bias.sum(0), affine),
    )


_grouped, _group_backward = gives_tensors(lib.tt_group_norm), gives_tensors(lib.tt_group_norm_backward)


@primitive(
    name="group_norm",
    title="NativeGroupNormBackward0",
    extra=("rstd", "mean"),
    inputs=("input", "weight", "bias"),
    vjp=_group_formula,
    first_order=_group_first_order,
)
def _group_norm(input, weight, bias, groups, eps, affine):
    """affine: the dtype of weight and bias"""
    handles = (input._h, NULL if weight is None else weight._h, NULL if bias is None else bias._h)
    return _grouped(*handles, groups, eps, ffi.new("tt_array *[2]"))


def _check_shape(op, input: Tensor, normalized_shape, weight=None) -> int:
    shape = tuple(normalized_shape)
    n = len(shape)
    if n == 0:
        raise RuntimeError(
            f"{op}: Expected normalized_shape to be at least 1-dimensional, i.e., containing at least "
            "one element, but got normalized_shape = []"
        )
    if op == "rms_norm" and input._h.ndim < n:
        if weight is not None and weight.shape != shape:
            raise RuntimeError(
                f"rms_norm: Expected weight to be of same shape as normalized_shape, but got weight of shape "
                f"{tuple(weight.shape)} and normalized_shape = {shape}"
            )
        raise ValueError(f"rms_norm: Input tensor must have at least {n} dimensions, but got {input._h.ndim}")
    if tuple(input.shape[max(input._h.ndim - n, 0) :]) != shape:
        raise RuntimeError(
            f"{op}: Given normalized_shape={list(shape)}, expected input with shape "
            f"[*, {', '.join(map(str, shape))}], but got input of size{list(input.shape)}"
        )
    return n


@function
def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-05, cudnn_enable=True):
    """(x - mean) / sqrt(variance + eps) over the last dimensions, which are ``normalized_shape``, then times ``weight``
    plus ``bias`` of that shape. Follows ``torch.nn.functional.layer_norm``.

    Args:
        normalized_shape: the last sizes
        weight: a tensor of these sizes, or None
        bias: a tensor of these sizes, or None
        eps: a number added to the variance
        cudnn_enable: taken as in PyTorch
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        RuntimeError: the last sizes are others
    """
    try:
        dims = _check_shape("layer_norm", input, normalized_shape)
        if _of_halves_by_floats(input, weight, bias):
            return _layer_norm(input.float(), weight, bias, dims, eps, False)[0].to(input.dtype)
        return _layer_norm(input, weight, bias, dims, eps, False)[0]
    except Exception as exc:
        refuse(exc)
        raise


@function
def rms_norm(input, normalized_shape, weight=None, eps=None):
    """x / sqrt(mean(x^2) + eps) over the last dimensions, which are ``normalized_shape``, then times ``weight``; eps is
    the dtype's by default. Follows ``torch.nn.functional.rms_norm``. Otherwise like ``layer_norm``.

    Args:
        eps: a number added to the mean square; the dtype's epsilon unless given
    """
    dims = _check_shape("rms_norm", input, normalized_shape, weight)
    if input.is_complex():
        return _complex_rms_norm(input, weight, dims, eps)
    if eps is None:
        eps = finfo(input.dtype if input._h.dtype == lib.TT_F64 else float32).eps
    if weight is not None and weight._h.dtype != input._h.dtype:
        wide = input.float() if input._h.dtype in _HALVES else input
        return (_rms_norm(wide, None, None, dims, eps, True)[0] * weight).to(input.dtype)
    return _rms_norm(input, weight, None, dims, eps, True)[0]


def _complex_rms_norm(x, weight, dims, eps):
    """By the mean of the squares, which are complex too, as PyTorch has it."""
    square = (x * x).mean(list(range(-dims, 0)), keepdim=True)
    x = x * (square + (finfo(x.dtype).eps if eps is None else eps)).rsqrt()
    return x if weight is None else x * weight


@function
def group_norm(input, num_groups, weight=None, bias=None, eps=1e-05, cudnn_enabled=True):
    """layer_norm over each of ``num_groups`` groups of channels (dimension 1), then times ``weight`` plus ``bias``, one
    for each channel. Follows ``torch.nn.functional.group_norm``.

    Args:
        input: a tensor (N, C, *)
        num_groups: how many groups
        weight: a vector (C), or None
        bias: a vector (C), or None
        eps: a number added to the variance
        cudnn_enabled: taken as in PyTorch
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        RuntimeError: ``num_groups`` does not divide the number of channels
    """
    if input._h.ndim < 2:
        raise RuntimeError(f"group_norm: Expected at least 2 dimensions for input tensor but received {input._h.ndim}")
    if isinstance(num_groups, bool) or (isinstance(num_groups, Tensor) and num_groups._h.ndim):
        raise TypeError(f"group_norm(): argument 'num_groups' must be int, not {type(num_groups).__name__}")
    shape = input.shape
    if num_groups <= 0 or shape[1] % num_groups:
        raise RuntimeError(
            f"group_norm: Expected number of channels in input to be divisible by num_groups, but got "
            f"input of shape {list(shape)} and num_groups={num_groups}"
        )
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and tuple(t.shape) != (shape[1],):
            raise RuntimeError(
                f"group_norm: Expected {name} to be a vector of size equal to the number of channels in "
                f"input, but got {name} of shape {list(t.shape)} and input of shape {list(shape)}"
            )
    dtype = input.dtype
    affine = float32 if _of_halves_by_floats(input, weight, bias) else dtype
    for name, t in (("weight", weight), ("bias", bias)):
        if t is not None and t.dtype is not affine:
            raise RuntimeError(f"group_norm: expected {name} of dtype {dtype.name} or float32, got {t.dtype.name}")
    if lib.tt_group_norm_fits(input._h):
        x = input if input._h.flags & lib.TT_FLAG_CONTIGUOUS else input.contiguous()  # one copy for both directions
        return _group_norm(x, weight, bias, num_groups, eps, affine)[0]
    size = input._h.numel // ((shape[0] or 1) * num_groups)
    rows = in_dtype(input, affine).reshape(shape[0] * num_groups, size)
    out = layer_norm(rows, (size,), None, None, eps).reshape(shape)
    out = out if weight is None else out * _along(weight, input)
    out = out if bias is None else out + _along(bias, input)
    return in_dtype(out, dtype)
