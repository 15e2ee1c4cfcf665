"""Families that are transforms of others: LogNormal, HalfNormal, HalfCauchy, Gumbel, Weibull, Pareto, Kumaraswamy,
InverseGamma, LogisticNormal."""

from __future__ import annotations

import math

from .. import Size, finfo, where
from . import constraints
from .compound import TransformedDistribution
from .distribution import attribute
from .positive import Exponential, Gamma
from .real import Cauchy, Normal, Uniform
from .transforms import AbsTransform, AffineTransform, ExpTransform, PowerTransform, StickBreakingTransform
from .utils import broadcast_all, euler_constant

__all__ = [
    "Gumbel", "HalfCauchy", "HalfNormal", "InverseGamma", "Kumaraswamy", "LogNormal", "LogisticNormal", "Pareto",
    "Weibull",
]  # fmt: skip


class LogNormal(TransformedDistribution):
    """exp of a normal number. Follows ``torch.distributions.LogNormal``."""

    arg_constraints = Normal.arg_constraints
    support = constraints.positive
    has_rsample = True
    loc = attribute("base_dist.loc")
    scale = attribute("base_dist.scale")

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(Normal(loc, scale, validate_args=validate_args), ExpTransform(), validate_args=validate_args)

    @property
    def mean(self):
        return (self.loc + self.scale**2 / 2).exp()

    @property
    def mode(self):
        return (self.loc - self.scale**2).exp()

    @property
    def variance(self):
        return (self.scale**2).expm1() * (2 * self.loc + self.scale**2).exp()

    def entropy(self):
        return self.base_dist.entropy() + self.loc


class _Half(TransformedDistribution):
    """The absolute value of a symmetric distribution around 0, ``family``."""

    arg_constraints = {"scale": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    scale = attribute("base_dist.scale")

    def __init__(self, scale, validate_args=None):
        super().__init__(self._family(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mode(self):
        return self.scale.new_zeros(self.scale.shape)

    def log_prob(self, value):
        self._check(value)
        return where(value >= 0, self.base_dist.log_prob(value) + math.log(2), -math.inf)

    def cdf(self, value):
        self._check(value)
        return 2 * self.base_dist.cdf(value) - 1

    def icdf(self, prob):
        return self.base_dist.icdf((prob + 1) / 2)

    def entropy(self):
        return self.base_dist.entropy() - math.log(2)


class HalfNormal(_Half):
    """The absolute value of a normal number of mean 0. Follows ``torch.distributions.HalfNormal``."""

    _family = Normal

    @property
    def mean(self):
        return self.scale * math.sqrt(2 / math.pi)

    @property
    def variance(self):
        return self.scale**2 * (1 - 2 / math.pi)


class HalfCauchy(_Half):
    """The absolute value of a Cauchy number around 0. Follows ``torch.distributions.HalfCauchy``."""

    _family = Cauchy
    variance = attribute("base_dist.variance")

    @property
    def mean(self):
        return self._full(math.inf, self.scale)


class Gumbel(TransformedDistribution):
    """The distribution function exp(-exp(-(x - loc) / scale)), of maxima. Follows ``torch.distributions.Gumbel``."""

    arg_constraints = Normal.arg_constraints
    support = constraints.real
    mode = attribute("loc")

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = broadcast_all(loc, scale)
        limits, like = finfo(self.loc.dtype), self.loc.detach()
        base = Uniform(like.new_full(like.shape, limits.tiny), 1 - limits.eps, validate_args=validate_args)
        minus = AffineTransform(0, -self.scale.new_ones(self.scale.shape))
        transforms = [ExpTransform().inv, minus, ExpTransform().inv, AffineTransform(self.loc, -self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    def log_prob(self, value):
        self._check(value)
        y = (self.loc - value) / self.scale
        return y - y.exp() - self.scale.log()

    @property
    def mean(self):
        return self.loc + self.scale * euler_constant

    @property
    def stddev(self):
        return math.pi / math.sqrt(6) * self.scale

    @property
    def variance(self):
        return self.stddev**2

    def entropy(self):
        return self.scale.log() + (1 + euler_constant)


class Weibull(TransformedDistribution):
    """The survival function exp(-(x / scale)^concentration). Follows ``torch.distributions.Weibull``."""

    arg_constraints = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive

    def __init__(self, scale, concentration, validate_args=None):
        self.scale, self.concentration = broadcast_all(scale, concentration)
        base = Exponential(self.scale.new_ones(self.scale.shape), validate_args=validate_args)
        transforms = [PowerTransform(self.concentration_reciprocal), AffineTransform(0, self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @property
    def concentration_reciprocal(self):
        """1 / concentration."""
        return self.concentration.reciprocal()

    @property
    def mean(self):
        return self.scale * (1 + self.concentration_reciprocal).lgamma().exp()

    @property
    def mode(self):
        return self.scale * (1 - self.concentration_reciprocal) ** self.concentration_reciprocal

    @property
    def variance(self):
        r = self.concentration_reciprocal
        return self.scale**2 * ((1 + 2 * r).lgamma().exp() - (2 * (1 + r).lgamma()).exp())

    def entropy(self):
        r = self.concentration_reciprocal
        return euler_constant * (1 - r) + (self.scale * r).log() + 1


class Pareto(TransformedDistribution):
    """The survival function (scale / x)^alpha, from ``scale`` on. Follows ``torch.distributions.Pareto``."""

    arg_constraints = {"alpha": constraints.positive, "scale": constraints.positive}
    mode = attribute("scale")

    def __init__(self, scale, alpha, validate_args=None):
        self.scale, self.alpha = broadcast_all(scale, alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        super().__init__(base, [ExpTransform(), AffineTransform(0, self.scale)], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self):
        a = self.alpha.clamp(min=1)  # of which it is infinite
        return a * self.scale / (a - 1)

    @property
    def variance(self):
        a = self.alpha.clamp(min=2)
        return self.scale**2 * a / ((a - 1) ** 2 * (a - 2))

    def entropy(self):
        return (self.scale / self.alpha).log() + 1 + self.alpha.reciprocal()


class Kumaraswamy(TransformedDistribution):
    """The survival function (1 - x^concentration1)^concentration0 on [0, 1]. Follows
    ``torch.distributions.Kumaraswamy``."""

    arg_constraints = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, concentration1, concentration0, validate_args=None):
        self.concentration1, self.concentration0 = broadcast_all(concentration1, concentration0)
        like = self.concentration0.detach()
        base = Uniform(like.new_zeros(like.shape), 1, validate_args=validate_args)
        transforms = [
            PowerTransform(self.concentration0.reciprocal()),
            AffineTransform(1.0, -1.0),
            PowerTransform(self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment(self, n: int):
        """The mean of x^n."""
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * (a.lgamma() + b.lgamma() - (a + b).lgamma()).exp()

    @property
    def mean(self):
        return self._moment(1)

    @property
    def mode(self):
        a, b = self.concentration1, self.concentration0
        mode = ((-b).log1p() / b - (-a * b).log1p()).exp()
        return where((a < 1) | (b < 1), math.nan, mode)

    @property
    def variance(self):
        return self._moment(2) - self._moment(1) ** 2

    def entropy(self):
        a, b = self.concentration1, self.concentration0
        return 1 - 1 / b + (1 - 1 / a) * ((b + 1).digamma() + euler_constant) - a.log() - b.log()


class InverseGamma(TransformedDistribution):
    """1 over a gamma variate. Follows ``torch.distributions.InverseGamma``."""

    arg_constraints = Gamma.arg_constraints
    support = constraints.positive
    has_rsample = True
    concentration = attribute("base_dist.concentration")
    rate = attribute("base_dist.rate")

    def __init__(self, concentration, rate, validate_args=None):
        base = Gamma(concentration, rate, validate_args=validate_args)
        super().__init__(base, PowerTransform(-base.rate.new_ones(())), validate_args=validate_args)

    @property
    def mean(self):
        return where(self.concentration > 1, self.rate / (self.concentration - 1), math.inf)

    @property
    def mode(self):
        return self.rate / (self.concentration + 1)

    @property
    def variance(self):
        c = self.concentration
        return where(c > 2, self.rate**2 / ((c - 1) ** 2 * (c - 2)), math.inf)

    def entropy(self):
        c = self.concentration
        return c + self.rate.log() + c.lgamma() - (1 + c) * c.digamma()


class LogisticNormal(TransformedDistribution):
    """Vectors of the simplex that StickBreakingTransform makes of independent normal numbers. Follows
    ``torch.distributions.LogisticNormal``."""

    arg_constraints = Normal.arg_constraints
    support = constraints.simplex
    has_rsample = True
    loc = attribute("base_dist.base_dist.loc")
    scale = attribute("base_dist.base_dist.scale")

    def __init__(self, loc, scale, validate_args=None):
        base = Normal(loc, scale, validate_args=validate_args)
        base = base if base.batch_shape else base.expand(Size((1,)))
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)
