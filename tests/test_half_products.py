"""Products of bfloat16 and float16 matrices beyond one block, against NumPy in float64: sums are rounded once."""

import itertools

import numpy as np
import pytest

import tinytorch as tt
from tinytorch.backends.cpu import lib

# (m, k, n): of one instruction, of a part of one, of several blocks, of vectors, of nothing.
SIZES = [
    *((1, 1, 1), (6, 32, 4), (7, 31, 9), (3, 33, 5), (17, 100, 33), (64, 2049, 17), (245, 1100, 250), (513, 70, 520)),
    *((1, 1000, 300), (300, 1000, 1), (2, 3000, 5), (1, 5, 1), (5, 0, 4), (0, 5, 4), (4, 5, 0)),
    *((1, 700, 1), (1, 33, 1), (1, 129, 130), (130, 128, 1), (1, 1, 65), (31, 2, 1)),
    *((16, 70, 300), (300, 70, 16), (6, 40, 250), (250, 1030, 5), (8, 2000, 241), (40, 64, 48)),
]
ROUNDING = {"bfloat16": 2.0**-8, "float16": 2.0**-11}


def matrices(m, k, n, dtype):
    """Each way that the operands may lie in memory."""
    rng = np.random.default_rng(0)
    for left, right in itertools.product((False, True), repeat=2):
        a = tt.tensor(rng.standard_normal((k, m) if left else (m, k))).to(dtype)
        b = tt.tensor(rng.standard_normal((n, k) if right else (k, n))).to(dtype)
        yield (a.t() if left else a), (b.t() if right else b)


def agree(result, wanted, k, rounding):
    assert result.shape == wanted.shape
    np.testing.assert_allclose(result.double().numpy(), wanted, rtol=rounding * 1.02, atol=8e-6 * (k + 1) ** 0.5)


@pytest.fixture(params=["avx2", "avx512"])
def isa(request):
    """AVX-512's kernels bring tiles with them, where the CPU has AMX or a fast AVX-512 BF16."""
    before = lib.tt_isa_name()
    if lib.tt_set_isa(request.param.encode()) < 0:
        lib.tt_error_clear()
    yield
    lib.tt_set_isa(before)


@pytest.mark.parametrize("dtype", ROUNDING)
@pytest.mark.parametrize("m, k, n", SIZES)
def test_products(m, k, n, dtype, isa):
    rounding, dtype = ROUNDING[dtype], getattr(tt, dtype)
    for a, b in matrices(m, k, n, dtype):
        exact = a.double().numpy() @ b.double().numpy()
        agree(a @ b, exact, k, rounding)
        c = tt.tensor(np.random.default_rng(1).standard_normal((m, n))).to(dtype)
        agree(tt.addmm(c, a, b, beta=0.5, alpha=-2), 0.5 * c.double().numpy() - 2 * exact, k, rounding)


@pytest.mark.parametrize("dtype", ROUNDING)
def test_stacks_and_steps(dtype):
    dtype, rounding = getattr(tt, dtype), ROUNDING[dtype]
    rng = np.random.default_rng(0)
    a, b = tt.tensor(rng.standard_normal((5, 2, 9, 8))).to(dtype), tt.tensor(rng.standard_normal((2, 8, 7))).to(dtype)
    agree(a @ b, a.double().numpy() @ b.double().numpy(), 8, rounding)
    a, b = a[:, :, ::2, 1::2], b[:, ::2, ::3]
    agree(a @ b, a.double().numpy() @ b.double().numpy(), 4, rounding)


@pytest.mark.parametrize("dtype", ROUNDING)
def test_special_values(dtype):
    """An infinity or a NaN is seen by its row or column alone: what fills up the last instruction is not multiplied."""
    dtype = getattr(tt, dtype)
    for value in (np.inf, np.nan):
        a, b = tt.ones(7, 35, dtype=dtype), tt.ones(35, 9, dtype=dtype)
        a[2, 34] = value
        assert (a @ b).isfinite().sum(1).tolist() == [9, 9, 0, 9, 9, 9, 9]
        assert np.isnan(value) or (a @ b)[2].tolist() == [value] * 9
        a[2, 34] = 1
        b[0, 4] = value
        assert (a @ b).isfinite().sum(0).tolist() == [7] * 4 + [0] + [7] * 4
    assert (tt.full((2, 3), 200.0, dtype=tt.float16) @ tt.full((3, 2), 200.0, dtype=tt.float16)).isinf().all()


@pytest.mark.parametrize("dtype", ROUNDING)
def test_vectors(dtype):
    """Next to each other and apart; an infinity is seen by its own number of the result alone."""
    dtype, rounding = getattr(tt, dtype), ROUNDING[dtype]
    rng = np.random.default_rng(0)
    for m, k in ((1, 3), (70, 33), (33, 259)):
        matrix, vectors = (tt.tensor(rng.standard_normal(shape)).to(dtype) for shape in ((m, k), (k, 3)))
        for a, x in itertools.product((matrix, matrix.t().contiguous().t()), (vectors[:, 1], vectors[:, 1].clone())):
            exact, square = a.double().numpy() @ x.double().numpy(), x.double().numpy() @ x.double().numpy()
            for result in (a @ x, x @ a.t(), tt.mv(a, x)):
                agree(result, exact, k, rounding)
            agree(tt.dot(x, vectors[:, 1]), square, k, rounding)
            other = a.clone()
            other[m - 1, k - 1] = np.inf
            assert (other @ x).isfinite().tolist() == (x @ other.t()).isfinite().tolist() == [True] * (m - 1) + [False]


@pytest.mark.parametrize("dtype", ROUNDING)
def test_threads_do_not_change_bits(dtype):
    dtype = getattr(tt, dtype)
    before, results = tt.get_num_threads(), []
    try:
        for threads in (1, 2, 5, 16):
            tt.set_num_threads(threads)
            results.append([(a @ b).view(tt.int16).tolist() for a, b in matrices(300, 1500, 290, dtype)])
    finally:
        tt.set_num_threads(before)
    assert all(found == results[0] for found in results)
