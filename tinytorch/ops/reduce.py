"""Reductions: a name in kernels/ops/reduce.c, a derivative, a sentence. The largest and the smallest elements:
extremes.py.

In formulas ``g`` is the gradient of the result ``out``. ``how`` and ``dims`` say what was reduced, as the C side wants
it (kernels/api/reduce.h); ``expand_reduced`` undoes the change of shape.
"""

from __future__ import annotations

from ..backends.cpu import lib
from ..devices import on_device
from ..dtypes import dtype_code
from ..tensor import Tensor, gives_tensor, owned
from .convert import in_dtype
from .declare import (
    both,
    function,
    c_op,
    dim_or_axis,
    ints,
    method,
    primitive,
    real_only,
    reduction,
    shortcut,
    write_out,
    refuse,
)
from .join import cat


def result_code(dtype, op: str) -> int:
    """The number of the dtype that a result shall have, or -1 for None."""
    return -1 if dtype is None else dtype_code(dtype, op)


def parse_dims(op: str, input: Tensor, dim, axis=None) -> tuple[int, int]:
    """``dim`` (None, a number or a sequence of them), or ``axis``, its name in NumPy, as the C side's ``how`` and
    ``dims``."""
    if axis is not None:
        dim = dim_or_axis(op, dim, axis)
    if dim is None:
        return 0, 0
    if type(dim) is int:
        return 1, dim
    if not isinstance(dim, (tuple, list)):
        if not hasattr(dim, "__index__") or isinstance(dim, bool):
            raise TypeError(f"{op}(): argument 'dim' must be int or tuple of ints, not {type(dim).__name__}")
        return 1, dim.__index__()
    if not dim:
        return 0, 0
    mask = 0
    if not isinstance(input, Tensor):
        raise TypeError(f"{op}(): argument 'input' must be Tensor, not {type(input).__name__}")
    for d in dim:
        bit = 1 << input._dim(d)
        if mask & bit:
            if op in ("amin", "amax") and input._h.ndim and not input.shape[d]:
                raise IndexError(f"{op}(): Expected reduction dim {d} to have non-zero size.")
            raise RuntimeError(f"{op}(): dim {d} appears multiple times in the list of dims")
        mask |= bit
    return 2, mask - (mask >> 63 << 64)  # as an int64


def count(shape, g: Tensor) -> float:
    """How many elements of a tensor of ``shape`` made one of ``g``."""
    n = 1
    for s in shape:
        n *= s
    return n / (g._h.numel or 1)


expand_reduced = c_op(
    "expand_reduced",
    lib.tt_expand_reduced,
    params=("input", "shape", "how", "dims", "keepdim"),
    counted=("shape",),
    doc="A reduction's result, or its gradient, in the shape of what was reduced: the same elements with steps of 0. "
    "It need not be tracked as a view, since nothing may be written to it.",
    input=lambda g, how, dims, keepdim: _sum(g, how, dims, keepdim, -1),
)
_expanded = gives_tensor(lib.tt_expand_reduced)


def _expand_reduced(g, shape, how, dims, keepdim):
    """``expand_reduced`` without history."""
    out = _expanded(g._h, len(shape), shape, how, dims, keepdim)
    return expand_reduced(g, shape, how, dims, keepdim) if out is None else out


# Sums.


_sum = reduction(
    "sum",
    lambda g, input_shape, input_dtype, how, dims, keepdim: in_dtype(
        expand_reduced(g, input_shape, how, dims, keepdim), input_dtype
    ),
    first_order=lambda g, input_shape, input_dtype, how, dims, keepdim: in_dtype(
        _expand_reduced(g, input_shape, how, dims, keepdim), input_dtype
    ),
    title={"SumBackward1": "how", "SumBackward0": ""},
)
_mean = reduction(
    "mean",
    lambda g, input_shape, input_dtype, how, dims, keepdim: in_dtype(
        expand_reduced(g / (count(input_shape, g) or 1), input_shape, how, dims, keepdim), input_dtype
    ),
    first_order=lambda g, input_shape, input_dtype, how, dims, keepdim: in_dtype(
        _expand_reduced(g / (count(input_shape, g) or 1), input_shape, how, dims, keepdim), input_dtype
    ),
    title={"MeanBackward1": "how", "MeanBackward0": ""},
)
_nansum = reduction(
    "nansum",
    lambda g, input, how, dims, keepdim: in_dtype(
        expand_reduced(g, input.shape, how, dims, keepdim), input.dtype
    ).masked_fill(input.isnan(), 0),
)
_count_valid = reduction("count_valid")
_nanmean = reduction(
    "nanmean",
    lambda g, input, how, dims, keepdim: in_dtype(
        expand_reduced(g / _count_valid(input, how, dims, keepdim, g.dtype.compute), input.shape, how, dims, keepdim),
        input.dtype,
    ).masked_fill(input.isnan(), 0),
)


@both
@shortcut(_sum)
def sum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=False):
    """The sum over all dimensions or those of ``dim``; integers and bools give int64. The elements are cast to
    ``dtype`` first, if given. Follows ``torch.sum``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d; int64 for integers and bools.
    Raises:
        IndexError: ``dim`` is out of range
        RuntimeError: a dimension is named twice
    """
    how, dims = parse_dims("sum", input, dim, axis)
    return write_out("sum", _sum(input, how, dims, keepdim or keepdims, result_code(dtype, "sum")), out)


@both
@shortcut(_mean)
def mean(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=False):
    """The mean over all dimensions or those of ``dim``; RuntimeError for integers without a floating ``dtype``.
    Follows ``torch.mean``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d; NaN over no elements.
    Raises:
        IndexError: ``dim`` is out of range
        RuntimeError: integers without a floating ``dtype``
    """
    try:
        how, dims = parse_dims("mean", input, dim, axis)
        return write_out("mean", _mean(input, how, dims, keepdim or keepdims, result_code(dtype, "mean")), out)
    except IndexError:  # the dtype comes before the dimensions
        if dtype is None and not input.dtype.is_differentiable:
            raise RuntimeError(f"mean(): could not infer output dtype. Got: {input.dtype.name}") from None
        raise


@both
def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=False):
    """``sum`` that takes NaN as 0. Follows ``torch.nansum``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d.
    Raises:
        IndexError: ``dim`` is out of range
    """
    how, dims = parse_dims("nansum", input, dim, axis)
    return write_out("nansum", _nansum(input, how, dims, keepdim or keepdims, result_code(dtype, "nansum")), out)


@both
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=False):
    """The mean of the elements that are not NaN. Follows ``torch.nanmean``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d; NaN where there is no number.
    Raises:
        RuntimeError: integers
    """
    real_only("nanmean", input=input)
    if not input.dtype.is_differentiable:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.name}"
        )
    how, dims = parse_dims("nanmean", input, dim, axis)
    return write_out("nanmean", _nanmean(input, how, dims, keepdim or keepdims, result_code(dtype, "nanmean")), out)


@primitive(title="SumToSizeBackward0", input=lambda g, input_shape: g.expand(input_shape))
def _sum_to(input, shape):
    return owned.tt_sum_to(input._h, len(shape), shape)


@method
def sum_to_size(self, size, *rest):
    """Summed over the dimensions that broadcasting would have added or stretched, so that ``size`` is left; sums of
    integers and bools are int64. RuntimeError when ``size`` does not broadcast to the shape. Follows
    ``torch.Tensor.sum_to_size``."""
    size = ints((size, *rest))
    if size and self.shape == size:
        return self
    return _sum_to(self if self.dtype.is_differentiable else self.long(), size)


# Products. The derivative for one factor is the product of all others: of those before it and those after it, so that
# zeros need no division.


def _prod_formula(g, input, out, how, dims, keepdim):
    if not bool((input == 0).any()):
        x = in_dtype(input, g.dtype)
        return in_dtype(expand_reduced(g * out, input.shape, how, dims, keepdim) / x, input.dtype)
    if how == 0:
        others = _products_of_others(in_dtype(input, g.dtype).reshape((-1,)), 0).reshape(input.shape)
    else:
        others = _products_of_others(in_dtype(input, g.dtype), dims)
    return in_dtype(expand_reduced(g, input.shape, how, dims, keepdim) * others, input.dtype)


def _products_of_others(x, dim):
    if not x.ndim:
        return x.exp() * 0 + 1
    n, dim = x.shape[dim], x._dim(dim)
    before = shifted(x.narrow(dim, 0, n - 1), dim, False, 1).cumprod(dim)
    after = shifted(x.narrow(dim, 1, n - 1), dim, True, 1).flip(dim).cumprod(dim).flip(dim)
    return before * after


def shifted(x, dim, at_end, value):
    """``x`` with ``value`` put before its elements along ``dim``, or after them."""
    shape = list(x.shape)
    shape[dim] = 1
    one = on_device(x.device, owned.tt_full, x._h.dtype, len(shape), shape, lib.TT_KIND_FLOAT, value, 0)
    return cat([x, one] if at_end else [one, x], dim)


_prod = reduction("prod", _prod_formula, title={"ProdBackward1": "how", "ProdBackward0": ""})


@both
def prod(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=False):
    """The product of all elements, or over dimension ``dim``; integers and bools give int64. The derivative is exact
    where factors are zero. Follows ``torch.prod``.

    Returns:
        A tensor without dimension ``dim``, or 0-d; int64 for integers and bools.
    Raises:
        IndexError: ``dim`` is out of range
        TypeError: ``dim`` is several dimensions
    """
    if dim is not None and not hasattr(dim, "__index__"):
        raise TypeError(f"prod(): argument 'dim' must be int, not {type(dim).__name__}")
    if out is not None and dim is None and axis is None:
        raise TypeError("prod(): argument 'out' needs argument 'dim'")
    how, dims = parse_dims("prod", input, dim, axis)
    return write_out("prod", _prod(input, how, dims, keepdim or keepdims, result_code(dtype, "prod")), out)


# Truth.

_any = reduction("any")
_all = reduction("all")
_count_nonzero = reduction("count_nonzero")


@both
def any(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=False):
    """Is any element nonzero? Over all dimensions or those of ``dim``; bool (uint8 for uint8). Follows
    ``torch.any``.

    Returns:
        A bool tensor (uint8 for uint8) without the dimensions of ``dim``, or 0-d; False over no elements.
    Raises:
        IndexError: ``dim`` is out of range
    """
    try:
        how, dims = (2, 0) if type(dim) is tuple and not dim and axis is None else parse_dims("any", input, dim, axis)
        return write_out("any", _any(input, how, dims, keepdim or keepdims, -1), out)
    except Exception as exc:
        refuse(exc)
        raise


@function
def count_nonzero(input, dim=None):
    """How many elements are not zero, in all or over ``dim``; int64. Follows ``torch.count_nonzero``.

    Returns:
        An int64 tensor without the dimensions of ``dim``, or 0-d.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return _count_nonzero(input, *parse_dims("count_nonzero", input, dim), False, -1)


@both
def all(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=False):
    """Are all elements nonzero? Over all dimensions or those of ``dim``; bool (uint8 for uint8). Follows
    ``torch.all``. Otherwise like ``any``.

    Returns:
        A bool tensor (uint8 for uint8) without the dimensions of ``dim``, or 0-d; True over no elements.
    """
    try:
        how, dims = (2, 0) if type(dim) is tuple and not dim and axis is None else parse_dims("all", input, dim, axis)
        return write_out("all", _all(input, how, dims, keepdim or keepdims, -1), out)
    except Exception as exc:
        refuse(exc)
        raise


@method
def count_nonzero(self, dim=None, *rest, axis=None):  # noqa: F811
    """``tinytorch.count_nonzero``, which also takes the dimensions one by one."""
    dims = ints((dim, *rest)) if rest else dim_or_axis("count_nonzero", dim, axis)
    return _count_nonzero(self, *parse_dims("count_nonzero", self, dims), False, -1)
