"""Attention in tiles against the same as a composition: shapes of several tiles, masks, threads, memory, backends."""

import contextlib
import math

import pytest
from compare import FLOATS

import tinytorch
from tinytorch.autograd import grad, gradcheck, gradgradcheck
from tinytorch.nn.attention import SDPBackend, sdpa_kernel

attend = tinytorch.nn.functional.scaled_dot_product_attention
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}

# (N, H), heads of keys, L, S, E, Ev
SHAPES = [(2, 3, 3, 5, 7, 4, 4), (1, 4, 2, 300, 700, 16, 16), (1, 2, 2, 257, 257, 8, 24), (1, 2, 1, 33, 1100, 8, 8)]
MASKS = {
    "none": lambda n, h, rows, s: {},
    "causal": lambda n, h, rows, s: {"is_causal": True},
    "bool": lambda n, h, rows, s: {"attn_mask": tinytorch.rand(n, 1, rows, s) > 0.5},
    "rows without a key": lambda n, h, rows, s: {"attn_mask": (tinytorch.arange(rows) % 3 > 0)[:, None]},
    "added": lambda n, h, rows, s: {"attn_mask": tinytorch.randn(rows, s)},
    "added to rows": lambda n, h, rows, s: {"attn_mask": tinytorch.randn(h, 1, s)},
    "keys beyond an end": lambda n, h, rows, s: {
        "attn_mask": tinytorch.zeros(rows, s).masked_fill(tinytorch.arange(s) >= (s + 1) // 2, -math.inf)
    },
}


def results(shape, dtype, keywords):
    """The result, and the gradients."""
    n, h, k, rows, s, e, v = shape
    tinytorch.manual_seed(1)
    sizes = (n, h, rows, e), (n, k, s, e), (n, k, s, v), (n, h, rows, v)
    *operands, g = (tinytorch.randn(*size, dtype=getattr(tinytorch, dtype)) for size in sizes)
    for x in operands:
        x.requires_grad_()
    out = attend(*operands, enable_gqa=h != k, **keywords)
    return [out, *grad(out, operands, g)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_tiles_compute_the_composition(shape, dtype, mask):
    n, h, _, rows, s, _, _ = shape
    tinytorch.manual_seed(0)
    keywords = MASKS[mask](n, h, rows, s)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        tiled = results(shape, dtype, keywords)
    with sdpa_kernel(SDPBackend.MATH):
        composed = results(shape, dtype, keywords)
    for ours, theirs in zip(tiled, composed, strict=True):
        bound = TOLERANCE[dtype] * max(1.0, float(theirs.double().abs().max()))
        assert float((ours.double() - theirs.double()).abs().max()) <= bound


def test_bits_do_not_depend_on_threads():
    before = tinytorch.get_num_threads()
    found = []
    try:
        for threads in (1, 2, 5):
            tinytorch.set_num_threads(threads)
            found.append(results((1, 2, 1, 700, 900, 8, 8), "float32", {"is_causal": True}))
    finally:
        tinytorch.set_num_threads(before)
    for other in found[1:]:
        assert all(tinytorch.equal(a, b) for a, b in zip(found[0], other, strict=True))


def test_layouts_are_taken_as_they_lie():
    """Heads split from the columns of one matrix, and joined again without a copy."""
    x = tinytorch.randn(2, 50, 3, 4, 8).requires_grad_()
    q, k, v = (x.select(2, i).transpose(1, 2) for i in range(3))
    out = attend(q, k, v, is_causal=True)
    assert out.transpose(1, 2).is_contiguous()
    plain = attend(*(t.detach().contiguous() for t in (q, k, v)), is_causal=True)
    assert plain.is_contiguous()
    assert tinytorch.equal(out, plain)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_dropout_is_drawn_again_by_position(dtype):
    dtype = getattr(tinytorch, dtype)
    q, k, v = (tinytorch.randn(1, 2, 300, 8, dtype=dtype).requires_grad_() for _ in range(3))
    tinytorch.manual_seed(3)
    out = attend(q, k, v, dropout_p=0.3)
    g = tinytorch.randn_like(out)
    first = grad(out, (q, k, v), g, retain_graph=True)
    formula = grad(out, (q, k, v), g, create_graph=True)  # draws all of the mask
    for a, b in zip(first, formula, strict=True):
        assert tinytorch.allclose(a, b, atol=1e-5)
    tinytorch.manual_seed(3)
    assert tinytorch.equal(attend(q, k, v, dropout_p=0.3), out)
    assert abs(float(attend(q, k, tinytorch.ones_like(v), dropout_p=0.3).mean()) - 1) < 0.02
    assert not attend(q, k, v, dropout_p=1.0).any()


@pytest.mark.parametrize("mode", [contextlib.nullcontext, tinytorch.fuse], ids=["eager", "fused"])
@pytest.mark.parametrize("p", [0.0, 0.4])
def test_second_derivatives(mode, p):
    def call(q, k, v):
        tinytorch.manual_seed(5)
        return attend(q, k, v, mask, p, enable_gqa=True)

    with mode():
        tinytorch.manual_seed(0)
        sizes = (1, 4, 3, 2), (1, 2, 5, 2), (1, 2, 5, 3)
        operands = [tinytorch.randn(*size, dtype=tinytorch.float64).requires_grad_() for size in sizes]
        mask = tinytorch.rand(3, 5) > 0.4
        assert gradcheck(call, operands)
        assert gradgradcheck(call, operands)


@pytest.mark.parametrize("shape", [(2, 3, 3, 65, 65, 4, 4), (1, 2, 1, 33, 90, 8, 8), (1, 2, 1, 300, 90, 8, 4)], ids=str)
def test_what_memory_held_before_does_not_count(shape):
    """Results are written before they are added to."""
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
        first = results(shape, "float32", {"is_causal": True})
        held = [tinytorch.full(x.shape, math.nan) for x in first for _ in range(16)]
        del held
        for x, y in zip(first, results(shape, "float32", {"is_causal": True}), strict=True):
            assert tinytorch.equal(x, y)


def test_never_all_scores():
    """Of 4096 queries and keys the scores alone are 64 MB."""
    q = tinytorch.randn(1, 1, 4096, 16).requires_grad_()
    grad(attend(q, q, q, is_causal=True).sum(), q)  # BLAS has its buffers
    tinytorch.cpu.reset_peak_memory_stats()
    before = tinytorch.cpu.memory_allocated()
    grad(attend(q, q, q, is_causal=True).sum(), q)
    assert tinytorch.cpu.max_memory_allocated() - before < 8 << 20


def test_nan_stays():
    q = tinytorch.randn(1, 1, 3, 4)
    q[0, 0, 1] = math.nan
    out = attend(q, tinytorch.randn(1, 1, 5, 4), tinytorch.randn(1, 1, 5, 4))
    assert out.isnan().any(-1).flatten().tolist() == [False, True, False]


def test_chosen_backends():
    q = tinytorch.randn(1, 2, 3, 4)
    mask = tinytorch.zeros(3, 3, requires_grad=True)
    for backends in (SDPBackend.FLASH_ATTENTION, [SDPBackend.EFFICIENT_ATTENTION]):
        with sdpa_kernel(backends):
            assert attend(q.requires_grad_(), q, q).grad_fn.name().startswith("ScaledDotProductFlashAttention")
            with pytest.raises(RuntimeError, match="No available kernel"):
                attend(q, q, q, mask)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        assert attend(q, q, q).grad_fn.name().startswith("ScaledDotProductFlashAttention")
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION], set_priority=True):
        assert not attend(q, q, q).grad_fn.name().startswith("ScaledDotProduct")
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION), pytest.raises(RuntimeError, match="No available kernel"):
        attend(q, q, q)
    with pytest.raises(AssertionError, match="Backend must be"), sdpa_kernel("MATH"):
        pass
    assert attend(q, q, q).grad_fn.name().startswith("ScaledDotProductFlashAttention")
