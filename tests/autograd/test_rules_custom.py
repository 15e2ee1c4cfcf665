"""What custom Functions may do, and derivatives of functions, as in PyTorch: rules.py."""

# ruff: noqa: B023, E742, E743 - what a loop defines is called in the same turn

import pytest
from rules import agree, leaf, outcome, plain, programs

PROGRAMS, program = programs()


@program
def exceptions_pass(torch):
    class E(Exception):
        pass

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            raise E("no")

    return outcome(lambda: F.apply(leaf(torch, 1.0)).backward())


@program
def functions_of_no_tensors(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g

    return F.apply(1, 2), outcome(lambda: F.apply(torch.ones(1), 3).requires_grad)


@program
def functions_that_return_an_input(torch):
    out = []
    for shape in [(1,), ()]:

        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x

            @staticmethod
            def backward(ctx, g):
                return g * 2

        v = torch.ones(shape, requires_grad=True)
        r = F.apply(v)
        r.backward()
        out.append((v.grad, r is v, r.requires_grad, type(r.grad_fn).__name__, r._is_view()))
        with torch.no_grad():
            v.grad.zero_()
        F.apply(v.clone()).backward()
        out.append(v.grad)
        with torch.no_grad():
            r = F.apply(v)
            out.append((r is v, r.requires_grad))
    return out


@program
def functions_that_write_an_input(torch):
    out = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, mark):
            if mark:
                ctx.mark_dirty(x)
            return x.mul_(2) if mark else x

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    a = leaf(torch, 1.0, 2.0)
    b = a.clone()
    v = b[:1]
    r = F.apply(b, True)
    out.append((r is b, b._version, type(b.grad_fn).__name__))
    (r.sum() + v.sum()).backward()
    out.append(a.grad)
    out.append(outcome(lambda: F.apply(a, True)))
    a.grad = None
    b = a.clone()
    v = b[:1]
    r = F.apply(v, True)
    out.append((r is v, type(b.grad_fn).__name__))
    b.sum().backward()
    out.append(a.grad)
    return out


@program
def what_is_dirty_is_returned(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    class G(F):
        @staticmethod
        def forward(ctx, x):
            y = x * 2
            ctx.mark_dirty(y)
            return y

    return (
        outcome(lambda: F.apply(leaf(torch, 1.0) * 1)),
        outcome(lambda: G.apply(leaf(torch, 1.0) * 1).requires_grad),
        outcome(lambda: F.apply(3)),
    )


@program
def gradients_that_never_came(torch):
    seen = []
    for m in (True, False):

        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.set_materialize_grads(m)
                return x * 1, x * 2, x.long(), None

            @staticmethod
            def backward(ctx, *g):
                seen.append([None if v is None else plain(v) for v in g])
                return g[0]

        x = leaf(torch, 1.0, 2.0)
        F.apply(x)[0].sum().backward()
    return seen


@program
def outputs_without_gradients(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a):
            o = a > 0
            b = a * 2
            ctx.mark_non_differentiable(b)
            return a * 3, b, o

        @staticmethod
        def backward(ctx, g, h, k):
            return g * 3 + h

    x = leaf(torch, 1.0, -1.0)
    r = F.apply(x)
    r[0].sum().backward()
    return [t.requires_grad for t in r], x.grad, outcome(lambda: F.apply(x)[1].sum().backward())


@program
def gradients_of_the_wrong_kind(torch):
    out = []
    for g in (
        torch.randn(
            10,
        ),
        torch.ones(3, 1),
        torch.ones(1, 2),
        torch.ones(2, dtype=torch.int64),
        torch.ones(2, dtype=torch.float64),
        torch.ones(3, 2),
        None,
    ):

        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x * 2

            @staticmethod
            def backward(ctx, _):
                return g

        x = leaf(torch, 1.0, 2.0)
        out.append(
            outcome(
                lambda: (
                    F.apply(x).sum().backward(),
                    x.grad,
                    str(x.grad.dtype).split(".")[1] if x.grad is not None else None,
                )[1:]
            )
        )
    return out


@program
def backward_in_backward(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_()
                ctx.y = (ctx.x * ctx.x).sum()
            return ctx.y.detach()

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                ctx.y.backward()
            return ctx.x.grad * g

    x = leaf(torch, 1.0, 2.0)
    (F.apply(x) * 3).backward()

    class E(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():

                class B(torch.autograd.Function):
                    @staticmethod
                    def forward(ctx, x):
                        return x * 1

                    @staticmethod
                    def backward(ctx, g):
                        raise ValueError("inner")

                B.apply(leaf(torch, 1.0)).backward()
            return g

    return x.grad, outcome(lambda: E.apply(leaf(torch, 1.0)).backward()), torch.is_grad_enabled()


@program
def what_a_function_can_do(torch):
    out = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, n):
            ctx.n = n
            ctx.extra = {"a": 1}
            ctx.save_for_backward(x, None)
            out.append(ctx.needs_input_grad)
            return x**n

        @staticmethod
        def backward(ctx, g):
            x, none = ctx.saved_tensors
            out.append((none is None, ctx.extra, type(ctx).__name__, ctx.name()))
            return g * ctx.n * x ** (ctx.n - 1), None

    x = leaf(torch, 3.0)
    y = F.apply(x, 2)
    y.backward()
    out.append(x.grad)
    out.append(type(y.grad_fn).__name__)
    out.append(outcome(lambda: y.grad_fn.saved_tensors))
    out.append(outcome(lambda: F.forward.__name__))
    out.append(outcome(lambda: y.grad_fn.n))

    class G(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(3)
            return x

    out.append(outcome(lambda: G.apply(x)))

    class H(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return [x * 1, x * 2]

        @staticmethod
        def backward(ctx, *g):
            return g[0]

    out.append(outcome(lambda: type(H.apply(x)).__name__))

    class I(torch.autograd.Function):
        pass

    out.append(outcome(lambda: I.apply(x)))

    class J(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    out.append(outcome(lambda: J.apply(x).backward()))
    from_mod = torch.autograd.function
    for n in ("once_differentiable", "Function", "FunctionCtx", "InplaceFunction"):
        out.append(hasattr(from_mod, n))

    class K(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        @from_mod.once_differentiable
        def backward(ctx, g):
            return g * 2

    (z,) = torch.autograd.grad(K.apply(x), x, create_graph=True)
    out.append((z.requires_grad, outcome(lambda: z.backward())))

    class L(torch.autograd.Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return g

    out.append(outcome(lambda: L.apply(x).requires_grad))
    return out


@program
def derivatives_of_functions(torch):
    A = torch.autograd.functional
    x = torch.tensor([1.0, 2.0])
    out = []

    def f(a):
        return (a * a).sum()

    def h(a):
        return a * a

    def two(a, b):
        return (a * b).sum()

    out += [
        A.jacobian(h, x),
        A.hessian(f, x),
        A.vjp(h, x, torch.ones(2)),
        A.jvp(h, x, torch.ones(2)),
        A.vhp(f, x, torch.ones(2)),
        A.hvp(f, x, torch.ones(2)),
        A.jacobian(two, (x, x)),
        A.hessian(two, (x, x)),
    ]

    def c(a):
        return torch.ones(2) * 3

    for strict in (True, False):
        out += [
            outcome(lambda: A.jacobian(c, x, strict=strict)),
            outcome(lambda: A.vjp(c, x, torch.ones(2), strict=strict)),
            outcome(lambda: A.jvp(c, x, torch.ones(2), strict=strict)),
            outcome(lambda: A.hessian(lambda a: a.sum(), x, strict=strict)),
            outcome(lambda: A.hvp(lambda a: a.sum(), x, x, strict=strict)),
            outcome(lambda: A.vhp(lambda a: a.sum(), x, x, strict=strict)),
        ]
    out += [
        outcome(lambda: A.jacobian(h, x, strict=True, vectorize=True)),
        outcome(lambda: A.hessian(h, x)),
        outcome(lambda: A.hessian(lambda a: (a.sum(), "x"), x)),
        outcome(lambda: A.vhp(lambda a: (a.sum(), a.sum()), x, x)),
        outcome(lambda: A.vjp(h, x)),
        outcome(lambda: A.vjp(f, x)),
        outcome(lambda: A.jvp(h, x)),
        outcome(lambda: A.jvp(h, torch.ones(1))),
        outcome(lambda: A.vjp(h, x, torch.ones(3))),
        outcome(lambda: A.vjp(h, x, (torch.ones(2), torch.ones(2)))),
        outcome(lambda: A.vjp(h, 3)),
        outcome(lambda: A.vjp(lambda a: 3, x)),
        outcome(lambda: A.hvp(f, x)),
        outcome(lambda: A.vhp(f, torch.ones(1))),
        outcome(lambda: A.jacobian(h, [x])),
        outcome(lambda: A.hessian(two, (x, x), strict=True)),
        outcome(lambda: A.jacobian(h, x, vectorize=True)),
        outcome(lambda: A.jacobian(h, x, strategy="forward-mode")),
        outcome(lambda: A.jacobian(h, x, vectorize=True, strategy="forward-mode")),
        outcome(lambda: A.hessian(f, x, outer_jacobian_strategy="forward-mode", vectorize=True)),
        outcome(lambda: A.jacobian(h, x, strategy="x")),
        outcome(lambda: A.hvp(lambda a: a * a, x, x)),
        outcome(lambda: A.hvp(f, x, torch.ones(3))),
    ]
    y = torch.tensor([1.0, 2.0], requires_grad=True)
    out += [
        A.jacobian(h, y).requires_grad,
        A.jacobian(h, y, create_graph=True).requires_grad,
        A.vjp(h, y, torch.ones(2))[0].requires_grad,
        A.vjp(h, y, torch.ones(2), create_graph=True)[1].requires_grad,
    ]
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
