"""What the operator table does not say of optable/numeric.py's operators: work in pieces, layouts, several results."""

import pytest

import tinytorch
from tinytorch.nn import functional as F
from tinytorch.ops import distance


def leaf(*shape):
    generator = tinytorch.Generator().manual_seed(7)
    return tinytorch.randn(shape, dtype=tinytorch.float64, generator=generator, requires_grad=True)


@pytest.mark.parametrize("p", [0, 1, 1.5, 2, 3, float("inf")])
def test_distances_in_pieces(monkeypatch, p):
    """Rows are taken a few at a time; nobody can tell."""
    x, y = leaf(5, 3), leaf(4, 3)

    def outcomes():
        for d in (tinytorch.cdist(x, y, p), F.pdist(x, p)):
            yield d
            yield from tinytorch.autograd.grad((d * d).sum(), (x, y), allow_unused=True)

    whole = list(outcomes())
    monkeypatch.setattr(distance, "_ROOM", 8)
    for got, wanted in zip(outcomes(), whole):
        assert (got is None and wanted is None) or tinytorch.equal(got, wanted) or tinytorch.allclose(got, wanted)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_in_chunks(reduction):
    """In chunks the loss has the same derivatives, the second ones too."""
    x, w, b = leaf(5, 3), leaf(4, 3), leaf(4)
    classes, weight = tinytorch.tensor([0, 3, -100, 1, 1]), tinytorch.tensor([1.0, 2.0, 0.5, 3.0]).double()
    how = {"linear_bias": b, "weight": weight, "reduction": reduction}
    results = []
    for options in (None, tinytorch.nn.LinearCrossEntropyOptions(batch_chunk_size=2)):
        loss = F.linear_cross_entropy(x, w, classes, **how, options=options)
        first = tinytorch.autograd.grad((loss * loss).sum(), (x, w, b), create_graph=True)
        second = tinytorch.autograd.grad(sum((g * g).sum() for g in first), (x, w, b))
        results.append((loss, *first, *second))
    for plain, chunked in zip(*results):
        assert tinytorch.allclose(plain, chunked, 1e-10, 1e-12)


@pytest.mark.parametrize("n, features, classes, rows", [(64, 8, 64, 4), (10, 8, 8, 8), (1, 4, 100, 1)])
def test_rows_of_a_chunk(torch, n, features, classes, rows):
    assert tinytorch.nn.LinearCrossEntropyOptions().rows(n, features, classes) == rows
    theirs = torch.nn.LinearCrossEntropyOptions(chunking_method="aspect_ratio:2")
    assert theirs._adjust(n, features, classes, torch.float32).batch_chunk_size == rows


@pytest.mark.parametrize(
    "options",
    [{"batch_chunk_size": 0}, {"chunking_method": "aspect"}, {"acc_policy": "x"}, {"acc_dtype": tinytorch.int64}],
    ids=str,
)
def test_options_are_checked(options):
    with pytest.raises(ValueError):
        tinytorch.nn.LinearCrossEntropyOptions(**options)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_empty_permuted(torch, order):
    for size in ((2, 3, 4), (2, 0, 4)):
        ours, theirs = tinytorch.empty_permuted(size, order), torch.empty_permuted(size, order)
        assert ours.shape == theirs.shape and ours.stride() == theirs.stride()


@pytest.mark.parametrize("order", [(0, 1), (0, 0, 1), (0, 1, 3)])
def test_empty_permuted_refuses(order):
    with pytest.raises(RuntimeError):
        tinytorch.empty_permuted((2, 3, 4), order)


def test_copies_of_parts_and_of_complex_views():
    x = tinytorch.arange(6.0).reshape(2, 3)
    parts = [tinytorch.empty(0), tinytorch.empty(0)]
    assert tinytorch.unbind_copy(x, out=parts) is None and tinytorch.equal(tinytorch.stack(parts), x)
    with pytest.raises(RuntimeError):
        tinytorch.split_copy(x, 1, out=parts[:1])
    pairs = tinytorch.view_as_real_copy(tinytorch.complex(x, x))
    assert tinytorch.equal(pairs, tinytorch.stack((x, x), -1))
    assert tinytorch.equal(tinytorch.view_as_complex_copy(pairs), tinytorch.complex(x, x))
    assert tinytorch.equal(tinytorch.view_copy(x, tinytorch.int32), x.view(tinytorch.int32))
    with pytest.raises(TypeError):
        tinytorch.view_copy(x)


def in_place(m):
    """Results of operators that change a tensor's shape, and its strides."""
    x = m.arange(24.0).reshape(2, 3, 2, 2)
    yield x.clone().as_strided_((3, 2), (2, 1), 4)
    yield m.as_strided_(x.clone(), (3,), (5,))
    yield m.resize_as_(x.clone(), m.empty(4, 6))
    yield x.clone().resize_((2, 3, 2, 2), memory_format=m.channels_last)
    like = m.empty(2, 3, 2, 2).contiguous(memory_format=m.channels_last)
    yield x.clone().resize_as_(like, memory_format=m.preserve_format)
    y = m.ones(4, requires_grad=True)
    z = (y * 2).as_strided_((2, 2), (1, 2))
    (z * m.arange(4.0).reshape(2, 2)).sum().backward()
    yield y.grad


def test_shapes_in_place(torch):
    for ours, theirs in zip(in_place(tinytorch), in_place(torch)):
        assert ours.tolist() == theirs.tolist() and ours.stride() == theirs.stride()


def test_diagonals_filled(torch):
    for shape, wrap in (((3, 4), False), ((7, 3), False), ((7, 3), True), ((3, 7), True), ((2, 2, 2), False)):
        ours = tinytorch.zeros(shape).fill_diagonal_(2, wrap)
        assert ours.tolist() == torch.zeros(shape).fill_diagonal_(2, wrap).tolist()
    x = tinytorch.zeros(3, 3, requires_grad=True)
    (x * 2).fill_diagonal_(5).sum().backward()
    assert tinytorch.equal(x.grad, 2 - 2 * tinytorch.eye(3))
    for shape in ((3,), (2, 3, 2)):
        with pytest.raises(RuntimeError):
            tinytorch.zeros(shape).fill_diagonal_(1)


def test_functions_of_python():
    x = tinytorch.arange(3.0)
    assert x.clone().apply_(lambda a: a * a).tolist() == [0, 1, 4]
    assert x.clone().map_(tinytorch.tensor(2.0), lambda a, b: a + b).tolist() == [2, 3, 4]
    assert x.clone().map2_(x, x, lambda a, b, c: a + b * c).tolist() == [0, 2, 6]
    with pytest.raises(RuntimeError):
        tinytorch.ones(2, requires_grad=True).apply_(abs)
    with pytest.raises(TypeError):
        x.map_(x.double(), max)
    assert tinytorch.is_nonzero(x[1]) and not tinytorch.is_nonzero(x[:1])
    with pytest.raises(RuntimeError):
        tinytorch.is_nonzero(x)


INTEGERS = {
    "einsum's sums": lambda m: tuple(
        m.einsum(e, m.ones(2, 2, dtype=m.int32), m.ones(2, dtype=m.int32)) for e in ("ij,i->ij", "ij,i->i", "ij,k->i")
    ),
    "logsumexp": lambda m: m.logsumexp(m.complex(m.arange(4.0), -m.arange(4.0)).reshape(2, 2), 1, True),
    "logsumexp of all": lambda m: m.logsumexp(m.complex(m.arange(4.0), m.arange(4.0)).reshape(2, 2), (0, 1)),
    "rms_norm": lambda m: m.rms_norm(m.complex(m.arange(4.0), -m.arange(4.0)).reshape(2, 2), (2,), m.ones(2), 0.5),
    "sum_to_size": lambda m: (m.ones(2, 3, dtype=m.bool).sum_to_size(3), m.ones((), dtype=m.int8).sum_to_size(())),
    "hardtanh": lambda m: m.nn.functional.hardtanh(m.arange(-3, 3), -1.9, 1.9),
    "relu6": lambda m: m.nn.functional.relu6(m.arange(12).to(m.uint8)),
    "pow by a tensor": lambda m: (m.pow(m.tensor([2, 1, -1]), m.tensor(-1)), 2 ** m.tensor(-1)),
    "nuclear norm": lambda m: m.norm(m.arange(12.0).reshape(2, 2, 3), "nuc", (0, 2), True),
    "feature_alpha_dropout": lambda m: m.nn.functional.feature_alpha_dropout(m.ones(5), 0.5),
}


@pytest.mark.parametrize("name", INTEGERS)
def test_results_are_pytorchs(torch, name):
    ours, theirs = (r if isinstance(r, tuple) else (r,) for r in (INTEGERS[name](tinytorch), INTEGERS[name](torch)))
    for a, b in zip(ours, theirs):
        assert a.dtype.name == str(b.dtype).removeprefix("torch.") and a.shape == b.shape
        assert (
            a.tolist() == pytest.approx(b.tolist())
            if a.ndim < 2
            else torch.allclose(torch.tensor(a.tolist(), dtype=b.dtype), b)
        )


@pytest.mark.parametrize(
    "name, args",
    [
        *((n, ()) for n in ("celu_", "elu_", "hardtanh_", "leaky_relu_", "relu_", "rrelu_", "selu_")),
        ("threshold_", (1.0, 2.0)),
        ("elu_", (0.5,)),
    ],
)
def test_activations_in_place(torch, name, args):
    ours, theirs = tinytorch.tensor([-1.0, 0.5, 3.0]), torch.tensor([-1.0, 0.5, 3.0])
    assert getattr(F, name)(ours, *args) is ours
    getattr(torch.nn.functional, name)(theirs, *args)
    assert ours.tolist() == pytest.approx(theirs.tolist())
    with pytest.raises(TypeError):
        getattr(F, name)("a", *args)


def test_sparse_gradients_by_frequency():
    """They are refused, as by PyTorch, when they are computed."""
    weight = tinytorch.ones(3, 2, requires_grad=True)
    rows = F.embedding(tinytorch.tensor([0, 2]), weight, sparse=True, scale_grad_by_freq=True)
    with pytest.raises(RuntimeError, match="scale_grad_by_freq"):
        rows.sum().backward()


def _done_or_refused(call):
    try:
        return call()
    except (RuntimeError, TypeError, OverflowError) as exc:
        return type(exc), str(exc)


@pytest.mark.parametrize("number", [0, 1, -1, 7, 255, 2**31, -(2**62), 2**63 - 1, -(2**63), 2**63, 2**64])
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float32", "float64", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", ["add_", "sub_", "mul_", "div_", "pow_", "bitwise_xor_", "eq_"])
def test_an_integer_in_place(name, dtype, number):
    """What C is told at once does what a view does, which goes the long way: values, versions, refusals."""
    x = tinytorch.tensor([0, 1, 3, 100]).to(getattr(tinytorch, dtype))
    whole, part = x.clone(), x.repeat(2)[4:]
    version = whole._version
    quick, slow = (_done_or_refused(lambda t=t: getattr(t, name)(number)) for t in (whole, part))
    assert str(whole.tolist()) == str(part.tolist())  # NaNs, too
    if isinstance(slow, tuple):
        assert quick == slow and whole._version == version
    else:
        assert quick is whole and slow is part and whole._version == version + 1
