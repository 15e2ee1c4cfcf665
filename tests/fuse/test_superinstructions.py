"""Superinstructions (kernels/cpu/superinstructions.h): cheap operators that the interpreter runs together have the bits
of eager mode, in every combination and on every instruction set; and the interpreter does run them together."""

import contextlib
import operator
import pathlib
import re

import numpy as np
import pytest

import tinytorch
from fuse.snapshot import bits
from tinytorch import fuse
from tinytorch.backends.cpu import ffi, lib
from tinytorch.fuse import compiler
from tinytorch.fuse.flags import X86

pytestmark = pytest.mark.usefixtures("interpreted")

ISAS = ("baseline", "avx2", "avx512")
EDGES = np.array(
    [0.0, -0.0, 1.0, -1.0, np.nan, -np.nan, np.inf, -np.inf, 1e-42, -1e-42, 3.4e38, 0.5, -2.5, 1e-20], "f4"
)


def backward(f):
    """f's derivative at x, times g, as an operator that is recorded."""

    def run(g, x):
        with tinytorch.enable_grad():
            leaf = x.detach().requires_grad_()
            return tinytorch.autograd.grad(f(leaf), leaf, g)[0]

    return run


UNARY = {
    name: getattr(tinytorch, name) for name in ("neg", "abs", "sign", "square", "relu", "reciprocal", "sqrt", "rsqrt")
} | {"positive": lambda x: x**1}
BINARY = {
    name: getattr(tinytorch, name)
    for name in ("add", "sub", "mul", "div", "maximum", "minimum", "fmax", "fmin", "eq", "ne", "lt", "le", "gt", "ge")
}
BINARY |= {f"{name}_backward": backward(getattr(tinytorch, name)) for name in ("relu", "sigmoid", "tanh")}
TERNARY = {name: getattr(tinytorch, name) for name in ("clamp", "lerp", "addcmul", "addcdiv")}
TERNARY |= {"where": lambda x, y, z: tinytorch.where(x > 0.25, y, z)}
OPERATORS = {**UNARY, **BINARY, **TERNARY}
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
ORDERINGS = ("lt", "le", "gt", "ge")
LENGTHS = (1, 15, 16, 31, 127, 128, 129, 200, 1000, 1029, 5001)


@contextlib.contextmanager
def instruction_set(name):
    before = lib.tt_isa_name()
    if lib.tt_set_isa(name.encode()) != 0:
        pytest.skip(f"this machine has no {name}")
    try:
        yield
    finally:
        lib.tt_set_isa(before)


def operands(n=333, seed=0):
    """Three arrays with all pairs of special values among their elements."""
    rng = np.random.default_rng(seed)
    arrays = rng.standard_normal((3, n)).astype("f4")
    arrays[0, :196], arrays[1, :196] = np.repeat(EDGES, 14), np.tile(EDGES, 14)
    arrays[2, :196] = rng.permutation(arrays[0, :196])
    return [tinytorch.tensor(a) for a in arrays]


def arity(name):
    return 1 if name in UNARY else 2 if name in BINARY else 3


def chained(run):
    """How many instructions of the programs that run() flushes are in superinstructions, and how many there are."""
    counts = [0, 0]

    def look(run):
        for kernel in run.program.kernels[0 : run.program.num_kernels]:
            counts[0] += sum(
                c.end_instr - c.first_instr for c in kernel.superinstructions[0 : kernel.num_superinstructions]
            )
            counts[1] += kernel.num_instrs

    end = fuse.listeners.subscribe(fuse.listeners.RUNS, look)
    try:
        run()
    finally:
        end()
    return tuple(counts)


def num_steps(run):
    """Of the one kernel that run() makes."""
    counts = []
    end = fuse.listeners.subscribe(fuse.listeners.RUNS, lambda run: counts.append(run.program.kernels[0].num_steps))
    try:
        with tinytorch.fuse():
            value = run()
    finally:
        end()
    assert value is not None and len(counts) == 1
    return counts[0]


def agree(run, message):
    eager = run()
    with tinytorch.fuse():
        fused = run()
    for e, f in zip(eager, fused, strict=True):
        assert e.dtype == f.dtype and bits(e) == bits(f), message


def test_every_operator_of_a_chain_is_here():
    header = pathlib.Path(compiler.headers()).parent / "cpu" / "superinstructions.h"
    if not header.exists():
        pytest.skip("the C sources are not here")
    lists = dict(re.findall(r"#define TT_CHAIN_(\w+)\(X\)((?:.*\\\n)*.*)", header.read_text()))
    names = {kind: set(re.findall(r"X\((\w+)\)", text)) for kind, text in lists.items()}
    assert names.pop("CHOICE") == set(ORDERINGS)
    assert len(names) == 4
    assert set().union({"where"}, *names.values()) == OPERATORS.keys()


def handed_on(first, second, x, y, z):
    """The result of the operator `first`, handed to each operand of `second`, with the others in memory or numbers."""
    f, g, n = OPERATORS[first], OPERATORS[second], arity(second)

    def value():
        v = f(*(x, y, z)[: arity(first)])
        return v.float() if first in COMPARISONS else v

    rest = [y, z][: n - 1]
    for place in range(n):
        yield lambda: g(*rest[:place], value(), *rest[place:])  # noqa: B023 (it is called at once)
    if n > 1:

        def both(v):
            return g(*[v] * n)

        yield lambda: both(value())
    if second in ("add", "sub", "mul", "div", *COMPARISONS):
        yield lambda: g(value(), 0.75)
    if second in ("add", "mul"):
        yield lambda: g(-0.5, value())


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("first", OPERATORS)
def test_pairs(first, isa):
    arrays = operands()
    with instruction_set(isa):
        for second in OPERATORS:
            for number, run in enumerate(handed_on(first, second, *arrays)):
                agree(lambda: [run()], f"{first}, {second}: {number}")  # noqa: B023 (it is called at once)


@pytest.mark.parametrize("isa", ISAS)
def test_forms(isa):
    """Operands in every place: values kept for later, numbers on both sides, bools in memory and in between."""
    x, y, z = operands(1000)
    m = y > 0
    where = tinytorch.where

    def run():
        a = x * 2.0 - 1.0
        b = where(a > 0, a, x * 0.1)
        c = where(m, b, a) + where(m, 1.5, b) + where(m, b, 2.5)
        d = 1.0 - c / (2.0 + b)
        e = where((a > b) & m, d, c - a).clamp(-1.0, 2.0).clamp(z, y)
        f = (e < d).float() * e + tinytorch.addcmul(a, e, a) + tinytorch.addcmul(b, e, e)
        g = tinytorch.lerp(e, f, a) + tinytorch.lerp(f, e, f) + tinytorch.addcdiv(d, d, f)
        return [b, e < d, f, g, where(g > f, g, g), where(g == g, f, g), where(m, g, g).abs(), 3.0 / g * g]

    with instruction_set(isa):
        agree(run, isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("seed", range(25))
def test_random_superinstructions(seed, isa):
    """Values wanted at once, later, or by the user; more of them than there are registers."""
    rng = np.random.default_rng(seed)
    leaves = operands(int(rng.choice([200, 256, 1029, 9000])), seed)
    drawn = [(rng.choice(list(OPERATORS)), rng.random(3)) for _ in range(int(rng.integers(3, 40)))]
    kept = rng.random(len(drawn)) < 0.2

    def run():
        values, results = list(leaves), []
        for (name, at), keep in zip(drawn, kept):
            recent = values[-6:] + leaves
            chosen = [recent[int(p * p * len(recent))] for p in at[: arity(name)]]
            v = OPERATORS[name](*chosen)
            if keep:
                results.append(v)
            values.append(v.float())
        return [*results, values[-1]]

    with instruction_set(isa):
        agree(run, f"seed {seed}")


@pytest.mark.parametrize("shape", [(64, 1000), (300, 96), (1000, 64), (3, 5000)])
@pytest.mark.parametrize("isa", ISAS)
def test_with_reductions_and_broadcasts(shape, isa):
    rng = np.random.default_rng(1)
    x, row, column = (tinytorch.tensor(rng.standard_normal(s).astype("f4")) for s in (shape, shape[1], (shape[0], 1)))

    def run():
        centred = x - x.mean(1, keepdim=True)
        a = (centred * row + column).relu() * 2.0 - centred
        b = (a * a + row).sum(1, keepdim=True)
        return [a, b, (a / b - row).abs() * column + 1.0, (a * 0.5 - column).sum(0)]

    with instruction_set(isa):
        agree(run, isa)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("compare", COMPARISONS)
def test_choices(compare, isa):
    """A comparison with a number and the choice by it are one step, wherever their operands stand."""
    reflected, compare, where = getattr(operator, compare), getattr(tinytorch, compare), tinytorch.where

    def run():
        a, results = x * 2.0, []
        for value in (x, a, y.abs()):
            for number in (0.0, -0.5, float("nan")):
                chosen = (x, y, value, a, 1.5, value - x)
                results += [where(compare(value, number), p, q) for p in chosen for q in chosen if p is not q]
            results.append(where(compare(value, 0.25), value, value) + where(reflected(0.25, value), x, value))
        return results

    with instruction_set(isa):
        for n in (333, 129):
            x, y, _ = operands(n) if n >= 196 else [v[:n].clone() for v in operands(n + 196)]
            agree(run, isa)


@pytest.mark.parametrize("isa", ISAS)
def test_choices_in_the_midst(isa):
    """What stands in A and B when the comparison comes; a condition that is wanted for more than the choice."""
    x, y, z = operands(1000)
    where = tinytorch.where

    def run():
        a = x * 2.0 - y
        b = where(a > 0, a, x * 0.1)  # compared in B, A for the choice
        c = where(b * z < 0.5, b, a)  # compared in A, and gone
        d = where(x >= 0, c, c * 3.0) + c  # compared in memory
        wanted = d <= 1.0
        e = where(wanted, d, b) - wanted.float()
        f = where(e > -1.0, e - a, b) * e + (e - a) * b  # A is wanted after the choice
        g = where(f < 0.75, where(f > -0.75, f, e), f - e)
        returned = g > 0.1
        h = where(returned, g, y)
        v = x * 0.1
        h = h + where(a > 0, v, x) * v  # a is in B and in memory, v wanted after the choice
        last = [where(g > 0, 1.0, g), where(g > 0, g, -1.0) / where(g > 0.5, 2.0, 3.0)]
        return [a, b, d, wanted, e, f, g, returned, h, *last]

    with instruction_set(isa):
        agree(run, isa)


def test_a_choice_is_one_step():
    x, y, _ = operands(1000)
    where = tinytorch.where

    def choice(a, value):
        return where(a > value, a, y)

    def equal(a, value):
        return where(a == value, a, y)

    assert num_steps(lambda: choice(x * 2.0, 0.0)) == 3  # and the end
    assert num_steps(lambda: choice(x * 2.0, y)) == 4
    assert num_steps(lambda: equal(x * 2.0, 0.0)) == 4


@pytest.mark.parametrize("n", LENGTHS)
@pytest.mark.parametrize("isa", ISAS)
def test_of_any_length(n, isa):
    """What is left over at the end of a block is done once, where doing it twice would show."""

    def run():
        x = values[:n].clone()
        x.mul_(2.0).add_(1.0).sub_(y[:n])  # in the place of its operand
        v = ((z[:n].exp() * 0.5 + y[:n]).exp() + x).sqrt()  # in the buffer of its operand
        return [x, v, (v - x) * y[:n], tinytorch.where(v > x, v, x) * 0.5]

    values, y, z = operands(5001)
    with instruction_set(isa):
        agree(run, n)


@pytest.mark.parametrize("isa", ISAS)
def test_a_chain_writes_over_what_it_reads(isa):
    """Rows of odd lengths, updated in place by superinstructions between reductions."""

    def run():
        x = tinytorch.arange(70.0 * 333).reshape(70, 333).remainder(11.0)
        x.sub_(x.mean(1, keepdim=True)).mul_(0.5)
        total = (x * x).sum(1, keepdim=True)
        x.div_(total).add_(total)
        return [x, total]

    with instruction_set(isa):
        agree(run, isa)


def test_they_are_chained():
    x, y, _ = operands(5000)

    def cheap():
        with tinytorch.fuse():
            a = x * 2.0 - y
            return tinytorch.where(a > 0, a, x * 0.1).abs() + 1.0

    def broken():
        with tinytorch.fuse():
            return ((x * 2.0 - y).exp() * 0.5 + y).log()

    assert chained(cheap) == (7, 7)
    assert chained(broken) == (4, 6)


def test_other_dtypes_are_not():
    x = operands()[0].double()

    def run():
        with tinytorch.fuse():
            return (x * 2.0 - 1.0).abs()

    assert chained(run) == (0, 3)


def test_a_value_is_not_made_where_it_is_read():
    """The new value of x may not be there before all that want the old one have had it."""

    def run():
        x = tinytorch.arange(9000.0)
        twice = x * 2.0
        more = x + 1.0
        x.copy_(twice)
        del twice
        return [x, more]

    agree(run, "x")


def test_a_kernel_of_numbers_repeated_in_blocks():
    """Blocks begin where an operand that repeats does, however the threads share them."""
    threads = tinytorch.get_num_threads()
    v = tinytorch.arange(3.0)
    try:
        for n in (1, 2, 7):
            tinytorch.set_num_threads(n)
            agree(lambda: [(v * 2.0).expand(7000, 3) + tinytorch.ones(7000, 3)], n)
    finally:
        tinytorch.set_num_threads(threads)


def test_the_chain_is_part_of_the_kernel():
    """Steps end where they should: as many as the interpreter counts, with functions for each instruction set that has
    superinstructions (on x86 the baseline has none)."""
    x, y, _ = operands()
    isas = ISAS if X86 else ISAS[:1]
    seen = []

    def look(run):
        kernel = run.program.kernels[0]
        first = kernel.superinstructions[0]
        steps = kernel.steps[first.first_step : kernel.num_steps]
        runs = [
            [
                kernel.steps[number * kernel.num_steps + step].run != ffi.NULL
                for step in range(first.first_step, kernel.num_steps)
            ]
            for number in range(len(isas))
        ]
        seen.append((kernel.num_superinstructions, len(steps), steps[len(steps) - 1].slot, [all(run) for run in runs]))

    end = fuse.listeners.subscribe(fuse.listeners.RUNS, look)
    try:
        with tinytorch.fuse():
            z = (x * 2.0 - y).abs()
    finally:
        end()
    assert z is not None and seen == [(1, 4, 3, [not X86 or isa != "baseline" for isa in isas])]
