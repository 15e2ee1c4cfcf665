"""Families of positive numbers: Exponential, Gamma, Chi2, FisherSnedecor."""

from __future__ import annotations

import math

from .. import Size, as_tensor, finfo, log1p, where
from ..ops.variates import _standard_gamma
from ..special import gammainc
from . import constraints
from .distribution import Distribution, ExponentialFamily

__all__ = ["Chi2", "Exponential", "FisherSnedecor", "Gamma"]


class Exponential(ExponentialFamily):
    """The density rate exp(-rate x). Follows ``torch.distributions.Exponential``."""

    arg_constraints = {"rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, rate, validate_args=None):
        super().__init__(self._set(rate=rate), validate_args=validate_args)

    @property
    def mean(self):
        return self.rate.reciprocal()

    stddev = mean

    @property
    def mode(self):
        return self.rate.new_zeros(self.rate.shape)

    @property
    def variance(self):
        return self.rate**-2

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return self.rate.new_empty(self._extended_shape(sample_shape)).exponential_() / self.rate

    def log_prob(self, value):
        self._check(value)
        return self.rate.log() - self.rate * value

    def cdf(self, value):
        self._check(value)
        return -(-self.rate * value).expm1()

    def icdf(self, value):
        return -log1p(-value) / self.rate

    def entropy(self):
        return 1 - self.rate.log()

    @property
    def _natural_params(self):
        return (-self.rate,)

    def _log_normalizer(self, x):
        return -(-x).log()


class Gamma(ExponentialFamily):
    """The density rate^c x^(c - 1) exp(-rate x) / gamma(c), c the ``concentration``. Follows
    ``torch.distributions.Gamma``."""

    arg_constraints = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    _held = ("concentration", "rate")  # of subclasses whose arguments are others

    def __init__(self, concentration, rate, validate_args=None):
        super().__init__(self._set(concentration=concentration, rate=rate), validate_args=validate_args)

    @property
    def mean(self):
        return self.concentration / self.rate

    @property
    def mode(self):
        return ((self.concentration - 1) / self.rate).clamp(min=0)

    @property
    def variance(self):
        return self.concentration / self.rate**2

    def rsample(self, sample_shape=Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        drawn = _standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        drawn.detach().clamp_(min=finfo(drawn.dtype).tiny)  # which is no part of its history
        return drawn

    def log_prob(self, value):
        value = as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._check(value)
        c = self.concentration
        return c.xlogy(self.rate) + (c - 1).xlogy(value) - self.rate * value - c.lgamma()

    def cdf(self, value):
        self._check(value)
        return gammainc(self.concentration, self.rate * value)

    def entropy(self):
        c = self.concentration
        return c - self.rate.log() + c.lgamma() + (1 - c) * c.digamma()

    @property
    def _natural_params(self):
        return self.concentration - 1, -self.rate

    def _log_normalizer(self, x, y):
        return (x + 1).lgamma() - (x + 1) * (-y).log()


class Chi2(Gamma):
    """The sum of squares of ``df`` standard normal numbers. Follows ``torch.distributions.Chi2``."""

    arg_constraints = {"df": constraints.positive}

    def __init__(self, df, validate_args=None):
        super().__init__(0.5 * df, 0.5, validate_args=validate_args)

    @property
    def df(self):
        """The degrees of freedom."""
        return self.concentration * 2


class FisherSnedecor(Distribution):
    """The ratio of the means of ``df1`` and ``df2`` squares of standard normal numbers. Follows
    ``torch.distributions.FisherSnedecor``."""

    arg_constraints = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True

    def __init__(self, df1, df2, validate_args=None):
        super().__init__(self._set(df1=df1, df2=df2), validate_args=validate_args)

    @property
    def mean(self):
        return where(self.df2 > 2, self.df2 / (self.df2 - 2), math.nan)

    @property
    def mode(self):
        return where(self.df1 > 2, (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2), math.nan)

    @property
    def variance(self):
        spread = 2 * self.df2**2 * (self.df1 + self.df2 - 2) / (self.df1 * (self.df2 - 2) ** 2 * (self.df2 - 4))
        return where(self.df2 > 4, spread, math.nan)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        tiny = finfo(self.df1.dtype).tiny
        above, below = (
            Gamma(0.5 * df, df, validate_args=False).rsample(sample_shape).clamp(min=tiny)
            for df in (self.df1, self.df2)
        )
        return (above / below).clamp(min=tiny)

    def log_prob(self, value):
        self._check(value)
        a, b, ratio = 0.5 * self.df1, 0.5 * self.df2, self.df1 / self.df2
        log_beta = a.lgamma() + b.lgamma() - (a + b).lgamma()
        return a * ratio.log() + (a - 1) * value.log() - (a + b) * (ratio * value).log1p() - log_beta
