"""Fourier transforms on a device: the layouts that the library does not take, and what it must not see. All operators:
tests/test_ops.py --device cuda -k fft."""

import pytest
import tinytorch as tt


def check(compute, x):
    expected, found = compute(x), compute(x.cuda())
    assert found.is_cuda and found.dtype is expected.dtype and found.shape == expected.shape
    assert tt.allclose(found.cpu(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("norm", [None, "ortho"])
@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_each_dimension(gpu, n, dim, norm):
    shape = [3, 4, 5]
    shape[dim] = n
    x = tt.randn(shape, dtype=tt.float64)
    z = tt.randn(shape, dtype=tt.complex128)
    check(lambda x: tt.fft.rfft(x, dim=dim, norm=norm), x)
    check(lambda x: tt.fft.fft(x, dim=dim, norm=norm), x)
    check(lambda z: tt.fft.ifft(z, dim=dim, norm=norm), z)
    check(lambda z: tt.fft.irfft(z, 2 * n - 1, dim=dim, norm=norm), z)
    check(lambda z: tt.fft.irfft(z, 2 * n, dim=dim, norm=norm), z)


def test_layouts_and_several_dimensions(gpu):
    z = tt.randn(4, 6, 10, dtype=tt.complex128)
    check(lambda z: tt.fft.fft(z[:, ::2, 1:].transpose(0, 2)), z)
    check(lambda z: tt.fft.fft2(z[:, :, ::3]), z)
    check(lambda z: tt.fft.ifftn(z, dim=(0, 2)), z)
    check(lambda z: tt.fft.irfftn(z), z)
    check(lambda z: tt.fft.rfft2(z.real), z)


def test_a_transform_to_real_numbers_leaves_its_input(gpu):
    z = tt.randn(5, 9, dtype=tt.complex64, device="cuda")
    before = z.clone()
    tt.fft.irfft(z)
    assert tt.equal(z, before)


def test_gradients(gpu):
    for where in ("cpu", "cuda"):
        x = tt.arange(24.0, dtype=tt.float64).view(4, 6).to(where).requires_grad_()
        y = tt.fft.irfft(tt.fft.rfft(x) * 1j).square().sum() + tt.fft.fft(x, dim=0).abs().sum()
        (g,) = tt.autograd.grad(y, x, create_graph=True)
        (h,) = tt.autograd.grad(g.square().sum(), x)
        if where == "cpu":
            expected = g, h
        else:
            assert all(tt.allclose(a.cpu(), b) for a, b in zip((g, h), expected))
