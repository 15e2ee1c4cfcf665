"""LU with partial pivoting and LDL^H, by LAPACK, and systems of equations from the factors; the dimensions before the
last two are a batch.

The derivative of LU is that of its defining equation (de Hoog, Anderssen and Lukas 2011, "Differentiation of matrix
functionals using triangular factorization"); PyTorch has none of LDL^H.
"""

from __future__ import annotations

from .. import return_types
from ..autograd.formulas import not_implemented
from ..backends.cpu import LinAlgError
from ..tensor import Tensor
from .declare import function, primitive, write_all_out, write_out
from .join import cat
from .lapack import getrf, getrf_permutation, getrs, sytrf, sytrs
from .ranges import eye
from .solve import triangular

_TRANSPOSED, _ADJOINT = 1, 2  # of lu_solve: backend/decompose.h


def _check_factor(op: str, A: Tensor, pivot: bool) -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{op}: The input tensor A must have at least 2 dimensions.")
    if not pivot and not A.is_cuda:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _raise_where_singular(op: str, info: Tensor, text: str) -> None:
    """LinAlgError for the first matrix whose ``info`` is not 0; ``text`` says what is wrong, with its ``info``."""
    if not info.any():
        return
    for i, code in enumerate(info.reshape(-1).tolist()):
        if code:
            where = f"(Batch element {i}): " if info.ndim else ""
            raise LinAlgError(f"{op}: {where}{text.format(code)}")


# LU.


def unpack(LU: Tensor) -> tuple[Tensor, Tensor]:
    """L (*, m, k), with ones on its diagonal, and U (*, k, n)."""
    m, n = LU.shape[-2:]
    k = min(m, n)
    return LU[..., :k].tril(-1) + eye(m, k, dtype=LU.dtype, device=LU.device), LU[..., :k, :].triu()


@primitive(name="lu_permutation")
def _permutation(LU, pivots):
    return getrf_permutation(LU, pivots=pivots, op="lu_unpack")[0].mT


def _lu_factor_vjp(g, LU, pivots, pivot):
    """With A = P [L1; L2] [U1 U2], where L2 or U2 is empty, and X = L1^H [tril(L1^H dL1 - dU2 U2^H, -1) +
    triu(dU1 U1^H - L2^H dL2)] U1^-H: dA = P [X, L1^-H dU2; dL2 U1^-H], where L1^-H stands in front of X."""
    k = min(LU.shape[-2:])
    L, U = unpack(LU)
    L1, U1 = L[..., :k, :], U[..., :k]
    lower = L1.mT @ g[..., :k, :k].tril(-1)
    upper = g[..., :k, :k].triu() @ U1.mT
    if LU.shape[-1] > k:
        lower = lower - g[..., k:] @ U[..., k:].mT
    if LU.shape[-2] > k:
        upper = upper - L[..., k:, :].mT @ g[..., k:, :]
    x = triangular(U1.mT, lower.tril(-1) + upper.triu(), upper=False, left=False)
    if LU.shape[-1] > k:
        x = cat((x, g[..., k:]), -1)
    x = triangular(L1.mT, x, upper=True, unitriangular=True)
    if LU.shape[-2] > k:
        x = cat((x, triangular(U1.mT, g[..., k:, :], upper=False, left=False)), -2)
    return (_permutation(LU.detach(), pivots) @ x if pivot else x,)


@primitive(
    namespace="linalg",
    title="LinalgLuFactorExBackward0",
    outputs=("LU",),
    extra=("pivots", "info"),
    inputs=("A",),
    vjp=_lu_factor_vjp,
)
def _lu_factor(A, check, pivot):
    return getrf(A, check=check, option=not pivot, op="lu_factor_ex")


@function(namespace="linalg")
def lu_factor(A, *, pivot=True, out=None):
    """L and U of A = P L U in one matrix each, for matrices (*, m, n), with partial pivoting: a named tuple of LU (*,
    m, n), of which the ones on L's diagonal are not stored, and pivots (*, k), int32: the i-th row was exchanged with
    row pivots[i] - 1. What ``lu_solve`` takes. Follows ``torch.linalg.lu_factor``.

    Args:
        A: matrices (*, m, n)
        pivot: whether rows are exchanged; LU without pivoting is for CUDA alone, and P is empty then
        out: two tensors
    Returns:
        A named tuple (LU, pivots).
    Raises:
        LinAlgError: an element of U's diagonal is zero
        RuntimeError: ``pivot`` is false, or A is no stack of matrices
    """
    _check_factor("linalg.lu_factor", A, pivot)
    LU, pivots, info = _lu_factor(A, False, bool(pivot))
    _raise_where_singular(
        "linalg.lu_factor",
        info,
        "U[{0},{0}] is zero and using it on lu_solve would result in a division by zero. If you still want to perform "
        "the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, pivot)",
    )
    return return_types.linalg_lu_factor(*write_all_out("linalg.lu_factor", (LU, pivots), out))


@function(namespace="linalg")
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """``lu_factor`` that raises only if told to: a named tuple (LU, pivots, info), where info (*), int32, is 0, or the
    number of the first zero on U's diagonal, from 1. Follows ``torch.linalg.lu_factor_ex``."""
    _check_factor("linalg.lu_factor_ex", A, pivot)
    results = _lu_factor(A, bool(check_errors), bool(pivot))
    return return_types.linalg_lu_factor_ex(*write_all_out("linalg.lu_factor_ex", results, out))


@function(namespace="linalg")
def lu(A, *, pivot=True, out=None):
    """A = P L U for matrices (*, m, n): a named tuple of the permutation P (*, m, m), of L (*, m, k), lower triangular
    with ones on the diagonal, and of U (*, k, n), upper triangular; k is the smaller of m and n. A singular A is no
    error. Follows ``torch.linalg.lu``.

    Args:
        A: matrices (*, m, n)
        pivot: whether rows are exchanged; LU without pivoting is for CUDA alone, and P is empty then
        out: three tensors
    Returns:
        A named tuple (P, L, U).
    Raises:
        RuntimeError: ``pivot`` is false, or A is no stack of matrices
    """
    _check_factor("linalg.lu", A, pivot)
    LU, pivots, _ = _lu_factor(A, False, bool(pivot))
    P = _permutation(LU.detach(), pivots) if pivot else LU.new_empty((0,))
    results = (P, *unpack(LU))
    return return_types.linalg_lu(*write_all_out("linalg.lu", results, out))


@function
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """P, L and U of what ``lu_factor`` gives: a named tuple, see ``linalg.lu``. What is not wanted is empty. Follows
    ``torch.lu_unpack``.

    Args:
        LU_data: factors (*, m, n)
        LU_pivots: pivots (*, k), int32
        unpack_data: whether L and U are wanted
        unpack_pivots: whether P is wanted
        out: three tensors
    Returns:
        A named tuple (P, L, U).
    Raises:
        RuntimeError: the factors are no matrices; the pivots are not int32, or not as many as belong to the factors
    """
    if LU_data.ndim < 2:
        raise RuntimeError(f"lu_unpack: LU_data must have at least 2 dimensions, got {tuple(LU_data.shape)}")
    if unpack_pivots and LU_pivots.dtype.name != "int32":
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.\n"
            "Note: this function is intended to be used with the output produced by torch.linalg.lu_factor"
        )
    L = U = P = None
    if unpack_data:
        L, U = unpack(LU_data)
    if unpack_pivots:
        P = _permutation(LU_data.detach(), LU_pivots)
    results = tuple([LU_data.new_empty((0,)) if x is None else x for x in (P, L, U)])
    return return_types.lu_unpack(*write_all_out("lu_unpack", results, out))


def _lu_solve_vjp(g, edges, LU, pivots, X, left, adjoint, LU_shape, B_shape):
    """With M X = B, or X M = B, where M is A = P L U or its adjoint: dB = M^-H dX, and dM = -dB X^H or -X^H dB, from
    which dL and dU follow as those of a product."""
    g_B = _lu_solve(LU, pivots, g, left, not adjoint)[0]
    g_LU = None
    if edges[0] is not None:
        g_M = -(g_B @ X.mH if left else X.mH @ g_B)
        g_A = g_M.mH if adjoint else g_M
        x = _permutation(LU.detach(), pivots).mT @ g_A
        L, U = unpack(LU)
        g_LU = ((x @ U.mH).tril(-1) + (L.mH @ x).triu()).sum_to_size(LU_shape)
    return g_LU, None if edges[1] is None else g_B.sum_to_size(B_shape)


@primitive(
    namespace="linalg",
    title="LinalgLuSolveBackward0",
    outputs=("X",),
    extra=("info",),
    inputs=("LU", "B"),
    vjp=_lu_solve_vjp,
    conjugates=False,
)
def _lu_solve(LU, pivots, B, left, adjoint):
    if left:
        return getrs(LU, B, pivots=pivots, option=_ADJOINT * adjoint)
    # X M = B is M^H X^H = B^H
    X, info = getrs(LU, B.detach().mH, pivots=pivots, option=_ADJOINT * (not adjoint))
    return X.mH, info


@function(namespace="linalg")
def lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):
    """X of A X = B, or of X A = B for ``left=False``, from what ``lu_factor`` gives for A (*, n, n); ``adjoint`` puts
    A^H in the place of A. The batches broadcast. Follows ``torch.linalg.lu_solve``.

    Args:
        LU: factors (*, n, n)
        pivots: pivots (*, n), int32
        B: matrices (*, n, k), or (*, k, n)
        left: whether A stands on the left of X
        adjoint: whether the equation is that of the adjoint
    Returns:
        X, of the shape of ``B``.
    Raises:
        RuntimeError: shapes or dtypes do not match, or the pivots are no rows
    """
    if LU.shape[-1:] and LU.ndim > 1 and LU.shape[-1] == LU.shape[-2] and B.ndim > 1 and not left:
        n = LU.shape[-1]
        if B.shape[-1] != n:
            raise RuntimeError(
                f"linalg.lu_solve: Incompatible shapes of A and B for the equation XA = B ({n}x{n} and "
                f"{B.shape[-2]}x{B.shape[-1]})"
            )
    if not isinstance(pivots, Tensor):
        raise TypeError(f"linalg.lu_solve(): argument 'pivots' must be Tensor, not {type(pivots).__name__}")
    return write_out("linalg.lu_solve", _lu_solve(LU, pivots, B, bool(left), bool(adjoint))[0], out, True)


# LDL^H.


@primitive(
    namespace="linalg",
    outputs=("LD",),
    extra=("pivots", "info"),
    inputs=("A",),
    vjp=not_implemented("linalg_ldl_factor_ex"),
)
def _ldl_factor(A, hermitian, check):
    return sytrf(A.detach().tril(), option=hermitian, check=check, op="ldl_factor_ex")


@function(namespace="linalg")
def ldl_factor(A, *, hermitian=False, out=None):
    """L and D of A = L D L^T, or of A = L D L^H for ``hermitian``, in one matrix each, for symmetric or Hermitian A (*,
    n, n), of which the lower triangle is read: a named tuple of LD (*, n, n) and pivots (*, n), int32, as LAPACK has
    them. What ``ldl_solve`` takes. No gradients. Follows ``torch.linalg.ldl_factor``.

    Args:
        A: symmetric or Hermitian matrices (*, n, n)
        hermitian: whether complex ones are Hermitian
        out: two tensors
    Returns:
        A named tuple (LD, pivots).
    Raises:
        LinAlgError: an element of D is zero
    """
    LD, pivots, info = _ldl_factor(A, bool(hermitian), False)
    _raise_where_singular(
        "linalg.ldl_factor", info, "D[{0},{0}] is zero and using it on ldl_solve would result in a division by zero"
    )
    return return_types.linalg_ldl_factor(*write_all_out("linalg.ldl_factor", (LD, pivots), out))


@function(namespace="linalg")
def ldl_factor_ex(A, *, hermitian=False, check_errors=False, out=None):
    """``ldl_factor`` that raises only if told to: a named tuple (LD, pivots, info), where info (*), int32, is 0, or
    the number of the first zero on D's diagonal, from 1. Follows ``torch.linalg.ldl_factor_ex``."""
    results = _ldl_factor(A, bool(hermitian), bool(check_errors))
    return return_types.linalg_ldl_factor_ex(*write_all_out("linalg.ldl_factor_ex", results, out))


@primitive(
    namespace="linalg",
    outputs=("X",),
    extra=("info",),
    inputs=("LD", "B"),
    vjp=not_implemented("linalg_ldl_solve"),
)
def _ldl_solve(LD, pivots, B, hermitian):
    return sytrs(LD, B, pivots=pivots, option=hermitian, op="ldl_solve")


@function(namespace="linalg")
def ldl_solve(LD, pivots, B, *, hermitian=False, out=None):
    """X of A X = B from what ``ldl_factor`` gives for A; the batches broadcast. No gradients. Follows
    ``torch.linalg.ldl_solve``.

    Args:
        LD: factors (*, n, n)
        pivots: pivots (*, n), int32
        B: matrices (*, n, k)
        hermitian: as ``ldl_factor`` was called
    Returns:
        X, of the shape of ``B``.
    Raises:
        RuntimeError: shapes or dtypes do not match, or the pivots are none
    """
    if not isinstance(pivots, Tensor):
        raise TypeError(f"linalg.ldl_solve(): argument 'pivots' must be Tensor, not {type(pivots).__name__}")
    if LD._h.ndim > 1 and LD._h.dtype == B._h.dtype:
        B.size(-2)  # IndexError where there is no such dimension
    return write_out("linalg.ldl_solve", _ldl_solve(LD, pivots, B, bool(hermitian))[0], out, True)
