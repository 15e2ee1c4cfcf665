"""Samples follow their distribution, and their derivatives are those of the samples."""

import math

import numpy as np
import pytest
import tinytorch as tt

from distributions.families import CASES, numbers

pytestmark = pytest.mark.filterwarnings(
    "ignore:Low df values", "ignore:Singular sample", "ignore:invalid value", "ignore:overflow"
)
N = 4000
D = tt.distributions


def of(cases):
    return pytest.mark.parametrize("case", cases, ids=lambda c: c.id)


def has(case, name):
    d, _ = case.build(tt)
    try:
        getattr(d, name)(d.sample()) if name == "cdf" else getattr(d, name)
    except NotImplementedError:
        return False
    return True


def farthest(cdf):
    """Kolmogorov and Smirnov's statistic of columns that should be uniform; above 1.95 once in 1000 times."""
    cdf, n = np.sort(cdf.reshape(len(cdf), -1), 0), len(cdf)
    steps = np.arange(n)[:, None]
    return max((cdf - steps / n).max(), ((steps + 1) / n - cdf).max()) * math.sqrt(n)


@of([c for c in CASES if not c.discrete and has(c, "cdf")])
def test_distribution_function(case):
    tt.manual_seed(1)
    d, _ = case.build(tt)
    assert farthest(numbers(d.cdf(d.sample((N,))))) < 2.2


@of([c for c in CASES if c.sampled and has(c, "variance")])
def test_moments(case):
    """Means within six standard errors, where there are moments enough."""
    tt.manual_seed(2)
    d, _ = case.build(tt)
    x = numbers(d.sample((5 * N,))).astype(float)
    mean, variance = numbers(d.mean.expand(x.shape[1:])), numbers(d.variance.expand(x.shape[1:]))
    fine = np.isfinite(mean) & np.isfinite(variance)
    away = np.abs(x.mean(0) - mean) / np.sqrt(variance / len(x))
    assert (away[fine] < 6).all()
    fourth = ((x - mean) ** 4).mean(0)
    spread = np.abs(x.var(0) - variance) / np.sqrt(fourth / len(x))
    assert (spread[fine & (fourth < 100 * variance**2)] < 6).all()


@of([c for c in CASES if c.discrete and not c.build(tt)[0].event_shape])
def test_frequencies(case):
    """Pearson's statistic, below its mean plus six standard deviations."""
    tt.manual_seed(3)
    d, _ = case.build(tt)
    x = d.sample((N,))
    most = int(x.max()) + 1
    values = tt.arange(most, dtype=x.dtype).reshape((-1,) + (1,) * len(d.batch_shape)).expand(most, *d.batch_shape)
    if case.id.startswith("Binomial"):
        values = values.clamp(max=d.total_count)
    expected = numbers(d.log_prob(values).exp()) * N
    for k in np.ndindex(*d.batch_shape):
        counts = np.bincount(numbers(x)[(slice(None), *k)].astype(int), minlength=most)
        often = expected[(slice(None), *k)] >= 5
        e, c = expected[(slice(None), *k)][often], counts[often]
        e, c = np.append(e, max(N - e.sum(), 1.0)), np.append(c, N - c.sum())
        degrees = len(e) - 1
        assert ((c - e) ** 2 / e).sum() < degrees + 6 * math.sqrt(2 * degrees) + 6


def gradient(d, p):
    """Of the sum of a sample times fixed weights, by the parameters; the same random numbers at each call."""
    tt.manual_seed(4)
    x = d.rsample((3,))
    weights = tt.linspace(0.5, 1.5, x.numel(), dtype=x.dtype).reshape(x.shape)
    return (x * weights).sum(), p


REJECTED = {"StudentT", "Gamma", "Chi2", "FisherSnedecor", "Dirichlet", "Beta", "InverseGamma", "Decreasing"}
FLOWING = [c for c in CASES if not c.discrete and c.build(tt)[0].has_rsample]


@of([c for c in FLOWING if c.id not in REJECTED and not c.id.startswith("Wishart")])
def test_gradient_of_samples(case):
    """Beside finite differences with the same random numbers."""
    total, p = gradient(*case.build(tt))
    found = tt.autograd.grad(total, list(p.values()))
    for (name, parameter), g in zip(p.items(), found):
        for k in np.ndindex(*parameter.shape):
            above = name == "scale_tril" and k[-1] > k[-2]
            if above or (case.id == "GeneralizedPareto" and name == "concentration" and parameter[k] == 0):
                continue  # of another branch, beside 0
            ends = []
            for h in (1e-6, -1e-6):
                moved = {n: v.detach().clone() for n, v in p.items()}
                moved[name][k] += h
                if "matrix" in name:
                    moved[name][k[::-1]] = moved[name][k]
                ends.append(gradient(case.make(D, moved), None)[0].item())
            slope = (ends[0] - ends[1]) / 2e-6
            mine = g[k].item() + (g[k[::-1]].item() if "matrix" in name and k[-1] != k[-2] else 0)
            assert slope == pytest.approx(mine, rel=2e-5, abs=1e-6), (name, k)


def test_gradient_of_a_straight_estimator():
    logits = tt.tensor([0.1, 0.5, -1.0], requires_grad=True)
    weights = tt.tensor([1.0, 2.0, 3.0])
    (D.OneHotCategoricalStraightThrough(logits=logits).rsample() * weights).sum().backward()
    (expected,) = tt.autograd.grad((logits.softmax(-1) * weights).sum(), logits)
    np.testing.assert_allclose(numbers(logits.grad), numbers(expected), rtol=1e-6)


MEANS = {  # of x^2, by a parameter
    "Gamma": (lambda t: D.Gamma(t, 2.0), lambda t: t * (t + 1) / 4),
    "Chi2": (lambda t: D.Chi2(t), lambda t: t * (t + 2)),
    "Beta": (lambda t: D.Beta(t, 1.5), lambda t: t * (t + 1) / ((t + 1.5) * (t + 2.5))),
    "beta": (lambda t: D.Beta(1.5, t), lambda t: 1.5 * 2.5 / ((t + 1.5) * (t + 2.5))),
    "InverseGamma": (lambda t: D.InverseGamma(t + 6, 1.0), lambda t: 1 / ((t + 5) * (t + 4))),
    "StudentT": (lambda t: D.StudentT(t + 6), lambda t: (t + 6) / (t + 4)),
    "FisherSnedecor": (lambda t: D.FisherSnedecor(t + 3, 20.0), lambda t: 400 * (1 + 2 / (t + 3)) / (18 * 16)),
}


@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("at", [0.4, 3.0])
def test_mean_of_the_gradient(name, at):
    """The gradient of a mean is the mean of the samples' gradients, though these were drawn by rejection."""
    tt.manual_seed(5)
    make, mean = MEANS[name]
    t = tt.full((10 * N,), at, dtype=tt.float64, requires_grad=True)
    (each,) = tt.autograd.grad((make(t).rsample() ** 2).sum(), t)
    x = tt.tensor(at, dtype=tt.float64, requires_grad=True)
    (expected,) = tt.autograd.grad(mean(x), x)
    each = numbers(each)
    assert abs(each.mean() - expected.item()) < 5 * each.std() / math.sqrt(len(each))


def test_mean_of_dirichlets_gradient():
    tt.manual_seed(6)
    c = tt.tensor([0.5, 2.0, 4.0], dtype=tt.float64).expand(10 * N, 3).clone().requires_grad_()
    x = D.Dirichlet(c).rsample()
    (each,) = tt.autograd.grad((x[:, 0] * x[:, 1]).sum(), c)
    a = tt.tensor([0.5, 2.0, 4.0], dtype=tt.float64, requires_grad=True)
    (expected,) = tt.autograd.grad(a[0] * a[1] / (a.sum() * (a.sum() + 1)), a)
    each = numbers(each)
    assert (np.abs(each.mean(0) - numbers(expected)) < 5 * each.std(0) / math.sqrt(len(each))).all()


def test_covariances():
    tt.manual_seed(7)
    matrix = tt.tensor([[2.0, 0.3, -0.1], [0.3, 1.0, 0.2], [-0.1, 0.2, 0.7]], dtype=tt.float64)
    loc = tt.zeros(3, dtype=tt.float64)
    low = D.LowRankMultivariateNormal(loc, tt.tensor([[1.0], [0.5], [-2.0]], dtype=tt.float64), tt.ones(3).double())
    for d in (D.MultivariateNormal(loc, matrix), D.MultivariateNormal(loc, precision_matrix=matrix), low):
        found = np.cov(numbers(d.sample((20 * N,))).T)
        np.testing.assert_allclose(found, numbers(d.covariance_matrix), atol=0.06)


@pytest.mark.parametrize("dim, concentration", [(2, 1.7), (3, 1.0), (4, 2.5)])
def test_correlations(dim, concentration):
    """Each has Beta(b, b) on (-1, 1), b = concentration + dim / 2 - 1. (PyTorch's have not, from dim 3 on.)"""
    tt.manual_seed(8)
    factor = D.LKJCholesky(dim, tt.tensor(concentration, dtype=tt.float64)).sample((N,))
    matrices = numbers(factor @ factor.mT)
    b = concentration + dim / 2 - 1
    grid = np.linspace(-1, 1, 20001)
    density = np.maximum(1 - grid**2, 1e-300) ** (b - 1)
    cumulated = np.cumsum((density[1:] + density[:-1]) / 2)
    for i, j in zip(*np.tril_indices(dim, -1)):
        cdf = np.interp(matrices[:, i, j], grid[1:], cumulated / cumulated[-1])
        assert farthest(cdf) < 2.2


def test_mixture():
    tt.manual_seed(9)
    mixture = D.MixtureSameFamily(D.Categorical(tt.tensor([0.2, 0.8])), D.Normal(tt.tensor([-5.0, 5.0]), 1.0))
    x = numbers(mixture.sample((N,)))
    assert abs((x > 0).mean() - 0.8) < 0.03


def test_angles():
    """Means of the cosine, I1 / I0, and of the sine, 0."""
    tt.manual_seed(10)
    for kappa in (1e-6, 0.5, 4.0, 100.0):
        d = D.VonMises(tt.tensor(1.0, dtype=tt.float64), tt.tensor(kappa, dtype=tt.float64))
        x = numbers(d.sample((5 * N,))) - 1
        assert (np.abs(x + 1) <= math.pi).all()
        for function, mean in ((np.cos, 1 - d.variance.item()), (np.sin, 0)):
            each = function(x)
            assert abs(each.mean() - mean) < 6 * each.std() / math.sqrt(len(x))


def test_seeds_and_generators():
    for draw in (D.Gamma(2.0, 1.0), D.Poisson(30.0), D.Binomial(100, 0.4), D.Dirichlet(tt.ones(3))):
        tt.manual_seed(0)
        first, second = draw.sample((4,)), draw.sample((4,))
        tt.manual_seed(0)
        assert tt.equal(draw.sample((4,)), first) and not tt.equal(first, second)
    state = tt.Generator().manual_seed(3)
    a = tt._standard_gamma(tt.ones(5), generator=state)
    assert tt.equal(a, tt._standard_gamma(tt.ones(5), generator=tt.Generator().manual_seed(3)))


def test_small_shapes():
    """A sample that is too small for the dtype is its least normal number; those of Dirichlet's distribution still add
    up to 1, of whichever is the largest."""
    tt.manual_seed(11)
    least = tt.finfo(tt.float32).tiny
    assert (tt._standard_gamma(tt.full((100,), 1e-4)) >= least).all()
    x = D.Beta(tt.tensor(1e-3), tt.tensor(1e-3)).sample((1000,))
    assert abs((x > 0.5).float().mean() - 0.5) < 0.06 and ((x < 1e-3) | (x > 0.999)).float().mean() > 0.97


def test_fused_gradients():
    """Of samples that are drawn by rejection, to the bit of eager mode's."""

    def run():
        tt.manual_seed(12)
        c = tt.linspace(0.1, 9.0, 300).reshape(100, 3).requires_grad_()
        drawn = D.Dirichlet(c).rsample() * 2 + D.Gamma(c, 1.0).rsample()
        return [numbers(drawn), numbers(tt.autograd.grad((drawn * drawn).sum(), c)[0])]

    eager = run()
    with tt.fuse():
        fused = run()
    for a, b in zip(eager, fused):
        np.testing.assert_array_equal(a, b)
