"""Attention changed by functions, and causal masks as objects: beside PyTorch's."""

import importlib
import sys

import numpy as np
import pytest
from compare import assert_same

import tinytorch as tt

torch = pytest.importorskip("torch")
flex = pytest.importorskip("torch.nn.attention.flex_attention")
importlib.import_module("torch.nn.attention.bias")
importlib.import_module("tinytorch.nn.attention.flex_attention")

BOTH = (tt, torch)
L, S = 5, 7
documents = np.array([0, 0, 1, 1, 1, 2, 2])


def causal(b, h, q, kv):
    return q >= kv


def window(b, h, q, kv):
    return (q - kv).abs() <= 1


def first_head_alone(b, h, q, kv):
    return (h == 0) & (kv < 3)


SCORES = {
    "none": lambda m: None,
    "relative position": lambda m: lambda score, b, h, q, kv: score + (q - kv),
    "soft cap": lambda m: lambda score, b, h, q, kv: 2 * (score / 2).tanh(),
    "a slope for each head": lambda m: lambda score, b, h, q, kv: score - m.tensor([0.5, 0.25])[h] * (q - kv),
    "minus infinity": lambda m: lambda score, b, h, q, kv: m.where(q >= kv, score, -float("inf")),
    "of the batch": lambda m: lambda score, b, h, q, kv: score * (b + 1),
}
MASKS = {
    "none": None,
    "causal": lambda m: causal,
    "window": lambda m: window,
    "rows that see nothing": lambda m: first_head_alone,
    "documents": lambda m: lambda b, h, q, kv: m.tensor(documents)[q] == m.tensor(documents)[kv],
    "or": lambda m: m.nn.attention.flex_attention.or_masks(causal, first_head_alone),
    "and": lambda m: m.nn.attention.flex_attention.and_masks(causal, window),
    "noop": lambda m: m.nn.attention.flex_attention.noop_mask,
}


def operands(m, heads):
    rng = np.random.RandomState(0)
    return [m.tensor(rng.randn(3, *size)) for size in ((2, L, 4), (heads, S, 4), (heads, S, 6))]


def attend(m, score, mask, q, k, v, **more):
    f = m.nn.attention.flex_attention
    mask = None if mask is None else f.create_block_mask(mask(m), 3, 2, L, S, device="cpu", BLOCK_SIZE=4)
    return f.flex_attention(q, k, v, score(m), mask, enable_gqa=k.shape[1] < 2, **more)


PAIRS = [*((score, "causal") for score in SCORES), *(("soft cap", mask) for mask in MASKS)]


@pytest.mark.parametrize("score, mask", PAIRS)
def test_values(score, mask):
    how = SCORES[score], MASKS[mask]
    assert_same(*(attend(m, *how, *operands(m, 1)) for m in BOTH), rtol=1e-5, atol=1e-6)


def test_heads_of_their_own():
    how = SCORES["a slope for each head"], MASKS["window"]
    assert_same(*(attend(m, *how, *operands(m, 2)) for m in BOTH), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("score", SCORES)
def test_gradients(score):
    how = SCORES[score], MASKS["rows that see nothing"]
    inputs = [t[..., :2].clone().requires_grad_() for t in operands(tt, 1)]
    assert tt.autograd.gradcheck(lambda *given: attend(tt, *how, *given), inputs)


def test_what_else_is_returned():
    q, k, v = operands(tt, 2)
    request = tt.nn.attention.flex_attention.AuxRequest(lse=True, max_scores=True)
    plain, aux = attend(tt, SCORES["none"], MASKS["rows that see nothing"], q, k, v, return_aux=request)
    scores = (q.numpy() @ k.numpy().swapaxes(-1, -2) / 2)[:, 0, :, :3]
    assert plain.shape == (3, 2, L, 6) and (aux.lse[:, 1] == -np.inf).all() and (aux.max_scores[:, 1] == -np.inf).all()
    np.testing.assert_allclose(aux.max_scores[:, 0], scores.max(-1), rtol=1e-6)
    np.testing.assert_allclose(aux.lse[:, 0], np.log(np.exp(scores).sum(-1)), rtol=1e-6)
    _, lse = attend(tt, SCORES["none"], MASKS["rows that see nothing"], q, k, v, return_lse=True)
    assert_same(lse, aux.lse)
    request = tt.nn.attention.flex_attention.AuxRequest()
    assert attend(tt, SCORES["none"], None, q, k, v, return_aux=request)[1] == (None, None)


def facts(m, mask, size, separate):
    f = m.nn.attention.flex_attention
    made = f.create_block_mask(mask(m), 2, 3, L, S, device="cpu", BLOCK_SIZE=size, separate_full_blocks=separate)
    part = made[1, 0:2]
    told = [repr(x).replace("tinytorch", "torch") for x in (made, part, made.shape, made.numel(), made.sparsity())]
    tensors = [t for x in (made, part) for t in (x.kv_num_blocks, x.full_kv_num_blocks, x.q_num_blocks, x.to_dense())]
    tensors += [made.kv_indices, made.full_kv_indices, made.q_indices]
    return told, [None if t is None else (str(t.dtype).rpartition(".")[2], t.tolist()) for t in tensors]


@pytest.mark.parametrize("mask", [k for k in MASKS if k != "none"])
def test_block_masks(mask):
    for size in (2, 3, (2, 4), 128):
        for separate in (True, False):
            assert facts(tt, MASKS[mask], size, separate) == facts(torch, MASKS[mask], size, separate)
    ours, theirs = (m.nn.attention.flex_attention.create_mask(MASKS[mask](m), 2, 2, L, S, device="cpu") for m in BOTH)
    assert_same(ours, theirs)


@pytest.mark.parametrize("m", BOTH, ids=["tinytorch", "torch"])
def test_errors(m):
    f = m.nn.attention.flex_attention
    q, k = m.zeros(1, 2, L, 4), m.zeros(1, 2, S, 4)
    mask = f.create_block_mask(causal, 1, 2, L, S, device="cpu", BLOCK_SIZE=4)
    for kind, args, more in (
        (NotImplementedError, (q[0], k[0], k[0]), {}),
        (ValueError, (q, k[:, :1], k[:, :1]), {}),
        (ValueError, (q, k[..., :3], k), {}),
        (ValueError, (q[:, :, :3], k, k), {"block_mask": mask}),
        (RuntimeError, (q, k, k), {"block_mask": mask[:, 0:2]}),
        (ValueError, (q, k, k), {"return_lse": True, "return_aux": f.AuxRequest(lse=True)}),
    ):
        with pytest.raises(kind):
            f.flex_attention(*args, **more)
    with pytest.raises(RuntimeError):
        f.or_masks(causal, 3)


def test_causal_biases():
    sys.modules.pop("tinytorch.nn.attention.bias", None)  # each test begins without subclasses of Tensor
    importlib.import_module("tinytorch.nn.attention.bias")
    for name in ("causal_upper_left", "causal_lower_right"):
        for lengths in ((L, S), (S, S)):
            results = []
            for m in BOTH:
                rng = np.random.RandomState(0)
                q, k = m.tensor(rng.randn(2, 2, lengths[0], 4)), m.tensor(rng.randn(2, 2, lengths[1], 4))
                bias = getattr(m.nn.attention.bias, name)(*lengths)
                out = m.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=bias)
                with pytest.raises(ValueError):
                    m.nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=bias, is_causal=True)
                results.append((out, repr(bias), tuple(bias.shape)[1:]))
            assert_same(results[0][0], results[1][0], rtol=1e-9)
            assert results[0][1:] == results[1][1:]
    for m in BOTH:
        with pytest.raises(AssertionError):
            m.nn.attention.bias.CausalBias(1, 2, 3)
        with pytest.raises(AssertionError):
            m.nn.attention.bias.causal_lower_right(2)
        with pytest.warns(UserWarning, match="NaN"):
            m.nn.attention.bias.causal_lower_right(3, 2)
