"""What a leaf does with its gradient: takes it over, copies it, adds to it, with and without a graph."""

import pytest
from compare import doubles, outcome, table

import tinytorch

# ---- A leaf takes a gradient over only if nobody else shows its memory. (PyTorch is content with less: there, what a
# backward keeps, or another leaf's gradient, may change with it.)


def the_gradient_itself(m, g, kept):
    kept.append(g)
    return g


def a_view_of_a_buffer(m, g, kept):
    kept.append(m.arange(6, dtype=g.dtype))
    return kept[-1][2:5]


def an_alias(m, g, kept):
    kept.append(g * 2)
    return kept[-1].detach()


def a_column(m, g, kept):
    kept.append(m.stack([g, g], 1))
    return kept[-1][:, 0]


def an_expanded_number(m, g, kept):
    kept.append(g.sum())
    return kept[-1].expand(3)


def fresh(m, g, kept):
    return g * 1


@pytest.mark.parametrize(
    "give", [the_gradient_itself, a_view_of_a_buffer, an_alias, a_column, an_expanded_number, fresh]
)
def test_gradient_whose_memory_others_show(torch, give):
    """What give(g, kept) returns, it also keeps, in another form."""

    def program(m, disturb):
        kept = []

        class Keeping(m.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x.clone()

            @staticmethod
            def backward(ctx, g):
                return give(m, g, kept)

        x, seen, before = doubles(m, 1.0, 2.0, 3.0), [], []
        for _ in range(2):
            (Keeping.apply(x) * doubles(m, 1.0, 2.0, 4.0, requires_grad=False)).sum().backward()
            seen += [x.grad.clone(), x.grad.is_contiguous()]
            if disturb:
                before += [k.tolist() for k in kept[len(before) :]]
                x.grad.add_(100)
                assert [k.tolist() for k in kept] == before
                x.grad.sub_(100)
        return seen

    assert outcome(lambda m: program(m, True), tinytorch) == outcome(lambda m: program(m, False), torch)


def one_gradient_of_two():
    a, b = doubles(tinytorch, 1.0, 2.0, 3.0, 4.0), doubles(tinytorch, 1.0, 2.0, 3.0, 4.0)
    return (a + b).sum(), a, b


def one_gradient_through_two_views():
    a, b = doubles(tinytorch, 1.0, 2.0, 3.0, 4.0), doubles(tinytorch, 1.0, 2.0, 3.0, 4.0)
    return (a.view(2, 2) + b.view(2, 2)).sum(), a, b


def one_gradient_whole_and_through_a_view():
    a, b = doubles(tinytorch, 1.0, 2.0, 3.0, 4.0), doubles(tinytorch, 1.0, 2.0, 3.0, 4.0)
    return ((a + b.view(2, 2).view(4)) * 3).sum(), a, b


def one_gradient_of_a_leaf_and_a_retained_view():
    a = doubles(tinytorch, 1.0, 2.0, 3.0, 4.0)
    b = a.view(4)
    b.retain_grad()
    return (b * 3).sum(), a, b


@pytest.mark.parametrize(
    "make",
    [
        one_gradient_of_two,
        one_gradient_through_two_views,
        one_gradient_whole_and_through_a_view,
        one_gradient_of_a_leaf_and_a_retained_view,
    ],
)
def test_one_gradient_for_two(make):
    loss, a, b = make()
    loss.backward()
    before = b.grad.tolist()
    a.grad.add_(100)
    assert b.grad.tolist() == before == [v - 100 for v in a.grad.tolist()]


def gradient_kept_by_a_hook(m):
    x, kept = doubles(m, 1.0, 2.0), []
    x.register_hook(lambda g: kept.append(g))
    for _ in range(2):
        (x * 3).sum().backward()
        x.grad[0] += 100
    return [x.grad, *kept]


def gradient_given_by_the_user(m):
    x, g = doubles(m, 1.0, 2.0), doubles(m, 5.0, 6.0, requires_grad=False)
    x.backward(g)
    x.backward(g)
    x.grad[0] += 100
    return [x.grad, g]


def expanded_gradient(m):
    x = doubles(m, 1.0, 2.0, 3.0)
    x.sum().backward()
    x.grad[0] += 100
    return [x.grad, x.grad.is_contiguous()]


def transposed_gradient(m):
    x = m.ones(2, 3, dtype=m.float64, requires_grad=True)
    (x.t() * m.arange(6, dtype=m.float64).view(3, 2)).sum().backward()
    first = x.grad.clone()
    (x.t() * m.arange(6, dtype=m.float64).view(3, 2)).sum().backward()
    return [first, x.grad, x.grad.is_contiguous()]


def gradient_in_the_layout_of_the_other_factor(m):
    x, w = m.ones(2, 3, dtype=m.float64, requires_grad=True), m.arange(6, dtype=m.float64).view(3, 2).t()
    (x * w).backward(m.ones_like(w))
    return [x.grad.clone(), x.grad.stride(), x.grad.is_contiguous()]


def retained_twice(m):
    x = doubles(m, 1.0, 2.0)
    y = x * 3
    y.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    first = y.grad.clone()
    (y * 5).sum().backward()
    return [first, y.grad, x.grad]


# ---- .grad under create_graph.


def accumulated_twice_under_create_graph(m):
    x = doubles(m, 1.0, 2.0)
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    (x**4).sum().backward(create_graph=True)
    (h,) = m.autograd.grad(x.grad.sum(), x)
    return [first, x.grad, x.grad is first, x.grad.requires_grad, h]


def accumulated_without_a_graph_first(m):
    x = doubles(m, 1.0, 2.0)
    (x**3).sum().backward()
    first = x.grad
    (x**4).sum().backward(create_graph=True)
    (h,) = m.autograd.grad(x.grad.sum(), x)
    return [first, x.grad, x.grad is first, x.grad.requires_grad, h]


def second_derivative_into_the_same_grad(m):
    x = doubles(m, 1.0, 2.0)
    (x**3).sum().backward(create_graph=True)
    (x.grad**2).sum().backward()
    return [x.grad]


def two_paths_to_a_leaf_under_create_graph(m):
    x = doubles(m, 1.0, 2.0)
    (x * x + x.exp() * x).sum().backward(create_graph=True)
    (h,) = m.autograd.grad(x.grad.sum(), x)
    return [x.grad.requires_grad, [round(v, 9) for v in h.tolist()]]


pytestmark = pytest.mark.filterwarnings("ignore:Using backward.. with create_graph=True")


@table(
    gradient_kept_by_a_hook,
    gradient_given_by_the_user,
    expanded_gradient,
    transposed_gradient,
    gradient_in_the_layout_of_the_other_factor,
    retained_twice,
    accumulated_twice_under_create_graph,
    accumulated_without_a_graph_first,
    second_derivative_into_the_same_grad,
    two_paths_to_a_leaf_under_create_graph,
)
def test_program(torch, program):
    assert outcome(program, tinytorch) == outcome(program, torch)
