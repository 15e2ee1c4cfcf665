"""Products of float32 that AMX makes in parts of bfloat16, where the CPU has it; elsewhere the same holds of strips."""

import pathlib

import numpy as np
import pytest

import tinytorch as tt
from tinytorch.backends.cpu import ffi, lib

# (m, k, n): of whole tiles, and with a part of one, or a panel of one tile, along each dimension; of several slices.
SIZES = [(128, 128, 128), (161, 97, 145), (48, 1000, 50), (300, 385, 420), (129, 800, 177), (700, 48, 65)]
ROUNDING = 2.0**-24


def ways(matrix):
    """A matrix as it may lie in memory."""
    return tt.tensor(matrix), tt.tensor(matrix.T.copy()).t(), tt.tensor(np.pad(matrix, 2))[2:-2, 2:-2]


def random(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def check(a, b, terms=None):
    """Sums in any order: Higham 2002, "Accuracy and Stability of Numerical Algorithms", 3.5; a denormal result has its
    own last bit."""
    exact = a.astype(np.float64) @ b.astype(np.float64)
    size = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    room = size * ROUNDING * ((terms or a.shape[1]) + 3) + a.shape[1] * 2.0**-150
    for left in ways(a):
        for right in ways(b):
            assert (np.abs((left @ right).numpy() - exact) <= room).all()


@pytest.mark.parametrize("m, k, n", SIZES)
def test_sizes(m, k, n):
    rng = np.random.default_rng(m + n)
    check(random(rng, m, k), random(rng, k, n), terms=12)  # of either sign: far below the bound
    check(abs(random(rng, m, k)), abs(random(rng, k, n)), terms=k / 2)


@pytest.mark.parametrize("m, k, n", SIZES[:3])
def test_what_is_added(m, k, n):
    rng = np.random.default_rng(m)
    a, b, c = random(rng, m, k), random(rng, k, n), random(rng, m, n)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    for alpha, beta in ((1, 1), (-1.5, 0.5), (2, 0), (1e-30, 1)):
        for added in (c, c[0]):
            got = tt.addmm(tt.tensor(added), tt.tensor(a), tt.tensor(b), alpha=alpha, beta=beta).numpy()
            np.testing.assert_allclose(
                got, alpha * exact + beta * added, rtol=1e-5, atol=1e-4 * abs(alpha) + 1e-6 * beta
            )


@pytest.mark.parametrize(
    "left, right",
    [(2.0**-149, 1), (2.0**-149, 2.0**126), (2.0**-130, 2.0**100), (2.0**-60, 2.0**-70), (2.0**-75, 2.0**-73)]
    + [(2.0**20, 2.0**25), (2.0**63, 2.0**58), (2.0**100, 2.0**-100), (2.0**-63, 2.0**-63), (0, 2.0**127)],
)
def test_large_and_small_numbers(left, right):
    """Denormal operands and results, and products beyond what the scale of parts allows."""
    rng = np.random.default_rng(1)
    a = (rng.standard_normal((150, 130)) * left).astype(np.float32)
    b = np.clip(rng.standard_normal((130, 140)) * right, -3e38, 3e38).astype(np.float32)
    check(a, b)
    a[5] *= np.float32(2.0**-20)  # in another row, and along the sum
    a[:, 7] *= np.float32(2.0**-24)
    check(a, b)


def test_numbers_of_every_size_in_one_product():
    rng = np.random.default_rng(2)
    a, b = random(rng, 150, 130), random(rng, 130, 140)
    with np.errstate(under="ignore"):
        check(
            (a * np.exp2(rng.integers(-140, 50, a.shape))).astype(np.float32),
            (b * np.exp2(rng.integers(-140, 60, b.shape))).astype(np.float32),
        )


def test_integers_are_exact():
    """Below 2^24, as with any order of float32's own sums."""
    rng = np.random.default_rng(3)
    for left, right in ((1 << 8, 1 << 9), (1 << 16, 2), (3, 1 << 15), (1 << 11, 1 << 6)):
        a = rng.integers(-left, left + 1, (160, 64)).astype(np.float32)
        b = rng.integers(-right, right + 1, (64, 330)).astype(np.float32)
        assert ((tt.tensor(a) @ tt.tensor(b)).numpy() == a.astype(np.float64) @ b.astype(np.float64)).all()


def test_what_is_not_finite():
    """It is seen by its own row or column; others keep their bits, and what overflows is infinite."""
    rng = np.random.default_rng(4)
    a, b = random(rng, 300, 500), abs(random(rng, 500, 260))
    clean = (tt.tensor(a) @ tt.tensor(b)).numpy()
    for value in (np.inf, -np.inf, np.nan):
        row, column = a.copy(), b.copy()
        row[177, 499] = value
        got = (tt.tensor(row) @ tt.tensor(b)).numpy()
        assert np.isnan(got[177]).all() if np.isnan(value) else (got[177] == value).all()
        assert (np.delete(got, 177, 0) == np.delete(clean, 177, 0)).all()
        column[3, 200] = value
        got = (tt.tensor(abs(a)) @ tt.tensor(column)).numpy()
        assert np.isnan(got[:, 200]).all() if np.isnan(value) else (got[:, 200] == value).all()
        assert np.isfinite(np.delete(got, 200, 1)).all()
    huge = a.copy()
    huge[20] = 2.0**115
    got = (tt.tensor(huge) @ tt.tensor(b)).numpy()
    np.testing.assert_allclose(got[20], b.sum(0, dtype=np.float64) * 2.0**115, rtol=1e-5)
    twice = tt.addmm(tt.tensor(got), tt.tensor(huge), tt.tensor(b), alpha=2, beta=-1).numpy()
    np.testing.assert_allclose(twice[20], got[20], rtol=1e-5)
    assert (np.delete(got, 20, 0) == np.delete(clean, 20, 0)).all()
    huge[20] = 3e38
    got = tt.addmm(tt.zeros(300, 260), tt.tensor(huge), tt.tensor(b)).numpy()
    assert (got[20] == np.inf).all()


def test_a_bias_that_is_not_finite():
    rng = np.random.default_rng(5)
    a, b, bias = random(rng, 200, 100), random(rng, 120, 100), random(rng, 120)
    clean = tt.nn.functional.linear(tt.tensor(a), tt.tensor(b), tt.tensor(bias)).numpy()
    bias[7], bias[100] = np.nan, -np.inf
    got = tt.nn.functional.linear(tt.tensor(a), tt.tensor(b), tt.tensor(bias)).numpy()
    assert np.isnan(got[:, 7]).all() and (got[:, 100] == -np.inf).all()
    assert (np.delete(got, [7, 100], 1) == np.delete(clean, [7, 100], 1)).all()


@pytest.mark.parametrize("m, k, n", [(330, 900, 350), (390, 330, 64)])
def test_threads_do_not_change_bits(m, k, n):
    """With rows and columns that are made in strips among others: whatever the tiles, these are the same."""
    rng = np.random.default_rng(6)
    a, b = random(rng, m, k), random(rng, k, n)
    a[100, 5], a[290, k - 1], b[300, n - 1] = np.nan, 2.0**110, np.inf
    before, results = tt.get_num_threads(), []
    try:
        for threads in (1, 2, 5, 16):
            tt.set_num_threads(threads)
            products = [x @ y for x in ways(a) for y in ways(b)]
            products += [tt.addmm(tt.ones(n), tt.tensor(a), y) for y in ways(b)]
            results.append([np.nan_to_num(r.numpy(), nan=7).tobytes() for r in products])
    finally:
        tt.set_num_threads(before)
    assert all(found == results[0] for found in results)


def test_nearer_than_strips():
    """Half of AVX2's error, where AMX is in use, and nowhere more than one and a half of it."""
    rng = np.random.default_rng(7)
    a, b = random(rng, 256, 1024), random(rng, 1024, 256)
    exact = a.astype(np.float64) @ b.astype(np.float64)

    def error():
        return np.sqrt((((tt.tensor(a) @ tt.tensor(b)).numpy() - exact) ** 2).mean())

    before, best = ffi.string(lib.tt_isa_name()), error()
    try:
        assert lib.tt_set_isa(b"avx2") == 0 or pytest.skip("there is no AVX2")
        other = error()
    finally:
        lib.tt_set_isa(before)
    amx = before == b"avx512" and "amx_bf16" in pathlib.Path("/proc/cpuinfo").read_text()
    assert best <= other * (0.6 if amx else 1.5)
