"""Memory in fused mode: what is shared with NumPy, DLPack and views; what is held, and for how long."""

import gc
import textwrap

import numpy as np
import pytest
from compare import allocated

import tinytorch
from fuse.helpers import chain, held, pending, python, ramp, same

# ---- NumPy. What NumPy writes after an operator was called does not change that operator's result; what an operator
# writes is there for NumPy at once.


def test_numpy_writes_after_an_operator_read():
    array = np.ones(10, np.float32)
    x = tinytorch.from_numpy(array)
    with tinytorch.fuse():
        y = x * 2
        array[:] = 5
        z = x * 2
        array[0] = 7
        w = (x + 0).sum()
        array[:] = -1
    assert y.tolist() == [2.0] * 10 and z.tolist() == [10.0] * 10 and w.item() == 52


def test_numpy_writes_to_what_it_was_lent_before_the_mode():
    x = ramp(10)
    array = x.numpy()
    with tinytorch.fuse():
        y = x + 1
        array[:] = 0
        z = x + 1
    assert same(y, ramp(10) + 1) and z.tolist() == [1.0] * 10


def test_numpy_writes_to_what_it_was_lent_in_the_mode():
    with tinytorch.fuse():
        x = ramp(10) * 2
        array = x.numpy()
        y = x + 1
        array[:] = 0
        z = x + 1
    assert same(y, ramp(10) * 2 + 1) and z.tolist() == [1.0] * 10


def test_numpy_sees_a_write_in_place_at_once():
    array = np.zeros(6, np.float32)
    x = tinytorch.from_numpy(array)
    with tinytorch.fuse():
        x.add_(1)
        assert array.tolist() == [1] * 6
        x[2:4] = 5
        assert array.tolist() == [1, 1, 5, 5, 1, 1]
        x[:2].mul_(x[2:4] + 1)
        assert array[:2].tolist() == [6, 6]
        tinytorch.exp(tinytorch.zeros(6), out=x)
        assert array.tolist() == [1] * 6
        x.copy_(tinytorch.arange(6) * 2)
        assert array.tolist() == [0, 2, 4, 6, 8, 10]
        x.zero_()
        assert not array.any()


def test_numpy_sees_a_write_to_a_tensor_of_the_mode():
    with tinytorch.fuse():
        x = ramp(6) * 0
        array = x.numpy()
        part = x[1:3].numpy()
        x += 2
        assert array.tolist() == [2] * 6 and part.tolist() == [2, 2]
        part[:] = 9
        assert x.tolist() == [2, 9, 9, 2, 2, 2]


@pytest.mark.parametrize("lend", [np.from_dlpack, np.asarray, lambda x: x.detach().numpy(), lambda x: x[...].numpy()])
def test_every_way_to_lend_memory(lend):
    with tinytorch.fuse():
        x = ramp(8) + 1
        array = lend(x)
        y = x * 2
        x.add_(10)
        assert array.tolist() == (ramp(8) + 1 + 10).tolist()
        array[:] = 3
        assert x.sum().item() == 24
    assert same(y, (ramp(8) + 1) * 2)


def test_dlpack_to_torch_and_back(torch):
    with tinytorch.fuse():
        x = ramp(8) + 1
        theirs = torch.from_dlpack(x)
        y = x * 2
        theirs.fill_(4)
        x.add_(1)
        assert theirs.tolist() == [5.0] * 8
        ours = tinytorch.from_dlpack(theirs)
        z = ours * 3
        theirs.zero_()
    assert same(y, (ramp(8) + 1) * 2) and z.tolist() == [15.0] * 8


def test_numpy_holds_recorded_memory():
    with tinytorch.fuse():
        array = chain(ramp(1000)).numpy()
        others = [ramp(1000) * k for k in range(8)]
    assert array.tobytes() == chain(ramp(1000)).numpy().tobytes() and len(others) == 8


def test_a_shared_array_among_operands_and_gradients():
    array = np.linspace(0, 1, 12, dtype=np.float32)
    x = tinytorch.from_numpy(array)
    w = ramp(12).requires_grad_()
    wanted = tinytorch.autograd.grad((w * tinytorch.tensor(array)).tanh().sum(), w)[0]
    with tinytorch.fuse():
        (g,) = tinytorch.autograd.grad((w * x).tanh().sum(), w)
        array[:] = 0
    assert same(g, wanted)


# ---- Views.


def test_views_made_before_and_inside_see_each_other_s_writes():
    def run(x, before):
        inside = x.t()[2]
        x *= 2
        before += 1
        inside.sub_(3)
        after = x[:, 2].clone()
        x[1:3, 2] = 0
        return x, before, inside, after

    start = ramp(4, 5), ramp(4, 5)
    wanted = run(start[0], start[0][1:3])
    with tinytorch.fuse():
        got = run(start[1], start[1][1:3])
    assert [t._version for t in got] == [t._version for t in wanted] == [4, 4, 4, 0]
    assert all(same(g, w) for g, w in zip(got, wanted)) and wanted[2].tolist()[1:3] == [0, 0]


def test_a_read_recorded_before_a_write_has_the_old_value():
    x = ramp(10)
    with tinytorch.fuse():
        old = x + 0
        part = x[2:5] * 2
        x.fill_(9)
        new = x + 0
    assert same(old, ramp(10)) and same(part, ramp(10)[2:5] * 2) and new.tolist() == [9.0] * 10


def test_a_view_of_what_is_not_computed_outlives_it():
    with tinytorch.fuse():
        y = chain(ramp(4, 6))
        part = y[1:, ::2]
        del y
        total = part.sum()
    wanted = chain(ramp(4, 6))[1:, ::2]
    assert same(part, wanted) and same(total, wanted.sum())


def test_a_view_as_another_dtype():
    x = ramp(8)
    with tinytorch.fuse():
        y = x * 3
        bits = y.view(tinytorch.int32)
        bits += 1
        z = y + 0
    wanted = ramp(8) * 3
    wanted.view(tinytorch.int32).add_(1)
    assert same(y, wanted) and same(z, wanted) and same(bits, wanted.view(tinytorch.int32))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x[1:].add_(x[:-1]),
        lambda x: x[:-1].add_(x[1:]),
        lambda x: x[1:].copy_(x[:-1]),
        lambda x: x[:-1].mul_(x[1:] * 2),
        lambda x: x.t().copy_(x.clone()),
        lambda x: x.t().add_(x),
        lambda x: x.copy_(x.t()),
        lambda x: x.copy_(x.flip(0)),
        lambda x: x.add_(x[0]),
        lambda x: x.add_(x[:, :1]),
        lambda x: x.mul_(x.sum()),
        lambda x: x.sub_(x.mean(0)),
        lambda x: x.div_(x.amax(1, keepdim=True)),
        lambda x: tinytorch.add(x[0], x, out=x),
        lambda x: x.view(-1)[1:].exp_().sub_(x.view(-1)[:-1]),
    ],
)
@pytest.mark.parametrize("n", [4, 40])
def test_what_is_written_overlaps_what_is_read(write, n):
    wanted, x = ramp(n, n), ramp(n, n)
    write(wanted)
    with tinytorch.fuse():
        x += 0
        x -= 0
        kept = x * 2
        write(x)
        after = x + 1
    assert same(x, wanted) and same(after, wanted + 1) and same(kept, ramp(n, n) * 2)


def test_resize_and_storage_sharing():
    with tinytorch.fuse():
        x = ramp(6) * 2
        x.resize_(4)
        y = x + 1
    assert same(y, ramp(6)[:4] * 2 + 1)


# ---- Memory. 4 MB tensors, so that blocks are not lost among small ones.

MILLION = 1 << 20
SIZE = 4 * MILLION


def peak_of(run):
    gc.collect()
    base = allocated()
    tinytorch.cpu.reset_peak_memory_stats()
    result = run()
    return tinytorch.cpu.max_memory_allocated() - base, result


def test_a_long_chain_holds_few_tensors():
    x = ramp(MILLION)

    def long_chain():
        with tinytorch.fuse():
            y = x
            for k in range(200):
                y = (y * 1.0001 + k).sin()
        return y

    peak, y = peak_of(long_chain)
    assert peak <= 5 * SIZE, f"{peak / SIZE:.1f} tensors"
    wanted = x
    for k in range(200):
        wanted = (wanted * 1.0001 + k).sin()
    assert same(y, wanted)


RESIDENT = """
    import contextlib
    import tinytorch as torch

    def peak():
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM"))

    def loss(x):
        return ((x * 2 + 1).tanh() ** 2).mean()

    def total(x):
        return sum([(x * k).abs() for k in range(12)])

    def gradient(x):
        x = x.detach().requires_grad_()
        return torch.autograd.grad(((x * 2).tanh() * x).sum(), x)[0]

    with torch.fuse() if FUSED else contextlib.nullcontext():
        x, small = torch.ones(4 << 20), torch.ones(10)
        for f in (loss, total, gradient):
            f(small).reshape(-1)[0].item()
        for f in (loss, total, gradient):
            before = peak()
            f(x).reshape(-1)[0].item()
            print((peak() - before) / x.nbytes)
"""


def test_dead_intermediates_are_never_written():
    """Memory that nothing was written to has no pages."""
    eager = [float(word) for word in python("FUSED = False" + textwrap.dedent(RESIDENT)).split()]
    fused = [float(word) for word in python("FUSED = True" + textwrap.dedent(RESIDENT)).split()]
    assert eager[0] > 1.5 and eager[1] > 8, "the measure tells"
    assert fused[0] < 0.5 and fused[1] < 1.5 and fused[2] < 2.5, fused


def test_memory_comes_back(no_gc):
    x = ramp(MILLION).requires_grad_()

    def step():
        with tinytorch.fuse():
            loss = ((x * 2).tanh() * x).sum()
            (g,) = tinytorch.autograd.grad(loss, x)
            return (g + 1).sum().item()

    step()
    tinytorch.cpu.empty_cache()
    before = tinytorch.cpu.memory_stats()["allocated_bytes.all.current"]
    for _ in range(3):
        step()
    assert tinytorch.cpu.memory_stats()["allocated_bytes.all.current"] == before


def test_memory_of_what_is_never_read_comes_back(no_gc):
    x = ramp(1000)
    before = held()
    with tinytorch.fuse():
        for k in range(50):
            y = x * 2
            del y
            assert held() == before and pending() == k + 1, "freed when it died, not when the mode ends"
    assert held() == before and pending() == 0


def test_a_training_loop_does_not_grow(no_gc):
    model = tinytorch.nn.Linear(50, 50)
    optimizer = tinytorch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    x = ramp(20, 50)

    def step():
        optimizer.zero_grad()
        loss = (model(x).tanh() ** 2).mean()
        loss.backward()
        optimizer.step()

    with tinytorch.fuse():
        for _ in range(3):
            step()
        sizes = []
        for _ in range(20):
            step()
            model.weight.sum().item()
            sizes.append(allocated())
    assert max(sizes) == min(sizes)


@pytest.mark.parametrize("where", ["operators", "run"])
def test_out_of_memory_leaves_the_process_usable(where):
    """Under a limit of the address space: allocating fails while recording, or while temporaries of a run are made."""
    out = python(f"""
        import resource
        import tinytorch as torch
        x = torch.arange(20_000_000.0)
        y = torch.arange(1000.0)
        wanted = (y.sin() + 1).tolist()
        torch.set_num_threads(1)
        (y + 1).sum().item()
        with open("/proc/self/statm") as statm:
            used = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000, -1))
        kept = []
        try:
            with torch.fuse():
                z = y.sin() + 1
                for k in range(40):
                    kept.append(x * k)
                    if {where!r} == "run":
                        kept[-1] = kept[-1].cumsum(0).sort().values.sum() + kept[-1]
            print("no error")
        except torch.OutOfMemoryError as error:
            print("OutOfMemoryError", "80000000" in str(error) or "160000000" in str(error))
        del kept
        with torch.fuse():
            again = y.sin() + 1
        print(again.tolist() == wanted, z.tolist() == wanted)
        with torch.fuse():
            print(((x * 2 + 1) * 0).sum().item())
    """)
    assert out.split() == ["OutOfMemoryError", "True", "True", "True", "0.0"]
