"""Scans along a dimension: cumulative sums, products and extremes; differences.

The derivatives of cumprod and logcumsumexp are linear recurrences, r[i] = b[i] + a[i] r[i+1], and so are theirs: one
kernel serves every order, without a division, so that zeros and infinities need no cases.
"""

from __future__ import annotations

import math

from .. import return_types
from ..backends.cpu import ffi, lib
from ..tensor import Tensor, gives_tensors, owned
from .convert import in_dtype
from .declare import both, method, primitive, write_out
from .join import cat
from .extremes import put_back
from .reduce import result_code, shifted

_SUM, _PROD, _LOGSUMEXP = range(3)


def _recur_b(g, a, dim, reverse):
    # r[i] = b[i] + a[i] r[i-1]: the gradient runs the other way, with each factor one place further.
    return recur(_neighbour(a, dim, not reverse, 0), g, dim, not reverse)


def _recur_a(g, a, out, dim, reverse):
    return _recur_b(g, a, dim, reverse) * _neighbour(out, dim, reverse, 0)


@primitive(a=_recur_a, b=_recur_b)
def recur(a, b, dim, reverse):
    """r with r[i] = b[i] + a[i] r[i-1] along ``dim`` (with ``reverse``, r[i+1]), from r = 0."""
    return owned.tt_recur(a._h, b._h, dim, reverse)


def _neighbour(x, dim, following: bool, end):
    """The element before each along ``dim``, or the ``following`` one; ``end`` where there is none."""
    n = x.shape[dim]
    return shifted(x.narrow(dim, 1 if following else 0, n - 1), dim, following, end)


# Sums and products. Each input reaches all later outputs.


@primitive(
    title="CumsumBackward0",
    input=lambda g, input_dtype, dim, reverse: in_dtype(_cumsum(g, dim, 1 - reverse, -1), input_dtype),
)
def _cumsum(input, dim, reverse, dtype):
    return owned.tt_scan(_SUM, input._h, dim, reverse, dtype)


def _cumprod_formula(g, input, dim):
    # d/dx[k] = (product of those before k) * (sum over i >= k of g[i] * the product of those after k up to i)
    if not g._h.ndim or not g._h.numel:
        return in_dtype(g, input.dtype)
    x = in_dtype(input, g.dtype)
    before = _cumprod(_neighbour(x, dim, False, 1), dim, -1)
    after = recur(_neighbour(x, dim, True, 0), g, dim, 1)
    return in_dtype(before * after, input.dtype)


@primitive(title="CumprodBackward0", input=_cumprod_formula)
def _cumprod(input, dim, dtype):
    return owned.tt_scan(_PROD, input._h, dim, 0, dtype)


def _logcumsumexp_formula(g, input, out, dim):
    # The sum over i >= k of g[i] exp(x[k] - out[i]); out does not fall, so that no exponential exceeds 1.
    if not g._h.ndim or not g._h.numel:
        return g
    finite = out.masked_fill(out == -math.inf, 0)
    n = finite.shape[dim]
    later = cat([finite.narrow(dim, 1, n - 1), finite.narrow(dim, n - 1, 1)], dim)
    factor = (finite - later).exp().masked_fill(out == -math.inf, 0)
    return (input - finite).exp() * recur(factor, g, dim, 1)


@primitive(title="LogcumsumexpBackward0", input=_logcumsumexp_formula)
def _logcumsumexp(input, dim):
    return owned.tt_scan(_LOGSUMEXP, input._h, dim, 0, -1)


def _need_sums(op: str, out, dtype) -> int:
    """The number of the result's dtype, as ``result_code`` gives it: sums and products are no truth values."""
    code = result_code(dtype, op)
    if code == lib.TT_BOOL or (isinstance(out, Tensor) and out._h.dtype == lib.TT_BOOL):
        raise NotImplementedError(f"{op}(): not implemented for 'bool'")
    return code


@both
def cumsum(input, dim, *, dtype=None, out=None):
    """The sums up to each element along ``dim``; integers and bools give int64. Follows ``torch.cumsum``.

    Returns:
        A tensor of the shape of ``input``; int64 for integers and bools.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return write_out("cumsum", _cumsum(input, dim, 0, _need_sums("cumsum", out, dtype)), out)


@both
def cumprod(input, dim, *, dtype=None, out=None):
    """The products up to each element along ``dim``; integers and bools give int64. The derivative is exact where
    factors are zero. Follows ``torch.cumprod``. Otherwise like ``cumsum``."""
    return write_out("cumprod", _cumprod(input, dim, _need_sums("cumprod", out, dtype)), out)


def _in_place(self, op, scan, dim, dtype):
    dim = self._dim(dim)
    if self._h.dtype == lib.TT_BOOL and self._h.ndim and self._h.numel:
        raise NotImplementedError(f"{op}: not implemented for 'bool'")
    # A copy is scanned, because the derivative may need what is overwritten here.
    return self.copy_(scan(self.clone() if self._node is not None else self, dim, dtype=dtype))


@method
def cumsum_(self, dim, *, dtype=None):
    """``cumsum`` in place."""
    return _in_place(self, "cumsum_", cumsum, dim, dtype)


@method
def cumprod_(self, dim, *, dtype=None):
    """``cumprod`` in place."""
    return _in_place(self, "cumprod_", cumprod, dim, dtype)


@both
def logcumsumexp(input, dim, *, out=None):
    """log(cumsum(exp(x))) along ``dim``, without overflow. Floating dtypes. Follows ``torch.logcumsumexp``.

    Returns:
        A tensor of the shape of ``input``.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return write_out("logcumsumexp", _logcumsumexp(input, dim), out)


# Extremes.


_scan_extreme = gives_tensors(lib.tt_scan_extreme)


def _extreme(name: str, largest: int):
    """The operator ``(input, dim)`` that gives the extremes so far, and where they were."""

    def forward(input, dim):
        return _scan_extreme(largest, input._h, dim, ffi.new("tt_array *[1]"))

    return primitive(
        name=name, extra=("indices",), input=lambda g, input_shape, indices, dim: put_back(g, input_shape, indices, dim)
    )(forward)


_cummax, _cummin = _extreme("cummax", 1), _extreme("cummin", 0)


@both
def cummax(input, dim):
    """The largest element so far along ``dim`` and the index of its last occurrence: a named tuple (values, indices).
    Follows ``torch.cummax``.

    Returns:
        A named tuple (values, indices) of the shape of ``input``; indices are int64.
    Raises:
        IndexError: ``dim`` is out of range
    """
    return return_types.cummax(*_cummax(input, input._dim(dim)))


@both
def cummin(input, dim):
    """The smallest element so far along ``dim`` and the index of its last occurrence: a named tuple (values, indices).
    Follows ``torch.cummin``. Otherwise like ``cummax``."""
    return return_types.cummin(*_cummin(input, input._dim(dim)))


# Differences.


@both
def diff(input, n=1, dim=-1, prepend=None, append=None):
    """The ``n``-th differences of neighbours along ``dim``, after joining ``prepend`` and ``append`` to the ends; bools
    give their exclusive or. Follows ``torch.diff``.

    Args:
        n: how often
        prepend: a tensor put before, or None
        append: a tensor put after, or None
    Returns:
        A tensor that is shorter by ``n`` along ``dim``.
    Raises:
        RuntimeError: ``n`` is negative, or ``input`` is 0-d
    """
    if n < 0:
        raise RuntimeError(f"diff(): order must be non-negative but got {n}")
    if not input._h.ndim:
        raise RuntimeError("diff(): diff expects input to be at least one-dimensional")
    dim = input._dim(dim)
    if n == 0:
        return input.clone()
    parts = [t for t in (prepend, input, append) if t is not None]
    if any(isinstance(t, Tensor) and t.ndim != input.ndim for t in parts):
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    x = cat(parts, dim) if len(parts) > 1 else input
    for _ in range(n):
        size = x.shape[dim]
        if size < 2:
            return x.narrow(dim, 0, 0)
        later, earlier = x.narrow(dim, 1, size - 1), x.narrow(dim, 0, size - 1)
        x = later.logical_xor(earlier) if x._h.dtype == lib.TT_BOOL else later - earlier
    return x
