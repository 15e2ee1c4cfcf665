"""Hooks, edges and gradients of leaves, as in PyTorch: rules.py."""

import warnings

import pytest
from rules import agree, outcome, programs

PROGRAMS, program = programs()


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
def accumulated_hook_may_give_its_tensor(torch):
    x = torch.ones(2, requires_grad=True)
    found = []
    for given in (lambda p: p.grad, lambda p: p.sub_(p.grad), lambda p: 5):
        handle = x.register_post_accumulate_grad_hook(given)
        found.append(outcome(lambda: x.sum().backward()))
        handle.remove()
    return found


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name, torch):
    agree(PROGRAMS[name], torch)
