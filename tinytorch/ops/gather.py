"""Reading and writing by index along a dimension: gather, scatter, index_add, take, masked_select, nonzero, embedding.

All of them are subscripts in another guise (``reader`` and ``putter`` of index.py), but for gather and scatter, whose
index has a value for every element.
"""

from __future__ import annotations

from ..autograd.views import FLAG_VIEW, refresh
from ..backends.cpu import check, error, lib
from ..dtypes import iinfo
from ..tensor import Tensor, wrap
from .declare import both, deliver, function, number, primitive
from .index import (ADD, FLAT, INDEX, KEEP, LARGER, MULTIPLY, REPLACE, SELF, SLICE, SMALLER, STRICT, adder, embed,
                    putter, reader)
from .shape import broadcast_shapes
from .update import updating

_SHORT = {"bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long",
          "float16": "Half", "bfloat16": "BFloat16", "float32": "Float", "float64": "Double"}


def _name(t: Tensor) -> str:
    return _SHORT[t.dtype.name]


def _along(dim: int):
    """The code of an index tensor along a dimension."""
    return (KEEP, dim, 0, 0, INDEX, 1, 0, 0)


def _flat(input) -> tuple:
    """The code of an index tensor into all elements."""
    return (INDEX, input._h.ndim, 0, 0)


def _need_index(op: str, index, wanted=(5, 4)) -> None:
    if not isinstance(index, Tensor):
        raise TypeError(f"{op}(): argument 'index' must be Tensor, not {type(index).__name__}")
    if index._h.dtype not in wanted:
        names = "/".join({5: "int64", 4: "int32"}[w] for w in sorted(wanted))
        raise (IndexError if op == "index_fill_" else RuntimeError)(
            f"{op}(): Expected dtype {names} for index but got: {_name(index)}")


def _need_same(op: str, self, source, what="source") -> None:
    if self._h.dtype != source._h.dtype:
        raise RuntimeError(f"{op}(): self ({_name(self)}) and {what} ({_name(source)}) must have the same scalar type: "
                           f"Expected self.dtype to be equal to {what}.dtype")


def _need_vector(op: str, index) -> None:
    if index._h.ndim > 1:
        raise IndexError(f"{op}(): Index is supposed to be a vector, got shape {tuple(index.shape)}")


# Along one dimension, by a vector.


@both
def index_select(input, dim, index, *, out=None):
    """The entries along ``dim`` that the int vector ``index`` names. IndexError out of range; negative indices are
    refused. Follows ``torch.index_select``."""
    _need_index("index_select", index)
    _need_vector("index_select", index)
    dim = input._dim(dim)
    if input._h.ndim == 0:
        if index._h.numel != 1:
            raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index._h.numel} value(s)")
        result = reader("index_select", 1, SELF)(input, _flat(input), index.reshape(()))
    else:
        result = reader("index_select", 1, SELF)(input, _along(dim), index if index._h.ndim else index.reshape(1))
    return deliver("index_select", result, out)


def _along_vector(op: str, input, dim: int, index, source):
    """Checks of index_add and index_copy; the dimension and a vector of indices."""
    _need_vector(op, index)
    if not isinstance(source, Tensor):
        raise TypeError(f"{op}(): argument 'source' must be Tensor, not {type(source).__name__}")
    _need_same(op, input, source)
    dim = input._dim(dim)
    have, want = list(source.shape) or [1], list(input.shape) or [1]
    if len(have) != len(want):
        raise RuntimeError(f"{op}(): source has {len(have)} dimensions, self {len(want)}; they must have as many")
    if index._h.numel != have[dim]:
        raise (IndexError if op.startswith("index_copy") else RuntimeError)(
            f"{op}(): Number of indices ({index._h.numel}) should be equal to source.size(dim): ({have[dim]}), "
            f"for dim: {dim}")
    if have[:dim] + have[dim + 1:] != want[:dim] + want[dim + 1:]:
        raise RuntimeError(f"{op}(): source tensor shape must match self tensor shape, excluding the specified "
                           f"dimension. Got self.shape = {want} source.shape = {have}")
    if input._h.ndim == 0:
        return _flat(input), index.reshape(-1), source.reshape(-1)
    return _along(dim), index if index._h.ndim else index.reshape(1), source


def _add_arguments(op, input, dim, index, source, alpha):
    _need_index(op, index)
    code, index, source = _along_vector(op, input, dim, index, source)
    return code, source if alpha == 1 else source * alpha, ADD, index


@both
def index_add(input, dim, index, source, *, alpha=1, out=None):
    """``input`` with the entries of ``alpha * source`` along ``dim`` added where the vector ``index`` says; repeated
    indices add up, in order. Follows ``torch.index_add``."""
    args = _add_arguments("index_add", input, dim, index, source, alpha)
    return deliver("index_add", putter("index_add", 1, SELF)[0](input, *args), out)


@both
def index_add_(input, dim, index, source, *, alpha=1):
    """``index_add`` in place."""
    return putter("index_add", 1, SELF)[1](input, *_add_arguments("index_add_", input, dim, index, source, alpha))


def _copy_arguments(op, input, dim, index, source):
    _need_index(op, index, (5,))
    code, index, source = _along_vector(op, input, dim, index, source)
    return code, source, REPLACE, index


@both
def index_copy(input, dim, index, source, *, out=None):
    """``input`` with the entries of ``source`` along ``dim`` where the vector ``index`` says."""
    args = _copy_arguments("index_copy", input, dim, index, source)
    return deliver("index_copy", putter("index_copy", 1, STRICT)[0](input, *args), out)


@both
def index_copy_(input, dim, index, source):
    """``index_copy`` in place."""
    return putter("index_copy", 1, STRICT)[1](input, *_copy_arguments("index_copy_", input, dim, index, source))


def _fill_arguments(op, input, dim, index, value):
    _need_index(op, index, (5,))
    _need_vector(op, index)
    if isinstance(value, Tensor):
        if value._h.ndim:
            raise RuntimeError(f"{op} only supports a 0-dimensional value tensor, but got tensor with "
                               f"{value._h.ndim} dimension(s).")
    else:
        value = number(value)
    dim = input._dim(dim)
    code = _along(dim) if input._h.ndim else _flat(input)
    return code, value, REPLACE, index if index._h.ndim else index.reshape(1)


@both
def index_fill(input, dim, index, value):
    """``input`` with ``value`` (a number or 0-d tensor) in the entries along ``dim`` that ``index`` names."""
    return putter("index_fill")[0](input, *_fill_arguments("index_fill_", input, dim, index, value))


@both
def index_fill_(input, dim, index, value):
    """``index_fill`` in place."""
    return putter("index_fill")[1](input, *_fill_arguments("index_fill_", input, dim, index, value))


# In all elements, by their number.


@both
def take(input, index, *, out=None):
    """The elements of ``input`` numbered row-major, at the numbers ``index``, in index's shape."""
    _need_long("take", index)
    return deliver("take", reader("take", 1, FLAT)(input, _flat(input), index), out)


def _need_long(op, index):
    if index._h.dtype != 5:
        raise RuntimeError(f"{op}(): Expected a long tensor for index, but got {_name(index)}")


def _put_all(op, input, index, source, accumulate):
    _need_long(op, index)
    if input._h.dtype != source._h.dtype:
        raise RuntimeError(f"{op}(): self and source expected to have the same dtype, but got self.dtype = "
                           f"{_name(input)} and source.dtype = {_name(source)}")
    if index._h.numel != source._h.numel:
        raise IndexError(f"{op}(): Expected source and index to have the same number of elements, but got "
                         f"source.numel() = {source._h.numel}, index.numel() = {index._h.numel}")
    return _flat(input), source.reshape(index.shape), ADD if accumulate else REPLACE, index


@both
def put(input, index, source, accumulate=False):
    """``input`` with the elements of ``source`` at the row-major numbers ``index``; or added there."""
    return putter("put", 1, FLAT)[0](input, *_put_all("put", input, index, source, accumulate))


@both
def put_(input, index, source, accumulate=False):
    """``put`` in place."""
    return putter("put", 1, FLAT)[1](input, *_put_all("put_", input, index, source, accumulate))


# By a mask.


@both
def nonzero(input, *, out=None, as_tuple=False):
    """The indices of the elements that are not zero: an int64 tensor (count, ndim), or with ``as_tuple`` one vector
    for each dimension. Follows ``torch.nonzero``."""
    if input._h.flags & FLAG_VIEW:
        refresh(input)
    if as_tuple:
        if input._h.ndim == 0:
            return (wrap(lib.tt_nonzero(input._h, True)),)
        return tuple(wrap(lib.tt_nonzero(input._h, False)).unbind(1))
    return deliver("nonzero", wrap(lib.tt_nonzero(input._h, False)), out)


@both
def argwhere(input):
    """``nonzero(input)``."""
    return nonzero(input)


@both
def masked_select(input, mask, *, out=None):
    """The elements where the bool tensor ``mask`` holds, as a vector; both broadcast. Follows
    ``torch.masked_select``."""
    if not isinstance(mask, Tensor) or mask._h.dtype != 0:
        raise RuntimeError(f"masked_select: expected BoolTensor for mask, got {getattr(mask, 'dtype', type(mask))}")
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    input = input if input.shape == shape else input.expand(shape)
    return deliver("masked_select", reader("masked_select")(input, _flat(input), _positions(mask, shape)), out)


def _positions(mask, shape) -> Tensor:
    """The row-major numbers of the elements where a mask, broadcast to ``shape``, holds."""
    mask = mask if mask.shape == shape else mask.expand(shape)
    if mask._h.flags & FLAG_VIEW:
        refresh(mask)
    return wrap(lib.tt_nonzero(mask._h, True))


def _masked_arguments(op, input, mask, source):
    if mask._h.dtype != 0:
        raise RuntimeError(f"{op} only supports boolean masks, but got mask with dtype {_name(mask)}")
    if input._h.dtype != source._h.dtype:
        raise RuntimeError(f"{op}: expected self and source to have same dtypes but got {_name(input)} and "
                           f"{_name(source)}")
    places = _positions(mask, input.shape)
    n = places._h.numel
    if source._h.numel < n:
        raise RuntimeError(f"{op}: Number of elements of source < number of ones in mask ({source._h.numel} < {n})")
    source = source.reshape(-1)
    return _flat(input), source if source._h.numel == n else source[:n], REPLACE, places


@both
def masked_scatter(input, mask, source):
    """``input`` with the first elements of ``source``, one after the other, where ``mask`` holds."""
    shape = broadcast_shapes(tuple(input.shape), tuple(mask.shape))
    input = input if input.shape == shape else input.expand(shape)
    return putter("masked_scatter")[0](input, *_masked_arguments("masked_scatter", input, mask, source))


@both
def masked_scatter_(input, mask, source):
    """``masked_scatter`` in place; the mask broadcasts to ``input``."""
    return putter("masked_scatter")[1](input, *_masked_arguments("masked_scatter_", input, mask, source))


# By an index for every element.


@primitive(input=lambda g, input_shape, dim, index: _gather_backward(g, input_shape, dim, index))
def _gather(input, dim, index):
    h = lib.tt_gather(input._h, dim, index._h)
    if not h:
        raise _as_runtime(error())
    return wrap(h)


def _as_runtime(exc):
    """gather and scatter report an index out of range as RuntimeError."""
    return RuntimeError(*exc.args) if isinstance(exc, IndexError) else exc


@primitive(g=lambda g, dim, index: _gather(g, dim, index))
def _gather_backward(g, shape, dim, index):
    out = wrap(lib.tt_full(g._h.dtype, len(shape), shape, 1, 0.0, 0))
    check(lib.tt_scatter(out._h, dim, index._h, g._h, ADD, -1))
    return out


@both
def gather(input, dim, index, *, sparse_grad=False, out=None):
    """``out[i][j][k] = input[i][index[i][j][k]][k]`` for ``dim`` 1, and so on; ``index`` (int64 or int32) has input's
    rank, and the result its shape. Follows ``torch.gather``."""
    dim = input._dim(dim)
    _need_index("gather", index)
    return deliver("gather", _gather(input, dim, index), out)


@both
def take_along_dim(input, indices, dim=None, *, out=None):
    """``gather`` whose input and indices broadcast in the other dimensions; without ``dim``, from all elements."""
    if indices._h.dtype not in (4, 5):
        raise RuntimeError(f"take_along_dim(): dtype of indices should be Long but got {_name(indices)}")
    if dim is None:
        return deliver("take_along_dim", _gather(input.reshape(-1), 0, indices.reshape(-1)), out)
    if input._h.ndim != indices._h.ndim:
        raise RuntimeError("take_along_dim(): input and indices should have the same number of dimensions, but got "
                           f"{input._h.ndim} dimensions for input, and {indices._h.ndim} dimensions for indices")
    dim = input._dim(dim)
    have, want = list(input.shape), list(indices.shape)
    have[dim:dim + 1] = want[dim:dim + 1] = [1] * (input._h.ndim > 0)
    shape = list(broadcast_shapes(tuple(have), tuple(want)))
    for t in (input, indices):
        shape[dim:dim + 1] = list(t.shape[dim:dim + 1])
        if t is input:
            source = input if list(t.shape) == shape else t.expand(shape)
        else:
            indices = indices if list(t.shape) == shape else t.expand(shape)
    return deliver("take_along_dim", _gather(source, dim, indices), out)


def _from_places(g, shape, dim, index):
    """The gradient of a scatter's source: what stands where its elements went; beyond the index, nothing."""
    return _widened(_gather(g, dim, index), shape)


def _scattering(op: str, mode: int, **vjps):
    """A scatter that writes in this mode."""

    def write(h, writer, dim, index, src):
        if lib.tt_scatter(h, dim, index._h, src._h, mode, writer) < 0:
            raise _as_runtime(error(f"{op}()"))

    return updating(op, **vjps)(write)


_scatter, _scatter_ = _scattering(
    "scatter", REPLACE, input=lambda g, dim, index: _scatter(g, dim, index, number(0)),
    src=lambda g, src_shape, dim, index: _from_places(g, src_shape, dim, index))
_scatter_add, _scatter_add_ = _scattering(
    "scatter_add", ADD, input=lambda g: g, src=lambda g, src_shape, dim, index: _from_places(g, src_shape, dim, index))


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
    return {"input": lambda g, input, dim, index, src, out: rule(g, input, dim, index, src, out, True),
            "src": lambda g, input, dim, index, src, out: rule(g, input, dim, index, src, out, False)}


_scatter_mul, _ = _scattering("scatter_reduce", MULTIPLY, **_formulas(_others))
_scatter_max, _ = _scattering("scatter_reduce", LARGER, **_formulas(_extreme))
_scatter_min, _ = _scattering("scatter_reduce", SMALLER, **_formulas(_extreme))


def _scatter_arguments(op, input, dim, index, src):
    dim = input._dim(dim)
    if not isinstance(index, Tensor):
        raise TypeError(f"{op}(): argument 'index' must be Tensor, not {type(index).__name__}")
    _need_index(op, index)
    if not isinstance(src, Tensor):
        src = number(src)
    elif src._h.dtype != input._h.dtype:
        raise RuntimeError(f"{op}(): Expected self.dtype to be equal to src.dtype, got {_name(input)} and {_name(src)}")
    return dim, index, src


def _source(op, src, value):
    if (src is None) == (value is None):
        raise TypeError(f"{op}(): expected one of 'src' and 'value'")
    return value if src is None else src


def _legacy(op, input, dim, index, src, reduce):
    if reduce not in ("add", "multiply"):
        raise RuntimeError(f"{op}(): reduce argument must be either add or multiply, got {reduce}")
    dim, index, src = _scatter_arguments(op, input, dim, index, src)
    if src._h.flags & 2:
        src = wrap(lib.tt_cast(src._h, input._h.dtype)).expand(index.shape)
    return (_scatter_add if reduce == "add" else _scatter_mul)(input, dim, index, src)


@both
def scatter(input, dim, index, src=None, *, value=None, reduce=None, out=None):
    """A copy of ``input`` with ``out[i][index[i][j][k]][k] = src[i][j][k]`` for ``dim`` 1, and so on; ``src`` is a
    tensor at least as large as ``index``, or a number. ``reduce`` "add" or "multiply" combines with what is there.
    Of several writes to one place the last stays. Follows ``torch.scatter``."""
    src = _source("scatter", src, value)
    if reduce is not None:
        return deliver("scatter", _legacy("scatter", input, dim, index, src, reduce), out)
    return deliver("scatter", _scatter(input, *_scatter_arguments("scatter", input, dim, index, src)), out)


@both
def scatter_(input, dim, index, src=None, *, value=None, reduce=None):
    """``scatter`` in place."""
    src = _source("scatter_", src, value)
    if reduce is not None:
        return input.copy_(_legacy("scatter_", input.clone(), dim, index, src, reduce))
    return _scatter_(input, *_scatter_arguments("scatter_", input, dim, index, src))


@both
def scatter_add(input, dim, index, src, *, out=None):
    """``scatter`` that adds; repeated places add up, in order. Follows ``torch.scatter_add``."""
    return deliver("scatter_add", _scatter_add(input, *_scatter_arguments("scatter_add", input, dim, index, src)), out)


@both
def scatter_add_(input, dim, index, src):
    """``scatter_add`` in place."""
    return _scatter_add_(input, *_scatter_arguments("scatter_add_", input, dim, index, src))


def _lowest(input, largest: bool):
    """What amax (or amin) starts from when the input's own values do not count."""
    if input.dtype.is_floating_point:
        return float("inf") if largest else float("-inf")
    if input._h.dtype == 0:
        return largest
    return iinfo(input.dtype).max if largest else iinfo(input.dtype).min


def _reduced(op, input, dim, index, src, reduce, include_self):
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
    ones = wrap(lib.tt_full(input._h.dtype, index._h.ndim, list(index.shape), 1, 0.0, 1))
    base = wrap(lib.tt_full(input._h.dtype, input._h.ndim, list(input.shape), 1, 0.0, int(include_self)))
    counts = _scatter_add(base, dim, index, ones)
    if not include_self:
        counts = counts.masked_fill(counts == 0, 1)
    return total / counts if input.dtype.is_floating_point else total.floor_divide(counts)


@both
def scatter_reduce(input, dim, index, src, reduce, *, include_self=True, out=None):
    """``scatter`` that combines what goes to one place by "sum", "prod", "mean", "amax" or "amin"; without
    ``include_self``, input's own values there do not count. Follows ``torch.scatter_reduce``."""
    return deliver("scatter_reduce", _reduced("scatter_reduce", input, dim, index, src, reduce, include_self), out)


@both
def scatter_reduce_(input, dim, index, src, reduce, *, include_self=True):
    """``scatter_reduce`` in place."""
    return input.copy_(_reduced("scatter_reduce_", input.clone(), dim, index, src, reduce, include_self))


def _index_reduced(op, input, dim, index, source, reduce, include_self):
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"{op}(): reduce argument must be either prod, mean, amax or amin, got {reduce}")
    _need_index(op, index)
    _, index, source = _along_vector(op, input, dim, index, source)
    dim = input._dim(dim)
    shape = [1] * source._h.ndim
    shape[dim] = index._h.numel
    return _reduced(op, input, dim, index.reshape(shape).expand(source.shape), source, reduce, include_self)


@both
def index_reduce(input, dim, index, source, reduce, *, include_self=True, out=None):
    """``index_add`` that combines by "prod", "mean", "amax" or "amin". Follows ``torch.index_reduce``."""
    return deliver("index_reduce", _index_reduced("index_reduce", input, dim, index, source, reduce, include_self), out)


@both
def index_reduce_(input, dim, index, source, reduce, *, include_self=True):
    """``index_reduce`` in place."""
    return input.copy_(_index_reduced("index_reduce_", input.clone(), dim, index, source, reduce, include_self))


# Embedding.


def _embedding_backward(g, shape, indices, padding_idx):
    if padding_idx is not None:
        g = g.masked_fill((indices == padding_idx).unsqueeze(-1), 0)
    return adder(1)(g, shape, (INDEX, 1, 0, 0), indices)


@primitive(weight=lambda g, weight_shape, indices, padding_idx: _embedding_backward(g, weight_shape, indices,
                                                                                   padding_idx))
def _embedding(weight, indices, padding_idx):
    h = lib.tt_index_get(weight._h, 1, (INDEX, 1, 0, 0), [indices._h], SELF)
    if not h:
        raise error("embedding()")
    return wrap(h)


@function
def embedding(weight, indices, padding_idx=None):
    """The rows of the matrix ``weight`` that the int tensor ``indices`` names: its shape, and one dimension more. The
    row ``padding_idx`` gets no gradient. IndexError out of range. Follows ``torch.embedding``."""
    if weight._h.ndim != 2:
        raise RuntimeError(f"embedding(): 'weight' must be 2-D, got shape {tuple(weight.shape)}")
    if not isinstance(indices, Tensor) or indices._h.dtype not in (4, 5):
        given = f"{_name(indices)}Tensor" if isinstance(indices, Tensor) else type(indices).__name__
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, "
                           f"Int; but got {given} instead (while checking arguments for embedding)")
    if padding_idx is not None and padding_idx < 0:
        padding_idx = None if padding_idx == -1 else padding_idx + weight._h.shape[0]
    return _embedding(weight, indices, padding_idx)
