"""autograd.Function: derivatives written by the user."""

import pytest

import tinytorch
from tinytorch.autograd import Function, gradcheck, gradgradcheck
from tinytorch.autograd.function import once_differentiable


def leaf(*values):
    return tinytorch.tensor(list(values), dtype=tinytorch.float64, requires_grad=True)


class Cube(Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return grad * 3 * x**2


class ScaledSum(Function):
    """a * k + b, with a constant k."""

    @staticmethod
    def forward(ctx, a, k, b):
        ctx.k = k
        return a * k + b

    @staticmethod
    def backward(ctx, grad):
        ctx.seen = ctx.needs_input_grad
        ScaledSum.needs = ctx.needs_input_grad
        return grad * ctx.k if ctx.needs_input_grad[0] else None, None, grad


def test_first_and_second_derivative():
    x = leaf(1.0, 2.0)
    y = Cube.apply(x)
    assert y.grad_fn.name() == "CubeBackward"
    (g,) = tinytorch.autograd.grad(y.sum(), x, create_graph=True)
    (gg,) = tinytorch.autograd.grad(g.sum(), x)
    assert g.tolist() == [3.0, 12.0] and gg.tolist() == [6.0, 12.0]
    assert gradcheck(Cube.apply, (x,)) and gradgradcheck(Cube.apply, (x,))


def test_forward_runs_without_the_tape():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            assert not tinytorch.is_grad_enabled()
            y = x * 2
            assert not y.requires_grad
            return y

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    y = F.apply(leaf(1.0))
    assert y.requires_grad


def test_needs_input_grad_and_constants():
    a, b = leaf(1.0), leaf(2.0)
    ScaledSum.apply(a, 3, b).sum().backward()
    assert ScaledSum.needs == (True, False, True)
    assert (a.grad.item(), b.grad.item()) == (3.0, 1.0)
    ScaledSum.apply(a.detach(), 3, b).sum().backward()
    assert ScaledSum.needs == (False, False, True)


def test_without_gradients_nothing_is_recorded():
    assert Cube.apply(tinytorch.ones(2)).grad_fn is None
    with tinytorch.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad


def test_several_outputs():
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            Split.grads = a.tolist(), b.tolist()
            return a * 2 + b * 3

    x = leaf(1.0)
    a, b = Split.apply(x)
    assert isinstance(Split.apply(x), tuple)
    a.sum().backward()
    assert Split.grads == ([1.0], [0.0]), "the gradient of an unused output is zeros"
    assert x.grad.item() == 2.0


def test_set_materialize_grads():
    class Split(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            assert b is None
            return a * 2

    x = leaf(1.0)
    Split.apply(x)[0].sum().backward()
    assert x.grad.item() == 2.0


def test_mark_non_differentiable():
    class Sort(Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return values, order

        @staticmethod
        def backward(ctx, grad, _):
            (order,) = ctx.saved_tensors
            return tinytorch.zeros_like(grad).scatter_(0, order, grad)

    x = leaf(3.0, 1.0, 2.0)
    values, order = Sort.apply(x)
    assert values.requires_grad and not order.requires_grad and order.grad_fn is None
    (values * tinytorch.tensor([1.0, 10.0, 100.0], dtype=tinytorch.float64)).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


def test_mark_dirty():
    class AddOne(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 7

    x = leaf(1.0)
    y = x * 2
    version = y._version
    z = AddOne.apply(y)
    assert z is y and y._version > version and y.grad_fn.name() == "AddOneBackward"
    y.sum().backward()
    assert x.grad.item() == 14.0
    with pytest.raises(RuntimeError, match="leaf"):
        AddOne.apply(leaf(1.0))


def test_mark_dirty_on_a_view():
    class Double(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf(1.0, 2.0)
    y = x * 1
    Double.apply(y[:1])
    y.sum().backward()
    assert y.tolist() == [2.0, 2.0] and x.grad.tolist() == [2.0, 1.0]


def test_once_differentiable():
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2 * x

    x = leaf(3.0)
    (g,) = tinytorch.autograd.grad((Square.apply(x) ** 2).sum(), x, create_graph=True)
    assert g.item() == 4 * 27.0
    with pytest.raises(RuntimeError, match="once_differentiable"):
        g.sum().backward()


def test_returning_an_input_unchanged():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, grad):
            return grad * 5

    x = leaf(1.0)
    y = Same.apply(x)
    assert y is not x and y.grad_fn.name() == "SameBackward"
    y.sum().backward()
    assert x.grad.item() == 5.0


def test_returning_a_view():
    class View(Function):
        @staticmethod
        def forward(ctx, x):
            return x.view(-1)

        @staticmethod
        def backward(ctx, grad):
            return grad.view(2, 1)

    x = tinytorch.ones(2, 1, requires_grad=True)
    y = View.apply(x * 1)
    y.sum().backward()
    assert x.grad.tolist() == [[1.0], [1.0]]


def test_saving_an_output():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            return y

        @staticmethod
        def backward(ctx, grad):
            (y,) = ctx.saved_tensors
            return grad * y

    x = leaf(0.0, 1.0)
    assert gradcheck(Exp.apply, (x,)) and gradgradcheck(Exp.apply, (x,))
    y = Exp.apply(x)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_saved_tensors_may_be_none_and_are_freed():
    class F(Function):
        @staticmethod
        def forward(ctx, x, maybe):
            ctx.save_for_backward(x, maybe)
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            x, maybe = ctx.saved_tensors
            assert maybe is None
            return grad, None

    y = F.apply(leaf(1.0), None)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="second time|freed"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="freed"):
        _ = y.grad_fn.saved_tensors


def test_saving_something_else_is_refused():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x, 3)
            return x * 1

    with pytest.raises(TypeError, match="save_for_backward"):
        F.apply(leaf(1.0))


def test_overwritten_saved_input():
    x = leaf(1.0)
    y = x * 1
    z = Cube.apply(y)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def _with_backward(backward):
    class F(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, grad):
            return backward(grad)

    return F


@pytest.mark.parametrize(
    "backward",
    [lambda g: g, lambda g: (g, g, g), lambda g: (g[:1], g)],
    ids=["too few", "too many", "wrong shape"],
)
def test_bad_gradients_are_refused(backward):
    a, b = leaf(1.0, 2.0), leaf(3.0, 4.0)
    with pytest.raises(RuntimeError, match=r"FBackward"):
        _with_backward(backward).apply(a, b).sum().backward()
    assert a.grad is None and b.grad is None


def test_a_gradient_that_is_no_tensor_is_refused():
    with pytest.raises((RuntimeError, TypeError), match="str"):
        _with_backward(lambda g: (g, "text")).apply(leaf(1.0), leaf(2.0)).sum().backward()


def test_trailing_nones_are_allowed():
    a, b = leaf(1.0), leaf(2.0)
    _with_backward(lambda g: (g, g, None)).apply(a, b).sum().backward()
    assert a.grad.item() == 1.0


def test_missing_backward():
    class F(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

    with pytest.raises(NotImplementedError):
        F.apply(leaf(1.0)).sum().backward()


def test_setup_context():
    class Square(Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    x = leaf(3.0)
    assert gradcheck(Square.apply, (x,)) and gradgradcheck(Square.apply, (x,))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated")
def test_functions_are_not_called():
    with pytest.raises((RuntimeError, TypeError)):
        Cube()(leaf(1.0))


def test_gradient_dtype_follows_the_input():
    class ToDouble(Function):
        @staticmethod
        def forward(ctx, x):
            return x.double()

        @staticmethod
        def backward(ctx, grad):
            return grad

    x = tinytorch.ones(2, requires_grad=True)
    ToDouble.apply(x).sum().backward()
    assert x.grad.dtype == tinytorch.float32
