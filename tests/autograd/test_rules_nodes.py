"""Nodes, their hooks, and gradients that are kept, as in PyTorch: rules.py."""

# ruff: noqa: B023, E742, E743 - what a loop defines is called in the same turn

import gc
import warnings
import weakref

import pytest
from rules import agree, leaf, outcome, plain, programs

PROGRAMS, program = programs()


@program
def hooks_that_come_and_go(torch):
    log = []
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    h = [y.register_hook(lambda g, k=k: log.append(k)) for k in range(3)]
    h[1].remove()
    h[1].remove()
    y.sum().backward(retain_graph=True)
    out = []
    z = x * 3
    z.register_hook(lambda g: 5)
    out.append(outcome(lambda: z.sum().backward()))
    z = x * 3
    z.register_hook(lambda g: torch.ones(3))
    out.append(outcome(lambda: z.sum().backward()))
    z = x * 3
    z.register_hook(lambda g: g.double())
    out.append(outcome(lambda: z.sum().backward()))
    z = x * 3
    z.grad_fn.register_hook(lambda gi, go: (gi[0] * 0, *gi[1:]))
    x.grad = None
    z.sum().backward()
    out.append(x.grad)
    z = x * 3
    z.grad_fn.register_prehook(lambda go: (go[0] * 0,))
    x.grad = None
    z.sum().backward()
    out.append(x.grad)
    z = x * 3

    def inner(g):
        h2.remove()
        return g * 2

    h2 = z.register_hook(inner)
    x.grad = None
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    out.append(x.grad)
    z = x * 3
    z.register_hook(lambda g: z.register_hook(lambda g: log.append("late")) and None)
    z.sum().backward(retain_graph=True)
    z.sum().backward()
    return log, out


@program
def retained_gradients(torch):
    x = leaf(torch, 1.0, 2.0)
    h = x * 3
    h.retain_grad()
    h.retain_grad()
    out = h * h
    out.sum().backward(retain_graph=True)
    a = h.grad.clone()
    out.sum().backward()
    b = h.grad.clone()
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 5)
    z = y * 1
    z.sum().backward()
    c = y.grad
    y = x * 2
    y.retain_grad()
    y.mul_(3)
    y.retain_grad()
    (y * 1).sum().backward()
    p, q = x.unbind()
    p.retain_grad()
    (p * 2).backward()
    return a, b, c, y.grad, p.grad, p.retains_grad, q.retains_grad, x.retains_grad


@program
def callbacks_that_queue_callbacks(torch):
    log = []
    q = torch.autograd.Variable._execution_engine.queue_callback
    x = leaf(torch, 1.0)
    y = x * 2

    def inner():
        log.append("inner")

    def outer():
        log.append("outer")
        q(inner)

    y.register_hook(lambda g: q(outer))
    y.backward()
    z = x * 3
    z.register_hook(lambda g: q(lambda: 1 / 0))
    return log, outcome(lambda: z.backward())


@program
def accumulated_gradients(torch):
    x = leaf(torch, 1.0, 2.0)
    out = []
    (x * 2).sum().backward()
    g = x.grad
    (x * 3).sum().backward()
    out.append((g is x.grad, g))
    x.grad = None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (x * x).sum().backward(create_graph=True)
        g = x.grad
        (x * x).sum().backward(create_graph=True)
        out.append((g is x.grad, g, x.grad, x.grad.requires_grad))
    e = torch.zeros(0, 2, requires_grad=True)
    (e * 2).sum().backward()
    out.append((e.grad.shape,))
    x = leaf(torch, 1.0, 2.0)
    x.grad = torch.ones(2)
    x.sum().backward()
    out.append(x.grad)
    x = leaf(torch, 1.0, 2.0)
    x.grad = torch.ones(1).expand(2)
    out.append(outcome(lambda: (x.sum().backward(), x.grad)[1]))
    h = torch.ones(2, dtype=torch.float16, requires_grad=True)
    (h.float() * 2).sum().backward()
    out.append(str(h.grad.dtype).split(".")[1])
    a = leaf(torch, 1.0, 2.0)
    b = leaf(torch, 1.0, 2.0)
    (a + b).sum().backward()
    a.grad[0] = 7
    out.append(b.grad)
    gr = torch.ones(2)
    c = leaf(torch, 1.0, 2.0)
    c.backward(gr)
    gr[0] = 9
    out.append(c.grad)
    return out


@program
def nodes(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x.exp()
    n = y.grad_fn
    return (
        n.name(),
        n.next_functions[0][1],
        n.next_functions[0][0].name().split("::")[-1],
        callable(n),
        plain(n(torch.ones(2))),
        isinstance(n, torch.autograd.graph.Node),
        type(n.next_functions[0][0]).__name__,
        n.next_functions[0][0].variable is x,
        outcome(lambda: n._sequence_nr() >= 0),
        issubclass(type(n), torch.autograd.graph.Node),
    )


@program
def what_is_freed_at_once(torch):
    out = []
    gc.disable()
    try:
        x = leaf(torch, 1.0)
        y = x.exp()
        r = weakref.ref(y)
        del y
        out.append(r() is None)

        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                y = x * 1
                ctx.save_for_backward(x, y)
                return y

            @staticmethod
            def backward(ctx, g):
                return g

        y = F.apply(x)
        r = weakref.ref(y)
        del y
        out.append(r() is None)
        y = x * 2
        y.register_hook(lambda g: None)
        y.retain_grad()
        r = weakref.ref(y)
        del y
        out.append(r() is None)
    finally:
        gc.enable()
    return out


@program
def anomalies(torch):
    class N(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g * float("nan")

    def run(f, **k):
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            with torch.autograd.detect_anomaly(**k):
                r = outcome(f)
        return r, len(w) >= 1, torch.is_anomaly_enabled()

    return (
        run(lambda: N.apply(leaf(torch, 1.0)).backward()),
        run(lambda: N.apply(leaf(torch, 1.0)).backward(), check_nan=False),
        run(lambda: leaf(torch, 0.0).sqrt().mul(0).backward()),
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
