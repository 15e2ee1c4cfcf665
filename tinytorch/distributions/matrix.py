"""Families of matrices: Wishart, LKJCholesky."""

from __future__ import annotations

import math
import warnings

from .. import (
    Size,
    Tensor,
    arange,
    broadcast_shapes,
    cholesky_solve,
    einsum,
    eye,
    finfo,
    linalg,
    mvlgamma,
    no_grad,
    randn,
    tensor,
    where,
)
from . import constraints
from .distribution import Distribution, ExponentialFamily
from .multivariate import log_diagonal, only_one, tril_of
from .positive import Chi2
from .simplex import Beta
from .utils import lazy_property

__all__ = ["LKJCholesky", "Wishart"]


class Wishart(ExponentialFamily):
    """Positive definite matrices (n, n): the sum of outer products of ``df`` normal vectors of mean 0, of one of
    covariance matrix, precision matrix, and lower triangular factor of the covariance. Follows
    ``torch.distributions.Wishart``."""

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        name, matrix = only_one(matrices, AssertionError)
        df = df if isinstance(df, Tensor) else tensor(df, dtype=matrix.dtype, device=matrix.device)
        batch_shape, event_shape = broadcast_shapes(matrix.shape[:-2], df.shape), matrix.shape[-2:]
        self.df = df.expand(batch_shape)
        if (df <= event_shape[-1] - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {event_shape[-1] - 1}.")
        if (df < event_shape[-1]).any():
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        super().__init__(batch_shape, event_shape, validate_args=validate_args)
        self._unbroadcasted_scale_tril = tril_of(name, matrix)

    @property
    def arg_constraints(self):
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _of_batch(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self):
        """The lower triangular factor of the covariance."""
        return self._of_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariances of the vectors."""
        return self._of_batch(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariances."""
        tril = self._unbroadcasted_scale_tril
        return self._of_batch(cholesky_solve(eye(tril.shape[-1], dtype=tril.dtype, device=tril.device), tril))

    @property
    def _matrix_df(self):
        return self.df[..., None, None]

    @property
    def mean(self):
        return self._matrix_df * self.covariance_matrix

    @property
    def mode(self):
        times = self._matrix_df - self._event_shape[-1] - 1
        return where(times > 0, times, math.nan) * self.covariance_matrix

    @property
    def variance(self):
        v = self.covariance_matrix
        diagonal = v.diagonal(dim1=-2, dim2=-1)
        return self._matrix_df * (v**2 + einsum("...i,...j->...ij", diagonal, diagonal))

    def _degrees(self):
        """Of freedom, of the squared diagonal of a triangular factor (Bartlett)."""
        return self.df.unsqueeze(-1) - arange(self._event_shape[-1], dtype=self.df.dtype, device=self.df.device)

    def _bartlett_sampling(self, sample_shape=Size()):  # noqa: B008
        eps = finfo(self.df.dtype).eps
        diagonal = Chi2(self._degrees(), validate_args=False).rsample(sample_shape).sqrt().clamp(min=eps)
        shape = self._extended_shape(sample_shape)
        below = randn(shape, dtype=diagonal.dtype, device=diagonal.device).tril(-1)
        factor = self._unbroadcasted_scale_tril @ (below + diagonal.diag_embed())
        return factor @ factor.mT

    def rsample(self, sample_shape=Size(), max_try_correction=None):  # noqa: B008
        """Samples; those that rounding has made singular are drawn again, up to ``max_try_correction`` (10) times."""
        drawn = self._bartlett_sampling(sample_shape)
        singular = ~self.support.check(drawn)
        if singular.any():
            warnings.warn("Singular sample detected.", stacklevel=2)
            for _ in range(10 if max_try_correction is None else max_try_correction):
                drawn = where(singular[..., None, None], self._bartlett_sampling(sample_shape), drawn)
                singular = ~self.support.check(drawn)
                if not singular.any():
                    break
        return drawn

    def log_prob(self, value):
        self._check(value)
        n, tril = self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = cholesky_solve(value, tril).diagonal(dim1=-2, dim2=-1).sum(-1)
        log_scale = n * math.log(2) / 2 + log_diagonal(tril)
        power = (self.df - n - 1) / 2
        return power * linalg.slogdet(value).logabsdet - trace / 2 - self.df * log_scale - mvlgamma(self.df / 2, p=n)

    def entropy(self):
        n, df = self._event_shape[-1], self.df
        log_scale = n * math.log(2) / 2 + log_diagonal(self._unbroadcasted_scale_tril)
        log_det = (self._degrees() / 2).digamma().sum(-1)  # its mean, of a standard Wishart matrix
        return (n + 1) * log_scale + mvlgamma(df / 2, p=n) - (df - n - 1) / 2 * log_det + df * n / 2

    @property
    def _natural_params(self):
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x, y):
        n = self._event_shape[-1]
        half = y + (n + 1) / 2
        return half * (n * math.log(2) - linalg.slogdet(-2 * x).logabsdet) + mvlgamma(half, p=n)


class LKJCholesky(Distribution):
    """Lower triangular factors of matrices of correlations (dim, dim), of the density det^(concentration - 1)
    (Lewandowski, Kurowicka and Joe, "Generating random correlation matrices based on vines and extended onion method",
    2009). Follows ``torch.distributions.LKJCholesky``."""

    arg_constraints = {"concentration": constraints.positive}
    support = constraints.corr_cholesky
    _kept = ("dim",)

    def __init__(self, dim, concentration=1.0, validate_args=None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        super().__init__(self._set(concentration=concentration), Size((dim, dim)), validate_args=validate_args)

    def sample(self, sample_shape=Size()):  # noqa: B008
        """By the onion method: row i is a point of a ball of i dimensions, and what completes its length to 1."""
        with no_grad():
            row = arange(1, self.dim, dtype=self.concentration.dtype, device=self.concentration.device)
            rest = self.concentration.unsqueeze(-1) + 0.5 * (self.dim - 1 - row)
            squared_radius = Beta(0.5 * row, rest, validate_args=False).sample(sample_shape)
            normal = randn(self._extended_shape(sample_shape), dtype=row.dtype, device=row.device).tril(-1)
            rows = normal[..., 1:, :]
            rows = squared_radius.sqrt().unsqueeze(-1) * rows / rows.norm(dim=-1, keepdim=True)
            normal[..., 1:, :] = rows
            diagonal = (1 - normal.pow(2).sum(-1)).clamp(min=finfo(row.dtype).tiny).sqrt()
            return normal + diagonal.diag_embed()

    def log_prob(self, value):
        self._check(value)
        diagonal = value.diagonal(dim1=-2, dim2=-1)[..., 1:]
        row = arange(2, self.dim + 1, device=self.concentration.device)
        power = 2 * (self.concentration - 1).unsqueeze(-1) + self.dim - row
        n = self.dim - 1
        alpha = self.concentration + 0.5 * n
        constant = 0.5 * n * math.log(math.pi) + mvlgamma(alpha - 0.5, n) - n * alpha.lgamma()
        return (power * diagonal.log()).sum(-1) - constant
