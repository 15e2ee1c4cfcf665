"""Tensors of 64 dimensions, as PyTorch has them, some with more dimensions that cannot be merged than kernels have room
for; those of 65 are refused."""

import copy
import io
import pickle

import numpy as np
import pytest
from compare import assert_values, dtype_name, outputs, to_numpy

import tinytorch
from tinytorch.nn import functional

MOST = 64
MANY = 17  # more than a CUDA kernel and a fused one have room for


def numbers(m, *shape):
    """Small integers, whose sums are exact."""
    n = int(np.prod(shape))
    return (m.arange(n, dtype=m.float32) * 7 % 11 - 5).reshape(shape)


def spread(places, size=2):
    return tuple(size if d in places else 1 for d in range(MOST))


SOME = (0, 1, 2, 31, 61, 62, 63)
EVERY_THIRD = tuple(range(MOST - 1, MOST - 1 - 3 * MANY, -3))
LAYOUTS = {
    "ones": lambda m: numbers(m, *spread(())),
    "some of 2": lambda m: numbers(m, *spread(SOME)),
    "some of 3, sliced": lambda m: numbers(m, *spread(SOME, 3))[tuple(slice(0, s or 1) for s in spread(SOME))],
    "transposed": lambda m: numbers(m, *spread(SOME)).permute(*range(MOST - 1, -1, -1)),
    "expanded": lambda m: numbers(m, *spread(SOME[::2])).expand(*spread(SOME)),
    "many reversed": lambda m: numbers(m, *(2,) * MANY).permute(*range(MANY - 1, -1, -1)).view(spread(EVERY_THIRD)),
    "many, every other expanded": lambda m: numbers(m, *spread(EVERY_THIRD[::2])).expand(*spread(EVERY_THIRD)),
}
FEW = ("ones", "some of 2", "some of 3, sliced", "transposed", "expanded")


def last(m, x):
    """Valid indices of the last dimension, one for each element."""
    return (x.abs() % x.shape[-1]).long()


def less(x):
    """A tensor of 63 dimensions."""
    return x.select(3, 0)


def where(m, x):
    """Indices that fit any layout's last dimension."""
    return m.tensor([0, x.shape[-1] - 1, 0])


def saved(m, x):
    file = io.BytesIO()
    m.save(x, file)
    file.seek(0)
    return m.load(file)


def changed(x, change):
    x = x.clone()
    change(x)
    return x


VIEWS = {
    "reversed": lambda m, x: x.permute(*range(MOST - 1, -1, -1)),
    "transpose": lambda m, x: x.transpose(0, -1),
    "movedim": lambda m, x: x.movedim(0, -1),
    "select": lambda m, x: x[0],
    "select the last": lambda m, x: x[..., -1],
    "one element": lambda m, x: x[(0,) * MOST],
    "slices": lambda m, x: x[0:1, ..., ::2],
    "new": lambda m, x: less(x)[..., None],
    "unsqueeze": lambda m, x: less(x).unsqueeze(63),
    "squeeze": lambda m, x: x.squeeze(),
    "squeeze the last": lambda m, x: x[..., :1].squeeze(63),
    "squeeze many": lambda m, x: x.squeeze(tuple(range(MOST))),
    "expand": lambda m, x: less(x).expand(2, *less(x).shape),
    "diagonal": lambda m, x: x.diagonal(0, 0, 63),
    "unfold": lambda m, x: less(x).unfold(-1, 1, 1),
    "unbind": lambda m, x: x.unbind(-1),
    "split": lambda m, x: x.split(1, 63),
    "T": lambda m, x: x.mT,
}
ELEMENTWISE = {
    "add": lambda m, x: x + x,
    "broadcast": lambda m, x: x + numbers(m, 2).expand(2)[: x.shape[-1]],
    "broadcast both": lambda m, x: x[:1] * x[..., :1],
    "exp": lambda m, x: x.exp(),
    "compare": lambda m, x: x > 0,
    "divide integers": lambda m, x: x.long() // (x.long().abs() + 1),
    "where": lambda m, x: m.where(x > 0, x, -1),
    "clamp": lambda m, x: x.clamp(-1, 2),
    "to": lambda m, x: x.to(m.float64),
    "half": lambda m, x: x.half() * 3,
    "contiguous": lambda m, x: x.contiguous(),
    "clone": lambda m, x: x.clone(),
    "in place": lambda m, x: changed(x, lambda y: y.add_(x, alpha=2)),
    "copy_": lambda m, x: m.zeros(x.shape).copy_(x),
    "write": lambda m, x: changed(x, lambda y: y[..., 0].mul_(3)),
    "masked_fill": lambda m, x: x.masked_fill(x > 0, 9),
}
REDUCTIONS = {
    "sum": lambda m, x: x.sum(),
    "sum of the first": lambda m, x: x.sum(0),
    "sum of the last": lambda m, x: x.sum(63),
    "sum of some": lambda m, x: x.sum((0, 31, -1), keepdim=True),
    "sum of all but one": lambda m, x: x.sum(tuple(range(1, MOST))),
    "sum of every other": lambda m, x: x.sum(tuple(range(1, MOST, 2))),
    "mean": lambda m, x: x.mean(),
    "prod": lambda m, x: x.prod(-1),
    "amax": lambda m, x: x.amax((62, 63)),
    "max": lambda m, x: x.max(-1),
    "argmax": lambda m, x: x.argmax(-1),
    "argmin of all": lambda m, x: (x + x.argmin() * 0).amin(),
    "var": lambda m, x: x.var(-1, correction=0),
    "norm": lambda m, x: x.norm(),
    "logsumexp": lambda m, x: x.logsumexp(63),
    "any": lambda m, x: (x > 3).any(-1),
    "all": lambda m, x: (x > -9).all(),
    "count_nonzero": lambda m, x: m.count_nonzero(x),
    "softmax": lambda m, x: x.softmax(-1),
    "log_softmax": lambda m, x: x.log_softmax(31),
    "layer_norm": lambda m, x: m.nn.functional.layer_norm(x, x.shape[-2:]),
    "cumsum": lambda m, x: x.cumsum(-1),
    "cummax": lambda m, x: x.cummax(0).values,
    "sum_to_size": lambda m, x: x.sum_to_size((1,) * MOST),
}
MOVES = {
    "flatten": lambda m, x: x.flatten(),
    "reshape": lambda m, x: x.flatten().reshape(x.shape),
    "gather": lambda m, x: x.gather(-1, last(m, x)),
    "take_along_dim": lambda m, x: m.take_along_dim(x, last(m, x), -1),
    "scatter": lambda m, x: m.zeros(x.shape).scatter(0, m.zeros(x.shape, dtype=m.int64), x[:1].expand(x.shape)),
    "scatter_add": lambda m, x: m.zeros(x.shape).scatter_add(-1, last(m, x), x),
    "index_select": lambda m, x: x.index_select(-1, where(m, x)),
    "index_add": lambda m, x: x.index_add(0, m.tensor([0]), x[:1]),
    "index": lambda m, x: x[..., where(m, x)],
    "index the first": lambda m, x: x[where(m, x) * 0],
    "index at two places": lambda m, x: x[where(m, x) * 0, ..., where(m, x)],
    "index everywhere": lambda m, x: x[(m.tensor([0]),) * MOST],
    "index_put": lambda m, x: changed(x, lambda y: y.__setitem__((..., m.tensor([0])), 3.0)),
    "mask": lambda m, x: x[x > 2],
    "mask of some": lambda m, x: x[m.ones(x.shape[:2], dtype=m.bool)],
    "take": lambda m, x: x.take(m.tensor([0, -1])),
    "nonzero": lambda m, x: (x > 4).nonzero(),
    "cat": lambda m, x: m.cat([x, x * 2]),
    "cat at the end": lambda m, x: m.cat([x, x.half(), x], -1),
    "stack": lambda m, x: m.stack([less(x), less(x)], 63),
    "repeat": lambda m, x: x[..., :1].repeat((2,) + (1,) * 62 + (3,)),
    "kron": lambda m, x: m.kron(x[..., :1].contiguous(), numbers(m, 2, 3)),
    "flip": lambda m, x: x.flip(0, 63),
    "roll": lambda m, x: x.roll(1, 63),
    "tril": lambda m, x: x.tril(),
    "sort": lambda m, x: x.sort(dim=-1, stable=True),
    "sort the first": lambda m, x: x.sort(dim=0, stable=True).values,
    "topk": lambda m, x: x.topk(1, -1).values,
    "median": lambda m, x: x.median(-1).values,
    "kthvalue": lambda m, x: x.kthvalue(1, 0).values,
    "unique": lambda m, x: x.unique(),
    "isin": lambda m, x: m.isin(x, m.tensor([1.0, 2.0])),
    "one_hot": lambda m, x: m.nn.functional.one_hot(less(x).abs().long(), 6),
    "embedding": lambda m, x: m.nn.functional.embedding(less(x).abs().long(), numbers(m, 6, 2)),
    "as_strided": lambda m, x: x.contiguous().as_strided((1,) * 63 + (x.shape[-1],), (0,) * 63 + (1,)),
    "searchsorted": lambda m, x: m.searchsorted(m.tensor([-1.0, 0.0, 2.0]), x),
}
PRODUCTS = {
    "matmul": lambda m, x: x @ x.mT,
    "matmul with a matrix": lambda m, x: x @ numbers(m, x.shape[-1], 3),
    "matmul of a broadcast stack": lambda m, x: x[:1] @ x.mT,
    "matmul of integers": lambda m, x: x.long() @ x.long().mT,
    "linear": lambda m, x: m.nn.functional.linear(x, numbers(m, 3, x.shape[-1])),
    "tensordot": lambda m, x: m.tensordot(x, numbers(m, x.shape[-1], 3), 1),
    "einsum": lambda m, x: m.einsum("...i,...i->...", x, x),
    "inv": lambda m, x: m.linalg.inv(x @ x.mT + 50 * m.eye(x.shape[-2])),
}
OUTSIDE = {
    "item": lambda m, x: m.tensor(x[(0,) * MOST].item()),
    "numpy": lambda m, x: m.from_numpy(x.numpy()),
    "nested lists": lambda m, x: m.tensor(x.tolist()),
    "DLPack": lambda m, x: m.from_dlpack(x),
    "saved": lambda m, x: saved(m, x),
    "pickled": lambda m, x: pickle.loads(pickle.dumps(x)),
    "copied": lambda m, x: copy.deepcopy(x),
}
OPERATORS = VIEWS | ELEMENTWISE | REDUCTIONS | MOVES | PRODUCTS
# Without a derivative; or PyTorch refuses it, whose formula has twice as many dimensions; or ties are its own affair.
UNDERIVED = {
    "compare",
    "divide integers",
    "argmax",
    "any",
    "all",
    "count_nonzero",
    "nonzero",
    "unique",
    "isin",
    "one_hot",
}
UNDERIVED |= {"embedding", "searchsorted", "matmul of integers", "repeat", "kron", "median"}
DERIVED = [name for name in OPERATORS if name not in UNDERIVED]


@pytest.fixture
def torch():
    return pytest.importorskip("torch")


def agree(found, expected, message):
    assert len(found) == len(expected)
    for f, e in zip(found, expected):
        assert dtype_name(f) == dtype_name(e), message
        assert tuple(f.shape) == tuple(e.shape), message
        assert_values(to_numpy(f), to_numpy(e), dtype_name(e), message)


def layouts(name):
    """Those that an operator is tested with: products of 2^16 matrices take too long."""
    return FEW if name in PRODUCTS else LAYOUTS


@pytest.mark.parametrize("name", OPERATORS)
def test_as_pytorch(torch, name):
    compute = OPERATORS[name]
    for layout in layouts(name):
        message = f"{name} of {layout}"
        expected = outputs(compute(torch, LAYOUTS[layout](torch)))
        x = LAYOUTS[layout](tinytorch)
        found = outputs(compute(tinytorch, x))
        agree(found, expected, message)
        if name in VIEWS:
            assert [f.stride() for f in found] == [e.stride() for e in expected], message
        with tinytorch.fuse():
            found = outputs(compute(tinytorch, x + 0))
        agree(found, expected, f"{message}, fused")


@pytest.mark.parametrize("name", DERIVED)
def test_gradient(torch, name):
    for layout in ("some of 2", "transposed", "many reversed"):
        if layout not in layouts(name):
            continue
        gradients = []
        for m in (torch, tinytorch):
            x = (LAYOUTS[layout](m) + 0.25).requires_grad_()
            made = [y for y in outputs(OPERATORS[name](m, x)) if y.requires_grad]
            sum((y * y.detach().cos()).sum() for y in made).backward()
            gradients.append(x.grad)
        agree(gradients[1:], gradients[:1], f"the gradient of {name} of {layout}")


@pytest.mark.parametrize("name", OUTSIDE)
@pytest.mark.parametrize("layout", FEW)
def test_outside(name, layout):
    x = LAYOUTS[layout](tinytorch)
    agree(outputs(OUTSIDE[name](tinytorch, x)), [x if name != "item" else x[(0,) * MOST]], name)


@pytest.mark.parametrize("layout", FEW)
def test_printing(torch, layout):
    assert repr(LAYOUTS[layout](tinytorch)) == repr(LAYOUTS[layout](torch))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_fused_mode_has_the_bits_of_eager_mode(layout):
    def compute(x):
        y = x.sin() * 0.3 + x
        return y, y.sum(-1), y.sum((0, 62)), y.mean(), (y - y.amax()).exp().sum(0), y.softmax(-1), y.var(correction=0)

    eager = compute(LAYOUTS[layout](tinytorch))
    with tinytorch.fuse():
        fused = compute(LAYOUTS[layout](tinytorch))
    for e, f in zip(eager, fused):
        assert e.stride() == f.stride() and bool((e == f).all())


def nested(depth):
    return [1.0] if depth == 1 else [nested(depth - 1)]


REFUSED = {
    "zeros": lambda x: tinytorch.zeros((1,) * 65),
    "empty_strided": lambda x: tinytorch.empty_strided((1,) * 65, (1,) * 65),
    "nested lists": lambda x: tinytorch.tensor(nested(65)),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "new": lambda x: x[None],
    "new of a position": lambda x: x[tinytorch.tensor([0]), None],
    "index of two dimensions": lambda x: x[tinytorch.zeros(1, 1, dtype=tinytorch.int64)],
    "expand": lambda x: x.expand(2, *x.shape),
    "view": lambda x: x.view((1,) * 65),
    "reshape": lambda x: x.reshape((1,) * 65),
    "as_strided": lambda x: x.as_strided((1,) * 65, (1,) * 65),
    "unfold": lambda x: x.unfold(0, 1, 1),
    "stack": lambda x: tinytorch.stack([x, x]),
    "one_hot": lambda x: functional.one_hot(x.long(), 3),
    "repeat": lambda x: x.repeat((1,) * 65),
    "tensordot": lambda x: tinytorch.tensordot(x, x, 1),
    "unflatten": lambda x: x.unflatten(0, (1, 1)),
    "resize_": lambda x: x.resize_((1,) * 65),
    "far more": lambda x: tinytorch.ones((1,) * 1000),
}


@pytest.mark.parametrize("name", REFUSED)
def test_65_are_refused(name):
    with pytest.raises(RuntimeError, match="only tensors with up to 64 dims are supported"):
        REFUSED[name](tinytorch.ones((1,) * MOST))


@pytest.mark.parametrize("n", [8, 9, 63, 64])
def test_memory_of_descriptors(n):
    """Descriptors of few dimensions are kept, those of more are not: what is made after either is whole."""
    for k in (n, 2, n, 9, 8, n):
        kept = [numbers(tinytorch, *(1,) * (k - 1), 3) for _ in range(600)]
        assert all(x.shape == (1,) * (k - 1) + (3,) and x.sum() == -5 for x in kept)
        views = [x.squeeze() for x in kept]
        del kept
        assert all(v.tolist() == [-5.0, 2.0, -2.0] for v in views)
