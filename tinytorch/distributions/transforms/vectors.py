"""Transforms of vectors and matrices."""

from __future__ import annotations

import math

from ... import cumsum, eye, finfo, linalg, tanh
from ...nn.functional import logsigmoid, pad, softmax, softplus
from .. import constraints
from ..utils import tril_matrix_to_vec, vec_to_tril_matrix
from .base import _Plain
from .numbers import _clipped_sigmoid

__all__ = [
    "CorrCholeskyTransform", "LowerCholeskyTransform", "PositiveDefiniteTransform", "SoftmaxTransform",
    "StickBreakingTransform",
]  # fmt: skip


def _check_dims(shape, least: int = 1) -> None:
    if len(shape) < least:
        raise ValueError("Too few dimensions on input")


class SoftmaxTransform(_Plain):
    """y = exp(x) / sum(exp(x)), of which log(y) is taken for the inverse. Follows
    ``torch.distributions.transforms.SoftmaxTransform``."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        return softmax(x, -1)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _check_dims(shape)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """Vectors of n numbers as n + 1 probabilities: each sigmoid is the part that is broken off what is left of a stick;
    shifted, so that 0 gives equal parts. Follows ``torch.distributions.transforms.StickBreakingTransform``."""

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _shift(x, n: int):
        """log(n), ..., log(1)."""
        return (n + 1 - x.new_ones(n).cumsum(-1)).log()

    def _call(self, x):
        part = _clipped_sigmoid(x - self._shift(x, x.shape[-1]))
        left = (1 - part).cumprod(-1)
        return pad(part, (0, 1), value=1) * pad(left, (1, 0), value=1)

    def _inverse(self, y):
        parts = y[..., :-1]
        left = (1 - parts.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return parts.log() - left.log() + self._shift(y, parts.shape[-1])

    def log_abs_det_jacobian(self, x, y):
        x = x - self._shift(x, x.shape[-1])
        return (logsigmoid(-x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _check_dims(shape)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape):
        _check_dims(shape)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Plain):
    """Matrices as lower triangular ones, with exp of the diagonal. Follows
    ``torch.distributions.transforms.LowerCholeskyTransform``."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y):
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """Matrices as positive definite ones, by LowerCholeskyTransform. Follows
    ``torch.distributions.transforms.PositiveDefiniteTransform``."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(linalg.cholesky(y))


class CorrCholeskyTransform(_Plain):
    """Vectors of d (d - 1) / 2 numbers as lower triangular factors (d, d) of matrices of correlations: a tanh is the
    correlation with one variable, given those before. Follows
    ``torch.distributions.transforms.CorrCholeskyTransform``."""

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        r = tanh(x)
        eps = finfo(r.dtype).eps
        r = vec_to_tril_matrix(r.clamp(-1 + eps, 1 - eps), diag=-1)
        left = (1 - r**2).sqrt().cumprod(-1)
        r = r + eye(r.shape[-1], dtype=r.dtype, device=r.device)
        return r * pad(left[..., :-1], (1, 0), value=1)

    def _inverse(self, y):
        left = pad((1 - cumsum(y * y, -1))[..., :-1], (1, 0), value=1)
        r = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (r.log1p() - (-r).log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        """Of the elements of ``y`` below the diagonal."""
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        return 0.5 * left.log().sum(-1) - 2 * (x + softplus(-2 * x) - math.log(2)).sum(-1)

    def forward_shape(self, shape):
        _check_dims(shape)
        n = shape[-1]
        d = round((0.25 + 2 * n) ** 0.5 + 0.5)
        if d * (d - 1) // 2 != n:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (d, d)

    def inverse_shape(self, shape):
        _check_dims(shape, 2)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)
