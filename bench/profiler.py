"""What the profiler costs: nothing while it is off, before the first time it is on and after, little while it is on;
and how much of a step it sees. All on one thread, in turns, in one process."""

import functools
import importlib
from dataclasses import dataclass
from statistics import median
from time import perf_counter, perf_counter_ns

from .models import make_gpt, perceptron, small_products
from .suite import Row, Suite
from .timing import Measured

#: Seconds of a batch of calls; a profiler is opened for each.
BATCH = 0.002
STEPS = 20


@dataclass(frozen=True)
class ProfilerRow(Row):
    """A row of what is off or on. ``covered``: a training step, of which the profiler is to see nearly all."""

    ours: tuple[str, ...] = ("added",)
    target: float | None = 1e-6
    absolute: bool = True
    covered: bool = False

    def on(self, side):
        return (side in ("step", "seen")) == self.covered


def _batch(call, count):
    start = perf_counter()
    for _ in range(count):
        call()
    return (perf_counter() - start) / count


def measure(row, sides, rounds):
    """Seconds of a call: before a profiler was ever open ("off") and after ("again", in turns with "on")."""
    torch = importlib.import_module("tinytorch")  # the suites are listed where it is not installed
    torch.set_num_threads(1)
    torch.manual_seed(0)
    call = row.make(torch)
    _batch(call, 20)
    if row.covered:
        return _coverage(torch.profiler.profile, call, rounds)
    count = max(1, int(BATCH / min(_batch(call, 20) for _ in range(5))))
    times = {"off": [_batch(call, count) for _ in range(3 * rounds)], "again": [], "on": []}
    for _ in range(rounds):
        with torch.profiler.profile():
            _batch(call, 5)
            times["on"].append(_batch(call, count))
        _batch(call, 100)  # the interpreter adapts to the functions anew
        times["again"].append(_batch(call, count))
    seconds = {side: median(values) for side, values in times.items()}
    seconds["added"] = max(median(on - off for on, off in zip(times["on"], times["again"])), 0.0)
    return Measured({side: seconds[side] for side in sides})


def _coverage(profile, call, rounds):
    """A step as a clock sees it while the profiler is on, and the sum of the exclusive times of all events in it."""
    clock, sums = [], []
    for _ in range(rounds):
        spans = []
        with profile() as p:
            for _ in range(STEPS):
                begin = perf_counter_ns()
                call()
                spans.append((begin, perf_counter_ns()))
        events = [e for e in p.events() if e.device == "cpu" and not e.name.endswith("(pool)")]
        for begin, end in spans[STEPS // 4 :]:
            clock.append((end - begin) * 1e-9)
            sums.append(sum(e.self_time for e in events if begin <= e.start < end) * 1e-9)
    shares = [s / c for s, c in zip(sums, clock)]
    step = median(clock)
    return Measured({"step": step, "seen": step * median(shares)})


SUITE = Suite(
    "the profiler: off, off again after it was on, on, and what it adds; how much of a step it sees",
    measure=measure,
    rounds=10,
    sides=dict.fromkeys(("off", "again", "on", "added", "step", "seen"), "tinytorch"),
    ours="again",
    peers=("off",),
    kind=ProfilerRow,
)
covered = functools.partial(SUITE.row, covered=True, ours=("step",), against="seen", target=1 / 0.95, absolute=False)


@SUITE.row("a + b (4,4), per op", per=50)
def add(torch):
    a, b = torch.randn(4, 4), torch.randn(4, 4)

    def work():
        for _ in range(50):
            a + b

    return work


@SUITE.row("a + b (4,4), recording, per op", per=50)
def add_recording(torch):
    a, b = torch.randn(4, 4, requires_grad=True), torch.randn(4, 4)

    def work():
        for _ in range(50):
            a + b

    return work


@SUITE.row("torch.exp(a) (4,4), per op", per=50)
def exp(torch):
    a, function = torch.randn(4, 4), torch.exp

    def work():
        for _ in range(50):
            function(a)

    return work


@SUITE.row("a.view(16), per op", per=50)
def view(torch):
    a = torch.randn(4, 4)

    def work():
        for _ in range(50):
            a.view(16)

    return work


@SUITE.row("50 muls by a parameter, forward + backward, per op and derivative", per=100)
def chain(torch):
    return small_products(torch, True)


def _training(torch, model, inputs, targets):
    """A step of Adam."""
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        scores = model(inputs)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, -2), targets.flatten())
        loss.backward()
        optimizer.step()

    return step


@covered("step of an MLP 64-64-64-10, batch 32")
def mlp(torch):
    return _training(torch, perceptron(torch.nn, 64, 64, 64, 10), torch.randn(32, 64), torch.randint(10, (32,)))


@covered("step of the digits' network, 64-256-256-10, batch 64")
def digits(torch):
    model, images = perceptron(torch.nn, 64, 256, 256, 10), torch.rand(64, 64)
    labels = torch.randint(10, (64,))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    def step():
        optimizer.zero_grad()
        noisy = images + 0.2 * torch.randn_like(images)
        loss = torch.nn.functional.cross_entropy(model(noisy), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


@covered("step of a GPT, 2 layers of 64, batch 64")
def gpt(torch):
    model = make_gpt(torch, vocabulary=16, length=12, width=64, heads=4, layers=2)
    return _training(torch, model, torch.randint(16, (64, 12)), torch.randint(16, (64, 12)))
