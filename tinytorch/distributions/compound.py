"""Distributions made of others: Independent, TransformedDistribution, MixtureSameFamily."""

from __future__ import annotations

from .. import Size, no_grad
from . import constraints
from .categorical import Categorical
from .distribution import Distribution, attribute
from .transforms import ComposeTransform, Transform
from .utils import _sum_rightmost

__all__ = ["Independent", "MixtureSameFamily", "TransformedDistribution"]


class Independent(Distribution):
    """``base_distribution`` with its last ``reinterpreted_batch_ndims`` batch dimensions as part of the event. Follows
    ``torch.distributions.Independent``."""

    arg_constraints = {}
    has_rsample = attribute("base_dist.has_rsample")
    mean = attribute("base_dist.mean")
    mode = attribute("base_dist.mode")
    variance = attribute("base_dist.variance")
    _held = ("base_dist",)
    _kept = ("reinterpreted_batch_ndims",)

    def __init__(self, base_distribution, reinterpreted_batch_ndims, validate_args=None):
        batch = base_distribution.batch_shape
        cut = len(batch) - reinterpreted_batch_ndims
        if cut < 0:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), "
                f"actual {reinterpreted_batch_ndims} vs {len(batch)}"
            )
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(batch[:cut], batch[cut:] + base_distribution.event_shape, validate_args=validate_args)

    @property
    def has_enumerate_support(self):
        return self.reinterpreted_batch_ndims == 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self):
        inner = self.base_dist.support
        n = self.reinterpreted_batch_ndims
        return constraints.independent(inner, n) if n else inner

    def sample(self, sample_shape=Size()):  # noqa: B008
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value):
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self):
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand=True):
        if self.reinterpreted_batch_ndims:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self):
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


class TransformedDistribution(Distribution):
    """What ``transforms``, one after the other, make of samples of ``base_distribution``. Follows
    ``torch.distributions.TransformedDistribution``."""

    arg_constraints = {}

    def __init__(self, base_distribution, transforms, validate_args=None):
        self.transforms = [transforms] if isinstance(transforms, Transform) else transforms
        if not isinstance(self.transforms, list) or not all(isinstance(t, Transform) for t in self.transforms):
            raise ValueError(f"transforms must be a Transform or a list of Transforms, but was {transforms}")
        chain = ComposeTransform(self.transforms)
        domain, codomain = chain.domain.event_dim, chain.codomain.event_dim
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dim = len(base_distribution.event_shape)
        if len(base_shape) < domain:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain}, but got {tuple(base_shape)}."
            )
        shape = chain.forward_shape(base_shape)
        wanted = chain.inverse_shape(shape)
        if base_shape != wanted:
            base_distribution = base_distribution.expand(wanted[: len(wanted) - base_dim])
        if domain > base_dim:
            base_distribution = Independent(base_distribution, domain - base_dim)
        self.base_dist = base_distribution
        cut = len(shape) - max(codomain, base_dim + codomain - domain)
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        family = next(c for c in type(self).__mro__ if c.__module__.startswith(__package__))
        new = self._get_checked_instance(family, _instance)
        batch_shape = Size(batch_shape)
        shape = batch_shape + self._event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        for name in self.arg_constraints:
            if name in self.__dict__:
                new.__dict__[name] = self.__dict__[name].expand(batch_shape)
        return self._as_expanded(new, batch_shape)

    @property
    def has_rsample(self):
        return self.base_dist.has_rsample

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        if not self.transforms:
            return self.base_dist.support
        inner = self.transforms[-1].codomain
        more = len(self._event_shape) - inner.event_dim
        return constraints.independent(inner, more) if more > 0 else inner

    def _transformed(self, x):
        for transform in self.transforms:
            x = transform(x)
        return x

    def sample(self, sample_shape=Size()):  # noqa: B008
        with no_grad():
            return self._transformed(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=Size()):  # noqa: B008
        return self._transformed(self.base_dist.rsample(sample_shape))

    def log_prob(self, value):
        self._check(value)
        event_dim, result, y = len(self._event_shape), 0.0, value
        for transform in reversed(self.transforms):
            x = transform.inv(y)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            slope = transform.log_abs_det_jacobian(x, y)
            result = result - _sum_rightmost(slope, event_dim - transform.domain.event_dim)
            y = x
        return result + _sum_rightmost(self.base_dist.log_prob(y), event_dim - len(self.base_dist.event_shape))

    def _monotonized(self, probability):
        """The probability of the other side where the transforms decrease."""
        sign = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def cdf(self, value):
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonized(self.base_dist.cdf(value))

    def icdf(self, value):
        return self._transformed(self.base_dist.icdf(self._monotonized(value)))


class MixtureSameFamily(Distribution):
    """A component, of the last batch dimension of ``component_distribution``, chosen by the categorical
    ``mixture_distribution``. Follows ``torch.distributions.MixtureSameFamily``."""

    arg_constraints = {}
    mixture_distribution = attribute("_mixture_distribution")
    component_distribution = attribute("_component_distribution")

    def __init__(self, mixture_distribution, component_distribution, validate_args=None):
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError("The Mixture distribution needs to be an instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        chosen, batch = mixture_distribution.batch_shape, component_distribution.batch_shape
        if any(1 != a != b != 1 for a, b in zip(reversed(chosen), reversed(batch[:-1]))):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({tuple(chosen)}) is not compatible with "
                f"`component_distribution.batch_shape` ({tuple(batch[:-1])})"
            )
        if mixture_distribution.param_shape[-1] != batch[-1]:
            raise ValueError(
                f"`mixture_distribution component` ({mixture_distribution.param_shape[-1]}) does not equal "
                f"`component_distribution.batch_shape[-1]` ({batch[-1]})"
            )
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        super().__init__(batch[:-1], component_distribution.event_shape, validate_args=validate_args)

    def expand(self, batch_shape, _instance=None):
        new = self._get_checked_instance(MixtureSameFamily, _instance)
        batch_shape = Size(batch_shape)
        components = self._component_distribution.batch_shape[-1:]
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._component_distribution = self._component_distribution.expand(batch_shape + components)
        return self._as_expanded(new, batch_shape)

    @constraints.dependent_property
    def support(self):
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def _dim(self) -> int:
        """The dimension of the components in their samples and moments."""
        return -1 - len(self._event_shape)

    @property
    def _weights(self):
        """The probabilities, shaped to multiply moments of the components."""
        probs = self._mixture_distribution.probs
        return probs.reshape(probs.shape + (1,) * len(self._event_shape))

    @property
    def mean(self):
        return (self._weights * self._component_distribution.mean).sum(self._dim)

    @property
    def variance(self):
        """The mean of the variances and the variance of the means."""
        component = self._component_distribution
        apart = component.mean - self.mean.unsqueeze(self._dim)
        return (self._weights * (component.variance + apart**2)).sum(self._dim)

    def cdf(self, x):
        return (self._component_distribution.cdf(x.unsqueeze(self._dim)) * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, x):
        self._check(x)
        log_probs = self._component_distribution.log_prob(x.unsqueeze(self._dim))
        return (log_probs + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape=Size()):  # noqa: B008
        with no_grad():
            drawn = self._component_distribution.sample(sample_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            dim = drawn.dim() + self._dim
            chosen = chosen.reshape(chosen.shape + (1,) * (1 + len(self._event_shape)))
            return drawn.gather(dim, chosen.expand(drawn.shape[:dim] + (1,) + self._event_shape)).squeeze(dim)

    def __repr__(self):
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
