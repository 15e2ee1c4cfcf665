"""Kullback-Leibler divergences. Follows ``torch.distributions.kl``.

KL(p, q) is the cross entropy less the entropy, -E_p[log q(x)] - H(p). For most families log q is linear in a few
statistics of x, so that one formula of a q serves every p whose means of these are known: the mean and variance,
E[log x], E[exp(-x / s)]."""

from __future__ import annotations

import functools
import math
import warnings

from .. import where
from .by_transform import Gumbel, HalfNormal, Pareto
from .categorical import Categorical, OneHotCategorical
from .compound import Independent, TransformedDistribution
from .counts import Bernoulli, Binomial, Geometric, Poisson
from .distribution import Distribution, ExponentialFamily
from .multivariate import _NormalVectors
from .positive import Exponential, Gamma
from .real import Cauchy, Laplace, Normal, Uniform
from .simplex import Beta, ContinuousBernoulli, Dirichlet
from .utils import _sum_rightmost, euler_constant

__all__ = ["kl_divergence", "register_kl"]

_KL_REGISTRY = {}  # (type of p, type of q): function
_KL_MEMOIZE = {}  # the same for subclasses that have been asked for


def register_kl(type_p, type_q):
    """Decorator: the function gives the divergence of instances of these classes and of their subclasses, unless there
    is one for these. Programs have base classes of their own: any class will do. TypeError for what is none. Follows
    ``torch.distributions.register_kl``."""
    for kind in (type_p, type_q):
        if not isinstance(kind, type):
            raise TypeError(f"register_kl: expected a class but got {kind}")

    def register(function):
        _KL_REGISTRY[type_p, type_q] = function
        _KL_MEMOIZE.clear()
        return function

    return register


def _nearest(found: list, first: int) -> tuple:
    """The pair whose class at place ``first`` is the most special, and among those the other."""

    def order(a, b):
        for k in (first, 1 - first):
            if a[k] is not b[k]:
                return -1 if issubclass(a[k], b[k]) else 1
        return 0

    return min(found, key=functools.cmp_to_key(order))


def _dispatch_kl(type_p, type_q):
    found = [(p, q) for p, q in _KL_REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)]
    if not found:
        return NotImplemented
    left, right = _nearest(found, 0), _nearest(found, 1)
    if _KL_REGISTRY[left] is not _KL_REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). "
            f"Please register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _KL_REGISTRY[left]


def kl_divergence(p: Distribution, q: Distribution):
    """KL(p, q), the mean under ``p`` of log p(x) - log q(x), of batch_shape. NotImplementedError for classes that have
    no formula. Follows ``torch.distributions.kl_divergence``.

    Args:
        p: the distribution that the mean is of
        q: the other
    Returns:
        A tensor of the batch's shape.
    Raises:
        NotImplementedError: there is no formula for the two classes
    """
    pair = type(p), type(q)
    if pair not in _KL_MEMOIZE:
        _KL_MEMOIZE[pair] = _dispatch_kl(*pair)
    function = _KL_MEMOIZE[pair]
    if function is NotImplemented:
        names = f"p type {type(p).__name__} and q type {type(q).__name__}"
        raise NotImplementedError(f"No KL(p || q) is implemented for {names}")
    return function(p, q)


# One family: closed forms.


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    return _weighted(p.probs, p.logits, q.logits, q.probs) + _weighted(1 - p.probs, -p.logits, -q.logits, 1 - q.probs)


def _weighted(p, p_logits, q_logits, q):
    """p log(p / q) of probabilities that have these log odds."""
    ratio = p * (_log_sigmoid(p_logits) - _log_sigmoid(q_logits))
    return where(p == 0, 0.0, where(q == 0, math.inf, ratio))


def _log_sigmoid(x):
    return x.clamp(max=0) - (-x.abs()).exp().log1p()


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    ratio = p.probs * (p.logits - q.logits)
    return where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, ratio)).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if (p.total_count < q.total_count).any():
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    each = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * each)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate.xlogy(p.rate / q.rate) - (p.rate - q.rate)


@register_kl(Beta, Beta)
@register_kl(Dirichlet, Dirichlet)
def _bregman(p, q):
    """By the log normaliser of the natural parameters and by the means of their statistics, E[log x_i]."""
    (p, q) = (d._dirichlet if isinstance(d, Beta) else d for d in (p, q))
    a, b = p.concentration, q.concentration
    log_mean = a.digamma() - a.sum(-1, keepdim=True).digamma()
    return q._log_normalizer(b) - p._log_normalizer(a) + ((a - b) * log_mean).sum(-1)


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    a, b = p.concentration, q.concentration
    return b * (p.rate / q.rate).log() + b.lgamma() - a.lgamma() + (a - b) * a.digamma() + (q.rate / p.rate - 1) * a


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, apart = p.scale / q.scale, (p.loc - q.loc) / q.scale
    growth = (-apart + (1 + ratio).lgamma()).exp()
    return apart - ratio.log() + euler_constant * ratio + growth - (1 + euler_constant)


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio, apart = (p.scale / q.scale) ** 2, (p.loc - q.loc) / q.scale
    return 0.5 * (ratio + apart**2 - 1 - ratio.log())


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    return ((p.scale + q.scale) ** 2 + (p.loc - q.loc) ** 2).log() - (4 * p.scale * q.scale).log()


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    ratio, apart = p.scale / q.scale, (p.loc - q.loc).abs()
    return apart / q.scale + ratio * (-apart / p.scale).exp() - ratio.log() - 1


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    return where(p.scale < q.scale, math.inf, q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    return where((q.low > p.low) | (q.high < p.high), math.inf, ((q.high - q.low) / (p.high - p.low)).log())


@register_kl(_NormalVectors, _NormalVectors)
def _normal_vectors(p, q):
    """By the columns and the diagonal whose outer products and sum are p's covariance."""
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two Multivariate Normals with different event shapes cannot be computed: "
            f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    columns, diagonal = p._parts()
    trace = q._quadratic_of_columns(columns)
    if diagonal is not None:
        trace = trace + (q._precisions() * diagonal).sum(-1)
    return 0.5 * (q._log_det() - p._log_det() + trace + q._quadratic(q.loc - p.loc) - p.event_shape[0])


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the log normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman "
            "divergences"
        )
    parameters, normalizer, gradients = p._derived_normalizer()
    others = q._natural_params
    result = q._log_normalizer(*others) - normalizer
    for a, b, g in zip(parameters, others, gradients):
        result = result - _sum_rightmost((b - a) * g, a.dim() - len(p.batch_shape))
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError("KL of distributions with different transforms or event shapes")
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError("KL of Independents with different reinterpreted_batch_ndims")
    return _sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)


# Two families: the cross entropy -E_p[log q(x)]; ``family`` is p's class that is registered.


def _xlogx(x):
    return x.xlogy(x)


def _uniform_log_mean(p):
    return (_xlogx(p.high) - _xlogx(p.low)) / (p.high - p.low) - 1


_MEAN_OF_LOG = {
    Beta: lambda p: p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma(),
    Exponential: lambda p: -euler_constant - p.rate.log(),
    Pareto: lambda p: p.scale.log() + p.alpha.reciprocal(),
    Uniform: _uniform_log_mean,
}
_MEAN_OF_EXP = {  # of exp(-x / s)
    Exponential: lambda p, s: p.rate * s / (p.rate * s + 1),
    Gamma: lambda p, s: (1 + 1 / (p.rate * s)) ** -p.concentration,
    Normal: lambda p, s: (0.5 * (p.scale / s) ** 2 - p.loc / s).exp(),
    Uniform: lambda p, s: s / (p.high - p.low) * ((-p.low / s).exp() - (-p.high / s).exp()),
}


def _to_exponential(p, q, family):
    return q.rate * p.mean - q.rate.log()


def _to_gamma(p, q, family):
    c = q.concentration
    return c.lgamma() - c * q.rate.log() - (c - 1) * _MEAN_OF_LOG[family](p) + q.rate * p.mean


def _to_normal(p, q, family):
    return 0.5 * (math.log(2 * math.pi) + ((p.mean - q.loc) ** 2 + p.variance) / q.scale**2) + q.scale.log()


def _to_gumbel(p, q, family):
    growth = (q.loc / q.scale).exp() * _MEAN_OF_EXP[family](p, q.scale)
    return q.scale.log() + (p.mean - q.loc) / q.scale + growth


def _to_laplace(p, q, family):
    """Of a normal number: the mean of |x - loc|."""
    apart, z = p.loc - q.loc, (p.loc - q.loc) / (p.scale * math.sqrt(2))
    mean = p.scale * math.sqrt(2 / math.pi) * (-(z**2)).exp() + apart * z.erf()
    return (2 * q.scale).log() + mean / q.scale


def _to_continuous_bernoulli(p, q, family):
    return -p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm()


def _to_beta(p, q, family):
    """Of a uniform number: 1 - x is uniform too."""
    rest = _uniform_log_mean(Uniform(1 - p.high, 1 - p.low, validate_args=False))
    a, b = q.concentration1, q.concentration0
    return q._log_normalizer(a, b) - (a - 1) * _uniform_log_mean(p) - (b - 1) * rest


def _to_uniform(p, q, family):
    return (q.high - q.low).log()


def _to_pareto(p, q, family):
    return (q.alpha + 1) * _uniform_log_mean(p) - (q.alpha * q.scale**q.alpha).log()


def _to_poisson(p, q, family):
    return q.rate - p.mean * q.rate.log()  # log(x!) is 0 for 0 and 1


_CROSS_ENTROPIES = {
    Exponential: (_to_exponential, (Beta, ContinuousBernoulli, Gamma, Pareto, Uniform)),
    Gamma: (_to_gamma, (Beta, Exponential, Pareto, Uniform)),
    Normal: (_to_normal, (Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform)),
    Gumbel: (_to_gumbel, (Exponential, Gamma, Normal, Uniform)),
    Laplace: (_to_laplace, (Normal,)),
    ContinuousBernoulli: (_to_continuous_bernoulli, (Beta, ContinuousBernoulli, Uniform)),
    Beta: (_to_beta, (Uniform,)),
    Uniform: (_to_uniform, (Beta, ContinuousBernoulli)),
    Pareto: (_to_pareto, (Uniform,)),
    Poisson: (_to_poisson, (Bernoulli,)),
}
# The ends of the support, where it has some: a p that goes beyond q's is infinitely far from it.
_ENDS = {
    Beta: lambda d: (0, 1),
    ContinuousBernoulli: lambda d: (0, 1),
    Exponential: lambda d: (0, math.inf),
    Gamma: lambda d: (0, math.inf),
    Uniform: lambda d: (d.low, d.high),
    Pareto: lambda d: (d.scale, math.inf),
}
_BOUNDED_BELOW = (Beta, ContinuousBernoulli, Exponential, Gamma, Pareto, Uniform)
_INFINITE = {
    Beta: (Pareto,),
    ContinuousBernoulli: (Pareto,),
    Exponential: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gamma: (Beta, ContinuousBernoulli, Pareto, Uniform),
    Gumbel: _BOUNDED_BELOW,
    Laplace: _BOUNDED_BELOW,
    Normal: _BOUNDED_BELOW,
    Pareto: (Beta, ContinuousBernoulli, Uniform),
    Poisson: (Bernoulli, Binomial),
}


def _cross(cross_entropy, family_p, family_q, p, q):
    divergence = cross_entropy(p, q, family_p) - p.entropy()
    if family_p in _ENDS and family_q in _ENDS:
        (low, high), (least, most) = _ENDS[family_p](p), _ENDS[family_q](q)
        beyond = (low < least) | (high > most)
        return divergence if beyond is False else where(beyond, math.inf, divergence)
    return divergence


def _infinite(p, q):
    return p.mean.new_full(p.batch_shape, math.inf)


for _q, (_function, _ps) in _CROSS_ENTROPIES.items():
    for _p in _ps:
        register_kl(_p, _q)(functools.partial(_cross, _function, _p, _q))
for _p, _qs in _INFINITE.items():
    for _q in _qs:
        register_kl(_p, _q)(_infinite)
