"""Selective checkpoints, as in PyTorch: rules.py."""

import functools

import pytest
from rules import agree, leaf, outcome, plain, programs

import tinytorch
from tinytorch.ops.declare import COMPUTES, Elementwise
from tinytorch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

PROGRAMS, program = programs()


def module(torch):
    return __import__(f"{torch.__name__}.utils.checkpoint", fromlist=["checkpoint"])


def selective(torch, fn, *args, ops=(), policy=None, mutation=False, **kwargs):
    """A checkpoint that keeps the results of ``ops``, or what ``policy`` says."""
    cp = module(torch)
    context_fn = functools.partial(
        cp.create_selective_checkpoint_contexts, policy or list(ops), allow_cache_entry_mutation=mutation
    )
    return cp.checkpoint(fn, *args, use_reentrant=False, context_fn=context_fn, **kwargs)


def changing(torch):
    """A function that computes something else when it is called again, and how often it was called."""
    calls = []

    def f(x, w):
        calls.append(0)
        return (torch.mm(x, w) * len(calls)).sin().exp().sum()

    return f, calls


@program
def what_is_kept_is_not_computed_again(torch):
    aten = torch.ops.aten
    out = []
    for ops in (
        [],
        [aten.mm.default],
        [aten.mul.Tensor],
        [aten.sin.default],
        [aten.mm.default, aten.exp.default],
        [aten.mul.Tensor, aten.sin.default, aten.exp.default],
    ):
        x, w = (torch.arange(4.0).reshape(2, 2) / 4).requires_grad_(), torch.full((2, 2), 0.5, requires_grad=True)
        f, calls = changing(torch)
        y = selective(torch, f, x, w, ops=ops)
        y.backward()
        out.append((round(y.item(), 4), calls, x.grad.round(decimals=3), w.grad.round(decimals=3)))
    return out


@program
def policies(torch):
    cp, aten = module(torch), torch.ops.aten
    out = []
    for answer in (*cp.CheckpointPolicy, True, False):
        seen = []

        def policy(ctx, op, *args, answer=answer, seen=seen, **kwargs):
            if op is aten.mul.Tensor:
                seen.append((ctx.is_recompute, ctx.op_output.tolist(), args[0].tolist(), args[1:]))
                return answer
            return cp.CheckpointPolicy.PREFER_RECOMPUTE

        x = leaf(torch, 1.0, 2.0)
        calls = []

        def f(x, calls=calls):
            calls.append(0)
            return ((x * x) * float(len(calls))).exp().sum()

        selective(torch, f, x, policy=policy).backward()
        out.append((str(answer), plain(seen), x.grad.round(decimals=1)))
    return [tuple(p.name for p in cp.CheckpointPolicy), out]


@program
def what_selective_checkpoints_refuse(torch):
    cp, aten = module(torch), torch.ops.aten
    x = leaf(torch, 1.0, 2.0)

    def twice():
        y = selective(torch, lambda x: x.sin().exp().sum(), x, ops=[aten.sin.default])
        y.backward(retain_graph=True)
        y.backward()

    def without(mutation):
        def f(x):
            y = x.sin()
            z = y.exp()
            y.detach().mul_(2)
            return z.sum()

        selective(torch, f, x, ops=[aten.sin.default], mutation=mutation).backward()

    def other_operators():
        calls = []

        def f(x):
            calls.append(0)
            return (x.sin() if len(calls) == 1 else x.cos()).exp().sum()

        selective(torch, f, x, ops=[aten.sin.default]).backward()

    def more_operators():
        calls = []

        def f(x):
            calls.append(0)
            for _ in calls:
                x = x.sin()
            return x.exp().sum()

        selective(torch, f, x, ops=[aten.sin.default], early_stop=False).backward()

    contexts = cp.create_selective_checkpoint_contexts
    return (
        outcome(twice),
        outcome(lambda: without(True)),
        outcome(lambda: without(False)),
        outcome(other_operators),
        outcome(more_operators),
        outcome(lambda: contexts([torch.mm])),
        outcome(lambda: contexts([aten.mm])),
        outcome(lambda: contexts(3)),
        outcome(lambda: contexts((aten.mm.default,))),
        len(contexts([aten.mm.default])),
        outcome(lambda: aten.no_such_operator),
        outcome(lambda: aten.mm.no_such_overload),
        outcome(lambda: selective(torch, torch.sin, x, debug=True)),
        outcome(lambda: selective(torch, torch.sin, x, determinism_check="some")),
    )


@program
def models(torch):
    """Layers, several results of one operator, numbers, promotion, nested checkpoints: the same gradients."""
    aten, nn = torch.ops.aten, torch.nn
    out = []
    for ops in (
        [aten.addmm.default],
        [aten.mm.default, aten.tanh.default],
        [aten._softmax.default, aten.sum.dim_IntList],
    ):
        torch.manual_seed(0)
        layers = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2, bias=False))
        with torch.no_grad():
            for p in layers.parameters():
                p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 10 - 0.4)

        def f(x, layers=layers):
            y = layers(x).softmax(-1)
            y = 2.0 / (1 + y) + y.sort(-1).values * 3 + (y.double() * y).float()
            inner = module(torch).checkpoint(lambda a: a.exp().sin(), y, use_reentrant=False)
            return (inner * y.sum(1, keepdim=True)).mean()

        x = (torch.arange(6.0).reshape(2, 3) / 5).requires_grad_()
        selective(torch, f, x, ops=ops).backward()
        out.append([x.grad.round(decimals=2)] + [p.grad.round(decimals=2) for p in layers.parameters()])
    return out


@program
def groups_of_backwards(torch):
    cp = module(torch)
    calls = []

    def f(x):
        calls.append(0)
        return x.sin().exp(), x.cos().exp()

    def two(overlapping, group):
        x = leaf(torch, 1.0, 2.0)
        calls.clear()
        a, b = cp.checkpoint(f, x, use_reentrant=False)
        with group:
            a.sum().backward(retain_graph=True)
            (a if overlapping else b).sum().backward(retain_graph=True)
        return len(calls), x.grad.round(decimals=3)

    class Nothing:
        def __enter__(self):
            pass

        def __exit__(self, *exc_info):
            pass

    def nested():
        with cp.GraphExecGroup(), cp.GraphExecGroup():
            pass

    return (
        outcome(lambda: two(False, cp.GraphExecGroup())),
        outcome(lambda: two(False, Nothing())),
        outcome(lambda: two(True, cp.GraphExecGroup())),
        outcome(lambda: two(True, Nothing())),
        outcome(nested),
    )


@program
def values_are_handed_out_once(torch):
    cp = module(torch)

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            for _ in range(F.times):
                (x,) = ctx.saved_tensors
            return g * x

    out = []
    for F.times in (1, 2):
        for further in ({}, {"early_stop": False}):
            y = cp.checkpoint(F.apply, leaf(torch, 1.0), use_reentrant=False, **further).sum()
            out.append(outcome(lambda y=y: y.backward(retain_graph=True)))
            out.append(outcome(lambda y=y: y.backward()))
    y = cp.checkpoint(lambda x: x.exp().sin(), leaf(torch, 1.0), use_reentrant=False)
    out.append([round(y.grad_fn._saved_self.item(), 3) for _ in range(2)])
    return out


@program
def contexts_of_a_checkpoint(torch):
    cp = module(torch)
    log = []

    class Context:
        def __init__(self, name, suppresses=False):
            self.name, self.suppresses = name, suppresses

        def __enter__(self):
            log.append(self.name)

        def __exit__(self, *exc_info):
            return self.suppresses

    def fails(x):
        raise ValueError

    x = leaf(torch, 1.0)
    kept = {"use_reentrant": False, "context_fn": lambda: (Context("forward"), Context("again"))}
    cp.checkpoint(torch.sin, x, **kept).backward()
    with torch.no_grad():
        cp.checkpoint(torch.sin, x, **kept)
    suppressing = {"use_reentrant": False, "context_fn": lambda: (Context("forward", True), Context("again"))}
    return (
        log,
        outcome(lambda: cp.checkpoint(fails, x, **kept)),
        outcome(lambda: cp.checkpoint(fails, x, **suppressing)),
        outcome(lambda: cp.checkpoint_sequential([torch.sin], 2, x, use_reentrant=False)),
        outcome(lambda: cp.checkpoint_sequential([torch.sin], 1, x, use_reentrant=False, other=3)),
        cp.checkpoint_sequential([torch.sin, torch.cos], 2, x, use_reentrant=False, preserve_rng_state=False).item()
        < 1,
    )


@program
def early_stop_of_all_checkpoints(torch):
    cp = module(torch)
    out = []
    for local in (True, False):
        for everywhere in (None, True, False):
            ends = []

            def f(x, ends=ends):
                y = x.sin().exp()
                ends.append(0)
                return y

            x = leaf(torch, 1.0)
            if everywhere is None:
                y = cp.checkpoint(f, x, use_reentrant=False, early_stop=local)
            else:
                with cp.set_checkpoint_early_stop(everywhere):
                    y = cp.checkpoint(f, x, use_reentrant=False, early_stop=local)
            y.backward()
            out.append(len(ends))
    return out


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)


def test_all_is_put_back():
    """Outside of selective checkpoints every function that computes is its own."""
    before = [mapping[key] for mapping, key, _ in COMPUTES], Elementwise.compute
    x = leaf(tinytorch, 1.0)
    context_fn = functools.partial(create_selective_checkpoint_contexts, [tinytorch.ops.aten.sin.default])
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=context_fn)
    y.backward()
    with pytest.raises(ZeroDivisionError):
        checkpoint(lambda x: 1 / 0, x, use_reentrant=False, context_fn=context_fn)
    assert before == ([mapping[key] for mapping, key, _ in COMPUTES], Elementwise.compute)


def test_operators_go_by_pytorchs_names():
    """A policy sees the operators as which PyTorch computes."""
    seen = []

    def policy(context, op, *args):
        seen.append(op.name)
        return CheckpointPolicy.MUST_SAVE

    layer = tinytorch.nn.Linear(2, 2)
    a, v, s = tinytorch.ones(2, 2, requires_grad=True), tinytorch.ones(2), tinytorch.ones(3, 2, 2)
    f = lambda a: [layer(a), a @ a, a @ v, v @ v, s @ s, s @ a, tinytorch.nn.functional.linear(a, a)]  # noqa: E731
    checkpoint(f, a, use_reentrant=False, context_fn=functools.partial(create_selective_checkpoint_contexts, policy))
    assert seen == ["addmm", "mm", "mv", "dot", "bmm", "mm", "mm"]


def test_debug_shows_what_saved():
    calls = []

    def f(x):
        calls.append(0)
        return x.sin().exp() if len(calls) == 1 else x.sin()

    y = checkpoint(f, leaf(tinytorch, 1.0), use_reentrant=False, debug=True)
    with pytest.raises(tinytorch.utils.checkpoint.CheckpointError, match=r"exp at .*test_rules_selective.py:\d+"):
        y.backward()
