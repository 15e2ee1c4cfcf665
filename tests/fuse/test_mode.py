"""The mode: entering and leaving it, decorators, reading values, exceptions, threads, processes."""

import copy
import io

import numpy as np
import pytest

import tinytorch
from fuse.helpers import chain, pending, ramp, same
from tinytorch import fuse, nn
from tinytorch.backends.cpu import lib

# ---- Entering and leaving.


def test_operators_are_recorded_and_run_when_the_mode_is_left():
    x = ramp(100)
    wanted = chain(x)
    before = fuse.stats()
    with tinytorch.fuse():
        y = chain(x)
        assert pending() == 6
        assert y.shape == (100,) and y.dtype is tinytorch.float32, "known without computing"
        assert pending() == 6
    assert pending() == 0 and same(y, wanted)
    after = fuse.stats()
    assert after["recorded"] - before["recorded"] == 6
    assert after["programs"] - before["programs"] == 1


def test_outside_nothing_is_recorded():
    chain(ramp(10))
    assert pending() == 0
    with tinytorch.fuse():
        pass
    assert pending() == 0
    y = ramp(10) + 1
    assert pending() == 0 and y.shape == (10,)


def test_nested_modes_run_when_the_outermost_is_left():
    x = ramp(8)
    with tinytorch.fuse():
        y = x + 1
        with tinytorch.fuse():
            z = y * 2
        assert pending() == 2
        w = z - 3
    assert pending() == 0 and same(w, (x + 1) * 2 - 3) and same(z, (x + 1) * 2)


def test_one_object_enters_again_and_nests_in_itself():
    mode, x = tinytorch.fuse(), ramp(5)
    for _ in range(2):
        with mode, mode:
            y = x + 1
            assert pending() == 1
        assert pending() == 0 and same(y, x + 1)


def test_a_recording_seen_before_is_found_again():
    x = ramp(50)
    with tinytorch.fuse():
        chain(x * 0.123).sum().item()
    before = fuse.stats()
    for _ in range(3):
        with tinytorch.fuse():
            chain(x * 0.456).sum().item()  # another number, and other memory, are the same program
    after = fuse.stats()
    assert after["hits"] - before["hits"] == 3 and after["misses"] == before["misses"]


# ---- Functions.


@pytest.mark.parametrize("decorate", [tinytorch.fuse, tinytorch.fuse()], ids=["fuse", "fuse()"])
def test_decorated_functions(decorate):
    @decorate
    def f(x, *, scale=1.0):
        """Says what it does."""
        assert pending() == 0
        y = chain(x) * scale
        assert pending() == 7
        return y

    assert f.__name__ == "f" and f.__doc__ == "Says what it does."
    x = ramp(30)
    for _ in range(2):
        y = f(x, scale=2.0)
        assert pending() == 0 and same(y, chain(x) * 2.0)


def test_what_a_function_returns_is_computed():
    def f(x):
        inner = x + 1
        return {"list": [inner, (inner * 2,)], "sum": inner.sum(), "view": inner[1:]}

    x = ramp(6)
    got, wanted = tinytorch.fuse(f)(x), f(x)
    assert pending() == 0
    assert same(got["list"][0], wanted["list"][0]) and same(got["list"][1][0], wanted["list"][1][0])
    assert same(got["sum"], wanted["sum"]) and same(got["view"], wanted["view"])


def test_a_decorated_method():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = nn.Parameter(ramp(4))

        @tinytorch.fuse
        def forward(self, x):
            return (x * self.scale).tanh()

    model, x = Model(), ramp(3, 4)
    y = model(x)
    assert pending() == 0 and same(y, (x * model.scale).tanh())
    y.sum().backward()
    wanted = tinytorch.autograd.grad((x * model.scale).tanh().sum(), model.scale)[0]
    assert same(model.scale.grad, wanted)


def test_a_function_inside_the_mode_leaves_the_rest_pending():
    f, x = tinytorch.fuse(lambda x: x * 2), ramp(5)
    with tinytorch.fuse():
        y = x + 1
        z = f(y)
        assert pending() == 2
    assert same(z, (x + 1) * 2)


# ---- Values.


READERS = {
    "item": lambda x: x[1].item(),
    "tolist": lambda x: x.tolist(),
    "repr": repr,
    "str": str,
    "format": lambda x: f"{x[0]:.4f}",
    "bool": lambda x: bool(x[0]),
    "float": lambda x: float(x[2]),
    "int": lambda x: int(x[2] * 10),
    "index": lambda x: list(range(9))[(x > 0).sum()],
    "iteration": lambda x: [t.item() for t in x],
    "contains": lambda x: 3.0 in x,
    "numpy": lambda x: x.numpy().tobytes(),
    "asarray": lambda x: np.asarray(x).tobytes(),
    "dlpack": lambda x: np.from_dlpack(x).tobytes(),
    "equal": lambda x: tinytorch.equal(x, x.clone()),
    "allclose": lambda x: tinytorch.allclose(x, x * (1 + 1e-9)),
    "nonzero": lambda x: x.nonzero().tolist(),
    "tensor": lambda x: tinytorch.tensor([x[0], x[1]]).tolist(),
    "index with a mask": lambda x: x[x > 0].tolist(),
    "unique": lambda x: x.unique().tolist(),
    "save": lambda x: saved(x),
    "deepcopy": lambda x: copy.deepcopy(x).tolist(),
}


def saved(x):
    buffer = io.BytesIO()
    tinytorch.save(x, buffer)
    buffer.seek(0)
    return tinytorch.load(buffer).tolist()


@pytest.mark.parametrize("name", READERS)
def test_reading_a_value_runs_what_it_needs(name):
    read, x = READERS[name], ramp(4)
    wanted = read(x * 2 + 3)
    with tinytorch.fuse():
        y = x * 2 + 3
        assert pending() == 2
        assert read(y) == wanted
        z = y + 1  # and the recording goes on
        assert pending() >= 1
    assert same(z, x * 2 + 3 + 1)


def test_what_needs_no_value_runs_nothing():
    x = ramp(4, 3)
    with tinytorch.fuse():
        y = x * 2
        seen = (
            len(y),
            y.shape,
            y.size(0),
            y.numel(),
            y.dtype,
            y.stride(),
            y.is_contiguous(),
            y._version,
            y.ndim,
            y.requires_grad,
            y.storage_offset(),
            y.t().shape,
            y[1:].shape,
            y.view(-1).shape,
            y.expand(2, 4, 3).shape,
            y.unbind(0)[0].shape,
        )
        assert pending() == 1
    assert seen[:3] == (4, (4, 3), 4)


def test_reading_twice_computes_once():
    x = ramp(10)
    with tinytorch.fuse():
        y = (x * 3).sum()
        first = y.item()
        recorded = fuse.stats()["programs"]
        assert y.item() == first and fuse.stats()["programs"] == recorded


# ---- Exceptions.


def test_an_exception_leaves_the_mode_and_computes_what_was_recorded():
    x = ramp(7)
    kept = []
    with pytest.raises(ZeroDivisionError, match="^half-way$"), tinytorch.fuse():
        kept.append(x * 2 + 1)
        x.add_(1)
        raise ZeroDivisionError("half-way")
    assert pending() == 0 and lib.tt_fuse_depth() == 0
    assert same(kept[0], ramp(7) * 2 + 1) and same(x, ramp(7) + 1)


def test_an_exception_leaves_a_function_and_its_inner_modes():
    @tinytorch.fuse
    def f(x, out):
        with tinytorch.fuse():
            out.append(x + 1)
            raise KeyError("k")

    out = []
    with pytest.raises(KeyError):
        f(ramp(3), out)
    assert pending() == 0 and lib.tt_fuse_depth() == 0 and same(out[0], ramp(3) + 1)


WRONG = {
    "shapes": lambda x: x + tinytorch.ones(5),
    "dtype": lambda x: x & 1,
    "dimension": lambda x: x.sum(7),
    "in place": lambda x: x.add_(tinytorch.ones(2, 3, 4)),
    "in place, dtype": lambda x: (x > 0).add_(1.5),
    "matmul": lambda x: x @ tinytorch.ones(2, 2),
    "reshape": lambda x: x.reshape(5, 5),
    "expand": lambda x: x.expand(7, 4),
    "index": lambda x: x[9],
    "mask": lambda x: x.masked_fill(tinytorch.ones(3), 0.0),
    "argument": lambda x: x.add("one"),
    "item": lambda x: x.item(),
    "bool of many": lambda x: bool(x),
    "numpy of a tensor with history": lambda x: (x * tinytorch.ones(4, requires_grad=True)).numpy(),
    "leaf": lambda x: tinytorch.ones(4, requires_grad=True).add_(1),
    "expanded": lambda x: x[0].expand(3, 4).add_(1),
    "integer division by zero": lambda x: x.int() // tinytorch.zeros(4, dtype=tinytorch.int32),
    "integers to a number's negative power": lambda x: x.int() ** -1,
    "out": lambda x: tinytorch.add(x, 1, out=tinytorch.zeros(3, 4, dtype=tinytorch.int32)),
    "variance of an integer": lambda x: x.int().var(),
    "empty maximum": lambda x: x[:0].amax(),
    "copy": lambda x: x.copy_(tinytorch.ones(2, 2)),
    "assignment": lambda x: x.__setitem__(0, tinytorch.ones(5)),
}


@pytest.mark.parametrize("name", WRONG)
def test_errors_come_at_their_line_with_eager_mode_s_message(name):
    wrong = WRONG[name]
    x = ramp(3, 4)
    with pytest.raises(Exception) as wanted:  # noqa: B017 (whatever eager mode raises)
        wrong(x)
    with tinytorch.fuse():
        y = x * 2
        with pytest.raises(type(wanted.value)) as got:
            wrong(y * 0.5)
        assert str(got.value) == str(wanted.value)
        z = y + 1
    assert same(y, x * 2) and same(z, x * 2 + 1), "an operator that raises has changed nothing"


def test_an_operator_that_raises_records_nothing():
    x = ramp(3, 4)
    with tinytorch.fuse():
        y = x * 2
        for name in ("shapes", "dtype", "dimension", "expand", "argument", "copy"):
            n, version = pending(), y._version
            with pytest.raises((RuntimeError, IndexError, TypeError)):
                WRONG[name](y)
            assert pending() - n <= 1 and y._version == version, name  # the ones() of the line itself
