"""Functions that are seen to be pure are replayed without a promise; what may not be replayed is run."""

import contextlib
import functools
import linecache
import random
import math
import re
import types

import pytest

import tinytorch as torch
import tinytorch.nn.functional as F
from tinytorch import fuse


def bits(result):
    """Everything that a caller sees of a call's result."""
    results = result if isinstance(result, (tuple, list)) else [result]
    return [type(result)] + [
        (r.dtype, r.shape, r.stride(), r.requires_grad, r.detach().clone().numpy().tobytes()) for r in results
    ]


def replayed(call, *args):
    """How many replays a call took."""
    before = fuse.stats()["replayed"]
    call(*args)
    return fuse.stats()["replayed"] - before


def agree(fast, fn, make, calls=8):
    """Every call gives eager mode's bits, for new arguments each time."""
    for _ in range(calls):
        args = make()
        assert bits(fast(*args)) == bits(fn(*args))


def learned(fn, make, calls=8):
    """The fused function, after calls that gave eager mode's bits; it is replayed by now."""
    fast = fuse(fn)
    agree(fast, fn, make, calls)
    assert replayed(fast, *make()) == 1, fast.purity.verdict(make())
    return fast


def one():
    return (torch.randn(4, 6),)


def two():
    return torch.randn(4, 6), torch.randn(6)


def needing_grad():
    return (torch.randn(4, 6, requires_grad=True),)


# ---- What is seen to be pure.

SCALE = 1.5
WEIGHT = torch.randn(6)
LAYERS = [torch.randn(6), torch.randn(6)]
NAMED = {"scale": 0.5, "weight": torch.randn(6)}
SIZES = (2, 12)
VERBOSE = False
SPACE = types.SimpleNamespace(weight=torch.randn(6), power=2)


def chain(xp, x):
    a = xp.log(xp.exp(x * 0.5) + 1.0)
    b = xp.tanh(a * x - 0.5)
    return xp.tanh(a) + b * xp.exp(-b * b)


def helper(x, scale=2.0, *, shift=1.0):
    """Called by others."""
    return x * scale + shift


def on_shapes(x):
    if x.shape[0] > 3 and x.ndim == 2:
        y = x * 2
    elif x.numel() == 0:
        raise ValueError("empty")
    else:
        y = x / 3
    for k in range(x.size(0)):
        y = y + k
    n = len(x) % 2
    while n < 3:
        n += 1
        y = y.sin() if n % 2 else y.cos()
    return y if y.dtype is x.dtype else y.to(x.dtype)


def in_place(x):
    y = x.clone()
    y += 1
    y.mul_(x).clamp_(-1, 1)
    y[0] = x[1]
    y[:, 2:] *= 3
    return y


def with_lists(*xs):
    found = []
    for k, x in enumerate(xs):
        if k == 0:
            continue
        found.append(x * k)
    for a, b in zip(found, list(xs)):
        found += [a.exp() + b]
    (first, *others), last = found, found[-1]
    return [first + last, sum(others) * 2, *[f.sum(0) for f in others]]


def with_locals(x, power=2):
    scale = x.shape[-1] ** -0.5

    def inner(y, shift=0.5):
        return y**power * scale + shift

    act = lambda y: inner(y).tanh()  # noqa: E731
    return act(inner(x)) + inner(x, shift=x.mean())


def with_outside(x):
    y = x * WEIGHT + SCALE
    for w in LAYERS:
        y = (y * w).relu()
    y = y * NAMED["weight"] ** SPACE.power + NAMED["scale"] * SPACE.weight
    return y.reshape(SIZES) * math.pi


def only_where_not_verbose(x):
    if VERBOSE:
        print(x)
    return helper(x, 3.0, shift=math.sqrt(x.shape[0]))


def quietly(x):
    with torch.no_grad():
        y = x * 2
    if y.shape != x.shape:
        raise ValueError(f"{y.shape} is wrong")
    return -abs(y).sum(dim=-1, keepdim=True) / max(y.shape)


def gradient(x):
    y = (x * x).sin().sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), [x])
    return y.detach(), g.detach() * 2, h


FUSED = fuse(helper)

PROVEN = {
    "lambda": (lambda x, y: (x * y + 2).tanh() - x, two),
    "partial": (functools.partial(chain, torch), one),
    "a partial with keywords": (functools.partial(helper, scale=3.0, shift=-1), one),
    "functions of functions": (lambda x: F.softmax(helper(x * 2), dim=-1) + torch.Tensor.exp(x).T.mT, one),
    "several results": (lambda x, y: (x * y, x.sum(1), (x + y).amax(0, keepdim=True)), two),
    "a star": (lambda *xs: torch.where(xs[0] > 0, *xs), two),
    "shapes": (on_shapes, one),
    "in place": (in_place, one),
    "lists": (with_lists, lambda: (*one(), *one(), *one())),
    "locals": (with_locals, one),
    "outside": (with_outside, one),
    "a branch not taken": (only_where_not_verbose, one),
    "no_grad": (quietly, one),
    "gradients": (gradient, needing_grad),
    "a default": (lambda x, w=WEIGHT, *, k=2: x * w + k, one),
    "a number": (
        lambda x, k, name, none: x * k if name == "mul" and none is None else x + k,
        lambda: (*one(), 0.5, "mul", None),
    ),
    "a generator expression": (lambda x: sum(row.exp() for row in x) + max(n for n in x.shape), one),
    "a Parameter": (lambda x: x.detach() * 2, lambda: (torch.nn.Parameter(torch.randn(3)),)),
    "a fused function": (lambda x, f=FUSED: f(x, 4.0) * 2, one),
}


@pytest.mark.parametrize("name", PROVEN)
def test_seen(name):
    learned(*PROVEN[name])


def test_the_function_is_not_called():
    counts = []
    fast = learned(lambda x: x * 2 + 1, one)
    inner, calls = fast.purity.fn, lambda *args: counts.append(1)
    fast.purity.fn = calls
    agree(fast, inner, one)
    assert not counts


def derivative(function, grad):
    def run(upstream, x):
        result = function(x)
        return result.detach(), *grad(result, x, upstream)

    return run


def test_a_closure_that_derives():
    run = derivative(functools.partial(chain, torch), torch.autograd.grad)
    fast = learned(run, lambda: (torch.randn(64), torch.randn(64, requires_grad=True)))
    agree(fast, run, lambda: (torch.randn(7), torch.randn(7, requires_grad=True)))


# ---- What is not.

RELU = torch.nn.ReLU()
COUNTS = []
CHANGING = {"n": 0}


def prints(x):
    y = x * 2
    print(end="")
    return y


def appends(x):
    COUNTS.append(1)
    return x * 2


def appends_elsewhere(x):
    counts = COUNTS
    counts += [1]
    return x * 2


def decorates(x):
    def inner(y: COUNTS.append(1)):
        return y * 2

    return inner(x)


def sets_item(x):
    CHANGING["n"] += 1
    return x + CHANGING["n"]


def sets_global(x):
    global SCALE
    SCALE = 1.5
    return x + SCALE


def sets_attribute(x):
    x.mine = 1
    return x * 2


def recursive(x, n=3):
    return x if n == 0 else recursive(x * 2, n - 1)


def tries(x):
    try:
        return x * 2
    finally:
        CHANGING["n"] += 1


def leaves(x):
    act = torch.exp
    for k in range(3):
        act = appends
        if k == x.ndim - 2:
            break
        act = torch.sin
    return act(x)


def generator(x):
    yield x * 2


class Scaled:
    def __init__(self):
        self.scale = 2

    def __call__(self, x):
        return x * self.scale

    def method(self, x):
        return x + self.scale


def with_file(x):
    with contextlib.suppress(ValueError):
        return x * 2


def made_by_exec():
    names = {}
    exec(compile("def f(x): return x * 2", "<nowhere>", "exec"), names)  # "<string>" may be that of python -c
    return names["f"]


UNPROVEN = {
    "print": (prints, r"test_purity.py, line \d+: calls print, which has effects"),
    "append": (appends, "uses .append of an object of type list"),
    "item": (sets_item, "sets an item"),
    "another name": (appends_elsewhere, "changes something from outside"),
    "annotation": (decorates, "calls something where it is made"),
    "global": (sets_global, "Global"),
    "attribute": (sets_attribute, "sets an attribute"),
    "recursion": (recursive, "calls itself"),
    "try": (tries, "Try"),
    "with": (with_file, "not no_grad"),
    "branch": (lambda x: x * 2 if x.sum() > 0 else x, "branches on a tensor's value"),
    "and": (lambda x: x.sum() and x, "branches on a tensor's value"),
    "in": (lambda x: x + (1 in x), "branches on a tensor's value"),
    "float": (lambda x: x + float(x[0, 0]), "calls float with a tensor, whose value it reads"),
    "math": (lambda x: x + math.sqrt(x[0, 0] ** 2), "calls sqrt with a tensor, whose value it reads"),
    "item()": (lambda x: x + x[0, 0].item(), "uses .item of a tensor"),
    "hook": (lambda x: x.register_hook(print), "uses .register_hook of a tensor"),
    "grad": (lambda x: x * x.grad, "uses .grad of a tensor"),
    "as_strided": (lambda x: x.as_strided((2,), (1,), 0) * 2, "uses .as_strided of a tensor"),
    "address": (lambda x: x * (x.data_ptr() % 7), "uses .data_ptr of a tensor"),
    "object": (Scaled(), "calls an object of type Scaled"),
    "method": (Scaled().method, "uses .scale of an object of type Scaled"),
    "module": (lambda x: RELU(x), "calls an object of type ReLU"),
    "random": (lambda x: x * torch.rand(6), "calls rand, which is no operator"),
    "mode": (lambda x: x * 2 if torch.is_grad_enabled() else x, "is_grad_enabled, which is no operator"),
    "same": (lambda x: x * 2 if x is WEIGHT else x, "asks whether"),
    "callback": (lambda x: F.triplet_margin_with_distance_loss(x, x, x, distance_function=helper), "gives helper"),
    "exec": (made_by_exec(), "the source of f is not there"),
    "generator": (generator, "is a generator"),
    "a break": (leaves, "one of several things"),
    "one of several": (lambda x: (torch.exp if x.ndim > 1 else torch.sin)(x), "one of several things"),
}


@pytest.mark.parametrize("name", UNPROVEN)
def test_not_seen(name):
    fn, reason = UNPROVEN[name]
    fast = fuse(fn)
    x = torch.randn(4, 6)
    with contextlib.suppress(TypeError, RuntimeError):
        for _ in range(6):
            fast(x)
    fast.purity.verdict((x,))
    assert re.search(reason, fast.purity.why), fast.purity.why
    assert not fast.purity.hopeful and not fast.purity.replays


@pytest.mark.parametrize("fn", [appends, appends_elsewhere, decorates, tries, sets_item])
def test_effects_are_those_of_every_call(fn):
    def effects():
        return len(COUNTS) + CHANGING["n"]

    fast = fuse(fn)
    for _ in range(9):
        before = effects()
        fast(torch.randn(4, 6))
        assert effects() == before + 1


# ---- Random ones.


class Writer:
    """Writes a function at random, whose steps are tensors, numbers that depend on shapes, branches and loops."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.lines, self.tensors = ["def fn(x, y):", "    n = x.shape[0]"], ["x", "y"]
        self.numbers = ["n", "2", "0.5", "SCALE"]

    def tensor(self):
        return self.random.choice([*self.tensors, *self.tensors[-2:]])

    def number(self):
        return self.random.choice(self.numbers)

    def expression(self):
        kind = self.random.randrange(8)
        if kind < 3:
            other = self.random.choice([self.tensor(), self.number(), "W"])
            return f"{self.tensor()} {self.random.choice('+-*')} {other}"
        if kind == 3:
            return f"torch.where({self.tensor()} > {self.number()}, {self.tensor()}, {self.number()})"
        if kind == 4:
            return f"{self.tensor()} + {self.tensor()}.{self.random.choice(['sum', 'amax', 'mean'])}(-1, keepdim=True)"
        if kind == 5:
            return f"act({self.tensor()})"
        return f"{self.tensor()}.{self.random.choice(['sin', 'tanh', 'abs', 'relu', 'sigmoid', 'neg'])}()"

    def step(self, indent="    "):
        kind = self.random.randrange(10)
        if kind == 0:
            self.lines.append(f"{indent}for k in range({self.random.choice(['n', '2', 'x.ndim'])}):")
            self.numbers.append("k")
            name = self.tensors[-1]
            self.lines.append(f"{indent}    {name} = {self.expression()}")
            self.numbers.remove("k")
        elif kind == 1:
            self.lines.append(f"{indent}if {self.number()} > {self.number()}:")
            self.lines.append(f"{indent}    {self.tensor()} = {self.expression()}")
        elif kind == 2:
            value = self.random.choice(["W", "n", "SCALE"])
            self.lines.append(f"{indent}{self.tensor()} {self.random.choice('+-*')}= {value}")
        else:
            name = f"t{len(self.lines)}"
            self.lines.append(f"{indent}{name} = {self.expression()}")
            self.tensors.append(name)

    def text(self):
        for _ in range(self.random.randrange(2, 9)):
            self.step()
        results = self.random.choice(
            [
                self.tensors[-1],
                f"{self.tensors[-1]} + 1, {self.tensor()} * 2",
                f"[{self.tensor()}.sum(), {self.tensors[-1]} * 1]",
            ]
        )
        return "\n".join([*self.lines, f"    return {results}", ""])


def test_random_functions():
    proven = runs = 0
    for seed in range(150):
        name, text = f"<random {seed}>", Writer(seed).text()
        linecache.cache[name] = (len(text), None, text.splitlines(True), name)
        names = {"torch": torch, "SCALE": 1.5, "W": torch.randn(6), "act": lambda x: x.exp() - 1}
        exec(compile(text, name, "exec"), names)
        fn = names["fn"]
        fast = fuse(fn)
        for call in range(8):
            if call == 5:
                names["SCALE"] = -0.75
            x, y = two()
            others = x.clone(), y.clone()
            assert bits(fast(x, y)) == bits(fn(*others)), text
            assert bits((x, y)) == bits(others), text
        assert not fast.purity.why or "branches" in fast.purity.why, (text, fast.purity.why)
        runs += len(fast.purity.replays)
        proven += not fast.purity.why
        del linecache.cache[name]
    assert proven > 140 and runs > 80, (proven, runs)
