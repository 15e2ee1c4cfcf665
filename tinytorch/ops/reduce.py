"""Reductions: a name in kernels/ops/reduce.c, a derivative, a sentence.

In formulas ``g`` is the gradient of the result ``out``. ``how`` and ``dims`` say what was reduced, as the C side wants
it (kernels/api/reduce.h); ``expand_reduced`` undoes the change of shape.
"""

from __future__ import annotations

from .. import return_types
from ..backends.cpu import ffi, lib
from ..devices import on_device
from ..dtypes import dtype as _dtype
from ..tensor import Tensor, gives_tensor, operator_above, wrap
from .convert import in_dtype
from .declare import (
    both,
    c_op,
    dim_or_axis,
    ints,
    method,
    primitive,
    real_only,
    reduction,
    shortcut,
    write_all_out,
    write_out,
    refuse,
)
from .join import cat
from .pointwise import maximum, minimum


def _code(dtype) -> int:
    """The number of a dtype, or -1 for None."""
    if dtype is None:
        return -1
    if not isinstance(dtype, _dtype):
        raise TypeError(f"{operator_above()}argument 'dtype' must be tinytorch.dtype, not {type(dtype).__name__}")
    return dtype.code


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
    return write_out("sum", _sum(input, how, dims, keepdim or keepdims, _code(dtype)), out)


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
    how, dims = parse_dims("mean", input, dim, axis)
    return write_out("mean", _mean(input, how, dims, keepdim or keepdims, _code(dtype)), out)


@both
def nansum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=False):
    """``sum`` that takes NaN as 0. Follows ``torch.nansum``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d.
    Raises:
        IndexError: ``dim`` is out of range
    """
    how, dims = parse_dims("nansum", input, dim, axis)
    return write_out("nansum", _nansum(input, how, dims, keepdim or keepdims, _code(dtype)), out)


@both
def nanmean(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=False):
    """The mean of the elements that are not NaN. Follows ``torch.nanmean``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d; NaN where there is no number.
    Raises:
        RuntimeError: integers
    """
    real_only("nanmean", input)
    if not input.dtype.is_differentiable:
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.name}"
        )
    how, dims = parse_dims("nanmean", input, dim, axis)
    dtype_code = _code(dtype)
    return write_out("nanmean", _nanmean(input, how, dims, keepdim or keepdims, dtype_code), out)


@primitive(title="SumToSizeBackward0", input=lambda g, input_shape: g.expand(input_shape))
def _sum_to(input, shape):
    return wrap(lib.tt_sum_to(input._h, len(shape), shape))


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
    one = wrap(on_device(x.device, lib.tt_full, x._h.dtype, len(shape), shape, lib.TT_KIND_FLOAT, value, 0))
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
    how, dims = parse_dims("prod", input, dim, axis)
    return write_out("prod", _prod(input, how, dims, keepdim or keepdims, _code(dtype)), out)


# Extremes. amax, amin, and max and min of everything, share the gradient among equal elements.


def shared(g, input, out, how, dims, keepdim):
    """``g`` in equal parts where ``input`` has its chosen value ``out``."""
    best = expand_reduced(out, input.shape, how, dims, keepdim)
    chosen = ((input == best) | (input.isnan() & best.isnan())).to(g.dtype)
    many = _sum(chosen, how, dims, keepdim, -1)
    return expand_reduced(g / many, input.shape, how, dims, keepdim) * chosen


_amax = reduction("amax", shared)
_amin = reduction("amin", shared)
_max = reduction("max", shared, title="MaxBackward1")
_min = reduction("min", shared, title="MinBackward1")


@both
def amax(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=False):
    """The largest elements over ``dim``; NaN where there is one. Equal ones share the gradient. Follows
    ``torch.amax``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d where ``dim`` is ().
    Raises:
        IndexError: ``dim`` is out of range, or has no elements
    """
    try:
        how, dims = parse_dims("amax", input, dim, axis)
        return write_out("amax", _amax(input, how, dims, keepdim or keepdims, -1), out, True)
    except Exception as exc:
        refuse(exc)
        raise


@both
def amin(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=False):
    """The smallest elements over ``dim``; NaN where there is one. Equal ones share the gradient. Follows
    ``torch.amin``.

    Returns:
        A tensor without the dimensions of ``dim``, or 0-d where ``dim`` is ().
    Raises:
        IndexError: ``dim`` is out of range, or has no elements
    """
    try:
        how, dims = parse_dims("amin", input, dim, axis)
        return write_out("amin", _amin(input, how, dims, keepdim or keepdims, -1), out, True)
    except Exception as exc:
        refuse(exc)
        raise


def _aminmax_vjp(g_min, g_max, input, min, max, how, dims, keepdim):
    grads = [shared(g, input, o, how, dims, keepdim) for g, o in ((g_min, min), (g_max, max)) if g is not None]
    return (grads[0] if len(grads) == 1 else grads[0] + grads[1],)


@primitive(title="AminmaxBackward0", outputs=("min", "max"), inputs=("input",), vjp=_aminmax_vjp)
def _aminmax(input, how, dims, keepdim):
    return tuple([wrap(lib.tt_reduce(f.op.code, input._h, how, dims, keepdim, -1)) for f in (_amin, _amax)])


@both
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """``amin`` and ``amax`` together. Follows ``torch.aminmax``.

    Args:
        out: two tensors
    Returns:
        A named tuple (min, max).
    Raises:
        RuntimeError: no elements
    """
    if not input._h.numel and (dim is None or not input.shape[dim]):
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    how, dims = parse_dims("aminmax", input, dim)
    return return_types.aminmax(*write_all_out("aminmax", _aminmax(input, how, dims, keepdim), out))


def put_back(g, shape, indices, dim, keepdim=True):
    """``g`` scattered to the places along ``dim`` where the values had been selected."""
    if not len(shape):
        return g.reshape(())
    if not keepdim:
        g, indices = g.unsqueeze(dim), indices.unsqueeze(dim)
    zeros = wrap(on_device(g.device, lib.tt_full, g._h.dtype, len(shape), shape, lib.TT_KIND_FLOAT, 0.0, 0))
    return zeros.scatter_add(dim, indices, g)


def selection(name: str, forward, title: str | None = None):
    """An operator ``(input, *args, dim, keepdim)`` whose ``forward`` gives values that are elements of ``input``, and
    where they were along ``dim``. They send their gradient back there."""
    return primitive(
        name=name,
        title=title or name.capitalize() + "Backward0",
        extra=("indices",),
        input=lambda g, input_shape, indices, dim, keepdim: put_back(g, input_shape, indices, dim, keepdim),
    )(forward)


def _extreme(name: str, largest: int, of_all, of_two, result):
    def forward(input, dim, keepdim):
        values = ffi.new("tt_array **")
        indices = wrap(lib.tt_reduce_index(largest, input._h, 1, dim, keepdim, values))
        return wrap(values[0]), indices

    select = selection(name, forward)

    def extreme(input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=False):
        try:
            dim, keepdim = dim_or_axis(name, dim, axis), keepdim or keepdims
            if other is not None or isinstance(dim, Tensor):
                return of_two(input, dim if other is None else other, out=out)
            if dim is None:
                if keepdim:
                    raise TypeError(f"{name}(): argument 'keepdim' needs argument 'dim'")
                return write_out(name, of_all(input, 0, 0, False, -1), out)
            if not hasattr(dim, "__index__"):
                raise TypeError(f"{name}(): argument 'dim' must be int, not {type(dim).__name__}")
            values, indices = select(input, dim, keepdim)
            if out is not None:
                return result(write_out(name, values, out[0]), write_out(name, indices, out[1]))
            return result(values, indices)
        except Exception as exc:
            refuse(exc)
            raise

    extreme.__name__ = extreme.__qualname__ = name
    extreme.__doc__ = f"""The {name}imum of all elements; over one dimension, also where it is first; or, of two
    tensors, ``{name}imum``. Follows ``torch.{name}``.

    Args:
        dim: the dimension; or the other tensor
        other: a tensor to compare ``input`` with
        out: a tensor, or for one dimension a pair of them
    Returns:
        A 0-d tensor, or over one dimension a named tuple (values, indices); indices are int64.
    Raises:
        IndexError: ``dim`` is out of range
        RuntimeError: there are no elements
    """
    return both(extreme)


max = _extreme("max", 1, _max, maximum, return_types.max)
min = _extreme("min", 0, _min, minimum, return_types.min)


@primitive(name="argmax")
def _index_of_extreme(input, largest, how, dims, keepdim):
    return wrap(lib.tt_reduce_index(largest, input._h, how, dims, keepdim, ffi.NULL))


@both
def argmax(input, dim=None, keepdim=False, *, axis=None, keepdims=False):
    """The first index of the largest element, in the flattened tensor or along ``dim``; int64. Follows
    ``torch.argmax``.

    Returns:
        int64: a tensor without dimension ``dim``, or 0-d.
    Raises:
        IndexError: ``dim`` is out of range, or there are no elements
    """
    try:
        how, dims = parse_dims("argmax", input, dim, axis)
        return _index_of_extreme(input, 1, how, dims, keepdim or keepdims)
    except Exception as exc:
        refuse(exc)
        raise


@both
def argmin(input, dim=None, keepdim=False, *, axis=None, keepdims=False):
    """The first index of the smallest element, in the flattened tensor or along ``dim``; int64. Follows
    ``torch.argmin``.

    Returns:
        int64: a tensor without dimension ``dim``, or 0-d.
    Raises:
        IndexError: ``dim`` is out of range, or there are no elements
    """
    try:
        how, dims = parse_dims("argmin", input, dim, axis)
        return _index_of_extreme(input, 0, how, dims, keepdim or keepdims)
    except Exception as exc:
        refuse(exc)
        raise


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


@both
def all(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=False):
    """Are all elements nonzero? Over all dimensions or those of ``dim``; bool (uint8 for uint8). Follows
    ``torch.all``.

    Returns:
        A bool tensor (uint8 for uint8) without the dimensions of ``dim``, or 0-d; True over no elements.
    Raises:
        IndexError: ``dim`` is out of range
    """
    try:
        how, dims = (2, 0) if type(dim) is tuple and not dim and axis is None else parse_dims("all", input, dim, axis)
        return write_out("all", _all(input, how, dims, keepdim or keepdims, -1), out)
    except Exception as exc:
        refuse(exc)
        raise


@both
def count_nonzero(input, dim=None):
    """How many elements are not zero, in all or over ``dim``; int64. Follows ``torch.count_nonzero``.

    Returns:
        An int64 tensor without the dimensions of ``dim``, or 0-d.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return _count_nonzero(input, *parse_dims("count_nonzero", input, dim), False, -1)
