"""Determinants of matrices, by the diagonal of LU. the dimensions before the last two are a batch.

The gradient of det A is its matrix of cofactors, det(A) A^-T (Giles 2008, "Collected matrix derivative results").
"""

from __future__ import annotations

import math

from .. import return_types
from ..tensor import Tensor
from .declare import both, function, primitive, publish, write_all_out, write_out
from .decompose import svd
from .lapack import getrf
from .ranges import arange, eye
from .solve import solution


def _unit(A: Tensor) -> Tensor:
    return eye(A.shape[-1], dtype=A.dtype, device=A.device)


def _factors(A, op):
    """The diagonal of U, with the opposite sign where rows were exchanged."""
    if A.ndim > 1 and A.shape[-1] != A.shape[-2]:
        raise RuntimeError(
            f"{op}: A must be batches of square matrices, but they are {A.shape[-2]} by {A.shape[-1]} matrices"
        )
    LU, pivots, _ = getrf(A, check=False, op=op.removeprefix("linalg."))
    rows = arange(1, A.shape[-1] + 1, dtype=pivots.dtype, device=pivots.device)
    diagonal = LU.diagonal(0, -2, -1)
    return diagonal.where(pivots == rows, -diagonal)


def _inverse_transposed(A: Tensor) -> Tensor:
    """A^-T; not finite where A is singular."""
    return solution(A.mT, _unit(A))


def _cofactors(A: Tensor) -> Tensor:
    """The cofactors of any A = U S V^H: det(U V^H) conj(U C V^H), where C has the products of all other singular
    values."""
    U, S, Vh = svd(A)
    if not A.is_complex():  # determinants 1 or -1, which do not change
        U_, Vh_ = U.detach(), Vh.detach()
    else:
        U_, Vh_ = U, Vh
    unit = _unit(S)
    others = (S.unsqueeze(-2) * (1 - unit) + unit).prod(-1)
    return (_det(U_) * _det(Vh_)).unsqueeze(-1).unsqueeze(-1) * ((U * others.unsqueeze(-2)) @ Vh).conj()


def _det_vjp(g, A, result):
    if (result == 0).any():
        return (g.unsqueeze(-1).unsqueeze(-1) * _cofactors(A),)
    return ((g * result).unsqueeze(-1).unsqueeze(-1) * _inverse_transposed(A),)


@primitive(namespace="linalg", title="LinalgDetBackward0", outputs=("result",), inputs=("A",), vjp=_det_vjp)
def _det(A):
    return _factors(A, "linalg.det").prod(-1)


@function(namespace="linalg")
def det(A, *, out=None):
    """The determinants (*) of square matrices (*, n, n). Follows ``torch.linalg.det``."""
    return write_out("linalg.det", _det(A), out, True)


def _slogdet_vjp(g_sign, g_logabsdet, A, sign):
    """With t = tr(A^-1 dA): d logabsdet = Re(t), d sign = i sign Im(t). A real sign does not change."""
    g = g_logabsdet
    if g_sign is not None and A.is_complex():
        turned = (g_sign * sign.conj()).imag * 1j
        g = turned if g is None else g + turned
    return (None if g is None else g.unsqueeze(-1).unsqueeze(-1) * solution(A.mH, _unit(A)),)


@primitive(
    namespace="linalg",
    title="LinalgSlogdetBackward0",
    outputs=("sign", "logabsdet"),
    inputs=("A",),
    vjp=_slogdet_vjp,
    conjugates=False,
)
def _slogdet(A):
    factors = _factors(A, "linalg.slogdet")
    return factors.sgn().prod(-1), factors.abs().log().sum(-1)


@function(namespace="linalg")
def slogdet(A, *, out=None):
    """The determinants of square matrices (*, n, n) that may be too large or small for their dtype: a named tuple
    (sign, logabsdet), each of shape (*). A singular matrix has sign 0 and logarithm -inf. Follows
    ``torch.linalg.slogdet``."""
    return return_types.linalg_slogdet(*write_all_out("linalg.slogdet", _slogdet(A), out))


def _top_det(input):
    """The determinants of square matrices: ``linalg.det``. Follows ``torch.det``."""
    return _det(input)


def _top_slogdet(input):
    """Sign and logarithm of determinants: ``linalg.slogdet``. Follows ``torch.slogdet``."""
    return return_types.slogdet(*_slogdet(input))


publish(_top_det, name="det", method=True)
publish(_top_slogdet, name="slogdet", method=True)


@both
def logdet(input):
    """The logarithms of determinants; NaN where one is negative. Follows ``torch.logdet``.

    Args:
        input: matrices (*, n, n)
    Returns:
        A tensor (*).
    Raises:
        RuntimeError: the matrices are not square, or not floating
    """
    sign, logabsdet = _slogdet(input)
    if input.is_complex():
        return logabsdet + sign.log()
    return logabsdet.masked_fill(sign == -1, math.nan)
