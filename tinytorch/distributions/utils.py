"""What distributions have in common: broadcasting of parameters, probabilities and logits, triangles. Follows
``torch.distributions.utils``."""

from __future__ import annotations

from functools import update_wrapper

from .. import Size, Tensor, arange, broadcast_tensors, empty, enable_grad, finfo, get_default_dtype, tensor
from ..overrides import is_tensor_like

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

euler_constant = 0.57721566490153286060


def broadcast_all(*values) -> tuple[Tensor, ...]:
    """Tensors and numbers, broadcast together. Numbers take the dtype and device of the first tensor, or the default
    dtype. ValueError for anything else. Follows ``torch.distributions.utils.broadcast_all``."""
    if not all(is_tensor_like(v) or isinstance(v, (int, float)) for v in values):
        raise ValueError(
            "broadcast_all: all arguments must be numbers, tensors, or objects with __torch_function__, got "
            + ", ".join(type(v).__name__ for v in values)
        )
    like = next((v for v in values if isinstance(v, Tensor)), None)
    options = {"dtype": get_default_dtype()} if like is None else {"dtype": like.dtype, "device": like.device}
    return tuple(broadcast_tensors(*(v if is_tensor_like(v) else tensor(v, **options) for v in values)))


def _standard_normal(shape, dtype, device) -> Tensor:
    return empty(shape, dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Tensor, dim: int) -> Tensor:
    """The sum over the last ``dim`` dimensions."""
    return value if dim == 0 else value.reshape(value.shape[: len(value.shape) - dim] + (-1,)).sum(-1)


def logits_to_probs(logits: Tensor, is_binary: bool = False) -> Tensor:
    """Probabilities of log odds, or along the last dimension of logarithms that need not be normalised. Follows
    ``torch.distributions.utils.logits_to_probs``."""
    return logits.sigmoid() if is_binary else logits.softmax(-1)


def clamp_probs(probs: Tensor) -> Tensor:
    """Probabilities, at least eps of their dtype away from 0 and 1. Follows
    ``torch.distributions.utils.clamp_probs``."""
    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


def probs_to_logits(probs: Tensor, is_binary: bool = False) -> Tensor:
    """Log odds of probabilities, or their logarithms; finite at 0 and 1. Follows
    ``torch.distributions.utils.probs_to_logits``."""
    inner = clamp_probs(probs)
    return inner.log() - (-inner).log1p() if is_binary else inner.log()


class lazy_property:
    """A property that is computed when first asked for, with its history, and then is an attribute of the instance.
    Follows ``torch.distributions.utils.lazy_property``."""

    def __init__(self, wrapped):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)

    def __get__(self, instance, owner=None):
        if instance is None:
            return self
        with enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


def _lower(n: int, diag: int, device) -> Tensor:
    """Which elements of a square matrix lie on the diagonal ``diag`` or below."""
    at = arange(n, device=device)
    return at < at.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Tensor, diag: int = 0) -> Tensor:
    """The lower triangles (..., n (n + 1) / 2) of matrices (..., n, n), by rows. ValueError for a diagonal that is not
    in the matrix. Follows ``torch.distributions.utils.tril_matrix_to_vec``."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"tril_matrix_to_vec: diag ({diag}) is outside [{-n}, {n - 1}]")
    return mat[..., _lower(n, diag, mat.device)]


def vec_to_tril_matrix(vec: Tensor, diag: int = 0) -> Tensor:
    """The lower triangular matrices (..., n, n) whose triangles are vectors (..., n (n + 1) / 2), by rows. ValueError
    where no matrix has so many. Follows ``torch.distributions.utils.vec_to_tril_matrix``."""
    count, side = vec.shape[-1], 1 + 2 * diag
    n = (-side + (side**2 + 8 * count + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if abs(round(n) - n) > finfo(vec.dtype).eps:
        raise ValueError(f"vec_to_tril_matrix: {count} elements are not the lower triangle of a square matrix")
    mat = vec.new_zeros(vec.shape[:-1] + Size((round(n), round(n))))
    mat[..., _lower(round(n), diag, vec.device)] = vec
    return mat
