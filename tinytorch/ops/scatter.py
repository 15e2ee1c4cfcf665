"""gather and scatter, whose index has a value for every element; and reductions of what goes to one place."""

from __future__ import annotations

from ..backends.cpu import check, error, lib
from ..devices import on_device
from ..dtypes import iinfo
from ..tensor import Tensor, attempted, owned
from .fitting import check_fits
from .declare import both, flags_only, number, primitive, refuse, scalar_kind, update, write_out
from .gather import along_vector, name_of, need_index
from .index import ADD, LARGER, MULTIPLY, REPLACE, SLICE, SMALLER, embed
from .shape import broadcast_shapes

# By an index for every element.


@primitive(input=lambda g, input_shape, dim, index: _gather_backward(g, input_shape, dim, index))
def _gather(input, dim, index):
    out = attempted.tt_gather(input._h, dim, index._h)
    if out is None:
        raise _as_runtime(error())
    return out


def _as_runtime(exc):
    """gather and scatter report an index out of range as RuntimeError, and only a dimension as IndexError."""
    return RuntimeError(*exc.args) if isinstance(exc, IndexError) and "Dimension out of" not in str(exc) else exc


@primitive(g=lambda g, dim, index: _gather(g, dim, index))
def _gather_backward(g, shape, dim, index):
    out = owned.tt_nought(g._h, len(shape), shape)
    check(lib.tt_scatter(out._h, dim, index._h, g._h, ADD, -1))
    return out


@both
def gather(input, dim, index, *, sparse_grad=False, out=None):
    """``out[i][j][k] = input[i][index[i][j][k]][k]`` for ``dim`` 1, and so on; ``index`` (int64 or int32) has input's
    rank, and the result its shape. Follows ``torch.gather``.

    Args:
        index: an int64 tensor, not larger than ``input`` along other dimensions
        sparse_grad: taken as in PyTorch; gradients are dense
    Returns:
        A tensor of the shape of ``index``.
    Raises:
        RuntimeError: an index is out of range, or shapes do not match
    """
    try:
        dim = input._dim(dim)
        if not index._h.numel:  # of any dtype, and any number of dimensions
            return write_out("gather", input.reshape(-1)[:0].reshape(index.shape), out, True)
        need_index("gather", index)
        return write_out("gather", _gather(input, dim, index), out, True)
    except Exception as exc:
        refuse(exc)
        raise


@both
def take_along_dim(input, indices, dim=None, *, out=None):
    """``gather`` whose input and indices broadcast in the other dimensions; without ``dim``, from all elements.

    Args:
        indices: an int64 tensor, broadcast with ``input`` along other dimensions; along ``dim`` they are taken modulo
            its size
        dim: the dimension; the flattened tensor unless given
    Returns:
        A tensor.
    Raises:
        RuntimeError: an index is out of range, or shapes do not match
    """
    if indices._h.dtype != lib.TT_I64:
        raise RuntimeError(f"take_along_dim(): dtype of indices should be Long but got {name_of(indices)}")
    if dim is None:
        return write_out("take_along_dim", _gather(input.reshape(-1), 0, indices.reshape(-1)), out, True)
    if input._h.ndim != indices._h.ndim:
        raise RuntimeError(
            "take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input._h.ndim} dimensions for input, and {indices._h.ndim} dimensions for indices"
        )
    dim = input._dim(dim)
    have, want = list(input.shape), list(indices.shape)
    have[dim : dim + 1] = want[dim : dim + 1] = [1] * (input._h.ndim > 0)
    shape = list(broadcast_shapes(tuple(have), tuple(want)))
    for t in (input, indices):
        shape[dim : dim + 1] = list(t.shape[dim : dim + 1])
        if t is input:
            source = input if list(t.shape) == shape else t.expand(shape)
        else:
            indices = indices if list(t.shape) == shape else t.expand(shape)
    n = source.shape[dim] if shape else 1
    return write_out("take_along_dim", _gather(source, dim, indices.remainder(n) if n else indices), out, True)


def _from_places(g, shape, dim, index):
    """The gradient of a scatter's source: what stands where its elements went; beyond the index, nothing."""
    return _widened(_gather(g, dim, index), shape)


def _scattering(op: str, mode: int, **vjps):
    """A scatter that writes in this mode."""

    def write(h, writer, dim, index, src):
        status = lib.tt_scatter(h, dim, index._h, src._h, mode, writer)
        if status < 0:
            raise _as_runtime(error(f"{op}()"))
        return status

    return update(op, **vjps)(write)


_scatter, _scatter_ = _scattering(
    "scatter",
    REPLACE,
    input=lambda g, dim, index: _scatter(g, dim, index, number(0)),
    src=lambda g, src_shape, dim, index: _from_places(g, src_shape, dim, index),
)
_scatter_add, _scatter_add_ = _scattering(
    "scatter_add", ADD, input=lambda g: g, src=lambda g, src_shape, dim, index: _from_places(g, src_shape, dim, index)
)


def _count(input, dim, index, hits, matches):
    """How many of the elements that went to each place have the property: of ``input`` and of the source."""
    return _scatter_add(hits.to(input.dtype), dim, index, matches.to(input.dtype))


def _extreme(g, input, dim, index, src, out, of_input):
    """amax's and amin's gradient: shared evenly by the elements that equal the result."""
    hits, matches = input == out, _narrowed(src, index) == _gather(out, dim, index)
    share = g / _count(input, dim, index, hits, matches)
    if of_input:
        return share * hits.to(g.dtype)
    return _widened(_gather(share, dim, index) * matches.to(g.dtype), src.shape)


def _others_of_all_orders(g, input, dim, index, src, out, of_input):
    """prod's gradient, differentiable where there are zeros, too. To P, the product of a place's other elements that
    are not zero, comes the product of its other zeros: an elementary symmetric polynomial e_k of all of them, which
    Newton's identities give from sums of powers. Places of more than three zeros count as if they had no gradient,
    which is right up to third derivatives."""
    part = _narrowed(src, index)
    zeros = _count(input, dim, index, input == 0, part == 0)
    if not bool((zeros > 0).any()):
        return _others(g, input, dim, index, src, out, of_input)
    product = _scatter_mul(input.masked_fill(input == 0, 1), dim, index, part.masked_fill(part == 0, 1))
    z, z_part = input.masked_fill(input != 0, 0), part.masked_fill(part != 0, 0)
    powers = [_scatter_add(z**k, dim, index, z_part**k) for k in (1, 2, 3)]
    x = input if of_input else part
    if not of_input:
        g, product, zeros, z = _gather(g, dim, index), _gather(product, dim, index), _gather(zeros, dim, index), z_part
        powers = [_gather(p, dim, index) for p in powers]
    p1, p2, p3 = powers
    all_zeros = [p1, (p1 * p1 - p2) / 2, (p1 * p1 * p1 - 3 * p1 * p2 + 2 * p3) / 6]  # e_1, e_2, e_3
    other_zeros = [p1 - z, all_zeros[1] - z * (p1 - z)]  # the same without x, where x is zero
    rest, is_zero = product / x.masked_fill(x == 0, 1), x == 0
    result = rest.masked_fill(zeros > 3, 0)
    for n, others in enumerate(other_zeros, 2):
        result = (product * others).where((zeros == n) & is_zero, result)
    for n, others in enumerate(all_zeros, 1):
        result = (rest * others).where((zeros == n) & ~is_zero, result)
    return g * result if of_input else _widened(g * result, src.shape)


def _others(g, input, dim, index, src, out, of_input):
    """prod's gradient: the product of the other elements. P is the product of those that are not zero, and Z counts
    the zeros: without any it is P / x, at the only zero it is P, else zero."""
    part = _narrowed(src, index)
    product = _scatter_mul(input.masked_fill(input == 0, 1), dim, index, part.masked_fill(part == 0, 1))
    zeros = _count(input, dim, index, input == 0, part == 0)
    x = input if of_input else part
    if not of_input:
        g, product, zeros = _gather(g, dim, index), _gather(product, dim, index), _gather(zeros, dim, index)
    rest = product / x.masked_fill(x == 0, 1)
    result = (g * rest).masked_fill(~((zeros == 0) | ((zeros == 1) & (x == 0))), 0)
    return result if of_input else _widened(result, src.shape)


def _narrowed(src, index):
    """Of src, what stands under the index."""
    if src.shape == index.shape:
        return src
    return src[tuple(slice(n) for n in index.shape)]


def _widened(part, shape):
    """The other way round: zeros beyond the index."""
    return part if part.shape == shape else embed(part, shape, tuple(n for s in part.shape for n in (SLICE, 0, s, 1)))


def _formulas(rule):
    """A rule's formulas for both inputs."""
    return {
        "input": lambda g, input, dim, index, src, out: rule(g, input, dim, index, src, out, True),
        "src": lambda g, input, dim, index, src, out: rule(g, input, dim, index, src, out, False),
    }


_scatter_mul, _ = _scattering(
    "scatter_reduce", MULTIPLY, first_order=_formulas(_others), **_formulas(_others_of_all_orders)
)
_scatter_max, _ = _scattering("scatter_reduce", LARGER, **_formulas(_extreme))
_scatter_min, _ = _scattering("scatter_reduce", SMALLER, **_formulas(_extreme))


def _scatter_arguments(op, input, dim, index, src):
    dim = input._dim(dim)
    need_index(op, index)
    if not isinstance(src, Tensor):
        check_fits(input._h.dtype, scalar_kind(src), src)
        src = number(src)
    elif src._h.dtype != input._h.dtype:
        raise RuntimeError(
            f"{op}(): Expected self.dtype to be equal to src.dtype, got {name_of(input)} and {name_of(src)}"
        )
    return dim, index, src


def _source(op, src, value):
    if (src is None) == (value is None):
        raise TypeError(f"{op}(): expected one of 'src' and 'value'")
    return value if src is None else src


def _legacy(op, input, dim, index, src, reduce):
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"{op}(): reduce argument must be either add or multiply, got {reduce}")
    dim, index, src = _scatter_arguments(op, input, dim, index, src)
    if src._h.flags & lib.TT_FLAG_WEAK:
        src = owned.tt_cast(src._h, input._h.dtype).expand(index.shape)
    return (_scatter_add if reduce == "add" else _scatter_mul)(input, dim, index, src)


@both
def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None):
    """A copy of ``input`` with ``out[i][index[i][j][k]][k] = src[i][j][k]`` for ``dim`` 1, and so on; ``src`` is a
    tensor at least as large as ``index``, or a number. ``reduce`` "add" or "multiply" combines with what is there.
    Of several writes to one place the last stays. Follows ``torch.scatter``.

    Args:
        index: an int64 tensor, not larger than ``input`` along other dimensions nor than ``src``
        src: a tensor of the dtype of ``input``, or a number
        value: a number in place of ``src``
        reduce: ``'add'`` or ``'multiply'``, rather than to write
    Returns:
        A tensor of the shape of ``input``.
    Raises:
        RuntimeError: an index is out of range, or shapes or dtypes do not match
    """
    src = _source("scatter", src, value)
    if reduce is not None:
        return write_out("scatter", _legacy("scatter", input, dim, index, src, reduce), out, True)
    return write_out("scatter", _scatter(input, *_scatter_arguments("scatter", input, dim, index, src)), out, True)


@both
def scatter_(input, dim, index, src=None, *, value=None, reduce=None):
    """``scatter`` in place."""
    src = _source("scatter_", src, value)
    if reduce is not None:
        return input.copy_(_legacy("scatter_", input.clone(), dim, index, src, reduce))
    return _scatter_(input, *_scatter_arguments("scatter_", input, dim, index, src))


@both
def scatter_add(input, dim, index, src, *, out=None):
    """``scatter`` that adds; repeated places add up, in order. Follows ``torch.scatter_add``. Otherwise like
    ``scatter``.

    Args:
        src: a tensor of the dtype of ``input``
    """
    args = _scatter_arguments("scatter_add", input, dim, index, src)
    return write_out("scatter_add", _scatter_add(input, *args), out, True)


@both
def scatter_add_(input, dim, index, src):
    """``scatter_add`` in place."""
    return _scatter_add_(input, *_scatter_arguments("scatter_add_", input, dim, index, src))


def _lowest(input, largest: bool):
    """What amax (or amin) starts from when the input's own values do not count."""
    if input.dtype.is_differentiable:  # of complex numbers there is none, as the kernel says
        return float("inf") if largest else float("-inf")
    if input._h.dtype == lib.TT_BOOL:
        return largest
    return iinfo(input.dtype).max if largest else iinfo(input.dtype).min


def _reduced(op, input, dim, index, src, reduce, include_self):
    flags_only(op, include_self=include_self)
    if reduce not in ("sum", "prod", "mean", "amax", "amin"):
        raise RuntimeError(f"{op}(): reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    dim, index, src = _scatter_arguments(op, input, dim, index, src)
    start = input
    if not include_self:
        first = {"prod": 1, "amax": _lowest(input, False), "amin": _lowest(input, True)}.get(reduce, 0)
        start = _scatter(input, dim, index, number(first))
    if reduce in ("prod", "amax", "amin"):
        return {"prod": _scatter_mul, "amax": _scatter_max, "amin": _scatter_min}[reduce](start, dim, index, src)
    total = _scatter_add(start, dim, index, src)
    if reduce == "sum":
        return total
    code, kind = input._h.dtype, lib.TT_KIND_INT
    ones = on_device(input.device, owned.tt_full, code, index._h.ndim, list(index.shape), kind, 0.0, 1)
    base = on_device(input.device, owned.tt_full, code, input._h.ndim, list(input.shape), kind, 0.0, int(include_self))
    counts = _scatter_add(base, dim, index, ones)
    if not include_self:
        counts = counts.masked_fill(counts == 0, 1)
    return total / counts if input.dtype.is_differentiable else total.floor_divide(counts)


@both
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """``scatter`` that combines what goes to one place by "sum", "prod", "mean", "amax" or "amin"; without
    ``include_self``, input's own values there do not count. Follows ``torch.scatter_reduce``. Otherwise like
    ``scatter_add``.

    Args:
        reduce: ``'sum'``, ``'prod'``, ``'mean'``, ``'amax'`` or ``'amin'``
        include_self: whether the elements of ``input`` count, too
    """
    return write_out(
        "scatter_reduce", _reduced("scatter_reduce", input, dim, index, src, reduce, include_self), out, True
    )


@both
def scatter_reduce_(input, dim, index, src, reduce, *, include_self=True):
    """``scatter_reduce`` in place."""
    return input.copy_(_reduced("scatter_reduce_", input.clone(), dim, index, src, reduce, include_self))


def _index_reduced(op, input, dim, index, source, reduce, include_self):
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"{op}(): reduce argument must be either prod, mean, amax or amin, got {reduce}")
    _, index, source = along_vector(op, input, dim, index, source)
    dim = input._dim(dim)
    shape = [1] * source._h.ndim
    shape[dim] = index._h.numel
    try:
        return _reduced(op, input, dim, index.reshape(shape).expand(source.shape), source, reduce, include_self)
    except RuntimeError as exc:
        if "is out of bounds for dimension" in str(exc):
            raise IndexError(str(exc)) from None
        raise


@both
def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """``index_add`` that combines by "prod", "mean", "amax" or "amin". Follows ``torch.index_reduce``."""
    result = _index_reduced("index_reduce", input, dim, index, source, reduce, include_self)
    return write_out("index_reduce", result, out)


@both
def index_reduce_(input, dim, index, source, reduce, *, include_self=True):
    """``index_reduce`` in place."""
    return input.copy_(_index_reduced("index_reduce_", input.clone(), dim, index, source, reduce, include_self))
