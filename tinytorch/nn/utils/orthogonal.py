"""What an orthogonal parametrization computes with: reflections, and the exponential of a matrix."""

from __future__ import annotations

from ...ops.join import cat, stack
from ...ops.ranges import eye
from ...ops.solve import solve
from ...tensor import Tensor

PADE = (  # numerator of the approximant of order 13; the denominator has it with alternating signs (Higham 2005)
    64764752532480000.0, 32382376266240000.0, 7771770303897600.0, 1187353796428800.0, 129060195264000.0,
    10559470521600.0, 670442572800.0, 33522128640.0, 1323241920.0, 40840800.0, 960960.0, 16380.0, 182.0, 1.0,
)  # fmt: skip
RADIUS = 5.37  # norms for which it is exact to float64's precision


def identity_like(a: Tensor, n: int, k: int) -> Tensor:
    """n x k, of the dtype and on the device of ``a``."""
    return eye(n, k, dtype=a.dtype, device=a.device)


def matrix_exp(a: Tensor) -> Tensor:
    """The exponential of each n x n matrix of (..., n, n), by scaling, Padé's approximant and squaring;
    differentiable."""
    n = a.shape[-1]
    norm = a.detach().abs().sum(-2).amax().item() if a.numel() else 0.0
    squarings = 0
    while norm > RADIUS and norm < float("inf"):
        norm, squarings = norm / 2, squarings + 1
    a = a / 2**squarings
    one = identity_like(a, n, n)
    a2 = a @ a
    a4 = a2 @ a2
    a6 = a4 @ a2
    b = PADE
    odd = a @ (a6 @ (b[13] * a6 + b[11] * a4 + b[9] * a2) + b[7] * a6 + b[5] * a4 + b[3] * a2 + b[1] * one)
    even = a6 @ (b[12] * a6 + b[10] * a4 + b[8] * a2) + b[6] * a6 + b[4] * a4 + b[2] * a2 + b[0] * one
    result = solve(even - odd, even + odd)
    for _ in range(squarings):
        result = result @ result
    return result


def householder_product(v: Tensor, tau: Tensor) -> Tensor:
    """The first k columns of the product of the reflections ``1 - tau[i] w w.T``, where w is column i of ``v`` (..., n,
    k) below the diagonal, with 1 on it; differentiable."""
    n, k = v.shape[-2:]
    w = v.tril(-1) + identity_like(v, n, k)
    q = identity_like(v, n, k).expand(*v.shape)
    for i in reversed(range(k)):
        column = w[..., i : i + 1]
        q = q - tau[..., i, None, None] * (column @ (column.mT @ q))
    return q


def householder_qr(a: Tensor) -> tuple[Tensor, Tensor]:
    """The QR decomposition of (..., n, k), n >= k, as LAPACK's geqrf has it: R on and above the diagonal, below it the
    columns of reflections whose product is Q; and their ``tau``. Not differentiable."""
    n, k = a.shape[-2:]
    a = a.detach().clone()
    taus = []
    for i in range(k):
        first, below = a[..., i, i, None], a[..., i + 1 :, i]
        norm = a[..., i:, i].norm(dim=-1, keepdim=True)
        beta = norm.where(first < 0, -norm)
        none = (below == 0).all(-1, keepdim=True)  # nothing to reflect
        tau = ((beta - first) / beta).masked_fill(none, 0)
        v = (below / (first - beta)).masked_fill(none, 0)
        w = cat([first * 0 + 1, v], -1).unsqueeze(-1)
        rest = a[..., i:, i + 1 :]
        rest.sub_(tau.unsqueeze(-1) * (w @ (w.mT @ rest)))
        a[..., i, i] = first.where(none, beta).squeeze(-1)
        a[..., i + 1 :, i] = v
        taus.append(tau.squeeze(-1))
    return a, stack(taus, -1) if taus else a.new_zeros((*a.shape[:-2], 0))
