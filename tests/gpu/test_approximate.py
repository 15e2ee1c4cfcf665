"""The setting ``approximate``: functions of the special function units, in eager and in fused mode alike. An emulated unit
is exact, so that only a GPU shows its errors; what else there is to the setting shows on both."""

import numpy as np
import pytest
from gpu.test_fuse import HOT, same

import tinytorch
from tinytorch.nn import functional as F

FLOATS = np.arange(0, 1 << 32, 40_009, dtype=np.int64).astype(np.uint32).view(np.float32)  # everywhere


def chain(x):
    a = (x * 0.5).exp().log() + 1
    return a.tanh() * (-a * a).exp() + F.silu(x).sigmoid()


@pytest.fixture
def x(gpu):
    return tinytorch.linspace(-100, 100, 5003, device="cuda").roll(1)


@pytest.fixture
def approximate(gpu):
    with tinytorch.config(approximate=1):
        yield


def log_ulps(got, wanted):
    """Between 1/2 and 2 the error is an absolute one."""
    near = (FLOATS > 0.5) & (FLOATS < 2)
    return np.where(near, np.abs(got - wanted) / 2e-7, ulps(got, wanted) / 3.5)


def ulps(got, wanted):
    return np.abs(got - wanted) / np.spacing(np.maximum(np.abs(wanted), 2.0**-126).astype(np.float32))


FUNCTIONS = {
    "exp": (tinytorch.exp, np.exp, lambda *a: ulps(*a) / 2.6),
    "log": (tinytorch.log, np.log, log_ulps),
    "tanh": (tinytorch.tanh, np.tanh, lambda *a: ulps(*a) / 2),
    "sigmoid": (tinytorch.sigmoid, lambda x: 1 / (1 + np.exp(-x)), lambda *a: ulps(*a) / 5),
    "silu": (F.silu, lambda x: x / (1 + np.exp(-x)), lambda *a: ulps(*a) / 6),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_keep_their_bounds(approximate, name):
    run, exact, error = FUNCTIONS[name]
    got = run(tinytorch.from_numpy(FLOATS).to("cuda")).cpu().numpy().astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = exact(FLOATS.astype(np.float64))
        rounded = wanted.astype(np.float32)
        if name == "silu":
            wanted[FLOATS == -np.inf] = rounded[FLOATS == -np.inf] = np.nan
        finite = np.isfinite(rounded)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(rounded))
        np.testing.assert_array_equal(got[~finite & ~np.isnan(rounded)], rounded[~finite & ~np.isnan(rounded)])
        assert np.max(error(got, wanted), where=finite, initial=0) <= 1


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("program", [chain, lambda x: x.softmax(0), lambda x: x.logsumexp(0), lambda x: x.exp() * 2])
def test_fused_mode_gives_the_bits_of_eager_mode(x, approximate, program, dtype):
    x = x.to(getattr(tinytorch, dtype))
    eager, fused = program(x), tinytorch.fuse(program)
    for _ in range(HOT + 2):
        assert same(fused(x), eager)
        tinytorch.fuse.wait(60)


def test_other_functions_and_random_numbers_stay(x):
    def run():
        tinytorch.manual_seed(3)
        return x.erf(), x.sqrt(), x.log1p(), x.double().exp(), tinytorch.randn(1000, device="cuda")

    before = run()
    with tinytorch.config(approximate=1):
        assert all(map(same, run(), before))


def test_the_setting_changes_kernels_back_and_forth(x):
    exact = [x.exp(), x.exp()][1]
    with tinytorch.config(approximate=1):
        other = x.exp()
    assert same(x.exp(), exact)
    with tinytorch.config(approximate=1):
        assert same(x.exp(), other)
    assert not same(exact, other)


def test_what_is_recorded_is_computed_as_the_setting_was(x):
    with tinytorch.fuse():
        y = x.exp()
        with tinytorch.config(approximate=1):
            z = x.exp()
        exact = y.cpu()
    assert same(exact, x.exp()) and not same(z, exact)


def test_compiled_programs_follow_the_setting(x):
    fused = tinytorch.fuse(chain)
    for _ in range(HOT + 1):
        fused(x)
        tinytorch.fuse.wait(60)
    exact = fused(x)
    with tinytorch.config(approximate=1):
        assert same(fused(x), chain(x))
    assert same(fused(x), exact) and same(exact, chain(x))
