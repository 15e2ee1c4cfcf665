"""Traces with too little to fuse are left to eager mode: Note [Too little to fuse] in kernels/fuse/fuse.h."""

import functools
from concurrent.futures import ThreadPoolExecutor

import pytest

import tinytorch
from fuse.helpers import chain, ramp, same

CALLS = 60
LARGE = 100  # so many rows and columns that fusion spares something
pytestmark = pytest.mark.usefixtures("interpreted")


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
    def run():
        with ThreadPoolExecutor(1) as pool:
            pool.submit(test).result()

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
    """It was asked for by the path of small tensors and by the general one, and so stood for two of the program's."""
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
def test_more_operators_of_which_the_first_is_the_same():
    """What was left to eager mode is looked at again, after a while."""
    x, w = ramp(LARGE, LARGE), ramp(LARGE, LARGE) / 7 / LARGE
    longer = lambda y: y.tanh().exp().neg()  # noqa: E731
    recorded(lambda: step(x, w, tinytorch.tanh))
    results, counts = [], []
    for _ in range(3):
        more = recorded(lambda: step(x, w, longer))
        results, counts = results + more[0], counts + more[1]
    assert all(same(result, step(x, w, longer)) for result in results)
    assert max(counts[-8:]) >= 3, counts


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
