"""Families on the real line: Normal, Laplace, Cauchy, StudentT, Uniform, VonMises, GeneralizedPareto."""

from __future__ import annotations

import math

from .. import Size, erfinv, finfo, float64, log1p, no_grad, rand, tan, where, zeros
from ..special import i0e, i1e
from . import constraints
from .distribution import Distribution, ExponentialFamily, attribute
from .positive import Chi2
from .utils import _standard_normal, lazy_property

__all__ = ["Cauchy", "GeneralizedPareto", "Laplace", "Normal", "StudentT", "Uniform", "VonMises"]

_REAL_AND_POSITIVE = {"loc": constraints.real, "scale": constraints.positive}


class Normal(ExponentialFamily):
    """The normal distribution of mean ``loc`` and standard deviation ``scale``. Follows
    ``torch.distributions.Normal``."""

    arg_constraints = _REAL_AND_POSITIVE
    support = constraints.real
    has_rsample = True
    _mean_carrier_measure = 0
    mean = mode = attribute("loc")
    stddev = attribute("scale")

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(self._set(loc=loc, scale=scale), validate_args=validate_args)

    @property
    def variance(self):
        return self.scale**2

    def rsample(self, sample_shape=Size()):  # noqa: B008
        noise = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + noise * self.scale

    def log_prob(self, value):
        self._check(value)
        z = (value - self.loc) / self.scale
        return -0.5 * z**2 - self.scale.log() - 0.5 * math.log(2 * math.pi)

    def cdf(self, value):
        self._check(value)
        return 0.5 * (1 + ((value - self.loc) / (self.scale * math.sqrt(2))).erf())

    def icdf(self, value):
        return self.loc + self.scale * erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self):
        return self.scale.log() + 0.5 * (1 + math.log(2 * math.pi))

    @property
    def _natural_params(self):
        return self.loc / self.scale**2, -0.5 / self.scale**2

    def _log_normalizer(self, x, y):
        return -0.25 * x**2 / y + 0.5 * (-math.pi / y).log()


class Laplace(Distribution):
    """The density exp(-|x - loc| / scale) / (2 scale). Follows ``torch.distributions.Laplace``."""

    arg_constraints = _REAL_AND_POSITIVE
    support = constraints.real
    has_rsample = True
    mean = mode = attribute("loc")

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(self._set(loc=loc, scale=scale), validate_args=validate_args)

    @property
    def variance(self):
        return 2 * self.scale**2

    @property
    def stddev(self):
        return math.sqrt(2) * self.scale

    def rsample(self, sample_shape=Size()):  # noqa: B008
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value):
        self._check(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value):
        self._check(value)
        z = (value - self.loc) / self.scale
        return 0.5 - 0.5 * z.sign() * (-z.abs()).expm1()

    def icdf(self, value):
        u = value - 0.5
        return self.loc - self.scale * u.sign() * (-2 * u.abs()).log1p()

    def entropy(self):
        return 1 + (2 * self.scale).log()


class Cauchy(Distribution):
    """The density 1 / (pi scale (1 + z^2)), z = (x - loc) / scale, which has no mean. Follows
    ``torch.distributions.Cauchy``."""

    arg_constraints = _REAL_AND_POSITIVE
    support = constraints.real
    has_rsample = True
    mode = attribute("loc")

    def __init__(self, loc, scale, validate_args=None):
        super().__init__(self._set(loc=loc, scale=scale), validate_args=validate_args)

    @property
    def mean(self):
        return self._full(math.nan, self.loc)

    @property
    def variance(self):
        return self._full(math.inf, self.loc)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value):
        self._check(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value):
        self._check(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value):
        return tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self):
        return math.log(4 * math.pi) + self.scale.log()


class StudentT(Distribution):
    """Student's t of ``df`` degrees of freedom, times ``scale`` plus ``loc``. Follows
    ``torch.distributions.StudentT``."""

    arg_constraints = {"df": constraints.positive, **_REAL_AND_POSITIVE}
    support = constraints.real
    has_rsample = True
    mode = attribute("loc")

    def __init__(self, df, loc=0.0, scale=1.0, validate_args=None):
        super().__init__(self._set(df=df, loc=loc, scale=scale), validate_args=validate_args)

    @property
    def mean(self):
        return where(self.df > 1, self.loc, math.nan)

    @property
    def variance(self):
        spread = self.scale**2 * self.df / (self.df - 2)
        return where(self.df > 2, spread, where(self.df > 1, math.inf, math.nan).to(spread))

    def rsample(self, sample_shape=Size()):  # noqa: B008
        noise = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        chi2 = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * noise * (chi2 / self.df).rsqrt()

    def _log_normal_constant(self):
        half = 0.5 * self.df
        return half.lgamma() - (half + 0.5).lgamma() + 0.5 * (math.pi * self.df).log() + self.scale.log()

    def log_prob(self, value):
        self._check(value)
        z = (value - self.loc) / self.scale
        return -0.5 * (self.df + 1) * (z**2 / self.df).log1p() - self._log_normal_constant()

    def entropy(self):
        half = 0.5 * self.df
        return (half + 0.5) * ((half + 0.5).digamma() - half.digamma()) + self._log_normal_constant()


class Uniform(Distribution):
    """Uniform from ``low`` to below ``high``. Follows ``torch.distributions.Uniform``."""

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        super().__init__(self._set(low=low, high=high), validate_args=validate_args)

    @property
    def arg_constraints(self):
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        return constraints.interval(self.low, self.high)

    @property
    def mean(self):
        return (self.high + self.low) / 2

    @property
    def mode(self):
        return math.nan * self.high

    @property
    def stddev(self):
        return (self.high - self.low) / math.sqrt(12)

    @property
    def variance(self):
        return (self.high - self.low) ** 2 / 12

    def rsample(self, sample_shape=Size()):  # noqa: B008
        u = rand(self._extended_shape(sample_shape), dtype=self.low.dtype, device=self.low.device)
        return self.low + u * (self.high - self.low)

    def log_prob(self, value):
        self._check(value)
        inside = ((self.low <= value) & (value < self.high)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value):
        self._check(value)
        return ((value - self.low) / (self.high - self.low)).clamp(0, 1)

    def icdf(self, value):
        return value * (self.high - self.low) + self.low

    def entropy(self):
        return (self.high - self.low).log()


class VonMises(Distribution):
    """Angles around ``loc``: the density exp(concentration cos(x - loc)) / (2 pi I0(concentration)). Follows
    ``torch.distributions.VonMises``."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    mean = mode = attribute("loc")

    def __init__(self, loc, concentration, validate_args=None):
        super().__init__(self._set(loc=loc, concentration=concentration), validate_args=validate_args)

    @lazy_property
    def variance(self):
        return 1 - i1e(self.concentration) / i0e(self.concentration)

    def log_prob(self, value):
        self._check(value)
        excess = self.concentration * ((value - self.loc).cos() - 1)  # I0 is exp(concentration) i0e
        return excess - math.log(2 * math.pi) - i0e(self.concentration).log()

    def sample(self, sample_shape=Size()):  # noqa: B008
        """By rejection from a wrapped Cauchy distribution, in float64 (Best and Fisher, "Efficient simulation of the
        von Mises distribution", 1979)."""
        with no_grad():
            loc, kappa = self.loc.to(float64), self.concentration.to(float64)
            tau = 1 + (1 + 4 * kappa**2).sqrt()
            rho = (tau - (2 * tau).sqrt()) / (2 * kappa)
            r = where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
            shape = self._extended_shape(sample_shape)
            angle = zeros(shape, dtype=float64, device=loc.device)
            open_ = angle == 0
            while open_.any():
                turn, u, side = rand((3, *shape), dtype=float64, device=loc.device).unbind()
                z = (math.pi * turn).cos()
                f = (1 + r * z) / (r + z)
                c = kappa * (r - f)
                accepted = open_ & ((c * (2 - c) > u) | ((c / u).log() + 1 - c >= 0))
                angle = where(accepted, (side - 0.5).sign() * f.clamp(-1, 1).acos(), angle)
                open_ = open_ & ~accepted
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)


class GeneralizedPareto(Distribution):
    """The survival function (1 + concentration z)^(-1 / concentration), z = (x - loc) / scale, of excesses; exp(-z) at
    concentration 0. Follows ``torch.distributions.GeneralizedPareto``."""

    arg_constraints = {**_REAL_AND_POSITIVE, "concentration": constraints.real}
    has_rsample = True
    mode = attribute("loc")

    def __init__(self, loc, scale, concentration, validate_args=None):
        shape = self._set(loc=loc, scale=scale, concentration=concentration)
        super().__init__(shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        end = where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)

    def _tail(self):
        """Is the concentration 0, and one that can be divided by."""
        zero = self.concentration.abs() <= 1e-8
        return zero, where(zero, 1.0, self.concentration)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype, device=self.loc.device))

    def log_survival_function(self, value):
        """log(1 - cdf(value))."""
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, concentration = self._tail()
        return -where(zero, z, (concentration * z).log1p() / concentration)

    def log_prob(self, value):
        self._check(value)
        z = (value - self.loc) / self.scale
        zero, concentration = self._tail()
        power = 1 / concentration + 1
        decay = where(power == 0, 0.0, power * (concentration * z).log1p())
        return -self.scale.log() - where(zero, z, decay)

    def log_cdf(self, value):
        """log(cdf(value))."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value):
        return self.log_cdf(value).exp()

    def icdf(self, value):
        log_rest = log1p(-value)
        zero, concentration = self._tail()
        return self.loc + self.scale * where(zero, -log_rest, (-concentration * log_rest).expm1() / concentration)

    @property
    def mean(self):
        return where(self.concentration < 1, self.loc + self.scale / (1 - self.concentration), math.nan)

    @property
    def variance(self):
        c = self.concentration
        return where(c < 0.5, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def entropy(self):
        return self.scale.log() + self.concentration + 1
