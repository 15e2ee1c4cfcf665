"""Rows of half types become float32 in the cache: softmax and normalisation have the bits of float32's, rounded, in any
layout, with any threads."""

import numpy as np
import pytest
import tinytorch as tt
from tinytorch.nn import functional as F
from tinytorch.ops.softmax import attempted, computed

HALVES = [tt.bfloat16, tt.float16]
# Several rows at once, of which the last are fewer; the longest in the cache, and longer; parts of columns; none.
SHAPES = [
    (4, 3),
    (1100, 70),
    (21, 1000),
    (2, 8192),
    (2, 8193),
    (3, 200, 77),
    (2, 256, 3),
    (2, 300, 40),
    (600, 250),
    (1100, 130),
    (5, 0),
    (0, 5),
]


@pytest.fixture(params=[1, 2])
def threads(request):
    before = tt.get_num_threads()
    tt.set_num_threads(request.param)
    yield
    tt.set_num_threads(before)


def made(*shape, dtype, strided=False):
    t = tt.from_numpy(np.random.default_rng(len(shape)).standard_normal(shape)).to(dtype)
    return t.transpose(0, -1).contiguous().transpose(0, -1) if strided else t


def same(found, wanted):
    ours, theirs = (t.detach().to(found.dtype).double().numpy().tobytes() for t in (found, wanted))
    assert ours == theirs


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_softmax(shape, dtype, strided, threads):
    x, g = (made(*shape, dtype=dtype, strided=strided) for _ in range(2))
    x.requires_grad_()
    for dim in range(len(shape)):
        for op in (tt.softmax, tt.log_softmax):
            out = op(x, dim)
            same(out, op(x.float(), dim))
            wide, log = (g.float(), out.detach().float()), op is tt.log_softmax  # of the result, which is rounded
            wanted = computed(attempted.tt_softmax_backward(*(t._h for t in wide), dim, log), None)
            same(tt.autograd.grad(out, x, g)[0], wanted)


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_norms(shape, dtype, strided, threads):
    n = shape[-1]
    operands = [made(*shape, dtype=dtype, strided=strided), made(n, dtype=dtype), made(n, dtype=dtype)]
    g = made(*shape, dtype=dtype, strided=strided)
    for op, count in ((F.layer_norm, 3), (F.rms_norm, 2)):
        narrow = [t.detach().requires_grad_() for t in operands[:count]]
        wide = [t.detach().float().requires_grad_() for t in operands[:count]]
        out, wanted = op(narrow[0], (n,), *narrow[1:]), op(wide[0], (n,), *wide[1:])
        same(out, wanted)
        for ours, theirs in zip(tt.autograd.grad(out, narrow, g), tt.autograd.grad(wanted, wide, g.float())):
            same(ours, theirs)


# Channels of an element, fewer and more than one row of sums, longer than what is cast at once; of one block, and of
# several; fewer groups than threads.
GROUPS = [
    ((2, 300), 3),
    ((2, 600), 2),
    ((2, 6000), 2),
    ((33, 4, 2), 2),
    ((2, 6, 5, 7), 3),
    ((3, 8, 40, 40), 2),
    ((1, 4, 3000), 1),
    ((2, 4, 2, 3, 3), 4),
]


def grouped(x, groups, weight, bias):
    rows = x.reshape(x.shape[0], groups, -1)
    rows = rows - rows.mean(-1, keepdim=True)
    h = (rows / ((rows * rows).mean(-1, keepdim=True) + 1e-5).sqrt()).reshape(x.shape)
    along = (-1, *[1] * (x.ndim - 2))
    return h * weight.reshape(along) + bias.reshape(along)


@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.parametrize("shape,groups", GROUPS, ids=str)
def test_group_norm(shape, groups, strided, threads):
    dtype = tt.float64
    operands = [made(*shape, dtype=dtype, strided=strided), *(made(shape[1], dtype=dtype) + k for k in (1, 2))]
    operands, g = [t.requires_grad_() for t in operands], made(*shape, dtype=dtype, strided=strided)
    out, wanted = F.group_norm(operands[0], groups, *operands[1:]), grouped(operands[0], groups, *operands[1:])
    found = (out, *tt.autograd.grad(out, operands, g))
    for ours, theirs in zip(found, (wanted, *tt.autograd.grad(wanted, operands, g))):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dtype,parameters", [(d, p) for d in HALVES for p in (d, tt.float32)], ids=str)
@pytest.mark.parametrize("shape,groups", GROUPS, ids=str)
def test_group_norm_of_halves(shape, groups, dtype, parameters, threads):
    operands = [made(*shape, dtype=dtype), *(made(shape[1], dtype=parameters) + k for k in (1, 2))]
    g = made(*shape, dtype=dtype)
    narrow, wide = ([t.detach().to(d or t.dtype).requires_grad_() for t in operands] for d in (None, tt.float32))
    out, wanted = (F.group_norm(x, groups, *affine) for x, *affine in (narrow, wide))
    same(out, wanted)
    for ours, theirs in zip(tt.autograd.grad(out, narrow, g), tt.autograd.grad(wanted, wide, g.float())):
        same(ours, theirs)


@pytest.mark.parametrize(
    "op", [lambda x: F.layer_norm(x, (32,)), lambda x: F.group_norm(x, 4)], ids=["layer_norm", "group_norm"]
)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_formulas_of_halves_are_float32(dtype, op):
    """Under create_graph, too: differences from a mean of 100 would be rounding."""
    x, g = (made(5, 8, 32, dtype=dtype) + 100).requires_grad_(), made(5, 8, 32, dtype=dtype).cos()
    plain, formula = (tt.autograd.grad(op(x), x, g, create_graph=c)[0].detach().float() for c in (False, True))
    assert (plain - formula).abs().max() < 0.01 * plain.abs().max()


@pytest.mark.parametrize(
    "op",
    [
        lambda x: x.softmax(-1),
        lambda x: x.softmax(0),
        lambda x: F.layer_norm(x, (8192,)),
        lambda x: F.group_norm(x.reshape(4, 64, 8192), 8),
    ],
)
@pytest.mark.parametrize("dtype", HALVES, ids=str)
def test_rows_of_half_types_are_not_copied(dtype, op):
    """A result takes its own memory, and no more of the size of the input."""
    x = tt.randn(256, 8192).to(dtype).requires_grad_()
    size = 2 * x.numel()
    tt.cpu.reset_peak_memory_stats()
    before = tt.cpu.memory_allocated()
    out = op(x)
    assert tt.cpu.max_memory_allocated() - before < 1.5 * size
    tt.autograd.grad(out, x, tt.ones_like(out))
    assert tt.cpu.max_memory_allocated() - before < 4 * size  # with the result, its gradient and the input's
