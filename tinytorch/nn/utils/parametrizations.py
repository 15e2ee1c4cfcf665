"""Parametrizations ready to be used. Follows ``torch.nn.utils.parametrizations``."""

from __future__ import annotations

from functools import partial

from ...autograd.modes import no_grad
from ...dtypes import finfo
from ...ops.decompose import qr
from ...ops.join import cat
from ...ops.random import randn
from ...ops.solve import solve
from ...tensor import Tensor
from ..functional import normalize
from ..module import Module
from .orthogonal import householder_product, householder_qr, identity_like, matrix_exp
from .parametrize import register_parametrization

__all__ = ["orthogonal", "spectral_norm", "weight_norm"]

MAPS = ("matrix_exp", "cayley", "householder")


def _tensor_of(module: Module, name: str) -> Tensor:
    """A tensor of a module; ValueError when there is none of this name."""
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    return weight


def _nearest_orthogonal(a: Tensor) -> Tensor:
    """Q of the QR decomposition where R has a positive diagonal: ``a`` itself if it is orthogonal."""
    q, r = qr(a)
    return q * r.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _is_orthogonal(q: Tensor) -> bool:
    n, k = q.shape[-2:]
    return bool((q.mT @ q - identity_like(q, k, k)).abs().amax() <= 10.0 * n * finfo(q.dtype).eps)


class _Orthogonal(Module):
    """Matrices to orthogonal ones, by way of a skew-symmetric matrix or of reflections, times ``base``."""

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool):
        super().__init__()
        self.shape, self.orthogonal_map = weight.shape, orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        transposed = X.size(-2) < X.size(-1)
        if transposed:
            X = X.mT
        n, k = X.shape[-2:]
        if self.orthogonal_map == "householder":
            A = X.tril(-1)
            Q = householder_product(A, 2.0 / (1.0 + (A * A).sum(-2)))
            Q = Q * X.detach().diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)
        else:
            X = X.tril()
            if n != k:  # a square matrix with zeros beside it
                X = cat([X, X.new_zeros((*X.shape[:-1], n - k))], -1)
            A = X - X.mT
            if self.orthogonal_map == "matrix_exp":
                Q = matrix_exp(A)
            else:
                one = identity_like(A, n, n)
                Q = solve(one - A * 0.5, one + A * 0.5)
            Q = Q[..., :k] if n != k else Q
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if transposed else Q

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        given, transposed = Q, Q.size(-2) < Q.size(-1)
        if transposed:
            Q = Q.mT
        n, k = Q.shape[-2:]
        if not hasattr(self, "base"):
            if self.orthogonal_map != "householder":
                raise NotImplementedError(
                    "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                    "use_trivialization=False."
                )
            A, tau = householder_qr(Q)
            diagonal = A.diagonal(dim1=-2, dim2=-1)
            signs = diagonal.sign()
            diagonal.copy_((-signs).where(tau == 0.0, signs))  # forward reflects there, with a column of zeros
            return A.mT if transposed else A
        if n != k:
            Q = cat([Q, randn((*Q.shape[:-1], n - k), dtype=Q.dtype, device=Q.device)], -1)
            self.base = _nearest_orthogonal(Q)
        else:
            self.base = Q.clone() if _is_orthogonal(Q) else _nearest_orthogonal(Q)
        start = given.new_zeros(given.shape)  # which forward takes to the identity
        start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)
        return start


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Makes a matrix of the module, or batch of matrices, orthogonal (its rows or columns, whichever are shorter).
    ``orthogonal_map`` is "matrix_exp", "cayley" or "householder"; None takes the first for square matrices and the last
    for others. Without ``use_trivialization`` there is no base to start from, and only "householder" can be assigned
    to. For float32 and float64 on the CPU. Returns the module. ValueError for what is no matrix and for an unknown map.
    Follows ``torch.nn.utils.parametrizations.orthogonal``."""
    weight = _tensor_of(module, name)
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        orthogonal_map = "matrix_exp" if weight.size(-2) == weight.size(-1) else "householder"
    if orthogonal_map not in MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    made = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, made, unsafe=True)


def length_of(v: Tensor, dim: int) -> Tensor:
    """The norm over all dimensions but ``dim``; over all, without dimensions, for -1."""
    if dim == -1:
        return v.norm()
    others = tuple(d for d in range(v.ndim) if d != dim)
    return v.norm(dim=others, keepdim=True) if others else v.abs()


class _WeightNorm(Module):
    """Length times direction."""

    def __init__(self, dim: int | None = 0):
        super().__init__()
        self.dim = -1 if dim is None else dim

    def forward(self, weight_g: Tensor, weight_v: Tensor) -> Tensor:
        return weight_v * (weight_g / length_of(weight_v, self.dim))

    def right_inverse(self, weight: Tensor):
        return length_of(weight, self.dim), weight


def _rename(name: str, state_dict, prefix: str, *_) -> None:
    """Takes the names of old for a weight's length and direction."""
    g, v = f"{prefix}{name}_g", f"{prefix}{name}_v"
    if g in state_dict and v in state_dict:
        state_dict[f"{prefix}parametrizations.{name}.original0"] = state_dict.pop(g)
        state_dict[f"{prefix}parametrizations.{name}.original1"] = state_dict.pop(v)


def weight_norm(module: Module, name: str = "weight", dim: int | None = 0) -> Module:
    """Trains length and direction of a tensor apart: ``original0`` is its norm over all dimensions but ``dim`` (None:
    over all), ``original1`` the direction (Salimans and Kingma 2016). Returns the module. Follows
    ``torch.nn.utils.parametrizations.weight_norm``."""
    register_parametrization(module, name, _WeightNorm(dim), unsafe=True)
    module._register_load_state_dict_pre_hook(partial(_rename, name))
    return module


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """``dim`` in front, all others as one."""
    return weight.movedim(dim, 0).flatten(1)


def random_directions(matrix: Tensor, eps: float) -> list[Tensor]:
    """Vectors of length 1, as many numbers as the matrix has rows, and columns."""
    return [normalize(matrix.new_empty(n).normal_(0, 1), dim=0, eps=eps) for n in matrix.shape]


@no_grad()
def power_method(matrix: Tensor, u: Tensor, v: Tensor, iterations: int, eps: float) -> None:
    """Brings ``u`` and ``v`` nearer to the first singular vectors, in place."""
    for _ in range(iterations):
        u.copy_(normalize(matrix.mv(v), dim=0, eps=eps))
        v.copy_(normalize(matrix.mT.mv(u), dim=0, eps=eps))


def over_spectral_norm(weight: Tensor, dim: int, u: Tensor, v: Tensor, iterations: int, eps: float) -> Tensor:
    """A tensor over its largest singular value as a matrix with the rows of ``dim``, after some steps of the power
    method."""
    matrix = as_matrix(weight, dim)
    power_method(matrix, u, v, iterations, eps)
    u, v = u.clone(), v.clone()  # the next steps write them, and the derivative needs them
    return weight / u.dot(matrix.mv(v))


class _SpectralNorm(Module):
    """A tensor over its largest singular value, which the power method finds."""

    def __init__(self, weight: Tensor, n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__()
        ndim = weight.ndim
        if not -ndim <= dim < ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-{ndim}, {ndim - 1}] but got {dim})")
        if n_power_iterations <= 0:
            raise ValueError(
                f"Expected n_power_iterations to be positive, but got n_power_iterations={n_power_iterations}"
            )
        self.dim, self.eps = dim % ndim, eps
        if ndim > 1:
            self.n_power_iterations = n_power_iterations
            matrix = as_matrix(weight.detach(), self.dim)
            u, v = random_directions(matrix, eps)
            power_method(matrix, u, v, 15, eps)
            self.register_buffer("_u", u)
            self.register_buffer("_v", v)

    def forward(self, weight: Tensor) -> Tensor:
        if weight.ndim == 1:
            return normalize(weight, dim=0, eps=self.eps)
        iterations = self.n_power_iterations if self.training else 0
        return over_spectral_norm(weight, self.dim, self._u, self._v, iterations, self.eps)

    def right_inverse(self, value: Tensor) -> Tensor:
        return value


def spectral_norm(
    module: Module, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None
) -> Module:
    """Divides a tensor by its largest singular value, as a matrix with the rows of ``dim`` (1 for transposed
    convolutions, else 0); each forward in training takes ``n_power_iterations`` steps of the power method (Miyato et
    al. 2018). Returns the module. ValueError for an unknown name or less than one iteration, IndexError for an unknown
    ``dim``. Follows ``torch.nn.utils.parametrizations.spectral_norm``."""
    weight = _tensor_of(module, name)
    if dim is None:
        dim = 1 if getattr(module, "transposed", False) else 0
    return register_parametrization(module, name, _SpectralNorm(weight, n_power_iterations, dim, eps))
