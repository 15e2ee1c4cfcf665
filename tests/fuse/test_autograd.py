"""The tape in fused mode: gradients of every order, versions and saved values, hooks, custom Functions, grad modes."""

import pytest

import tinytorch
from fuse.helpers import held, pending, ramp, same
from tinytorch import nn
from tinytorch.autograd import Function, grad
from tinytorch.utils.checkpoint import checkpoint


def fused(fn):
    """fn() eagerly and fused."""
    eager = fn()
    with tinytorch.fuse():
        result = fn()
    return eager, result


def assert_same(a, b):
    assert len(a) == len(b)
    for x, y in zip(a, b):
        assert (x is None) == (y is None)
        if isinstance(x, tinytorch.Tensor):
            assert same(x, y)
        else:
            assert x == y


def test_gradients_are_recorded_too():
    x = ramp(20).requires_grad_()
    with tinytorch.fuse():
        y = (x.tanh() * x).sum()
        n = pending()
        (g,) = grad(y, x)
        assert pending() > n > 0, "backward computes nothing"
    assert same(g, grad((x.tanh() * x).sum(), x)[0])


def test_derivatives_of_order_four():
    def derivatives():
        x = ramp(11).requires_grad_()
        y, found = (x.tanh() * x.exp()).sum(), []
        for _ in range(4):
            (g,) = grad(y, x, create_graph=True)
            found.append(g)
            y = (g * g).sum()
        return found

    assert_same(*fused(derivatives))


def test_backward_accumulates_and_is_read_later():
    def run():
        x = ramp(9).requires_grad_()
        for k in range(3):
            ((x * k).sin() * x).mean().backward()
        return x.grad, x

    assert_same(*fused(run))


@pytest.mark.parametrize("loss", [nn.functional.smooth_l1_loss, nn.functional.huber_loss])
@pytest.mark.parametrize("create_graph", [False, True])
def test_slopes_with_kernels_of_their_own(loss, create_graph):
    """Those of losses, and dropout's: what draws and multiplies at once in eager mode is recorded as two operators."""

    def run():
        tinytorch.manual_seed(2)
        x, y = ramp(40, 30).requires_grad_(), ramp(30, 40).t()
        dropped = nn.functional.dropout(x * 2, 0.3)
        (g,) = grad(loss(dropped, y, reduction="none").sin().sum(), x, create_graph=create_graph)
        return dropped, g, *(grad((g * g).sum(), x) if create_graph else ())

    assert_same(*fused(run))


def test_retain_grad():
    def run():
        x = ramp(9).requires_grad_()
        y = x * 2
        y.retain_grad()
        z = y.exp()
        z.retain_grad()
        (z * z).sum().backward()
        return x.grad, y.grad, z.grad

    assert_same(*fused(run))


# ---- Versions and saved values.


def test_versions_count_as_ever():
    def run():
        x, versions = ramp(4, 4), []
        for write in (
            lambda: x.add_(1),
            lambda: x[1].mul_(2),
            lambda: x.__setitem__((0, 0), 3.0),
            lambda: x.t().exp_(),
            lambda: x.copy_(ramp(4)),
            lambda: x.zero_(),
            lambda: tinytorch.add(x, 1, out=x),
        ):
            write()
            versions.append(x._version)
        return versions

    eager, inside = fused(run)
    assert eager == inside == [1, 2, 3, 4, 5, 6, 7]


@pytest.mark.parametrize(
    "write",
    [
        lambda a: a.add_(1),
        lambda a: a[0].zero_(),
        lambda a: a.detach().mul_(2),
        lambda a: tinytorch.exp(tinytorch.ones(5), out=a.detach()),
    ],
)
def test_an_overwritten_saved_value_is_noticed(write):
    def run():
        x = ramp(5).requires_grad_()
        a = x * 2
        b = a * a
        write(a)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as error:
            b.sum().backward()
        return [str(error.value)]

    assert_same(*fused(run))


@pytest.mark.filterwarnings("ignore")
def test_anomaly_mode_names_the_user_s_lines():
    x = ramp(5).requires_grad_()
    with tinytorch.fuse(), tinytorch.autograd.detect_anomaly(check_nan=False):
        a = x * 2
        b = a * a
        a.add_(1)
        with pytest.raises(RuntimeError) as error:
            b.sum().backward()
    assert __file__ in str(error.value)


@pytest.mark.filterwarnings("ignore")
def test_anomaly_mode_finds_nan():
    x = tinytorch.zeros(3, requires_grad=True)
    with tinytorch.fuse(), tinytorch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="(?i)nan"):
        (x / x).sum().backward()
    assert pending() == 0


def test_writes_into_the_graph():
    def run():
        x = ramp(4, 5).requires_grad_()
        y = x * 2
        view = y[1:3]
        view.mul_(x[0])
        y[:, 0] = x.sum(1)
        y.t()[2].add_(x[:, 1] * x[:, 3])
        y[0].copy_(x[1] * 3)
        y.masked_fill_(y > 1, 0.5)
        (g,) = grad((y * y).sum() + view.sum(), x, create_graph=True)
        (h,) = grad(g.sum(), x)
        return y, view, g, h, y._version

    assert_same(*fused(run))


def test_the_graph_goes_when_its_tensors_go(no_gc):
    x = ramp(1000).requires_grad_()
    with tinytorch.fuse():
        before = held()
        y = (x * 2).tanh() * x
        assert held() > before and pending() == 3
        del y
        assert held() == before and pending() == 3, "what was recorded holds none of it"


# ---- Hooks.


def test_hooks_see_and_change_gradients():
    def run():
        seen = []
        x = ramp(6).requires_grad_()
        y = x * 2
        y.register_hook(lambda g: seen.append(g.sum().item()))
        y.register_hook(lambda g: g * 3)
        x.register_hook(lambda g: g + 1)
        x.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.tolist()))
        y.grad_fn.register_hook(lambda inputs, outputs: seen.append([g is not None for g in inputs]))
        y.grad_fn.register_prehook(lambda outputs: (outputs[0] * 2,))
        y.sin().sum().backward()
        return x.grad, *seen

    assert_same(*fused(run))


def test_a_hook_that_reads_a_value_does_not_end_the_mode():
    x = ramp(6).requires_grad_()
    x.register_hook(lambda g: g * float(g.sum() > 0))
    with tinytorch.fuse():
        x.exp().sum().backward()
        y = x.grad * 2
        assert pending() > 0
    assert y.shape == (6,)


def test_a_hook_that_raises_leaves_all_in_order():
    def fail(g):
        raise KeyError("hook")

    x = ramp(6).requires_grad_()
    with pytest.raises(KeyError, match="hook"), tinytorch.fuse():
        y = x * 3
        y.register_hook(fail)
        y.sum().backward()
    assert pending() == 0 and same(y, x.detach() * 3) and x.grad is None


def test_module_hooks():
    def run():
        tinytorch.manual_seed(0)
        model, seen = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), []
        model[0].register_forward_hook(lambda m, args, out: seen.append(out.sum().item()) or out * 2)
        model[1].register_full_backward_hook(lambda m, gin, gout: seen.append(gout[0].sum().item()))
        model(ramp(2, 3)).sum().backward()
        return model[0].weight.grad, *seen

    assert_same(*fused(run))


def test_saved_tensor_hooks():
    def run():
        x, packed = ramp(5).requires_grad_(), []

        def pack(t):
            packed.append(t.sum().item())
            return t.numpy() if not t.requires_grad else t.detach().numpy().copy()

        with tinytorch.autograd.graph.saved_tensors_hooks(pack, lambda a: tinytorch.from_numpy(a.copy())):
            y = (x * 2).exp() * x
        (g,) = grad(y.sum(), x)
        return g, y, *packed

    assert_same(*fused(run))


# ---- Custom Functions and checkpoints.


class Scaled(Function):
    """x * exp(x) with a derivative of its own, which reads a value."""

    @staticmethod
    def forward(ctx, x, k):
        y = x * x.exp() * k
        ctx.save_for_backward(x, y)
        ctx.k = k
        return y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        factor = 1.0 if y.sum().item() > 0 else 2.0
        return g * (y + x.exp() * ctx.k) * factor, None


class Doubled(Function):
    """Writes its argument."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


def test_custom_functions():
    def run():
        x = ramp(8).requires_grad_()
        y = Scaled.apply(x * 1, 0.5)
        z = Doubled.apply(y + 1)
        (g,) = grad(z.sum(), x, create_graph=True)
        (h,) = grad((g * g).sum(), x)
        return y, z, g, h, z._version

    assert_same(*fused(run))


def test_checkpoint():
    def run():
        x = ramp(8).requires_grad_()
        y = checkpoint(lambda x: (x.tanh() * x).exp(), x, use_reentrant=False)
        return y, *grad(y.sum(), x)

    assert_same(*fused(run))


# ---- Grad modes.


def test_no_grad_inside():
    def run():
        x = ramp(8).requires_grad_()
        y = x * 2
        with tinytorch.no_grad():
            z = y * 3
            x.add_(1)
            y.mul_(1)
        w = y.detach() * x
        with tinytorch.inference_mode():
            v = x * 5
        return y, z, w, *grad(w.sum(), x), v.clone(), z.requires_grad, v.is_inference()

    assert_same(*fused(run))


def test_inference_tensors_keep_their_rules():
    x = ramp(4).requires_grad_()
    with tinytorch.fuse():
        with tinytorch.inference_mode():
            v = ramp(4) * 2
        assert v.is_inference()
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            x * v
    assert same(v, ramp(4) * 2)


def test_fused_inside_no_grad_and_inference_mode():
    x = ramp(4).requires_grad_()
    for mode in (tinytorch.no_grad(), tinytorch.inference_mode()):
        with mode, tinytorch.fuse():
            y = x * 2
            assert pending() == 1 and not y.requires_grad
        with tinytorch.fuse(), mode:
            z = x * 2
        assert same(y, x.detach() * 2) and same(z, x.detach() * 2)


# ---- Training.


@pytest.mark.parametrize("optimizer", ["SGD", "Adam", "AdamW", "RMSprop", "Adagrad"])
def test_training_gives_the_same_weights(optimizer):
    def run():
        tinytorch.manual_seed(0)
        model = nn.Sequential(nn.Linear(5, 16), nn.LayerNorm(16), nn.GELU(), nn.Dropout(0.2), nn.Linear(16, 3))
        steps = getattr(tinytorch.optim, optimizer)(model.parameters(), lr=0.05)
        x, y, losses = ramp(12, 5), tinytorch.arange(12) % 3, []
        for _ in range(8):
            steps.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            steps.step()
            losses.append(loss.detach())
        return *losses, *model.parameters(), *(p.grad for p in model.parameters())

    assert_same(*fused(run))


def test_losses_kept_over_many_steps_unread():
    """Nothing forces a value in the loop."""

    def run():
        w, losses = ramp(30).requires_grad_(), []
        for _ in range(200):
            loss = ((w * 1.5).sin() - w).square().mean()
            (g,) = grad(loss, w)
            with tinytorch.no_grad():
                w -= 0.1 * g
            losses.append(loss.detach())
        return w, *losses

    assert_same(*fused(run))
