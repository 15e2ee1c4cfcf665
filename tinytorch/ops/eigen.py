"""Eigenvalues and eigenvectors, by LAPACK; the dimensions before the last two are a batch.

The derivatives are those of A V = V L (Giles 2008, "Collected matrix derivative results"; Boeddeker et al. 2017, "On
the computation of complex-valued gradients"). They divide by differences of eigenvalues: where two are equal, gradients
of the vectors are not finite.
"""

from __future__ import annotations

from .. import return_types
from ..tensor import Tensor
from .convert import in_dtype
from .declare import function, primitive, requires, write_all_out, write_out
from .lapack import geev, geev_values, heevd, heevd_values
from .ranges import eye
from .solve import solution


def off_diagonal(differences: Tensor) -> Tensor:
    """The differences of every two values, with 1 in place of the 0 between a value and itself."""
    return differences + eye(differences.shape[-1], dtype=differences.dtype, device=differences.device)


def check_phases(op: str, vectors: str, change: Tensor) -> None:
    """RuntimeError where a loss depends on the phases of complex vectors, which are arbitrary: where the diagonal of
    ``change``, the vectors' adjoint times their gradient, is not real. PyTorch allows 0.01."""
    if change.is_complex() and not (change.detach().diagonal(0, -2, -1).imag.abs() <= 1e-2).all():
        raise RuntimeError(
            f"{op}: The {vectors} in the complex case are specified up to multiplication by e^{{i phi}}. The specified "
            "loss function depends on this quantity, so it is ill-defined."
        )


# Of any matrix.


def _eig_vjp(g_L, g_V, L, V, A_dtype):
    """With E_ij = l_j - l_i, and columns of V of length 1: dA = V^-H [dL + (V^H dV - V^H V Re(diag(V^H dV))) / E*] V^H,
    where the diagonal of the quotient counts for nothing."""
    adjoint = V.mH
    inner = 0
    if g_V is not None:
        x = adjoint @ g_V
        check_phases("linalg_eig_backward", "eigenvectors", x)
        x = x - (adjoint @ V) * x.diagonal(0, -2, -1).real.unsqueeze(-2)
        x = x / off_diagonal((L.unsqueeze(-2) - L.unsqueeze(-1)).conj())
        inner = x.tril(-1) + x.triu(1)
    if g_L is not None:
        inner = inner + g_L.diag_embed()
    return (in_dtype(solution(adjoint, inner @ adjoint), A_dtype),)


@primitive(
    namespace="linalg",
    title="LinalgEigBackward0",
    outputs=("L", "V"),
    extra=("info",),
    inputs=("A",),
    vjp=_eig_vjp,
    conjugates=False,
)
def _eig(A):
    return geev(A)


@primitive(namespace="linalg", name="eigvals")
def _eigvals(A):
    return geev_values(A)[0]


@function(namespace="linalg")
def eig(A, *, out=None):
    """The eigenvalues of square matrices (*, n, n), in no order, and their eigenvectors of length 1 as columns: a named
    tuple (eigenvalues (*, n), eigenvectors (*, n, n)), complex. Follows ``torch.linalg.eig``.

    Args:
        A: matrices (*, n, n)
        out: two tensors
    Returns:
        A named tuple (eigenvalues, eigenvectors).
    Raises:
        LinAlgError: an element is not finite, or the algorithm did not converge
    """
    return return_types.linalg_eig(*write_all_out("linalg.eig", _eig(A)[:2], out))


@function(namespace="linalg")
def eigvals(A, *, out=None):
    """The eigenvalues (*, n), complex, of square matrices (*, n, n), in no order. Follows ``torch.linalg.eigvals``."""
    return write_out("linalg.eigvals", _eig(A)[0] if requires(A) else _eigvals(A), out, True)


# Of symmetric or Hermitian matrices.


def _eigh_vjp(g_L, g_V, L, V):
    """With A = V L V^H and E_ij = l_j - l_i: dA = V [dL + (V^H dV) / E] V^H, made Hermitian."""
    if g_V is None:
        return ((V * g_L.unsqueeze(-2)) @ V.mH,)
    x = V.mH @ g_V
    check_phases("linalg_eigh_backward", "eigenvectors", x)
    inner = (x - x.mH) / (2 * off_diagonal(L.unsqueeze(-2) - L.unsqueeze(-1)))
    if g_L is not None:
        inner = inner + g_L.diag_embed()
    return (V @ inner @ V.mH,)


@primitive(
    namespace="linalg",
    title="LinalgEighBackward0",
    outputs=("L", "V"),
    extra=("info",),
    inputs=("A",),
    vjp=_eigh_vjp,
    conjugates=False,
)
def _eigh(A, upper):
    return heevd(A, option=upper)


@primitive(namespace="linalg", name="eigvalsh")
def _eigvalsh(A, upper):
    return heevd_values(A, option=upper)[0]


def _is_upper(op: str, UPLO: str) -> bool:
    if not isinstance(UPLO, (str, bytes)):
        raise TypeError(f"{op}(): argument 'UPLO' must be str, not {type(UPLO).__name__}")
    UPLO = UPLO.decode() if isinstance(UPLO, bytes) else UPLO
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"{op}: Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


@function(namespace="linalg")
def eigh(A, UPLO="L", *, out=None):
    """The eigenvalues of symmetric or Hermitian matrices (*, n, n), real and in ascending order, and their
    eigenvectors as columns: a named tuple (eigenvalues (*, n), eigenvectors (*, n, n)). Only the lower triangle is
    read, or the upper one for ``UPLO="U"``; the gradient is symmetric. LinAlgError where an element is not finite.
    Follows ``torch.linalg.eigh``.

    Args:
        A: symmetric or Hermitian matrices (*, n, n)
        UPLO: which triangle is read
        out: two tensors
    Returns:
        A named tuple (eigenvalues, eigenvectors).
    Raises:
        LinAlgError: the algorithm did not converge
    """
    results = _eigh(A, _is_upper("linalg.eigh", UPLO))[:2]
    return return_types.linalg_eigh(*write_all_out("linalg.eigh", results, out))


@function(namespace="linalg")
def eigvalsh(A, UPLO="L", *, out=None):
    """The eigenvalues (*, n) of symmetric or Hermitian matrices (*, n, n), in ascending order; else as ``eigh``.
    Follows ``torch.linalg.eigvalsh``."""
    upper = _is_upper("linalg.eigvalsh", UPLO)
    return write_out("linalg.eigvalsh", _eigh(A, upper)[0] if requires(A) else _eigvalsh(A, upper), out, True)
