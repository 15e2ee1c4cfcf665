"""The largest or smallest eigenvalues of large symmetric matrices by LOBPCG (Knyazev 2001, SIAM J. Sci. Comput. 23:517;
orthogonal bases: Stathopoulos and Wu 2002, ibid. 23:2165, and Duersch, Shao, Yang and Gu 2018, ibid. 40:C655).

In each step eigenpairs are sought in the span of the approximations X, of their residuals W, and of P, which the last
step added to X.
"""

from __future__ import annotations

from collections.abc import Callable

from ..dtypes import finfo, float16, float32, float64
from ..tensor import Tensor
from .cholesky import cholesky
from .create import empty
from .declare import function, primitive
from .decompose import qr
from .eigen import eigh
from .join import cat
from .matrix_norms import vector_norm
from .random import randn
from .ranges import eye
from .solve import solve, solve_triangular
from .sparse import RULES, SparseTensor
from .sparse_math import mm


def _times(A, X: Tensor) -> Tensor:
    if isinstance(A, SparseTensor):
        return mm(A, X)
    return X if A is None else A @ X


def _sorted_eigh(A: Tensor, largest: bool) -> tuple[Tensor, Tensor]:
    E, Z = eigh(A, "U")
    return (E.flip(-1), Z.flip(-1)) if largest else (E, Z)


class LOBPCG:
    """The state of an iteration, which the tracker is shown after each step.

    ``E``, ``X`` and ``R`` are the eigenvalues, the vectors and their residuals, ``S`` is the space that the next step
    searches. ``iparams``, ``fparams`` and ``bparams`` are what was asked for, ``ivars``, ``fvars``, ``bvars`` and
    ``tvars`` what changes. Setting ``bvars["force_stop"]`` ends the iteration.
    """

    def __init__(self, A, B, X, iK, iparams, fparams, bparams, method, tracker):
        self.A, self.B, self.iK = A, B, iK
        self.iparams, self.fparams, self.bparams = iparams, fparams, bparams
        self.method, self.tracker = method, tracker
        self.X = self.S = X
        self.E = X.new_zeros(X.shape[-1])
        self.R = X.new_zeros(X.shape)
        self.ivars = {"istep": 0, "iterations_left": iparams["niter"], "converged_count": 0, "converged_end": 0}
        size = float(vector_norm(X))
        norms = [float(vector_norm(_times(M, X))) / size for M in (A, B)]
        self.fvars = {"X_norm": size, "A_norm": norms[0], "B_norm": norms[1]}
        self.bvars: dict[str, bool] = {}
        self.tvars: dict[str, Tensor] = {}

    def __str__(self):
        shown = ("iparams", "fparams", "bparams", "ivars", "fvars", "bvars", "tvars", "A", "B", "iK", "X", "E")
        return "\n  ".join(["LOBPCG:", *[f"{name}={getattr(self, name)}" for name in shown]])

    def run(self) -> None:
        """Steps until enough pairs have converged."""
        while True:
            self.update()
            if self.tracker is not None:
                self.tracker(self)
            if self.stop_iteration():
                return

    def stop_iteration(self) -> bool:
        """Has the tracker had enough, were these all steps, or have enough pairs converged?"""
        stopped = self.bvars.get("force_stop", False) or self.ivars["iterations_left"] == 0
        return stopped or self.ivars["converged_count"] >= self.iparams["k"]

    def update(self) -> None:
        """One step."""
        done, n = self.ivars["converged_count"], self.iparams["n"]
        first = self.ivars["istep"] == 0
        if self.method != "ortho":
            done = 0  # the basis must have what has converged, as it is not orthogonal to that
        basis = self.X if first else self.S[:, done:]
        E, C = self._ritz(basis, self.method == "ortho" and not first)
        found = n - done
        self.X = cat((self.X[:, :done], basis @ C[:, :found]), 1)
        self.E = cat((self.E[:done], E[:found]))
        P = self.X[:, :0] if first else self._added(basis, C, found)
        self.update_residual()
        left = self.R[:, self.update_converged_count() :]
        W = _times(self.iK, left)
        before = cat((self.X, P), 1)
        self.S = cat((before, self._orthonormal(W, before) if self.method == "ortho" else W), 1)
        self.ivars["converged_end"] = self.S.shape[1]
        self.ivars["iterations_left"] -= 1
        self.ivars["istep"] += 1

    def _ritz(self, S: Tensor, orthonormal: bool) -> tuple[Tensor, Tensor]:
        """The Ritz values in the span of S, and what S is multiplied by to give the Ritz vectors."""
        inner = S.mT @ _times(self.A, S)
        if orthonormal:
            return _sorted_eigh(inner, self.bparams["largest"])
        gram = S.mT @ _times(self.B, S)
        scale = gram.diagonal() ** -0.5
        U = cholesky(gram * scale * scale.unsqueeze(1), upper=True)
        to = solve_triangular(U, scale.diag_embed(), upper=True, left=False)
        E, Z = _sorted_eigh(to.mT @ inner @ to, self.bparams["largest"])
        return E, to @ Z

    def _added(self, basis: Tensor, C: Tensor, found: int) -> Tensor:
        """The directions P, in which the new X differs from the one before."""
        if self.method != "ortho":
            return basis[:, found:] @ C[found:, self.ivars["converged_count"] : found]
        rest = C[:, found:]
        return basis @ (rest @ qr(rest[:found].mT).Q)

    def _orthonormal(self, U: Tensor, V: Tensor) -> Tensor:
        """U made B-orthonormal, and orthogonal to the B-orthonormal columns of V."""
        limit, unit = self.fparams["ortho_tol"], vector_norm(_times(self.B, V))
        for i in range(self.iparams["ortho_i_max"]):
            U = U - V @ (V.mT @ _times(self.B, U))
            for j in range(self.iparams["ortho_j_max"]):
                U = self._scaled(U, self.bparams["ortho_use_drop"] and j > 0)
                if not U.shape[1]:  # nothing new
                    return U
                BU = _times(self.B, U)
                size = vector_norm(U)
                error = vector_norm(U.mT @ BU - eye(U.shape[1], dtype=U.dtype, device=U.device))
                self.fvars[f"ortho_UBUmI_rerr[{i}, {j}]"] = error = float(error / (vector_norm(BU) * size))
                if error < limit:
                    break
            self.fvars[f"ortho_VBU_rerr[{i}]"] = error = float(vector_norm(V.mT @ BU) / (unit * size))
            if error < limit:
                break
        return U

    def _scaled(self, U: Tensor, drop: bool) -> Tensor:
        """U with about B-orthonormal columns, by the eigenvectors of its Gram matrix; without columns that are 0, nor,
        with ``drop``, those that the others span."""
        gram = U.mT @ _times(self.B, U)
        lengths = gram.diagonal()
        kept = (lengths.abs() != 0).nonzero().squeeze(1)
        if len(kept) < len(lengths):
            U, gram, lengths = U[:, kept], gram[kept][:, kept], lengths[kept]
        if not len(kept):
            return U
        scale = lengths**-0.5
        E, Z = eigh(gram * scale * scale.unsqueeze(1), "U")
        least = float(E.abs().max()) * self.fparams["ortho_tol_drop" if drop else "ortho_tol_replace"]
        if drop:
            kept = (least < E).nonzero().squeeze(1)
            E, Z = E[kept], Z[:, kept]
        return U @ (Z * scale.unsqueeze(1) * E.clamp(min=least) ** -0.5)

    def update_residual(self) -> None:
        """R = A X - B X E."""
        self.R = _times(self.A, self.X) - _times(self.B, self.X) * self.E

    def update_converged_count(self) -> int:
        """How many of the first pairs have a residual below the tolerance; a method to be replaced."""
        sizes = vector_norm(self.X, dim=0) * (self.fvars["A_norm"] + self.E.abs() * self.fvars["B_norm"])
        self.tvars["rerr"] = errors = vector_norm(self.R, dim=0) / sizes
        converged = [*(errors < self.fparams["tol"]).tolist(), False]
        count = max(self.ivars["converged_count"], converged.index(False))
        self.ivars["converged_count"] = count
        return count


def _parameters(A, X, k, n, niter, tol, largest, method, ortho_iparams, ortho_fparams, ortho_bparams):
    m = A.shape[-1]
    dtype = A.dtype if A.dtype in (float16, float32, float64) else float32
    if tol is None:
        tol = finfo(dtype).eps ** 0.5
    k = (1 if X is None else X.shape[-1]) if k is None else k
    n = (k if n is None else n) if X is None else X.shape[-1]
    if m < 3 * n:
        raise ValueError(
            f"LOBPCG algorithm is not applicable when the number of A rows (={m}) is smaller than 3 x the number of "
            f"requested eigenpairs (={n})"
        )
    integers = {"m": m, "n": n, "k": k, "niter": 1000 if niter is None else niter}
    floats, bools = {"tol": tol}, {"largest": True if largest is None else largest}
    if method == "ortho":
        integers = {**integers, "ortho_i_max": 3, "ortho_j_max": 3, **(ortho_iparams or {})}
        floats |= dict.fromkeys(("ortho_tol", "ortho_tol_drop", "ortho_tol_replace"), tol) | (ortho_fparams or {})
        bools = {**bools, "ortho_use_drop": False, **(ortho_bparams or {})}
    return dtype, integers, floats, bools


def _search(A, B, X, iK, dtype, parameters, method, tracker) -> tuple[Tensor, Tensor]:
    m, n, k = (parameters[0][name] for name in "mnk")

    def start(X):
        X = randn(m, n, dtype=dtype, device=A.device) if X is None else X
        if X.shape != (m, n):
            raise AssertionError(f"lobpcg: X shape mismatch: got {tuple(X.shape)}, expected {(m, n)}")
        return X

    def one(A, B, X):
        worker = LOBPCG(A, B, start(X), iK, *parameters, method, tracker)
        worker.run()
        return worker.E[:k], worker.X[:, :k]

    if A.ndim == 2:
        return one(A, B, X)
    stacks = [None if t is None else t.reshape(-1, *t.shape[-2:]) for t in (A, B, X)]
    count = len(stacks[0])
    E, V = (empty(count, *rest, dtype=dtype, device=A.device) for rest in ((k,), (m, k)))
    for i in range(len(E)):
        parameters[0]["batch_index"] = i
        E[i], V[i] = one(*[t if t is None else t[i] for t in stacks])
    return E.reshape(*A.shape[:-2], k), V.reshape(*A.shape[:-2], m, k)


def _lobpcg_vjp(g_E, g_X, A, E, X, B):
    """Within the span of X as ``eigh``'s; outside it, with the projector Q = I - X X^T, each g_X of its column gives
    (l - Q A Q)^-1 Q g_X x^T."""
    if B is not None or A.is_complex():
        what = "complex input" if B is None else "backward with B != I"
        raise ValueError(f"lobpcg.backward does not support {what} yet. Note that lobpcg.forward does though.")
    total = A.new_zeros(A.shape)
    if g_E is not None:
        total = total + (X * g_E.unsqueeze(-2)) @ X.mT
    if g_X is None:
        return total, None
    gaps = E.unsqueeze(-2) - E.unsqueeze(-1)
    one = eye(E.shape[-1], dtype=E.dtype, device=E.device)
    total = total + X @ ((X.mT @ g_X) * (1 - one) / (gaps + one)) @ X.mT
    inside = X @ X.mT
    outside = eye(A.shape[-1], dtype=A.dtype, device=A.device) - inside
    right = outside @ g_X
    shifted = (E.unsqueeze(-1).unsqueeze(-1) * outside.unsqueeze(-3)) - (outside @ A @ outside - inside).unsqueeze(-3)
    moved = solve(shifted, right.mT.unsqueeze(-1)).squeeze(-1).mT
    return total + moved @ X.mT, None


@primitive(title="LOBPCGAutogradFunctionBackward", outputs=("E", "X"), inputs=("A", "B"), vjp=_lobpcg_vjp)
def _lobpcg(A, B, start, iK, dtype, parameters, method, tracker):
    B = None if B is None else B.detach()
    return _search(A.detach(), B, start, iK, dtype, parameters, method, tracker)


@function
def lobpcg(
    A,
    k: int | None = None,
    B=None,
    X: Tensor | None = None,
    n: int | None = None,
    iK: Tensor | None = None,
    niter: int | None = None,
    tol: float | None = None,
    largest: bool | None = None,
    method: str | None = None,
    tracker: Callable | None = None,
    ortho_iparams: dict | None = None,
    ortho_fparams: dict | None = None,
    ortho_bparams: dict | None = None,
):
    """The ``k`` largest or smallest eigenvalues of symmetric matrices, or those E with A X = B X E, and their vectors.
    Follows ``torch.lobpcg``.

    Args:
        A: symmetric matrices (*, m, m), dense; or a sparse matrix
        k: how many pairs; as many as X has columns, or 1, unless given
        B: symmetric positive definite matrices (*, m, m); None is the identity
        X: first approximations (*, m, n); random unless given
        n: how many columns are iterated, k or more
        iK: a preconditioner (m, m): about the inverse of A
        niter: the most steps; -1 for any number, 1000 unless given
        tol: the relative residual at which a pair has converged; the root of the dtype's ``eps`` unless given
        largest: whether to find the largest eigenvalues, as unless given, or the smallest
        method: ``"ortho"``, with orthogonal bases, or ``"basic"``, which may fail where these are nearly dependent
        tracker: a function that is called after each step with the state: ``E``, ``X``, ``R``, ``ivars["istep"]``, ...
        ortho_iparams: ``ortho_i_max`` and ``ortho_j_max``, how often at most to orthogonalise
        ortho_fparams: ``ortho_tol``, ``ortho_tol_drop`` and ``ortho_tol_replace``
        ortho_bparams: ``ortho_use_drop``, whether dependent directions are left out
    Returns:
        A tuple: the eigenvalues (*, k), and the vectors (*, m, k) with X^T B X = 1. The derivative by A is symmetric.
    Raises:
        ValueError: m is less than 3 n
        AssertionError: shapes do not match
    """
    if A.shape[-2] != A.shape[-1]:
        raise AssertionError(f"lobpcg: A must be square, got shape {tuple(A.shape)}")
    if B is not None and A.shape != B.shape:
        raise AssertionError(f"lobpcg: A and B must have same shape, got {tuple(A.shape)} vs {tuple(B.shape)}")
    method = "ortho" if method is None else method
    options = (niter, tol, largest, method, ortho_iparams, ortho_fparams, ortho_bparams)
    dtype, *parameters = _parameters(A, X, k, n, *options)
    if A.requires_grad or (B is not None and B.requires_grad):
        return _lobpcg((A + A.mT) / 2, B, X, iK, dtype, parameters, method, tracker)
    return _search(A, B, X, iK, dtype, parameters, method, tracker)


RULES["lobpcg"] = lobpcg
