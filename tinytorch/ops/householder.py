"""Products of Householder's reflections, H_i = I - tau_i v_i v_i^H, as geqrf gives them: the v_i are the columns below
the diagonal, where they are one.

H_1 H_2 ... = I - V T V^H with T = (I + D S)^-1 D, where D is the diagonal of tau and S the triangle of V^H V above the
diagonal (Puglisi 1992, "Modification of the Householder method based on the compact WY representation"): products of
matrices, and differentiable.
"""

from __future__ import annotations

from .. import return_types
from ..autograd.formulas import not_implemented
from ..tensor import Tensor
from .declare import both, function, primitive, write_all_out, write_out
from .lapack import geqrf as _lapack_geqrf
from .ranges import eye
from .solve import triangular


@primitive(outputs=("a", "tau"), extra=("info",), inputs=("input",), vjp=not_implemented("geqrf"), name="geqrf")
def _geqrf(input):
    return _lapack_geqrf(input, op="geqrf")


@both
def geqrf(input, *, out=None):
    """QR as LAPACK has it: a named tuple of a (*, m, n), R and below the diagonal Householder's vectors, and their
    factors tau (*, k), of which ``orgqr`` makes Q. No gradients. Follows ``torch.geqrf``.

    Args:
        input: matrices (*, m, n)
        out: two tensors
    Returns:
        A named tuple (a, tau).
    Raises:
        RuntimeError: ``input`` is no stack of matrices, or not floating
    """
    return return_types.geqrf(*write_all_out("geqrf", _geqrf(input)[:2], out))


def _check(op: str, input: Tensor, tau: Tensor) -> None:
    if input.ndim < 2:
        raise RuntimeError(f"{op}: input must have at least 2 dimensions.")
    if input.shape[-1] < tau.shape[-1]:
        raise RuntimeError(f"{op}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    if input.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{op}: Expected tau to have one dimension less than input, but got tau.ndim equal to {tau.ndim} and "
            f"input.ndim is equal to {input.ndim}"
        )
    if input.shape[:-2] != tau.shape[:-1]:
        raise RuntimeError(
            f"{op}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {tuple(tau.shape[:-1])}"
        )
    if input.dtype is not tau.dtype:
        raise RuntimeError(f"{op}: tau dtype {tau.dtype.name} does not match input dtype {input.dtype.name}")
    if not input.dtype.is_differentiable:
        raise NotImplementedError(f"{op}: not implemented for '{input.dtype.name}'")


def _compact(A: Tensor, tau: Tensor) -> tuple[Tensor, Tensor]:
    """V and T."""
    m, k = A.shape[-2], tau.shape[-1]
    V = A[..., :k].tril(-1) + eye(m, k, dtype=A.dtype, device=A.device)
    S = (V.mH @ V).triu(1)
    return V, triangular(tau.unsqueeze(-1) * S, tau.diag_embed(), upper=True, unitriangular=True)


@function(namespace="linalg")
def householder_product(A, tau, *, out=None):
    """The first n columns (*, m, n) of the product of the reflections that ``geqrf`` gives: Q. Follows
    ``torch.linalg.householder_product``.

    Args:
        A: matrices (*, m, n) with m >= n, whose columns below the diagonal are vectors
        tau: their factors (*, k), k <= n
    Returns:
        Matrices (*, m, n).
    Raises:
        RuntimeError: shapes or dtypes do not match
    """
    op = "linalg.householder_product"
    _check(op, A, tau)
    m, n = A.shape[-2:]
    if m < n:
        raise RuntimeError(f"{op}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    V, T = _compact(A, tau)
    return write_out(op, eye(m, n, dtype=A.dtype, device=A.device) - V @ (T @ V[..., :n, :].mH), out)


@both
def orgqr(input, input2, *, out=None):
    """``linalg.householder_product``. Follows ``torch.orgqr``.

    Args:
        input: matrices (*, m, n) with m >= n, whose columns below the diagonal are vectors
        input2: their factors (*, k), k <= n
    Returns:
        Matrices (*, m, n).
    """
    return householder_product(input, input2, out=out)


@both
def ormqr(input, input2, input3, left=True, transpose=False, *, out=None):
    """The product of C, ``input3``, with the square Q of the reflections that ``geqrf`` gives: Q C, or C Q for
    ``left=False``; ``transpose`` puts Q^H in the place of Q. Follows ``torch.ormqr``.

    Args:
        input: matrices (*, m, n), whose columns below the diagonal are vectors
        input2: their factors (*, k), as many as the smaller of m and n
        input3: matrices C (*, m, p), or (*, p, m)
        left: whether Q stands on the left
        transpose: whether to multiply by the adjoint
    Returns:
        Matrices of the shape of ``input3``.
    Raises:
        RuntimeError: shapes or dtypes do not match
    """
    tau, other = input2, input3
    _check("ormqr", input, tau)
    side = -2 if left else -1
    if other.ndim < 2 or other.ndim != input.ndim or other.shape[:-2] != input.shape[:-2]:
        raise RuntimeError("ormqr: Expected other to have the dimensions of input, and the same batch")
    if other.shape[side] != input.shape[-2]:
        raise RuntimeError(f"ormqr: other.shape[{side}] must be equal to input.shape[-2]")
    if tau.shape[-1] != min(input.shape[-2:]):
        raise RuntimeError(f"ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1])")
    if other.dtype is not input.dtype:
        raise RuntimeError(
            f"ormqr: Expected input and other to have the same dtype, but got {input.dtype.name} and {other.dtype.name}"
        )
    V, T = _compact(input, tau)
    T = T.mH if transpose else T
    change = V @ (T @ (V.mH @ other)) if left else ((other @ V) @ T) @ V.mH
    return write_out("ormqr", other - change, out, True)
