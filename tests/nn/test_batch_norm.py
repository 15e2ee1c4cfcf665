"""Normalisation of channels by kernels has the bits of the operators it stands for, in any layout, with any threads."""

import numpy as np
import pytest
import tinytorch as tt
from tinytorch.nn import functional as F


# Blocks of a sum within a run, over runs, and of single rows; columns beyond a tile; fewer channels than threads.
SHAPES = [(4, 3), (2100, 70), (1, 5, 2000), (3, 8, 17, 32), (32, 130, 4, 4), (2, 1, 60, 41), (2, 3, 4, 5, 6)]
SHAPES += [(7, 40, 1, 1), (1100, 2, 1), (3, 2100, 2, 1)]


def _by_operators(x, g, weight, bias, training, eps=1e-5):
    """Result, gradients of input, weight and bias, and statistics, in the dtype computed in."""
    over, shape = [0, *range(2, x.ndim)], (-1, *[1] * (x.ndim - 2))
    n = x.numel() // x.shape[1]
    variance, mean = tt.var_mean(x, over, correction=0)
    kept = (mean * 0.25, 0.75 + variance * (n / max(n - 1, 1)) * 0.25)
    if not training:
        kept = mean, variance = tt.zeros_like(mean), tt.ones_like(variance)
    rstd = (variance + eps).rsqrt()
    scale = rstd * weight
    out = tt.addcmul((bias - mean * scale).reshape(shape), x, scale.reshape(shape))
    center, total = x - mean.reshape(shape), g.sum(over)
    products = (g * center).sum(over) * rstd
    grad = g * scale.reshape(shape)
    if training:
        along = (scale * rstd * products / -n).reshape(shape)
        grad = tt.addcmul(tt.addcmul((scale * total / -n).reshape(shape), center, along), g, scale.reshape(shape))
    return out, grad, products, total, *kept


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("dtype", [tt.float32, tt.float64, tt.bfloat16, tt.float16], ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bits(shape, dtype, training, threads):
    r = np.random.default_rng(0)
    wide = tt.float64 if dtype is tt.float64 else tt.float32
    x, g = (tt.from_numpy(r.standard_normal(shape)).to(dtype) for _ in range(2))
    weight, bias = (tt.from_numpy(r.standard_normal(shape[1])).to(wide) for _ in range(2))
    before = tt.get_num_threads()
    tt.set_num_threads(threads)
    try:
        for last in (False, True)[: 1 + (len(shape) == 4)]:
            if last:
                x, g = (t.contiguous(memory_format=tt.channels_last) for t in (x, g))
            running = tt.zeros(shape[1], dtype=wide), tt.ones(shape[1], dtype=wide)
            operands = [t.detach().requires_grad_() for t in (x, weight, bias)]
            out = F.batch_norm(operands[0], *running, *operands[1:], training, 0.25)
            found = out.detach(), *tt.autograd.grad(out, operands, g), *running
            wanted = _by_operators(x.to(wide), g.to(wide), weight, bias, training)
            assert out.stride() == x.stride()
            for ours, theirs in zip(found, wanted):
                assert ours.double().numpy().tobytes() == theirs.to(ours.dtype).double().numpy().tobytes()
    finally:
        tt.set_num_threads(before)


@pytest.mark.parametrize("dtype", [tt.bfloat16, tt.float16], ids=str)
def test_half_types_are_not_copied(dtype):
    """A result takes its own memory, and no more of the size of the input."""
    for last in (False, True):
        x = tt.randn(8, 64, 32, 32).to(dtype)
        x = x.contiguous(memory_format=tt.channels_last) if last else x
        kept = x.requires_grad_(), tt.ones(64, requires_grad=True), tt.zeros(64, requires_grad=True)
        size = 2 * x.numel()
        tt.cpu.reset_peak_memory_stats()
        before = tt.cpu.memory_allocated()
        out = F.batch_norm(x, None, None, *kept[1:], training=True)
        assert tt.cpu.max_memory_allocated() - before < 1.5 * size
        tt.autograd.grad(out, kept, tt.ones_like(out))
        assert tt.cpu.max_memory_allocated() - before < 4 * size  # with the result, its gradient and the input's
