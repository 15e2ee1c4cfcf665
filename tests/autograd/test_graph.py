"""The tape: grad_fn and next_functions, backward and grad with all their options."""

import numpy as np
import pytest
from compare import assert_same, pair, to_numpy

import tinytorch


def leaf(*values, **kwargs):
    return tinytorch.tensor(list(values), dtype=tinytorch.float64, requires_grad=True, **kwargs)


# ---- The graph as an object.


def test_names_and_walk():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    y = (x * w).exp().sum()
    assert y.grad_fn.name() == "SumBackward0"
    names, node = [], y.grad_fn
    while node.next_functions:
        names.append(node.name())
        node = node.next_functions[0][0]
    assert names == ["SumBackward0", "ExpBackward0", "MulBackward0"]
    assert node.name().endswith("AccumulateGrad")
    assert type(node).__name__ == "AccumulateGrad"
    assert node.variable is x
    mul = y.grad_fn.next_functions[0][0].next_functions[0][0]
    assert [n.variable is t for (n, _), t in zip(mul.next_functions, (x, w))] == [True, True]
    assert mul is y.grad_fn.next_functions[0][0].next_functions[0][0]


@pytest.mark.parametrize(
    "function, name",
    [
        (lambda x: x + 1, "AddBackward0"),
        (lambda x: x - 1, "SubBackward0"),
        (lambda x: x * 2, "MulBackward0"),
        (lambda x: x / 2, "DivBackward0"),
        (lambda x: -x, "NegBackward0"),
        (lambda x: x**2, "PowBackward0"),
        (lambda x: x.exp(), "ExpBackward0"),
        (lambda x: x.relu(), "ReluBackward0"),
        (lambda x: x.tanh(), "TanhBackward0"),
        (lambda x: x.sum(), "SumBackward0"),
        (lambda x: x.mean(), "MeanBackward0"),
        (lambda x: x.clone(), "CloneBackward0"),
        (lambda x: x.t(), "TBackward0"),
        (lambda x: x @ x, "MmBackward0"),
        (lambda x: x.view(-1), "ViewBackward0"),
        (lambda x: x.transpose(0, 1), "TransposeBackward0"),
        (lambda x: x.permute(1, 0), "PermuteBackward0"),
        (lambda x: x.unsqueeze(0), "UnsqueezeBackward0"),
        (lambda x: x[0], "SelectBackward0"),
        (lambda x: x[:1], "SliceBackward0"),
        (lambda x: tinytorch.cat([x, x]), "CatBackward0"),
        (lambda x: tinytorch.stack([x, x]), "StackBackward0"),
    ],
)
def test_names(function, name):
    x = tinytorch.ones(2, 2, requires_grad=True)
    result = function(x)
    assert result.grad_fn.name() == name
    assert name in repr(result.grad_fn) and f"grad_fn=<{name}>" in repr(result)


def test_constants_have_no_edge():
    x, c = leaf(1.0), tinytorch.ones(1, dtype=tinytorch.float64)
    assert [edge[0] is None for edge in (x * c).grad_fn.next_functions] == [False, True]
    assert (c * c).grad_fn is None and not (c * c).requires_grad


def test_output_index():
    """The second number of an edge says which output of the earlier node it comes from."""
    a, b = leaf(1.0, 2.0).unbind()
    assert (a.grad_fn, a.output_nr) == (b.grad_fn, 0) and b.output_nr == 1
    assert (a + b).grad_fn.next_functions == ((a.grad_fn, 0), (a.grad_fn, 1))


def test_is_leaf():
    x = leaf(1.0)
    assert x.is_leaf and not (x * 2).is_leaf and (x * 2).detach().is_leaf
    assert tinytorch.ones(1).is_leaf


# ---- backward and grad.


def test_accumulation(torch):
    x = leaf(1.0, 2.0)
    (x * x).sum().backward()
    first = x.grad
    (x * 3).sum().backward()
    assert x.grad is first, "a second backward adds to the same tensor"
    assert x.grad.tolist() == [5.0, 7.0]
    x.grad = None
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_diamond_and_reuse():
    x = leaf(2.0)
    y = x * x
    z = y * y + y + x
    z.backward()
    assert x.grad.tolist() == [4 * 8 + 4 + 1]


def test_order_is_by_dependency_not_depth():
    """A long and a short path meet: the node must wait for both."""
    x = leaf(1.5)
    y = x.exp()
    long = y
    for _ in range(20):
        long = long * 1.01
    (long + y).backward()
    assert x.grad.item() == pytest.approx((1.01**20 + 1) * 2.718281828459045**1.5)


def test_retain_graph_and_second_backward():
    x = leaf(1.0, 2.0)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match=r"backward through the graph a second time"):
        y.backward()
    assert x.grad.tolist() == [4.0, 8.0]


def test_second_backward_without_saved_values_is_fine():
    x = leaf(1.0)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert x.grad.item() == 2


def test_non_scalar_backward():
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        (x * 2).backward()
    (x * 2).backward(tinytorch.tensor([1.0, 10.0], dtype=tinytorch.float64))
    assert x.grad.tolist() == [2.0, 20.0]


def test_backward_without_grad():
    with pytest.raises(RuntimeError, match="does not require grad"):
        tinytorch.ones(()).backward()
    with pytest.raises(RuntimeError, match="does not require grad"):
        tinytorch.autograd.grad(tinytorch.ones(()), [leaf(1.0)])


@pytest.mark.parametrize("shape", [(3,), (1, 2), ()])
def test_wrong_gradient_shape(shape):
    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match=r"(?i)shape") as error:
        (x * 2).backward(tinytorch.ones(shape, dtype=tinytorch.float64))
    assert "2" in str(error.value)
    assert x.grad is None


def test_grad_leaves_dot_grad_alone():
    x = leaf(1.0, 2.0)
    (g,) = tinytorch.autograd.grad((x * x).sum(), x)
    assert g.tolist() == [2.0, 4.0] and x.grad is None and not g.requires_grad


def test_grad_of_intermediate():
    x = leaf(2.0)
    y = x * x
    g = tinytorch.autograd.grad((y * y).sum(), [y, x])
    assert [t.item() for t in g] == [8.0, 32.0]


def test_grad_of_the_output_itself():
    x = leaf(2.0)
    y = (x * x).sum()
    assert tinytorch.autograd.grad(y, y)[0].item() == 1.0


def test_allow_unused_and_materialize():
    x, unused = leaf(1.0), leaf(1.0, 2.0)
    y = (x * 2).sum()
    with pytest.raises(RuntimeError, match="allow_unused"):
        tinytorch.autograd.grad(y, [x, unused], retain_graph=True)
    assert tinytorch.autograd.grad(y, [x, unused], allow_unused=True, retain_graph=True)[1] is None
    g = tinytorch.autograd.grad(y, [x, unused], materialize_grads=True, retain_graph=True)
    assert g[1].tolist() == [0.0, 0.0]
    with pytest.raises(ValueError):
        tinytorch.autograd.grad(y, [x, unused], materialize_grads=True, allow_unused=False)


def test_several_outputs_and_grad_outputs():
    x = leaf(1.0, 2.0)
    a, b = x * x, x.sum()
    outer = [tinytorch.tensor([1.0, 3.0], dtype=tinytorch.float64), None]
    (g,) = tinytorch.autograd.grad([a, b], [x], grad_outputs=outer)
    assert g.tolist() == [3.0, 13.0]


def test_is_grads_batched():
    x = leaf(1.0, 2.0, 3.0)
    rows = tinytorch.eye(3, dtype=tinytorch.float64)
    (g,) = tinytorch.autograd.grad(x * x, x, rows, is_grads_batched=True)
    assert g.tolist() == [[2.0, 0, 0], [0, 4.0, 0], [0, 0, 6.0]]


def test_create_graph():
    x = leaf(2.0)
    (g,) = tinytorch.autograd.grad((x**4).sum(), x, create_graph=True)
    (gg,) = tinytorch.autograd.grad(g.sum(), x, create_graph=True)
    (ggg,) = tinytorch.autograd.grad(gg.sum(), x)
    assert [t.item() for t in (g, gg, ggg)] == [32.0, 48.0, 48.0]
    assert g.requires_grad and not ggg.requires_grad


@pytest.mark.filterwarnings("ignore:Using backward")
def test_backward_create_graph():
    x = leaf(3.0)
    (x**3).sum().backward(create_graph=True)
    (gg,) = tinytorch.autograd.grad(x.grad.sum(), x)
    assert gg.item() == 18.0
    x.grad = None  # x.grad holds a graph that holds x


def test_backward_inputs():
    x, w = leaf(1.0), leaf(2.0)
    (x * w).sum().backward(inputs=[w])
    assert x.grad is None and w.grad.item() == 1.0


def test_function_backward():
    """tinytorch.autograd.backward takes several roots."""
    x = leaf(1.0, 2.0)
    tinytorch.autograd.backward([(x * 2).sum(), (x * x).sum()])
    assert x.grad.tolist() == [4.0, 6.0]


def test_assigning_grad():
    x = leaf(1.0, 2.0)
    x.grad = tinytorch.ones(2, dtype=tinytorch.float64)
    (x * 2).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
    with pytest.raises(RuntimeError):
        x.grad = tinytorch.ones(3, dtype=tinytorch.float64)
    with pytest.raises(RuntimeError):
        x.grad = tinytorch.ones(2, dtype=tinytorch.float32)
    with pytest.raises(TypeError):
        x.grad = 3.0


def test_retain_grad():
    x = leaf(1.0, 2.0)
    y = x * x
    assert not y.retains_grad
    y.retain_grad()
    y.retain_grad()  # twice is once
    assert y.retains_grad
    (y * 3).sum().backward()
    assert y.grad.tolist() == [3.0, 3.0]
    x.retain_grad()  # a leaf: nothing to do
    with pytest.raises(RuntimeError, match="requires_grad"):
        tinytorch.ones(1).retain_grad()


def test_grad_of_non_leaf_warns():
    x = leaf(1.0)
    y = x * 2
    with pytest.warns(UserWarning, match="leaf"):
        assert y.grad is None


def test_detach():
    x = leaf(1.0, 2.0)
    y = x * x
    d = y.detach()
    assert not d.requires_grad and d.grad_fn is None and d.data_ptr() == y.data_ptr()
    (d.requires_grad_() * 2).sum().backward()
    assert x.grad is None and d.grad.tolist() == [2.0, 2.0]


def test_detach_in_place():
    x = leaf(1.0)
    y = x * 2
    assert y.detach_() is y
    assert y.grad_fn is None and y.is_leaf and not y.requires_grad
    with pytest.raises(RuntimeError, match="view"):
        (leaf(1.0, 2.0) * 2)[0].detach_()


def test_requires_grad_rules():
    with pytest.raises(RuntimeError, match="floating point"):
        tinytorch.ones(2, dtype=tinytorch.int64).requires_grad_()
    with pytest.raises(RuntimeError, match="floating point"):
        tinytorch.ones(2, dtype=tinytorch.bool, requires_grad=True)
    y = leaf(1.0) * 2
    with pytest.raises(RuntimeError, match="leaf"):
        y.requires_grad_(False)
    x = leaf(1.0)
    x.requires_grad = False
    assert not (x * 2).requires_grad


def test_grad_has_the_leafs_shape_and_dtype(torch):
    results = []
    for m in (tinytorch, torch):
        x = m.ones(3, 1, requires_grad=True)
        y = m.full((2, 3, 4), 0.5, dtype=m.float64)
        (x * y).sum().backward()
        results.append(x.grad)
    assert_same(*results)


def test_half_gradients_accumulate_in_their_dtype():
    x = tinytorch.ones(4, dtype=tinytorch.bfloat16, requires_grad=True)
    (x.float() * 2).sum().backward()
    assert x.grad.dtype == tinytorch.bfloat16


def test_gradient_does_not_alias_its_neighbour():
    """x + y hands one gradient to both; adding to x.grad in place must not reach y.grad."""
    x, y = leaf(1.0), leaf(1.0)
    z = x + y
    z.sum().backward()
    x.grad.add_(100)
    assert y.grad.item() == 1.0


def test_user_gradient_is_not_kept():
    x = leaf(1.0, 2.0)
    outer = tinytorch.ones(2, dtype=tinytorch.float64)
    (x + 0).backward(outer)
    (x + 0).backward(outer)
    assert outer.tolist() == [1.0, 1.0] and x.grad.tolist() == [2.0, 2.0]


def test_backward_inside_backward():
    """A hook may run an engine of its own."""
    x = leaf(2.0)

    def hook(grad):
        z = leaf(3.0)
        with tinytorch.enable_grad():  # which hooks run without
            (z * z).sum().backward()
        return grad * z.grad

    y = x * x
    y.register_hook(hook)
    y.sum().backward()
    assert x.grad.item() == 24.0


# ---- Derivatives of whole programs.


def test_mlp_and_its_hessian_vector_product_equal_torch(torch):
    def run(m, x, w1, w2):
        def loss(w1, w2):
            return ((x @ w1).tanh() @ w2).logsumexp(1).mean() + (w1 * w1).sum() * 0.01

        value = loss(w1, w2)
        grads = m.autograd.grad(value, [w1, w2], create_graph=True)
        product = sum((g * g.detach().sin()).sum() for g in grads)
        return [value, *grads, *m.autograd.grad(product, [w1, w2])]

    rng = np.random.default_rng(0)
    ours, theirs = zip(
        pair(torch, rng.normal(size=(5, 4))),
        pair(torch, rng.normal(size=(4, 3)), requires_grad=True),
        pair(torch, rng.normal(size=(3, 2)), requires_grad=True),
    )
    for a, e in zip(run(tinytorch, *ours), run(torch, *theirs)):
        assert_same(a, e, rtol=1e-9, atol=1e-11)


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected")
def test_anomaly_mode_names_the_forward_op():
    x = leaf(-1.0)
    with tinytorch.autograd.detect_anomaly(), pytest.raises(RuntimeError, match="(?s)SqrtBackward0.*nan"):
        x.sqrt().sum().backward()
    assert not tinytorch.is_anomaly_enabled()
    with tinytorch.autograd.set_detect_anomaly(True):
        assert tinytorch.is_anomaly_enabled()


def test_gradcheck_finds_a_wrong_derivative():
    class Wrong(tinytorch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 3 * x

    x = leaf(1.0, 2.0)
    with pytest.raises(RuntimeError, match="(?i)jacobian"):
        tinytorch.autograd.gradcheck(Wrong.apply, (x,))
    assert not tinytorch.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False)
    assert to_numpy(x).tolist() == [1.0, 2.0], "gradcheck puts its inputs back"
