"""``autograd.graph``, ``Variable``, saved attributes and names of Nodes, as in PyTorch: rules.py."""

import pytest
from rules import agree, leaf, outcome, programs

PROGRAMS, program = programs()


@program
def hooks_of_several_tensors(torch):
    register, out = torch.autograd.graph.register_multi_grad_hook, []
    a, b, c = (torch.ones(2, requires_grad=True) * k for k in (1, 2, 3))
    parts = torch.ones(2, requires_grad=True).unbind()

    def note(grads):
        out.append([None if g is None else g.tolist() for g in grads] if isinstance(grads, (list, tuple)) else grads)

    for mode in ("all", "any"):
        handle = register([a, b, c], note, mode=mode)
        (a * b).sum().backward(retain_graph=True)
        (a * b * c).sum().backward(retain_graph=True)
        torch.autograd.grad((a * c).sum(), [c], retain_graph=True)
        handle.remove()
        (a * b).sum().backward(retain_graph=True)
    with register(parts, note):
        (parts[0] * 2).backward(retain_graph=True)
    parts[0].backward()
    return out, outcome(lambda: register([a], note, mode="some"))


@program
def saved_tensors_that_are_written(torch):
    allow = torch.autograd.graph.allow_mutation_on_saved_tensors
    writes = [
        lambda t: t.sin_(),
        lambda t: t.mul_(2).add_(1),
        lambda t: t.detach().fill_(7.0),
        lambda t: t.view(-1)[:1].zero_(),
        lambda t: t.__setitem__(0, 5.0),
        lambda t: t.copy_(torch.zeros(2)),
        lambda t: None,
    ]
    out = []
    for write in writes:
        with allow():
            a = torch.tensor([1.0, 2.0], requires_grad=True)
            b = a.clone()
            y = (b**2).sum() + b.exp().sum() + (b * b.detach()).sum()
            write(b)
            y.backward()
            out.append(a.grad.round(decimals=4))
    with allow():
        y = (torch.ones(2, requires_grad=True) ** 2).sum()
        nested = outcome(lambda: allow().__enter__())
    return out, nested, outcome(y.backward)


@program
def values_kept_on_the_cpu(torch):
    a = torch.tensor([1.0, 2.0], requires_grad=True)
    b = a.clone()
    with torch.autograd.graph.save_on_cpu():
        y = (b * b * a).sum()
    y.backward()
    return a.grad, type(torch.autograd.graph.save_on_cpu(pin_memory=True)).__name__


@program
def hooks_that_are_refused(torch):
    graph = torch.autograd.graph
    x = torch.ones(2, requires_grad=True)

    def enter():
        with graph.disable_saved_tensors_hooks("not here"), graph.saved_tensors_hooks(lambda t: t, lambda t: t):
            pass

    with graph.disable_saved_tensors_hooks("not here"):
        (x * x).sum().backward()
    return outcome(enter), x.grad


@program
def saved_tensors_that_are_detached_in_place(torch):
    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * x

    out = []
    for use in (lambda a: a**2, lambda a: a * a, lambda a: a.exp(), lambda a: a + a, lambda a: a @ a, F.apply):
        for make in (lambda x: x * 1, lambda x: x):
            for further in ({}, {"create_graph": True}):
                x = leaf(torch, 1.0, 2.0)
                a = make(x)
                b = use(a).sum()
                a.detach_()
                out.append(outcome(lambda b=b, further=further: b.backward(**further)))
    return out


@program
def grad_fn_by_its_inner_name(torch):
    x = leaf(torch, 1.0) * 2
    out = [x._grad_fn is x.grad_fn, outcome(lambda: delattr(x, "_grad_fn")), outcome(lambda: setattr(x, "_grad_fn", 3))]
    x._grad_fn = None
    return [*out, x.requires_grad]


@program
def what_is_the_tensor_itself(torch):
    x = leaf(torch, 1.0, 2.0)
    a, b = torch.broadcast_tensors(x, torch.ones(()))
    out = [+x is x, torch.positive(x) is x, a.grad_fn is None, b.shape, outcome(lambda: +torch.ones(2).bool())]
    for parts in (lambda y: y.tensor_split(2), lambda y: y.tensor_split((1,)), lambda y: y.split(1)):
        y = x * 1
        out += [outcome(lambda y=y, parts=parts: parts(y)[0].mul_(3)), y]
        out += [outcome(lambda parts=parts: parts(torch.ones(())))]
    return out


@program
def transposes_of_every_number_of_dimensions(torch):
    out = []
    for shape in ((), (3,), (2, 3), (2, 3, 4)):
        for f in (lambda x: x.T, lambda x: x.H, lambda x: x.mT, lambda x: x.mH, lambda x: x.adjoint(), lambda x: x.t()):
            out.append(outcome(lambda f=f, shape=shape: f(torch.ones(shape)).shape))
    return out


@program
def metadata_and_versions(torch):
    x = torch.ones(2, requires_grad=True)
    y = x * x
    y.grad_fn.metadata["note"] = 3
    t, u = torch.ones(2), torch.ones(2)
    torch.autograd.graph.increment_version(t)
    torch.autograd.graph.increment_version([t, u])
    z = x * t
    torch.autograd.graph.increment_version(t)
    return y.grad_fn.metadata, t._version, u._version, outcome(lambda: z.sum().backward())


@program
def saved_attributes(torch):
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    y, e, s = x * w, x.exp(), x.sum()
    out = [y.grad_fn._saved_self, y.grad_fn._saved_other, e.grad_fn._saved_result.round(decimals=3)]
    out += [
        list(s.grad_fn._saved_self_sym_sizes),
        y.grad_fn._saved_self is x,
        e.grad_fn._saved_result.grad_fn is e.grad_fn,
    ]
    out += [(x * 2).grad_fn._saved_self, outcome(lambda: y.grad_fn._saved_nothing)]
    y.sum().backward()
    return (
        out,
        outcome(lambda: y.grad_fn._saved_self),
    )


@program
def hooks_of_one_saved_tensor(torch):
    x, w = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0], requires_grad=True)
    y = x * w
    y.grad_fn._raw_saved_self.register_hooks(lambda t: t.tolist(), lambda v: torch.tensor(v) * 10)
    twice = outcome(lambda: y.grad_fn._raw_saved_self.register_hooks(lambda t: t, lambda t: t))
    y.sum().backward()

    class F(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return a * b

        @staticmethod
        def backward(ctx, g):
            a, b = ctx.saved_tensors
            return g * b, g * a

    z = F.apply(x, w)
    z.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t * 2, lambda t: t)
    z.sum().backward()
    return x.grad, w.grad, twice


@program
def variables(torch):
    from_module = torch.autograd.Variable
    data = torch.ones(2)
    v = from_module(data, requires_grad=True)
    data[0] = 3.0
    (v * 2).sum().backward()
    return (
        isinstance(v, from_module),
        isinstance(data, from_module),
        isinstance(3, from_module),
        issubclass(type(v), torch.Tensor),
        v,
        v.grad,
        v.is_leaf,
        from_module(data).requires_grad,
        from_module().shape,
    )


@program
def callbacks_after_backward(torch):
    log = []
    x = torch.ones(2, requires_grad=True)
    queue = torch.autograd.Variable._execution_engine.queue_callback
    y = x * 2
    y.register_hook(lambda g: queue(lambda: log.append(x.grad is not None)))
    y.sum().backward()
    (x * 1).sum().backward()
    return log


@program
def multithreading(torch):
    from_module = torch.autograd
    x = torch.ones(2, requires_grad=True)
    with from_module.set_multithreading_enabled(False):
        (x * 2).sum().backward()
    from_module.set_multithreading_enabled(False)
    from_module.set_multithreading_enabled(True)
    return x.grad


@program
def parts_that_are_tensors_of_their_own(torch):
    out = []
    for make in (
        lambda x: x.unsafe_split(1),
        lambda x: torch.unsafe_split(x, 2, 0),
        lambda x: x.unsafe_chunk(2),
        lambda x: x.unsafe_split_with_sizes([1, 2]),
    ):
        x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
        base = x * 1
        parts = make(base)
        parts[0].mul_(3)
        sum(p.square().sum() for p in parts).backward()
        out.append((x.grad, [p.shape[0] for p in parts], parts[1]._is_view(), parts[1]._version, base._version))
    return out


@program
def adjoints(torch):
    a = torch.arange(6.0).reshape(2, 3).requires_grad_()
    return (
        a.adjoint(),
        torch.adjoint(a[None]).shape,
        a.adjoint()._is_view(),
        outcome(torch.ones(3).adjoint),
        type(a.adjoint().grad_fn).__name__,
    )


@program
def results_without_a_known_derivative(torch):
    x = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
    return [
        (result.requires_grad, outcome(lambda r=result: r.sum().backward()))
        for result in (
            x.unique(),
            x.unique(return_inverse=True)[0],
            x.unique(dim=0),
            x.unique_consecutive(),
            torch.nextafter(x, x * 2),
        )
    ] + [r.requires_grad for r in x.unique(return_inverse=True, return_counts=True)]


@program
def names_of_nodes(torch):
    a, b = torch.full((2, 2), 0.5, requires_grad=True), torch.full((2, 2), 2.0, requires_grad=True)
    made = [
        a.sum(),
        a.expand(3, 2, 2),
        a[0],
        a.t(),
        a.mean(),
        a @ b,
        a.view(4),
        a.max(),
        a.min(),
        a.max(0)[0],
        a - 1,
        a**2,
    ]
    made += [a.log1p(), a.unbind()[0], a.clone(), torch.cat([a, b]), a.unique_consecutive(), torch.var_mean(a)[0]]
    made += [torch.std_mean(a)[1], a.aminmax()[0], a.square(), a.div(b, rounding_mode="floor"), a // b, a.logit()]
    return [type(t.grad_fn).__name__ for t in made]


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
