"""Pooling, normalisation and resampling keep the memory format of their input, as PyTorch does."""

import pytest

import tinytorch

CALLS = {
    "max_pool2d": lambda m, x: m.nn.functional.max_pool2d(x, 3, 2, 1),
    "avg_pool2d": lambda m, x: m.nn.functional.avg_pool2d(x, 2),
    "adaptive_avg_pool2d": lambda m, x: m.nn.functional.adaptive_avg_pool2d(x, 3),
    "adaptive_max_pool2d": lambda m, x: m.nn.functional.adaptive_max_pool2d(x, 3),
    "batch_norm": lambda m, x: m.nn.functional.batch_norm(x, None, None, training=True),
    "bilinear": lambda m, x: m.nn.functional.interpolate(x, (7, 9), mode="bilinear"),
    "nearest": lambda m, x: m.nn.functional.interpolate(x, (7, 9)),
    "pad": lambda m, x: m.nn.functional.pad(x, (1, 2, 0, 1)),
    "reflect": lambda m, x: m.nn.functional.pad(x, (1, 2, 0, 1), "reflect"),
    "circular": lambda m, x: m.nn.functional.pad(x, (1, 2, 0, 1), "circular"),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("form", ["channels_last", "contiguous_format"])
def test_memory_format(torch, name, form):

    found = []
    for m in (torch, tinytorch):
        x = m.ones(2, 3, 5, 6).contiguous(memory_format=getattr(m, form)).requires_grad_()
        out = CALLS[name](m, x)
        found.append((tuple(out.shape), out.stride()))
        (grad,) = m.autograd.grad(out, x, m.ones_like(out))
        assert grad.shape == x.shape
    assert found[0] == found[1]
