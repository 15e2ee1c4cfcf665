"""Tensors of 64 dimensions have the CPU's bits on a device, also where more of them cannot be merged than a kernel has
room for; some operators refuse these."""

import pytest

import tinytorch
from tinytorch.nn import functional

MOST = 64
MANY = 18  # more than a kernel has room for, even less one


def spread(places, size=2):
    return tuple(size if d in places else 1 for d in range(MOST))


SOME = (0, 1, 2, 31, 61, 62, 63)
PLACES = tuple(range(MOST - 1, MOST - 1 - 3 * MANY, -3))
BACKWARDS = tuple(range(MOST - 1, -1, -1))
LAYOUTS = {  # a shape, and a view of it
    "ones": (spread(()), lambda x: x),
    "some of 2": (spread(SOME), lambda x: x),
    "transposed": (spread(SOME), lambda x: x.permute(BACKWARDS)),
    "many reversed": ((2,) * MANY, lambda x: x.permute(*range(MANY - 1, -1, -1)).view(spread(PLACES))),
    "many, every other expanded": (spread(PLACES[::2]), lambda x: x.expand(spread(PLACES))),
}
OPERATORS = {
    "add": lambda x: x + x,
    "broadcast": lambda x: x + x[..., :1],
    "where": lambda x: tinytorch.where(x > 0, x, -1),
    "contiguous": lambda x: x.contiguous(),
    "cast": lambda x: x.double(),
    "write": lambda x: tinytorch.zeros(x.shape, device=x.device)[..., ::1].copy_(x),
    "sum": lambda x: x.sum(),
    "sum of the last": lambda x: x.sum(63),
    "sum of some": lambda x: x.sum((0, 31, -1), keepdim=True),
    "sum of every other": lambda x: x.sum(tuple(range(1, MOST, 2))),
    "argmax": lambda x: x.max(-1).indices,
    "var": lambda x: x.var(correction=0),
    "cumsum": lambda x: x.cumsum(-1),
    "softmax": lambda x: x.softmax(-1),
    "nonzero": lambda x: (x > 2).nonzero(),
    "cat": lambda x: tinytorch.cat([x, x], -1),
    "matmul": lambda x: x[..., :1] @ x[..., :1, :],
    "one_hot": lambda x: functional.one_hot((x > 0).long().select(3, 0), 2),
}
MERGED = {  # of dimensions that their kernels have room for
    "index": lambda x: x[..., tinytorch.zeros(2, dtype=tinytorch.int64, device=x.device)],
    "gather": lambda x: x.gather(-1, (x > 9).long()),
    "flip": lambda x: x.flip(0, 63),
    "roll": lambda x: x.roll(1, 63),
    "sort": lambda x: x.sort(-1).values,
    "tril": lambda x: x.tril(),
}


def equal(compute, layout):
    shape, view = LAYOUTS[layout]
    x = tinytorch.randn(shape)
    expected, found = compute(view(x)), compute(view(x.cuda()))
    assert found.device.type == "cuda" and found.shape == expected.shape
    assert bool((found.cpu() == expected).all())


@pytest.mark.parametrize("name", OPERATORS | MERGED)
def test_has_the_bits_of_the_cpu(gpu, name):
    for layout in list(LAYOUTS) if name in OPERATORS else ("ones", "some of 2", "transposed"):
        equal((OPERATORS | MERGED)[name], layout)


@pytest.mark.parametrize("name", OPERATORS)
def test_fused(gpu, name):
    for layout in ("some of 2", "many reversed"):
        with tinytorch.fuse():
            equal(lambda x: OPERATORS[name](x * 2), layout)


def reversed_again(x):
    """The same elements, none of them shared, with the last dimension outermost in memory."""
    return x.permute(BACKWARDS).contiguous().permute(BACKWARDS)


REFUSED = {
    "index": lambda x: x[..., tinytorch.zeros(2, dtype=tinytorch.int64, device="cuda")],
    "index_put": lambda x: reversed_again(x).__setitem__((..., tinytorch.tensor([0]).cuda()), 1.0),
    "gather": lambda x: x.gather(0, (x > 9).long()),
    "flip": lambda x: x.flip(63),
    "roll": lambda x: x.contiguous().roll((1,) * MANY, PLACES),
    "sort": lambda x: x.sort(63),
    "triu": lambda x: reversed_again(x).triu_(),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_kernel_has_no_room_for_is_refused(gpu, name):
    shape, view = LAYOUTS["many, every other expanded"]
    x = view(tinytorch.randn(shape).cuda())
    with pytest.raises(NotImplementedError, match="more than 16 dimensions that cannot be merged, on a CUDA device"):
        REFUSED[name](x)
