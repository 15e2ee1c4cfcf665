"""Gradients that cross devices: where they belong, and what is refused."""

import pytest
import tinytorch as tt

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture
def w():
    return tt.ones(3, device="cuda:0", requires_grad=True)


def test_a_gradient_is_on_the_device_of_its_tensor(w):
    with pytest.raises(RuntimeError, match="located on a different device: the tensor is on cuda:0, the grad on cpu"):
        w.grad = tt.ones(3)
    assert w.grad is None
    for call in (lambda g: (w * 2).backward(g), lambda g: tt.autograd.grad(w * 2, w, g)):
        with pytest.raises(RuntimeError, match="invalid gradient at index 0 - expected device cuda:0 but got cpu"):
            call(tt.ones(3))
    assert w.grad is None
    (got,) = tt.autograd.grad((w * 2).sum(), w, tt.tensor(3.0))  # a number goes with every device
    assert got.device == w.device and got.tolist() == [6.0] * 3


def test_gradients_go_back_to_where_tensors_came_from():
    here = tt.ones(2, requires_grad=True)
    (here.cuda(0) * 3).cpu().sum().backward()
    assert here.grad.tolist() == [3.0, 3.0] and not here.grad.is_cuda
    number = tt.tensor(2.0, requires_grad=True)
    (tt.ones(3, device="cuda:0") * number).sum().backward()
    assert number.grad.item() == 3.0 and not number.grad.is_cuda


@pytest.mark.parametrize("leaf", [True, False])
def test_hooks_return_gradients_of_the_same_device(w, leaf):
    t = w if leaf else w * 1
    t.register_hook(lambda g: g.cpu())
    with pytest.raises(RuntimeError, match=r"hook has changed the type of value: .* on cuda:0, returned .* on cpu"):
        (t * 2).sum().backward()
    assert w.grad is None


def test_functions_return_gradients_of_the_inputs_device(w):
    class Scale(tt.autograd.Function):
        @staticmethod
        def forward(ctx, x, of):
            ctx.of = of
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return ctx.of(g), None

    with pytest.raises(
        RuntimeError,
        match="Function ScaleBackward returned an invalid gradient at index 0 - expected device cuda:0 but got cpu",
    ):
        Scale.apply(w, lambda g: g.cpu()).sum().backward()
    assert w.grad is None
    Scale.apply(w, lambda g: g * 2).sum().backward()
    assert w.grad.tolist() == [2.0] * 3 and w.grad.is_cuda


def test_of_windows(gpu):
    """Whose derivative adds by index, where the index has to be on the device."""
    for device in ("cpu", "cuda"):
        x = tt.arange(6.0, device=device).requires_grad_()
        (x.unfold(0, 3, 1).square().sum() + x.as_strided((2, 3), (1, 1)).sum()).backward()
        assert x.grad.tolist() == [1.0, 6.0, 14.0, 19.0, 16.0, 10.0]
