"""fuse(step=True): the same recording, one operator at a time."""

import sys
import threading

import pytest

import tinytorch
from fuse.helpers import chain, pending, ramp, same
from tinytorch import fuse
from tinytorch.backends.cpu import lib


def computed(t):
    """Are the elements there?"""
    return not t._h.storage.lazy


def counted(fn):
    """How many operators were recorded and programs run by fn()."""
    before = fuse.stats()
    fn()
    after = fuse.stats()
    return after["recorded"] - before["recorded"], after["programs"] - before["programs"]


def test_every_operator_runs_at_once():
    x = ramp(40, 30)
    with fuse(step=True):
        y = x * 2
        assert computed(y) and pending() == 0
        y += 1
        assert computed(y) and pending() == 0
        z = y.mean(0)
        assert computed(z) and pending() == 0
    assert same(z, (x * 2 + 1).mean(0))


def test_bits_are_those_of_eager_mode():
    x = ramp(57, 33)

    def run():
        y = tinytorch.softmax(chain(x), 1)
        y[:, 3:5] = x[:, :2].half().float() * 3
        return y, y.sum(), (y > 0.1).any(1), y.t().contiguous().norm()

    with fuse(step=True):
        got = run()
    assert all(same(g, w) for g, w in zip(got, run()))


def test_one_program_for_each_operator():
    x = ramp(17)

    def run():
        with fuse(step=True):
            chain(x)

    assert counted(run) == (6, 6)
    told = fuse.explain(fuse(chain, step=True), x)
    assert [[k.operators for k in p.kernels] for p in told.programs] == [
        [(name,)] for name in ("mul", "add", "tanh", "sub", "exp", "div")
    ]
    assert {p.cause for p in told.programs} == {"step"}


def test_a_debugger_sees_the_value_after_the_line():
    x, seen = ramp(5), []

    def user(x):
        a = x * 2
        b = a.exp()
        return b + a

    def trace(frame, event, arg):
        if frame.f_code is user.__code__ and event == "line":
            seen.append({name: computed(value) for name, value in frame.f_locals.items()})
        return trace

    with fuse(step=True):
        sys.settrace(trace)
        try:
            user(x)
        finally:
            sys.settrace(None)
    assert seen == [{"x": True}, {"x": True, "a": True}, {"x": True, "a": True, "b": True}]


def test_a_look_for_nan_lands_on_the_line():
    """Whoever looks at every value right after it was made finds the first that is wrong, though nothing reads it."""
    x, found = ramp(5), []

    def looks(run):
        out = run.program.kernels[0].stores[0]
        assert run.program.num_nodes == 1 and out.stage == 0
        found.append(run.lines.places[0].line)

    end = fuse.listeners.subscribe(fuse.listeners.LINES, looks)
    try:
        with fuse(step=True):
            first = sys._getframe().f_lineno
            y = x * 0
            z = y / y
            z = z + 1
    finally:
        end()
    assert found == [first + 1, first + 2, first + 3] and bool(z.isnan().all())


@pytest.mark.filterwarnings("ignore:Error detected")
@pytest.mark.parametrize("step", [False, True])
def test_anomaly_mode(step):
    x = tinytorch.zeros(3, requires_grad=True)
    with fuse(step=step), pytest.warns(UserWarning, match="Anomaly"), tinytorch.autograd.detect_anomaly():
        y = x / x
        with pytest.raises(RuntimeError, match="(?i)nan") as error:
            y.sum().backward()
        with pytest.raises(RuntimeError) as overwritten:
            a = x + 1
            b = a * a
            a.add_(1)
            b.sum().backward()
    assert "DivBackward0" in str(error.value) and __file__ in str(overwritten.value)
    assert pending() == 0


def test_inside_of_the_mode():
    x = ramp(9)
    with fuse():
        a = x * 2
        assert pending() == 1
        with fuse(step=True):
            assert pending() == 0 and computed(a)
            b = a + 1
            assert computed(b)
            with fuse():
                c = b + 1
                assert computed(c)
        d = c + 1
        assert pending() == 1
    assert same(d, x * 2 + 1 + 1 + 1)


def test_of_this_thread_alone():
    told = []

    def other():
        with fuse():
            y = ramp(3) * 2
            told.append(computed(y))

    with fuse(step=True):
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert computed(ramp(3) * 2)
    assert told == [False]


def test_as_a_decorator_and_after_an_exception():
    states = []

    @fuse(step=True)
    def fails(x):
        states.append(computed(x * 2))
        raise KeyError("half-way")

    for _ in range(2):
        with pytest.raises(KeyError):
            fails(ramp(4))
    assert states == [True, True] and lib.tt_fuse_depth() == 0
    with fuse():
        y = ramp(4) * 2
        assert not computed(y)


def test_before_pure():
    stepped = fuse(chain, pure=True, step=True)
    assert counted(lambda: [stepped(ramp(5)) for _ in range(4)]) == (24, 24)


def test_derivatives():
    def run():
        x = ramp(6, 5).requires_grad_()
        (g,) = tinytorch.autograd.grad((x.tanh() * x).sum(), x, create_graph=True)
        return g, *tinytorch.autograd.grad((g * g).sum(), x)

    with fuse(step=True):
        got = run()
    assert all(same(g, w) for g, w in zip(got, run()))
