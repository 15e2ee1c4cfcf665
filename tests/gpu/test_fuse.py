"""Fused mode on a device gives the bits of its eager mode: by eager kernels first, then by compiled ones."""

import contextlib

import pytest

import tinytorch
from tinytorch.backends.cpu import error, lib
from tinytorch.backends.cuda import runtime
from tinytorch.nn import functional as F

HOT = 3  # runs before a kernel is compiled, and some


def normalised(x):
    return (x - x.mean(1, keepdim=True)) / (x.var(1, keepdim=True) + 1e-5).sqrt()


def softmax(x):
    e = (x - x.amax(1, keepdim=True)).exp()
    return e / e.sum(1, keepdim=True)


def updated(x):
    x += 1
    x[1:] *= 2
    return x


def gradients(x, y):
    x, y = x.detach().requires_grad_(), y.detach().requires_grad_()
    return tinytorch.autograd.grad(((x * y).sigmoid() * x).sum(), (x, y))


def masked(x):
    tinytorch.manual_seed(0)
    return F.dropout(x * 2, 0.5, True) + 1


def loss(x):
    return F.cross_entropy(x * 2, tinytorch.arange(x.shape[0], device=x.device))


CASES = {  # name: the function, the shapes of its arguments, the kernels of the compiled program (None: not looked at)
    "chain": (lambda x, y: (x * y + 1).exp().tanh() - x, ((33, 70), (70,)), 1),
    "vectors": (lambda x: (x * 2 + 1).tanh() * x, ((5003,),), 1),
    "loss": (loss, ((33, 70),), None),
    "transposed": (lambda x: x.t() * 2 + x.sum(), ((33, 70),), None),
    "softmax": (softmax, ((33, 70),), 1),
    "softmax of long rows": (softmax, ((5, 2500),), 1),
    "normalised": (normalised, ((5, 2500),), None),
    "sum of columns": (lambda x, y: ((x * y).sum(0), x * y + 1), ((2500, 7), (7,)), None),
    "sum of everything": (lambda x: (x * 2 + 1).sum(), ((70003,),), None),
    "in place": (updated, ((33, 70),), None),
    "gradients": (gradients, ((33, 70), (70,)), None),
    "random": (masked, ((33, 70),), None),
}


def same(a, b):
    a, b = a.cpu(), b.cpu()
    return a.dtype is b.dtype and a.shape == b.shape and bool(((a == b) | (a.isnan() & b.isnan())).all())


def results(run, arguments):
    made = run(*(x.clone() for x in arguments))
    return made if isinstance(made, tuple) else (made,)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", CASES)
def test_fused_is_eager(gpu, name, dtype):
    if dtype == "float16" and name not in ("chain", "softmax", "gradients"):
        pytest.skip("half types differ in what is cast, not in how kernels walk")
    run, shapes, kernels = CASES[name]
    tinytorch.manual_seed(1)
    arguments = [tinytorch.randn(*shape).to("cuda", getattr(tinytorch, dtype)) for shape in shapes]
    eager = results(run, arguments)
    for _ in range(HOT + 2):
        with tinytorch.fuse():
            fused = results(run, arguments)
        assert all(map(same, eager, fused))
    assert tinytorch.fuse.wait(120)
    before = len(getattr(gpu, "launches", ()))
    with tinytorch.fuse():
        fused = results(run, arguments)
    assert all(map(same, eager, fused))
    if kernels and hasattr(gpu, "launches"):
        mine = [launch for launch in gpu.launches[before:] if launch == "fused"]
        assert len(mine) == kernels


ALONE = {
    "mul": lambda x, h: x * 3,
    "in place": lambda x, h: x.mul_(x),
    "two types": lambda x, h: x[0] + h,
    "where": lambda x, h: x.clamp(-1, h),
    "cast": lambda x, h: x.bfloat16(),
    "transposed": lambda x, h: x.t().contiguous(),
    "rows": lambda x, h: x.sum(1),
    "columns": lambda x, h: x.sum(0),
    "everything": lambda x, h: x.sum(),
    "largest": lambda x, h: x.amax(1, keepdim=True),
}


@pytest.mark.parametrize("name", ALONE)
def test_operators_with_nothing_to_fuse_are_eager_kernels(emulated, name):
    made, launches = [], []
    for _ in range(HOT + 2):
        for mode in (tinytorch.fuse(), contextlib.nullcontext()):
            x = tinytorch.arange(-900.0, 900.0, device="cuda").view(30, 60) / 7
            h = x.half()
            with mode:
                before = len(emulated.launches)
                result = ALONE[name](x, h)
            made.append(result)
            launches.append(emulated.launches[before:])
        assert tinytorch.fuse.wait(120)
    assert all(same(result, made[-1]) for result in made)
    assert "fused" not in sum(launches, []) and all(len(some) == len(launches[-1]) for some in launches)


DRAWN = {
    "normal": (lambda x: tinytorch.randn(30, device="cuda"), 1),
    "in place": (lambda x: x.clone().uniform_(), 2),
    "dropout": (lambda x: F.dropout(x, 0.3), 1),
    "before others": (lambda x: F.dropout(x, 0.3) + x, 2),
    "what was just computed": (lambda x: F.dropout((x * 2).tanh(), 0.3) + 1, 2),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("name", DRAWN)
def test_random_numbers_are_drawn_by_their_own_kernels(gpu, name, dtype):
    run, kernels = DRAWN[name]
    x = tinytorch.arange(-900.0, 900.0, device="cuda").to(getattr(tinytorch, dtype)) / 7
    made = []
    for mode in (contextlib.nullcontext(), *(tinytorch.fuse() for _ in range(HOT + 2))):
        tinytorch.manual_seed(5)
        before = len(getattr(gpu, "launches", ()))
        with mode:
            made.append(run(x))
        launches = getattr(gpu, "launches", ())[before:]
        assert tinytorch.fuse.wait(120)
    assert all(same(result, made[0]) for result in made)
    assert not launches or len(launches) == kernels


def test_a_recording_is_of_one_device(gpu):
    """Work for another device runs what is pending, and both give what they should."""
    x = tinytorch.arange(6.0)
    there = x.to("cuda")
    with tinytorch.fuse():
        a, b, c = there * 2, x + 1, there + 3
        a += c
    assert a.tolist() == [3.0 + 3 * k for k in range(6)]
    assert b.tolist() == [1.0 + k for k in range(6)]
    assert lib.tt_fuse_pending() == 0


def test_what_cannot_be_launched_stays_the_devices(emulated, monkeypatch):
    def fail(index):
        raise RuntimeError("the device is busy")

    x, here = tinytorch.arange(40.0, device="cuda:0"), tinytorch.arange(3.0)
    lib.tt_cuda_keep_launches(1)  # those kept are forgotten: each looks for its device
    with tinytorch.config(fuse_hot=-1), tinytorch.fuse():
        y = x * 3
        with monkeypatch.context() as m:
            m.setattr(emulated, "open", fail)
            found = [here * 2 + k for k in range(3)]  # the CPU's turn, but what is pending cannot run
        found.append(here * 2 + 3)
        assert [t.tolist() for t in found] == [[k, k + 2.0, k + 4.0] for k in range(4)]
        assert y.tolist() == (x.cpu() * 3).tolist()
    assert "busy" in str(error())  # which nobody was told


def test_a_number_on_the_cpu_goes_along(gpu):
    x = tinytorch.arange(6.0).to("cuda")
    half = tinytorch.tensor(0.5)
    with tinytorch.fuse():
        y = (x + 1) * half
    assert y.tolist() == [0.5 * (k + 1) for k in range(6)]


def test_minify_is_for_the_cpu(gpu):
    with pytest.raises(NotImplementedError, match="minify: softmax computes on cuda:0, and only the CPU's programs"):
        tinytorch.fuse.minify(softmax, tinytorch.ones(3, 4, device="cuda:0"))


def apart(x, bias, column, wide):
    """Operands of rows: one for all rows, one element for each row, part of longer rows."""
    return (x * 3 + bias).relu() * column + wide[:, 8:72]


def heads(wide):
    return wide.view(3, 12, 2, 2, 32).permute(2, 0, 3, 1, 4)[1] * 2


def written(x, wide):
    wide[:, 8:72] = x * 3
    return wide


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("offset", [0, 1])
def test_vectors_within_rows(gpu, dtype, offset):
    """Where operands lie one after the other within rows, a thread takes vectors, if they are aligned."""
    tinytorch.manual_seed(1)
    shapes = (36, 64), (64 + offset,), (36, 1), (36, 128)
    x, bias, column, wide = (tinytorch.randn(*shape).to("cuda", getattr(tinytorch, dtype)) for shape in shapes)

    def run():
        copy = wide.clone()
        return apart(x, bias[offset:], column, wide), heads(wide), written(x, copy)

    eager = run()
    for _ in range(HOT + 2):
        with tinytorch.fuse():
            run()
    assert tinytorch.fuse.wait(120)
    with tinytorch.fuse():
        fused = run()
    assert all(map(same, eager, fused))


@pytest.mark.parametrize("dtype, vector", [("float32", 4), ("float16", 8)])
@pytest.mark.parametrize("rows, length, offset, wide", [(36, 64, 0, True), (36, 64, 1, False), (36, 66, 0, False)])
def test_threads_take_vectors_within_aligned_rows(emulated, dtype, vector, rows, length, offset, wide):
    x, bias = (
        tinytorch.empty(*shape, dtype=getattr(tinytorch, dtype), device="cuda")
        for shape in ((rows, length), (length + offset,))
    )
    with emulated.planning() as plans:
        for _ in range(HOT + 2):
            with tinytorch.fuse():
                _ = x * 3 + bias[offset:]
            assert tinytorch.fuse.wait(120)
    (launch,) = [plan for plan in plans[-1:] if plan.family == "fused"]
    assert launch.grid[0] == -(-rows * length // (128 * vector if wide else 128))


def test_what_python_comes_upon_during_a_launch_may_be_fused_too(gpu, monkeypatch):
    """As a finalizer may: its own work is done at once, and waits for nothing that is being run."""
    x = tinytorch.arange(8.0, device="cuda")
    program = tinytorch.fuse(lambda a: (a + 1) * 2 - a)
    inner = tinytorch.fuse(lambda a: (a + 1) * 3)
    expected, found = ((x + 1) * 2 - x).tolist(), []
    functions = runtime._devices[0].loaded[False].functions

    def around(plain):
        def launch(*args):
            if not found:
                found.append(None)
                found.append(inner(tinytorch.ones(3)).tolist())
            plain(*args)

        return launch

    for key, plain in list(functions.items()):
        monkeypatch.setitem(functions, key, around(plain))
    lib.tt_cuda_keep_launches(1)
    assert program(x).tolist() == expected
    assert found[1] == [6.0] * 3
