"""Random numbers, ranges and samples on devices: the CPU's, for the same seed."""

import numpy as np
import pytest
import tinytorch as tt

KINDS = {
    "uniform_": (-1, 3),
    "normal_": (1, 2),
    "log_normal_": (),
    "exponential_": (2,),
    "cauchy_": (),
    "geometric_": (0.3,),
    "bernoulli_": (0.4,),
}


def bits(t):
    return t.cpu().contiguous().reshape(-1).view(tt.uint8).numpy()


def check(make):
    """What ``make(device)`` draws is the same everywhere, from the same seed."""
    results = []
    for device in ("cpu", "cuda"):
        tt.manual_seed(5)
        made = make(device)
        assert made.device.type == device
        results.append(made)
    assert results[0].shape == results[1].shape and results[0].dtype == results[1].dtype
    np.testing.assert_array_equal(*map(bits, results))


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(gpu, kind):
    for shape in ((0,), (), (63,), (65,), (7, 300)):
        check(lambda device, shape=shape: getattr(tt.empty(shape, device=device), kind)(*KINDS[kind]))
    check(lambda device: getattr(tt.empty(1025, dtype=tt.bfloat16, device=device), kind)(*KINDS[kind]))


@pytest.mark.parametrize("kind", ["uniform_", "bernoulli_"])
def test_float64(gpu, kind):
    check(lambda device: getattr(tt.empty(130, dtype=tt.float64, device=device), kind)(*KINDS[kind]))


def test_integers(gpu):
    check(lambda device: tt.randint(3, 100, (130,), device=device))
    check(lambda device: tt.randint(3, 100, (130,), dtype=tt.uint8, device=device))
    check(lambda device: tt.empty(100, dtype=tt.int64, device=device).random_(-5, 1 << 50))
    check(lambda device: tt.empty(100, dtype=tt.int64, device=device).random_(-(1 << 63), (1 << 63) - 1))
    check(lambda device: tt.empty(100, dtype=tt.bool, device=device).bernoulli_(0.5))


def test_strides(gpu):
    check(lambda device: tt.zeros((4, 5, 3), device=device).transpose(0, 2).uniform_())
    check(lambda device: tt.zeros((4, 5), device=device)[:, ::2].normal_())


def test_each_probability_by_itself(gpu):
    p = tt.tensor(np.random.default_rng(0).random(300))
    check(lambda device: tt.bernoulli(p.to(device)))
    check(lambda device: tt.bernoulli(p.float().to(device)))


def test_draws_follow_each_other(gpu):
    tt.manual_seed(3)
    first, second = tt.randn(5, device="cuda"), tt.randn(5, device="cuda")
    assert not tt.equal(first, second)
    tt.manual_seed(3)
    assert tt.equal(tt.randn(5, device="cuda"), first)


def test_randperm_and_dropout(gpu):
    for n in (0, 1, 2, 3, 65, 2000, 50_000):
        check(lambda device, n=n: tt.randperm(n, device=device))
    check(lambda device: tt.randperm(20, dtype=tt.int32, device=device))
    check(lambda device: tt.randperm(2000, dtype=tt.float16, device=device))
    check(lambda device: tt.nn.functional.dropout(tt.ones(1000, device=device), 0.3))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
def test_dropout(gpu, dtype):
    values = tt.tensor(np.random.default_rng(0).standard_normal(5003), dtype=getattr(tt, dtype))
    values[:4] = tt.tensor([np.inf, -np.inf, -0.0, 0.0])
    for part in (slice(None), slice(1, None), slice(3, 4), slice(0, 4992), slice(0, 0)):  # aligned or not, with an end

        def run(device, part=part):
            x = values.to(device)[part].requires_grad_()
            y = tt.nn.functional.dropout(x, 0.3)
            return tt.stack([y, *tt.autograd.grad(y, x, x.detach())]).nan_to_num(3.0)

        check(run)


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial(gpu, replacement):
    weights = np.random.default_rng(0).random((3, 1500))
    weights[:, ::3] = 0
    for samples in (1, 7):
        check(lambda device, n=samples: tt.multinomial(tt.tensor(weights).to(device), n, replacement))
    check(lambda device: tt.multinomial(tt.tensor([0.0, 1, 0, 2, 0]).to(device), 5, replacement))


def test_variates(gpu):
    """Where a logarithm of the device's has other last bits, a variate may be rejected: few are."""
    shapes = tt.tensor(np.logspace(-3, 4, 500))
    rates, trials = tt.tensor(np.logspace(-2, 12, 500)), tt.tensor(np.logspace(0, 13, 500)).floor()
    chances = tt.tensor(np.random.default_rng(0).random(500))

    def draw(device):
        tt.manual_seed(5)
        at = [x.to(device) for x in (shapes, rates, trials, chances)]
        gradient = tt._standard_gamma_grad(at[0], at[0] * 1.3), tt._dirichlet_grad(at[3], at[0], at[0] + 2)
        drawn = tt._standard_gamma(at[0]), tt.poisson(at[1]), tt.binomial(at[2], at[3])
        return [x.cpu().numpy() for x in (*gradient, *drawn, tt._sample_dirichlet(at[0].view(50, 10)))]

    for here, there in zip(draw("cpu"), draw("cuda")):
        assert np.isclose(there, here, rtol=1e-9).mean() > 0.99
    assert tt.poisson(tt.tensor([-1.0], device="cuda")).isnan().item()
    for dtype in (tt.float32, tt.float16, tt.bfloat16):
        check(lambda device, dtype=dtype: tt.poisson(tt.full((700,), 3.5, dtype=dtype, device=device)))
    assert tt._standard_gamma(tt.full((50,), 1e-4, device="cuda")).min().item() >= tt.finfo(tt.float32).tiny


@pytest.mark.parametrize(
    "row, message",
    [
        ([-1.0, 2], "element < 0 in row 1"),
        ([float("nan"), 1], "`nan`"),
        ([float("inf"), 1], "`inf`"),
        ([0.0, 0], "sum of probabilities <= 0"),
    ],
)
def test_no_distribution(gpu, row, message):
    with pytest.raises(RuntimeError, match=message):
        tt.multinomial(tt.tensor([[1.0, 1], row], device="cuda"), 1)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int64", "uint8"])
def test_ranges(gpu, dtype):
    dtype = getattr(tt, dtype)
    check(lambda device: tt.arange(3, 100, 3, dtype=dtype, device=device))
    check(lambda device: tt.linspace(-3 if dtype.is_signed else 0, 10, 37, dtype=dtype, device=device))
    check(lambda device: tt.eye(3, 5, dtype=dtype, device=device))


def test_ranges_of_numbers(gpu):
    check(lambda device: tt.arange(0, 1, 0.001, device=device))
    check(lambda device: tt.arange(0, device=device))
    check(lambda device: tt.linspace(3, 4, 1, device=device))
    np.testing.assert_allclose(tt.logspace(-3, 4, 50, device="cuda").cpu(), np.logspace(-3, 4, 50), rtol=1e-6)


@pytest.mark.parametrize("offset", [-12, -3, -1, 0, 1, 2, 5, 100])
def test_triangles(gpu, offset):
    for rows, cols in ((0, 3), (3, 0), (1, 4), (7, 4), (4, 9)):
        check(lambda device, r=rows, c=cols: tt.tril_indices(r, c, offset, device=device))
        check(lambda device, r=rows, c=cols: tt.triu_indices(r, c, offset, device=device))
