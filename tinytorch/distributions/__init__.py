"""Probability distributions: samples, densities, moments, divergences, and transforms of them. Follows
``torch.distributions``.

The families stand in files by what they have in common; ``distributions.normal``, ``distributions.gamma``, ... are
PyTorch's paths to them."""

import sys as _sys

from . import (
    by_transform,
    categorical,
    compound,
    constraint_registry,
    constraints,
    counts,
    distribution,
    kl,
    matrix,
    multivariate,
    positive,
    real,
    relaxed,
    simplex,
    transforms,
    utils,
)
from .by_transform import (
    Gumbel,
    HalfCauchy,
    HalfNormal,
    InverseGamma,
    Kumaraswamy,
    LogisticNormal,
    LogNormal,
    Pareto,
    Weibull,
)
from .categorical import Categorical, Multinomial, OneHotCategorical, OneHotCategoricalStraightThrough
from .compound import Independent, MixtureSameFamily, TransformedDistribution
from .constraint_registry import biject_to, transform_to
from .counts import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson
from .distribution import Distribution, ExponentialFamily
from .kl import kl_divergence, register_kl
from .matrix import LKJCholesky, Wishart
from .multivariate import LowRankMultivariateNormal, MultivariateNormal
from .positive import Chi2, Exponential, FisherSnedecor, Gamma
from .real import Cauchy, GeneralizedPareto, Laplace, Normal, StudentT, Uniform, VonMises
from .relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from .simplex import Beta, ContinuousBernoulli, Dirichlet
from .transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)

__all__ = [
    "AbsTransform", "AffineTransform", "Bernoulli", "Beta", "Binomial", "CatTransform", "Categorical", "Cauchy",
    "Chi2", "ComposeTransform", "ContinuousBernoulli", "CorrCholeskyTransform", "CumulativeDistributionTransform",
    "Dirichlet", "Distribution", "ExpTransform", "Exponential", "ExponentialFamily", "FisherSnedecor", "Gamma",
    "GeneralizedPareto", "Geometric", "Gumbel", "HalfCauchy", "HalfNormal", "Independent", "IndependentTransform",
    "InverseGamma", "Kumaraswamy", "LKJCholesky", "Laplace", "LogNormal", "LogisticNormal",
    "LowRankMultivariateNormal", "LowerCholeskyTransform", "MixtureSameFamily", "Multinomial", "MultivariateNormal",
    "NegativeBinomial", "Normal", "OneHotCategorical", "OneHotCategoricalStraightThrough", "Pareto", "Poisson",
    "PositiveDefiniteTransform", "PowerTransform", "RelaxedBernoulli", "RelaxedOneHotCategorical",
    "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "SoftplusTransform", "StackTransform",
    "StickBreakingTransform", "StudentT", "TanhTransform", "Transform", "TransformedDistribution", "Uniform",
    "VonMises", "Weibull", "Wishart", "biject_to", "constraint_registry", "constraints", "identity_transform", "kl",
    "kl_divergence", "register_kl", "transform_to", "transforms", "utils",
]  # fmt: skip

# PyTorch's paths: the module that has the family.
_PATHS = {
    by_transform: "gumbel half_cauchy half_normal inverse_gamma kumaraswamy log_normal logistic_normal pareto weibull",
    categorical: "one_hot_categorical multinomial",
    compound: "independent mixture_same_family transformed_distribution",
    counts: "bernoulli binomial geometric negative_binomial poisson",
    distribution: "exp_family",
    matrix: "lkj_cholesky wishart",
    multivariate: "lowrank_multivariate_normal multivariate_normal",
    positive: "chi2 exponential fishersnedecor gamma",
    real: "cauchy generalized_pareto laplace normal studentT uniform von_mises",
    relaxed: "relaxed_bernoulli relaxed_categorical",
    simplex: "beta continuous_bernoulli dirichlet",
}
for _module, _names in _PATHS.items():
    for _name in _names.split():
        _sys.modules[f"{__name__}.{_name}"] = globals()[_name] = _module
