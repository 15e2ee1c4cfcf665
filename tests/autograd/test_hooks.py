"""Hooks on tensors, on accumulated gradients and on saved tensors; checkpoint."""

import pytest
from tinytorch.utils.checkpoint import checkpoint

import tinytorch
from tinytorch.autograd import graph


def leaf(*values):
    return tinytorch.tensor(list(values), dtype=tinytorch.float64, requires_grad=True)


# ---- Tensor hooks.


@pytest.mark.parametrize("create_graph", [False, True])
def test_gradients_off_the_path_are_not_computed(create_graph):
    """Neither for an operator with two inputs, nor beyond it: hooks there do not run, and nothing is retained."""
    x, w, seen = leaf(1.0, 2.0), leaf(3.0, 4.0), []
    off = w * 2
    off.retain_grad()
    for t in (w, off):
        t.register_hook(lambda g: seen.append("off the path"))
    y = x * off
    y.grad_fn.register_hook(lambda grads, _: seen.append([g is not None for g in grads]))
    (g,) = tinytorch.autograd.grad((y * y).sum(), x, create_graph=create_graph, retain_graph=True)
    assert g.tolist() == [72.0, 256.0] and off.grad is None and seen == [[True, False]]
    (y * y).sum().backward(inputs=[x])
    assert x.grad.tolist() == [72.0, 256.0] and w.grad is None and off.grad is None and seen == [[True, False]] * 2


def test_hook_sees_the_gradient():
    x, seen = leaf(1.0, 2.0), []
    y = x * 2
    y.register_hook(lambda g: seen.append(g.tolist()))
    (y * 3).sum().backward()
    assert seen == [[3.0, 3.0]] and x.grad.tolist() == [6.0, 6.0]


def test_hook_replaces_the_gradient():
    x = leaf(1.0)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert x.grad.tolist() == [22.0], "hooks run in the order of registration, each on the last one's result"


def test_hook_on_a_leaf_runs_before_accumulation():
    x = leaf(1.0)
    x.register_hook(lambda g: g * 5)
    x.sum().backward()
    x.sum().backward()
    assert x.grad.item() == 10.0


def test_hook_sees_the_sum_of_all_paths_once():
    x, seen = leaf(1.0), []
    y = x * 1
    y.register_hook(lambda g: seen.append(g.item()))
    (y * 2 + y * 3).sum().backward()
    assert seen == [5.0]


def test_remove():
    x, seen = leaf(1.0), []
    handles = [x.register_hook(lambda g, i=i: seen.append(i)) for i in range(3)]
    handles[1].remove()
    handles[1].remove()  # twice is once
    x.sum().backward()
    assert seen == [0, 2]


def test_handle_as_a_context():
    x, seen = leaf(1.0), []
    with x.register_hook(lambda g: seen.append(1)):
        x.sum().backward()
    x.sum().backward()
    assert seen == [1]


def test_a_hook_may_remove_itself():
    x, seen = leaf(1.0), []

    def hook(g):
        seen.append(1)
        handle.remove()

    handle = x.register_hook(hook)
    x.sum().backward()
    x.sum().backward()
    assert seen == [1]


def test_hook_refusals():
    with pytest.raises(RuntimeError, match="require"):
        tinytorch.ones(1).register_hook(lambda g: None)
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: "not a tensor")
    with pytest.raises((TypeError, RuntimeError)):
        x.sum().backward()
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g[:1])
    with pytest.raises(RuntimeError, match="size|shape"):
        x.sum().backward()
    x = leaf(1.0, 2.0)
    x.register_hook(lambda g: g.half())
    with pytest.raises(RuntimeError, match="hook has changed the type of value: given a float.* returned a float16"):
        x.sum().backward()


def test_error_in_a_hook_comes_out():
    x = leaf(1.0)

    def hook(g):
        raise KeyError("mine")

    x.register_hook(hook)
    with pytest.raises(KeyError, match="mine"):
        x.sum().backward()
    assert x.grad is None


def test_hook_runs_with_autograd_grad():
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: g * 2)
    assert tinytorch.autograd.grad(y.sum(), x)[0].item() == 8.0


def test_hook_under_create_graph_is_differentiated():
    x = leaf(2.0)
    y = x * x
    y.register_hook(lambda g: g * g)
    (g,) = tinytorch.autograd.grad((y * x).sum(), x, create_graph=True)  # x^2 * 2x + x^2
    assert g.item() == 20.0
    assert tinytorch.autograd.grad(g.sum(), x)[0].item() == 6 * 4 + 4


def test_hook_stays_with_the_value_it_was_registered_on():
    """A write in place gives the tensor a new history; the hook watches the old value's gradient."""
    x, seen = leaf(1.0), []
    y = x * 1
    y.register_hook(lambda g: seen.append(g.item()))
    y.mul_(3)
    y.sum().backward()
    assert seen == [3.0]


def test_retain_grad_follows_writes_in_place():
    x = leaf(1.0)
    y = x * 1
    y.retain_grad()
    y.mul_(3)
    y.sum().backward()
    assert y.grad.item() == 1.0


def test_post_accumulate_grad_hook():
    x, seen = leaf(1.0, 2.0), []

    def hook(tensor):
        seen.append((tensor is x, tensor.grad.tolist()))
        tensor.grad = None

    handle = x.register_post_accumulate_grad_hook(hook)
    (x * 2).sum().backward()
    (x * 3).sum().backward()
    assert seen == [(True, [2.0, 2.0]), (True, [3.0, 3.0])] and x.grad is None
    handle.remove()
    x.sum().backward()
    assert len(seen) == 2
    with pytest.raises(RuntimeError, match="leaf"):
        (x * 2).register_post_accumulate_grad_hook(hook)


def test_optimizer_step_inside_the_backward():
    """The use of post-accumulate hooks: no gradient outlives its parameter's step."""
    x = leaf(1.0)

    @x.register_post_accumulate_grad_hook
    def step(p):
        with tinytorch.no_grad():
            p.sub_(p.grad, alpha=0.1)
        p.grad = None

    for _ in range(3):
        (x * x).sum().backward()
    assert x.item() == pytest.approx(0.8**3)


def test_node_hooks():
    x, seen = leaf(1.0), []
    y = x * 2
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].item(), outputs[0].item())))
    y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 10,))
    (y * 3).sum().backward()
    assert seen == [(60.0, 30.0)] and x.grad.item() == 60.0


# ---- Saved tensors.


def test_saved_tensors_hooks():
    packed, unpacked = [], []

    def pack(t):
        packed.append(t.tolist())
        return t.tolist()

    def unpack(values):
        unpacked.append(values)
        return tinytorch.tensor(values, dtype=tinytorch.float64)

    a, b = leaf(2.0), leaf(3.0)
    with graph.saved_tensors_hooks(pack, unpack):
        y = a * b
    assert sorted(packed) == [[2.0], [3.0]] and not unpacked
    y.sum().backward()
    assert sorted(unpacked) == [[2.0], [3.0]]
    assert (a.grad.item(), b.grad.item()) == (3.0, 2.0)
    (a * b).sum().backward()
    assert len(packed) == 2, "outside the context nothing is packed"


def test_saved_tensors_hooks_nest_innermost_wins():
    seen = []
    outer = graph.saved_tensors_hooks(lambda t: seen.append("outer") or t, lambda t: t)
    inner = graph.saved_tensors_hooks(lambda t: seen.append("inner") or t, lambda t: t)
    x = leaf(1.0)
    with outer:
        with inner:
            x.exp()
        x.exp()
    assert seen == ["inner", "outer"]


def test_pack_sees_no_graph_and_may_not_write():
    with graph.saved_tensors_hooks(lambda t: t + 0, lambda t: t):
        x = leaf(2.0)
        y = x * x
    y.sum().backward()
    assert x.grad.item() == 4.0


def test_disable_saved_tensors_hooks():
    hooks = graph.saved_tensors_hooks(lambda t: t, lambda t: t)
    with graph.disable_saved_tensors_hooks("not here"), pytest.raises(RuntimeError, match="not here"), hooks:
        pass


def test_save_on_cpu():
    x = leaf(2.0)
    with graph.save_on_cpu():
        y = x * x
    y.sum().backward()
    assert x.grad.item() == 4.0


# ---- checkpoint.


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint(use_reentrant):
    calls = []

    def block(x, w):
        calls.append(1)
        return (x @ w).tanh()

    tinytorch.manual_seed(0)
    x = tinytorch.randn(3, 4, dtype=tinytorch.float64, requires_grad=True)
    w = tinytorch.randn(4, 4, dtype=tinytorch.float64, requires_grad=True)
    block(block(x, w), w).sum().backward()
    wanted = x.grad.tolist(), w.grad.tolist()
    x.grad = w.grad = None
    calls.clear()
    y = checkpoint(block, checkpoint(block, x, w, use_reentrant=use_reentrant), w, use_reentrant=use_reentrant)
    assert len(calls) == 2
    y.sum().backward()
    assert len(calls) == 4, "backward ran each block once more"
    assert (x.grad.tolist(), w.grad.tolist()) == wanted


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_checkpoint_replays_randomness(use_reentrant):
    x = tinytorch.ones(1000, requires_grad=True)
    y = checkpoint(lambda t: tinytorch.nn.functional.dropout(t, 0.5), x, use_reentrant=use_reentrant)
    state = tinytorch.get_rng_state()
    y.sum().backward()
    assert x.grad.tolist() == y.tolist(), "the mask of backward is the mask of forward"
    assert tinytorch.get_rng_state().tolist() == state.tolist()


def test_checkpoint_takes_non_tensors_and_returns_tuples():
    x = leaf(1.0, 2.0)
    a, b = checkpoint(lambda t, k, scale=1: (t * k, t * scale), x, 3, scale=4, use_reentrant=False)
    (a + b).sum().backward()
    assert x.grad.tolist() == [7.0, 7.0]


def test_checkpoint_keeps_less():
    """What lies between a block's ends is not held between forward and backward."""

    def deep(t):
        for _ in range(20):
            t = t.sin()
        return t

    def held(function):
        before = tinytorch.cpu.memory_stats()["allocated_bytes.all.current"]
        y = function(x)
        size = tinytorch.cpu.memory_stats()["allocated_bytes.all.current"] - before
        y.sum().backward()
        return size

    x = tinytorch.ones(4096, requires_grad=True)
    assert held(lambda t: checkpoint(deep, t, use_reentrant=False)) < held(deep) / 5


def test_checkpoint_second_derivative():
    x = leaf(0.5)
    y = checkpoint(lambda t: t.exp() * t, x, use_reentrant=False)
    (g,) = tinytorch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = tinytorch.autograd.grad(g.sum(), x)
    assert gg.item() == pytest.approx(2.5 * 2.718281828459045**0.5)
