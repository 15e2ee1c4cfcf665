"""Fused mode beside eager mode, and beside the libraries that fuse, with all cores.

Every side is in a process of its own (`bench.timing.apart`). Before it is timed, its result is compared with NumPy's
in float64; derivatives with difference quotients.
"""

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

from .libraries import LIBRARIES, WARM_UP
from .suite import BEST, Row, Suite
from .timing import apart

#: How far a result may be from NumPy's, relative to the largest element.
TOLERANCE = 1e-5


@dataclass(frozen=True)
class FusedRow(Row):
    """A row whose ``make(library)`` receives one of `bench.libraries`."""

    against: str = BEST
    #: The method of a library without which it cannot take part.
    needs: str = "fused"
    #: ``expected(np)``: what the call after the warm-up returns, in float64. None: nothing to compare.
    expected: Callable | None = None
    #: ``make(library, fuse)`` gives a training step and the parameters; without fusion it is to give the same bits.
    trains: bool = False

    def on(self, side):
        library = LIBRARIES[side]
        return getattr(library, self.needs) is not None and library.only in (None, self.needs)

    def prepare(self, side, threads):
        library = LIBRARIES[side](threads)
        if self.trains:
            return self._trained(library)
        call = self.make(library)
        if not self.first:
            library.warm(call)
        if self.expected is not None:
            _compare(library, call(), self.expected(library.np))
            library.verify()
        return call

    def _trained(self, library):
        """The step, once as many as a plain twin's have given its parameters."""
        step, parameters = self.make(library, library.fused)
        library.warm(step)
        step()
        library.verify()
        found = [library.numpy(p).copy() for p in parameters]
        plain, parameters = self.make(library, lambda function: function)
        for _ in range(WARM_UP + 1):
            plain()
        if not all((a == library.numpy(b)).all() for a, b in zip(found, parameters, strict=True)):
            raise ArithmeticError("fused training steps have given other parameters than plain ones")
        return step


def _compare(library, results, expected):
    """Raise an error if the result is not what NumPy makes it."""
    np = library.np
    if not isinstance(results, (tuple, list)):
        results, expected = [results], [expected]
    for number, (result, true) in enumerate(zip(results, expected, strict=True)):
        error = np.abs(library.numpy(result) - true).max() / np.abs(true).max()
        if not error <= TOLERANCE:  # nor if it is NaN
            raise ArithmeticError(f"result {number} is wrong: {error:.1e} away from NumPy's")


SUITE = Suite(
    "fused mode (eager, interpreted, compiled: tinytorch) and torch.compile (inductor), jax.jit, mx.compile, numexpr",
    measure=apart,
    rounds=8,
    sides={side: library.module for side, library in LIBRARIES.items()},
    ours="compiled",
    peers=("torch", "torch-fused", "inductor", "jax", "mlx", "numexpr"),
    limits={("interpreted", "compiled"): 2.0},
    kind=FusedRow,
)


def _normal(np, *shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def _one(library):
    """The gradient that backward starts with."""
    return library.array(library.np.ones((), "f4"))


def chain(xp, x):
    """Thirteen operators, five of them transcendental."""
    a = xp.log(xp.exp(x * 0.5) + 1.0)
    b = xp.tanh(a * x - 0.5)
    c = xp.exp(-b * b)
    return xp.tanh(a) + b * c


def cheap(xp, x):
    """Eleven operators that cost next to nothing."""
    y = x * 2.0 - 1.0
    y = xp.abs(y) * x + y
    y = xp.where(y > 0.0, y, x * 0.1)
    return (y - x) * y + 3.0


def _elementwise(name, program, size, **details):
    """Add a row: the fused program on ``size`` floats."""

    @SUITE.row(name, expected=lambda np: program(np, _normal(np, size).astype(np.float64)), **details)
    def make(library):
        x = library.array(_normal(library.np, size))
        return functools.partial(library.fused(functools.partial(program, library.xp), asynchronous=size < 1000), x)


_elementwise("5 transcendentals + 8 cheap ops, 4M", chain, 4 << 20, target=1.0, against="jax")
_elementwise("11 cheap ops, 1e6", cheap, 10**6, target=0.95)
_elementwise("11 cheap ops, 1e7", cheap, 10**7, target=0.95)
_elementwise("the 13 ops on 64 floats", chain, 64, target=1.0, against="jax")


@SUITE.row(
    "the same, promised to be pure",
    target=1.0,
    against="jax",
    expected=lambda np: chain(np, _normal(np, 64).astype(np.float64)),
)
def pure(library):
    x = library.array(_normal(library.np, 64))
    return functools.partial(library.pure(functools.partial(chain, library.xp)), x)


@SUITE.row("first call of the 13 ops, 64 floats", first=True, rounds=3, target=2e-3, absolute=True)
def first_call(library):
    x = library.array(_normal(library.np, 64))
    return functools.partial(library.fused(functools.partial(chain, library.xp)), x)


def _first_derivative(np):
    x, h = _normal(np, 1 << 20).astype(np.float64), 1e-5
    return [(chain(np, x + h) - chain(np, x - h)) / (2 * h)]


@SUITE.row("the 13 ops and gradient, 1M", target=1.0, needs="vjp", expected=_first_derivative)
def gradient(library):
    x, one = library.array(_normal(library.np, 1 << 20), differentiable=True), _one(library)
    run = library.fused(library.vjp(lambda x: chain(library.xp, x).sum(), 1))
    return lambda: run(one, x)[1:]  # not all add a million floats well enough to compare the sum


def _both_derivatives(np):
    x, h = _normal(np, 1 << 20).astype(np.float64), 1e-4
    return _first_derivative(np)[0], (chain(np, x + h) - 2 * chain(np, x) + chain(np, x - h)) / (h * h)


@SUITE.row("the 13 ops, 1st and 2nd gradient, 1M", target=1.0, needs="second", expected=_both_derivatives)
def second_gradient(library):
    x = library.array(_normal(library.np, 1 << 20), differentiable=True)
    return functools.partial(library.fused(library.second(functools.partial(chain, library.xp))), x)


SAMPLES, CLASSES = 4096, 1000


def _labels(np):
    return np.random.default_rng(1).integers(0, CLASSES, SAMPLES)


def _true_cross_entropy(np):
    logits, labels = _normal(np, SAMPLES, CLASSES).astype(np.float64), _labels(np)
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    at_labels = np.arange(CLASSES) == labels[:, None]
    return -np.log(probabilities[at_labels]).mean(), (probabilities - at_labels) / SAMPLES


def _cross_entropy(library, loss, *more):
    """``loss(logits, *more)``, forward and backward."""
    logits, one = library.array(_normal(library.np, SAMPLES, CLASSES), differentiable=True), _one(library)
    run, more = library.fused(library.vjp(loss, 1)), [library.array(data) for data in more]
    return lambda: run(one, logits, *more)


@SUITE.row("softmax + cross entropy by hand, fwd + bwd", target=1.0, needs="vjp", expected=_true_cross_entropy)
def cross_entropy_by_hand(library):
    xp, np = library.xp, library.np

    def loss(logits, labels, classes):
        shifted = logits - library.fixed(xp.amax(logits, **library.rows))
        total = xp.exp(shifted).sum(**library.rows)
        return xp.where(classes == labels, xp.log(total) - shifted, 0.0).sum() / SAMPLES

    return _cross_entropy(library, loss, _labels(np)[:, None], np.arange(CLASSES))


@SUITE.row("F.cross_entropy, fwd + bwd", target=1.0, needs="cross_entropy", expected=_true_cross_entropy)
def cross_entropy(library):
    return _cross_entropy(library, library.cross_entropy, _labels(library.np))


BATCH, WIDTH = 1024, 2048


def _mlp_parts(np):
    """What comes in and what the gradient is upstream: input, bias, residual, upstream."""
    shapes = (BATCH, WIDTH), (WIDTH,), (BATCH, WIDTH), (BATCH, WIDTH)
    return [_normal(np, *shape, seed=seed) for seed, shape in enumerate(shapes)]


def _true_mlp(np):
    x, bias, residual, upstream = (part.astype(np.float64) for part in _mlp_parts(np))
    x = x + bias
    phi = 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))
    slope = upstream * (phi + x * np.exp(-0.5 * x * x) / math.sqrt(2 * math.pi))
    return residual + x * phi, slope, slope.sum(axis=0), upstream


@SUITE.row("bias + gelu + residual, fwd + bwd, 2M", target=1.0, needs="gelu", expected=_true_mlp)
def mlp(library):
    *parts, upstream = _mlp_parts(library.np)
    arrays, upstream = [library.array(part, differentiable=True) for part in parts], library.array(upstream)
    run = library.fused(library.vjp(lambda x, bias, residual: residual + library.gelu(x + bias), 3))
    return lambda: run(upstream, *arrays)


TENSORS, LENGTH = 50, 200_000
RATE, DECAY, SQUARE_DECAY, EPSILON = 0.01, 0.9, 0.999, 1e-8


def _true_adam(np):
    """As the gradient stays the same, its mean and the mean of its square are unbiased, and so is every step."""
    for_all = []
    for tensor in range(TENSORS):
        parameter, gradient = (_normal(np, LENGTH, seed=seed).astype(np.float64) for seed in (tensor, tensor + TENSORS))
        for_all.append(parameter - (WARM_UP + 1) * RATE * gradient / (np.abs(gradient) + EPSILON))
    return for_all


def _adam_arrays(library):
    """Parameters and their gradients."""
    np = library.np
    seeds = range(TENSORS), range(TENSORS, 2 * TENSORS)
    return tuple([library.array(_normal(np, LENGTH, seed=seed)) for seed in some] for some in seeds)


def _adam_in_place(torch, parameters, gradients, means, squares, rate, root):
    with torch.no_grad():
        for p, g, m, v in zip(parameters, gradients, means, squares):
            m.mul_(DECAY).add_(g * (1 - DECAY))
            v.mul_(SQUARE_DECAY).add_(g * g * (1 - SQUARE_DECAY))
            p.sub_(m / (v.sqrt() / root + EPSILON) * rate)


def _adam_anew(xp, parameters, gradients, means, squares, rate, root):
    means = [m * DECAY + g * (1 - DECAY) for m, g in zip(means, gradients)]
    squares = [v * SQUARE_DECAY + g * g * (1 - SQUARE_DECAY) for v, g in zip(squares, gradients)]
    moved = zip(parameters, means, squares)
    return [p - m / (xp.sqrt(v) / root + EPSILON) * rate for p, m, v in moved], means, squares


@SUITE.row("Adam by hand, 10M in 50 tensors", target=1.0, needs="vjp", expected=_true_adam)
def adam_by_hand(library):
    parameters, gradients = _adam_arrays(library)
    means, squares = ([library.array(library.np.zeros(LENGTH, "f4")) for _ in gradients] for _ in range(2))
    steps = 0
    update = functools.partial(_adam_in_place if library.in_place else _adam_anew, library.xp)
    run = library.fused(update, donated=(0, 2, 3))

    def step():
        nonlocal steps, parameters, means, squares
        steps += 1
        rate = library.number(RATE / (1 - DECAY**steps))
        root = library.number(math.sqrt(1 - SQUARE_DECAY**steps))
        new = run(parameters, gradients, means, squares, rate, root)
        if not library.in_place:
            parameters, means, squares = new
        return parameters

    return step


@SUITE.row("optim.Adam, 10M in 50 tensors", target=1.0, needs="adam", expected=_true_adam)
def adam(library):
    return library.adam(*_adam_arrays(library), RATE)


BATCHES = 11


@SUITE.row(
    "a training step of examples/digits.py", target=0.97, against="eager", needs="example", per=BATCHES, trains=True
)
def digits(library, fuse):
    example, torch = library.example("digits"), library.xp
    torch.manual_seed(0)
    images, labels = example.load(0)[0].tensors
    batches = list(zip(images.split(32), labels.split(32)))[:BATCHES]
    model = example.MLP()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    return functools.partial(fuse(example.train_epoch), model, optimizer, batches, "cpu"), list(model.parameters())


@SUITE.row("a training step of examples/gpt.py", target=0.97, against="eager", needs="example", trains=True)
def gpt(library, fuse):
    example, torch = library.example("gpt"), library.xp
    torch.manual_seed(0)
    tokens, _ = example.load(0, train_size=128, test_size=1)
    model = example.GPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1.0)
    return functools.partial(fuse(example.train_step), model, optimizer, schedule, tokens), list(model.parameters())


RECORDED = 50


def _recording(library, differentiable):
    """The time of recording multiplications, without that of running them."""
    x = library.array(_normal(library.np, 64), differentiable)
    factor = library.array(_normal(library.np, 64, seed=1))

    def record():
        with library.recording():
            start = perf_counter()
            y = x
            for _ in range(RECORDED):
                y = y * factor
            seconds = perf_counter() - start
        library.run_pending(y)
        return seconds

    return record


_recorded = {"per": RECORDED, "self_timed": True}


@SUITE.row("recording an op", target=0.6e-6, absolute=True, needs="recording", **_recorded)
def recording(library):
    return _recording(library, differentiable=False)


@SUITE.row("recording an op and its Node", needs="taped", **_recorded)
def recording_node(library):
    return _recording(library, differentiable=True)


@SUITE.row("flush of the 13 ops on 64 floats", target=3e-6, absolute=True, self_timed=True, needs="lazy")
def flush(library):
    x = library.array(_normal(library.np, 64))

    def run():
        with library.recording():
            y = chain(library.xp, x)
            start = perf_counter()
        library.run_pending(y)
        return perf_counter() - start

    return run
