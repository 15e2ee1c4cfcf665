"""Numbers of Python as operands: integers of uint64 alone, those that no dtype has, what a tensor's dtype has not."""

import warnings

import numpy as np
import pytest
import tinytorch
from tinytorch import warn_once

torch = pytest.importorskip("torch")

DTYPES = ("uint8", "int32", "int64", "uint64", "float32", "float64", "bool")
UNSIGNED = (2**63 + 5, 2**64 - 1)
BEYOND = (2**64 + 3, -(2**63) - 1)

# Of a tensor `a` and a number `n` that only uint64 has.
TAKEN = """
a == n; a != n; a * n; a / n; a & n; a | n; a ^ n; a.eq_(n); a.mul_(n); T.isin(a, n); T.isin(a, n, invert=True)
T.full_like(a, n); a.fill_(n); T.full((2,), n, dtype=a.dtype); a.new_full((2,), n); T.tensor(n, dtype=a.dtype)
T.scalar_tensor(n, dtype=a.dtype); T.as_tensor([n], dtype=a.dtype); T.float_power(a, n); T.xlogy(a, n)
T.where(a == 2, a, n)
"""
# What int64 and the floats have, too.
MORE = """
a < n; a >= n; a + n; a - n; n - a; a // n; a % n; a.fmod(n); a.add_(n); T.searchsorted(a, n); T.bucketize(n, a)
T.div(a, n, rounding_mode="floor")
"""
# Numbers that are written, or chosen: they must fit.
WRITTEN = """
a.masked_fill(a == 1, n); a.index_fill(0, T.tensor([1]), n); a.scatter(0, T.tensor([1]), n); T.where(a == 1, a, n)
a.clamp(max=n); a.clamp(min=n); a.clamp(0, n); a.clamp_min_(n); a.masked_fill_(a == 2, n); T.where(a == 1, n, a)
"""


def expressions(text):
    return [e.strip() for line in text.strip().splitlines() for e in line.split(";") if e.strip()]


def outcome(library, expression, dtype, n):
    a = library.tensor([1, 2, 2], dtype=getattr(library, dtype))
    try:
        result = eval(expression, {"T": library, "a": a, "n": n})
    except (RuntimeError, OverflowError, ValueError) as error:
        return NotImplementedError if isinstance(error, NotImplementedError) else "refused"
    return str(result.dtype).split(".")[-1], [
        f"{x:.6g}" if isinstance(x, float) else x for x in result.reshape(-1).tolist()
    ]


@pytest.mark.parametrize("n", UNSIGNED)
@pytest.mark.parametrize("expression", expressions(TAKEN) + expressions(MORE))
def test_integers_of_uint64(expression, n):
    search = "searchsorted" in expression or "bucketize" in expression  # which ours has not of bools
    for dtype in DTYPES[:-1] if search else DTYPES:
        wanted = outcome(torch, expression, dtype, n)
        if wanted is not NotImplementedError:  # ours may have more of uint64
            assert outcome(tinytorch, expression, dtype, n) == wanted, dtype


@pytest.mark.parametrize("n", BEYOND)
@pytest.mark.parametrize("expression", expressions(TAKEN) + expressions(WRITTEN))
def test_integers_that_no_dtype_has(expression, n):
    for dtype in DTYPES[:-1]:
        assert (
            outcome(tinytorch, expression, dtype, n) == "refused"
            or "as_tensor" in expression
            or "tensor(n" in expression
        )


@pytest.mark.parametrize("n", [300, -1, -300, 2**40, -(2**40), 2**63 + 5, 127])
@pytest.mark.parametrize("expression", expressions(WRITTEN))
def test_integers_that_are_written_must_fit(expression, n):
    for dtype in ("uint8", "int8", "int16", "int32", "int64", "float32", "bool"):
        wanted = outcome(torch, expression, dtype, n)
        if wanted is not NotImplementedError and not (dtype == "bool" and n > 2**63):
            assert outcome(tinytorch, expression, dtype, n) == wanted, dtype


@pytest.mark.parametrize("n", UNSIGNED)
@pytest.mark.parametrize("dtype", ("uint8", "int64", "uint64", "float64"))
def test_fused(dtype, n):
    def run():
        a = tinytorch.tensor([1, 2, 3], dtype=getattr(tinytorch, dtype))
        results = [a * n, a == n]
        if dtype != "float64":
            results.append(a | n)
        if dtype in ("uint64", "float64"):
            results.append(tinytorch.full_like(a, n) * 1)
        return results

    eager = run()
    with tinytorch.fuse():
        fused = run()
    assert [(x.dtype, x.tolist()) for x in eager] == [(x.dtype, x.tolist()) for x in fused]


def test_searches_promote_numbers():
    wanted = {torch: [], tinytorch: []}
    for library, results in wanted.items():
        double, small = library.tensor([0.1], dtype=library.float64), library.tensor([1, 2], dtype=library.uint8)
        integers = library.tensor([1, 2, 3])
        results += [
            library.isin(double, 0.1),
            library.isin(0.1, double),
            library.isin(small, 257),
            library.isin(257, small),
        ]
        results += [
            library.searchsorted(integers, 2.5),
            library.bucketize(2.5, integers),
            library.bucketize(300, small),
        ]
        results += [
            library.isin(integers, 2.5),
            library.isin(2.0, integers),
            library.bucketize(0.1, double, right=True),
        ]
    assert [r.tolist() for r in wanted[torch]] == [r.tolist() for r in wanted[tinytorch]]


@pytest.mark.parametrize(
    "expression",
    expressions(
        "a.fill_(n); T.full((2,), n, dtype=a.dtype); T.full_like(a, n); a.new_full((2,), n); a.masked_fill(a == 1, n);"
        "a.masked_fill_(a == 1, -n); a.index_fill(0, T.tensor([1]), n); a.scatter(0, T.tensor([1]), n); a + n; a * n"
    )
    + ["[a.__setitem__(0, n), a][1]", "[a.__setitem__(a == 2, -n), a][1]"],
)
def test_floats_beyond_a_dtype(expression):
    """What would become infinite is refused; infinities and NaNs are not. PyTorch makes what is assigned by index a
    tensor of float32 first."""
    for dtype, n in (("float16", 1e6), ("bfloat16", 1e39), ("float64", 1e300)):
        if dtype != "bfloat16" or "__setitem__" not in expression:
            assert outcome(tinytorch, expression, dtype, n) == outcome(torch, expression, dtype, n), dtype
    for n in (float("inf"), 3e38):
        assert outcome(tinytorch, expression, "float32", n) == outcome(torch, expression, "float32", n), n


# Numbers of Python that stand for one of a tensor's dtype, or of the dtype it is computed in: they must be one.
FITTED = """
a.add(a, alpha=n); a.sub(a, alpha=n); T.rsub(a, a, alpha=n); a.add(5, alpha=n); a.clone().add_(a, alpha=n)
a.clone().sub_(a, alpha=n); T.addmm(m, m, m, alpha=n); T.addmm(m, m, m, beta=n); T.addmv(a, m, a, alpha=n)
T.addr(m, a, a, beta=n); T.baddbmm(m[None], m[None], m[None], alpha=n); T.addbmm(m, m[None], m[None], beta=n)
T.addcmul(a, a, a, value=n); T.addcdiv(a, a, a, value=n); a.index_add(0, T.tensor([0, 1, 2]), a, alpha=n)
T.lerp(a, a, n); a.clone().lerp_(a, n); F.threshold(a, n, 1); F.threshold(a, 1, n); F.hardtanh(a, 0, n)
F.hardshrink(a, n); F.softshrink(a, n); F.softplus(a, n); F.elu(-a, n); F.celu(a, n); F.leaky_relu(a, n)
F.rrelu(a, 0.0, n); a.clamp(min=n); a.clamp(max=n); a.clamp(0, n); a.clone().clamp_(max=n); a.pow(n)
a.masked_fill(a == 1, n); a.fill_(n); a.index_fill(0, T.tensor([1]), n); a.scatter(0, T.tensor([1]), n)
T.where(a == 1, a, n); T.where(a == 1, n, 1); T.histc(a, 4, 0, n); F.normalize(m, eps=n)
F.cosine_similarity(m, m, eps=n); T.isclose(a, a, rtol=n)
a // n; a % n; a.fmod(n); T.div(a, n, rounding_mode="trunc"); a.nan_to_num(nan=n)
T.scalar_tensor(n, dtype=a.dtype); a.uniform_(n, n); a.uniform_(-n, n) * 0 == 0; T.trapezoid(a, dx=n)
T.linspace(0, n, 2, dtype=a.dtype) if n != 1j else a; T.logspace(n, 0, 2, dtype=a.dtype) if n != 1j else a
[a.__setitem__(0, n), a][1]; [a.__setitem__(a == 2, n), a][1]; [a.__setitem__(T.tensor([0, 1]), n), a][1]
"""
FITTED_DTYPES = ("uint8", "int8", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "bool")
BOUNDARIES = (300, -1, 128, 2**31, 2**63, 1.5, 1e5, 3.4e38, 1e39, 1e300, float("nan"), float("inf"), 1j)


def fitted(library, expression, dtype, n):
    """The result's dtype and elements, "refused", or the kind of error of what has no kernel, or is no number here."""
    a = library.tensor([1, 2, 2]).to(getattr(library, dtype))
    m = library.ones(3, 3).to(a.dtype)
    try:
        result = eval(expression, {"T": library, "F": library.nn.functional, "a": a, "m": m, "n": n})
    except (NotImplementedError, TypeError) as error:
        return type(error)
    except (RuntimeError, OverflowError, ValueError):
        return "refused"
    values = result.to(library.complex128).reshape(-1).tolist()
    return str(result.dtype).split(".")[-1], [f"{x.real:.2g} {x.imag:.2g}" for x in values]


@pytest.mark.parametrize("dtype", FITTED_DTYPES)
@pytest.mark.parametrize("expression", expressions(FITTED))
def test_numbers_must_fit(expression, dtype):
    """What a dtype cannot hold is refused, where PyTorch refuses it, and taken where it takes it."""
    for n in BOUNDARIES:
        wanted, got = fitted(torch, expression, dtype, n), fitted(tinytorch, expression, dtype, n)
        refused = "refused" in (wanted, got) and all(x == "refused" or isinstance(x, type) for x in (wanted, got))
        if wanted not in (NotImplementedError, TypeError) and not refused and not (n - n != 0 and "complex" in dtype):
            assert got == wanted, n


# NumPy's integers where Python's are wanted: sizes, counts, dimensions. Of `a`, (2, 3, 4).
COUNTED = """
a[:1].squeeze(I(0)); T.arange(4) + I(2); T.hash_tensor(a, I(0)); a.flip(I(1))
T.hsplit(a, I(3))[1]; T.tensor_split(a, I(2))[0]; a.unfold(I(2), I(2), I(1)); a.repeat(I(2), 1, 1); a.view(I(4), -1)
T.unflatten(a, I(2), (I(2), 2)); T.sparse.sum(a.to_sparse(), I(0)).to_dense(); T.histc(a, I(3)); T.roll(a, I(1), I(0))
T.histogram(a, I(3)).hist; T.histogramdd(a.reshape(12, 2), I(3)).hist; T.histogramdd(a.reshape(12, 2), [I(3), 2]).hist
T.nn.Unflatten(I(1), (2, 2))(a.reshape(6, 4)); T.nn.functional.max_pool2d(a, I(2)); T.nn.functional.pad(a, (I(1), I(1)))
T.chunk(a, I(2), I(1))[1]; T.chunk(a, I(2), 2)[0]; T.nn.functional.interpolate(a, I(8)); T.topk(a, I(2), I(1)).values
T.nn.functional.one_hot(T.arange(3), I(4)); T.var(a, I(1), correction=I(0)); a.as_strided((I(2),), (I(1),), I(0))
T.rot90(a, I(1), (I(0), I(1))); T.repeat_interleave(a, I(2), I(1)); T.tril_indices(I(3), I(3), I(0))
a[I(0) : I(2), I(0)]
T.tensor(T.UntypedStorage(I(4)).nbytes())
T.tensor(T.FloatStorage(I(4)).size()); T.eye(I(2), I(3)); T.matrix_power(a[:, :, :3], I(2))
T.movedim(a, I(0), I(1))
a.to_sparse().permute(I(1), I(0), I(2)).to_dense(); T.combinations(T.arange(4), I(2))
T.bincount(T.arange(3), None, I(5))
"""


@pytest.mark.parametrize("expression", expressions(COUNTED))
def test_integers_of_numpy_count(expression):
    ours, theirs = (
        eval(expression, {"T": library, "a": library.arange(24.0).reshape(2, 3, 4), "I": np.int64})
        for library in (tinytorch, torch)
    )
    assert ours.tolist() == theirs.tolist() and ours.shape == theirs.shape


def test_conditions_of_uint8(monkeypatch):
    """They are taken, with a warning, once; those of other integers are not."""
    monkeypatch.setattr(warn_once, "told", {})
    condition, a, b = tinytorch.tensor([0, 2], dtype=tinytorch.uint8), tinytorch.ones(2), tinytorch.zeros(2)
    with pytest.warns(UserWarning, match="uint8"):
        assert tinytorch.where(condition, a, b).tolist() == [0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert a.where(condition, 2).tolist() == [2, 1] and tinytorch.where(condition[1], a, b).tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="boolean"):
        tinytorch.where(condition.int(), a, b)


def test_bool_numbers_stay_bool():
    for library in (torch, tinytorch):
        result = library.add(library.tensor([False, True]), True, alpha=2)
        assert result.tolist() == [True, True] and "bool" in str(result.dtype)
