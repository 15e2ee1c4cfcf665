"""clip_grad_norm_ on devices: the CPU's bits, by a fixed number of launches."""

import math

import numpy as np
import pytest
import tinytorch as tt
from tinytorch.nn.utils import clip_grad_norm_, get_total_norm

SHAPES = [(33, 7), (), (1,), (1024,), (1025,), (2049,), (3, 5, 2), (300, 40), (9, 1000)]


def bits(t):
    return t.detach().cpu().contiguous().reshape(-1).view(tt.uint8).numpy()


def parameters(device, dtype, shapes=SHAPES, grow=1.0):
    rng = np.random.default_rng(0)
    params = [tt.zeros(s, dtype=dtype).to(device).requires_grad_() for s in shapes]
    for p in params:
        p.grad = tt.tensor(rng.standard_normal(p.shape) * grow).to(dtype).to(device)
    return params


def both(dtype, max_norm, norm_type, change=lambda params: None, **options):
    """Clips on the CPU and on the device, and compares."""
    norms, grads = [], []
    for device in ("cpu", "cuda"):
        params = parameters(device, dtype, **options)
        change(params)
        norms.append(clip_grad_norm_(params, max_norm, norm_type))
        grads.append([p.grad for p in params])
    np.testing.assert_array_equal(*map(bits, norms))
    for a, b in zip(*grads):
        np.testing.assert_array_equal(bits(a), bits(b))


def test_norms_of_as_many_blocks_as_fill_part_of_a_warp(gpu):
    """Not the first warp. What the shared memory held before is not what is summed."""
    shapes = [(33 * 1024,), (48, 1024), (70 * 1024,), (100, 1024), (130 * 1024 + 5,), (300 * 1024,)]
    tensors = [tt.randn(*shape) for shape in shapes]
    of_cpu, on_device = get_total_norm(tensors), [t.cuda() for t in tensors]
    for junk in (math.nan, 1e30, 0.0):
        tt.full((64 * 1024,), junk, device="cuda").sum()  # leaves it in shared memory
        np.testing.assert_array_equal(bits(get_total_norm(on_device)), bits(of_cpu))


@pytest.mark.parametrize(
    "dtype, norm_type",
    [
        ("float32", 2.0),
        ("float32", 1.0),
        ("float32", math.inf),
        ("float32", 3.0),
        ("float64", 2.0),
        ("float16", 2.0),
        ("bfloat16", 2.0),
    ],
)
def test_bits(gpu, dtype, norm_type):
    both(getattr(tt, dtype), 0.5, norm_type)
    both(getattr(tt, dtype), 1e9, norm_type)


def test_a_gradient_of_two_parameters_is_scaled_twice(emulated):
    """As on the CPU: by two kernels, for in one the two writes would race."""
    scaled = []
    for share in (True, False):
        begin = len(emulated.launches)

        def change(params, share=share):
            params[1].grad = params[0].grad if share else params[1].grad

        both(tt.float32, 0.5, 2.0, change, shapes=[(9, 100), (9, 100)])
        scaled.append(sum("scale" in name for name in emulated.launches[begin:]))
    assert scaled == [0, 1]


def test_gradients_that_lie_otherwise(gpu):
    def change(params):
        params[0].grad = params[0].grad.t().contiguous().t()
        params[3].grad = tt.cat([params[3].grad, params[3].grad])[::2]
        params[4].grad = tt.cat([params[4].grad, params[4].grad])[1:1026]

    both(tt.float32, 0.5, 2.0, change)
    both(tt.float32, 0.5, 2.0, shapes=[(3,), (0,), (5,)])


def test_dtypes_may_differ(gpu):
    totals = [
        get_total_norm([p.grad for dtype in (tt.float32, tt.float64) for p in parameters(device, dtype)])
        for device in ("cpu", "cuda")
    ]
    np.testing.assert_array_equal(*map(bits, totals))


def test_one_gradient_of_two_parameters_is_scaled_twice(gpu):
    def change(params):
        params[0].grad = params[1].grad

    both(tt.float32, 0.5, 2.0, change, shapes=[(4,), (4,)])


def test_more_tensors_than_one_launch_takes(gpu):
    both(tt.float32, 0.5, 2.0, shapes=[(k % 7 + 1,) for k in range(170)])


def test_not_a_finite_norm(gpu):
    params = parameters("cuda", tt.float32)
    params[3].grad[5] = math.nan
    with pytest.raises(RuntimeError, match="non-finite"):
        clip_grad_norm_(params, 1.0, error_if_nonfinite=True)
    assert math.isnan(clip_grad_norm_(params, 1.0).item())


def test_the_number_of_launches_is_fixed(emulated):
    counts = []
    for shapes in ([(40, 30)] * 2, [(40, 30)] * 50):
        params = parameters("cuda", tt.float32, shapes)
        before = len(emulated.launches)
        clip_grad_norm_(params, 0.5)
        counts.append(len(emulated.launches) - before)
    assert counts[0] == counts[1] <= 7, emulated.launches[-counts[1] :]


def test_what_saved_the_gradient_is_reported(gpu):
    (p,) = parameters("cuda", tt.float32, [(4,)])
    x = tt.ones(4, device="cuda").requires_grad_()
    y = x * p.grad
    clip_grad_norm_(p, 0.5)
    with pytest.raises(RuntimeError, match="clip_grad_norm_"):
        y.sum().backward()


def test_gradients_of_several_devices(gpu):
    if tt.cuda.device_count() < 2:
        pytest.skip("one device")
    for max_norm in (1.0, 1e3):
        here, apart = parameters("cpu", tt.float32), parameters("cpu", tt.float32)
        for k, p in enumerate(apart):
            p.data, p.grad = p.data.cuda(k % 2), None
            p.grad = here[k].grad.cuda(k % 2)
        norm = clip_grad_norm_(apart, max_norm)
        wanted = clip_grad_norm_(here, max_norm).item()
        assert norm.device == tt.device("cuda:0") and norm.item() == pytest.approx(wanted)
        for k, (p, q) in enumerate(zip(here, apart)):
            assert q.grad.device == tt.device("cuda", k % 2)
            np.testing.assert_allclose(q.grad.cpu().numpy(), p.grad.numpy(), rtol=1e-6)
