"""The mode in threads and in processes."""

import tinytorch
from fuse.helpers import chain, in_threads, pending, python, ramp, same
from tinytorch import nn
from tinytorch.backends.cpu import lib


# ---- Threads.


def test_each_thread_has_its_own_mode():
    seen = {}

    def work(k):
        y = ramp(4) + 1
        seen["outside"] = pending(), same(y, ramp(4) + 1)

    with tinytorch.fuse():
        x = ramp(4) * 2
        n = pending()
        in_threads(1, work)
        assert pending() == n > 0
    assert seen["outside"] == (0, True) and same(x, ramp(4) * 2)


def test_a_tensor_recorded_in_one_thread_is_read_in_another():
    x = ramp(1000)
    wanted = chain(x)
    for read in (lambda y: y.tolist() == wanted.tolist(), lambda y: same(y * 2, wanted * 2), lambda y: same(y, wanted)):
        results = []
        with tinytorch.fuse():
            y = chain(x)
            assert pending() == 6
            in_threads(1, lambda k, y=y, read=read, results=results: results.append(read(y)))
        assert results == [True] and same(y, wanted)


def test_a_tensor_recorded_in_one_thread_goes_on_in_a_fused_other():
    x, out = ramp(500), {}
    with tinytorch.fuse():
        y = chain(x)

        def work(k):
            with tinytorch.fuse():
                out[k] = (y * k).sum() + y

        in_threads(4, work)
        z = y - 1
    for k in range(4):
        assert same(out[k], (chain(x) * k).sum() + chain(x))
    assert same(z, chain(x) - 1)


def test_a_thread_ends_with_what_it_recorded():
    """Its tensors outlive it."""
    kept = []

    def work(k):
        mode = tinytorch.fuse()
        mode.__enter__()
        kept.append((k, chain(ramp(64) + k)))  # never left

    in_threads(3, work)
    for k, y in kept:
        assert same(y, chain(ramp(64) + k))


def test_two_threads_write_what_one_has_recorded():
    """A read that was recorded sees the value before another thread's later write."""
    x = ramp(100)
    with tinytorch.fuse():
        y = x * 2
        in_threads(1, lambda k: x.add_(1))
        z = x * 2
    assert same(y, ramp(100) * 2) and same(z, (ramp(100) + 1) * 2) and same(x, ramp(100) + 1)


def model_of(seed):
    tinytorch.manual_seed(seed)
    return nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 3))


def train(model, steps=12, mode=None):
    """The losses of a few steps."""
    optimizer = tinytorch.optim.Adam(model.parameters(), lr=0.01)
    x, y = ramp(8, 6), tinytorch.arange(8) % 3
    losses = []
    for _ in range(steps):

        def step():
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        losses.append((mode(step) if mode else step)().item())
    return losses


def test_eight_threads_train_eight_models():
    wanted = [train(model_of(k)) for k in range(8)]
    models = [model_of(k) for k in range(8)]
    got = [None] * 8

    def work(k):
        got[k] = train(models[k], mode=tinytorch.fuse)

    in_threads(8, work)
    assert got == wanted and pending() == 0


def test_two_threads_on_shared_weights():
    weight = ramp(50, 50).requires_grad_()

    def loss_of(k):
        return ((weight * (k + 1)).tanh() * weight).sum()

    wanted = [tinytorch.autograd.grad(loss_of(k), weight)[0] for k in range(2)]
    got = {}

    def work(k):
        for _ in range(20):
            with tinytorch.fuse():
                got[k] = tinytorch.autograd.grad(loss_of(k), weight)[0]

    in_threads(2, work)
    assert all(same(got[k], wanted[k]) for k in range(2))


def test_lazy_weights_shared_by_threads():
    """Several threads want the same recorded values at the same moment."""
    x = ramp(2000)
    wanted = chain(x) * 3
    for _ in range(20):
        with tinytorch.fuse():
            y = chain(x)
            results = [None] * 4

            def work(k, y=y, results=results):
                results[k] = y * 3

            in_threads(4, work)
        assert all(same(r, wanted) for r in results)


# ---- Processes.


SWITCHED_ON = """
    import threading
    import tinytorch as torch
    from tinytorch.backends.cpu import lib
    x = torch.arange(1000.0)
    y = ((x * 2 + 1).sin() + x).sqrt()
    print(lib.tt_fuse_pending() > 0, y.double().sum().item())
    seen = []
    def work():
        z = x + 1
        seen.append((lib.tt_fuse_pending() > 0, z.sum().item()))
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    print(*seen[0])
    kept = x * 3  # never read
"""


def test_the_environment_variable_switches_it_on():
    eager, fused = python(SWITCHED_ON, TINYTORCH_FUSE="0"), python(SWITCHED_ON, TINYTORCH_FUSE="1")
    assert eager.split()[::2] == ["False", "False"] and fused.split()[::2] == ["True", "True"]
    assert eager.split()[1::2] == fused.split()[1::2]


def test_the_setting_holds_as_long_as_it_says():
    x = ramp(8)
    with tinytorch.config(fuse=1):
        y = x + 1
        assert pending() == 1 and lib.tt_fuse_depth() == 1
        with tinytorch.fuse():
            z = y * 2
            assert pending() == 2
            with tinytorch.config(fuse=0):
                assert pending() == 2 and lib.tt_fuse_depth() == 1, "still inside of fuse()"
        w = z - 3
        assert pending() == 1 and lib.tt_fuse_depth() == 1
    assert pending() == 0 and lib.tt_fuse_depth() == 0
    v = w + 1
    assert pending() == 0 and same(v, (x + 1) * 2 - 3 + 1) and same(y, x + 1)


def test_a_fork_in_the_mode():
    """Parent and child both have what was recorded before, and each goes on by itself."""
    out = python("""
        import os
        import tinytorch as torch
        x = torch.arange(100000.0)
        (x + x).sum().item()
        with torch.fuse():
            y = (x * 2 + 1).sqrt()
            child = os.fork()
            z = y + (1 if child else 2)
            got = z.sum(dtype=torch.float64).item()
        wanted = ((x * 2 + 1).sqrt() + (1 if child else 2)).sum(dtype=torch.float64).item()
        if not child:
            os._exit(0 if got == wanted else 1)
        print(os.waitpid(child, 0)[1], got == wanted)
    """)
    assert out.split() == ["0", "True"]


def test_data_loader_workers_in_the_mode():
    out = python("""
        import tinytorch as torch
        from tinytorch.utils.data import DataLoader, TensorDataset
        with torch.fuse():
            data = TensorDataset((torch.arange(12.0) * 2).reshape(6, 2))
            batches = [batch.sum().item() for batch, in DataLoader(data, batch_size=2, num_workers=2)]
        print(batches == [12.0, 44.0, 76.0])
    """)
    assert out.split() == ["True"]


def test_the_process_may_end_with_operators_pending():
    assert (
        python("""
        import tinytorch as torch
        mode = torch.fuse()
        mode.__enter__()
        y = torch.ones(10) * 2
        print(y.shape)
    """).strip()
        == "tinytorch.Size([10])"
    )
