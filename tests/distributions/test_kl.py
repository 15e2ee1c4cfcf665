"""Divergences of every pair that has a formula: against PyTorch's, and against the mean of many samples."""

import math
import warnings

import numpy as np
import pytest
import tinytorch as tt
from tinytorch.distributions import kl

from distributions.families import MATRIX, SHAPE, TRIL, numbers

torch = pytest.importorskip("torch")
D = tt.distributions

# Parameters of p and of q; where both have a range, p's lies within q's.
PAIRS = {
    "Bernoulli": ({"probs": [0.2, 0.9]}, {"logits": [0.3, -1.0]}),
    "Beta": (
        {"concentration1": [2.5, 1.2], "concentration0": [3.0, 4.0]},
        {"concentration1": [2.0, 0.8], "concentration0": [1.0, 4.5]},
    ),
    "Binomial": ({"total_count": [5.0, 9.0], "probs": [0.2, 0.7]}, {"total_count": [5.0, 9.0], "probs": [0.5, 0.6]}),
    "Categorical": ({"probs": [[0.2, 0.8], [0.5, 0.5]]}, {"logits": [[0.3, -1.0], [0.0, 2.0]]}),
    "Cauchy": ({"loc": [0.5, -1.0], "scale": [1.0, 2.0]}, {"loc": [0.0, 1.0], "scale": [3.0, 0.5]}),
    "ContinuousBernoulli": ({"probs": [0.2, 0.9]}, {"probs": [0.4, 0.6]}),
    "Dirichlet": ({"concentration": [[0.5, 2.0, 3.0]] * 2}, {"concentration": [[1.5, 2.5, 1.0]] * 2}),
    "Exponential": ({"rate": [0.7, 3.0]}, {"rate": [1.5, 0.4]}),
    "Gamma": ({"concentration": [2.0, 3.5], "rate": [1.5, 4.0]}, {"concentration": [1.2, 2.0], "rate": [0.5, 1.0]}),
    "Geometric": ({"probs": [0.2, 0.9]}, {"logits": [0.3, -1.0]}),
    "Gumbel": ({"loc": [0.5, -1.0], "scale": [1.0, 0.6]}, {"loc": [0.0, 1.0], "scale": [3.0, 1.5]}),
    "HalfNormal": ({"scale": [1.0, 2.0]}, {"scale": [3.0, 0.5]}),
    "Laplace": ({"loc": [0.5, -1.0], "scale": [1.0, 2.0]}, {"loc": [0.0, 1.0], "scale": [3.0, 0.5]}),
    "LogNormal": ({"loc": [0.5, -1.0], "scale": [1.0, 0.7]}, {"loc": [0.0, 1.0], "scale": [3.0, 0.5]}),
    "LowRankMultivariateNormal": (
        {"loc": [[0.5, -1.0, 2.0]] * 2, "cov_factor": [[1.0], [0.5], [-2.0]], "cov_diag": SHAPE},
        {"loc": [0.0] * 3, "cov_factor": [[[0.3, 1.0], [0.5, 0.0], [2.0, -1.0]]] * 2, "cov_diag": [2.0, 1.0, 0.5]},
    ),
    "MultivariateNormal": (
        {"loc": [0.5, -1.0, 2.0], "covariance_matrix": MATRIX},
        {"loc": [[0.0, 1.0, 1.0], [2.0, 0.0, 0.0]], "scale_tril": TRIL},
    ),
    "Normal": ({"loc": [0.5, -1.0], "scale": [1.0, 0.7]}, {"loc": [0.0, 1.0], "scale": [3.0, 0.5]}),
    "OneHotCategorical": ({"probs": [[0.2, 0.8], [0.5, 0.5]]}, {"logits": [[0.3, -1.0], [0.0, 2.0]]}),
    "Pareto": ({"scale": [2.0, 0.7], "alpha": [3.5, 9.0]}, {"scale": [0.25, 0.2], "alpha": [2.0, 1.0]}),
    "Poisson": ({"rate": [0.7, 3.0]}, {"rate": [1.5, 0.4]}),
    "Uniform": ({"low": [0.3, 0.5], "high": [0.6, 0.9]}, {"low": [-1.0, -0.5], "high": [2.0, 4.0]}),
    "Wishart": ({"df": [5.0, 4.5], "covariance_matrix": MATRIX}, {"df": [7.0, 6.0], "scale_tril": TRIL}),
}  # fmt: skip
NORMALS = {"MultivariateNormal", "LowRankMultivariateNormal"}
FORMULAS = sorted(
    {(p.__name__, q.__name__) for p, q in kl._KL_REGISTRY if {p.__name__, q.__name__} <= set(PAIRS)}
    | {(p, q) for p in NORMALS for q in NORMALS}
    | {(name, name) for name in ("LogNormal", "Wishart")}
)


def build(m, name, which):
    p = {k: m.tensor(v, dtype=m.float64).requires_grad_() for k, v in PAIRS[name][which].items()}
    return getattr(m.distributions, name)(**p), list(p.values())


def test_every_pair_of_pytorch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for p, q in torch.distributions.kl._KL_REGISTRY:
            found = kl._dispatch_kl(getattr(D, p.__name__), getattr(D, q.__name__))
            assert found is not NotImplemented, (p, q)
    named = {p.__name__ for p, q in torch.distributions.kl._KL_REGISTRY} - set(PAIRS)
    assert named == {"ExponentialFamily", "Independent", "TransformedDistribution"}


@pytest.mark.parametrize("p, q", [pair for pair in FORMULAS if pair[0] != "Wishart"])  # of which PyTorch sums batches
def test_pair(p, q):
    """The value and its gradients by both distributions' parameters."""
    found = []
    for m in (tt, torch):
        (a, of_a), (b, of_b) = build(m, p, 0), build(m, q, 1)
        result = m.distributions.kl_divergence(a, b)
        leaves = of_a + of_b
        slopes = m.autograd.grad(result.sum(), leaves, allow_unused=True) if result.requires_grad else []
        slopes = [m.zeros_like(x) if g is None else g for g, x in zip(slopes, leaves)]
        found.append([result, *slopes])
    if "total_count" in PAIRS[p][0]:
        found = [[f[0]] for f in found]
    for mine, theirs in zip(*found):
        np.testing.assert_allclose(numbers(mine), numbers(theirs), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("p, q", FORMULAS)
def test_mean_of_the_ratio(p, q):
    """KL(p, q) is the mean of log p(x) - log q(x)."""
    tt.manual_seed(1)
    a, b = build(tt, p, 0)[0], build(tt, q, 1)[0]
    exact = numbers(D.kl_divergence(a, b))
    if not np.isfinite(exact).all():
        assert np.isinf(exact).all() and (exact > 0).all()
        return
    x = a.expand(exact.shape).sample((20000,))
    b._validate_args = False  # rounding may put a sample outside
    each = numbers(a.log_prob(x) - b.log_prob(x))
    assert (np.abs(each.mean(0) - exact) < 6 * each.std(0) / math.sqrt(len(each)) + 1e-9).all()


def test_ends_of_the_support():
    """Infinite where p goes beyond q, finite where their ends are one."""
    inside, outside = D.Uniform(0.2, 1.0), D.Uniform(-0.2, 0.9)
    for q in (D.Beta(2.0, 3.0), D.ContinuousBernoulli(0.3), D.Uniform(0.2, 1.0)):
        assert D.kl_divergence(inside, q).isfinite() and D.kl_divergence(outside, q) == math.inf
    for q in (D.Exponential(1.0), D.Gamma(1.0, 2.0), D.Pareto(0.1, 1.0)):
        assert D.kl_divergence(inside, q).isfinite() and D.kl_divergence(outside, q) == math.inf
    for p in (D.Beta(2.0, 3.0), D.ContinuousBernoulli(0.3)):
        assert D.kl_divergence(p, D.Uniform(0.0, 1.0)).isfinite()
        assert D.kl_divergence(p, D.Uniform(0.1, 1.0)) == D.kl_divergence(p, D.Uniform(0.0, 0.9)) == math.inf
    certain, never = D.Bernoulli(tt.tensor([0.0, 1.0, 0.3])), D.Bernoulli(tt.tensor([0.0, 0.0, 1.0]))
    assert D.kl_divergence(certain, never).tolist() == [0, math.inf, math.inf]


def test_by_the_log_normalizer():
    """The divergence of an exponential family that has no formula of its own: its Bregman divergence."""
    for name in ("Bernoulli", "Beta", "ContinuousBernoulli", "Dirichlet", "Exponential", "Gamma", "Normal", "Poisson"):
        (p, _), (q, leaves) = build(tt, name, 0), build(tt, name, 1)
        general, special = kl._exponential_family(p, q), D.kl_divergence(p, q)
        np.testing.assert_allclose(numbers(general), numbers(special), rtol=1e-6)
        if name not in ("Beta", "Dirichlet", "Poisson"):  # these have another carrier measure
            np.testing.assert_allclose(numbers(D.ExponentialFamily.entropy(p)), numbers(p.entropy()), rtol=1e-6)
        tt.autograd.grad(general.sum(), leaves)


def test_of_the_parts():
    p, q = (D.Normal(tt.tensor([[0.0, 1.0]] * 3), tt.tensor([s, 2.0])) for s in (1.0, 3.0))
    each = D.kl_divergence(p, q)
    assert tt.equal(D.kl_divergence(D.Independent(p, 1), D.Independent(q, 1)), each.sum(-1))
    moved = [D.TransformedDistribution(d, [D.ExpTransform()]) for d in (p, q)]
    assert tt.equal(D.kl_divergence(*moved), each)
    for a, b in (
        (D.Independent(p, 1), D.Independent(q, 2)),
        (moved[0], D.TransformedDistribution(q, [D.TanhTransform()])),
        (D.Normal(0.0, 1.0), D.Cauchy(0.0, 1.0)),
        (D.Normal(0.0, 1.0), D.Poisson(1.0)),
        (D.Binomial(3, 0.5), D.Binomial(4, 0.5)),
    ):
        with pytest.raises(NotImplementedError):
            D.kl_divergence(a, b)
    with pytest.raises(ValueError, match="event shapes"):
        D.kl_divergence(*(D.MultivariateNormal(tt.zeros(n), tt.eye(n)) for n in (2, 3)))


def test_registered():
    """The nearest classes' function; a warning where two are as near; a new one is found at once."""

    class Mine(D.Normal):
        pass

    class Other(D.Normal):
        pass

    mine, other = Mine(0.0, 1.0), Other(0.0, 2.0)
    assert tt.equal(D.kl_divergence(mine, other), D.kl_divergence(D.Normal(0.0, 1.0), D.Normal(0.0, 2.0)))
    try:
        D.register_kl(Mine, D.Normal)(lambda p, q: "left")
        assert D.kl_divergence(mine, other) == "left"
        D.register_kl(D.Normal, Other)(lambda p, q: "right")
        with pytest.warns(RuntimeWarning, match=r"Ambiguous kl_divergence\(Mine, Other\)"):
            assert D.kl_divergence(mine, other) == "left"
        D.register_kl(Mine, Other)(lambda p, q: "both")
        assert D.kl_divergence(mine, other) == "both"
        with pytest.raises(TypeError):
            D.register_kl(7, D.Normal)
    finally:
        for pair in [pair for pair in kl._KL_REGISTRY if {Mine, Other} & set(pair)]:
            del kl._KL_REGISTRY[pair]
        kl._KL_MEMOIZE.clear()
