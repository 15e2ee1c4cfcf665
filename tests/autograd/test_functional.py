"""autograd.functional against torch's: jacobian, hessian and their products with vectors."""

import pytest
from compare import assert_same, outputs, pair

import tinytorch

X, Y, V, W = [[0.5, -1.0], [2.0, 0.3]], [1.5, -0.5], [[1.0, 2.0], [-1.0, 0.5]], [0.3, -2.0]


def vector(x, y):
    return (x * x).sum(1) * y.exp()


def scalar(x, y):
    return (x.sin() @ y).pow(2).sum() * x.sum()


def two(x, y):
    return x @ y, (x * y).sum()


def flat(result):
    return [t for r in result for t in flat(r)] if isinstance(result, (tuple, list)) else outputs(result)


def agree(torch, name, function, v=None, **options):
    results = []
    (x, xt), (y, yt) = pair(torch, X), pair(torch, Y)
    for m, inputs in ((tinytorch, (x, y)), (torch, (xt, yt))):
        more = () if v is None else (tuple(m.tensor(part, dtype=m.float64) for part in v),)
        more = more if v is None or len(v) > 1 else (more[0][0],)
        results.append(getattr(m.autograd.functional, name)(function, inputs, *more, **options))
    assert_same(flat(results[0]), flat(results[1]), name, rtol=1e-9, atol=1e-11)
    assert not any(t.requires_grad for t in flat(results[0]))


@pytest.mark.parametrize("vectorize", [False, True])
@pytest.mark.parametrize("function", [vector, scalar, two])
def test_jacobian(torch, function, vectorize):
    agree(torch, "jacobian", function, vectorize=vectorize)


@pytest.mark.parametrize("vectorize", [False, True])
def test_hessian(torch, vectorize):
    agree(torch, "hessian", scalar, vectorize=vectorize)


@pytest.mark.parametrize("name", ["hvp", "vhp"])
def test_hessian_products(torch, name):
    agree(torch, name, scalar, v=(V, W))


def test_vjp(torch):
    agree(torch, "vjp", vector, v=(W,))
    agree(torch, "vjp", scalar)


def test_jvp(torch):
    agree(torch, "jvp", vector, v=(V, W))


def test_single_input_gives_a_single_tensor():
    x = tinytorch.tensor([1.0, 2.0])
    j = tinytorch.autograd.functional.jacobian(lambda t: t * t, x)
    assert j.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    h = tinytorch.autograd.functional.hessian(lambda t: (t**3).sum(), x)
    assert h.tolist() == [[6.0, 0.0], [0.0, 12.0]]


def test_create_graph():
    x = tinytorch.tensor([1.0, 2.0], requires_grad=True)
    j = tinytorch.autograd.functional.jacobian(lambda t: t**3, x, create_graph=True)
    j.sum().backward()
    assert x.grad.tolist() == [6.0, 12.0]


def test_strict_finds_independence():
    x = tinytorch.ones(2)
    with pytest.raises(RuntimeError, match="(?i)independent|require"):
        tinytorch.autograd.functional.jacobian(lambda t: tinytorch.ones(2), x, strict=True)
    assert tinytorch.autograd.functional.jacobian(lambda t: tinytorch.ones(2), x).tolist() == [[0.0] * 2] * 2


def test_bad_arguments():
    x = tinytorch.ones(2)
    with pytest.raises(RuntimeError):
        tinytorch.autograd.functional.hessian(lambda t: t * 2, x)  # not a scalar
    with pytest.raises(RuntimeError):
        tinytorch.autograd.functional.vjp(lambda t: t * 2, x, tinytorch.ones(3))
    with pytest.raises(TypeError):
        tinytorch.autograd.functional.jacobian(lambda t: t, 3.0)
