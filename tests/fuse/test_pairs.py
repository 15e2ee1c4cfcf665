"""Pairs (TT_PAIRS in kernels/scalar/ops.h): an operator and the kernel of its derivative, of the same x, which the
interpreter runs in one loop, have the bits of eager mode; and they do run together where they can, and only there."""

import numpy as np
import pytest

import tinytorch
from fuse.snapshot import bits
from fuse.test_superinstructions import EDGES, ISAS, agree, backward, instruction_set
from tinytorch import fuse
from tinytorch.nn import functional as F
from tinytorch.scalar import ELEMENTWISE

pytestmark = pytest.mark.usefixtures("interpreted")

PAIRS = {"gelu": F.gelu, "silu": F.silu}
DTYPES = ("float32", "float64", "float16", "bfloat16")


def normal(shape, dtype="float32", seed=0):
    """Random numbers, the first of them special."""
    a = 3 * np.random.default_rng(seed).standard_normal(shape)
    a.ravel()[: len(EDGES)] = np.roll(EDGES, seed)[: a.size]
    return tinytorch.tensor(a).to(getattr(tinytorch, dtype))


def pairs(run):
    """Of the program that run() makes: for each pair, its two operators; and how many instructions there are."""
    found, total = [], [0]

    def look(run):
        for kernel in run.program.kernels[0 : run.program.num_kernels]:
            instrs = kernel.instrs[0 : kernel.num_instrs]
            names = [ELEMENTWISE[i.op].name for i in instrs]
            found.extend((names[at], names[at + 1]) for at, i in enumerate(instrs) if i.pair)
            total[0] += len(instrs)

    end = fuse.listeners.subscribe(fuse.listeners.RUNS, look)
    try:
        with tinytorch.fuse():
            values = run()
    finally:
        end()
    assert values is not None
    return found, total[0]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", PAIRS)
def test_bits(name, dtype, isa):
    f = PAIRS[name]
    with instruction_set(isa):
        for n in (1, 14, 15, 16, 17, 333, 1024, 5001):
            x, g = normal(n, dtype), normal(n, dtype, 1)
            agree(lambda: [f(x), backward(f)(g, x)], n)  # noqa: B023 (it is called at once)
            agree(lambda: [f(x + g) * 2.0, backward(f)(g - x, x + g) + g], n)  # noqa: B023


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("name", PAIRS)
def test_special_values(name, isa):
    """All pairs of them, among them denormal numbers; and what is huge."""
    f = PAIRS[name]
    edges = np.concatenate([EDGES, np.float32([1e30, -1e30, 14.5, -14.5, 110, -110, -103.9, 2.0**-149])])
    x, g = (tinytorch.tensor(a) for a in (np.repeat(edges, len(edges)), np.tile(edges, len(edges))))
    with instruction_set(isa):
        agree(lambda: [f(x), backward(f)(g, x)], isa)


@pytest.mark.parametrize("shape", [(64, 1000), (300, 96), (1000, 17), (3, 5000), (2, 3, 700)])
@pytest.mark.parametrize("name", PAIRS)
def test_with_reductions_and_broadcasts(name, shape):
    """A layer's bias, residual and derivatives: blocks of rows, columns and all; operands in another order."""
    f = PAIRS[name]
    x, bias, residual, g = normal(shape), normal(shape[-1], seed=1), normal(shape, seed=2), normal(shape, seed=3)
    turned = normal(shape[::-1], seed=4).permute(*reversed(range(len(shape))))

    def run():
        z = x + bias
        slope = backward(f)(g, z)
        rows = backward(f)(turned, residual)
        return [residual + f(z), slope, slope.sum(0), rows, f(residual) / rows.sum(-1, keepdim=True), f(turned).sum()]

    threads = tinytorch.get_num_threads()
    try:
        for n in (1, 2, 7):
            tinytorch.set_num_threads(n)
            agree(run, n)
    finally:
        tinytorch.set_num_threads(threads)


def test_they_run_together():
    x, g = normal(5000), normal(5000, seed=1)
    slope = backward(F.gelu)
    together = [("gelu", "gelu_backward")]
    assert pairs(lambda: [F.gelu(x), slope(g, x)]) == (together, 2)
    assert pairs(lambda: [slope(g, x), F.gelu(x)]) == (together, 2)
    assert pairs(lambda: [F.gelu(x), g.exp(), slope(g, x)]) == (together, 3)
    assert pairs(lambda: [F.gelu(x), slope(g.exp(), x)]) == (together, 3)
    assert pairs(lambda: [F.gelu(x + g), slope(g, x + g), F.silu(x), backward(F.silu)(g, x)]) == (
        [*together, ("silu", "silu_backward")],
        5,
    )
    assert pairs(lambda: [(F.gelu(x) * 2.0 + g).abs(), slope(g.exp() - x, x)]) == (together, 7)
    assert pairs(lambda: [F.gelu(x.half()), slope(g.half(), x.half())])[0] == together


def test_they_do_not():
    x, g = normal(5000), normal(5000, seed=1)
    slope = backward(F.gelu)
    for run in (
        lambda: [slope(F.gelu(x), x)],  # one wants the other
        lambda: [slope(F.gelu(x).exp(), x)],
        lambda: [F.gelu(x), slope(g, g)],  # of another x
        lambda: [F.silu(x), slope(g, x)],  # no pair
        lambda: [F.gelu(x.double()), slope(g.double(), x.double())],  # no loop
    ):
        assert pairs(run)[0] == []
        agree(run, "alone")


def test_more_than_one_of_each():
    """An operator is part of one pair at most."""
    x, g, h = normal(5000), normal(5000, seed=1), normal(5000, seed=2)
    slope = backward(F.gelu)

    def run():
        return [F.gelu(x), slope(g, x), slope(h, x), slope(F.gelu(h), h), F.gelu(g) - slope(x, g), slope(x, x)]

    assert pairs(run)[0] == [("gelu", "gelu_backward")] * 2
    agree(run, "several")


def test_one_pair_may_part_another():
    """The inner derivative wants what comes after the outer operator; its own operator does not."""
    x, g, u = normal(5000), normal(5000, seed=1), normal(5000, seed=2)
    slope = backward(F.gelu)

    def run():
        y = F.gelu(x)
        inner = F.gelu(u)
        return [y, inner, slope(y, u), slope(g, x)]

    agree(run, "parted")
    assert ("gelu", "gelu_backward") in pairs(run)[0]


def test_in_place():
    """Neither result may be written where the other still looks."""

    def run(f):
        x, g = normal(3000), normal(3000, seed=1)
        y, slope = f(x), backward(f)(g, x)
        x.copy_(y)
        g.copy_(slope)
        del y, slope
        a, b = normal(3000), normal(3000, seed=1)
        y, slope = f(a), backward(f)(b, a)
        a.copy_(slope)
        b.copy_(y)
        del y, slope
        return [x, g, a, b]

    for f in PAIRS.values():
        eager = run(f)
        with tinytorch.fuse():
            fused = run(f)
        assert [bits(v) for v in eager] == [bits(v) for v in fused]
