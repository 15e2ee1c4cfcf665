"""Operators with too little to fuse are left to eager mode: Note [Too little to fuse] in kernels/fuse/fuse.h."""

import contextlib
import functools
import random
from concurrent.futures import ThreadPoolExecutor

import pytest

import tinytorch
from fuse.helpers import chain, ramp, same

CALLS = 60
LARGE = 100  # so many rows and columns that operators are not left
MIDDLE = 60  # so many that three operators are worth fusing, and two are not
pytestmark = pytest.mark.usefixtures("interpreted", "worth")


@pytest.fixture
def worth(eager, library):
    """Fused mode as users have it; the other tests here have small tensors recorded."""
    with library.config(fuse_worth=32768):
        yield


def step(x, w, between=lambda y: y):
    """Products, between them one operator that nothing can be fused with."""
    y = between(x @ w)
    return (y @ w).sigmoid() @ w


def recorded(call) -> tuple:
    """The results of many fused calls, and how many operators each of them recorded."""
    results, counts = [], []
    for _ in range(CALLS):
        before = tinytorch.fuse.stats()["recorded"]
        with tinytorch.fuse():
            results.append(call())
        counts.append(tinytorch.fuse.stats()["recorded"] - before)
    return results, counts


def in_a_thread(test):
    """What a thread has learned about its programs ends with it."""

    @functools.wraps(test)
    def run(**parameters):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(test, **parameters).result()

    return run


@in_a_thread
def test_operators_that_end_up_alone_are_left_to_eager_mode():
    x, w = ramp(5, 5), ramp(5, 5) / 7
    results, counts = recorded(lambda: step(x, w, tinytorch.tanh))
    wanted = step(x, w, tinytorch.tanh)
    assert all(same(result, wanted) for result in results)
    assert max(counts) == 2 and counts[-8:].count(0) >= 6, counts


@in_a_thread
def test_fusion_of_small_tensors_spares_nothing():
    x, w = ramp(5, 5), ramp(5, 5) / 7
    results, counts = recorded(lambda: step(x, w, chain))
    assert all(same(result, step(x, w, chain)) for result in results)
    assert max(counts) >= 6 and counts[-8:].count(0) >= 6, counts


@in_a_thread
def test_a_lone_operator_is_counted_once():
    """Its turn comes once, though the path of small tensors and the general one ask about it."""
    x, w = ramp(5, 5), ramp(5, 5) / 7

    def loop():
        y = x
        for _ in range(3):
            y = (y + (y @ w).tanh() @ w * 0.5) @ w
        return y

    results, counts = recorded(loop)
    assert all(same(result, loop()) for result in results)
    assert counts[-8:].count(0) >= 6, counts


@in_a_thread
def test_operators_in_place_are_left_too():
    x, w = ramp(5, 5), ramp(5, 5) / 7

    def call():
        return (x @ w).add_(1).mul_(w).tanh_() @ w

    results, counts = recorded(call)
    assert all(same(result, call()) for result in results)
    assert max(counts) == 3 and counts[-8:].count(0) >= 6, counts


@in_a_thread
def test_what_can_be_fused_goes_on_being_recorded():
    x, w = ramp(LARGE, LARGE), ramp(LARGE, LARGE) / 7 / LARGE
    results, counts = recorded(lambda: step(x, w, chain))
    assert all(same(result, step(x, w, chain)) for result in results)
    assert counts[-1] >= 6


@in_a_thread
def test_other_operators_in_their_place_are_recorded():
    x, w = ramp(LARGE, LARGE), ramp(LARGE, LARGE) / 7 / LARGE
    recorded(lambda: step(x, w, tinytorch.tanh))
    results, counts = recorded(lambda: step(x, w, chain))
    assert all(same(result, step(x, w, chain)) for result in results)
    assert min(counts) >= 6


@in_a_thread
def test_what_was_left_is_looked_at_again():
    """Three operators that are worth fusing, of which the first was left to eager mode, and so the others, too."""
    x, w, few = ramp(MIDDLE, MIDDLE), ramp(MIDDLE, MIDDLE) / 7 / MIDDLE, ramp(5)
    longer = lambda y: y.tanh().exp().neg()  # noqa: E731
    recorded(lambda: step(x, w, tinytorch.tanh))
    assert recorded(lambda: step(x, w, longer))[1][-1] == 0

    def often():
        y, z = few, step(x, w, longer)
        for _ in range(1000):
            y = y * few
        return z + (y @ y)

    results, counts = recorded(often)
    assert all(same(result, often()) for result in results)
    assert min(counts[-8:]) == 3, counts


@in_a_thread
def test_the_order_of_programs_does_not_matter():
    """What follows a program was foretold from those before it, and recorded where it came otherwise."""
    x, w, order = ramp(5, 5), ramp(5, 5) / 7, random.Random(3)
    parts = [tinytorch.tanh, chain, lambda y: y.relu() + y, lambda y: y.sum(0) * y, lambda y: y.exp().sqrt()]

    def call(chosen):
        y = x
        for part in chosen:
            y = part(y) @ w
        return y

    counts = []
    for _ in range(CALLS):
        chosen = order.choices(parts, k=12)
        before = tinytorch.fuse.stats()["recorded"]
        with tinytorch.fuse():
            result = call(chosen)
        counts.append(tinytorch.fuse.stats()["recorded"] - before)
        assert same(result, call(chosen))
    assert counts[-8:].count(0) == 8, counts


@in_a_thread
@pytest.mark.parametrize("rows", ["softmax", "log_softmax", "logsumexp", "var", "std"])
def test_operators_of_several_nodes_are_left(rows):
    """They are recorded only where their rows are."""
    x, w = ramp(6, 64), ramp(64, 64) / 50

    def call():
        return getattr((x * 2 + 1).tanh(), rows)(1).sum() + (x @ w).sum()

    results, counts = recorded(call)
    assert all(same(result, call()) for result in results)
    assert max(counts) > 6 and counts[-8:].count(0) >= 6, counts


@in_a_thread
def test_a_node_of_an_operator_of_several_is_recorded_whatever_was_left():
    """The derivative of log_softmax is recorded where the gradient is; of its nodes one reads what is there already."""
    x, wanted = ramp(6, 64).requires_grad_(), None
    with tinytorch.fuse():
        for _ in range(50):
            x.detach().exp()
    for fused in (False, True):
        with tinytorch.fuse() if fused else contextlib.nullcontext():
            before = tinytorch.fuse.stats()
            y = x.log_softmax(1)
            (got,) = tinytorch.autograd.grad(y, x, (x.detach() * 3 + 1).sin())
            assert wanted is None or same(got, wanted)
            wanted = got
    after = tinytorch.fuse.stats()
    assert after["left"] == before["left"] and after["recorded"] - before["recorded"] == 7


@in_a_thread
def test_nothing_is_left_if_all_is_worth_recording():
    x, w = ramp(5, 5), ramp(5, 5) / 7
    with tinytorch.config(fuse_worth=0):
        _, counts = recorded(lambda: step(x, w, tinytorch.tanh))
    assert set(counts) == {2}


@in_a_thread
def test_operators_left_are_counted():
    x, w = ramp(5, 5), ramp(5, 5) / 7
    recorded(lambda: step(x, w, tinytorch.tanh))
    before = tinytorch.fuse.stats()
    recorded(lambda: step(x, w, tinytorch.tanh))
    after = tinytorch.fuse.stats()
    assert sum(after[name] - before[name] for name in ("left", "recorded")) == 2 * CALLS


@in_a_thread
def test_random_numbers_are_those_of_eager_mode():
    w = ramp(5, 5) / 7

    def draw():
        return (tinytorch.rand(5, 5) @ w).tanh() @ w

    tinytorch.manual_seed(3)
    wanted = [draw() for _ in range(CALLS)]
    tinytorch.manual_seed(3)
    results, counts = recorded(draw)
    assert all(map(same, results, wanted))
    assert sum(counts[-8:]) < 8 * max(counts), counts
