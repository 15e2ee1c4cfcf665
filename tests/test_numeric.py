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
