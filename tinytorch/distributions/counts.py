"""Families of counts: Bernoulli, Binomial, NegativeBinomial, Geometric, Poisson."""

from __future__ import annotations

import math

from .. import Size, arange, bernoulli, binomial, finfo, no_grad, poisson, where
from ..nn.functional import logsigmoid, softplus
from . import constraints
from .distribution import Distribution, ExponentialFamily, attribute
from .odds import Odds, given
from .positive import Gamma
from .utils import broadcast_all

__all__ = ["Bernoulli", "Binomial", "Geometric", "NegativeBinomial", "Poisson"]


def count_to(n: int, distribution: Distribution, expand: bool, like):
    """The numbers below ``n``, as a support."""
    batch = distribution.batch_shape
    values = arange(n, dtype=like.dtype, device=like.device).view((-1,) + (1,) * len(batch))
    return values.expand((-1, *batch)) if expand else values


class Bernoulli(Odds, ExponentialFamily):
    """1 with the probability ``probs``, else 0. Follows ``torch.distributions.Bernoulli``."""

    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0
    mean = attribute("probs")

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(self._set(**given(probs, logits)), validate_args=validate_args)

    @property
    def mode(self):
        return where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs))

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):  # noqa: B008
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._check(value)
        return self._log_odds(value)

    def entropy(self):
        return -self._log_odds(self.probs)

    def enumerate_support(self, expand=True):
        return count_to(2, self, expand, self._param)

    @property
    def _natural_params(self):
        return (self.probs.logit(),)

    def _log_normalizer(self, x):
        return softplus(x)


class Binomial(Odds, Distribution):
    """The number of successes in ``total_count`` trials. Follows ``torch.distributions.Binomial``."""

    arg_constraints = {"total_count": constraints.nonnegative_integer, **Odds.arg_constraints}
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        shape = self._set(total_count=total_count, **given(probs, logits))
        self.total_count = self.total_count.to(self._param.dtype)
        super().__init__(shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self):
        return self.total_count * self.probs

    @property
    def mode(self):
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value):
        self._check(value)
        n, logits = self.total_count, self.logits
        # log(1 + e^logits), whose derivative is right at 0 too: max(logits, 0) has 1/2 there.
        log_rest = (logits.clamp(min=0) + logits - logits.clamp(max=0)) / 2 + (-logits.abs()).exp().log1p()
        log_choices = (n + 1).lgamma() - (value + 1).lgamma() - (n - value + 1).lgamma()
        return value * logits - n * log_rest + log_choices

    def _count(self, what: str) -> int:
        most = int(self.total_count.max())
        if self.total_count.min() != most:
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{what}`.")
        return most

    def entropy(self):
        self._count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand=True):
        return count_to(1 + self._count("enumerate_support"), self, expand, self._param)


class NegativeBinomial(Odds, Distribution):
    """The number of successes before ``total_count`` failures. Follows ``torch.distributions.NegativeBinomial``."""

    arg_constraints = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args=None):
        shape = self._set(total_count=total_count, **given(probs, logits))
        self.total_count = self.total_count.to(self._param.dtype)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self):
        return self.total_count * self.logits.exp()

    @property
    def mode(self):
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0)

    @property
    def variance(self):
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape=Size()):  # noqa: B008
        with no_grad():
            rate = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)
            return poisson(rate.sample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        n = self.total_count
        log_choices = (n + value).lgamma() - (1 + value).lgamma() - n.lgamma()
        log_choices = log_choices.masked_fill(n + value == 0, 0)  # where lgamma is infinite
        return n * logsigmoid(-self.logits) + value * logsigmoid(self.logits) + log_choices


class Geometric(Odds, Distribution):
    """The number of failures before the first success. Follows ``torch.distributions.Geometric``."""

    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args=None):
        super().__init__(self._set(**given(probs, logits)), validate_args=validate_args)
        if self._validate_args and probs is not None and not (self.probs > 0).all():
            raise ValueError(
                f"Expected parameter probs (Tensor of shape {tuple(self.probs.shape)}) of distribution {self!r} to be "
                f"positive but found invalid values:\n{self.probs}"
            )

    @property
    def mean(self):
        return 1 / self.probs - 1

    @property
    def mode(self):
        return self.probs.new_zeros(self.probs.shape)

    @property
    def variance(self):
        return (1 / self.probs - 1) / self.probs

    def sample(self, sample_shape=Size()):  # noqa: B008
        with no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value):
        self._check(value)
        value, probs = broadcast_all(value, self.probs)
        failing = probs.masked_fill((probs == 1) & (value == 0), 0)  # no failure, of probability 1
        return value * (-failing).log1p() + self.probs.log()

    def entropy(self):
        return -self._log_odds(self.probs) / self.probs


class Poisson(ExponentialFamily):
    """The number of events of which there are ``rate`` on average. Follows ``torch.distributions.Poisson``."""

    arg_constraints = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    mean = variance = attribute("rate")

    def __init__(self, rate, validate_args=None):
        super().__init__(self._set(rate=rate), validate_args=validate_args)

    @property
    def mode(self):
        return self.rate.floor()

    def sample(self, sample_shape=Size()):  # noqa: B008
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value):
        self._check(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self):
        return (self.rate.log(),)

    def _log_normalizer(self, x):
        return x.exp()
