"""Recordings beyond every limit: length, kernels, storages, numbers, dimensions, rows."""

import contextlib

import pytest

import tinytorch
from fuse.helpers import pending, ramp, same

pytestmark = pytest.mark.usefixtures("interpreted")


def both(fn):
    """fn()'s tensors eagerly and fused are equal."""
    wanted = fn()
    with tinytorch.fuse():
        got = fn()
    assert len(wanted) == len(got)
    for k, (w, g) in enumerate(zip(wanted, got)):
        assert same(w, g), f"result {k}"


def test_a_recording_longer_than_fits():
    def run():
        y = ramp(33)
        for k in range(5000):
            y = y * 0.999 + (0.001 if k % 2 else -0.001)
        return [y]

    both(run)


def test_a_long_recording_whose_values_all_live():
    def run():
        values = [ramp(5)]
        for k in range(3000):
            values.append(values[-1] * 1.001 - values[k // 2])
        return values

    both(run)


def test_many_storages():
    def run():
        leaves = [ramp(3) + k for k in range(6000)]
        return [sum(leaves[k::600]) for k in range(600)]

    both(run)


def test_one_operator_on_many_tensors_of_the_caller():
    leaves = [ramp(3) + k for k in range(5000)]
    both(lambda: [x * 2 for x in leaves])


def test_many_numbers():
    def run():
        y = ramp(7)
        for k in range(6000):
            y = y + k * 1.37e-5
        return [y]

    both(run)


def test_a_kernel_of_many_results():
    def run():
        x = ramp(1500)
        return [(x * k).sin() for k in range(300)]

    both(run)


def test_a_kernel_of_many_operands():
    leaves = [ramp(1500) + k for k in range(300)]
    both(lambda: [sum(leaves)])


def test_a_wide_tree():
    def run():
        level = [ramp(64) * k for k in range(256)]
        while len(level) > 1:
            level = [a * 0.5 + b.tanh() for a, b in zip(level[::2], level[1::2])]
        return level

    both(run)


@pytest.mark.parametrize("ndim", [1, 5, 8, 15, 16])
def test_dimensions(ndim):
    shape = tuple(2 if d % 3 == 0 else 1 for d in range(ndim))

    def run():
        x = ramp(*shape)
        y = x.permute(*reversed(range(ndim))) if ndim > 1 else x
        z = (x + y.reshape(shape)) * 2
        w = z.transpose(0, -1) + 1
        return [z, w, w.sum(0), w.mean(-1, keepdim=True), (w * w).sum()]

    both(run)


@pytest.mark.parametrize(
    "shape",
    [
        (3, 32767),
        (2, 32768),
        (2, 32769),
        (1, 100_003),
        (40_000, 2),
        (70, 1023),
        (9, 1024),
        (9, 1025),
        (1, 1),
        (0, 5),
        (5, 0),
        (257, 129),
    ],
)
def test_rows(shape):
    """Softmax, normalisation and sums over rows short and long, and down columns."""

    def run():
        x = ramp(*shape) * 3 + 0.1
        found = [
            tinytorch.softmax(x * 2, -1) + 1,
            tinytorch.log_softmax(x, 0),
            (x * x).sum(0),
            (x * 2).sum(1) * 3,
            x - x.mean(1, keepdim=True),
            (x.exp() + 1).sum(),
            x.transpose(0, 1).sum(1),
            x.t().mean(0),
        ]
        if x.numel():
            found += [(x + 1).amax(0), (x - 1).amin(1, keepdim=True) + x, x.argmax(1), x.std(), x.var(0)]
        return found

    both(run)


def test_sizes_around_a_block():
    for n in (1, 2, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 2047, 2048, 2049, 32767, 32768, 32769, 65537):
        both(lambda n=n: [(ramp(n) * 2).tanh() + 1, (ramp(n) * 2).sum(), ramp(n).half() * 3, ramp(n) > 0.5])


def test_recordings_of_many_shapes():
    """Every program is another: the cache of programs must not grow without bound, nor mix them up."""

    def run():
        return [(ramp(n) * 2 + 1).tanh().sum(0, keepdim=True) + ramp(n) for n in range(1, 1500)]

    wanted = run()
    for k, w in enumerate(wanted):
        with tinytorch.fuse():
            got = (ramp(k + 1) * 2 + 1).tanh().sum(0, keepdim=True) + ramp(k + 1)
        assert same(got, w)
    assert pending() == 0


def test_a_deep_graph_backward():
    def run():
        x = ramp(4).requires_grad_()
        y = x
        for _ in range(20_000):
            y = y * 1.00001
        (g,) = tinytorch.autograd.grad(y.sum(), x)
        return [y.detach(), g]

    both(run)


def test_entering_and_leaving_many_times():
    x = ramp(5)
    with contextlib.ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(tinytorch.fuse())
        y = x * 2
        assert pending() == 1
    assert pending() == 0 and same(y, x * 2)
