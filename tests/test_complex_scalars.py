"""Scalar functions of complex numbers: accuracy, special values, bits in fused mode and in any place."""

import contextlib

import numpy as np
import pytest
import tinytorch


# Scalar functions.

NUMPY = {
    "exp": np.exp,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "sqrt": np.sqrt,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "reciprocal": lambda z: 1 / z,
}
wide = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 60, reason="the oracle computes in 80 bits")


def numbers(n=20000):
    rng = np.random.default_rng(0)
    normal = rng.normal(0, 2, n) + 1j * rng.normal(0, 2, n)
    direction = np.exp(2j * np.pi * rng.uniform(0, 1, n))
    near_one = 1 + np.exp(rng.uniform(-30, 0, n)) * direction
    on_the_circle = (1 + rng.normal(0, 1e-6, n)) * direction
    near_axes = np.exp(rng.uniform(-40, 0, n)) + 1j * rng.normal(0, 2, n)
    return np.concatenate([normal, near_one, on_the_circle, near_axes, near_axes * 1j])


@wide
@pytest.mark.parametrize("name", NUMPY)
@pytest.mark.parametrize("dtype, part", [("complex64", np.float32), ("complex128", np.float64)])
def test_accuracy(name, dtype, part):
    """Each part to a few units in the last place."""
    z = numbers().astype(dtype)
    found = getattr(tinytorch, name)(tinytorch.from_numpy(z)).numpy()
    exact = NUMPY[name](z.astype(np.clongdouble))
    for of in (np.real, np.imag):
        ulp = np.spacing(np.abs(of(exact)).astype(part)).astype(np.longdouble)
        assert np.max(np.abs(of(found).astype(np.longdouble) - of(exact)) / ulp) < (0.51 if dtype == "complex64" else 8)


SPECIAL = [0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan]


@pytest.mark.parametrize("name", [n for n in NUMPY if n not in ("reciprocal", "log2", "log10")])
def test_special_values_are_those_of_c99(name):
    z = np.array([complex(a, b) for a in SPECIAL for b in SPECIAL])
    with np.errstate(all="ignore"):
        expected = NUMPY[name](z)
    found = getattr(tinytorch, name)(tinytorch.from_numpy(z)).numpy()
    for of in (np.real, np.imag):
        a, e = of(found), of(expected)
        np.testing.assert_allclose(np.abs(a), np.abs(e), rtol=1e-14, atol=1e-15, err_msg=str(z[np.abs(a) != np.abs(e)]))
        known = np.isfinite(z.real) & np.isfinite(z.imag) & (a != 0)
        assert (np.signbit(a) == np.signbit(e))[known].all()


def test_large_and_small_numbers():
    """Nothing overflows or vanishes on the way."""
    big, small = 1e300 + 1e300j, 1e-300 + 1e-300j
    t = tinytorch.tensor([big, small], dtype=tinytorch.complex128)
    assert t.abs().tolist() == pytest.approx([abs(big), abs(small)], rel=1e-15)
    assert (t / t).tolist() == [1, 1]
    assert t.sqrt().tolist() == pytest.approx([np.sqrt(big), np.sqrt(small)], rel=1e-14)
    assert t.log().tolist() == pytest.approx([np.log(big), np.log(small)], rel=1e-14)
    assert t.sgn().abs().tolist() == pytest.approx([1, 1])
    exp = tinytorch.tensor(710 + 1.5j, dtype=tinytorch.complex128).exp()  # e^710 alone is too large
    assert exp.real.item() == pytest.approx(np.exp(709) * (np.e * np.cos(1.5)))
    assert tinytorch.tensor([1e38 + 1e38j]).abs().isfinite().all()


def test_many_elements_in_any_layout():
    """Loops over blocks, tiles of transpositions, and threads."""
    rng = np.random.default_rng(1)
    for dtype in ("complex64", "complex128"):
        a = (rng.normal(size=(300, 5, 211)) + 1j * rng.normal(size=(300, 5, 211))).astype(dtype)
        t = tinytorch.from_numpy(a)
        for view, same in (
            (t.transpose(0, 2), a.transpose(2, 1, 0)),
            (t[::2, :, ::3], a[::2, :, ::3]),
            (t.flip(2), a[..., ::-1]),
            (t.permute(1, 2, 0), a.transpose(1, 2, 0)),
        ):
            np.testing.assert_array_equal(view.contiguous().numpy(), same)
            np.testing.assert_array_equal((view * view).numpy(), (view.contiguous() * view.contiguous()).numpy())
            np.testing.assert_allclose(view.sum((0, 2)).numpy(), same.astype(complex).sum((0, 2)), rtol=1e-4, atol=1e-3)
            np.testing.assert_allclose(view.cumsum(0).numpy(), same.astype(complex).cumsum(0), rtol=1e-4, atol=1e-3)
        b = a[:, 0] @ a[:, 0].T
        np.testing.assert_allclose((t[:, 0] @ t[:, 0].t()).numpy(), b, rtol=1e-3, atol=1e-3)
        index = tinytorch.arange(299, -1, -2)
        np.testing.assert_array_equal(t[index].numpy(), a[::-2])


def elementwise_of(x, z):
    """Operators of a real and a complex tensor, with views, writes, casts, numbers and reductions among them."""
    y = x * 2
    w = ((z * y + z.conj() * 2) * z).sin() / (z + 1)
    w = w.tanh() + 1j
    u = w.clone()
    u.real.mul_(x)
    u[1] = z[2]
    u.t().add_(z.t())
    rows = w.abs().sum(1, keepdim=True)
    kept = x.clone()
    kept.copy_(z.real)
    results = [
        w,
        u,
        w.abs() + y,
        w == z,
        w.imag - y,
        tinytorch.where(x > 0, z, w),
        w.to(tinytorch.complex128),
        2 - w / 3,
    ]
    results += [w**2, w * rows, w * z.mean(1, keepdim=True), w * (1 + 2j), w.angle(), w.sgn(), -w, w.reciprocal(), kept]
    results += [
        w.sum(),
        w.real.sum(0),
        z + x.int(),
        tinytorch.view_as_real(w) * 2,
        tinytorch.polar(x, x) + w,
        z.t() * w.t(),
    ]
    return [*results, z.expand(2, *z.shape) * w, tinytorch.complex(x, y) * w, w.real.to(tinytorch.complex64) * z]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 4), (70, 91), (3, 0)])
def test_fused_mode_changes_no_bit(shape, dtype):
    dtype = getattr(tinytorch, dtype)
    tinytorch.manual_seed(1)
    z = tinytorch.randn(*shape, dtype=dtype)
    x = z.real.clone()
    expected = elementwise_of(x, z)
    with tinytorch.fuse():
        found = elementwise_of(x, z)
        found = [f + 0 if f.dtype is not tinytorch.bool else f for f in found]
    for f, e in zip(found, expected):
        e = e + 0 if e.dtype is not tinytorch.bool else e
        assert f.dtype is e.dtype and f.shape == e.shape
        assert f.contiguous().numpy().tobytes() == e.contiguous().numpy().tobytes()


def test_fused_mode_records_them():
    z, x = tinytorch.ones(50, 40, dtype=tinytorch.complex64), tinytorch.ones(50, 40)
    (program,) = tinytorch.fuse.explain(lambda: ((z * x + z.conj()) * z).abs().sum().item()).programs[:1]
    assert sum(len(kernel.operators) for kernel in program.kernels) >= 5


def test_gradients_in_fused_mode_are_the_same():
    found = []
    for fused in (False, True):
        tinytorch.manual_seed(2)
        z = tinytorch.randn(6, 5, dtype=tinytorch.complex128, requires_grad=True)
        with tinytorch.fuse() if fused else contextlib.nullcontext():
            loss = ((z * z.conj()).real.sqrt() + (z.exp() / (z + 2)).abs()).sum()
            (g,) = tinytorch.autograd.grad(loss, z, create_graph=True)
            (h,) = tinytorch.autograd.grad((g * g.conj()).real.sum(), z)
            found.append([v.numpy().tobytes() for v in (loss.detach(), g.detach(), h)])
    assert found[0] == found[1]


PRODUCTS = {
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "square": lambda a, b: a.square(),
    "cube": lambda a, b: a**3,
    "addcmul": lambda a, b: tinytorch.addcmul(a, a, b),
    "lerp": lambda a, b: tinytorch.lerp(a, b, a),
    "tanh_backward": lambda a, b: tinytorch.autograd.grad(a.requires_grad_().tanh(), a, b)[0],
}


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_bits_do_not_depend_on_the_place(name, dtype):
    """A compiler may not contract the products of a vectorised loop, but not those of the loop for the rest."""
    tinytorch.manual_seed(3)
    a, b = (tinytorch.randn(101, dtype=getattr(tinytorch, dtype)) for _ in range(2))
    whole = PRODUCTS[name](a.clone(), b)
    alone = tinytorch.cat([PRODUCTS[name](a[i : i + 1].clone(), b[i : i + 1]) for i in range(101)])
    np.testing.assert_array_equal(whole.detach().numpy(), alone.detach().numpy())


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_product_is_that_of_separate_roundings(dtype):
    tinytorch.manual_seed(4)
    a, b = (tinytorch.randn(1001, dtype=getattr(tinytorch, dtype)) for _ in range(2))
    x, y = a.numpy(), b.numpy()
    np.testing.assert_array_equal((a * b).numpy().real, x.real * y.real - x.imag * y.imag)
    np.testing.assert_array_equal((a * b).numpy().imag, x.real * y.imag + x.imag * y.real)


@pytest.mark.parametrize("dtype", [tinytorch.complex64, tinytorch.complex128])
def test_the_sign_of_zero_is_zero(dtype):
    assert tinytorch.sgn(tinytorch.tensor([0j, complex(0.0, -0.0), 3 - 4j], dtype=dtype)).tolist() == pytest.approx(
        [0, 0, 0.6 - 0.8j]
    )


def test_exp_beyond_its_real_part():
    """e^x alone would be infinite; its product with the cosine is not."""
    z = np.array([710 + 1.5707963j, 709.9 - 1.5707j, 700 + 1j])
    with np.errstate(over="ignore"):
        wanted = np.exp(z).view(np.float64)
    np.testing.assert_allclose(tinytorch.exp(tinytorch.from_numpy(z)).numpy().view(np.float64), wanted, rtol=1e-6)
