"""Functions promised to be pure are replayed, or run when they cannot be."""

import numpy as np
import pytest

import tinytorch as torch
from fuse.helpers import held
from tinytorch.backends.cpu import ffi, lib


def bits(t):
    return t.detach().numpy().tobytes()


def agree(fn, pure, make, calls=6):
    """Every call of ``pure`` gives ``fn``'s bits, for new arguments each time."""
    for _ in range(calls):
        args = make()
        want, got = fn(*args), pure(*args)
        assert type(want) is type(got)
        for w, g in zip(want, got) if isinstance(want, tuple) else [(want, got)]:
            assert w.shape == g.shape and w.dtype is g.dtype and bits(w) == bits(g)


def chain(x, y):
    return (x * y + 2).tanh() - x, x.sum(1)


def test_modes_that_the_function_asks_for():
    """A program is replayed in the mode alone in which it was recorded."""

    def fn(x):
        if torch.is_inference_mode_enabled():
            return x + 1
        return x * 3 if torch.is_grad_enabled() else x - 7

    pure = torch.fuse(fn, pure=True)
    x = torch.randn(40)  # no inference tensor, which would tell the modes apart
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad) * 3:
        with mode():
            agree(fn, pure, lambda: (x,))


def test_random_numbers_are_drawn_by_every_call():
    def noise(x):
        return (x * torch.rand(3)).exp()

    pure, x = torch.fuse(noise, pure=True), torch.ones(3)
    torch.manual_seed(0)
    want = [bits(noise(x)) for _ in range(6)]
    torch.manual_seed(0)
    assert [bits(pure(x)) for _ in range(6)] == want


def test_a_call_is_replayed():
    pure = torch.fuse(chain, pure=True)
    calls = []

    def counted(x, y):
        calls.append(1)
        return chain(x, y)

    pure = torch.fuse(counted, pure=True)
    agree(chain, pure, lambda: (torch.randn(40, 70), torch.randn(70)))
    assert len(calls) == 2
    agree(chain, pure, lambda: (torch.randn(3, 2000, dtype=torch.float64), torch.randn(2000)))
    agree(chain, pure, lambda: (torch.randn(70, 40).t(), torch.randn(70)))
    agree(chain, pure, lambda: (torch.randn(40, 70), torch.randn(70)))
    assert len(calls) == 6


def test_outside_tensors_are_read_anew():
    weight = torch.randn(30)
    pure = torch.fuse(lambda x: x * weight, pure=True)
    for k in range(5):
        weight.add_(k)
        x = torch.randn(4, 30)
        assert bits(pure(x)) == bits(x * weight)
    assert pure.replays


def test_views_of_larger_tensors():
    whole = torch.randn(10, 50)
    pure = torch.fuse(lambda x: x.exp() * 2, pure=True)
    for k in range(6):
        assert bits(pure(whole[k])) == bits(whole[k].exp() * 2)
    assert pure.replays


@pytest.mark.parametrize(
    "fn",
    [
        lambda x: (x @ torch.ones(8, 8)).relu() + 1,  # an operator that is not recorded
        lambda x: x * torch.randn(8, 8),  # random numbers
        lambda x: x * 2 if x.sum().item() > 0 else x * 3,  # a value read
        lambda x: x.mul_(2),  # an argument written
        lambda x: x[1:].add_(x[:-1]) * 2,  # the same, at once, since it overlaps what is read
        lambda x: x,  # no result of its own
        lambda x: (x * 2)[1:],  # a result that is part of a tensor
        lambda x: x.cumsum(0) + 1,
    ],
)
def test_what_cannot_be_replayed_is_run(fn):
    pure = torch.fuse(fn, pure=True)
    for k in range(8):
        x = torch.randn(8, 8)
        torch.manual_seed(k)
        want = fn(x.clone())
        torch.manual_seed(k)
        assert bits(pure(x.clone()).contiguous()) == bits(want.contiguous())
    assert not pure.replays


def test_numbers_that_change_are_seen():
    state = [0.0]

    def fn(x):
        state[0] += 1
        return x + state[0]

    pure = torch.fuse(fn, pure=True)
    x = torch.zeros(5)
    assert [pure(x)[0].item() for _ in range(4)] == [1, 2, 3, 4]


def test_gradients_are_recorded():
    pure = torch.fuse(lambda x: (x * x).sin(), pure=True)
    for _ in range(4):
        pure(torch.randn(9))
    x = torch.randn(9, requires_grad=True)
    y = pure(x)
    (g,) = torch.autograd.grad(y.sum(), x)
    z = x.detach().requires_grad_()
    (want,) = torch.autograd.grad((z * z).sin().sum(), z)
    assert bits(g) == bits(want)
    with torch.no_grad():
        assert not pure(x).requires_grad


def test_same_tensor_twice_and_shared_memory():
    pure = torch.fuse(lambda x, y: x * 2 + y, pure=True)
    agree(lambda x, y: x * 2 + y, pure, lambda: (torch.randn(6), torch.randn(6)))
    x = torch.randn(6)
    assert bits(pure(x, x)) == bits(x * 2 + x)
    x.numpy()
    y = torch.randn(6)
    assert bits(pure(x, y)) == bits(x * 2 + y)


def test_pending_arguments():
    pure = torch.fuse(lambda x: x * 2 + 1, pure=True)
    for _ in range(4):
        pure(torch.randn(6))
    with torch.fuse():
        x = torch.ones(6) + 1
        assert lib.tt_fuse_pending()
        assert pure(x).tolist() == [5.0] * 6


def test_needs_a_function():
    with pytest.raises(TypeError, match="pure"):
        torch.fuse(pure=True)


def test_an_argument_that_is_read_outside_too():
    """What the calls that were looked at had in both places need not be the same in others."""
    w = torch.arange(4.0) + 1
    fast = torch.fuse(lambda x: x * w, pure=True)
    others = [torch.full((4,), k + 2.0) for k in range(3)]
    for x in (w, w, w, w, *others, *others, w, others[0], w):
        assert torch.equal(fast(x), x * w)
    before = torch.fuse.stats()["replayed"]
    for x in (*others, w, torch.ones(4)):
        assert torch.equal(fast(x), x * w)
    assert torch.fuse.stats()["replayed"] == before + 5


# ---- Memory that NumPy has, too.


def replayed():
    out = ffi.new("int64_t[]", lib.TT_FUSE_STATS)
    lib.tt_fuse_stats(out)
    return out[lib.TT_FUSE_REPLAYED]


LENT = {
    "from_numpy": lambda array: torch.from_numpy(array),
    "a view": lambda array: torch.from_numpy(array)[1:, ::2],
    "transposed": lambda array: torch.from_numpy(array).t(),
    "DLPack": lambda array: torch.from_dlpack(array),
}


@pytest.mark.parametrize("pure", [False, True])
@pytest.mark.parametrize("lend", LENT)
def test_shared_memory_is_read_where_it_is(lend, pure):
    """As an argument and from outside; what NumPy writes between two calls is seen, what it writes after one is not."""
    array = np.linspace(-1, 1, 600, dtype=np.float32).reshape(20, 30)
    x = LENT[lend](array)

    def fn(y):
        return (y * 2 + x).tanh() * y, (x * y).sum(1)

    call, other = torch.fuse(fn, pure=pure), torch.ones(x.shape)
    before = replayed()
    for y in (other,) * 9 + (x, other) * 3:
        array += 0.5
        want = [bits(t) for t in fn(y)]
        got = call(y)
        array *= 0.5
        assert [bits(t) for t in got] == want
    assert replayed() - before >= 5
    memory = held()
    call(other)
    assert held() == memory


def test_shared_memory_in_a_mode_around_the_call():
    """There the call's end is not the program's: what was there when an operator read is copied."""
    array = np.ones(50, np.float32)
    x = torch.from_numpy(array)
    call = torch.fuse(lambda y: y * x + 1, pure=True)
    with torch.fuse():
        results = []
        for k in range(6):
            array[:] = k
            results += [call(x), x * x + 1]
            array[:] = 100
    assert [t[0].item() for t in results] == [k * k + 1 for k in range(6) for _ in range(2)]


def test_shared_memory_that_the_function_writes():
    array = np.ones(50, np.float32)
    x = torch.from_numpy(array)

    def fn(y):
        z = y * x
        x.add_(1)
        return z + x

    call, y = torch.fuse(fn), torch.full((50,), 2.0)
    for k in range(6):
        assert call(y).tolist() == [2.0 * (k + 1) + k + 2] * 50
        assert array.tolist() == [k + 2.0] * 50
