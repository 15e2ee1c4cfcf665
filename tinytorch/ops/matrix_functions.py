"""Functions of square matrices: powers and the exponential."""

from __future__ import annotations

import math
import operator

from ..tensor import Tensor
from .declare import both, function, primitive, publish, tensors_only, write_out
from .join import cat
from .ranges import eye
from .solve import inv


def _check_square(op: str, A: Tensor) -> None:
    if A.ndim < 2:
        raise RuntimeError(f"{op}: The input tensor A must have at least 2 dimensions.")
    if A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{op}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )


@both
def matrix_power(input, n, *, out=None):
    """Square matrices to the power ``n``, by repeated squaring; of a negative n, the power of the inverse. Follows
    ``torch.matrix_power``.

    Args:
        input: matrices (*, m, m)
        n: an integer
    Returns:
        Matrices (*, m, m).
    Raises:
        LinAlgError: n is negative, and a matrix is singular
        RuntimeError: the matrices are not square
        TypeError: n is no integer
    """
    op = "linalg.matrix_power"
    tensors_only(op, input=input)
    _check_square(op, input)
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"{op}(): argument 'n' must be int, not {type(n).__name__}")
    n = n.__index__()
    if n == 0:
        unit = eye(input.shape[-1], dtype=input.dtype, device=input.device)
        return write_out(op, input.clone().copy_(unit), out, True)
    base = inv(input) if n < 0 else input
    if abs(n) == 1:
        return write_out(op, base.clone() if n > 0 else base, out, True)
    result, left = None, abs(n)
    while left:
        if left & 1:
            result = base if result is None else result @ base
        left >>= 1
        base = base @ base if left else base
    return write_out(op, result, out, True)


# The exponential: Taylor's polynomial of A / 2^s, squared s times (Higham 2008, "Functions of matrices", chapter 10),
# by powers up to the fourth (Paterson and Stockmeyer 1973). Of 1-norms up to the second number the rest is rounding.

_DOUBLE, _SINGLE = (16, 0.75), (8, 0.4)


def _polynomial(A: Tensor, degree: int) -> Tensor:
    powers = [eye(A.shape[-1], dtype=A.dtype, device=A.device), A]
    for _ in range(3):
        powers.append(powers[-1] @ A)
    result = powers[4] * (1 / math.factorial(degree))
    for low in range(degree - 4, -1, -4):
        terms = [powers[k] * (1 / math.factorial(low + k)) for k in range(3, -1, -1)]
        result = sum(terms[1:], terms[0]) + result
        if low:
            result = result @ powers[4]
    return result


def _matrix_exp_vjp(g, A):
    """The exponential of [[A^T, G], [0, A^T]] has the gradient in the place of G."""
    n = A.shape[-1]
    A = A.mT
    rows = cat((A, g), -1), cat((A.new_zeros(A.shape), A), -1)
    return (_matrix_exp(cat(rows, -2))[..., :n, n:],)


@primitive(namespace="linalg", title="LinalgMatrixExpBackward0", outputs=("out",), inputs=("A",), vjp=_matrix_exp_vjp)
def _matrix_exp(A):
    A = A.detach()
    if not A.numel():
        return A.clone()
    degree, limit = _DOUBLE if A.dtype.to_real().itemsize == 8 else _SINGLE
    norms = A.abs().sum(-2).amax(-1)
    norms = norms.masked_fill(norms.isfinite().logical_not(), 0)
    squarings = (norms / limit).clamp(min=1).log2().ceil()
    result = _polynomial(A * (-squarings).exp2().unsqueeze(-1).unsqueeze(-1), degree)
    for i in range(int(squarings.amax().item())):
        again = (squarings > i).unsqueeze(-1).unsqueeze(-1)
        result = (result @ result).where(again, result)
    return result


@function(namespace="linalg")
def matrix_exp(A):
    """The exponential sum A^k / k! of square matrices (*, n, n). Follows ``torch.linalg.matrix_exp``.

    Args:
        A: matrices (*, n, n)
    Returns:
        Matrices (*, n, n).
    Raises:
        RuntimeError: the matrices are not square, or not floating
    """
    _check_square("linalg.matrix_exp", A)
    if not A.dtype.is_differentiable:
        raise RuntimeError(
            f"linalg.matrix_exp: Expected a floating point or complex tensor as input. Got {A.dtype.name}"
        )
    return _matrix_exp(A)


def _top_matrix_exp(input):
    """The exponential of square matrices: ``linalg.matrix_exp``. Follows ``torch.matrix_exp``."""
    return matrix_exp(input)


publish(_top_matrix_exp, name="matrix_exp", method=True)


def linalg_matrix_power(A, n, *, out=None):
    """Square matrices to the power ``n``: ``tinytorch.matrix_power``. Follows ``torch.linalg.matrix_power``."""
    return matrix_power(A, n, out=out)


linalg_matrix_power = publish(linalg_matrix_power, name="matrix_power", namespace="linalg")


@function(namespace="linalg")
def vander(x, *, N=None):
    """Matrices of powers, x^0 to x^(N-1), of each element in a row. Follows ``torch.linalg.vander``.

    Args:
        x: vectors (*, n)
        N: how many powers; n unless given
    Returns:
        Matrices (*, n, N); of integers, int64.
    Raises:
        RuntimeError: x is of bool or a half type, or N is less than 2
    """
    op = "linalg.vander"
    if x.dtype.name in ("bool", "float16", "bfloat16"):
        raise RuntimeError(f"{op}: not implemented for '{x.dtype.name}'")
    if not x.ndim:
        x = x.unsqueeze(0)
    N = x.shape[-1] if N is None else operator.index(N)
    if N <= 1:
        raise RuntimeError(f"{op}: N must be greater than 1.")
    column = x.unsqueeze(-1)
    powers = column.expand(*x.shape, N - 1).cumprod(-1)
    return cat((powers.new_ones(column.shape), powers), -1)
