"""Custom Functions, modes and derivatives, as in PyTorch: rules.py."""

import warnings

import pytest
from rules import agree, outcome, programs

import tinytorch

PROGRAMS, program = programs()


# ---- Functions with a derivative of the user's own.


@program
def gradients_for_what_wants_none(torch):
    """Dropped for a tensor that requires none; an error for what is no tensor."""

    def run(*given, **wants):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, b, n):
                return a * b

            @staticmethod
            def backward(ctx, g):
                return given

        a = torch.ones(2, requires_grad=wants.get("a", True))
        b = torch.ones(2, requires_grad=wants.get("b", False))
        return outcome(lambda: (F.apply(a, b, 3).sum().backward(), a.grad, b.grad)[1:])

    g = torch.ones(2)
    return [
        run(g, g * 2, None),
        run(g, g * 2, None, a=False, b=True),
        run(g, g * 2, None, None, None),
        run(g, g * 2, g),
        run(g, 5, None),
        run(g, g),
        run(g, torch.ones(7), None),
    ]


@program
def arguments_by_default_and_name(torch):
    seen = []

    class F(torch.autograd.Function):
        @staticmethod
        def forward(x, y=2):
            return x * y

        @staticmethod
        def setup_context(ctx, inputs, output):
            seen.append(inputs[1:])
            ctx.count = len(inputs)

        @staticmethod
        def backward(ctx, g):
            return g * ctx.count, None

    x = torch.ones(1, requires_grad=True)
    F.apply(x).backward()
    return x.grad, outcome(lambda: F.apply(x, 5)), outcome(lambda: F.apply(x, y=7)), seen


@program
def both_names_of_a_derivative(torch):
    def run(*names):
        body = {name: staticmethod(lambda ctx, g: g * 3) for name in names}
        body["forward"] = staticmethod(lambda ctx, x: x * 2)
        x = torch.ones(1, requires_grad=True)
        f = type("F", (torch.autograd.Function,), body)
        return outcome(lambda: (f.apply(x).backward(), x.grad)[1])

    return run("backward"), run("vjp"), run("backward", "vjp"), run()


@program
def a_function_is_not_instantiated(torch):
    class F(torch.autograd.Function):
        pass

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        made = F()
    return [w.category.__name__ for w in caught], outcome(lambda: made(3))


@program
def backwards_in_a_backward(torch):
    """8000 of them: no stack is that deep."""

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                ctx.x = x.detach().requires_grad_() - 1
            return ctx.x.detach()

        @staticmethod
        def backward(ctx, g):
            if float(ctx.x) == 0:
                return g
            with torch.enable_grad():
                F.apply(ctx.x).sum().backward()
            return g

    v = torch.tensor(1000.0, requires_grad=True)
    F.apply(v).sum().backward()
    return v.grad


@program
def an_error_in_a_deep_backward(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            if float(x) == 0:
                raise KeyError("the innermost")
            with torch.enable_grad():
                F.apply((x - 1).detach().requires_grad_()).backward()
            return g

    return outcome(F.apply(torch.tensor(200.0, requires_grad=True)).backward), torch.is_grad_enabled()


# ---- Modes.


@program
def generators_keep_their_mode(torch):
    seen = []

    def make(mode):
        @mode
        def steps():
            try:
                seen.append(torch.is_grad_enabled())
                yield 1
            except ZeroDivisionError:
                seen.append(torch.is_grad_enabled())
                yield 2
            finally:
                seen.append(torch.is_grad_enabled())

        return steps

    for mode in (torch.no_grad(), torch.set_grad_enabled(False), torch.inference_mode()):
        generator = make(mode)()
        next(generator)
        generator.close()
        generator = make(mode)()
        next(generator)
        generator.throw(ZeroDivisionError())
        del generator
        seen.append(torch.is_grad_enabled())
    return seen


def flags(t):
    return t.requires_grad, t.is_leaf, t.is_inference(), t._is_view()


@program
def inference_tensors(torch):
    x = torch.ones(4, requires_grad=True)
    s = x * 1
    with torch.inference_mode():
        views = [x.view(-1), s.view(-1), s[:2]]
        made = torch.ones(4, requires_grad=True)
        q = x * 2
        inside = [flags(t) for t in (*views, made, made.view(-1), made * 2, q)]
        inside += [outcome(lambda: q.add_(1)), outcome(lambda: torch.ones(2).requires_grad_())]
    outside = [flags(t) for t in (*views, made, made.view(-1), made + s, q, q.view(-1), q * 2, q.clone())]
    return inside, outside, [
        outcome(lambda: flags(q + s)),
        outcome(lambda: flags(torch.where(q > 0, s, q))),
        outcome(lambda: flags(torch.cat([s, q]))),
        outcome(lambda: q * s),
        outcome(lambda: s @ q),
        outcome(lambda: (s * 1).mul_(q)),
        outcome(lambda: flags((s * 1).add_(q))),
        outcome(lambda: flags(views[1] * 2)),
        outcome(lambda: q.requires_grad_()),
        outcome(lambda: q.view(-1).requires_grad_()),
        outcome(lambda: q.detach().requires_grad_()),
        outcome(lambda: q.requires_grad_(False)),
        outcome(lambda: q._version),
        outcome(lambda: q.add_(1)),
        outcome(lambda: q[0].add_(1)),
        outcome(lambda: views[1].add_(1)),
        outcome(lambda: torch.nn.Parameter(q)),
    ]  # fmt: skip


@program
def inference_tensors_saved_by_a_function(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

    with torch.inference_mode():
        b = torch.ones(2)
    return outcome(lambda: F.apply(torch.ones(2, requires_grad=True), b))


@program
def views_of_a_base_that_was_written(torch):
    """Of several outputs, from no_grad and from inference mode: they are no longer usable, which repr says."""
    x = torch.ones(3, requires_grad=True)
    out = []
    for make in ("unbind", "no_grad", "inference_mode", "plain"):
        for base in (x * 1, torch.ones(3)):
            with getattr(torch, make)() if make in ("no_grad", "inference_mode") else torch.enable_grad():
                view = base.split([1, 2])[0] if make == "unbind" else base[:2]
            base.mul_(x)
            out.append((view.requires_grad, outcome(lambda v=view: v.grad_fn is None), "<Invalid>" in repr(view),
                        outcome(lambda v=view: (v * 2).sum().backward())))  # fmt: skip
    return out


# ---- Derivatives.


def scattered_product(torch, operator):
    def f(x, src):
        index = torch.tensor([0, 0, 1, 0])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return getattr(x, operator)(0, index, src, "prod")

    return f


@program
def second_derivatives_of_products_with_a_zero(torch):
    out = []
    for operator in ("scatter_reduce", "index_reduce"):
        for x, src in (
            ([0.0, 1.0], [3.0, 4.0, 2.0, 5.0]),
            ([2.0, 0.0], [3.0, 4.0, 6.0, 0.0]),
            ([0.0, 3.0], [0.0, 1.0, 2.0, 3.0]),
        ):
            x, src = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (x, src))
            first = torch.autograd.grad(scattered_product(torch, operator)(x, src).sum(), (x, src), create_graph=True)
            out.append(
                torch.autograd.grad((first[0] * torch.arange(2)).sum() + (first[1] * torch.arange(4)).sum(), (x, src))
            )
    return out


@pytest.mark.parametrize("operator", ["scatter_reduce", "index_reduce"])
@pytest.mark.parametrize("zeros", range(5))
def test_second_derivatives_of_products_with_zeros(operator, zeros):
    values = [0.0] * zeros + [2.0, 3.0, 4.0, 5.0][: 4 - zeros]
    x = tinytorch.tensor([values[0], 2.0], dtype=tinytorch.float64, requires_grad=True)
    src = tinytorch.tensor([*values[1:3], 0.0, *values[3:]], dtype=tinytorch.float64, requires_grad=True)
    assert tinytorch.autograd.gradgradcheck(scattered_product(tinytorch, operator), (x, src))


# ---- Numerical checks.


def function_of(torch, forward, backward, **settings):
    """A Function's apply."""

    def run(ctx, *args):
        ctx.set_materialize_grads(settings.get("materialize", True))
        ctx.save_for_backward(*args)
        return forward(*args)

    body = {"forward": staticmethod(run), "backward": staticmethod(backward)}
    return type("F", (torch.autograd.Function,), body).apply


@program
def what_gradcheck_says(torch):
    def check(fn, *shape, dtype=torch.float64, **options):
        x = torch.linspace(0.5, 2, 4, dtype=dtype).requires_grad_()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            said = outcome(lambda: torch.autograd.gradcheck(fn, (x,), **options))
        return said, sorted({w.category.__name__ for w in caught})

    def depends_on_values(x):
        return torch.cat([x, x]) if bool((x >= 0.5).all()) else x

    wrong = function_of(torch, lambda x: x * 2, lambda ctx, g: g * 3)
    two = function_of(torch, lambda x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)
    lazy = function_of(torch, lambda x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3, materialize=False)
    count = [0]

    def changes(ctx, g):
        count[0] += 1
        return g * (2 + 1e-7 * count[0])

    return [
        check(torch.sin),
        check(torch.sin, dtype=torch.float32, eps=1e-2, atol=1e-1),
        check(wrong),
        check(wrong, raise_exception=False),
        check(wrong, fast_mode=True),
        check(two),
        check(lazy, raise_exception=False)[0] != [True],
        check(depends_on_values),
        check(lambda x: x.detach().sin()),
        check(lambda x: (x.detach() * 0, x.sin())),
        check(lambda x: (x * 2).detach()),
        check(function_of(torch, lambda x: x * 2, changes), raise_exception=False),
        check(function_of(torch, lambda x: x * 2, changes), nondet_tol=1e-2),
        check(torch.sin, check_backward_ad=False),
        check(lambda x: x.sin() * 2, check_batched_grad=True),
        outcome(lambda: torch.autograd.gradcheck(torch.sin, (torch.ones(2, dtype=torch.float64),))),
        outcome(lambda: torch.autograd.gradcheck(torch.sin, torch.ones(1).double().expand(3).requires_grad_())),
        outcome(lambda: torch.autograd.gradgradcheck(torch.sin, (torch.ones(2).double().requires_grad_(),))),
        outcome(lambda: torch.autograd.gradgradcheck(wrong, (torch.ones(2).double().requires_grad_(),))),
    ]


@program
def what_a_checked_function_sees(torch):
    seen = set()

    def f(x):
        seen.add((x.requires_grad, torch.is_grad_enabled(), x.is_leaf))
        return x * 2

    torch.autograd.gradcheck(f, (torch.rand(1, dtype=torch.float64, requires_grad=True),))
    return sorted(seen)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
