"""Normal vectors: MultivariateNormal, LowRankMultivariateNormal."""

from __future__ import annotations

import math

from .. import Size, broadcast_shapes, broadcast_tensors, cholesky_inverse, diag_embed, eye, linalg
from . import constraints
from .distribution import Distribution, attribute
from .utils import _standard_normal, lazy_property

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal"]


def _batch_mv(matrix, vectors):
    """matrix @ x of each of the vectors (..., n); one matrix is multiplied with all of them at once."""
    if matrix.dim() == 2:
        return vectors @ matrix.mT
    return (matrix @ vectors.unsqueeze(-1)).squeeze(-1)


def _batch_mahalanobis(tril, vectors):
    """|tril^-1 x|^2 of each of the vectors (..., n). Those beyond the batch of ``tril`` are columns of one system, so
    that no matrix is copied."""
    outer = vectors.shape[: max(vectors.dim() - tril.dim() + 1, 0)]
    columns = vectors.reshape((math.prod(outer), *vectors.shape[len(outer) :])).movedim(0, -1)
    found = linalg.solve_triangular(tril, columns, upper=False).pow(2).sum(-2)
    return found.movedim(-1, 0).reshape(outer + found.shape[:-1])


def log_diagonal(tril):
    """The logarithm of the determinant of triangular matrices."""
    return tril.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def _precision_to_scale_tril(precision):
    """The Cholesky factor of the inverse: by the factor of the matrix turned around, which is triangular from above."""
    turned = linalg.cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    identity = eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return linalg.solve_triangular(turned, identity, upper=False)


def add_identity(matrix):
    return matrix + eye(matrix.shape[-1], dtype=matrix.dtype, device=matrix.device)


class _NormalVectors(Distribution):
    """What follows from the log determinant of the covariance and from its quadratic form."""

    support = constraints.real_vector
    has_rsample = True
    mean = mode = attribute("loc")

    def log_prob(self, value):
        self._check(value)
        n = self._event_shape[0]
        return -0.5 * (n * math.log(2 * math.pi) + self._log_det() + self._quadratic(value - self.loc))

    def entropy(self):
        n = self._event_shape[0]
        return (0.5 * (n * (1 + math.log(2 * math.pi)) + self._log_det())).expand(self._batch_shape)

    def _of_batch(self, matrix):
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)


class MultivariateNormal(_NormalVectors):
    """Normal vectors of mean ``loc`` (..., n), and of one of covariance matrix, precision matrix, and lower triangular
    factor of the covariance (..., n, n). Follows ``torch.distributions.MultivariateNormal``."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    _kept = ("_unbroadcasted_scale_tril",)

    def __init__(self, loc, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = {
            "covariance_matrix": covariance_matrix,
            "precision_matrix": precision_matrix,
            "scale_tril": scale_tril,
        }
        name, matrix = only_one(matrices, ValueError)
        batch_shape = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand(batch_shape + (-1, -1)))
        self.loc = loc.expand(batch_shape + (-1,))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = tril_of(name, matrix)

    @lazy_property
    def scale_tril(self):
        """The lower triangular factor of the covariance."""
        return self._of_batch(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self):
        """The covariances."""
        return self._of_batch(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariances."""
        return self._of_batch(cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def variance(self):
        return (self._unbroadcasted_scale_tril**2).sum(-1).expand(self._extended_shape())

    def rsample(self, sample_shape=Size()):  # noqa: B008
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_scale_tril, noise)

    # The covariance is the sum of the columns' outer products and of a diagonal.

    def _parts(self):
        return self._unbroadcasted_scale_tril, None

    def _log_det(self):
        return 2 * log_diagonal(self._unbroadcasted_scale_tril)

    def _quadratic(self, x):
        return _batch_mahalanobis(self._unbroadcasted_scale_tril, x)

    def _quadratic_of_columns(self, columns):
        """The sum of the quadratic forms of the columns of matrices."""
        return linalg.solve_triangular(self._unbroadcasted_scale_tril, columns, upper=False).pow(2).sum((-2, -1))

    def _precisions(self):
        """The diagonal of the precision matrix."""
        tril = self._unbroadcasted_scale_tril
        identity = eye(tril.shape[-1], dtype=tril.dtype, device=tril.device)
        return linalg.solve_triangular(tril, identity, upper=False).pow(2).sum(-2)


def only_one(matrices: dict, error) -> tuple:
    """The one matrix that is given, and its name."""
    named = [(name, m) for name, m in matrices.items() if m is not None]
    if len(named) != 1:
        raise error(f"Exactly one of {' or '.join(matrices)} may be specified.")
    ((name, matrix),) = named
    if matrix.dim() < 2:
        raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
    return name, matrix


def tril_of(name: str, matrix):
    """The lower triangular factor of the covariance that the matrix of that name tells."""
    if name == "covariance_matrix":
        return linalg.cholesky(matrix)
    return matrix if name == "scale_tril" else _precision_to_scale_tril(matrix)


class LowRankMultivariateNormal(_NormalVectors):
    """Normal vectors of mean ``loc`` (..., n), whose covariance is cov_factor @ cov_factor.T + diag(cov_diag). By
    Woodbury's identity all is done with matrices (m, m), where ``cov_factor`` is (..., n, m). Follows
    ``torch.distributions.LowRankMultivariateNormal``."""

    arg_constraints = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    _kept = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc, cov_factor, cov_diag, validate_args=None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {tuple(event_shape)}")
        try:
            expanded = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as error:
            shapes = (f"{name} {tuple(x.shape)}" for name, x in zip(self.arg_constraints, (loc, cov_factor, cov_diag)))
            raise ValueError(f"Incompatible batch shapes: {', '.join(shapes)}") from error
        self.loc, self.cov_factor, self.cov_diag = expanded[0][..., 0], expanded[1], expanded[2][..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        capacitance = (cov_factor.mT / cov_diag.unsqueeze(-2)) @ cov_factor
        self._capacitance_tril = linalg.cholesky(add_identity(capacitance))
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    @lazy_property
    def variance(self):
        return ((self._unbroadcasted_cov_factor**2).sum(-1) + self._unbroadcasted_cov_diag).expand(self.loc.shape)

    @lazy_property
    def scale_tril(self):
        """The lower triangular factor of the covariance; that of a matrix whose eigenvalues are at least 1, scaled."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        factor = self._unbroadcasted_cov_factor / root
        return self._of_batch(root * linalg.cholesky(add_identity(factor @ factor.mT)))

    @lazy_property
    def covariance_matrix(self):
        """The covariances."""
        factor = self._unbroadcasted_cov_factor
        return self._of_batch(factor @ factor.mT + diag_embed(self._unbroadcasted_cov_diag))

    def _reduction(self):
        """A, where the precision matrix is diag(1 / cov_diag) - A.T @ A."""
        factor = self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)
        return linalg.solve_triangular(self._capacitance_tril, factor, upper=False)

    @lazy_property
    def precision_matrix(self):
        """The inverse of the covariances."""
        a = self._reduction()
        return self._of_batch(diag_embed(self._unbroadcasted_cov_diag.reciprocal()) - a.mT @ a)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        low = _standard_normal(shape[:-1] + self.cov_factor.shape[-1:], self.loc.dtype, self.loc.device)
        own = _standard_normal(shape, self.loc.dtype, self.loc.device)
        return self.loc + _batch_mv(self._unbroadcasted_cov_factor, low) + self._unbroadcasted_cov_diag.sqrt() * own

    def _parts(self):
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    def _log_det(self):
        return 2 * log_diagonal(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def _quadratic(self, x):
        scaled = x / self._unbroadcasted_cov_diag
        low = _batch_mv(self._unbroadcasted_cov_factor.mT, scaled)
        return (x * scaled).sum(-1) - _batch_mahalanobis(self._capacitance_tril, low)

    def _quadratic_of_columns(self, columns):
        scaled = columns**2 / self._unbroadcasted_cov_diag.unsqueeze(-1)
        return scaled.sum((-2, -1)) - (self._reduction() @ columns).pow(2).sum((-2, -1))

    def _precisions(self):
        return self._unbroadcasted_cov_diag.reciprocal() - self._reduction().pow(2).sum(-2)
