"""Fourier transforms beyond the table: sizes, threads, layouts, batches of nothing."""

import math

import numpy as np
import pytest
from compare import assert_values, to_numpy

import tinytorch as M
from tinytorch.autograd import gradcheck, gradgradcheck
from tinytorch.backends._cpu import lib

HALF = ("rfft", "ihfft")
TO_REAL = ("irfft", "hfft")
NAMES = ("fft", "ifft", *HALF, *TO_REAL)


def numbers(name, *shape, dtype="complex128"):
    rng = np.random.default_rng(5)
    x = rng.standard_normal(shape) + (0 if name in HALF else 1j * rng.standard_normal(shape))
    return np.asarray(x, dtype if name not in HALF else {"complex64": "float32", "complex128": "float64"}[dtype])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 97, 1024, 1021, 6000])
def test_sizes(name, n):
    """Small and large, even, odd and prime; cut and followed by zeros."""
    for size in {n, max(1, n - 3), n + 2}:
        x = numbers(name, 2, size)
        expected = getattr(np.fft, name)(x, n)
        for dtype, kind in (("complex64", "c8"), ("complex128", "c16")):
            result = getattr(M.fft, name)(M.from_numpy(numbers(name, 2, size, dtype=dtype)), n)
            assert result.dtype.itemsize == np.dtype(kind).itemsize // (2 if name in TO_REAL else 1)
            scale = math.sqrt(n) if name in ("fft", "rfft", "hfft") else 1
            tolerance = {"rtol": 0, "atol": scale * (2e-5 if dtype == "complex64" else 1e-12)}
            assert_values(to_numpy(result), expected, dtype, f"{name} {size} {n}", **tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_threads_change_no_bit(name):
    x = M.from_numpy(numbers(name, 600, 128, dtype="complex64"))
    before, results = M.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            M.set_num_threads(threads)
            results.append([to_numpy(getattr(M.fft, name)(x, dim=d)).tobytes() for d in (0, 1)])
    finally:
        M.set_num_threads(before)
    assert results[0] == results[1] == results[2]


@pytest.mark.parametrize("name", NAMES)
def test_layouts(name):
    """Every order of dimensions, along every one."""
    x = numbers(name, 3, 5, 4, 6)
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (1, 3, 0, 2)):
        t = M.from_numpy(x).permute(order)[..., 1:]
        for dim in range(4):
            expected = getattr(np.fft, name)(x.transpose(order)[..., 1:], axis=dim)
            assert_values(to_numpy(getattr(M.fft, name)(t, dim=dim)), expected, "complex128", f"{order} {dim}")


@pytest.mark.parametrize("name", NAMES)
def test_batches_of_nothing(name):
    x = M.from_numpy(numbers(name, 0, 5)).requires_grad_()
    result = getattr(M.fft, name)(x)
    assert tuple(result.shape) == (0, {"rfft": 3, "ihfft": 3, "irfft": 8, "hfft": 8}.get(name, 5))
    assert M.autograd.grad(result.abs().sum(), x)[0].shape == x.shape


@pytest.mark.parametrize("name", [*NAMES, *(f"{n}2" for n in NAMES)])
@pytest.mark.parametrize("size", [(3, 4), (2, 5)])
def test_derivatives(name, size):
    """Against finite differences, as real numbers: those of complex ones have two parts."""
    x = M.from_numpy(numbers(name[:-1] if name[-1] == "2" else name, *size)).requires_grad_()

    def parts(x):
        y = getattr(M.fft, name)(x, norm="ortho")
        return M.view_as_real(y) if y.is_complex() else y

    assert gradcheck(parts, (x,))
    assert gradgradcheck(parts, (x,))


def test_a_result_is_not_its_argument():
    x = M.ones(3, 2, dtype=M.complex64)
    y = M.fft.fftn(x, dim=())
    assert (y == x).all()
    y.zero_()
    assert (x == 1).all()


def test_norms_of_another_kind_are_refused():
    with pytest.raises(RuntimeError, match="Invalid normalization mode"):
        M.fft.fft(M.ones(3), norm="other")
    with pytest.raises(TypeError, match="norm"):
        M.fft.fft(M.ones(3), norm=3)
    with pytest.raises(RuntimeError, match="unique"):
        M.fft.fftn(M.ones(3, 3), dim=(1, -1))
    with pytest.raises(TypeError, match="'n' must be int"):
        M.fft.rfft(M.ones(3), True)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2**k for k in range(13)])
def test_rows_of_a_power_of_two(name, n):
    """More rows than are taken together, next to each other and apart, cut and followed by zeros, scaled; with the same
    bits on every instruction set."""
    before = lib.tt_isa_name()
    for dtype, tolerance in (("complex64", 2e-6), ("complex128", 4e-15)):
        for shape, dim in (((21, n + 2), 1), ((n + 2, 19), 0), ((3, n + 2, 5), 1)):
            whole = numbers(name, *shape, dtype=dtype)
            for size in {n, max(1, n - 3), n + 2}:
                x = np.take(whole, range(size), dim)
                expected = getattr(np.fft, name)(x.astype("f8" if name in HALF else "c16"), n, dim, "ortho")
                results = []
                for isa in ("baseline", "avx2", "avx512"):
                    if lib.tt_set_isa(isa.encode()) == 0:
                        result = to_numpy(getattr(M.fft, name)(M.from_numpy(x), n, dim, "ortho"))
                        assert_values(result, expected, dtype, f"{name} {isa} {shape}", rtol=0, atol=tolerance)
                        results.append(result.tobytes())
                lib.tt_set_isa(before)
                assert len(set(results)) == 1


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n", [2048, 4096, 2**16])
def test_long_rows(name, n):
    """A few rows are transformed in parts: next to each other and apart, cut, followed by zeros, scaled; with the same
    bits on every instruction set and for any number of threads."""
    isa, threads = lib.tt_isa_name(), M.get_num_threads()
    for dtype, tolerance in (("complex64", 2e-6), ("complex128", 4e-15)):
        for shape, dim in (((2, n + 2), 1), ((n + 2, 3), 0), ((n + 2,), 0)):
            whole = numbers(name, *shape, dtype=dtype)
            for size in (n, n - 3, n + 2):
                x = np.take(whole, range(size), dim)
                expected = getattr(np.fft, name)(x.astype("f8" if name in HALF else "c16"), n, dim, "ortho")
                results = []
                for k, one in enumerate(("baseline", "avx2", "avx512")):
                    if lib.tt_set_isa(one.encode()) == 0:
                        M.set_num_threads(k + 1)
                        result = to_numpy(getattr(M.fft, name)(M.from_numpy(x), n, dim, "ortho"))
                        assert_values(result, expected, dtype, f"{name} {one} {shape}", rtol=0, atol=tolerance)
                        results.append(result.tobytes())
                lib.tt_set_isa(isa)
                M.set_num_threads(threads)
                assert len(set(results)) == 1


def test_a_long_row_with_an_infinite_number():
    x = np.ones(4096, "f4")
    x[5] = np.inf
    result = M.fft.rfft(M.from_numpy(x)).numpy()
    assert result[0] == np.inf and result[0].imag == 0
    assert not np.isfinite(result).any()


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512"])
@pytest.mark.parametrize("dtype", ["c8", "c16"])
@pytest.mark.parametrize("n", [2**k for k in range(4, 10)])
def test_infinite_numbers_stay_in_their_rows(isa, dtype, n):
    """Of an infinite first number every result is infinite: no root of one, which is (1, 0), multiplies it."""
    before = lib.tt_isa_name()
    x = np.ones((9, n), dtype)
    x[3, 0] = np.inf
    if lib.tt_set_isa(isa.encode()) != 0:
        pytest.skip(f"no {isa} on this machine")
    result = to_numpy(M.fft.fft(M.from_numpy(x)))
    lib.tt_set_isa(before)
    assert np.isfinite(np.delete(result, 3, 0)).all()
    assert (result[3].real == np.inf).all() and np.isfinite(result[3].imag).all()


def test_a_group_of_rows_in_place():
    x = numbers("fft", 16, 32, 64, dtype="complex64")
    result = to_numpy(M.fft.fftn(M.from_numpy(x)))
    assert_values(result, np.fft.fftn(x), "complex64", "fftn", rtol=0, atol=2e-3)
