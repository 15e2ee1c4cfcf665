"""Least squares, pseudoinverses and ranks: what is done with the singular values above a tolerance.

The derivative of a pseudoinverse is Golub and Pereyra's (1973, "The differentiation of pseudo-inverses and nonlinear
least squares problems whose variables separate").
"""

from __future__ import annotations

from .. import return_types
from ..dtypes import finfo, int64
from ..tensor import Tensor
from .declare import both, fits, function, primitive, write_out
from .decompose import svd, svdvals
from .eigen import eigh, eigvalsh
from .join import cat
from .lapack import gels, gelsd, gelss, gelsy
from .pointwise import maximum


def _tolerance(op: str, A: Tensor, S: Tensor, atol, rtol) -> Tensor:
    """What singular values S must exceed: the larger of ``atol`` and ``rtol`` times the largest. Of the two, numbers or
    tensors (*), the relative one is 0 where the absolute one is given, else the rounding of the largest value."""
    rounding = finfo(S.dtype).eps * max(A.shape[-2:])
    tensors = []
    for name, x in (("atol", atol), ("rtol", rtol)):
        if isinstance(x, Tensor) and x.is_complex():
            raise RuntimeError(f"{op}: {name} tensor of complex type is not supported. Got {x.dtype.name}")
        tensors.append(x if isinstance(x, Tensor) or x is None else S.new_full((), float(x)))
    absolute, relative = tensors
    if absolute is None:
        absolute = S.new_zeros(())
        relative = S.new_full((), rounding) if relative is None else relative
    elif relative is None:
        relative = (absolute <= 0).to(S.dtype) * rounding
    largest = S.amax(-1) if S.shape[-1] else S.new_zeros(S.shape[:-1])
    return maximum(absolute.to(S.dtype), relative.to(S.dtype) * largest).unsqueeze(-1)


def _check_matrix(op: str, A: Tensor) -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{op}: The input tensor input must have at least 2 dimensions.")


def _check_names(op: str, of_numpy, atol, rtol) -> None:
    if of_numpy is not None and (atol is not None or rtol is not None):
        raise TypeError(f"{op}(): NumPy's tolerance and atol or rtol exclude each other")
    if not any(all(x is None or fits(x, kind) for x in (atol, rtol)) for kind in ("Tensor", "_float")):
        raise TypeError(f"{op}(): arguments 'atol' and 'rtol' must be both Tensors or both floats")


@function(namespace="linalg")
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """How many singular values of matrices (*, m, n) exceed the tolerance max(atol, rtol * the largest one). Follows
    ``torch.linalg.matrix_rank``.

    Args:
        A: matrices (*, m, n)
        tol: an absolute tolerance, a number or a tensor (*): NumPy's name
        hermitian: whether A is symmetric or Hermitian; only the lower triangle is read then
        atol: the absolute tolerance, a number or a tensor (*); 0 unless given
        rtol: the relative one; max(m, n) times the dtype's epsilon unless ``atol`` is given
    Returns:
        A tensor (*), int64.
    Raises:
        LinAlgError: an element is not finite
        RuntimeError: A is no stack of matrices, or not floating
        TypeError: ``tol`` beside ``atol`` or ``rtol``
    """
    op = "linalg.matrix_rank"
    _check_names(op, tol, atol, rtol)
    _check_matrix(op, A)
    A = A.detach()
    S = eigvalsh(A).abs() if hermitian else svdvals(A)
    if tol is not None:
        atol, rtol = tol, 0.0
    rank = (_tolerance(op, A, S, atol, rtol) < S).sum(-1)
    return write_out(op, rank, out)


def _pinv_vjp(g, A, P):
    """With A of constant rank: dA = -P^H dP P^H + (I - A P) dP^H P P^H + P^H P dP^H (I - P A)."""
    adjoint = P.mH
    left, right = g.mH @ P @ adjoint, adjoint @ P @ g.mH
    return (left - A @ (P @ left) + right - (right @ P) @ A - adjoint @ g @ adjoint,)


@primitive(
    namespace="linalg", title="LinalgPinvBackward0", outputs=("P",), inputs=("A",), vjp=_pinv_vjp, conjugates=False
)
def _pinv(A, atol, rtol, hermitian):
    A = A.detach()
    if hermitian:
        values, V = eigh(A)
        sizes = values.abs()
        kept = sizes > _tolerance("linalg.pinv", A, sizes, atol, rtol)
        return (V * _inverted(values, kept).unsqueeze(-2)) @ V.mH
    U, S, Vh = svd(A, False)
    kept = _tolerance("linalg.pinv", A, S, atol, rtol) < S
    return (Vh.mH * _inverted(S, kept).unsqueeze(-2)) @ U.mH


def _inverted(values: Tensor, kept: Tensor) -> Tensor:
    return values.reciprocal().masked_fill(kept.logical_not(), 0)


@function(namespace="linalg")
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The pseudoinverses (*, n, m) of matrices (*, m, n), by singular values: those that do not exceed the tolerance
    max(atol, rtol * the largest one) count as zero. Follows ``torch.linalg.pinv``.

    Args:
        A: matrices (*, m, n)
        rcond: NumPy's name of ``rtol``
        hermitian: whether A is symmetric or Hermitian; only the lower triangle is read then
        atol: the absolute tolerance, a number or a tensor (*); 0 unless given
        rtol: the relative one; max(m, n) times the dtype's epsilon unless ``atol`` is given
    Returns:
        Matrices (*, n, m).
    Raises:
        LinAlgError: an element is not finite
        RuntimeError: A is no stack of matrices, or not floating
        TypeError: ``rcond`` beside ``atol`` or ``rtol``
    """
    _check_names("linalg.pinv", rcond, atol, rtol)
    _check_matrix("linalg.pinv", A)
    if rcond is not None:
        atol, rtol = 0.0, rcond
    return write_out("linalg.pinv", _pinv(A, atol, rtol, bool(hermitian)), out)


@both
def pinverse(input, rcond=1e-15):
    """``linalg.pinv``. Follows ``torch.pinverse``.

    Args:
        input: matrices (*, m, n)
        rcond: the relative tolerance
    Returns:
        Matrices (*, n, m).
    """
    return pinv(input, rcond)


# Least squares.

_DRIVERS = {"gels": gels, "gelsy": gelsy, "gelsd": gelsd, "gelss": gelss}


def _lstsq_vjp(g_X, g_residuals, edges, A, B, X):
    """X is A's pseudoinverse times B, and the residuals' gradient by X is zero."""
    P = _pinv(A, None, None, False)
    g_A = g_B = None
    if g_X is not None:
        if edges[0] is not None:
            (g_A,) = _pinv_vjp(g_X @ B.mH, A, P)
        if edges[1] is not None:
            g_B = P.mH @ g_X
    if g_residuals is not None and g_residuals.numel():
        slope = 2 * (A @ X - B) * g_residuals.unsqueeze(-2)
        if edges[0] is not None:
            x = slope @ X.mH
            g_A = x if g_A is None else g_A + x
        if edges[1] is not None:
            g_B = -slope if g_B is None else g_B - slope
    return g_A, g_B


@primitive(
    namespace="linalg",
    title="LinalgLstsqBackward0",
    outputs=("X", "residuals"),
    extra=("rank", "singular_values"),
    inputs=("A", "B"),
    vjp=_lstsq_vjp,
    conjugates=False,
)
def _lstsq(A, B, rcond, driver):
    m, n = A.shape[-2:]
    B, columns = B.detach(), B.shape[-1]
    if not columns:  # which not every routine takes
        B = B.new_zeros((*B.shape[:-1], 1))
    if m < n:
        B = cat((B, B.new_zeros((*B.shape[:-2], n - m, B.shape[-1]))), -2)
    X, *more, _ = _DRIVERS[driver](A, B, rcond=rcond, op="lstsq")
    rank = more[0].long() if more else A.new_empty((0,), dtype=int64)
    values = more[1] if len(more) > 1 else A.new_empty((0,)).abs()
    if m > n and driver != "gelsy" and (driver == "gels" or (rank == n).all()):
        rest = X[..., n:, :]
        residuals = (rest * rest.conj()).abs().sum(-2) if X.is_complex() else (rest * rest).sum(-2)
    else:
        residuals = values.new_empty((0,))
    if not columns:
        X, residuals = X[..., :0], residuals[..., :0]
    return X[..., :n, :], residuals, rank, values


@function(namespace="linalg")
def lstsq(A, B, rcond=None, *, driver=None):
    """X of least |A X - B| for matrices A (*, m, n) and B (*, m, k), or vectors B (*, m), by LAPACK: a named tuple of
    the solution (*, n, k) or (*, n), the residuals (*, k), sums of squares where m > n and every A has full rank
    (else empty, and with ``gelsy``), the rank (*), int64, and the singular values (*, min(m, n)), which some
    drivers do not give. Follows ``torch.linalg.lstsq``.

    Args:
        A: matrices (*, m, n)
        B: matrices (*, m, k), or vectors (*, m)
        rcond: singular values below this share of the largest count as zero; max(m, n) times the dtype's epsilon
            unless given
        driver: ``'gelsy'`` (unless given), ``'gels'`` for A of full rank, ``'gelsd'`` or ``'gelss'``; on CUDA
            ``'gels'`` alone
    Returns:
        A named tuple (solution, residuals, rank, singular_values).
    Raises:
        RuntimeError: shapes or dtypes do not match, or there is no such driver
        LinAlgError: an element is not finite
    """
    op = "linalg.lstsq"
    if A.ndim < 2:
        raise RuntimeError(f"{op}: input must have at least 2 dimensions.")
    if B.ndim < 1:
        raise RuntimeError(f"{op}: other must have at least 1 dimension.")
    if A.ndim - B.ndim not in (0, 1):
        raise RuntimeError(
            f"{op}: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) <= 1"
        )
    if A.dtype is not B.dtype:
        raise RuntimeError(
            f"{op}: Expected input and other to have the same dtype, but got {A.dtype.name} and {B.dtype.name}"
        )
    vectors = A.ndim - 1 == B.ndim and A.shape[:-1] == B.shape
    if vectors:
        B = B.unsqueeze(-1)
    if B.ndim < 2 or A.shape[-2] != B.shape[-2]:
        raise RuntimeError(f"{op}: input.size(-2) should match other.size(-{1 if vectors else 2})")
    if A.shape[:-2] != B.shape[:-2]:
        raise RuntimeError(
            f"{op}: batch dimensions of input {tuple(A.shape[:-2])} and other {tuple(B.shape[:-2])} differ"
        )
    if driver is not None and A.is_cuda and driver != "gels":
        raise RuntimeError(f"{op}: `driver` other than `gels` is not supported on CUDA")
    if driver is not None and driver not in _DRIVERS:
        raise RuntimeError(
            f"{op}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss) but provided value is {driver}"
        )
    if not A.dtype.is_differentiable:
        raise RuntimeError(f"{op}: Expected a floating point or complex tensor as input. Got {A.dtype.name}")
    if rcond is None:
        rcond = finfo(A.dtype).eps * max(A.shape[-2:])
    X, residuals, rank, values = _lstsq(A, B, float(rcond), driver or ("gels" if A.is_cuda else "gelsy"))
    if vectors:
        X = X.squeeze(-1)
    return return_types.linalg_lstsq(X, residuals, rank, values)
