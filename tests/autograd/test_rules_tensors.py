"""Leaves, views, modes, and what backward takes, as in PyTorch: rules.py."""

# ruff: noqa: B023, E742, E743 - what a loop defines is called in the same turn

import copy
import pickle
import threading
import warnings

import pytest
from rules import agree, leaf, outcome, programs

PROGRAMS, program = programs()


@program
def a_class_under_no_grad(torch):
    with warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always")

        @torch.no_grad()
        class C:
            def __init__(self):
                self.g = torch.is_grad_enabled()

        c = C()
    return [x.category.__name__ for x in w], c.g, isinstance(c, C) if isinstance(C, type) else "fn"


@program
def warnings_about_grad(torch):
    x = leaf(torch, 1.0)
    y = x * 2
    out = []
    for f in (lambda: x.grad, lambda: y.grad, lambda: (y.retain_grad(), y.grad), lambda: (x * 1).detach().grad):
        with warnings.catch_warnings(record=True) as w:
            warnings.simplefilter("always")
            f()
        out.append([i.category.__name__ for i in w])
    return out


@program
def what_backward_takes(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    o = [
        outcome(lambda: y.backward()),
        outcome(lambda: y.backward(torch.ones(3))),
        outcome(lambda: y.backward(torch.ones(2, dtype=torch.float64), retain_graph=True)),
        outcome(lambda: y.backward(3)),
        outcome(lambda: torch.autograd.backward([y, y], [torch.ones(2)])),
        outcome(lambda: torch.autograd.backward(y, torch.ones(2), retain_graph=True)),
        outcome(lambda: torch.autograd.backward((y,), (torch.ones(2),), grad_variables=[torch.ones(2)])),
        outcome(lambda: torch.autograd.backward([])),
        outcome(lambda: torch.autograd.grad([], [x])),
        outcome(lambda: torch.autograd.backward(torch.ones(2).sum())),
        outcome(lambda: torch.autograd.grad(y.sum(), x, only_inputs=False)),
        outcome(lambda: torch.autograd.grad(y, x, [None])),
        outcome(lambda: torch.autograd.grad(y, [x, x], torch.ones(2))),
        outcome(lambda: torch.ones(2).backward()),
    ]
    return o, x.grad


@program
def gradients_of_gradients(torch):
    x = leaf(torch, 1.0, 2.0)
    w = leaf(torch, 3.0, 4.0)
    g = leaf(torch, 5.0, 6.0)
    y = x * w
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.backward(g, create_graph=True)
    r = (x.grad.requires_grad, x.grad)
    z = torch.autograd.grad(x.grad.sum(), [g, w], allow_unused=True)
    return r, z


@program
def unused_inputs(torch):
    x = leaf(torch, 1.0)
    u = leaf(torch, 2.0)
    y = x * 2
    return (
        outcome(lambda: torch.autograd.grad(y, [x, u], retain_graph=True)),
        torch.autograd.grad(y, [x, u], allow_unused=True, retain_graph=True),
        torch.autograd.grad(y, [x, u], materialize_grads=True, retain_graph=True),
        outcome(lambda: torch.autograd.grad(y, [x], allow_unused=False, materialize_grads=True)),
        outcome(lambda: torch.autograd.grad(y, torch.ones(1))),
    )


@program
def batches_of_gradients(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x**2
    return torch.autograd.grad(y, x, torch.eye(2), is_grads_batched=True), outcome(
        lambda: torch.autograd.grad(y, x, torch.ones(2, 3), is_grads_batched=True)
    )


@program
def detached(torch):
    x = leaf(torch, 1.0, 2.0)
    y = x * 2
    z = y.detach()
    out = [z.requires_grad, z.is_leaf, z.grad_fn is None, z._version]
    y.add_(1)
    out += [z._version, z.tolist()]
    v = x.view(2)
    w = (x * 1)[:1]
    out += [outcome(lambda: w.detach_()), outcome(lambda: v.detach_()), outcome(lambda: x.detach_().requires_grad)]
    a = leaf(torch, 1.0) * 2
    a.detach_()
    out += [a.requires_grad, a.is_leaf, outcome(lambda: a.backward())]
    return out


@program
def what_leaves_refuse(torch):
    x = leaf(torch, 1.0, 2.0)
    return [
        outcome(f)
        for f in (
            lambda: x.add_(1),
            lambda: x[0].add_(1),
            lambda: x.__setitem__(0, 3.0),
            lambda: x.t_(),
            lambda: x.requires_grad_(False).requires_grad,
            lambda: (x * 1).requires_grad_(False),
            lambda: torch.ones(2, dtype=torch.int64).requires_grad_(),
            lambda: torch.ones(2, dtype=torch.int64, requires_grad=True),
            lambda: setattr(x, "requires_grad", 5),
            lambda: x.numpy().tolist(),
            lambda: leaf(torch, 1.0).numpy(),
            lambda: setattr(leaf(torch, 1.0), "grad", torch.ones(2)),
            lambda: setattr(leaf(torch, 1.0), "grad", 3),
            lambda: setattr(leaf(torch, 1.0), "grad", torch.ones(1, dtype=torch.float64)),
            lambda: delattr(x, "requires_grad"),
            lambda: delattr(x, "data"),
            lambda: setattr(x, "grad_fn", None),
            lambda: setattr(x, "is_leaf", True),
            lambda: setattr(x, "_base", None),
            lambda: setattr(x, "_version", 1),
            lambda: setattr(x, "output_nr", 1),
            lambda: x.retain_grad(),
            lambda: torch.ones(1).retain_grad(),
            lambda: torch.ones(1).register_hook(print),
            lambda: x.register_post_accumulate_grad_hook(print) and None,
            lambda: (leaf(torch, 1.0) * 1).register_post_accumulate_grad_hook(print),
            lambda: x.__deepcopy__({}).tolist(),
            lambda: copy.deepcopy(leaf(torch, 1.0) * 1),
            lambda: copy.deepcopy(leaf(torch, 2.0)).requires_grad,
            lambda: pickle.loads(pickle.dumps(leaf(torch, 2.0))).requires_grad,
            lambda: pickle.dumps(leaf(torch, 2.0) * 1) and "ok",
            lambda: bool(leaf(torch, 1.0)),
            lambda: leaf(torch, 1.0).item(),
            lambda: float(leaf(torch, 1.0) * 2),
        )
    ]


@program
def writes_through_views(torch):
    out = []

    def run(f):
        x = leaf(torch, 1.0, 2.0, 3.0, 4.0)

        def go():
            r = f(x)
            r.sum().backward()
            return r.detach(), x.grad

        out.append(outcome(go))

    def a(x):
        b = x.clone()
        b[:2].mul_(2)
        return b

    def b(x):
        b = x.clone()
        v = b[:2]
        b.mul_(3)
        return v

    def c(x):
        b = x.clone().view(2, 2)
        v = b[0]
        w = v[1:]
        w.mul_(x[0])
        return b * v

    def d(x):
        b = torch.zeros(4)
        v = b[1:3]
        v.copy_(x[:2])
        return b * x

    def f(x):
        b = x * 1
        v = b.view(2, 2)
        v.t()[0].mul_(5)
        return b

    def g(x):
        b = x * 1
        v = b.expand(2, 4)
        b.mul_(2)
        return v

    def h(x):
        b = x * 1
        v = b.unbind()[0]
        b.mul_(2)
        return v

    def i(x):
        b = x * 1
        v = b.detach()
        v.mul_(2)
        return b * b

    def j(x):
        b = x * 1
        c = b * b
        b.detach().mul_(2)
        return c

    def k(x):
        b = x * 1
        b[b > 2] = 0
        return b * x

    def l(x):
        b = x * 1
        b[[0, 1]] = x[[2, 3]]
        return b

    def m(x):
        b = torch.empty(4)
        b[:] = x
        b[0] = b[1] * 2
        return b

    def o(x):
        b = x * 1
        b.squeeze_()
        b.unsqueeze_(0)
        b.mul_(2)
        return b

    def p(x):
        b = x * 1
        v = b[0]
        v += 1
        v *= x[1]
        return b

    def q(x):
        b = x * 1
        v = b[:2]
        v.zero_()
        return b

    def s(x):
        b = x * 1
        v = b.narrow(0, 0, 2)
        v.copy_(v * v)
        return b

    def t(x):
        b = x * 1
        v = b.as_strided((2,), (2,))
        v.mul_(3)
        return b

    def u(x):
        b = x * 1
        v = torch.diagonal(b.view(2, 2))
        v.mul_(3)
        return b

    def y(x):
        b = x * 1
        v = b.unfold(0, 2, 2)
        v.mul_(2)
        return b

    def z(x):
        b = x * 1
        v = b[:2]
        with torch.no_grad():
            v.mul_(7)
        return b * b

    for fn in (a, b, c, d, f, g, h, i, j, k, l, m, o, p, q, s, t, u, y, z):
        run(fn)
    return out


@program
def grad_modes(torch):
    out = []
    with torch.no_grad():
        out.append(torch.is_grad_enabled())
        with torch.enable_grad():
            out.append(torch.is_grad_enabled())
        with torch.set_grad_enabled(True):
            out.append(torch.is_grad_enabled())

    @torch.no_grad()
    def f():
        return torch.is_grad_enabled()

    @torch.no_grad
    def g():
        return torch.is_grad_enabled()

    @torch.enable_grad()
    def h():
        return torch.is_grad_enabled()

    out += [f(), g(), torch.no_grad()(h)(), f.__name__]
    t = []
    with torch.no_grad():
        th = threading.Thread(target=lambda: t.append(torch.is_grad_enabled()))
        th.start()
        th.join()
    out += t
    with torch.inference_mode():
        out += [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
    with torch.inference_mode(False):
        out += [torch.is_inference_mode_enabled(), torch.is_grad_enabled()]
    with torch.inference_mode():
        with torch.inference_mode(False):
            out += [torch.is_inference_mode_enabled(), torch.is_grad_enabled(), torch.ones(1).is_inference()]
        with torch.enable_grad():
            out += [torch.is_grad_enabled(), (leaf(torch, 1.0) * 2).requires_grad]
    out += [outcome(lambda: torch.set_grad_enabled(3) and 1), torch.is_grad_enabled()]
    with torch.autograd.grad_mode.no_grad():
        out.append(torch.is_grad_enabled())
    return out


@program
def assigned_data(torch):
    x = leaf(torch, 1.0, 2.0)
    out = []
    for f in (
        lambda: setattr(x, "data", torch.ones(3)),
        lambda: setattr(x, "data", torch.ones(2, dtype=torch.float64)),
        lambda: setattr(x, "data", torch.ones(2, dtype=torch.int64)),
        lambda: setattr(x, "data", 3),
    ):
        out.append(outcome(f))
    out += [x.shape, x.requires_grad, x.is_leaf]
    y = leaf(torch, 1.0) * 1
    y.data = torch.ones(4)
    out += [y.shape, y.grad_fn is not None]
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
