"""Families of probabilities: Dirichlet, Beta, ContinuousBernoulli."""

from __future__ import annotations

import math

from .. import Size, rand, stack, where
from ..ops.variates import _sample_dirichlet
from . import constraints
from .distribution import ExponentialFamily
from .odds import Odds, given
from .utils import clamp_probs, lazy_property, logits_to_probs

__all__ = ["Beta", "ContinuousBernoulli", "Dirichlet"]


class Dirichlet(ExponentialFamily):
    """Vectors of probabilities, of a density that is the product of x_i^(concentration_i - 1). Follows
    ``torch.distributions.Dirichlet``."""

    arg_constraints = {"concentration": constraints.independent(constraints.positive, 1)}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, concentration, validate_args=None):
        if concentration.dim() < 1:
            raise ValueError("Dirichlet: `concentration` parameter must be at least one-dimensional.")
        self.concentration = concentration
        super().__init__(concentration.shape[:-1], concentration.shape[-1:], validate_args=validate_args)

    @property
    def _total(self):
        return self.concentration.sum(-1, keepdim=True)

    @property
    def mean(self):
        return self.concentration / self._total

    @property
    def mode(self):
        """At a corner, the first of them, where all concentrations are below 1."""
        above = (self.concentration - 1).clamp(min=0)
        corner = above.new_zeros(above.shape)
        corner[..., 0] = 1
        return where((self.concentration < 1).all(-1, keepdim=True), corner, above / above.sum(-1, keepdim=True))

    @property
    def variance(self):
        mean = self.mean
        return mean * (1 - mean) / (self._total + 1)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return _sample_dirichlet(self.concentration.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._check(value)
        return (self.concentration - 1).xlogy(value).sum(-1) - self._log_normalizer(self.concentration)

    def entropy(self):
        c, total = self.concentration, self.concentration.sum(-1)
        return self._log_normalizer(c) + (total - c.shape[-1]) * total.digamma() - ((c - 1) * c.digamma()).sum(-1)

    @property
    def _natural_params(self):
        return (self.concentration,)

    def _log_normalizer(self, x):
        return x.lgamma().sum(-1) - x.sum(-1).lgamma()


class Beta(ExponentialFamily):
    """The density x^(concentration1 - 1) (1 - x)^(concentration0 - 1) / B(concentration1, concentration0). Follows
    ``torch.distributions.Beta``."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        shape = self._set(concentration1=concentration1, concentration0=concentration0)
        super().__init__(shape, validate_args=validate_args)

    @property
    def _dirichlet(self):
        return Dirichlet(stack((self.concentration1, self.concentration0), -1), validate_args=False)

    @property
    def mean(self):
        return self.concentration1 / (self.concentration1 + self.concentration0)

    @property
    def mode(self):
        return self._dirichlet.mode[..., 0]

    @property
    def variance(self):
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total**2 * (total + 1))

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value):
        self._check(value)
        a, b = self.concentration1, self.concentration0
        return (a - 1).xlogy(value) + (b - 1).xlogy(1 - value) - self._log_normalizer(a, b)

    def entropy(self):
        return self._dirichlet.entropy()

    @property
    def _natural_params(self):
        return self.concentration1, self.concentration0

    def _log_normalizer(self, x, y):
        return x.lgamma() + y.lgamma() - (x + y).lgamma()


class ContinuousBernoulli(Odds, ExponentialFamily):
    """The density on [0, 1] proportional to probs^x (1 - probs)^(1 - x) (Loaiza-Ganem and Cunningham, "The continuous
    Bernoulli", 2019). Where ``probs`` lies within ``lims``, around 1/2, functions of it are Taylor's polynomials.
    Follows ``torch.distributions.ContinuousBernoulli``."""

    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _kept = ("_lims",)

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args=None):
        shape = self._set(**given(probs, logits))
        if probs is not None:
            if validate_args is not None and not constraints.unit_interval.check(self.probs).all():
                raise ValueError("ContinuousBernoulli: the parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(shape, validate_args=validate_args)

    @lazy_property
    def probs(self):
        """The parameter, at least eps away from 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _split(self):
        """Where formulas hold, and probabilities for which they do."""
        outside = (self.probs <= self._lims[0]) | (self.probs > self._lims[1])
        return outside, where(outside, self.probs, self._lims[0])

    def _cont_bern_log_norm(self):
        """The logarithm of 2 atanh(1 - 2 probs) / (1 - 2 probs)."""
        outside, p = self._split()
        x = (self.probs - 0.5) ** 2
        exact = ((-p).log1p() - p.log()).abs().log() - (1 - 2 * p).abs().log()
        return where(outside, exact, math.log(2) + (4 / 3 + 104 / 45 * x) * x)

    @property
    def mean(self):
        outside, p = self._split()
        x = self.probs - 0.5
        exact = p / (2 * p - 1) + 1 / ((-p).log1p() - p.log())
        return where(outside, exact, 0.5 + (1 / 3 + 16 / 45 * x**2) * x)

    @property
    def variance(self):
        outside, p = self._split()
        x = (self.probs - 0.5) ** 2
        exact = p * (p - 1) / (1 - 2 * p) ** 2 + 1 / ((-p).log1p() - p.log()) ** 2
        return where(outside, exact, 1 / 12 - (1 / 15 - 128 / 945 * x) * x)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value):
        self._check(value)
        return self._log_odds(value) + self._cont_bern_log_norm()

    def cdf(self, value):
        self._check(value)
        outside, p = self._split()
        exact = (p**value * (1 - p) ** (1 - value) + p - 1) / (2 * p - 1)
        inner = where(outside, exact, value)
        return where(value <= 0, 0.0, where(value >= 1, 1.0, inner))

    def icdf(self, value):
        outside, p = self._split()
        exact = ((-p + value * (2 * p - 1)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return where(outside, exact, value)

    def entropy(self):
        log_rest = (-self.probs).log1p()
        return self.mean * (log_rest - self.probs.log()) - self._cont_bern_log_norm() - log_rest

    @property
    def _natural_params(self):
        return (self.logits,)

    def _log_normalizer(self, x):
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        y = where(outside, x, self._lims[0] - 0.5)
        return where(outside, y.expm1().abs().log() - y.abs().log(), 0.5 * x + x**2 / 24 - x**4 / 2880)
