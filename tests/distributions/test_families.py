"""Every family against PyTorch's: densities, distribution functions, moments, shapes, and their derivatives."""

import copy
import pickle

import numpy as np
import pytest
import tinytorch as tt

from distributions.families import CASES, numbers, values_of

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings(
    "ignore:Low df values", "ignore:Singular sample", "ignore:invalid value", "ignore:overflow"
)
cases = pytest.mark.parametrize("case", CASES, ids=lambda c: c.id)


def outcome(call):
    """The result, or the kind of the exception."""
    try:
        return call()
    except Exception as error:
        return type(error)


def agree(mine, theirs, rtol=1e-9, atol=1e-11):
    if isinstance(theirs, type):
        assert mine is theirs, (mine, theirs)
        return
    assert tuple(mine.shape) == tuple(theirs.shape)
    assert str(mine.dtype).rpartition(".")[2] == str(theirs.dtype).rpartition(".")[2]
    np.testing.assert_allclose(numbers(mine), numbers(theirs), rtol=rtol, atol=atol)


def gradients(m, result, leaves):
    found = m.autograd.grad(result.sum(), leaves, allow_unused=True)
    return [m.zeros_like(x) if g is None else g for g, x in zip(found, leaves)]


def rtol_of(case):
    """PyTorch's Bessel functions have four to seven digits, and it computes log(n!) in float32."""
    return 3e-4 if case.id == "VonMises" else 1e-6 if case.id.startswith("Multinomial") else 1e-8


def dtype_of(case):
    """PyTorch's GeneralizedPareto refuses float64."""
    return "float32" if case.id == "GeneralizedPareto" else "float64"


@cases
def test_log_prob(case):
    """Its values, and gradients by parameters and by the value."""
    values, found = values_of(case, torch), []
    for m in (tt, torch):
        d, p = case.build(m, dtype_of(case))
        x = m.tensor(values, dtype=getattr(m, dtype_of(case)) if values.dtype == np.float64 else None)
        leaves = list(p.values())
        if not case.discrete:
            leaves.append(x.requires_grad_())
        log_prob = d.log_prob(x)
        found.append([log_prob, *gradients(m, log_prob, leaves)])
    for mine, theirs in zip(*found):
        agree(mine, theirs, *((rtol_of(case), 1e-9) if dtype_of(case) == "float64" else (1e-4, 1e-5)))


@cases
def test_distribution_functions(case):
    for function in ("cdf", "icdf"):
        found = []
        for m in (tt, torch):
            d, p = case.build(m, dtype_of(case))
            dtype = getattr(m, dtype_of(case))
            at = m.tensor(values_of(case, torch)).to(dtype)
            if function == "icdf":
                ones = (1,) * len(d.batch_shape + d.event_shape)
                at = m.linspace(0.05, 0.9, 5, dtype=dtype).reshape((5,) + ones)
            result = outcome(lambda: getattr(d, function)(at))  # noqa: B023
            found.append([result])
            if not isinstance(result, type) and case.id not in ("Gamma", "Chi2", "InverseGamma", "Decreasing"):
                found[-1] += gradients(m, result, list(p.values()))
        for mine, theirs in zip(*found):
            agree(mine, theirs, *(() if dtype_of(case) == "float64" else (1e-4, 1e-5)))


@cases
def test_moments(case):
    for name in ("mean", "mode", "variance", "stddev", "entropy", "perplexity"):
        found = []
        for m in (tt, torch):
            d, p = case.build(m)
            called = name in ("entropy", "perplexity")
            result = outcome(lambda: getattr(d, name)() if called else getattr(d, name))  # noqa: B023
            found.append([result])
            if not isinstance(result, type) and result.requires_grad and not result.detach().sum().isnan():
                found[-1] += gradients(m, result, list(p.values()))
        if name == "mode" and case.id == "Weibull":
            continue  # NaN where the concentration is below 1, of another sign
        assert len(found[0]) == len(found[1]), name
        for mine, theirs in zip(*found):
            agree(mine, theirs, rtol_of(case), 1e-10)


@cases
def test_what_is_known_of_a_family(case):
    found = []
    for m in (tt, torch):
        d, _ = case.build(m)
        wide = d.expand((4,) + tuple(d.batch_shape))
        constrained = {k: repr(v) for k, v in d.arg_constraints.items() if "tensor" not in repr(v)}
        found.append(
            (
                *map(tuple, (d.batch_shape, d.event_shape, wide.batch_shape, wide.event_shape)),
                (d.has_rsample, d.has_enumerate_support, type(d).__name__, [c.__name__ for c in type(d).__mro__][1:-1]),
                (d.support.event_dim, d.support.is_discrete, constrained),
                (repr(d.support) if "tensor" not in repr(d.support) else "", repr(d).split("(")[0]),
                tuple(d.sample((2, 3)).shape),
                tuple(wide.sample((2,)).shape),
                outcome(lambda: tuple(d.rsample().shape)),  # noqa: B023
                outcome(lambda: numbers(d.enumerate_support()).tolist()),  # noqa: B023
                outcome(lambda: tuple(wide.enumerate_support(expand=False).shape)),  # noqa: B023
            )
        )
    mine, theirs = found
    ours = {"Odds", "OfCategorical", "_Half", "_NormalVectors", "Generic"}
    for k, (a, b) in enumerate(zip(mine, theirs)):
        if k == 4:
            a, b = ((*x[:3], [name for name in x[3] if name not in ours]) for x in (a, b))
        assert a == b


@cases
def test_expanded(case):
    """The same densities; the parameters are not copied."""
    values = values_of(case, torch)
    d, _ = case.build(tt)
    wide = d.expand((2,) + tuple(d.batch_shape))
    x = tt.tensor(values)
    expected = d.log_prob(x)
    got = wide.log_prob(x.unsqueeze(1))
    # one system of equations has more right-hand sides than the other, in another order of additions
    np.testing.assert_allclose(numbers(got), numbers(expected.unsqueeze(1).expand(got.shape)), rtol=1e-14)
    again = wide.expand((3, 2) + tuple(d.batch_shape))
    assert again.batch_shape == (3, 2, *d.batch_shape) and again._validate_args == d._validate_args


@cases
def test_pickled(case):
    d = case.make(tt.distributions, {k: v.detach() for k, v in case.leaves(tt).items()})
    x = tt.tensor(values_of(case, torch))
    for other in (pickle.loads(pickle.dumps(d)), copy.deepcopy(d)):
        assert type(other) is type(d) and other.batch_shape == d.batch_shape and other.event_shape == d.event_shape
        np.testing.assert_array_equal(numbers(other.log_prob(x)), numbers(d.log_prob(x)))


@cases
def test_fused(case):
    """Samples, densities and gradients are eager mode's, to the bit."""
    values = values_of(case, torch)

    def run():
        tt.manual_seed(0)
        d, p = case.build(tt, "float32")
        x = d.sample((3,))
        log_prob = d.log_prob(tt.tensor(values, dtype=tt.float32) if case.id != "LKJCholesky" else x)
        return [x, log_prob, *gradients(tt, log_prob, list(p.values()))]

    eager = run()
    with tt.fuse():
        fused = run()
    for a, b in zip(eager, fused):
        np.testing.assert_array_equal(numbers(a), numbers(b))


@cases
def test_float32(case):
    """Samples have the dtype of the parameters and lie in the support."""
    d, _ = case.build(tt, "float32")
    x = d.sample((50,))
    assert x.dtype is (tt.int64 if case.id.startswith("Categorical") else tt.float32)
    assert d.support.check(x).all()
    assert d.log_prob(x).dtype is tt.float32
