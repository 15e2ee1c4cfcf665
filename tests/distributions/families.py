"""A table of distributions: families with parameters, built with either library. Not a test."""

import dataclasses

import numpy as np

MATRIX = [[2.0, 0.3, -0.1], [0.3, 1.0, 0.2], [-0.1, 0.2, 0.7]]
TRIL = [[1.2, 0.0, 0.0], [0.4, 0.8, 0.0], [-0.3, 0.2, 1.5]]


@dataclasses.dataclass
class Case:
    """``make(m, p)`` builds the distribution with the library ``m`` of parameters ``p``, leaves by the names of
    ``parameters``."""

    id: str
    make: object
    parameters: dict
    discrete: bool = False
    sampled: bool = True  # are samples compared with cdf, or with moments?

    def leaves(self, m, dtype="float64", device=None):
        return {
            k: m.tensor(v, dtype=getattr(m, dtype), device=device).requires_grad_() for k, v in self.parameters.items()
        }

    def build(self, m, dtype="float64", device=None):
        p = self.leaves(m, dtype, device)
        return self.make(m.distributions, p), p


def of(name, discrete=False, fixed=None, label="", sampled=True, **parameters):
    def make(d, p):
        return getattr(d, name)(**{**(fixed or {}), **p})

    return Case(name + label, make, parameters, discrete, sampled)


def made(label, make, discrete=False, sampled=True, **parameters):
    return Case(label, make, parameters, discrete, sampled)


def _mixture(d, p):
    return d.MixtureSameFamily(d.Categorical(logits=p["logits"]), d.Normal(p["loc"], p["scale"]))


def _mixture_of_vectors(d, p):
    return d.MixtureSameFamily(
        d.Categorical(logits=p["logits"]), d.Independent(d.Gamma(p["concentration"], p["rate"]), 1)
    )


def _transformed(d, p):
    parts = [d.AffineTransform(p["loc"], p["scale"]), d.SigmoidTransform(), d.PowerTransform(p["power"])]
    return d.TransformedDistribution(d.Normal(p["loc"] * 0.1, p["scale"]), parts)


def _decreasing(d, p):
    return d.TransformedDistribution(d.Gamma(p["concentration"], p["rate"]), [d.AffineTransform(1.0, -2.0)])


def _stick(d, p):
    return d.TransformedDistribution(d.Normal(p["loc"], p["scale"]), [d.TanhTransform(), d.StickBreakingTransform()])


LOC, SCALE = [0.3, -2.0, 5.0], [1.5, 0.4, 3.0]
SHAPE, RATE = [0.3, 1.0, 7.5], [2.0, 0.5, 1.3]
PROBS, LOGITS = [0.15, 0.5, 0.93], [-1.2, 0.4, 2.0]
ROWS = [[0.2, 0.5, 0.3], [0.7, 0.1, 0.2]]
ROW_LOGITS = [[0.1, -1.0, 2.0], [0.0, 0.5, 0.3]]

CASES = [
    of("Normal", loc=LOC, scale=SCALE),
    of("Laplace", loc=LOC, scale=SCALE),
    of("Cauchy", loc=LOC, scale=SCALE),
    of("StudentT", df=[1.7, 0.8, 9.0], loc=LOC, scale=SCALE),
    of("Uniform", low=[-1.0, 0.0, 3.0], high=[1.0, 1.0, 3.5]),
    of("VonMises", loc=[0.3, -2.0, 3.0], concentration=[0.5, 5.0, 40.0], sampled=False),
    of("GeneralizedPareto", loc=LOC, scale=SCALE, concentration=[0.3, -0.4, 0.0]),
    of("Exponential", rate=RATE),
    of("Gamma", concentration=SHAPE, rate=RATE),
    of("Chi2", df=[0.7, 2.0, 15.0]),
    of("FisherSnedecor", df1=[3.0, 1.5, 8.0], df2=[9.0, 3.0, 12.0]),
    of("Dirichlet", concentration=[[0.4, 1.0, 5.0], [3.0, 0.7, 0.9]]),
    of("Beta", concentration1=[0.4, 3.0, 1.0], concentration0=[0.8, 2.0, 6.0]),
    of("ContinuousBernoulli", probs=[0.15, 0.4995, 0.93]),
    of("ContinuousBernoulli", label="-logits", logits=LOGITS),
    of("Bernoulli", True, probs=PROBS),
    of("Bernoulli", True, label="-logits", logits=LOGITS),
    of("Binomial", True, fixed={"total_count": 7}, probs=PROBS),
    of("Binomial", True, fixed={"total_count": 40}, label="-logits", logits=LOGITS),
    of("NegativeBinomial", True, fixed={"total_count": 2.5}, probs=PROBS),
    of("NegativeBinomial", True, fixed={"total_count": 4}, label="-logits", logits=[-1.2, 0.4, 0.9]),
    of("Geometric", True, probs=PROBS),
    of("Geometric", True, label="-logits", logits=LOGITS),
    of("Poisson", True, rate=[0.4, 3.0, 25.0]),
    of("Categorical", True, probs=ROWS),
    of("Categorical", True, label="-logits", logits=ROW_LOGITS),
    of("OneHotCategorical", True, probs=ROWS),
    of("OneHotCategoricalStraightThrough", True, logits=ROW_LOGITS),
    of("Multinomial", True, fixed={"total_count": 6}, probs=ROWS),
    of("Multinomial", True, fixed={"total_count": 3}, label="-logits", logits=ROW_LOGITS),
    of("LogNormal", loc=[0.3, -0.5, 0.1], scale=[0.5, 0.4, 0.8]),
    of("HalfNormal", scale=SCALE),
    of("HalfCauchy", scale=SCALE),
    of("Gumbel", loc=LOC, scale=SCALE),
    of("Weibull", scale=SCALE, concentration=[0.9, 1.5, 4.0]),
    of("Pareto", scale=[0.5, 1.5, 3.0], alpha=[0.7, 1.5, 6.0]),
    of("Kumaraswamy", concentration1=[0.6, 2.0, 3.0], concentration0=[1.5, 2.0, 0.7]),
    of("InverseGamma", concentration=[0.8, 5.5, 9.0], rate=RATE),
    of("LogisticNormal", loc=[[0.1, 0.5], [-0.4, 0.0]], scale=[[1.0, 0.5], [0.7, 1.2]], sampled=False),
    of("RelaxedBernoulli", temperature=0.7, probs=PROBS, sampled=False),
    of("RelaxedBernoulli", label="-logits", temperature=1.4, logits=LOGITS, sampled=False),
    of("RelaxedOneHotCategorical", temperature=0.8, probs=ROWS, sampled=False),
    of("RelaxedOneHotCategorical", label="-logits", temperature=2.0, logits=ROW_LOGITS, sampled=False),
    of("MultivariateNormal", loc=LOC, covariance_matrix=MATRIX),
    of("MultivariateNormal", label="-precision", loc=[LOC, SCALE], precision_matrix=MATRIX),
    of("MultivariateNormal", label="-tril", loc=LOC, scale_tril=[TRIL, np.eye(3).tolist()]),
    of("LowRankMultivariateNormal", loc=[LOC, SCALE], cov_factor=[[1.0], [0.5], [-2.0]], cov_diag=SHAPE),
    of("Wishart", df=5.5, covariance_matrix=MATRIX),
    of("Wishart", label="-precision", df=[4.0, 9.0], precision_matrix=MATRIX),
    of("Wishart", label="-tril", df=5.0, scale_tril=[TRIL, np.eye(3).tolist()]),
    of("LKJCholesky", fixed={"dim": 3}, concentration=[0.7, 1.0, 4.0], sampled=False),
    made("Independent", lambda d, p: d.Independent(d.Normal(p["loc"], p["scale"]), 1), loc=[LOC] * 2, scale=SCALE),
    made("Mixture", _mixture, logits=ROW_LOGITS, loc=[LOC] * 2, scale=[SCALE] * 2),
    made(
        "MixtureOfVectors",
        _mixture_of_vectors,
        logits=ROW_LOGITS[0],
        concentration=[[2.0, 3.0], [1.0, 4.0], [7.0, 2.5]],
        rate=[[1.0, 0.5], [2.0, 1.0], [3.0, 1.5]],
        sampled=False,
    ),
    made("Transformed", _transformed, loc=[0.3, -0.5], scale=[0.5, 1.4], power=[2.0, 0.5], sampled=False),
    made("Decreasing", _decreasing, concentration=[2.0, 0.8], rate=[1.0, 3.0], sampled=False),
    made("Stick", _stick, loc=[[0.1, 0.5], [-0.4, 0.0]], scale=[[1.0, 0.5], [0.7, 1.2]], sampled=False),
]


def numbers(t):
    return t.detach().cpu().numpy()


def values_of(case, torch, shape=(5,)):
    """Samples of PyTorch's."""
    torch.manual_seed(3)
    return numbers(case.build(torch)[0].sample(shape))
