"""Sparse tensors: programs that must say the same with PyTorch and with tinytorch, and what only one of them has."""

import copy
import subprocess
import sys

import numpy as np
import pytest

import tinytorch as M
from tinytorch.autograd import gradcheck, gradgradcheck

pytestmark = pytest.mark.filterwarnings("ignore:.*(beta state|Sparse|sparse)")


def things(m):
    """What programs are about."""
    i = m.tensor([[0, 1, 1, 0], [2, 0, 2, 2]])
    v = m.tensor([3.0, 4.0, 5.0, 6.0])
    s = m.sparse_coo_tensor(i, v, (2, 3))
    c = s.coalesce()
    return {
        "m": m,
        "i": i,
        "v": v,
        "s": s,
        "c": c,
        "k": c.to_sparse_csr(),
        "h": m.sparse_coo_tensor(i, m.arange(8.0).reshape(4, 2), (2, 3, 2)),
        "d": m.arange(6.0).reshape(2, 3),
        "b": m.arange(12.0).reshape(3, 4),
    }


def told(value):
    """What can be seen of a value."""
    if isinstance(value, (tuple, list)):
        return tuple(told(v) for v in value)
    if not hasattr(value, "requires_grad"):
        return str(value).replace("tinytorch.", "").replace("torch.", "")
    layout = str(value.layout).rpartition(".")[2]
    coalesced = value.is_coalesced() if layout == "sparse_coo" else None
    dtype = str(value.dtype).rpartition(".")[2]
    return (
        layout,
        coalesced,
        tuple(value.shape),
        dtype,
        value.requires_grad,
        np.round(value.detach().to_dense().tolist(), 5).tolist(),
    )


SAME = """
s.shape
(s.is_sparse, d.is_sparse, s.layout == m.sparse_coo, d.layout == m.strided, k.is_sparse_csr, k.is_sparse)
(s.ndim, s.dim(), s.numel(), s._nnz(), c._nnz(), s.sparse_dim(), s.dense_dim(), h.sparse_dim(), h.dense_dim())
(len(s), s.size(), s.size(1), s.is_leaf, s.is_floating_point(), isinstance(s, m.Tensor), m.is_tensor(s))
m.sparse_coo_tensor(size=(2, 3))
m.sparse_coo_tensor((2, 3))
(m.tensor(3.0).to_sparse(), m.tensor(3.0).to_sparse().indices(), m.tensor(3.0).to_sparse().values())
(m.tensor(0.0).to_sparse(), m.tensor(0.0).to_sparse()._nnz())
m.sparse_coo_tensor(i, v)
m.sparse_coo_tensor(i.float(), v, (2, 3))
m.sparse_coo_tensor([[0, 1], [1, 0]], [1, 2])
m.sparse_coo_tensor([[0], [1]], 3.0)
m.sparse_coo_tensor(i, v, (2, 3), dtype=m.float64, requires_grad=True)
m.sparse_coo_tensor(i, v, (2, 3), is_coalesced=True).is_coalesced()
m.sparse_csr_tensor([0, 1, 2], [0, 1], [1.0, 2.0])
m.sparse_csr_tensor([0, 0, 2], [0, 2], [1.0, 2.0], (2, 4))
(c.indices(), c.values(), s._indices(), s._values(), h.coalesce().values())
(k.crow_indices(), k.col_indices(), k.values(), k._nnz())
(s, c, h, k, s.coalesce(), h.coalesce(), s.is_coalesced())
(s.to_dense(), h.to_dense(), k.to_dense(), d.to_dense() is d)
(d.to_sparse(), d.to_sparse(1), d.to_sparse_csr(), d.to_sparse(layout=m.sparse_csr), s.to_sparse_csr(), k.to_sparse())
(s.t(), c.t(), c.transpose(0, 1), h.transpose(0, 1), s.T, m.t(s), m.transpose(s, -1, 0))
(c + c, s + s, s + c, s - c, c - c, k + k, m.add(s, c, alpha=3), m.sub(c, c, alpha=2))
(d + s, d - s, m.add(d, s, alpha=2), d + h.to_dense()[..., 0], d.clone().add_(s), d.t().contiguous().t().add_(s))
(s * 2, 2 * s, s / 2, s * m.tensor(2.0), k * 2, -s, s.neg(), m.mul(s, 3))
(c * d, d * c, c * c, c * m.sparse_coo_tensor([[0], [2]], [2.0], (2, 3)))
(s @ b, m.mm(s, b), m.matmul(s, b), m.sparse.mm(s, b), m.spmm(s, b), s.mm(b), k @ b, m.sparse.mm(k, b), h.coalesce())
(s @ b[:, 0], m.mv(s, b[:, 0]), s.mv(b[:, 0]), k @ b[:, 0], m.smm(s, b))
(m.addmm(m.ones(2, 4), s, b), m.addmm(m.ones(2, 4), s, b, beta=2, alpha=3), m.addmm(m.ones(4), s, b))
m.sparse.addmm(m.ones(2, 4), s, b, beta=2, alpha=3)
b.t() @ s.t()
(m.sparse.sum(s), m.sparse.sum(s, 0), m.sparse.sum(s, dim=(0, 1)), s.sum(), m.sum(s), s.sum(0), k.sum())
(m.sparse.sum(h, 2), m.sparse.sum(h, (0, 2)), m.sparse.sum(h, (0, 1)), m.sparse.sum(s, 0, dtype=m.float64))
(m.sparse.softmax(s, 1), m.sparse.softmax(s, 0), m.sparse.log_softmax(s, 1), m.sparse.softmax(h, 2))
(m.sparse.softmax(h, 1), m.sparse.softmax(s, 1, dtype=m.float64))
(s.double(), s.to(m.float64), s.clone(), s.detach(), m.zeros_like(s), s.float().dtype)
(s.requires_grad_(), s.requires_grad_(False))
(s.clone().mul_(2), s.clone().add_(c), s.clone().zero_())
(m.cat([s, s]), m.cat([s, c], 1), m.cat([h, h], 2), m.cat([c, c], -1), m.stack([s, s]), m.stack([h, h], -1))
(m.index_select(s, 0, m.tensor([1, 0, 1])), c.index_select(1, m.tensor([2, 0])), h.index_select(2, m.tensor([1])))
(s[0], c[1], s.select(1, 2), c.select(0, -1), h[0], h.select(2, 1), c[0][2], c[0, 2], k[0], m.select(s, 0, 1))
(d.sparse_mask(s), d.sparse_mask(c), c.sparse_mask(c), d.sparse_mask(k), s.to_sparse_coo(), d.to_sparse_coo())
(s.abs(), m.sqrt(s), k.abs(), s.pow(2), s ** 2, m.nn.functional.relu(s), s.relu(), h.sin(), c.expm1(), c.round())
(s.norm(), s.permute(1, 0), h.permute(1, 0, 2), s.unsqueeze(0), s.unsqueeze(-1), h.unsqueeze(3), m.empty_like(s).shape)
(c @ c.t(), s @ s.t(), m.sparse.mm(s, c.t()), k @ k.to_sparse().t().to_sparse_csr(), (s * 0) @ s.t(), s @ s.t() @ s)
m.bmm(m.stack([d, d + 1]).to_sparse(), m.stack([b, b - 1]))
(s.int(), s.long(), s.type(m.float64), s.is_same_size(c), k.long())
(m.sparse.spdiags(d, m.tensor([0, 1]), (3, 3)), m.sparse.spdiags(d[1], m.tensor([-1]), (4, 3)))
(m.sparse.sampled_addmm(k, d[:, :2], d[:2]), m.sparse.sampled_addmm(k, d[:, :2], d[:2], beta=0.5, alpha=2))
[repr(x) for x in (s, c, h, k, m.sparse_coo_tensor(size=(2, 3)), m.sparse_coo_tensor(i, v.double(), (2, 3)))]
[repr(x) for x in (s.detach().requires_grad_(), s.detach().requires_grad_() * 2)]
repr(m.sparse_coo_tensor(i, i[0], (2, 3)))
""".strip().splitlines()


@pytest.mark.parametrize("program", SAME)
def test_same(torch, program):
    ours, theirs = [told(eval(program, things(m))) for m in (M, torch)]
    assert ours == theirs


REFUSED = """
s.indices()
s.values()
d.indices()
d.coalesce()
d.is_coalesced()
k.indices()
s.crow_indices()
m.sparse_coo_tensor(i, v[:3], (2, 3))
m.sparse_coo_tensor([0, 1], [1.0, 2.0])
m.sparse_coo_tensor(i, v, (2, 3, 4))
s + d
s + 1
s + m.sparse_coo_tensor(size=(3, 2))
s @ d
h.t()
h.transpose(0, 2)
m.sparse.softmax(s, 2)
m.sparse.sum(s, 2)
s.requires_grad_().mul_(2)
s.exp()
s == s
s[2]
s.select(2, 0)
m.cat([s, d])
m.cat([s, c.t()])
s.index_select(0, m.tensor([2]))
h.permute(2, 1, 0)
d.sparse_mask(d)
d.sparse_mask(c.t())
s @ s
m.sparse.sampled_addmm(s, d, d)
m.sparse.spdiags(d, m.tensor([1, 1]), (3, 3))
""".strip().splitlines()


@pytest.mark.parametrize("program", REFUSED)
def test_refused(torch, program):
    classes = []
    for m in (M, torch):
        with pytest.raises(Exception) as raised:
            eval(program, things(m))
        classes.append(raised.type.__name__)
    assert classes[0] == classes[1]


@pytest.mark.parametrize(
    "program",
    [
        "m.sparse_coo_tensor(i, v, (2, 2))",
        "m.sparse_coo_tensor(-i, v, (2, 3))",
        "m.sparse_csr_tensor([0, 1, 2], [0, 3], [1.0, 2.0], (2, 2))",
        "m.sparse_csr_tensor([1, 1, 2], [0, 1], [1.0, 2.0])",
        "m.sparse_csr_tensor([0, 2, 1], [0, 1], [1.0, 2.0])",
        "m.sparse_csr_tensor([0, 1], [0, 1], [1.0, 2.0], (2, 2))",
        "m.sparse_csr_tensor([0, 1, 1], [0, 1], [1.0, 2.0], (2, 2))",
    ],
)
def test_places_are_checked(program):
    """PyTorch does so on request; else it writes beyond its memory."""
    with pytest.raises(RuntimeError):
        eval(program, things(M))


@pytest.mark.parametrize(
    "program",
    ["s[0:1]", "s.reshape(6)", "s.tolist()", "s.exp_()", "s.sort()",
     "k.t()", "m.nn.functional.gelu(s)", "m.linalg.svd(s)", "m.addmm(c @ c.t(), s, c.t())",
     "d.copy_(s)",
     "m.where(d > 0, s, d)", "d * 2 > s", "m.einsum('ij,jk', s, b)", "m.nn.functional.linear(d, s)", "s.data_ptr()",
     "s.storage()", "s.sum(0, keepdim=True)"],
)  # fmt: skip
def test_what_has_no_rule(program):
    with pytest.raises(NotImplementedError):
        eval(program, things(M))


@pytest.mark.parametrize(
    "program",
    ["s.numpy()", "s * 'x'", "d.sum(s)", "d.sum(0, dtype=[s])", "m.lgamma([s])", "m.relu(s, 3)",
     "m.sigmoid(d, out=(s, d))", "d.reshape((s, None))", "d.transpose([], [s])", "m.matmul(s, [3])",
     "m.div(d, d, rounding_mode=(s, None))", "setattr(s, 'data', 'x')"],
)  # fmt: skip
def test_arguments_of_the_wrong_type(torch, program):
    """They are told before it is that there is no rule."""
    for m in (torch, M):
        with pytest.raises(TypeError):
            eval(program, things(m))


def test_data():
    s = M.eye(2).to_sparse().requires_grad_()
    s.data = M.eye(3).to_sparse() * 2
    assert s.shape == (3, 3) and s.requires_grad and s.to_dense().tolist() == (M.eye(3) * 2).tolist()
    for other in (M.eye(2), M.eye(2).to_sparse_csr(), M.eye(2).double().to_sparse()):
        with pytest.raises(RuntimeError):
            s.data = other


LOSSES = {
    "mm": lambda m, A, B: m.sparse.mm(A, B) ** 2,
    "csr": lambda m, A, B: (A.to_sparse_csr() @ B) ** 2,
    "dense": lambda m, A, B: A.to_dense() ** 2,
    "sum": lambda m, A, B: m.sparse.sum(A * A.to_dense()),
    "rows": lambda m, A, B: m.sparse.sum(A, 1).to_dense() ** 2,
    "softmax": lambda m, A, B: m.sparse.softmax(A, 1).to_dense() ** 2,
    "log_softmax": lambda m, A, B: m.sparse.log_softmax(A, 0).to_dense() ** 2,
    "add": lambda m, A, B: (A + A.t().t()).to_dense() ** 2,
    "transpose": lambda m, A, B: A.t().to_dense() ** 3,
    "coalesce": lambda m, A, B: (A * 3).coalesce().values() ** 2,
}


# Those whose gradients torch has in other places, or not at all.
OURS = {
    "sparse times sparse": lambda m, A, B: (A.t() @ A @ (B + 1).to_sparse()).to_dense() ** 2,
    "cat": lambda m, A, B: (m.cat([A, A * A], 1) @ m.cat([B, B])) ** 2,
    "parts": lambda m, A, B: (A.index_select(1, m.tensor([2, 0, 2])) @ B)[0] * A[1].to_dense().sum(),
    "stack": lambda m, A, B: m.bmm(m.stack([A, A * 2]), m.stack([B, B])) ** 2,
    "values": lambda m, A, B: A.sin().pow(2).norm() * A.square().to_dense(),
}


@pytest.mark.parametrize(
    "name", [name for name in LOSSES if name != "csr"]
)  # of which torch's gradient has values in other places
def test_gradients(torch, name):
    """A leaf's gradient is sparse, with its places; dense operands have dense ones."""
    found = []
    for m in (M, torch):
        given = things(m)
        A, B = given["c"].detach().requires_grad_(), given["b"].clone().requires_grad_()
        LOSSES[name](m, A, B).sum().backward()
        assert A.grad.layout == m.sparse_coo
        found.append((A.grad.to_dense().tolist(), B.grad.tolist() if B.grad is not None else None))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-5, atol=1e-6)
    assert found[0][1] == found[1][1]


@pytest.mark.parametrize("name", [*LOSSES, *OURS])
def test_derivatives(name):
    """First and second, by the values, against finite differences."""
    loss = (LOSSES | OURS)[name]
    i = M.tensor([[0, 1, 1, 0], [2, 0, 2, 1]])
    v = M.tensor([0.5, -1.0, 0.25, 2.0], dtype=M.float64, requires_grad=True)
    B = M.arange(12.0, dtype=M.float64).div(7).reshape(3, 4).requires_grad_()
    assert gradcheck(lambda v, B: loss(M, M.sparse_coo_tensor(i, v, (2, 3)), B), (v, B))
    assert gradgradcheck(lambda v, B: loss(M, M.sparse_coo_tensor(i, v, (2, 3)), B), (v, B))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128", "float16"])
@pytest.mark.parametrize(
    "n, m, k, nnz", [(7, 5, 40, 30), (1, 1, 1, 1), (3, 4, 0, 5), (3, 4, 2, 0), (300, 200, 50, 4000)]
)
def test_products(dtype, n, m, k, nnz):
    rng = np.random.default_rng(n)
    rows, cols = rng.integers(0, n, nnz), rng.integers(0, m, nnz)
    values, B = rng.integers(-3, 4, nnz), rng.integers(-3, 4, (m, k))
    wanted = np.zeros((n, k))
    np.add.at(wanted, rows, values[:, None] * B[cols])
    kind = getattr(M, dtype)
    s = M.sparse_coo_tensor(np.stack((rows, cols)), M.from_numpy(values).to(kind), (n, m))
    dense = M.from_numpy(B).to(kind)
    for layout in (s, s.coalesce(), s.to_sparse_csr()):
        assert (layout @ dense).dtype is kind
        np.testing.assert_array_equal((layout @ dense).to(M.complex128).real.numpy(), wanted)
    np.testing.assert_array_equal((dense.t() @ s.t()).to(M.complex128).real.numpy(), wanted.T)


def test_threads_change_no_bit():
    rng = np.random.default_rng(0)
    i, v = rng.integers(0, 400, (2, 9000)), rng.standard_normal(9000, dtype=np.float32)
    B = M.from_numpy(rng.standard_normal((400, 96), dtype=np.float32))
    before, seen = M.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            M.set_num_threads(threads)
            s, b = M.sparse_coo_tensor(i, M.from_numpy(v), (400, 400)).requires_grad_(), B.clone().requires_grad_()
            y = s @ b
            (y**2).sum().backward()
            seen.append([t.detach().numpy().tobytes() for t in (y, s.grad._values(), b.grad)])
    finally:
        M.set_num_threads(before)
    assert seen[0] == seen[1] == seen[2]


def test_places_that_were_written_are_checked_again():
    s = M.sparse_coo_tensor([[0, 1], [1, 0]], [1.0, 2.0])
    s._indices().fill_(5)
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        s @ M.ones(2, 3)


def embedded(m, weight, *rows, **options):
    return m.nn.functional.embedding(m.tensor(rows), weight, sparse=True, **options)


def test_gradients_of_tables(torch):
    """They accumulate, sparse ones and dense ones; rows of the padding have none."""
    found = []
    for m in (M, torch):
        W, seen = m.arange(10.0).reshape(5, 2).requires_grad_(), []

        def see(W=W, seen=seen):
            seen.append(told(W.grad))

        (embedded(m, W, 1, 2, 1, 4, padding_idx=4) ** 2).sum().backward()
        assert W.grad._nnz() == 3
        see()
        embedded(m, W, 0, 1).sum().backward()
        see()
        (W * 2).sum().backward()
        see()
        W.grad = None
        (W * 2).sum().backward()
        embedded(m, W, 0, 1).sum().backward()
        see()
        W.grad = None
        embedded(m, W, 0, 1, 1).sum().backward()
        m.optim.SGD([W], lr=0.5).step()
        seen.append(W.tolist())
        m.optim.SGD([W], lr=0.5, maximize=True).step()
        seen.append(W.tolist())
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            m.optim.Adam([W]).step()
        table = m.nn.Embedding(4, 2, sparse=True)
        table(m.tensor([[1, 1]])).sum().backward()
        seen.append(told(table.weight.grad))
        table.zero_grad()
        assert table.weight.grad is None
        found.append(seen)
    assert found[0] == found[1]


def test_second_derivatives_of_tables():
    W = M.arange(10.0, dtype=M.float64).div(3).reshape(5, 2).requires_grad_()
    (g,) = M.autograd.grad((embedded(M, W, 1, 2, 1) ** 3).sum(), W, create_graph=True)
    assert g.is_sparse and g.requires_grad
    (g.to_dense() ** 2).sum().backward()
    named = W.detach()[1:3]
    counts = M.tensor([[2.0], [1.0]], dtype=M.float64)
    wanted = M.zeros(5, 2, dtype=M.float64)
    wanted[1:3] = 2 * counts * 3 * named**2 * counts * 6 * named
    assert W.grad.to_dense().allclose(wanted)


def test_tables_refuse():
    W = M.ones(5, 2, requires_grad=True)
    with pytest.raises(NotImplementedError, match="leaves"):
        embedded(M, W * 2, 1)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        embedded(M, W, 1, scale_grad_by_freq=True).sum().backward()
    embedded(M, W, 1).sum().backward()
    for optimizer in (M.optim.RMSprop([W]), M.optim.Adadelta([W]), M.optim.NAdam([W])):
        with pytest.raises(RuntimeError, match="does not support sparse gradients"):
            optimizer.step()
    assert (W == 1).all()
    with pytest.raises(NotImplementedError):
        M.nn.utils.clip_grad_norm_([W], 1.0)


def test_groups_of_sparse_and_dense_gradients():
    W, b = M.ones(3, 2, requires_grad=True), M.ones(2, requires_grad=True)
    (embedded(M, W, 1, 1) + b).sum().backward()
    M.optim.SGD([W, b], lr=0.25).step()
    assert W.tolist() == [[1, 1], [0.5, 0.5], [1, 1]]
    assert b.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("options", ({}, {"momentum": 0.5}, {"maximize": True}))
def test_steps_of_sparse_parameters(torch, options):
    seen = []
    for m in (M, torch):
        s = m.arange(4.0).reshape(2, 2).to_sparse().requires_grad_()
        optimizer = m.optim.SGD([s], 0.25, **options)
        for _ in range(2):
            optimizer.zero_grad()
            (s.to_dense() ** 2).sum().backward()
            optimizer.step()
        seen.append((s.detach().to_dense().tolist(), s.grad.to_dense().tolist(), s.is_leaf and s.requires_grad))
        optimizer.zero_grad()
        assert s.grad is None
    assert seen[0] == seen[1]


def test_sparse_parameters_are_not_passed_over():
    """What has no rule for them refuses."""
    s = M.eye(2).to_sparse().requires_grad_()
    (s.to_dense() ** 2).sum().backward()
    for kind in (M.optim.Adam, M.optim.RMSprop, M.optim.Adagrad, M.optim.NAdam):
        with pytest.raises(RuntimeError, match="sparse gradients|dense parameter"):
            kind([s]).step()
    with M.no_grad(), pytest.raises(NotImplementedError):
        s.zero_()
    for call in (lambda: M.nn.Parameter(s), lambda: s.as_subclass(type("Own", (M.Tensor,), {}))):
        with pytest.raises(NotImplementedError):
            call()


def test_hooks_of_sparse_gradients(torch):
    found = []
    for m in (M, torch):
        W = m.arange(6.0).reshape(3, 2).requires_grad_()
        W.register_hook(lambda g: g * 2)
        W.register_hook(lambda g: g.coalesce())
        embedded(m, W, 1, 1, 2).sum().backward()
        found.append(told(W.grad.coalesce()))
        with pytest.raises((NotImplementedError, RuntimeError)):
            W.register_hook(lambda g: g.reshape(-1))
            embedded(m, W, 1).sum().backward()
    assert found[0] == found[1]


def test_copies_and_text(torch):
    s = things(M)["s"]
    twin = copy.deepcopy({"a": s, "b": s})
    assert twin["a"] is twin["b"] and twin["a"] is not s and told(twin["a"]) == told(s)
    assert f"{s}" == str(s) == repr(s)


def test_dense_programs_do_not_look():
    """Nothing is overridden before there is a sparse tensor."""
    program = """
import tinytorch as M
from tinytorch.overrides import overridable
x = M.ones(2, 2, requires_grad=True)
(x @ x).sum().backward()
assert not overridable._installed and x.layout is M.strided and not x.is_sparse
M.ones(2, 2).to_sparse()
assert overridable._installed
"""
    subprocess.run([sys.executable, "-c", program], check=True)
