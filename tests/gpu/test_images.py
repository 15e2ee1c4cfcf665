"""Pooling, resampling, blocks of images and batch norm: on a device they and their derivatives have the bits of the
CPU, also where channels lie closest together."""

import numpy as np
import pytest
import tinytorch as tt
from tinytorch.nn import functional as F


def _normalized(x):
    weight, bias, mean, var = (tt.linspace(0.5, 2, x.shape[1], dtype=x.dtype, device=x.device) for _ in range(4))
    out = F.batch_norm(x, mean, var, weight, bias, training=True)
    return out, mean, var


CASES = {
    "max_pool2d": lambda x: F.max_pool2d(x, 3, 2, 1, return_indices=True),
    "max_pool2d, dilated": lambda x: F.max_pool2d(x, (2, 3), 1, (1, 1), (2, 1), return_indices=True),
    "avg_pool2d": lambda x: F.avg_pool2d(x, (4, 2), (2, 1), (2, 1), True, False),
    "adaptive_avg_pool2d": lambda x: F.adaptive_avg_pool2d(x, (3, 5)),
    "adaptive_max_pool2d": lambda x: F.adaptive_max_pool2d(x, (3, 5)),
    "bilinear": lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"),
    "bicubic, antialias": lambda x: F.interpolate(x, (3, 11), mode="bicubic", antialias=True),
    "far larger": lambda x: F.interpolate(x, (70, 9), mode="bilinear", align_corners=True),
    "unfold": lambda x: F.unfold(x, (3, 2), (1, 2), (2, 1), (2, 1)),
    "batch_norm": _normalized,
}


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype", [tt.float32, tt.bfloat16])
@pytest.mark.parametrize("name", CASES)
def test_results_and_derivatives_have_the_bits_of_the_cpu(gpu, name, dtype, last):
    data = np.random.default_rng(0).standard_normal((3, 8, 17, 32))
    found = []
    for device in ("cpu", "cuda"):
        x = tt.from_numpy(data).to(device, dtype)
        x = (x.contiguous(memory_format=tt.channels_last) if last else x).requires_grad_()
        out = CASES[name](x)
        out = out if isinstance(out, tuple) else (out,)
        upstream = tt.from_numpy(np.random.default_rng(1).standard_normal(tuple(out[0].shape))).to(device, dtype)
        results = [*out, *tt.autograd.grad(out[0], x, upstream)]
        found.append([t.detach().cpu().double().numpy().tobytes() for t in results])
    assert found[0] == found[1]


def _normalized_with_gradients(data, device):
    x = tt.from_numpy(data).to(device).contiguous(memory_format=tt.channels_last).requires_grad_()
    out = _normalized(x)
    return *out, *tt.autograd.grad(out[0], x, out[0].detach().cos())


@pytest.mark.parametrize("shape", [(2, 3, 40, 40), (4, 70, 17, 31), (64, 5, 14, 56), (9, 33, 8, 130)])
def test_sums_of_channels_are_joined_by_the_last_thread_block(gpu, shape):
    """Twice, as counters must be 0 again."""
    data = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    expected = [t.detach().numpy().tobytes() for t in _normalized_with_gradients(data, "cpu")]
    for _ in range(2):
        before = len(getattr(gpu, "launches", ()))
        results = _normalized_with_gradients(data, "cuda")
        assert [t.detach().cpu().numpy().tobytes() for t in results] == expected
        if hasattr(gpu, "launches"):
            assert "sum_f32" not in gpu.launches[before:]
