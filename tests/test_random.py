"""Random numbers: reproducible by seed, of the right distribution, and independent of threads and layout."""

import math

import numpy as np
import pytest
from compare import dtype_name

import tinytorch
from tinytorch.ops.dropout import dropout_mask

N = 40_000

SAMPLERS = {
    "rand": lambda **g: tinytorch.rand(50, **g),
    "randn": lambda **g: tinytorch.randn(50, **g),
    "randint": lambda **g: tinytorch.randint(0, 100, (50,), **g),
    "randperm": lambda **g: tinytorch.randperm(50, **g),
    "normal": lambda **g: tinytorch.normal(0.0, 1.0, (50,), **g),
    "bernoulli": lambda **g: tinytorch.bernoulli(tinytorch.full((50,), 0.5), **g),
    "poisson": lambda **g: tinytorch.poisson(tinytorch.full((50,), 9.0), **g),
    "binomial": lambda **g: tinytorch.binomial(tinytorch.full((50,), 9.0), tinytorch.tensor(0.4), **g),
    "multinomial": lambda **g: tinytorch.multinomial(tinytorch.ones(50), 20, **g),
    "uniform_": lambda **g: tinytorch.empty(50).uniform_(-1, 1, **g),
    "normal_": lambda **g: tinytorch.empty(50).normal_(**g),
    "random bernoulli_": lambda **g: tinytorch.empty(50).bernoulli_(0.5, **g),
}


@pytest.mark.parametrize("name", SAMPLERS)
def test_seed_decides(name):
    sample = SAMPLERS[name]
    tinytorch.manual_seed(7)
    first, second = sample().tolist(), sample().tolist()
    assert first != second
    tinytorch.manual_seed(7)
    assert [sample().tolist(), sample().tolist()] == [first, second]
    tinytorch.manual_seed(8)
    assert sample().tolist() != first


@pytest.mark.parametrize("name", SAMPLERS)
def test_generator(name):
    """A generator is a stream of its own; the global stream does not notice it."""
    sample = SAMPLERS[name]
    tinytorch.manual_seed(1)
    wanted = tinytorch.rand(3).tolist()
    one, other = tinytorch.Generator().manual_seed(3), tinytorch.Generator().manual_seed(3)
    tinytorch.manual_seed(1)
    assert sample(generator=one).tolist() == sample(generator=other).tolist()
    assert tinytorch.rand(3).tolist() == wanted
    assert sample(generator=one).tolist() != sample(generator=tinytorch.Generator().manual_seed(4)).tolist()


def test_state():
    g = tinytorch.Generator().manual_seed(5)
    tinytorch.rand(7, generator=g)
    state = g.get_state()
    first = tinytorch.rand(5, generator=g).tolist()
    g.set_state(state)
    assert tinytorch.rand(5, generator=g).tolist() == first
    assert g.initial_seed() == 5 and isinstance(g.seed(), int)
    state = tinytorch.get_rng_state()
    first = tinytorch.randn(5).tolist()
    tinytorch.set_rng_state(state)
    assert tinytorch.randn(5).tolist() == first
    tinytorch.manual_seed(9)
    assert tinytorch.initial_seed() == 9


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_the_number_of_threads_does_not_matter(threads):
    before = tinytorch.get_num_threads()
    results = []
    for count in (1, threads):
        tinytorch.set_num_threads(count)
        tinytorch.manual_seed(0)
        results.append([tinytorch.randn(100_000).numpy(), tinytorch.rand(100_001).numpy()])
    tinytorch.set_num_threads(before)
    for a, b in zip(*results):
        np.testing.assert_array_equal(a, b)


def check_moments(values, mean, variance):
    """Mean and variance lie within five standard errors."""
    values = np.asarray(values, np.float64)
    n = values.size
    fourth = ((values - mean) ** 4).mean()
    assert abs(values.mean() - mean) <= 5 * math.sqrt(variance / n)
    assert abs(values.var() - variance) < 5 * math.sqrt(max(fourth - variance**2, 1e-12) / n) + 1e-4


def check_cdf(values, cdf):
    """Kolmogorov and Smirnov's distance to the distribution function, at a level of one in a million."""
    values = np.sort(np.asarray(values, np.float64))
    steps = np.arange(values.size + 1) / values.size
    expected = cdf(values)
    assert max((expected - steps[:-1]).max(), (steps[1:] - expected).max()) < 2.7 / math.sqrt(values.size)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_uniform(dtype):
    tinytorch.manual_seed(0)
    x = tinytorch.rand(N, dtype=getattr(tinytorch, dtype))
    assert dtype_name(x) == dtype and x.min().item() >= 0 and x.max().item() < 1
    check_moments(x.numpy(), 0.5, 1 / 12)
    check_cdf(x.numpy(), lambda v: v)
    y = tinytorch.empty(N, dtype=getattr(tinytorch, dtype)).uniform_(-2, 4)
    check_moments(y.numpy(), 1, 3)
    # Neighbours are not correlated.
    pairs = x.numpy()[:-1] - 0.5, x.numpy()[1:] - 0.5
    assert abs((pairs[0] * pairs[1]).mean()) < 5 / 12 / math.sqrt(N)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_normal(dtype):
    tinytorch.manual_seed(0)
    x = tinytorch.randn(N, dtype=getattr(tinytorch, dtype))
    check_moments(x.numpy(), 0, 1)
    check_cdf(x.numpy(), lambda v: 0.5 * (1 + np.vectorize(math.erf)(v / math.sqrt(2))))
    assert np.abs(x.numpy()).max() > 3.5
    check_moments(tinytorch.normal(2.0, 3.0, (N,)).numpy(), 2, 9)
    check_moments(tinytorch.empty(N).normal_(-1, 0.5).numpy(), -1, 0.25)
    means = tinytorch.tensor([0.0, 100.0])
    assert (tinytorch.normal(means, tinytorch.ones(2)) - means).abs().max().item() < 10
    assert tinytorch.normal(means, 1.0).shape == (2,) and tinytorch.normal(0.0, tinytorch.ones(3)).shape == (3,)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves(dtype):
    tinytorch.manual_seed(0)
    x = tinytorch.rand(N, dtype=getattr(tinytorch, dtype)).float()
    assert x.min().item() >= 0 and x.max().item() < 1
    check_moments(x.numpy(), 0.5, 1 / 12)
    check_moments(tinytorch.randn(N, dtype=getattr(tinytorch, dtype)).float().numpy(), 0, 1)


@pytest.mark.parametrize("low, high", [(0, 10), (-5, 5), (100, 101), (-(2**40), 2**40)])
def test_randint(low, high):
    tinytorch.manual_seed(0)
    x = tinytorch.randint(low, high, (N,))
    assert dtype_name(x) == "int64" and x.min().item() >= low and x.max().item() < high
    width = high - low
    check_moments(x.numpy().astype(np.float64) / width, (low + (width - 1) / 2) / width, (width**2 - 1) / 12 / width**2)
    if width <= 10:
        counts = np.bincount(x.numpy() - low, minlength=width)
        assert np.abs(counts - N / width).max() < 6 * math.sqrt(N / width)
    assert dtype_name(tinytorch.randint(5, (3,), dtype=tinytorch.int32)) == "int32"
    assert tinytorch.randint_like(tinytorch.zeros(2, 2), 5).shape == (2, 2)


@pytest.mark.parametrize("dtype, most", [("float16", 2048), ("bfloat16", 256), ("uint8", 255), ("int8", 127)])
def test_numbers_up_to_the_largest_that_a_dtype_holds_exactly(dtype, most):
    dtype = getattr(tinytorch, dtype)
    assert sorted(tinytorch.randperm(most + 1, dtype=dtype).tolist()) == list(range(most + 1))
    with pytest.raises(RuntimeError, match="without overflow"):
        tinytorch.randperm(most + 2, dtype=dtype)
    drawn = tinytorch.zeros(100_000, dtype=dtype).random_()
    assert drawn.min() == 0 and drawn.max() == most


@pytest.mark.parametrize("n", [0, 1, 2, 1000])
def test_randperm(n):
    tinytorch.manual_seed(0)
    x = tinytorch.randperm(n)
    assert dtype_name(x) == "int64" and sorted(x.tolist()) == list(range(n))
    if n == 1000:
        assert x.tolist() != tinytorch.randperm(n).tolist()
        fixed = sum((tinytorch.randperm(100) == tinytorch.arange(100)).sum().item() for _ in range(100))
        assert 50 < fixed < 160, "a random permutation has one fixed point on average"


def test_bernoulli():
    tinytorch.manual_seed(0)
    x = tinytorch.bernoulli(tinytorch.full((N,), 0.3))
    assert set(x.tolist()) == {0.0, 1.0}
    check_moments(x.numpy(), 0.3, 0.21)
    assert tinytorch.bernoulli(tinytorch.tensor([0.0, 1.0])).tolist() == [0, 1]
    check_moments(tinytorch.empty(N).bernoulli_(0.8).numpy(), 0.8, 0.16)


def test_multinomial():
    tinytorch.manual_seed(0)
    weights = tinytorch.tensor([1.0, 0.0, 3.0, 6.0])
    x = tinytorch.multinomial(weights, N, replacement=True)
    counts = np.bincount(x.numpy(), minlength=4) / N
    assert counts[1] == 0 and np.abs(counts - [0.1, 0, 0.3, 0.6]).max() < 0.015
    rows = tinytorch.multinomial(tinytorch.ones(3, 5), 5)
    assert rows.shape == (3, 5) and all(sorted(row) == list(range(5)) for row in rows.tolist())
    firsts = [tinytorch.multinomial(weights, 2).tolist() for _ in range(500)]
    assert all(len(set(pair)) == 2 and 1 not in pair for pair in firsts)
    assert 0.5 < np.mean([pair[0] == 3 for pair in firsts]) < 0.7
    three = tinytorch.multinomial(tinytorch.tensor([0.6, 0.2, 0.2]).expand(N, 3), 1)  # without replacement
    assert abs(np.mean(three.numpy() == 0) - 0.6) < 0.015
    apart = tinytorch.multinomial(weights.expand(50, 4), 30, replacement=True).tolist()
    assert len(set(map(tuple, apart))) == 50  # each row draws its own
    for bad in (math.nan, math.inf, -1.0):
        with pytest.raises(RuntimeError, match="either `inf`, `nan` or element"):
            tinytorch.multinomial(tinytorch.tensor([1.0, bad]), 1)


def test_each_element_has_its_own_parameters():
    """Beyond the block of elements that a loop runs over at a time; and broadcast."""
    p = (tinytorch.arange(5000) % 3 == 0).float()
    assert tinytorch.bernoulli(p).equal(p) and tinytorch.empty(5000).bernoulli_(p).equal(p)
    drawn = tinytorch.normal(tinytorch.tensor([[0.0], [100.0], [200.0]]), tinytorch.tensor([1e-3, 1, 1, 1]))
    assert drawn.shape == (3, 4) and len(set(drawn.flatten().tolist())) == 12
    assert (drawn - tinytorch.tensor([[0.0], [100.0], [200.0]])).abs().max() < 10
    assert tinytorch.normal(0.0, tinytorch.ones(3, 4)).shape == tinytorch.normal(tinytorch.ones(3, 4), 1.0).shape


@pytest.mark.parametrize(
    "name, shape",
    [
        ("dropout", (3,)),
        ("alpha_dropout", (3,)),
        ("feature_alpha_dropout", (2, 3)),
        ("dropout1d", (2, 3, 4)),
        ("dropout2d", (2, 3, 4, 1)),
    ],
)
def test_dropout_of_nothing_is_its_input(torch, name, shape):
    for m in (tinytorch, torch):
        x, f = m.ones(shape, requires_grad=True), getattr(m.nn.functional, name)
        assert f(x, 0.0, True) is x and f(x, 0.5, False) is x


def test_dropout():
    tinytorch.manual_seed(0)
    x = tinytorch.ones(N, requires_grad=True)
    y = tinytorch.nn.functional.dropout(x, 0.25)
    kept = y.detach().numpy() != 0
    assert abs(kept.mean() - 0.75) < 0.015
    np.testing.assert_allclose(y.detach().numpy()[kept], 1 / 0.75, rtol=1e-6)
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.detach().numpy())


def bits(t):
    return t.detach().contiguous().reshape(-1).view(tinytorch.uint8).tolist()


@pytest.mark.parametrize("p", [0.3, 0.9999, 1.0])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("part", [lambda x: x, lambda x: x[1:], lambda x: x.t(), lambda x: x[0, :3], lambda x: x[1, 2]])
def test_dropout_is_the_product_with_its_mask(part, dtype, p):
    """Whatever computes it, to the bit, infinities and zeros' signs among them; and so are its derivatives."""
    values = np.random.default_rng(0).standard_normal((37, 41))
    values[1, :5] = np.inf, -np.inf, -0.0, 1e30, 0.0
    x = tinytorch.tensor(values, dtype=getattr(tinytorch, dtype))
    x = part(x).detach().requires_grad_()
    g, found = x.detach().clone().requires_grad_(), []
    for dropped in (tinytorch.nn.functional.dropout, lambda x, p: x * dropout_mask(x, p)):
        tinytorch.manual_seed(4)
        y = dropped(x, p)
        (plain,) = tinytorch.autograd.grad(y, x, g, retain_graph=True)
        (again,) = tinytorch.autograd.grad(y, x, g, create_graph=True)
        (second,) = tinytorch.autograd.grad(again, g, tinytorch.full_like(x, 1.5))
        found.append([*map(bits, (y, plain, again, second)), y.stride(), tinytorch.rand(1).item()])
    assert found[0] == found[1]


def test_dropout_keeps_a_byte_of_an_element():
    x = tinytorch.ones(4096, requires_grad=True)
    before = tinytorch.cpu.memory_allocated()
    y = tinytorch.nn.functional.dropout(x)
    assert tinytorch.cpu.memory_allocated() - before - y.nbytes < 3 * 4096


def test_counts(torch):
    """Means and variances of their distributions, also at the ends; the dtype, gradients and errors of PyTorch."""
    for rate in (0.0, 0.5, 20.0, 1e4):
        drawn = tinytorch.poisson(tinytorch.full((N,), rate, dtype=tinytorch.float64)).numpy()
        assert (drawn == np.rint(drawn)).all() and abs(drawn.mean() - rate) <= 5 * math.sqrt(rate / N)
        assert abs(drawn.var() - rate) <= rate / 20
    for count, p in ((10.0, 0.3), (1e4, 0.5), (7.9, 1.0), (5.0, 0.0), (-1.0, 0.5)):
        drawn = tinytorch.binomial(tinytorch.full((N,), count), tinytorch.tensor(p)).double().numpy()
        n = max(math.floor(count), 0)
        assert (drawn == np.rint(drawn)).all() and abs(drawn.mean() - n * p) <= 5 * math.sqrt(n * p * (1 - p) / N)
        assert abs(drawn.var() - n * p * (1 - p)) <= n * p * (1 - p) / 20
    huge = tinytorch.poisson(tinytorch.tensor(1e20, dtype=tinytorch.float64))
    assert abs(huge.item() / 1e20 - 1) < 1e-8
    for m in (tinytorch, torch):
        half, x = m.tensor([3.0], dtype=m.float16), m.ones(3, requires_grad=True)
        assert m.poisson(half).dtype == m.float16 and m.binomial(half.double(), half.double()).dtype == m.float64
        assert m.binomial(m.ones(3, 1), m.ones(2)).shape == (3, 2)
        assert math.isnan(m.binomial(m.tensor(3.0), m.tensor(math.nan)).item())
        m.poisson(x).sum().backward()
        assert x.grad.tolist() == [0, 0, 0]
        for error, call in (
            (NotImplementedError, lambda: m.poisson(m.tensor([1]))),  # noqa: B023
            (RuntimeError, lambda: m.poisson(m.tensor([-1.0]))),  # noqa: B023
            (RuntimeError, lambda: m.poisson(m.tensor([math.nan]))),  # noqa: B023
            (ValueError, lambda: m.binomial(m.tensor([1]), m.tensor([1]))),  # noqa: B023
            (RuntimeError, lambda: m.binomial(m.ones(1), m.ones(1, dtype=m.float64))),  # noqa: B023
        ):
            with pytest.raises(error):
                call()


def test_like():
    x = tinytorch.zeros(2, 3, dtype=tinytorch.float64)
    for like in (tinytorch.rand_like, tinytorch.randn_like):
        assert like(x).shape == (2, 3) and dtype_name(like(x)) == "float64"
    with pytest.raises((RuntimeError, NotImplementedError)):
        tinytorch.rand(2, dtype=tinytorch.int64)
