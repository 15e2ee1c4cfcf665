"""Saved-tensor hooks and checkpoints, as in PyTorch: rules.py."""

import warnings

import pytest
from rules import agree, outcome, programs

PROGRAMS, program = programs()


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
            torch.rand(5)  # so that backward begins elsewhere than the part ended
            before = torch.get_rng_state()
            y.sum().backward()
            out.append((bool((x.grad == y).all()), bool((torch.get_rng_state() == before).all())))
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
def saved_tensors_of_a_checkpoint_are_unpacked_once(torch):
    module = __import__(f"{torch.__name__}.utils.checkpoint", fromlist=["checkpoint"])

    def twice(times):
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 1

            @staticmethod
            def backward(ctx, g):
                return sum(g * ctx.saved_tensors[0] for _ in range(times))

        x = torch.ones(2, requires_grad=True)
        module.checkpoint(lambda x: F.apply(x.exp()), x, use_reentrant=False).sum().backward()
        return x.grad

    return [outcome(lambda times=times: twice(times)) for times in (1, 2)]


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


@program
def checkpoints_within_autocast(torch):
    """What is computed again is cast as it was the first time, and not where autocast was off."""
    module = __import__(f"{torch.__name__}.utils.checkpoint", fromlist=["checkpoint"])
    out = []
    for reentrant in (True, False):
        for outer, inner in ((torch.bfloat16, None), (torch.float16, None), (torch.bfloat16, False), (None, None)):
            seen = []

            def part(x, w, seen=seen, inner=inner):
                y = x @ w
                seen.append(str(y.dtype).split(".")[1])
                if inner is False:
                    with torch.autocast("cpu", enabled=False):
                        y = (x @ w).relu()
                        seen.append(str(y.dtype).split(".")[1])
                return y.relu()

            x = torch.ones(2, 3, requires_grad=True)
            w = torch.full((3, 3), 0.5, requires_grad=True)
            with torch.autocast("cpu", dtype=outer, enabled=outer is not None):
                y = module.checkpoint(part, x, w, use_reentrant=reentrant)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                loss = y.float().sum()
            loss.backward()
            out.append((seen, x.grad, w.grad))
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
