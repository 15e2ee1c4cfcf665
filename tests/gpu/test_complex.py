"""Complex numbers on a device give what they give on the CPU: what depends on elements of 8 and 16 bytes. All of them:
tests/test_complex_ops.py --device cuda."""

import math

import pytest
import tinytorch as tt
from gpu.layouts import to_device

each_dtype = pytest.mark.parametrize("dtype", [tt.complex64, tt.complex128], ids=str)


def check(compute, *operands, exact=True):
    expected, found = compute(*operands), compute(*map(to_device, operands))
    assert found.is_cuda and found.dtype is expected.dtype and found.shape == expected.shape
    if exact:
        assert tt.equal(found.cpu(), expected)
    else:
        tolerance = 1e-5 if expected.dtype in (tt.complex64, tt.float32) else 1e-10
        assert tt.allclose(found.cpu(), expected, rtol=tolerance, atol=tolerance)


@each_dtype
def test_numbers_are_handed_over_whole(gpu, dtype):
    z = tt.randn(5, dtype=dtype)
    number = tt.tensor(1.5 - 2.5j, dtype=dtype)  # on the CPU, without dimensions
    check(lambda z: z + (3 - 4j), z)
    check(lambda z: z * number, z, exact=False)
    check(lambda z: tt.where(z.real > 0, z, number), z)
    check(lambda z: tt.full((3,), 1 - 2j, dtype=dtype, device=z.device), z)
    check(lambda z: tt.addcmul(z, z, z, value=2j), z, exact=False)
    x = tt.ones(2, device="cuda")
    x[0] = number.real
    assert x.tolist() == [1.5, 1]


@each_dtype
@pytest.mark.parametrize("layout", ["whole", "apart", "transposed", "row", "offset"])
def test_layouts(gpu, layout, dtype):
    a, b = tt.randn(33, 40, dtype=dtype), tt.randn(34, 80, dtype=dtype)
    b = {
        "whole": lambda: b[:33, :40].clone(),
        "apart": lambda: b[:33, ::2],
        "transposed": lambda: tt.randn(40, 33, dtype=dtype).t(),
        "row": lambda: b[0, :40],
        "offset": lambda: b.reshape(-1)[1 : 33 * 40 + 1].view(33, 40),
    }[layout]()
    check(lambda a, b: a * b - b, a, b, exact=False)
    check(lambda b: b.clone().contiguous(), b)
    check(lambda b: b.abs(), b, exact=False)


@each_dtype
@pytest.mark.parametrize("shape, dim", [((70_000,), 0), ((3, 5000), 1), ((5000, 3), 0), ((40, 6), 1)])
def test_reductions_and_scans(gpu, shape, dim, dtype):
    z = tt.randn(shape, dtype=dtype)
    check(lambda z: z.sum(dim), z, exact=False)
    check(lambda z: z.mean(dim), z, exact=False)
    unit = tt.polar(tt.ones(shape), tt.randn(shape)).to(dtype).clone()
    check(lambda z: z.prod(dim), unit, exact=False)
    check(lambda z: z.cumsum(dim), z * 0.01, exact=False)
    check(lambda z: z.cumprod(dim), unit, exact=False)


@each_dtype
def test_products_and_indices(gpu, dtype):
    a, b = tt.randn(2, 5, 7, dtype=dtype), tt.randn(2, 7, 3, dtype=dtype)
    check(lambda a, b: a @ b, a, b, exact=False)
    check(lambda a, b: tt.baddbmm(a @ b, a, b, beta=0.5, alpha=-2), a, b, exact=False)
    check(lambda a, b: a.mH @ b.mT.contiguous().mT[:, :5], a, b, exact=False)
    index = tt.tensor([3, 0, 3, 3, 1])
    rows = tt.randn(5, 9, dtype=dtype)
    check(lambda r, i: tt.zeros(4, 9, dtype=dtype, device=r.device).index_add_(0, i, r), rows, index)
    check(lambda r, i: r[i], rows, index)
    check(lambda r: r.tril(), rows)
    check(lambda r: tt.cat([r, r.flip(0)]), rows)


def test_a_gradient(gpu):
    z = tt.randn(6, dtype=tt.complex128)
    found = []
    for x in (z.clone(), z.cuda()):
        x.requires_grad_()
        (x.exp() * x.conj() / (x + 2j)).abs().sum().backward()
        found.append(x.grad.cpu())
    assert tt.allclose(*found)
    assert math.isfinite(found[0].abs().sum().item())
