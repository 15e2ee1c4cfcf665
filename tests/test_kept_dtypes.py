"""uint16, uint32, uint64 and complex32: what PyTorch keeps in them, moves and converts, and what it refuses."""

import io
import pickle

import numpy as np
import pytest
import tinytorch

torch = pytest.importorskip("torch")

UNSIGNED = {"uint16": [1, 2, 65535, 2], "uint32": [3, 0, 2**32 - 1, 3], "uint64": [7, 2**63 + 5, 1, 2**64 - 1]}

# Expressions of the library, of its tensor `a` and the dtype `d` of that.
TAKEN = """
a; a.clone(); a[1]; a[1:3]; a[T.tensor([0, 2])]; a[a != a[1]]; a.reshape(2, 2).t().contiguous(); a.repeat(2)
a.roll(1); T.cat([a, a]); T.stack([a, a]); a.unfold(0, 2, 1); T.nn.functional.pad(a, (1, 1)); a.view(T.uint8)
a.tolist(); a[2].item(); int(a[0]); bool(a[0]); a.numpy(); a.sort(); a.sort(descending=True); a.unique(); a.msort()
a.unique_consecutive(); T.where(a == a[0], a, a[1]); a.masked_fill(a == 2, 3); a.fill_(3); T.full((2,), 7, dtype=d)
T.zeros(3, dtype=d); T.ones(2, 2, dtype=d); a.new_ones(2); T.empty_like(a).copy_(a); a.copy_(T.tensor([1.5, -1, 3, 0]))
T.tensor([0, 5], dtype=d); T.as_tensor(a.numpy()); T.tensor(a.numpy()[:1]); a.storage_offset(); a.element_size()
a == 1; a != a; a == a[2]; a & a; a | 1; a ^ a; a * a; a / 2; a.ceil(); a.floor(); a.round(); a.trunc(); T.isnan(a)
a.sum(); a.prod(); a.cumsum(0); a.any(); a.all(); T.equal(a, a); T.allclose(a, a); a.sin(); a.float() + a
a + T.tensor([1.0, 2, 3, 4]); a.bool(); a.double(); a.float(); a.half(); a.long(); a.int(); a.short(); a.byte()
a.cfloat(); T.tensor([0.0, 1.5, 300, 65535]).to(d); T.tensor([-1, 2**40, 7]).to(d); T.tensor([True, False]).to(d)
T.tensor([1 + 2j]).to(d); T.tensor([2.5, -3], dtype=T.float16).to(d); T.tensor([2.5], dtype=T.bfloat16).to(d)
T.iinfo(d).max; T.iinfo(d).min; T.iinfo(d).bits; d.itemsize; d.is_signed; d.is_floating_point; a.is_signed()
T.can_cast(d, T.int64); T.can_cast(d, T.float32); T.can_cast(T.float32, d); T.result_type(a, 1); T.result_type(a, 1.0)
T.result_type(a, 1j); T.result_type(a, T.tensor(True)); T.from_dlpack(a); np.from_dlpack(a); a.t(); a.expand(2, 4)
T.maximum(a.long(), a.long()); a.type().split(".")[-1]; a.nbytes; a.index_select(0, T.tensor([1])); a.flip(0)
"""
REFUSED = """
a + a; a - a; a + 1; -a; a < 2; a % 2; a // 2; a << 1; abs(a); a.max(); a.amax(); a.argmax(); a.topk(1); a.median()
a.clamp(0, 1); a.sign(); a.logical_not(); a.pow(2); a.diff(); T.maximum(a, a); T.isin(a, a); T.searchsorted(a, a)
T.arange(4, dtype=d); T.bincount(a); a.index_add(0, T.tensor([0]), a[:1].clone()); a.cummax(0); a + a.long()
T.promote_types(d, T.int8); T.result_type(a, a.int()); T.tensor([1 << 70], dtype=d); a.mean(); T.hash_tensor(a)
T.full((1,), 1 << 70, dtype=d); T.cat([a, a.long()]) + 1
"""


def expressions(text):
    return [e.strip() for line in text.strip().splitlines() for e in line.split(";") if e.strip()]


def value_of(library, expression, name):
    a = library.from_numpy(np.array(UNSIGNED[name], name))
    return eval(expression, {"T": library, "np": np}, {"a": a, "d": a.dtype})


def plain(x):
    if isinstance(x, tuple):
        return tuple(plain(v) for v in x)
    if isinstance(x, (torch.Tensor, tinytorch.Tensor)):
        return str(x.dtype).split(".")[-1], tuple(x.shape), x.tolist()
    if isinstance(x, np.ndarray):
        return x.dtype.name, x.tolist()
    return str(x).split(".")[-1] if isinstance(x, (torch.dtype, tinytorch.dtype)) else x


def close(a, b):
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(close, a, b))
    if isinstance(a, list) and a and isinstance(a[0], float):
        return np.allclose(a, b, rtol=1e-6)
    return a == b


@pytest.mark.parametrize("name", UNSIGNED)
@pytest.mark.parametrize("expression", expressions(TAKEN))
def test_what_unsigned_integers_are_taken_for(expression, name):
    ours = plain(value_of(tinytorch, expression, name))
    try:
        wanted = plain(value_of(torch, expression, name))
    except NotImplementedError:  # moves, like the others
        wanted = ours
        assert expression in ("a.index_select(0, T.tensor([1]))", "a.flip(0)", "a.masked_fill(a == 2, 3)")
    assert close(ours, wanted), (ours, wanted)


@pytest.mark.parametrize("name", UNSIGNED)
@pytest.mark.parametrize("expression", expressions(REFUSED))
def test_what_unsigned_integers_are_refused_for(expression, name):
    for library in (torch, tinytorch):
        with pytest.raises((NotImplementedError, RuntimeError, OverflowError, ValueError)):
            value_of(library, expression, name)


@pytest.mark.parametrize("name", [*UNSIGNED, "complex32"])
def test_files_and_pickles(name):
    given = tinytorch.tensor([1, 2, 3]).to(getattr(tinytorch, name))
    file = io.BytesIO()
    tinytorch.save({"t": given, "part": given[1:]}, file)
    file.seek(0)
    theirs = torch.load(file)
    assert str(theirs["part"].dtype) == f"torch.{name}" and theirs["part"].tolist() == given[1:].tolist()
    file = io.BytesIO()
    torch.save(theirs, file)
    for loaded in (tinytorch.load(io.BytesIO(file.getvalue()))["t"], pickle.loads(pickle.dumps(given))):
        assert loaded.dtype is given.dtype and loaded.tolist() == given.tolist()


def test_complex32_is_computed_in_complex64():
    z = np.array([1.5 - 2j, -0.25 + 3j, 0], np.complex64)
    made = {library: library.from_numpy(z).to(library.complex32) for library in (torch, tinytorch)}
    for f in (
        lambda T, z: z,
        lambda T, z: z.to(T.complex128),
        lambda T, z: T.view_as_real(z),
        lambda T, z: z.real,
        lambda T, z: z.imag,
        lambda T, z: z * z,
        lambda T, z: z + 1,
        lambda T, z: z.abs(),
        lambda T, z: z.conj().resolve_conj(),
        lambda T, z: z.sum(),
        lambda T, z: z.exp(),
        lambda T, z: z[1:] / z[:-1],
        lambda T, z: T.complex(z.real, z.imag),
        lambda T, z: T.view_as_complex(T.view_as_real(z).clone()),
        lambda T, z: T.tensor([1.0], dtype=T.float16) * 1j,
        lambda T, z: T.tensor([1.0], dtype=T.float16).chalf(),
        lambda T, z: T.tensor([1.0]).to(T.complex32) + T.tensor([1.0]),
        lambda T, z: T.cat([z, z]),
        lambda T, z: z.type().split(".")[-1],
    ):
        ours = f(tinytorch, made[tinytorch])
        try:
            wanted = f(torch, made[torch])
        except NotImplementedError:
            wanted = f(torch, made[torch].to(torch.complex64)).to(torch.complex32)
        if isinstance(wanted, str):
            assert wanted == ours
            continue
        assert str(wanted.dtype).split(".")[-1] == ours.dtype.name
        np.testing.assert_allclose(ours.cdouble().numpy(), wanted.to(torch.complex128).numpy(), rtol=2e-3)
    assert repr(made[tinytorch]).replace("tinytorch", "torch") == repr(made[torch])
    with pytest.raises(RuntimeError):
        tinytorch.fft.fft(made[tinytorch])
    with pytest.raises(TypeError, match="ComplexHalf"):
        made[tinytorch].numpy()
    x = tinytorch.tensor([1.0, 2.0], requires_grad=True)
    (x.chalf() * (1 + 2j)).abs().sum().backward()
    assert x.grad.dtype is tinytorch.float32 and np.allclose(x.grad.numpy(), 5**0.5, rtol=1e-3)
    table = tinytorch.zeros(3).chalf().index_add_(0, tinytorch.tensor([1, 1]), made[tinytorch][:2])
    assert table.tolist() == [0, 1.25 + 1j, 0]
    m = made[tinytorch].reshape(3, 1)
    assert (m @ m.t()).dtype is tinytorch.complex32


@pytest.mark.parametrize("dim", [(), 1, (0, 2), -1])
@pytest.mark.parametrize("given", [torch.randn(3, 4, 5), torch.randint(-9, 9, (3, 4, 5)), torch.rand(3, 1, 5).half()])
def test_hash_tensor(given, dim):
    wanted = torch.hash_tensor(given, dim, keepdim=True)
    ours = tinytorch.hash_tensor(tinytorch.from_numpy(given.numpy()), dim, keepdim=True)
    assert ours.dtype is tinytorch.uint64 and ours.tolist() == wanted.tolist()
    assert ours.squeeze().tolist() == tinytorch.from_numpy(given.numpy()).hash_tensor(dim).squeeze().tolist()
