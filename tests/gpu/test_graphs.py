"""CUDA graphs: what is recorded, what memory it uses, and what cannot be recorded."""

import gc

import pytest
import tinytorch as tt
from tinytorch import cuda, generator, nn
from tinytorch.nn import functional as F

pytestmark = pytest.mark.usefixtures("gpu")


def values(n=64, seed=0):
    tt.manual_seed(seed)
    return tt.randn(n).cuda()


def test_nothing_runs_before_the_replay():
    x = values()
    expected = (x * 2 + 1).exp()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        assert cuda.is_current_stream_capturing()
        y = (x * 2 + 1).exp()
    assert not cuda.is_current_stream_capturing()
    y.fill_(7)
    g.replay()
    assert bool((y == expected).all())
    x.copy_(values(seed=1))
    g.replay()
    assert bool((y == (x * 2 + 1).exp()).all())


def test_a_graph_keeps_its_memory_from_others():
    x = values()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = (x * 2).exp() * 3  # its intermediates are free for the graph alone
    inside = [s for s in cuda.memory_snapshot(0) if s["segment_pool_id"] == g.pool()]
    assert inside and y.data_ptr() in range(inside[0]["address"], inside[0]["address"] + inside[0]["total_size"])
    others = [tt.zeros(64, device="cuda") for _ in range(50)]
    for segment in inside:
        span = range(segment["address"], segment["address"] + segment["total_size"])
        assert not any(t.data_ptr() in span for t in others)
    g.replay()
    cuda.synchronize()
    assert all(bool((t == 0).all()) for t in others) and bool((y == (x * 2).exp() * 3).all())


def test_memory_goes_back_with_the_graph():
    x = values()
    gc.collect()
    cuda.synchronize()
    cuda.empty_cache()
    before = cuda.memory_reserved(0)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        y = x + 1
    cuda.empty_cache()
    assert cuda.memory_reserved(0) > before
    del y
    cuda.empty_cache()
    assert cuda.memory_reserved(0) > before  # the graph still writes there
    g.reset()
    cuda.empty_cache()
    assert cuda.memory_reserved(0) == before


def test_graphs_may_share_a_pool():
    x, first, second = values(), cuda.CUDAGraph(), cuda.CUDAGraph()
    with cuda.graph(first):
        y = x * 2
    with cuda.graph(second, pool=first.pool()):
        z = y + 1
    assert first.pool() == second.pool() != cuda.graph_pool_handle()
    first.replay()
    second.replay()
    assert bool((z == x * 2 + 1).all())


def test_a_pool_outlives_its_first_graph():
    pool, x = cuda.graph_pool_handle(), values(4)
    for _ in range(2):  # the second graph's pool had lost its last graph
        g = cuda.CUDAGraph()
        with cuda.graph(g, pool=pool):
            y = (x.expand(1 << 20, 4) + 1).sum(0)  # what is summed is free afterwards, for the graph alone
        before = cuda.memory_reserved(0)
        cuda.empty_cache()
        assert cuda.memory_reserved(0) == before
        g.replay()
        assert bool((y == (x.expand(1 << 20, 4) + 1).sum(0)).all())
        del g, y
    cuda.empty_cache()
    assert not [s for s in cuda.memory_snapshot(0) if s["segment_pool_id"] == pool]


def test_reset_ends_a_recording():
    g, x = cuda.CUDAGraph(), values()
    with cuda.stream(cuda.Stream()):
        g.capture_begin()
        y = x + 1
        g.reset()
        assert not cuda.is_current_stream_capturing()
        with pytest.raises(RuntimeError, match="capture_begin was not called"):
            g.capture_end()
        assert bool((x * 2 == x + x).all())  # read, which a recording could not be
        g.capture_begin()
        y = x + 2
        g.capture_end()
        g.replay()
        assert bool((y == x + 2).all())


def test_a_training_step_as_a_graph():
    w, x = values(8).requires_grad_(), values(8, 1)

    def step():
        loss = ((w * x - 1) * (w * x - 1)).mean()
        loss.backward()
        with tt.no_grad():
            w.sub_(w.grad * 0.1)
            w.grad.zero_()
        return loss.detach()

    step()  # makes the gradient, and compiles kernels
    start = w.detach().clone()
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        loss = step()
    losses = []
    for _ in range(5):
        g.replay()
        losses.append(loss.item())
    replayed = w.detach().clone()
    with tt.no_grad():
        w.copy_(start)
    assert losses == [step().item() for _ in range(5)] and losses[-1] < losses[0]
    assert bool((w == replayed).all())


def test_pinned_memory_is_read_anew():
    host = tt.zeros(4).pin_memory()
    x = tt.empty(4, device="cuda")
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        x.copy_(host, non_blocking=True)
        y = x + 1
    host.fill_(5)
    g.replay()
    assert y.tolist() == [6.0] * 4


@pytest.mark.parametrize(
    "bad",
    [
        lambda x: x.cpu(),
        lambda x: x.sum().item() if x.numel() > 1 else x.item(),
        lambda x: x.copy_(tt.ones(64)),
        lambda x: x.copy_(tt.ones(64).pin_memory()),
    ],
)
def test_what_cannot_be_recorded(bad):
    x = values()
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="during CUDA graph capture"), cuda.graph(g):
        bad(x)
    assert not cuda.is_current_stream_capturing()
    with cuda.graph(again := cuda.CUDAGraph()):
        y = x + 1
    again.replay()
    assert bool((y == x + 1).all())


def draws(generator):
    """Random numbers of several kinds, of which all but the last come from the default generator."""
    x = tt.ones(100, device="cuda")
    return (
        tt.rand(70, device="cuda"),
        F.dropout(x, 0.4),
        tt.randint(0, 1 << 40, (9,), device="cuda"),
        tt.bernoulli(x.double() * 0.5),
        tt.randperm(70, device="cuda"),
        tt.empty(5, device="cuda").normal_(generator=generator),
    )


def test_each_replay_draws_anew():
    def seeded():
        tt.manual_seed(3)
        return tt.Generator("cuda").manual_seed(4)

    generator = seeded()
    expected = [draws(generator) for _ in range(3)] + [tt.rand(3, device="cuda")]
    generator = seeded()
    g = cuda.CUDAGraph()
    g.register_generator_state(generator)
    with cuda.graph(g):
        out = draws(generator)
    for wanted in expected[:3]:  # what eager mode draws
        g.replay()
        for a, b in zip(out, wanted):
            assert bool((a == b).all())
    assert bool((tt.rand(3, device="cuda") == expected[3]).all())
    tt.manual_seed(3)
    g.replay()  # the place in the stream is the generator's, not the graph's
    assert bool((out[0] == expected[0][0]).all()) and not bool((out[5] == expected[0][5]).all())
    first, second = (tt.Generator("cuda").manual_seed(s) for s in (1, 2))
    with cuda.graph(other := cuda.CUDAGraph()):
        y = tt.empty(9, device="cuda").uniform_(generator=first) + tt.empty(9, device="cuda").uniform_(generator=second)
    other.replay()
    assert bool(
        (
            y == sum(tt.empty(9, device="cuda").uniform_(generator=tt.Generator("cuda").manual_seed(s)) for s in (1, 2))
        ).all()
    )


def test_a_generator_stays_where_it_is_while_a_graph_is_recorded():
    g, x = cuda.CUDAGraph(), values()
    before = tt.get_rng_state(), cuda.get_rng_state()
    for change in (lambda: tt.manual_seed(5), lambda: cuda.manual_seed(5), lambda: cuda.set_rng_state(before[1])):
        with pytest.raises(RuntimeError, match="cannot go to another place during CUDA graph capture"), cuda.graph(g):
            x.uniform_()
            change()
        g.reset()
    assert tt.equal(before[0], tt.get_rng_state()) and tt.equal(before[1], cuda.get_rng_state())
    with pytest.raises(RuntimeError, match="Expected a 'cuda' device type for generator but found 'cpu'"):
        g.register_generator_state(tt.Generator())
    with pytest.raises(TypeError, match="must be Generator, not int"):
        g.register_generator_state(3)
    with cuda.graph(g):
        x.uniform_()
    with pytest.raises(RuntimeError, match="cannot become part of another"), cuda.graph(cuda.CUDAGraph()):
        g.replay()


def test_a_graph_in_fused_mode():
    x = values()
    expected = ((x * 2 + 1).exp(), x * 2)
    tt.manual_seed(3)
    noise = [tt.rand(64, device="cuda") for _ in range(2)]
    tt.manual_seed(3)
    g = cuda.CUDAGraph()
    with tt.fuse():
        z = x * 2  # put off, but not for the graph to do
        with cuda.graph(g):
            y = (x * 2 + 1).exp()
            r = tt.rand(64, device="cuda") * 2
        assert bool((z == expected[1]).all())
    for wanted in noise:
        y.fill_(7)
        g.replay()
        assert bool((y == expected[0]).all()) and bool((r == wanted * 2).all())


def test_wrong_use():
    g = cuda.CUDAGraph()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.replay()
    with pytest.raises(RuntimeError, match="without a preceding successful capture"):
        g.pool()
    with pytest.raises(RuntimeError, match="non-default stream"):
        g.capture_begin()
    with pytest.raises(RuntimeError, match="capture_begin was not called"):
        g.capture_end()
    with cuda.graph(g):
        pass
    with pytest.raises(RuntimeError, match="already owns a captured graph"), cuda.graph(g):
        pass
    assert cuda.current_stream() == cuda.default_stream()


def test_a_function_as_graphs():
    def f(a, b):
        return (a * b).exp(), a + b

    def run(fn, a, b):
        a, b = a.clone().requires_grad_(), b.clone()
        out = fn(a, b)
        (out[0] * 3 + out[1]).sum().backward()
        return [t.detach().clone() for t in (*out, a.grad)]

    fast = cuda.make_graphed_callables(f, (values().requires_grad_(), values(seed=1)))
    for seed in (2, 4):
        a, b = values(seed=seed), values(seed=seed + 1)
        for x, y in zip(run(fast, a, b), run(f, a, b)):
            assert bool((x == y).all())
    with pytest.raises(RuntimeError, match=r"argument 1 has shape \(3,\)"):
        fast(values(), values(3))
    with pytest.raises(TypeError, match="takes 2 tensors, got 1"):
        fast(values())


def test_dropout_in_a_function_as_graphs():
    x = tt.ones(1000, device="cuda").requires_grad_()
    fast = cuda.make_graphed_callables(lambda a: F.dropout(a * 2, 0.5), (x,))
    masks = []
    for _ in range(3):
        out = fast(x)
        (grad,) = tt.autograd.grad(out.sum(), x)
        assert bool((grad == out).all())  # forward and backward have the same mask
        masks.append(out.detach().clone())
    assert not tt.equal(masks[0], masks[1]) and not tt.equal(masks[1], masks[2])


def test_a_module_as_graphs():
    tt.manual_seed(0)
    model, plain = (nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4)).cuda() for _ in range(2))
    plain.load_state_dict(model.state_dict())
    fast = cuda.make_graphed_callables(model, (tt.zeros(5, 8, device="cuda"),))
    assert fast is model
    for step in range(3):  # gradients add up
        x = values(40, step).reshape(5, 8)
        (model(x) * 2).sum().backward()
        (plain(x) * 2).sum().backward()
        for p, q in zip(model.parameters(), plain.parameters()):
            assert bool((p.grad == q.grad).all())
    model.eval()
    x = values(24).reshape(3, 8)
    assert bool((model(x) == plain(x)).all())  # another mode: not the graph


def test_a_graph_may_draw_the_first_random_numbers(monkeypatch):
    """The device's generator is made when it is asked for."""
    tt.manual_seed(3)
    expected = tt.rand(8, device="cuda")
    monkeypatch.setattr(generator, "_defaults", generator._defaults[:1])
    tt.manual_seed(3)
    g = cuda.CUDAGraph()
    with cuda.graph(g):
        r = tt.rand(8, device="cuda")
    g.replay()
    assert tt.equal(r, expected)
    g.replay()
    assert not tt.equal(r, expected)
