"""Operators: ranges, grids, the identity matrix, indices of triangles; the constructor ``Tensor(...)``."""

from __future__ import annotations

import builtins
import itertools
import math
import operator
import warnings
from array import array

from ..backends.cpu import check, ffi, lib
from ..devices import on_device
from ..dtypes import ALL, INTEGRAL, Size, dtype_code, get_default_dtype, int32, int64
from ..storage import TypedStorage, UntypedStorage, vector
from ..tensor import FUNCTIONS, Tensor, as_class, attempted, owned
from .create import code_of, finish, into, pinned, placed, sizes, tensor
from .declare import function, scalar_kind, refuse
from .fitting import check_fits, fitted
from .from_python import pack


_FAR = 1 << 62  # from there on numbers, or their sums, may be none of int64


def _numbers(op: str, *values):
    """The values as Python numbers (0-d tensors among them), and whether all are integers."""
    values = tuple(v.item() if isinstance(v, Tensor) else v for v in values)
    try:
        return values, all(scalar_kind(v) in (lib.TT_KIND_BOOL, lib.TT_KIND_INT) for v in values)
    except TypeError as exc:
        raise TypeError(f"{op}(): every bound must be a number, not {exc}") from None


def _deliver(made: Tensor | None, op: str, out, requires_grad, pin_memory=False) -> Tensor:
    """The new tensor, or its values in ``out``."""
    fresh = finish(made, op, pin_memory=pin_memory)
    if out is not None:
        return into(out, fresh.shape, op).copy_(fresh)
    return fresh.requires_grad_() if requires_grad else fresh


@function
def arange(
    start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """The numbers from ``start`` (0 if not given) on by ``step``, below ``end``; int64 if all three are integers.
    RuntimeError for a zero step or one of the wrong sign. Follows ``torch.arange``.

    Args:
        start: the first number
        end: where to stop: not among them
        step: from one number to the next
    Returns:
        A vector; int64 where all numbers are integers, else of the default dtype, unless given.
    Raises:
        RuntimeError: ``step`` is 0 or leads away from ``end``
    """
    try:
        if end is None:
            start, end = 0, start
        plain = (
            (dtype is None or dtype is int64 or dtype is int32)
            and out is None
            and type(start) is int
            and type(end) is int
            and type(step) is int
        )
        if plain and 0 < step < _FAR and -_FAR < start <= end < _FAR:  # the commonest range
            n = (end - start + step - 1) // step
            code = lib.TT_I32 if dtype is int32 else lib.TT_I64
            made = on_device(device, attempted.tt_arange, code, n, 0.0, 0.0, start, step)
            return _deliver(made, "arange", None, requires_grad, pin_memory)
        (start, end, step), whole = _numbers("arange", start, end, step)
        if dtype is None:
            code = out._h.dtype if out is not None else lib.TT_I64 if whole else get_default_dtype().code
        else:
            code = dtype_code(dtype, "arange")
        if code == lib.TT_BOOL:
            raise NotImplementedError("arange: not implemented for 'Bool'")
        if not whole and not (math.isfinite(start) and math.isfinite(end)):
            raise RuntimeError(f"arange: unsupported range: {start} -> {end}")
        distance, stride = end - start, step
        if INTEGRAL[code]:
            for value in (start, end, step):
                check_fits(lib.TT_U64 if code == lib.TT_U64 else lib.TT_I64, scalar_kind(value), value)
            start, end, step = int(start), int(end), int(step)
        if code == lib.TT_I64:
            stride = step
        if stride == 0:
            raise RuntimeError("arange: step must be nonzero")
        if distance * (1 if stride > 0 else -1) < 0:
            raise RuntimeError(
                f"arange: upper bound and lower bound inconsistent with step sign: {start}, {end}, {stride}"
            )
        if INTEGRAL[code]:  # PyTorch's other integers are cast after they are counted
            n = max(0, -((start - end) // step)) if whole or code == lib.TT_I64 else math.ceil(distance / stride)
            made = on_device(device, attempted.tt_arange, code, n, 0.0, 0.0, start, step)
        else:
            n = math.ceil(distance / stride)
            made = on_device(device, attempted.tt_arange, code, n, start, step, 0, 0)
        return _deliver(made, "arange", out, requires_grad, pin_memory)
    except Exception as exc:
        refuse(exc)
        raise


@function
def range(
    start,
    end=None,
    step=1,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,  # noqa: A001 (torch's name)
    requires_grad=False,
) -> Tensor:
    """Like ``arange``, with ``end`` included and floats. Deprecated, as ``torch.range`` is."""
    warnings.warn(
        "range is deprecated and will be removed in a future release because its behavior is inconsistent "
        "with Python's range builtin. Instead, use arange, which produces values in [start, end).",
        stacklevel=2,
    )
    if end is None:
        start, end = 0, start
    (start, end, step), _ = _numbers("range", start, end, step)
    if step == 0:
        raise RuntimeError("range: step must be nonzero")
    if not (math.isfinite(start) and math.isfinite(end)):
        raise RuntimeError(f"range: unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(f"range: upper bound and lower bound inconsistent with step sign: {start}, {end}, {step}")
    n = math.floor((end - start) / step) + 1
    code = code_of(dtype, "range")
    whole = (int(start), int(step)) if INTEGRAL[code] else (0, 0)
    made = on_device(device, attempted.tt_arange, code, n, start, step, *whole)
    return _deliver(made, "range", out, requires_grad)


def _steps(op: str, start, end, steps, code: int):
    (start, end), _ = _numbers(op, start, end)
    try:
        steps = operator.index(steps)
    except TypeError:
        raise TypeError(f"{op}(): argument 'steps' must be int, not {type(steps).__name__}") from None
    if code == lib.TT_BOOL:
        raise NotImplementedError(f"{op}: not implemented for 'bool'")
    if steps < 0:
        raise RuntimeError(f"{op}: number of steps must be non-negative, got {steps}")
    if steps > 1 or INTEGRAL[code]:  # the ends are cast first
        start, end = (int(x) if steps < 2 else fitted(x, code) for x in (start, end))
    return start, end, steps


@function
def linspace(
    start, end, steps, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False
) -> Tensor:
    """``steps`` numbers at equal distances from ``start`` to ``end``. Follows ``torch.linspace``.

    Args:
        start: the first number
        end: the last number
        steps: how many
    Returns:
        A vector of ``steps`` numbers, of the default dtype unless given.
    Raises:
        RuntimeError: ``steps`` is negative
    """
    code = code_of(dtype, "linspace")
    start, end, steps = _steps("linspace", start, end, steps, code)
    made = on_device(device, attempted.tt_linspace, code, steps, start, end)
    return _deliver(made, "linspace", out, requires_grad, pin_memory)


@function
def logspace(
    start,
    end,
    steps,
    base=10.0,
    *,
    out=None,
    dtype=None,
    layout=None,
    device=None,
    requires_grad=False,
    pin_memory=False,
) -> Tensor:
    """``base`` to the powers ``linspace(start, end, steps)``. Follows ``torch.logspace``."""
    code = code_of(dtype, "logspace")
    start, end, steps = _steps("logspace", start, end, steps, code)
    made = on_device(device, attempted.tt_logspace, code, steps, start, end, base)
    return _deliver(made, "logspace", out, requires_grad, pin_memory)


@function
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """Ones on the diagonal of an ``n`` by ``m`` matrix (``n`` by ``n``), zeros elsewhere. Follows ``torch.eye``.

    Args:
        n: the number of rows
        m: the number of columns; ``n`` unless given
    Returns:
        A matrix (n, m).
    Raises:
        RuntimeError: a number is negative
    """
    n, m = sizes((n, n if m is None else m), "eye")
    for name, size in (("n", n), ("m", m)):
        if size < 0:
            raise RuntimeError(f"eye: {name} must be greater or equal to 0, got {size}")
    ones = finish(
        on_device(device, attempted.tt_full, code_of(dtype, "eye"), 2, (n, m), lib.TT_KIND_INT, 0.0, 0), "eye"
    )
    if min(n, m):
        diagonal = owned.tt_view(ones._h, 1, (min(n, m),), (m + 1,), 0)
        check(lib.tt_fill(diagonal._h, lib.TT_KIND_INT, 0.0, 1, -1), "eye")
    if out is not None:
        return into(out, ones.shape, "eye").copy_(ones)
    ones = pinned(ones, "eye") if pin_memory else ones
    return ones.requires_grad_() if requires_grad else ones


@function
def scalar_tensor(s, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """A 0-d tensor of a number, in the default dtype. Follows ``torch.scalar_tensor``."""
    code = code_of(dtype, "scalar_tensor")
    if code not in (lib.TT_F16, lib.TT_BF16):  # these make infinities
        s = fitted(s, code)
    return tensor(
        s,
        dtype=get_default_dtype() if dtype is None else dtype,
        device=device,
        requires_grad=requires_grad,
        pin_memory=pin_memory,
    )


def _triangle(op: str, row, col, offset, dtype, device) -> Tensor:
    code = lib.TT_I64 if dtype is None else dtype_code(dtype, op)
    if code not in (lib.TT_I16, lib.TT_I32, lib.TT_I64):
        raise NotImplementedError(f'"{op}" not implemented for {ALL[code]!r}; it gives int64, int32 or int16')
    return finish(on_device(device, attempted.tt_triangle, code, row, col, offset, op == "triu_indices"), op)


@function
def tril_indices(row, col, offset=0, *, dtype=None, device=None, layout=None) -> Tensor:
    """Rows and columns of the elements on and below a diagonal, 2 by N. Follows ``torch.tril_indices``."""
    return _triangle("tril_indices", row, col, offset, dtype, device)


@function
def triu_indices(row, col, offset=0, *, dtype=None, device=None, layout=None) -> Tensor:
    """Rows and columns of the elements on and above a diagonal, 2 by N. Follows ``torch.triu_indices``."""
    return _triangle("triu_indices", row, col, offset, dtype, device)


@function
def meshgrid(*tensors, indexing=None):
    """The coordinates of a grid: one view for each 1-d or 0-d tensor, of the shape of their lengths; with
    ``indexing="xy"`` the first two dimensions change places. Follows ``torch.meshgrid``.

    Args:
        tensors: vectors or 0-d tensors
        indexing: ``'ij'``, the first vector along the first dimension, or ``'xy'``, along the second
    Returns:
        A tuple of tensors with a dimension for each vector.
    Raises:
        RuntimeError: a tensor has more than one dimension
    """
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(f'meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    first = tensors[0]
    for k, t in enumerate(tensors):
        if t.dtype is not first.dtype:
            raise RuntimeError(
                f"meshgrid expects all tensors to have the same dtype: tensor 0 is {first.dtype!r}, "
                f"tensor {k} is {t.dtype!r}"
            )
        if t.ndim > 1:
            raise RuntimeError(
                f"meshgrid: Expected 0D or 1D tensor in the tensor list but got shape {tuple(t.shape)} for tensor {k}"
            )
    swap = indexing == "xy" and len(tensors) > 1
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = [t.numel() for t in tensors]
    grids = [
        t.reshape([-1 if d == k else 1 for d in builtins.range(len(shape))]).expand(shape)
        for k, t in enumerate(tensors)
    ]
    if swap:
        grids[:2] = grids[1], grids[0]
    return tuple(grids)


@function
def cartesian_prod(*tensors) -> Tensor:
    """All combinations of one element from each 1-d tensor, one a row. Follows ``torch.cartesian_prod``."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    for k, t in enumerate(tensors):
        if t.ndim != 1:
            raise RuntimeError(f"cartesian_prod: Expect a 1D vector, but got shape {list(t.shape)} for tensor {k}")
    if len(tensors) == 1:
        return tensors[0]
    return FUNCTIONS["stack"]([grid.flatten() for grid in meshgrid(*tensors, indexing="ij")], 1)


@function
def combinations(input, r=2, with_replacement=False) -> Tensor:
    """All combinations of ``r`` elements of a 1-d tensor, one a row, in the order of ``itertools``. Follows
    ``torch.combinations``."""
    if input.ndim != 1:
        raise RuntimeError(f"combinations: Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"combinations: Expect a non-negative number, but got {r}")
    if r == 0:
        return input.new_empty(0)
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    flat = array("q", itertools.chain.from_iterable(choose(builtins.range(len(input)), r)))
    index = finish(attempted.tt_empty(lib.TT_I64, 1, (len(flat),)), "combinations")
    if flat:
        ffi.memmove(index._h.data, flat, 8 * len(flat))
    index = index.to(input.device)
    return input.index_select(0, index).reshape(len(flat) // r, r)


def _construct(cls, *args, device=None, dtype=None, **kwargs):
    """``Tensor(2, 3)``: undefined values of that shape; ``Tensor([1., 2.])``: those values; both in the default dtype.
    ``Tensor(other)``: the same memory. Follows ``torch.Tensor``, whose advice holds: use ``tensor`` or ``empty``."""
    if dtype is not None or kwargs:
        raise TypeError(
            f"new() received an invalid combination of arguments: {cls.__name__}(...) takes no keyword but "
            "device; use tinytorch.tensor"
        )
    return as_class(made_of(args, get_default_dtype().code, device, cls.__name__), cls)


def made_of(args: tuple, code: int, device, name: str) -> Tensor:
    """What the constructor ``name`` makes of sizes, of values, of a tensor or of a storage, in the dtype ``code``."""
    first = args[0] if args else None
    if isinstance(first, Tensor):
        made = attempted.tt_alias(first._h)
    elif isinstance(first, UntypedStorage):
        made = vector(first.whole, ALL[code])
    elif isinstance(first, TypedStorage):
        if first.dtype.code != code:
            raise RuntimeError(f"{name}(): expected a storage of {ALL[code]!r}, got one of {first.dtype!r}")
        made = vector(first.untyped().whole, first.dtype)
    elif not args:
        made = on_device(device, attempted.tt_empty, code, 1, (0,))
    elif len(args) == 1 and (hasattr(first, "__len__") or not hasattr(first, "__index__")) and type(first) is not Size:
        if not hasattr(first, "__len__"):
            raise TypeError(f"new(): data must be a sequence (got {type(first).__name__})")
        made = placed(pack(first, code), device)
    else:
        shape = sizes(args, name)
        made = on_device(device, attempted.tt_empty, code, len(shape), shape)
    return finish(made, name)


def _construct_like(self, *args, device=None, size=None):
    """``x.new(2, 3)``, ``x.new([1., 2.])``: as the constructor, in the dtype of ``x``. Follows ``torch.Tensor.new``."""
    args = args if size is None else (*args, *size)
    return made_of(args, self._h.dtype, self.device if device is None else device, "new")


Tensor.__new__, Tensor.new = _construct, _construct_like
