"""Small programs that must say the same with PyTorch: what is refused, subclasses, paths, validation."""

import math
import pickle
import sys
import warnings

import numpy as np
import pytest
import tinytorch as tt

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def checked():
    """PyTorch checks nothing once its compiler has been at work, for which the first ``checkpoint`` is enough."""
    torch.distributions.Distribution.set_default_validate_args(True)


REFUSED = [
    (ValueError, lambda m, d: d.Normal(m.zeros(2), m.tensor([1.0, -1.0]))),
    (ValueError, lambda m, d: d.Normal(math.nan, 1.0)),
    (ValueError, lambda m, d: d.Normal("0", 1.0)),
    (RuntimeError, lambda m, d: d.Normal(m.zeros(2), m.ones(3))),
    (TypeError, lambda m, d: d.Normal(0.0)),
    (ValueError, lambda m, d: d.Uniform(1.0, 1.0)),
    (ValueError, lambda m, d: d.Gamma(0.0, 1.0)),
    (ValueError, lambda m, d: d.Chi2(m.tensor(-1.0))),
    (ValueError, lambda m, d: d.Beta(1.0, 0.0)),
    (ValueError, lambda m, d: d.Dirichlet(m.tensor(1.0))),
    (ValueError, lambda m, d: d.Dirichlet(m.tensor([1.0, 0.0]))),
    (ValueError, lambda m, d: d.Bernoulli()),
    (ValueError, lambda m, d: d.Bernoulli(0.5, 0.0)),
    (ValueError, lambda m, d: d.Bernoulli(1.5)),
    (ValueError, lambda m, d: d.Binomial(2, m.tensor(-0.1))),
    (ValueError, lambda m, d: d.Binomial(m.tensor(-1.0), m.tensor(0.1))),
    (ValueError, lambda m, d: d.NegativeBinomial(2, m.tensor(1.0))),
    (ValueError, lambda m, d: d.Geometric(0.0)),
    (ValueError, lambda m, d: d.Poisson(-1.0)),
    (ValueError, lambda m, d: d.Categorical(m.tensor(1.0))),
    (ValueError, lambda m, d: d.Categorical(m.tensor([-1.0, 2.0]))),
    (ValueError, lambda m, d: d.Categorical(logits=m.tensor([math.nan, 2.0]))),
    (NotImplementedError, lambda m, d: d.Multinomial(m.tensor(2), m.ones(3))),
    (ValueError, lambda m, d: d.ContinuousBernoulli(m.tensor(1.5), validate_args=True)),
    (ValueError, lambda m, d: d.MultivariateNormal(m.tensor(1.0), m.eye(1))),
    (ValueError, lambda m, d: d.MultivariateNormal(m.zeros(2))),
    (ValueError, lambda m, d: d.MultivariateNormal(m.zeros(2), m.eye(2), m.eye(2))),
    (ValueError, lambda m, d: d.MultivariateNormal(m.zeros(2), m.ones(2))),
    (ValueError, lambda m, d: d.MultivariateNormal(m.zeros(2), m.tensor([[1.0, 2.0], [2.0, 1.0]]))),
    (ValueError, lambda m, d: d.MultivariateNormal(m.zeros(2), scale_tril=m.ones(2, 2))),
    (ValueError, lambda m, d: d.LowRankMultivariateNormal(m.zeros(2), m.ones(2), m.ones(2))),
    (ValueError, lambda m, d: d.LowRankMultivariateNormal(m.zeros(2), m.ones(3, 1), m.ones(2))),
    (ValueError, lambda m, d: d.LowRankMultivariateNormal(m.zeros(2), m.ones(2, 1), m.ones(3))),
    (ValueError, lambda m, d: d.LowRankMultivariateNormal(m.zeros(2, 2), m.ones(3, 2, 1), m.ones(2))),
    (AssertionError, lambda m, d: d.Wishart(3.0)),
    (ValueError, lambda m, d: d.Wishart(1.0, m.eye(3))),
    (ValueError, lambda m, d: d.LKJCholesky(1)),
    (ValueError, lambda m, d: d.Independent(d.Normal(0.0, 1.0), 1)),
    (ValueError, lambda m, d: d.MixtureSameFamily(d.Normal(0.0, 1.0), d.Normal(0.0, 1.0))),
    (ValueError, lambda m, d: d.MixtureSameFamily(d.Categorical(m.ones(2)), 3)),
    (ValueError, lambda m, d: d.MixtureSameFamily(d.Categorical(m.ones(2)), d.Normal(m.zeros(3), 1.0))),
    (ValueError, lambda m, d: d.MixtureSameFamily(d.Categorical(m.ones(4, 2)), d.Normal(m.zeros(3, 2), 1.0))),
    (ValueError, lambda m, d: d.Normal(0.0, 1.0).log_prob(1.0)),
    (ValueError, lambda m, d: d.Normal(0.0, 1.0).log_prob(m.tensor(math.nan))),
    (ValueError, lambda m, d: d.Normal(m.zeros(3), 1.0).log_prob(m.zeros(2))),
    (ValueError, lambda m, d: d.Exponential(1.0).log_prob(m.tensor(-1.0))),
    (ValueError, lambda m, d: d.Exponential(1.0).cdf(m.tensor(-1.0))),
    (ValueError, lambda m, d: d.Bernoulli(0.5).log_prob(m.tensor(0.5))),
    (ValueError, lambda m, d: d.Binomial(3, 0.5).log_prob(m.tensor(4.0))),
    (ValueError, lambda m, d: d.Categorical(m.ones(3)).log_prob(m.tensor(3))),
    (ValueError, lambda m, d: d.OneHotCategorical(m.ones(3)).log_prob(m.ones(3))),
    (ValueError, lambda m, d: d.OneHotCategorical(m.ones(3)).log_prob(m.ones(2))),
    (ValueError, lambda m, d: d.Multinomial(2, m.ones(3)).log_prob(m.ones(3))),
    (ValueError, lambda m, d: d.Dirichlet(m.ones(3)).log_prob(m.ones(3))),
    (ValueError, lambda m, d: d.LogNormal(0.0, 1.0).log_prob(m.tensor(-1.0))),
    (ValueError, lambda m, d: d.Pareto(1.0, 1.0).log_prob(m.tensor(0.5))),
    (NotImplementedError, lambda m, d: d.Poisson(1.0).rsample()),
    (NotImplementedError, lambda m, d: d.Poisson(1.0).cdf(m.tensor(1.0))),
    (NotImplementedError, lambda m, d: d.Normal(0.0, 1.0).enumerate_support()),
    (NotImplementedError, lambda m, d: d.Independent(d.Bernoulli(m.ones(3) / 2), 1).enumerate_support()),
    (NotImplementedError, lambda m, d: d.Binomial(m.tensor([2.0, 3.0]), m.tensor(0.5)).entropy()),
    (NotImplementedError, lambda m, d: d.Binomial(m.tensor([2.0, 3.0]), m.tensor(0.5)).enumerate_support()),
    (NotImplementedError, lambda m, d: d.Distribution(validate_args=False).expand((2,))),
    (RuntimeError, lambda m, d: d.Normal(m.zeros(3), 1.0).expand((2,))),
    (ValueError, lambda m, d: d.Distribution.set_default_validate_args(3)),
]


def test_refused():
    for k, (error, call) in enumerate(REFUSED):
        for m in (torch, tt):
            try:
                with pytest.raises(error):
                    call(m, m.distributions)
            except BaseException as exc:
                exc.add_note(f"REFUSED[{k}] with {m.__name__}") if hasattr(exc, "add_note") else None
                raise


def test_unchecked():
    """Nothing is checked with ``validate_args=False``, or when that is the default."""
    for m in (tt, torch):
        d = m.distributions
        assert d.Normal(0.0, -1.0, validate_args=False).log_prob(m.tensor(0.0)).isnan()
        assert d.Exponential(1.0, validate_args=False).log_prob(m.tensor(-1.0)) == 1
        d.Distribution.set_default_validate_args(False)
        try:
            d.Normal(0.0, -1.0)
            with pytest.raises(ValueError):
                d.Normal(0.0, -1.0, validate_args=True)
        finally:
            d.Distribution.set_default_validate_args(True)
        with pytest.raises(ValueError):
            d.Normal(0.0, -1.0)


def test_subclasses():
    for m in (tt, torch):
        d = m.distributions

        class Named(d.Normal):
            """Of the same constructor: expanded without a word."""

        class Standard(d.Normal):
            def __init__(self, size):  # noqa: B027
                super().__init__(m.zeros(size), m.ones(size))  # noqa: B023

        class Expanding(Standard):
            def expand(self, batch_shape, _instance=None):
                new = self._get_checked_instance(Expanding, _instance)
                return super().expand(batch_shape, new)

        class Bare(d.Distribution):
            def __init__(self):
                super().__init__()

        assert type(Named(0.0, 1.0).expand((2,))) is Named
        with pytest.raises(NotImplementedError):
            Standard(3).expand((2, 3))
        assert Expanding(3).expand((2, 3)).sample().shape == (2, 3)
        with pytest.warns(UserWarning, match="arg_constraints"):
            bare = Bare()
        for call in (bare.sample, bare.entropy, lambda: bare.log_prob(m.zeros(1)), lambda: bare.mean):  # noqa: B023
            with pytest.raises(NotImplementedError):
                call()
        with pytest.warns(UserWarning, match="support"):
            bare._validate_sample(m.zeros(2))
        with pytest.warns(FutureWarning):
            assert d.Normal(0.0, 1.0).sample_n(3).shape == (3,)


def test_printed():
    for make in (
        lambda m, d: d.Normal(0.5, m.ones(())),
        lambda m, d: d.Normal(m.zeros(3), 1.0),
        lambda m, d: d.Independent(d.Normal(m.zeros(3), 1.0), 1),
        lambda m, d: d.Categorical(logits=m.zeros(3)),
        lambda m, d: d.MixtureSameFamily(d.Categorical(logits=m.ones(2)), d.Normal(m.zeros(2), 1.0)),
        lambda m, d: d.TransformedDistribution(d.Normal(0.0, 1.0), [d.ExpTransform()]),
        lambda m, d: d.LogNormal(0.0, 1.0),
        lambda m, d: d.Gumbel(0.0, 2.0),
        lambda m, d: d.Uniform(0.0, 2.0).support,
        lambda m, d: d.Binomial(3, 0.25),
    ):
        mine, theirs = (repr(make(m, m.distributions)) for m in (tt, torch))
        assert mine.replace("tinytorch", "torch") == theirs


def test_paths():
    """PyTorch's modules: imported by their names, and found as attributes."""
    import torch.distributions as theirs  # noqa: PLC0415

    for name, module in vars(theirs).items():
        if isinstance(module, type(theirs)) and module.__name__.startswith("torch.distributions."):
            __import__(f"tinytorch.distributions.{name}")
            mine = sys.modules[f"tinytorch.distributions.{name}"]
            assert getattr(tt.distributions, name) is mine
            for public in getattr(module, "__all__", ()):
                assert hasattr(mine, public), (name, public)
    assert set(theirs.__all__) <= set(tt.distributions.__all__)


def test_signatures():
    import inspect  # noqa: PLC0415

    for name in torch.distributions.__all__:
        mine, theirs = (getattr(m.distributions, name) for m in (tt, torch))
        if not isinstance(theirs, type):
            continue
        for function in ("__init__", "sample", "rsample", "log_prob", "expand", "with_cache", "enumerate_support"):
            if hasattr(theirs, function):
                named = [list(inspect.signature(getattr(f, function)).parameters) for f in (mine, theirs)]
                assert named[0] == named[1], (name, function)


def test_numbers_and_dtypes():
    for m in (tt, torch):
        d = m.distributions
        assert d.Normal(0, 1).sample().dtype == m.float32 and d.Normal(0, 1).sample().shape == ()
        assert d.Gamma(m.ones(2, dtype=m.float64), 1).sample((3,)).dtype == m.float64
        assert d.Beta(1, 2).batch_shape == () and d.Poisson(3).sample([2]).shape == (2,)
        half = d.Normal(m.zeros(2, dtype=m.bfloat16), 1.0)
        assert half.sample().dtype == m.bfloat16 and half.log_prob(m.zeros(2, dtype=m.bfloat16)).dtype == m.bfloat16
        assert d.Categorical(m.ones(3)).sample().dtype == m.int64
        assert d.Bernoulli(0.5).log_prob(m.tensor(1.0)).item() == pytest.approx(-math.log(2))
        counts = d.Multinomial(5, m.ones(3)).sample((2,))
        assert counts.dtype == m.float32 and counts.sum(-1).tolist() == [5, 5]
        assert d.Normal(m.zeros(0, 3), 1.0).sample((2,)).shape == (2, 0, 3)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert d.Categorical(m.ones(0, 3)).sample((2,)).shape == (2, 0)


def test_training():
    """A variational bound, maximised: the posterior of a normal mean."""
    tt.manual_seed(0)
    data = tt.distributions.Normal(3.0, 1.0).sample((50,))
    loc, log_scale = tt.zeros((), requires_grad=True), tt.zeros((), requires_grad=True)
    optimizer = tt.optim.Adam([loc, log_scale], lr=0.05)
    for _ in range(400):
        q = tt.distributions.Normal(loc, log_scale.exp())
        z = q.rsample((20,))
        bound = tt.distributions.Normal(z.unsqueeze(-1), 1.0).log_prob(data).sum(-1).mean()
        loss = tt.distributions.kl_divergence(q, tt.distributions.Normal(0.0, 10.0)) - bound
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loc.item() == pytest.approx(data.mean().item(), abs=0.05)
    assert log_scale.exp().item() == pytest.approx(1 / math.sqrt(50), rel=0.2)


def test_a_policy_gradient():
    logits = tt.zeros(3, requires_grad=True)
    policy = tt.distributions.Categorical(logits=logits)
    policy.log_prob(tt.tensor(2)).backward()
    np.testing.assert_allclose(logits.grad.tolist(), [-1 / 3, -1 / 3, 2 / 3], rtol=1e-6)


def test_pickled_classes():
    for name in tt.distributions.__all__:
        thing = getattr(tt.distributions, name)
        if isinstance(thing, type):
            assert pickle.loads(pickle.dumps(thing)) is thing
