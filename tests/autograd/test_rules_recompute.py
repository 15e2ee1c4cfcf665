"""What checkpoints do to programs, as in PyTorch: rules.py."""

# ruff: noqa: B023 - what a loop defines is called in the same turn

import gc
import importlib
import weakref

import pytest
from rules import agree, leaf, outcome, programs

PROGRAMS, program = programs()


def module(torch):
    return importlib.import_module(f"{torch.__name__}.utils.checkpoint")


@program
def keyword_arguments(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    y = checkpoint(lambda a, b=None, *, c=1: a * b * c, x, b=x, c=3, use_reentrant=False)
    y.sum().backward()
    return x.grad


@program
def arguments_that_are_no_tensors(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    out = []
    for r in (True, False):
        x.grad = None
        y = checkpoint(lambda a, d, n, s: (a * d["k"], n, None, s[0] * a), x, {"k": 2}, None, [3], use_reentrant=r)
        (y[0].sum() + y[3].sum()).backward()
        out.append((x.grad, y[1], y[2]))
    return out


@program
def writes_inside(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    out = []
    for r in (True, False):
        x.grad = None

        def f(a):
            b = a * 2
            b.mul_(a)
            c = b * 3
            c.relu_()
            return c.sin()

        checkpoint(f, x, use_reentrant=r).sum().backward()
        out.append(x.grad.round(decimals=2))
    return out


@program
def modules(torch):
    checkpoint = module(torch).checkpoint
    torch.manual_seed(0)
    m = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    out = []
    ref = None
    for mode in (None, True, False):
        m.zero_grad()
        x = torch.ones(4, 2, requires_grad=True)
        y = m(x) if mode is None else checkpoint(m, x, use_reentrant=mode)
        y.sum().backward()
        g = [p.grad.clone() for p in m.parameters()] + [x.grad]
        if ref is None:
            ref = g
        out.append([bool((a - b).abs().max() < 1e-6) for a, b in zip(g, ref)])
    return out


@program
def backward_three_times(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    n = [0]

    def f(a):
        n[0] += 1
        return (a.sin() * a).exp()

    y = checkpoint(f, x, use_reentrant=False).sum()
    y.backward(retain_graph=True)
    y.backward(retain_graph=True)
    y.backward()
    return n, x.grad.round(decimals=3), outcome(lambda: y.backward())


@program
def backward_in_parts(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    w = leaf(torch, 3.0, 4.0)
    n = [0]

    def f(a):
        n[0] += 1
        return a.sin() * w, a.exp()

    p, q = checkpoint(f, x, use_reentrant=False)
    g = torch.autograd.grad(q.sum(), x, retain_graph=True)
    h = torch.autograd.grad(p.sum(), w)
    return [t.round(decimals=3) for t in (*g, *h)]


@program
def errors_inside(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    k = [0]

    def f(a):
        k[0] += 1
        y = a.sin()
        if k[0] == 2:
            raise KeyError("second")
        return y.exp()

    y = checkpoint(f, x, use_reentrant=False).sum()
    return (
        outcome(lambda: y.backward()),
        torch.is_grad_enabled(),
        outcome(lambda: checkpoint(lambda a: 1 / 0, x, use_reentrant=False)),
    )


@program
def without_gradients(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    with torch.no_grad():
        y = checkpoint(lambda a: a * 2, x, use_reentrant=False)
        z = checkpoint(lambda a: a * 2, x, use_reentrant=True)

    def f(a):
        with torch.no_grad():
            b = a.exp()
        return a * b

    w = checkpoint(f, x, use_reentrant=False)
    w.sum().backward()
    return y.requires_grad, z.requires_grad, x.grad.round(decimals=3)


@program
def detached_outputs(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    out = []
    for r in (True, False):
        y, z = checkpoint(lambda a: (a * 2, a.detach()), x, use_reentrant=r)
        y.sum().backward()
        out.append((y.requires_grad, z.requires_grad, x.grad.clone()))
    return out


@program
def tensor_hooks_inside(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    log = []

    def f(a):
        b = a.sin()
        b.register_hook(lambda g: log.append("h"))
        return b.exp()

    checkpoint(f, x, use_reentrant=False).sum().backward()
    return log


@program
def saved_tensor_hooks_around(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0, 2.0)
    log = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (log.append("p"), t)[1], lambda t: (log.append("u"), t)[1]):
        y = checkpoint(lambda a: a.sin().exp(), x * 1, use_reentrant=False)
        z = y * y
    z.sum().backward()
    return log, x.grad.round(decimals=3)


@program
def where_hooks_are_disabled(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 1.0)
    with torch.autograd.graph.disable_saved_tensors_hooks("no"):
        return outcome(lambda: checkpoint(lambda a: a.sin(), x, use_reentrant=False))


@program
def nothing_is_kept(torch):
    checkpoint = module(torch).checkpoint
    live = []
    x = leaf(torch, 1.0, 2.0)

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            y = a * 2
            live.append(weakref.ref(y))
            ctx.save_for_backward(y)
            return y.clone()

        @staticmethod
        def backward(ctx, g):
            assert len(ctx.saved_tensors) == 1
            return g * 2

    y = checkpoint(lambda a: F.apply(a.sin()), x, use_reentrant=False)
    a = [r() is None for r in live]
    y.sum().backward()
    del y
    gc.collect()
    return a, [r() is None for r in live]


@program
def three_derivatives(torch):
    checkpoint = module(torch).checkpoint
    x = leaf(torch, 0.5, 0.7)
    y = checkpoint(lambda a: (a.sin() * a).sum(), x, use_reentrant=False)
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x, create_graph=True)
    (k,) = torch.autograd.grad(h.sum(), x)
    return [t.detach().round(decimals=4) for t in (g, h, k)]


@program
def sequences(torch):
    m = module(torch)
    x = leaf(torch, 0.5)
    out = []
    for seg in (1, 2, 3, 5):
        for r in (True, False):
            x.grad = None
            out.append(
                outcome(
                    lambda: (
                        m.checkpoint_sequential([torch.sin, torch.exp, torch.cos], seg, x, use_reentrant=r)
                        .sum()
                        .backward(),
                        round(float(x.grad), 4),
                    )[1]
                )
            )
    out.append(
        outcome(
            lambda: (
                m.checkpoint_sequential(
                    torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Sigmoid()), 2, x, use_reentrant=False
                ).shape
            )
        )
    )
    return out


@program
def what_hooks_may_give(torch):
    x = leaf(torch, 1.0, 2.0)
    H = torch.autograd.graph.saved_tensors_hooks
    out = []
    for pack, unpack in (
        (lambda t: 3, lambda v: torch.ones(2) * v),
        (lambda t: t, lambda v: None),
        (lambda t: t, lambda v: 5),
        (lambda t: None, lambda v: torch.zeros(2)),
        (lambda t: 1 / 0, lambda v: v),
        (lambda t: t, lambda v: 1 / 0),
    ):
        x.grad = None

        def f():
            with H(pack, unpack):
                y = (x * x).sum()
            y.backward()
            return x.grad

        out.append(outcome(f))
    return out, torch.is_grad_enabled()


@program
def hooks_in_hooks(torch):
    x = leaf(torch, 1.0, 2.0)
    log = []
    H = torch.autograd.graph.saved_tensors_hooks
    with H(lambda t: (log.append("a"), t)[1], lambda t: (log.append("A"), t)[1]):
        y = x * x
        with H(lambda t: (log.append("b"), t * 2)[1], lambda t: (log.append("B"), t / 2)[1]):
            z = y.exp()
        w = z * z
    w.sum().backward()
    return log, x.grad.round(decimals=2)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
