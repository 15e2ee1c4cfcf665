"""Choices relaxed to numbers that have derivatives: RelaxedBernoulli, RelaxedOneHotCategorical, and the distributions
of their logits. (Maddison, Mnih and Teh, "The Concrete distribution", 2017; Jang, Gu and Poole, "Categorical
reparameterization with Gumbel-softmax", 2017.)"""

from __future__ import annotations

import math

from .. import Size, as_tensor, rand
from . import constraints
from .compound import TransformedDistribution
from .distribution import Distribution, attribute
from .categorical import Categorical
from .odds import Odds, OfCategorical, given
from .transforms import ExpTransform, SigmoidTransform
from .utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class LogitRelaxedBernoulli(Odds, Distribution):
    """The logit of RelaxedBernoulli: logistic noise plus the log odds, over the temperature. Follows
    ``torch.distributions.relaxed_bernoulli.LogitRelaxedBernoulli``."""

    support = constraints.real
    _kept = ("temperature",)

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self.temperature = temperature
        super().__init__(self._set(**given(probs, logits)), validate_args=validate_args)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(rand(shape, dtype=probs.dtype, device=probs.device))
        return (u.log() - (-u).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        difference = logits - value * self.temperature
        return as_tensor(self.temperature).log() + difference - 2 * difference.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A number of (0, 1) that is close to 0 or 1 at low temperatures. Follows
    ``torch.distributions.RelaxedBernoulli``."""

    arg_constraints = Odds.arg_constraints
    support = constraints.unit_interval
    has_rsample = True
    temperature = attribute("base_dist.temperature")
    logits = attribute("base_dist.logits")
    probs = attribute("base_dist.probs")

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)


class ExpRelaxedCategorical(OfCategorical, Distribution):
    """The logarithm of RelaxedOneHotCategorical. Follows
    ``torch.distributions.relaxed_categorical.ExpRelaxedCategorical``."""

    support = constraints.real_vector  # of which it is a surface
    has_rsample = True
    _kept = ("temperature",)

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        self.temperature = temperature
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args=validate_args)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        return ((self.logits - (-u.log()).log()) / self.temperature).log_softmax(-1)

    def log_prob(self, value):
        self._check(value)
        n = self._event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        scale = math.lgamma(n) + (n - 1) * as_tensor(self.temperature).log()
        return (logits - value * self.temperature).log_softmax(-1).sum(-1) + scale


class RelaxedOneHotCategorical(TransformedDistribution):
    """Vectors of the simplex that are close to its corners at low temperatures. Follows
    ``torch.distributions.RelaxedOneHotCategorical``."""

    arg_constraints = OfCategorical.arg_constraints
    support = constraints.simplex
    has_rsample = True
    temperature = attribute("base_dist.temperature")
    logits = attribute("base_dist.logits")
    probs = attribute("base_dist.probs")

    def __init__(self, temperature, probs=None, logits=None, validate_args=None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
