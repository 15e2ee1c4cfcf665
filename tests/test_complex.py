"""Complex numbers beside the operators of the table: making, showing and exchanging them, their parts, promotion,
accuracy, special values, gradients."""

import pickle
import warnings

import numpy as np
import pytest
import tinytorch
from tinytorch import warn_once
from compare import assert_same, is_tensor
from tinytorch.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.filterwarnings("ignore:.*(discards the imaginary|degrees of freedom)")


def said(program, m):
    """What the program gives, or its error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return program(m)
        except (RuntimeError, TypeError, ValueError, IndexError) as exc:
            return exc


def agree(actual, expected):
    if isinstance(expected, Exception):
        kinds = type(actual), type(expected)
        assert isinstance(actual, kinds[1]) or isinstance(expected, kinds[0]), (actual, expected)
    elif isinstance(actual, Exception):
        raise actual
    elif isinstance(expected, (list, tuple)):
        assert len(actual) == len(expected)
        for a, e in zip(actual, expected):
            agree(a, e)
    elif is_tensor(expected):
        assert_same(actual, expected.resolve_conj())
    elif isinstance(expected, str):
        assert actual.replace("tinytorch.", "torch.") == expected
    elif isinstance(expected, (complex, float)):
        assert type(actual) is type(expected) and actual == pytest.approx(expected, nan_ok=True)
    else:
        assert str(actual).replace("tinytorch.", "torch.") == str(expected)


C = [1 + 2j, 3 - 1j, 0.5j]
EXPRESSIONS = """
m.full((2,), 1j)
m.full((2,), 1j, dtype=m.float32)
m.full((2,), 1 + 0j, dtype=m.float32)
m.full((2,), 2, dtype=m.cdouble)
m.ones(2, dtype=m.complex64)
m.zeros_like(m.tensor(C))
m.full_like(m.tensor(C), 1j)
m.tensor(C).new_full((2,), 3)
m.eye(2, dtype=m.cfloat)
m.arange(3, dtype=m.complex64)
m.linspace(0, 1, 3, dtype=m.complex64)
m.tensor(C)
m.tensor([1, 2j])
m.tensor([[1, 2.0], [3, 4j]], dtype=m.complex128)
m.tensor([1, 2.0], dtype=complex)
m.tensor([1j], dtype=m.float32)
m.tensor(np.array([1j, 2], np.complex64))
m.tensor(np.complex64(1j))
m.tensor([m.tensor(1j), m.tensor(2.0)])
m.from_numpy(np.array([1j, 2]))
m.tensor(C).numpy()
np.asarray(m.tensor(C)).dtype
m.tensor(C).tolist()
m.tensor([[1j], [2]]).tolist()
m.tensor(1 + 2j).item()
m.tensor(1 + 2j).dtype
complex(m.tensor(1.5))
complex(m.tensor(1 + 2j))
float(m.tensor(1 + 2j))
float(m.tensor(1 + 0j))
int(m.tensor(3 + 0j))
bool(m.tensor(1j)), bool(m.tensor(0j))
m.tensor([1, 2]) + 1j
m.tensor([True]) * 1j
m.tensor([1.0], dtype=m.float64) * 1j
m.tensor([1.0], dtype=m.bfloat16) * 1j
m.tensor(1j, dtype=m.complex128) * m.tensor([1.0])
m.tensor(1.0, dtype=m.float64) * m.tensor([1j])
m.tensor([1.0], dtype=m.float64) * m.tensor([1j])
1 / m.tensor(C)
1j - m.tensor([1.0])
2.0 ** m.tensor(C)
m.tensor([2]) ** (1 + 1j)
m.tensor(C) ** 3
m.result_type(m.tensor([1.0]), 1j)
m.result_type(m.tensor([1.0], dtype=m.float64), 1j)
m.result_type(m.tensor([1]), 1j)
m.promote_types(m.float64, m.complex64)
m.promote_types(m.int64, m.complex64)
m.can_cast(m.complex64, m.float32), m.can_cast(m.float64, m.complex64)
m.float64.to_complex(), m.complex64.to_real(), m.int32.to_real(), m.complex128.is_complex
m.finfo(m.complex64).eps
m.iinfo(m.complex64)
m.is_complex(m.tensor(1j)), m.tensor(1j).is_complex(), m.tensor(1j).is_floating_point(), m.tensor(1j).is_signed()
m.tensor(C).type()
m.tensor(C).element_size()
m.tensor(C).to(m.float32)
m.tensor(C).double()
m.tensor([1.5 + 2j]).long()
m.tensor([2j, 0]).bool()
m.tensor([1, 2]).cfloat(), m.tensor([1, 2]).cdouble()
m.tensor([1, 2]).to(m.complex64)
m.tensor(C).cdouble()
m.tensor([1 + 2j]).view(m.float32)
m.tensor([1.0, 2.0]).view(m.complex64)
m.tensor(C).real, m.tensor(C).imag
m.real(m.tensor([1.0])), m.tensor([1.0]).real
m.tensor([1.0]).imag
m.view_as_real(m.tensor(C))
m.view_as_real(m.zeros(3))
m.view_as_complex(m.arange(6.0).reshape(3, 2))
m.view_as_complex(m.zeros(3))
m.view_as_complex(m.zeros(3, 2, dtype=m.int32))
m.view_as_complex(m.zeros(2, 3).t())
m.view_as_complex(m.zeros(5)[1:].reshape(2, 2))
m.complex(m.ones(2), m.zeros(1))
m.complex(m.zeros(3), m.zeros(3, dtype=m.float64))
m.complex(m.zeros(3, dtype=m.int32), m.zeros(3, dtype=m.int32))
m.polar(m.ones(2), m.tensor([0.5, 2.0]))
m.tensor(C).conj(), m.tensor([1]).conj(), m.tensor(C).conj_physical(), m.tensor(C).conj_physical_()
m.tensor(C).is_conj()
m.tensor(C).reshape(1, 3).H, m.tensor(C).reshape(1, 3).mH, m.adjoint(m.tensor(C).reshape(1, 3))
m.isreal(m.tensor([1j, 1.0]))
m.tensor([-2, 0, 3]).sgn(), m.tensor([-2, 0, 3]).angle(), m.tensor([-2.0, 0, float("nan")]).angle()
m.tensor([0j, 1j]).any(), m.tensor([0j, 1j]).all(), m.count_nonzero(m.tensor([0j, 1j])), m.tensor([0j, 1j]).nonzero()
m.tensor([1j]) == 1j, m.tensor([1j]) != 1, m.tensor([1.0]) == 1j
m.equal(m.tensor(C), m.tensor(C)), m.allclose(m.tensor(C), m.tensor(C)), 1j in m.tensor([1j])
m.std_mean(m.tensor(C)), m.var_mean(m.tensor(C), 0, keepdim=True)
m.abs(m.tensor(C), out=m.empty(3))
m.tensor(C).abs_()
m.tensor([1.0]).add_(m.tensor([1j]))
m.tensor([1.0]).add_(1j)
m.tensor([1.0]).mul_(1j)
m.tensor(C).add_(1j).mul_(2).div_(1 + 1j).sub_(m.ones(3))
m.zeros(3).copy_(m.tensor(C))
m.zeros(1).fill_(1j)
m.zeros(1, dtype=m.int64).fill_(1j)
m.zeros(1).masked_fill(m.tensor([True]), 1j)
m.zeros(1, dtype=m.cfloat).masked_fill(m.tensor([True]), 1j)
m.where(m.tensor([True, False]), 1j, 2.0)
m.where(m.tensor([True, False]), m.tensor([1.0, 2.0]), 1j)
m.add(m.tensor(C), m.ones(3), alpha=2j)
m.add(m.ones(1), m.ones(1), alpha=2j)
m.addcmul(m.tensor(C), m.tensor(C), m.ones(3), value=1j)
m.addmm(m.ones(1, dtype=m.cfloat), m.tensor(C)[:, None], m.tensor(C)[None], beta=2j, alpha=1j)
m.addmm(m.ones(1), m.ones(1, 1), m.ones(1, 1), beta=2j)
m.vdot(m.tensor(C), m.tensor(C)), m.dot(m.tensor(C), m.tensor(C)), m.outer(m.tensor(C), m.tensor(C))
m.tensor(C).reshape(1, 3) @ m.tensor(C).reshape(3, 1), m.mv(m.ones(2, 3, dtype=m.cfloat), m.tensor(C))
m.ones(2, 3, dtype=m.cfloat).t() @ m.ones(2, 0, dtype=m.cfloat)
m.zeros(2, 0, dtype=m.cfloat) @ m.zeros(0, 2, dtype=m.cfloat)
m.zeros(0, dtype=m.complex64).mean(), m.zeros(0, dtype=m.complex64).sum(), m.zeros(0, dtype=m.complex64).prod()
m.tensor(C).sum(dtype=m.float32), m.tensor([1, 2]).mean(dtype=m.complex64)
m.tensor([1, 2]).cumsum(0, dtype=m.complex64), m.tensor(C).cumprod(0)
m.randint(3, (3,), dtype=m.complex64)
f"{m.tensor(1 + 2j):.2f}"
repr(m.tensor([1 + 2j, -3.5 - 1e-3j, 100j]))
repr(m.tensor([[1 + 2j, 3j], [1e10, float("nan")]], dtype=m.complex128))
repr(m.tensor([], dtype=m.complex64))
repr(m.arange(2000) * 1j)
repr(m.tensor(1.5 - 2j, requires_grad=True))
repr(m.tensor([complex(float("inf"), -0.0), 1]))
repr(m.tensor([1 + 2j, 3 - 4j]))
m.tensor([1j]) < 1
m.tensor(C).max()
m.tensor(C).sort()
m.tensor(C).argmax()
m.tensor(C).median()
m.tensor(C).cummax(0)
m.tensor(C).topk(1)
m.tensor(C).unique()
m.tensor(C).relu()
m.tensor(C).clamp(0)
m.tensor(C).sign()
m.tensor(C).floor()
m.tensor(C).fmod(2)
m.tensor(C) // 2
m.tensor(C) % 2
m.tensor(C) & m.tensor(C)
m.maximum(m.tensor(C), m.tensor(C))
m.atan2(m.tensor(C), m.tensor(C))
m.histc(m.tensor(C))
m.isin(m.tensor(C), m.tensor(C))
m.searchsorted(m.tensor([1.0]), m.tensor([1j]))
m.nn.functional.one_hot(m.tensor(C))
m.tensor([1.0, 2.0])[m.tensor(C)]
m.tensor(C, requires_grad=True).sum().backward()
m.tensor([1.0]).to(m.complex64, copy=True)
m.cat([m.ones(1), m.tensor(C)]), m.stack([m.ones(3), m.tensor(C)])
m.tensor(C)[[2, 0]], m.tensor(C)[1:], m.tensor(C).flip(0), m.tensor(C).roll(1), m.tensor(C).repeat(2)
m.tensor(C).index_select(0, m.tensor([2, 2])), m.tensor(C).gather(0, m.tensor([1])), m.tensor(C).take(m.tensor([2]))
m.tensor(C).scatter_add(0, m.tensor([0, 0]), m.tensor(C)), m.tensor(C).index_add(0, m.tensor([1]), m.tensor([1j]))
m.tensor(C).scatter_reduce(0, m.tensor([0, 0]), m.tensor(C), "prod")
m.tensor(C).scatter_reduce(0, m.tensor([0, 0]), m.tensor(C), "amax")
m.ones(2, 2, dtype=m.cfloat).tril(), m.tensor(C).diag(), m.tensor(C).reshape(3, 1).expand(3, 2).t().contiguous()
""".strip().splitlines()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expression(torch, text):
    """Values, dtypes and kinds of errors are PyTorch's."""
    program = eval(f"lambda m: ({text})", {"np": np, "C": C})
    agree(said(program, tinytorch), said(program, torch))


def test_default_dtype(torch):
    for m in (tinytorch, torch):
        before = m.get_default_dtype()
        m.set_default_dtype(m.float64)
        try:
            assert m.tensor(1j).dtype is m.complex128 and (m.tensor([1]) * 1j).dtype is m.complex128
            assert repr(m.tensor(1j)) == "tensor(0.+1.j)"
        finally:
            m.set_default_dtype(before)
        with pytest.raises(TypeError):
            m.set_default_dtype(m.complex64)


def real_part(m, x, z):
    z = z * 1
    z.real = x * x
    return z


def imaginary_part(m, x, z):
    z = z * 1
    z.imag.mul_(x)
    return z * z


def seen_as_real(m, x, z):
    z = z * 1
    m.view_as_real(z)[1:].mul_(m.stack([x, x], -1)[1:])
    return z * z


def seen_as_complex(m, x, z):
    y = m.stack([x, x * x], -1)
    m.view_as_complex(y).mul_(z)
    return y


def part_of_a_part(m, x, z):
    z = m.stack([z, z * z])
    z.t()[1].real.copy_(x[:2])
    return z


def written_slice(m, x, z):
    z = z * 1
    z[:2] = x[:2]
    return z * z


PROGRAMS = {
    "real": lambda m, x, z: (z * z).real * x,
    "imag": lambda m, x, z: (z * z).imag * x,
    "abs": lambda m, x, z: z.abs(),
    "angle": lambda m, x, z: z.angle(),
    "sgn": lambda m, x, z: z.sgn(),
    "conj": lambda m, x, z: z.conj() * z * z,
    "complex": lambda m, x, z: m.complex(x, x * x) * z,
    "polar": lambda m, x, z: m.polar(x, x * 2) * z,
    "view_as_complex": lambda m, x, z: m.view_as_complex(m.stack([x, x * x], -1)) * z,
    "view_as_real": lambda m, x, z: m.view_as_real(z * z).sum(-1),
    "mixed sum": lambda m, x, z: x + z,
    "mixed product": lambda m, x, z: x * z,
    "mixed quotients": lambda m, x, z: x / z + z / x,
    "mixed powers": lambda m, x, z: x**z + z**x,
    "mixed cat": lambda m, x, z: m.cat([x, z]) ** 2,
    "mixed stack": lambda m, x, z: m.stack([x, z]) ** 2,
    "mixed addcmul": lambda m, x, z: m.addcmul(z, x, x),
    "numbers": lambda m, x, z: (x * 1j + (2 - 1j) * z) / (1 + 1j) - 1j**z + z**1j + z**2 + z**0.5 + z**-1,
    "in place": lambda m, x, z: (z * 1).mul_(x).add_(x).addcmul_(x, z),
    "copy": lambda m, x, z: (z * 1).copy_(x) * z,
    "to complex": lambda m, x, z: x.to(m.complex128) * z,
    "to real": lambda m, x, z: z.double() * x,
    "norms": lambda m, x, z: z.norm() + z.norm(1) + z.norm(3) + z.norm(float("inf")),
    "var": lambda m, x, z: z.var() * z.std() + z.mean().abs(),
    "products": lambda m, x, z: m.vdot(z, z * x) + m.dot(z, z) + z.prod() + z.cumprod(0).sum(),
    "matmul": lambda m, x, z: m.outer(z, z) @ z + m.einsum("i,j->ij", z, z)[0],
    "adjoint": lambda m, x, z: m.outer(z, z * z).H @ z,
    "lerp": lambda m, x, z: m.lerp(z, z * z, 0.25 + 0.5j),
    "indices": lambda m, x, z: z[[0, 0, 2]] * z.index_put((m.tensor([0]),), z[1:2], accumulate=True),
    "real part written": real_part,
    "imaginary part written": imaginary_part,
    "seen as real": seen_as_real,
    "seen as complex": seen_as_complex,
    "part of a part": part_of_a_part,
    "written slice": written_slice,
}


def of_inputs(program, m):
    x = m.tensor([1.0, 2.0, 3.0], dtype=m.float64, requires_grad=True)
    z = m.tensor([1 + 1j, 2 - 1j, 0.5j], dtype=m.complex128, requires_grad=True)
    return program(m, x, z), (x, z)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(torch, name):
    found = []
    for m in (tinytorch, torch):
        out, inputs = of_inputs(PROGRAMS[name], m)
        seed = m.arange(out.numel(), dtype=m.float64).reshape(out.shape) + 1
        grads = m.autograd.grad(out, inputs, seed * (1 + 2j) if out.is_complex() else seed, allow_unused=True)
        for g, t in zip(grads, inputs):
            assert g is None or g.dtype is t.dtype
        found.append([out, *[m.zeros_like(t) if g is None else g for g, t in zip(grads, inputs)]])
    assert_same(*found, rtol=1e-9)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients_against_finite_differences(name):
    """First and second derivatives."""
    _, inputs = of_inputs(lambda m, x, z: z, tinytorch)

    def function(x, z):
        return PROGRAMS[name](tinytorch, x, z)

    assert gradcheck(function, inputs)
    assert gradgradcheck(function, inputs)


def test_gradcheck_finds_a_gradient_that_is_not_conjugated():
    class Square(tinytorch.autograd.Function):
        @staticmethod
        def forward(ctx, z):
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx, g):
            return g * 2 * ctx.saved_tensors[0]

    _, (_, z) = of_inputs(lambda m, x, z: z, tinytorch)
    with pytest.raises(RuntimeError):
        gradcheck(Square.apply, (z,))


def test_nodes_have_one_name():
    z = tinytorch.tensor([1j], requires_grad=True)
    assert (z * z).grad_fn.name() == "MulBackward0" == (z.real * 2).grad_fn.name()
    assert isinstance((z * z).grad_fn, type((z.real * z.imag).grad_fn))


def test_views_share_memory():
    z = tinytorch.tensor(C)
    z.real.add_(1)
    z.imag[0] = 7
    tinytorch.view_as_real(z)[2] = 5
    assert z.tolist() == [2 + 7j, 4 - 1j, 5 + 5j]
    assert z.real.data_ptr() == z.data_ptr() and z.imag.data_ptr() == z.data_ptr() + 4
    assert z._version == 3 == z.real._version
    x = tinytorch.arange(6.0).reshape(3, 2)
    tinytorch.view_as_complex(x).mul_(1j)
    assert x.tolist() == [[-1, 0], [-3, 2], [-5, 4]]


def test_numpy_and_dlpack_share_memory(torch):
    a = np.array([1j, 2 + 1j])
    t = tinytorch.from_numpy(a)
    t[0] = 5
    theirs = torch.from_dlpack(t)
    theirs[1] = 3j
    assert a.tolist() == [5, 3j] == tinytorch.from_dlpack(theirs).tolist()
    assert np.shares_memory(t.numpy(), a)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_files(torch, dtype, tmp_path):
    z = tinytorch.tensor(C, dtype=getattr(tinytorch, dtype))
    tinytorch.save({"z": z, "dtype": z.dtype}, tmp_path / "ours")
    found = tinytorch.load(tmp_path / "ours")
    assert_same(found["z"], z)
    assert found["dtype"] is z.dtype and pickle.loads(pickle.dumps(z.dtype)) is z.dtype
    assert_same(pickle.loads(pickle.dumps(z)), z)
    torch.save({"z": torch.tensor(C, dtype=getattr(torch, dtype))}, tmp_path / "theirs")
    assert_same(tinytorch.load(tmp_path / "theirs")["z"], z)


def test_random_numbers_have_a_variance_of_one():
    tinytorch.manual_seed(0)
    z = tinytorch.randn(100000, dtype=tinytorch.complex128)
    for part in (z.real, z.imag):
        assert abs(part.mean().item()) < 0.02 and abs(part.var().item() - 0.5) < 0.02
    u = tinytorch.rand(1000, dtype=tinytorch.complex64)
    assert all(p.min().item() >= 0 and 0.9 < p.max().item() < 1 for p in (u.real, u.imag))


def test_casting_to_real_warns():
    warn_once.told.pop("imaginary parts", None)
    with pytest.warns(UserWarning, match="discards the imaginary part"):
        tinytorch.tensor([1j]).float()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # once in a process, and not at all for what keeps all there is to know
        tinytorch.tensor([1j]).float()
        warn_once.told.pop("imaginary parts", None)
        tinytorch.tensor([1j]).bool()


def test_the_gradient_of_parts_that_have_no_elements():
    """It is expanded, and such strides do not fit a complex number's parts."""
    x = tinytorch.zeros(0, 3, dtype=tinytorch.complex64, requires_grad=True)
    tinytorch.view_as_real(x).sum().backward()
    assert x.grad.shape == (0, 3) and x.grad.dtype is tinytorch.complex64
