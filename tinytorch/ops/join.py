"""Joining and repeating."""

from __future__ import annotations

from ..autograd.views import writer_number
from ..backends.cpu import lib
from ..backends.native import copy_into, edges_of
from ..dtypes import ALL, get_default_dtype
from ..tensor import FUNCTIONS, Tensor, gives_tensor, owned
from .convert import in_dtype
from .declare import alias, both, function, ints, method, primitive, publish, write_out
from .declare.templates import build
from .shape import _reshape
from .slicing import cuts_of


def _common(op, tensors, out=None):
    """The code of the dtype that the tensors promote to, which must be one that ``out`` takes."""
    if not isinstance(tensors, (tuple, list)):
        raise TypeError(f"{op}(): argument 'tensors' must be tuple of Tensors, not {type(tensors).__name__}")
    for k, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"{op}: expected Tensor as element {k} in argument 0, but got {type(x).__name__}")
    if not tensors:
        raise (ValueError if op == "cat" else RuntimeError)(f"{op}: expected a non-empty list of Tensors")
    code = tensors[0]._h.dtype
    if any(x._h.dtype != code for x in tensors):
        # Promotion without regard to the number of dimensions, as PyTorch joins.
        common = tensors[0].new_empty((1,))
        for x in tensors[1:]:
            common = x.new_empty((1,), dtype=FUNCTIONS["result_type"](common, x.new_empty((1,))))
        code = common._h.dtype
    if isinstance(out, Tensor) and ALL[code].kind > out.dtype.kind:
        raise TypeError(f"{op}(): input types can't be cast to the desired output type {out.dtype.name}")
    return code


def _cast(parts, casts):
    if casts is None:
        return list(parts)
    return [g if d is None else in_dtype(g, d) for g, d in zip(parts, casts)]


def _parts(g, dim, sizes, casts):
    """The gradients of what was joined; ``sizes`` has None for what was skipped."""
    parts = iter(g.split([n for n in sizes if n is not None], dim))
    return _cast([g.new_zeros((0,)) if n is None else next(parts) for n in sizes], casts)


@primitive(variadic=True, title="CatBackward0", tensors=lambda g, dim, sizes, casts: _parts(g, dim, sizes, casts))
def _cat(tensors, dim, code, sizes, casts):
    handles = [x._h for x, n in zip(tensors, sizes) if n is not None]
    return owned.tt_join(len(handles), handles, dim, code, 0)


@primitive(variadic=True, title="StackBackward0", tensors=lambda g, dim, casts: _cast(g.unbind(dim), casts))
def _stack(tensors, dim, code, casts):
    return owned.tt_join(len(tensors), [x._h for x in tensors], dim, code, 1)


def _casts(tensors, handles, code):
    """The dtypes that gradients are cast to, None for those that need not be; None for all."""
    for a in handles:
        if a.dtype != code:
            return [None if x._h.dtype == code else x.dtype for x in tensors]
    return None


_SOURCE = """
def function(tensors, dim=0, *, out=None, axis=None):
    if axis is None:
        try:
            made = call(len(tensors), [x._h for x in tensors], dim if type(dim) is int else None, {stack})
        except (AttributeError, TypeError, OverflowError):
            made = None
        if made is not None and out is not None:
            written = copy_into(out, made, writer) if edges_of(tensors) is None else None
            if written is not None:
                return written
        elif made is not None:
            if edges_of(tensors) is None:
                return made
            return op_record(made, arguments(tensors, dim, made))
    try:
        return write_out(name, general(tensors, dim if axis is None else axis, out), out)
    except Exception as exc:
        refuse(exc)
        raise
"""


def _joining(kernel, stack: int, arguments):
    """The function of which the decorated one is the general path; ``arguments(tensors, dim, made)`` are those that
    ``kernel`` is recorded with."""

    def declare(general):
        op = kernel.op
        (fn,) = build(
            op,
            _SOURCE.format(stack=stack),
            f"<eager {op.name}>",
            ("function",),
            call=gives_tensor(lib.tt_join_plain),
            edges_of=edges_of,
            copy_into=copy_into,
            writer=writer_number(op.name),
            arguments=arguments,
            general=general,
            write_out=write_out,
        )
        fn.__doc__ = general.__doc__
        return publish(fn, name=op.name)

    return declare


def _of_cat(tensors, dim, made):
    h, handles = made._h, [x._h for x in tensors]
    dim, code = dim % h.ndim, h.dtype
    return tensors, dim, code, [a.shape[dim] for a in handles], _casts(tensors, handles, code)


@_joining(_cat, 0, _of_cat)
def cat(tensors, dim, out):
    """The tensors one after the other along ``dim``; their other sizes must agree. Empty 1-d tensors are skipped, as
    in PyTorch. Follows ``torch.cat``.

    Args:
        tensors: a sequence of tensors; empty vectors are left out
    Returns:
        A tensor of the dtype that theirs promote to.
    Raises:
        RuntimeError: sizes along other dimensions differ
        ValueError: there is no tensor
    """
    code = _common("cat", tensors, out)
    for k, x in enumerate(tensors):
        if x._h.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated")
    shaped = [x for x in tensors if x._h.ndim != 1 or x._h.numel] or tensors
    skipping = shaped[0]._h.ndim != 1
    dim = shaped[0]._dim(dim)
    sizes = [
        None if skipping and x._h.ndim == 1 and not x._h.numel else x._h.shape[dim] if dim < x._h.ndim else 0
        for x in tensors
    ]
    return _cat(tensors, dim, code, sizes, _casts(tensors, [x._h for x in tensors], code))


alias("cat", "concat", "concatenate")


def _of_stack(tensors, dim, made):
    h = made._h
    return tensors, dim % h.ndim, h.dtype, _casts(tensors, [x._h for x in tensors], h.dtype)


@_joining(_stack, 1, _of_stack)
def stack(tensors, dim, out):
    """The tensors, all of one shape, along a new dimension ``dim``. Follows ``torch.stack``.

    Args:
        tensors: a sequence of tensors of one shape
        dim: where the new dimension is
    Returns:
        A tensor with a dimension more.
    Raises:
        RuntimeError: the shapes differ, or there is no tensor
    """
    code = _common("stack", tensors, out)
    casts = _casts(tensors, [x._h for x in tensors], code)
    return _stack(list(tensors), tensors[0]._dim(dim, 1), code, casts)


@function
def atleast_1d(*tensors):
    """Tensors with at least one dimension."""
    return _each(tensors, lambda x: x if x._h.ndim else _reshape(x, (1,)))


@function
def atleast_2d(*tensors):
    """Tensors with at least two dimensions, new ones in front."""
    return _each(tensors, lambda x: x if x._h.ndim > 1 else _reshape(x, (1, -1)))


@function
def atleast_3d(*tensors):
    """Tensors with at least three dimensions."""

    def raised(x):
        if x._h.ndim > 2:
            return x
        return x.unsqueeze(-1) if x._h.ndim == 2 else _reshape(x, (1, -1, 1))

    return _each(tensors, raised)


def _each(tensors, fn):
    if len(tensors) == 1:
        given = tensors[0]
        return tuple(fn(x) for x in given) if isinstance(given, (tuple, list)) else fn(given)
    return tuple(fn(x) for x in tensors)


@function
def hstack(tensors):
    """Side by side: along dimension 1, or 0 for 1-d tensors.

    Args:
        tensors: a sequence of tensors
    Returns:
        A tensor.
    Raises:
        RuntimeError: sizes along other dimensions differ
    """
    _common("hstack", tensors)
    tensors = atleast_1d(tuple(tensors))
    return cat(tensors, 0 if tensors[0]._h.ndim == 1 else 1)


@function
def vstack(tensors):
    """On top of each other: along dimension 0, 1-d tensors as rows. Otherwise like ``hstack``."""
    _common("vstack", tensors)
    return cat(atleast_2d(tuple(tensors)), 0)


alias("vstack", "row_stack")


@function
def dstack(tensors):
    """Behind each other: along dimension 2."""
    _common("dstack", tensors)
    return cat(atleast_3d(tuple(tensors)), 2)


@function
def column_stack(tensors):
    """1-d tensors as columns, and 2-d ones, side by side."""
    _common("column_stack", tensors)
    return cat([_reshape(x, (-1, 1)) if x._h.ndim <= 1 else x for x in tensors], 1)


@function
def block_diag(*tensors):
    """A matrix with the given ones along its diagonal.

    Args:
        tensors: matrices, vectors (taken for rows) or 0-d tensors
    Returns:
        A matrix.
    Raises:
        RuntimeError: a tensor has more than two dimensions
    """
    if not tensors:
        return owned.tt_empty(get_default_dtype().code, 2, (1, 0))
    for k, x in enumerate(tensors):
        if not isinstance(x, Tensor):
            raise TypeError(f"block_diag: expected Tensor as element {k} in argument 0, but got {type(x).__name__}")
        if x._h.ndim > 2:
            raise RuntimeError(f"block_diag: Input tensors must have 2 or fewer dimensions. Input {k} has {x._h.ndim}")
    tensors = [atleast_2d(x) for x in tensors]
    columns = sum(x.shape[1] for x in tensors)
    rows, left = [], 0
    for x in tensors:
        n, m = x.shape
        rows.append(cat([x.new_zeros((n, left)), x, x.new_zeros((n, columns - left - m))], 1))
        left += m
    return cat(rows, 0)


@method
def repeat(input, repeats, *rest):
    """The tensor laid side by side ``repeats[d]`` times along each dimension; new ones in front. A copy.

    Args:
        repeats: how often, for each dimension
    Returns:
        A copy.
    Raises:
        RuntimeError: there are fewer counts than dimensions, or one is negative
    """
    sizes = ints((repeats, *rest))
    shape = tuple(input.shape)
    lead = len(sizes) - len(shape)
    if lead < 0:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of dimensions of "
            f"tensor: got {len(sizes)} for shape {shape}"
        )
    if min(sizes, default=0) < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeat sizes {sizes}")
    shape = (1,) * lead + shape
    apart, wide = [], []
    for r, s in zip(sizes, shape):
        if r != 1 and s != 1:
            apart += [1, s]
            wide += [r, s]
        elif r != s:  # two sizes of 1 need no dimension
            apart.append(s)
            wide.append(r * s)
    result = _reshape(_reshape(input, tuple(apart)).expand(wide), tuple(r * s for r, s in zip(sizes, shape)))
    return result.clone() if result._h.storage == input._h.storage else result


@function
def tile(input, dims):
    """``repeat``, where missing leading counts are 1.

    Args:
        dims: how often, for each dimension: a tuple
    Returns:
        A copy.
    Raises:
        RuntimeError: a count is negative
        TypeError: ``dims`` is a number
    """
    counts = ints(tuple(dims))
    return repeat(input, (1,) * (input._h.ndim - len(counts)) + counts)


_tile = tile


@method
def tile(self, dims, *rest):  # noqa: F811
    """``tinytorch.tile``, which also takes the counts one by one."""
    return _tile(self, ints((dims, *rest)))


def _splitter(name: str, dim: int, least: int):
    def parts(input, indices_or_sections=None, *, sections=None, indices=None):
        indices_or_sections = cuts_of(name, indices_or_sections, sections, indices)
        if input._h.ndim < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension(s), but got a tensor "
                f"with {input._h.ndim} dimensions!"
            )
        along = 0 if input._h.ndim == 1 else dim
        if isinstance(indices_or_sections, int) and indices_or_sections <= 0:
            raise RuntimeError(f"{name}: number of sections must be larger than 0, got {indices_or_sections}")
        if isinstance(indices_or_sections, int) and input._h.shape[along] % indices_or_sections:
            raise RuntimeError(
                f"{name}: the size of dimension {along} ({input._h.shape[along]}) is not divisible by "
                f"{indices_or_sections}"
            )
        return input.tensor_split(indices_or_sections, along)

    parts.__name__ = parts.__qualname__ = name
    parts.__doc__ = f"``tensor_split`` along dimension {dim}."
    return both(parts)


hsplit, vsplit, dsplit = _splitter("hsplit", 1, 1), _splitter("vsplit", 0, 2), _splitter("dsplit", 2, 3)
