"""The setting ``approximate``: functions of the special function units, in eager and in fused mode alike. An emulated
unit is exact, so that only a GPU shows its errors; what else there is to the setting shows on both."""

import numpy as np
import pytest
from gpu.test_fuse import HOT, same

import tinytorch
from tinytorch.backends.cpu import lib
from tinytorch.backends.cuda import kernels
from tinytorch.backends.cuda.source import name_of
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


def ulps(x):
    """Of float32, where it is no denormal number."""
    return np.spacing(np.maximum(np.abs(x), TINY).astype(np.float32)).astype(np.float64)


TINY = 2.0**-126
SIZE = np.abs(FLOATS)
FUNCTIONS = {  # and the bounds in kernels/cuda/device/approximate.cuh, of the rounded result too
    "exp": (tinytorch.exp, np.exp, lambda y: (2.5 + 1.2 * SIZE) * ulps(y)),
    "log": (tinytorch.log, np.log, lambda y: np.where((FLOATS > 0.5) & (FLOATS < 2), 2e-7, 4 * ulps(y))),
    "tanh": (tinytorch.tanh, np.tanh, lambda y: 2 * ulps(y)),
    "sigmoid": (tinytorch.sigmoid, lambda x: 1 / (1 + np.exp(-x)), lambda y: (5 + 1.2 * SIZE) * ulps(y)),
    "silu": (F.silu, lambda x: x / (1 + np.exp(-x)), lambda y: (5 + 1.2 * SIZE) * ulps(y)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_keep_their_bounds(approximate, name):
    run, exact, bound = FUNCTIONS[name]
    got = run(tinytorch.from_numpy(FLOATS).to("cuda")).cpu().numpy().astype(np.float64)
    with np.errstate(all="ignore"):
        wanted = exact((FLOATS if name != "log" else np.where(SIZE < TINY, 0, FLOATS)).astype(np.float64))
        if name == "silu":  # infinity times 0
            wanted[-np.inf == FLOATS] = np.nan
        largest = float(np.finfo(np.float32).max)
        tiny = np.abs(wanted) < TINY * (1.2 * SIZE if name == "silu" else 1)
        normal, huge = (np.abs(wanted) < largest * (1 - 1e-5)) & ~tiny, np.abs(wanted) > largest * (1 + 1e-5)
        error = np.abs(got - wanted)
        np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
        assert (got[huge] == np.sign(wanted[huge]) * np.inf).all()
        assert (error[normal] <= bound(wanted)[normal]).all()
        assert (error[tiny] <= np.abs(wanted[tiny]) + bound(wanted)[tiny]).all()


@pytest.mark.parametrize("form", ["none", "tanh"])
def test_gelu_and_its_derivative_keep_theirs(approximate, form):
    x = FLOATS[SIZE < 1e4]
    x = np.concatenate([x, np.linspace(-15, 15, 20_011, dtype=np.float32), np.float32([np.nan, np.inf])])
    exact, got = (tinytorch.from_numpy(x).double(), tinytorch.from_numpy(x).to("cuda"))
    results = []
    for at in (exact, got):
        at = at.requires_grad_()
        y = F.gelu(at, approximate=form)
        results.append([t.detach().cpu().double().numpy() for t in (y, *tinytorch.autograd.grad(y.sum(), at))])
    (wanted, slope), (y, g) = results
    np.testing.assert_array_equal(np.isnan(y), np.isnan(wanted))
    of = np.isfinite(wanted)
    x = np.abs(x[of].astype(np.float64))
    z = np.minimum(1.6 * x + 0.0714 * x**3, 100)
    bound = (16 + 2 * np.minimum(x, 20) ** 2 if form == "none" else 6 + 3 * z) * ulps(wanted[of])
    assert (np.abs(y[of] - wanted[of]) <= np.maximum(bound, TINY * x)).all()
    assert (np.abs(g - slope)[of] <= 1e-6).all()


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


def test_a_kernel_that_is_compiled_while_the_setting_changes_is_of_the_old_one(x, monkeypatch):
    def load(*args):
        tinytorch.config(approximate=0)
        return compiled(*args)

    compiled, h = kernels.load, x.to(tinytorch.bfloat16)
    with tinytorch.config(approximate=1):
        monkeypatch.setattr(kernels, "load", load)
        h.sigmoid()
    monkeypatch.undo()
    assert same(h.sigmoid(), h.cpu().sigmoid())


def test_a_graph_keeps_the_functions_that_it_was_recorded_with(x):
    exact, graph = x.exp(), tinytorch.cuda.CUDAGraph()
    with tinytorch.cuda.graph(graph):
        y = x.exp()
    with tinytorch.config(approximate=1):
        graph.replay()
        assert same(y, exact)


def test_an_error_of_what_was_recorded_leaves_the_setting_as_it_was(x, monkeypatch):
    def fail(*args):
        raise RuntimeError("refused")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="refused"):
        patch.setattr("tinytorch.backends.cuda.runtime.check", fail)
        tinytorch.config(approximate=1)
    assert tinytorch.config.get("approximate") == 0 and not lib.tt_cuda_approximate


def test_fused_kernels_have_one_name():
    assert {name_of(lib.tt_fused_key(number)) for number in (1, 256, 2560, 70_000)} == {"fused"}
