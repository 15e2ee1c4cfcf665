"""Autocast on a device."""

import pytest
import tinytorch as tt
from tinytorch.nn import functional as F


def test_refused_on_cuda(gpu):
    p = tt.rand(3).cuda().half()
    with tt.autocast("cuda"), pytest.raises(RuntimeError, match="unsafe to autocast"):
        F.binary_cross_entropy(p, p)


def test_on_cuda(gpu):
    w, x = tt.randn(4, 4).cuda().requires_grad_(), tt.randn(2, 4).cuda()
    with tt.autocast("cuda"):
        y = F.linear(x, w)
        loss = F.mse_loss(y, x)
        assert (y.dtype, loss.dtype, y.softmax(1).dtype) == (tt.float16, tt.float32, tt.float32)
        assert (tt.ones(2, 2) @ tt.ones(2, 2)).dtype is tt.float32  # the CPU's tensors stay
    loss.backward()
    assert w.grad.dtype is tt.float32


def test_grad_scaler(gpu):
    """The scale is on the device, and halves after an infinite gradient."""
    p = tt.ones(3).cuda().requires_grad_()
    optimizer, scaler = tt.optim.SGD([p], lr=0.5), tt.amp.GradScaler("cuda", init_scale=8.0)
    for factor, value, scale in ((1.0, 0.5, 8.0), (float("inf"), 0.5, 4.0)):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert p.tolist() == [value] * 3 and scaler.get_scale() == scale and scaler._scale.is_cuda


@pytest.mark.parametrize("dtype", [tt.float16, tt.bfloat16])
@pytest.mark.parametrize("shape", [(5, 37), (3, 4, 6), (2, 1500)], ids=str)
def test_cross_entropy_reads_halves(device, dtype, shape):
    """Logits of half types have the loss and the gradients of a copy in float32."""
    tt.manual_seed(0)
    x = tt.randn(shape, device=device).to(dtype)
    target = tt.randint(0, shape[1], (shape[0], *shape[2:]), device=device)
    weight = tt.rand(shape[1], device=device)
    for how in ({}, {"reduction": "none"}, {"weight": weight, "label_smoothing": 0.1}, {"reduction": "sum"}):
        found = []
        for cast in (False, True):
            logits = x.clone().requires_grad_()
            with tt.autocast(device, dtype=dtype):
                loss = F.cross_entropy(logits.float() if cast else logits, target, **how)
            assert loss.dtype is tt.float32
            (grad,) = tt.autograd.grad(loss.sum(), logits, retain_graph=True)
            (again,) = tt.autograd.grad(loss.sum(), logits, create_graph=True)
            (second,) = tt.autograd.grad(again.float().square().sum(), logits)
            found.append([t.cpu().tolist() for t in (loss, grad, again, second)])
        assert found[0] == found[1]
