"""Families of choices: Categorical, OneHotCategorical, OneHotCategoricalStraightThrough, Multinomial."""

from __future__ import annotations

import math

from .. import Size, broadcast_tensors, eye, finfo, int64, multinomial, no_grad, ones_like
from ..nn.functional import one_hot
from . import constraints
from .counts import Binomial, count_to
from .distribution import Distribution, attribute
from .odds import Odds, OfCategorical, given
from .utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits

__all__ = ["Categorical", "Multinomial", "OneHotCategorical", "OneHotCategoricalStraightThrough"]


class Categorical(Distribution):
    """One of the integers below the size of the last dimension; the parameter need not be normalised. Follows
    ``torch.distributions.Categorical``."""

    arg_constraints = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True
    _kept = ("_num_events",)

    def __init__(self, probs=None, logits=None, validate_args=None):
        ((name, value),) = given(probs, logits).items()
        if value.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if name == "probs":
            self.probs = value / value.sum(-1, keepdim=True)
        else:
            self.logits = value - value.logsumexp(-1, keepdim=True)
        self._num_events = value.shape[-1]
        super().__init__(value.shape[:-1], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        return constraints.integer_interval(0, self._num_events - 1)

    @lazy_property
    def logits(self):
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self):
        """The probabilities."""
        return logits_to_probs(self.logits)

    _param, param_shape, _new = Odds._param, Odds.param_shape, Odds._new

    @property
    def mean(self):
        return self._full(math.nan, self.probs)

    variance = mean

    @property
    def mode(self):
        return self.probs.argmax(-1)

    def sample(self, sample_shape=Size()):  # noqa: B008
        with no_grad():
            rows = self.probs.reshape(-1, self._num_events)
            drawn = multinomial(rows, math.prod(sample_shape), True)
            return drawn.t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value):
        self._check(value)
        value, log_probs = broadcast_tensors(value.to(int64).unsqueeze(-1), self.logits)
        return log_probs.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self):
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand=True):
        return count_to(self._num_events, self, expand, self._param.new_empty((), dtype=int64))


class OneHotCategorical(OfCategorical, Distribution):
    """A choice as a vector of zeros and a one. Follows ``torch.distributions.OneHotCategorical``."""

    support = constraints.one_hot
    has_enumerate_support = True
    mean = attribute("probs")

    def __init__(self, probs=None, logits=None, validate_args=None):
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args=validate_args)

    @property
    def mode(self):
        return one_hot(self._categorical.mode, self._event_shape[0]).to(self.probs)

    @property
    def variance(self):
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):  # noqa: B008
        return one_hot(self._categorical.sample(sample_shape), self._event_shape[0]).to(self.probs)

    def log_prob(self, value):
        self._check(value)
        return self._categorical.log_prob(value.argmax(-1))

    def entropy(self):
        return self._categorical.entropy()

    def enumerate_support(self, expand=True):
        n, batch = self._event_shape[0], self._batch_shape
        values = eye(n, dtype=self._param.dtype, device=self._param.device).view((n,) + (1,) * len(batch) + (n,))
        return values.expand((n, *batch, n)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """The same, with the gradient of the probabilities: an estimator with a bias (Bengio, Leonard and Courville,
    "Estimating or propagating gradients through stochastic neurons", 2013). Follows
    ``torch.distributions.OneHotCategoricalStraightThrough``."""

    has_rsample = True

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OfCategorical, Distribution):
    """How often each of the choices was made, of ``total_count``. Follows ``torch.distributions.Multinomial``."""

    _kept = ("total_count",)

    def __init__(self, total_count=1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self._categorical = Categorical(probs, logits)
        super().__init__(self._categorical.batch_shape, self.param_shape[-1:], validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        return constraints.multinomial(self.total_count)

    @property
    def mean(self):
        return self.probs * self.total_count

    @property
    def variance(self):
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=Size()):  # noqa: B008
        chosen = self._categorical.sample((self.total_count, *sample_shape)).movedim(0, -1)
        counts = chosen.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, chosen, ones_like(chosen)).to(self.probs.dtype)

    def log_prob(self, value):
        self._check(value)
        logits, value = broadcast_all(self.logits, value)
        logits = logits.masked_fill((value == 0) & (logits == -math.inf), 0)
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self):
        n = self.total_count
        each = Binomial(n, probs=self.probs, validate_args=False)
        counts = each.enumerate_support(expand=False)[1:]
        means = (each.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))  # of log(count!)
        return n * self._categorical.entropy() - math.lgamma(n + 1) + means
