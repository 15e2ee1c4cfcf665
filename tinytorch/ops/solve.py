"""Systems of linear equations, by LAPACK; the dimensions before the last two are a batch.

With A X = B the gradients are dB = A^-T dX and dA = -dB X^T, each summed over what was broadcast (Giles 2008,
"Collected matrix derivative results").
"""

from __future__ import annotations

from .. import return_types
from .declare import both, function, primitive, write_all_out, write_out
from .lapack import gesv, getrf, getrs, getrs_inverse, trsm

_TRANSPOSED, (_UPPER, _RIGHT, _UNIT) = 1, (1, 2, 4)  # of lu_solve and solve_triangular: backend/decompose.h


def _solve_vjp(g, edges, A, X, A_shape, B_shape):
    return _solve_gradients(solution(A.mT, g), edges, X, A_shape, B_shape)


def _solve_first_order(g, edges, LU, pivots, X, A_shape, B_shape):
    return _solve_gradients(getrs(LU, g, pivots=pivots, option=_TRANSPOSED)[0], edges, X, A_shape, B_shape)


def _solve_gradients(g_B, edges, X, A_shape, B_shape):
    g_A = None if edges[0] is None else (-g_B @ X.mT).sum_to_size(A_shape)
    return g_A, None if edges[1] is None else g_B.sum_to_size(B_shape)


@primitive(
    namespace="linalg",
    title="LinalgSolveExBackward0",
    outputs=("X",),
    extra=("info", "LU", "pivots"),
    inputs=("A", "B"),
    vjp=_solve_vjp,
    first_order=_solve_first_order,
)
def _solve(A, B, check, op):
    if A.shape[:-2] == B.shape[:-2]:
        X, LU, pivots, info = gesv(A, B, check=check, op=op)
    else:  # what is broadcast is factored once
        LU, pivots, info = getrf(A, check=check, op=op)
        X = getrs(LU, B, pivots=pivots, op=op)[0]
    return X, info, LU, pivots


def solution(A, B):
    """X of A X = B for matrices, for formulas: not finite where A is singular."""
    return _solve(A, B, False, "solve")[0]


def _solve_either(A, B, left, check, op):
    """X of A X = B, or of X A = B, and info; B may be a stack of vectors."""
    a, b = A.shape, B.shape
    vectors = len(b) == 1 or (len(a) - 1 == len(b) and a[:-1] == b)
    if vectors:
        B = B.unsqueeze(-1)
    if left or len(a) < 2 or a[-2] != a[-1] or B.ndim < 2:  # shapes that will not do are refused there
        X, info, *_ = _solve(A, B, check, op)
        return (X.squeeze(-1) if vectors else X), info
    if a[-1] != B.shape[-1]:
        raise RuntimeError(
            f"linalg.{op}: Incompatible shapes of A and B for the equation XA = B ({a[-2]}x{a[-1]} and "
            f"{B.shape[-2]}x{B.shape[-1]})"
        )
    if vectors:
        raise RuntimeError(
            f"linalg.{op}: Vector broadcasting of the left hand side is not supported for left=False. "
            "In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    X, info, *_ = _solve(A.mT, B.mT, check, op)
    return X.mT, info


@function(namespace="linalg")
def solve(A, B, *, left=True, out=None):
    """X of A X = B for square matrices A (*, n, n) and B (*, n, k), or of X A = B for B (*, k, n) and ``left=False``;
    the batches broadcast. B is taken for vectors (*, n) where it has one dimension, or the shape of A less the last
    dimension. LinAlgError where A is singular. Follows ``torch.linalg.solve``.

    Args:
        A: matrices (*, n, n)
        B: matrices (*, n, k), or vectors (*, n)
        left: whether A stands on the left of X
    Returns:
        X, of the shape of ``B``.
    Raises:
        LinAlgError: a matrix is singular
        RuntimeError: shapes or dtypes do not match
    """
    return write_out("linalg.solve", _solve_either(A, B, left, True, "solve")[0], out, True)


@function(namespace="linalg")
def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """``solve`` that raises only if told to: a named tuple (result, info), where info (*), int32, is 0 for success, or
    the number of the pivot that is zero, from 1. Follows ``torch.linalg.solve_ex``."""
    results = _solve_either(A, B, left, bool(check_errors), "solve_ex")
    return return_types.linalg_solve_ex(*write_all_out("linalg.solve_ex", results, out))


# Triangular systems.


def _solve_triangular_vjp(g, edges, A, X, upper, left, unitriangular, A_shape, B_shape):
    g_B = triangular(A.mT, g, not upper, left, unitriangular)
    g_A = None
    if edges[0] is not None:
        x = -g_B @ X.mT if left else -X.mT @ g_B
        g_A = (x.triu(int(unitriangular)) if upper else x.tril(-int(unitriangular))).sum_to_size(A_shape)
    return g_A, None if edges[1] is None else g_B.sum_to_size(B_shape)


@primitive(
    namespace="linalg",
    title="LinalgSolveTriangularBackward0",
    outputs=("X",),
    extra=("info",),
    inputs=("A", "B"),
    vjp=_solve_triangular_vjp,
)
def _solve_triangular(A, B, upper, left, unitriangular):
    return trsm(A, B, option=_UPPER * upper + _RIGHT * (not left) + _UNIT * unitriangular)


def triangular(A, B, upper: bool, left: bool = True, unitriangular: bool = False):
    """``solve_triangular``, for formulas."""
    return _solve_triangular(A, B, upper, left, unitriangular)[0]


@function(namespace="linalg")
def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):
    """X of A X = B, or of X A = B for ``left=False``, for triangular A (*, n, n); the other triangle is not read, nor
    is the diagonal for ``unitriangular``. The batches broadcast. A zero on the diagonal gives infinities.
    Follows ``torch.linalg.solve_triangular``.

    Args:
        A: triangular matrices (*, n, n)
        B: matrices (*, n, k)
        upper: whether the upper triangle counts
        left: whether A stands on the left of X
        unitriangular: whether the diagonal is taken for ones
    Returns:
        X, of the shape of ``B``.
    Raises:
        RuntimeError: shapes or dtypes do not match
    """
    X = triangular(A, B, bool(upper), bool(left), bool(unitriangular))
    return write_out("linalg.solve_triangular", X, out, True)


# Inverses.


@primitive(
    namespace="linalg",
    title="LinalgInvExBackward0",
    outputs=("inverse",),
    extra=("info",),
    A=lambda g, inverse: -inverse.mT @ g @ inverse.mT,
)
def _inv(A, check, op):
    return getrs_inverse(A, check=check, op=op)


@function(namespace="linalg")
def inv(A, *, out=None):
    """The inverses of square matrices (*, n, n). LinAlgError where one is singular. To multiply by an inverse,
    ``solve`` is faster and more accurate. Follows ``torch.linalg.inv``.

    Args:
        A: matrices (*, n, n)
    Returns:
        Matrices (*, n, n).
    Raises:
        LinAlgError: a matrix is singular
        RuntimeError: the matrices are not square, or not floating
    """
    return write_out("linalg.inv", _inv(A, True, "inv")[0], out, True)


@both
def inverse(input, *, out=None):
    """The inverses of square matrices (*, n, n): ``linalg.inv``. Follows ``torch.inverse``."""
    return inv(input, out=out)


@function(namespace="linalg")
def inv_ex(A, *, check_errors=False, out=None):
    """``inv`` that raises only if told to: a named tuple (inverse, info), where info (*), int32, is 0 for success, or
    the number of the pivot that is zero, from 1. Follows ``torch.linalg.inv_ex``."""
    return return_types.linalg_inv_ex(*write_all_out("linalg.inv_ex", _inv(A, bool(check_errors), "inv_ex"), out))


# Tensors as matrices.


def _numel(sizes) -> int:
    n = 1
    for size in sizes:
        n *= size
    return n


@function(namespace="linalg")
def tensorinv(A, ind=2, *, out=None):
    """The inverse of a tensor taken for a matrix, whose rows are its first ``ind`` dimensions: tensordot(tensorinv(A),
    A, ind) is the identity. Follows ``torch.linalg.tensorinv``.

    Args:
        A: a tensor, as many elements in the first ``ind`` dimensions as in the others
        ind: how many dimensions
    Returns:
        A tensor of A's other sizes, then of the first ``ind``.
    Raises:
        RuntimeError: ``ind`` is not positive, the numbers of elements differ, or the matrix is singular
    """
    if ind <= 0:
        raise RuntimeError("linalg.tensorinv: Expected a strictly positive integer for 'ind'")
    first, last = tuple(A.shape[:ind]), tuple(A.shape[ind:])
    if _numel(first) != _numel(last):
        raise RuntimeError(
            "linalg.tensorinv: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {_numel(last)} != {_numel(first)}"
        )
    inverse, *_ = _inv(A.reshape(_numel(first), _numel(last)), True, "tensorinv")
    return write_out("linalg.tensorinv", inverse.reshape(last + first), out)


@function(namespace="linalg")
def tensorsolve(A, B, dims=None, *, out=None):
    """X of tensordot(A, X, X.ndim) = B: A is taken for a matrix, whose rows are its first B.ndim dimensions. Follows
    ``torch.linalg.tensorsolve``.

    Args:
        A: a tensor
        B: a tensor of A's first sizes
        dims: dimensions of A to move to its end before, or None
    Returns:
        A tensor of A's other sizes.
    Raises:
        RuntimeError: the numbers of elements do not match, or the matrix is singular
    """
    if dims is not None:
        if not isinstance(dims, (tuple, list)):
            raise TypeError(f"linalg.tensorsolve(): argument 'dims' must be tuple of ints, not {type(dims).__name__}")
        dims = tuple(dims)  # a list may lie about its length
        A = A.movedim(dims, tuple(range(A.ndim - len(dims), A.ndim)))
    shape = tuple(A.shape[B.ndim :])
    if _numel(shape) != _numel(B.shape):
        raise RuntimeError(
            "linalg.tensorsolve: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {_numel(shape)} != {_numel(B.shape)}"
        )
    X = _solve_either(A.reshape(_numel(B.shape), _numel(shape)), B.reshape(-1), True, True, "tensorsolve")[0]
    return write_out("linalg.tensorsolve", X.reshape(shape), out, True)
