"""Small programs of the tape's rules, run with PyTorch and with tinytorch: both must say the same. A program is a
function of the library; it gives numbers, names and the kinds of exceptions."""

import warnings

import pytest

import tinytorch

PROGRAMS = {}


def program(fn):
    PROGRAMS[fn.__name__] = fn
    return fn


def outcome(fn):
    """What ``fn`` gives, or the kind of its exception."""
    try:
        return plain(fn())
    except Exception as exc:
        return type(exc).__name__


def plain(value):
    """A value without the library's types."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    return value.tolist() if hasattr(value, "tolist") else value


# ---- Hooks: which, how often, in which order, with what.


def hooked_leaf(torch, log):
    """A leaf with every kind of hook, and what they note in ``log``."""
    x = torch.ones(2, requires_grad=True)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    node.register_prehook(lambda g: log.append("pre"))
    node.register_hook(lambda gi, go: log.append(("post", len(gi), len(go))))
    x.register_hook(lambda g: log.append("hook"))
    x.register_post_accumulate_grad_hook(lambda p: log.append("accumulated"))
    return x, node


@program
def hooks_of_a_leaf(torch):
    log = []
    x, node = hooked_leaf(torch, log)
    (x * 2).sum().backward()
    (x * 2).sum().backward(inputs=[x])
    log.append("grad")
    torch.autograd.grad((x * 2).sum(), x)
    return log


@program
def hooks_and_captures(torch):
    """For a tensor passed on the way grad gives what arrived there; at the end, what the hooks made of it."""
    out = []
    for wanted in ("y", "xy"):
        x = torch.ones(2, requires_grad=True)
        y = x * 2
        y.register_hook(lambda g: g * 10)
        y.retain_grad()
        y.grad_fn.register_prehook(lambda g: (g[0] * 100,))
        inputs = [{"x": x, "y": y}[name] for name in wanted]
        out.append([torch.autograd.grad((y * 3).sum(), inputs), y.grad])
    return out


@program
def backward_into_a_computed_tensor(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    (y * 3).sum().backward(inputs=[y])
    (x * 2).sum().backward(inputs=(x,))
    return y.grad, x.grad, y.retains_grad


@program
def hooks_of_outputs_without_a_gradient(torch):
    log = []
    x = torch.ones(3, requires_grad=True)
    for outputs in (x.unbind(), x.split([1, 2]), torch.var_mean(x)):
        for k, o in enumerate(outputs):
            o.register_hook(lambda g, k=k: log.append((k, None if g is None else g.numel())))
        outputs[0].register_hook(lambda g: log.append("removed")).remove()
        outputs[1].sum().backward()
    return sorted(map(str, log)), x.grad is not None


@program
def none_is_not_replaced(torch):
    a, b = torch.ones(2, requires_grad=True).unbind()
    a.register_hook(lambda g: torch.ones(()))
    return outcome(b.backward)


@program
def node_hooks_see_all_outputs(torch):
    seen = []
    x = torch.arange(1.0, 5.0).requires_grad_()
    for outputs in (torch.var_mean(x), torch.std_mean(x), torch.aminmax(x), x.unbind(), x.sort()):
        node = outputs[0].grad_fn
        node.register_prehook(lambda g: seen.append([v is None for v in g]))
        node.register_hook(lambda gi, go: seen.append((len(gi), len(go))))
        outputs[0].sum().backward()
    return seen, x.grad


@program
def hooks_give_too_many(torch):
    def with_hook(register, hook):
        y = torch.ones(2, requires_grad=True) * 2
        getattr(y.grad_fn, register)(hook)
        return outcome(lambda: y.sum().backward())

    return [
        with_hook("register_prehook", lambda g: (g[0], g[0])),
        with_hook("register_hook", lambda gi, go: (gi[0],) * 3),
        with_hook("register_hook", lambda gi, go: gi),
    ]


@program
def accumulated_hook_must_give_none(torch):
    x = torch.ones(2, requires_grad=True)
    x.register_post_accumulate_grad_hook(lambda p: p.grad)
    return outcome(lambda: x.sum().backward())


@program
def retained_gradients_of_changed_views(torch):
    out = []
    for changes in (1, 2):
        base = torch.tensor([1.0, 2.0], requires_grad=True).clone()
        view, other = base[:1], base[:1]
        view.retain_grad()
        other.retain_grad() if changes == 2 else None
        for _ in range(changes):
            view.mul_(2)
        (view + other).sum().backward()
        out.append((view.grad, view.retains_grad))
    return out


# ---- Edges.


@program
def gradient_edges(torch):
    edge = torch.autograd.graph.get_gradient_edge
    x = torch.ones(3, requires_grad=True)
    a, b = (x * 2).split([1, 2])
    place = torch.autograd.graph.GradientEdge(a.grad_fn, 0)
    given = torch.autograd.grad(a.sum() * 5 + b.sum() * 7, [edge(a), edge(b), place, edge(x)])
    a, b = (x * 2).split([1, 2])
    torch.autograd.backward([edge(b)], [torch.ones(2)])
    z = (x * 3).sum()
    z.backward(inputs=[edge(x)])
    return (
        given,
        x.grad,
        edge(b).output_nr,
        outcome(lambda: torch.autograd.grad(edge(z), x)),
        outcome(lambda: edge(torch.ones(2))),
    )


@program
def inputs_of_grad(torch):
    w = torch.ones(2, requires_grad=True)
    return (
        torch.autograd.grad((w * 2).sum(), iter([w])),
        outcome(lambda: torch.autograd.grad((w * 2).sum(), [])),
        outcome(lambda: (w * 2).sum().backward(inputs=[])),
        outcome(lambda: torch.autograd.grad((w * 2).sum(), [3])),
    )


# ---- A leaf's gradient.


@program
def layout_of_a_leafs_gradient(torch):
    def strides(leaf, loss):
        leaf = leaf.requires_grad_()
        out = []
        for create_graph in (False, True):
            leaf.grad = None
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                loss(leaf).backward(create_graph=create_graph)
            out.append((leaf.grad.stride(), round(leaf.grad.sum().item(), 4)))
        return out

    leaves = [
        lambda: torch.ones(5, 20).t(),
        lambda: torch.ones(4, 5, 6).permute(2, 0, 1),
        lambda: torch.ones(4, 6)[:, ::2],
        lambda: torch.ones(3).expand(2, 3),
        lambda: torch.ones(2, 3),
    ]
    losses = [
        lambda w: w.sum(),
        lambda w: (w * 2).sum(),
        lambda w: (w * w).sum(),
        lambda w: w.mT.contiguous().mean(),
    ]
    return [[strides(leaf(), loss) for loss in losses] for leaf in leaves]


@program
def gradient_given_as_a_stale_view(torch):
    buffer = torch.ones(6)
    view = buffer[2:]
    buffer[2] = 5.0
    a = torch.ones(4, requires_grad=True)
    a.backward(view)
    return a.grad


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


# ---- Saved-tensor hooks, and checkpoints.


@program
def a_pack_hook_may_not_write(torch):
    def pack(t):
        t.mul_(2)
        return t

    def saved_by_a_function(a):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 1

        return F.apply(a)

    out = []
    for use in (lambda a: a * a, lambda a: a.exp(), saved_by_a_function, lambda a: a + a):
        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            out.append(outcome(lambda use=use: use(torch.ones(2, requires_grad=True) * 1)))
    return out


@program
def what_a_pack_hook_sees(torch):
    seen = []

    def pack(t):
        seen.append((torch.is_grad_enabled(), (t * 2).requires_grad))
        return t

    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = (x.exp() * x).sum()
    y.backward()
    return seen, x.grad


@program
def hooks_entered_and_left_in_backward(torch):
    """They end with the backward in which they were entered."""
    log = []
    hooks = torch.autograd.graph.saved_tensors_hooks
    inner = hooks(lambda t: log.append("pack") or t, lambda t: t)

    def enter(t):
        inner.__enter__()
        return t

    x = torch.ones(2, requires_grad=True)
    with hooks(lambda t: t, lambda t: t):
        for _ in range(3):
            with hooks(lambda t: t, enter):
                y = x.sin().sum()
            y.backward()
    (x * x).sum().backward()
    return log, x.grad.round(decimals=4)


def checkpointed(torch, fn, *args, **kwargs):
    module = __import__(f"{torch.__name__}.utils.checkpoint", fromlist=["checkpoint"])
    return module.checkpoint(fn, *args, **{"use_reentrant": False, **kwargs})


def counted(fn):
    """``fn``, and how often it is called."""
    calls = [0]

    def call(*args, **kwargs):
        calls[0] += 1
        return fn(*args, **kwargs)

    return call, calls


@program
def checkpoints_give_the_same_gradients(torch):
    out = []
    for reentrant in (False, True):
        x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
        fn, calls = counted(lambda a, n, w=w: ((a * w).sin() * a * n, a.exp()))
        first, second = checkpointed(torch, fn, x, 3, use_reentrant=reentrant)
        (first.sum() * second.sum()).backward()
        out.append((calls, x.grad.round(decimals=2), w.grad.round(decimals=2)))
    return out


@program
def checkpoints_where_no_argument_wants_a_gradient(torch):
    w = torch.ones(2, requires_grad=True)
    out = []
    for reentrant in (False, True):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            out.append((checkpointed(torch, lambda a: a * w, torch.ones(2), use_reentrant=reentrant).requires_grad,
                        [c.category.__name__ for c in caught]))  # fmt: skip
    return out


@program
def what_a_reentrant_checkpoint_refuses(torch):
    def f(x, k=1):
        return x.sin() * k

    x = torch.ones(2, requires_grad=True)
    y = checkpointed(torch, f, x, use_reentrant=True).sum()
    return (
        outcome(lambda: torch.autograd.grad(y, x)),
        outcome(lambda: y.backward(inputs=[x])),
        outcome(lambda: checkpointed(torch, f, x, use_reentrant=True, k=2)),
        outcome(lambda: checkpointed(torch, lambda t: t.detach(), x, use_reentrant=True).sum().backward()),
    )


@program
def random_numbers_are_drawn_again(torch):
    def f(x):
        return x * torch.rand(2) * torch.rand(2).exp()

    out = []
    for keep in (True, False):
        for reentrant in (True, False):
            torch.manual_seed(3)
            x = torch.ones(2, requires_grad=True)
            y = checkpointed(torch, f, x, use_reentrant=reentrant, preserve_rng_state=keep)
            y.sum().backward()
            out.append(bool((x.grad == y).all()))
    return out


@program
def derivatives_inside_a_checkpoint(torch):
    def grad_of(fn):
        def wrapper(x):
            with torch.enable_grad():
                return torch.autograd.grad(fn(x), x, create_graph=True)[0]

        return wrapper

    def part(fn):
        return lambda x: checkpointed(torch, fn, x)

    def f(x):
        return x.sin().exp().sin()

    def g(x):
        torch.autograd.grad(x.sin().exp(), x)
        return x.sin()

    x = torch.tensor(0.5, requires_grad=True)
    chains = [
        lambda fn: grad_of(part(fn)),
        lambda fn: part(grad_of(part(fn))),
        lambda fn: grad_of(part(grad_of(part(fn)))),
        lambda fn: grad_of(grad_of(part(fn))),
        lambda fn: grad_of(part(grad_of(part(part(fn))))),
        lambda fn: part(part(part(fn))),
    ]
    out = []
    for fn in (f, g):
        for chain in chains:
            x.grad = None
            y = chain(fn)(x)
            y.backward()
            out.append([round(float(y), 4), round(float(x.grad), 4)])
    return out


@program
def nested_checkpoints_run_how_often(torch):
    inner, inner_calls = counted(lambda x: x.sin().cos())
    outer, outer_calls = counted(lambda x: checkpointed(torch, inner, x.exp()).exp())
    x = torch.ones(1, requires_grad=True)
    y = checkpointed(torch, outer, x)
    y.backward(retain_graph=True)
    once = inner_calls[0], outer_calls[0]
    y.backward()
    return once, inner_calls, outer_calls, x.grad.round(decimals=4)


@program
def a_recomputation_that_differs(torch):
    def run(first, again, **kwargs):
        todo = [first, again]
        x = torch.ones(3, requires_grad=True)
        return outcome(lambda: checkpointed(torch, lambda a: todo.pop(0)(a), x, **kwargs).sum().backward())

    return [
        run(lambda a: a.sin().cos(), lambda a: a.sin()),
        run(lambda a: a.sin(), lambda a: a.sin().cos()),
        run(lambda a: a.sin().cos(), lambda a: a[:1].sin().cos()),
        run(lambda a: a.sin(), lambda a: a[:1].sin(), determinism_check="none"),
        run(lambda a: a.sin(), lambda a: a.double().sin()),
        run(lambda a: a.sin(), lambda a: a.sin(), determinism_check="other"),
    ]


@program
def recomputations_stop_early(torch):
    module = __import__(f"{torch.__name__}.utils.checkpoint", fromlist=["checkpoint"])
    out = []
    for early in (True, False):
        log = []

        def f(x, log=log):
            y = x.sin()
            log.append("saved all")
            return y

        with module.set_checkpoint_early_stop(early):
            y = checkpointed(torch, f, torch.ones(2, requires_grad=True))
        y.sum().backward()
        out.append(log)
    return out


@program
def an_argument_written_after_the_checkpoint(torch):
    x = torch.ones(2, requires_grad=True) * 1
    y = checkpointed(torch, lambda a: a.sin(), x)
    x.add_(1)
    return outcome(lambda: y.sum().backward())


@program
def contexts_of_a_checkpoint(torch):
    import contextlib

    log = []

    @contextlib.contextmanager
    def note(name):
        log.append(f"{name} begins")
        yield
        log.append(f"{name} ends")

    y = checkpointed(torch, lambda x: x.sin(), torch.ones(2, requires_grad=True),
                     context_fn=lambda: (note("forward"), note("again")))  # fmt: skip
    y.sum().backward()
    return sorted(log)


@program
def checkpoints_of_a_sequence(torch):
    module = __import__(f"{torch.__name__}.utils.checkpoint", fromlist=["checkpoint"])
    out = []
    for reentrant in (True, False):
        x = torch.tensor([0.5], requires_grad=True)
        fns = [counted(f) for f in (torch.sin, torch.exp, torch.cos, torch.sin)]
        module.checkpoint_sequential([f for f, _ in fns], 2, x, use_reentrant=reentrant).backward()
        out.append(([calls for _, calls in fns], round(float(x.grad), 4)))
    return out


@program
def checkpoints_without_a_word_on_reentrance(torch):
    module = __import__(f"{torch.__name__}.utils.checkpoint", fromlist=["checkpoint"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        y = module.checkpoint(torch.sin, torch.ones(2, requires_grad=True))
    return [w.category.__name__ for w in caught], type(y.grad_fn).__name__


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    results = []
    for library in (torch, tinytorch):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            results.append(plain(PROGRAMS[name](library)))
    assert results[1] == results[0]
