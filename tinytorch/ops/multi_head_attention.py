"""Attention of several heads, each on columns of its own of projections of query, key and value (Vaswani et al. 2017,
arXiv:1706.03762)."""

from __future__ import annotations

import math
import warnings

from ..dtypes import bool as bool_
from ..tensor import Tensor
from .softmax import _softmax
from .attention import scaled_dot_product_attention
from .create import zeros
from .dropout import dropped
from .join import cat
from .linear import linear

OP = "multi_head_attention_forward"


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AssertionError(message)


def _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads: int) -> bool:
    """Checks the numbers of dimensions against each other."""
    ndim = query._h.ndim
    if ndim not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {ndim}-D query tensor")
    kind = "batched (3-D)" if ndim == 3 else "unbatched (2-D)"
    _require(
        key._h.ndim == value._h.ndim == ndim,
        f"For {kind} `query`, expected `key` and `value` to be {ndim}-D but found {key._h.ndim}-D and "
        f"{value._h.ndim}-D tensors respectively",
    )
    if key_padding_mask is not None:
        _require(
            key_padding_mask._h.ndim == ndim - 1,
            f"For {kind} `query`, expected `key_padding_mask` to be `None` or {ndim - 1}-D but found "
            f"{key_padding_mask._h.ndim}-D tensor instead",
        )
    if attn_mask is not None:
        _require(
            attn_mask._h.ndim in (2, 3),
            f"For {kind} `query`, expected `attn_mask` to be `None`, 2-D or 3-D but found {attn_mask._h.ndim}-D tensor "
            "instead",
        )
        if ndim == 2 and attn_mask._h.ndim == 3:
            expected = num_heads, query.shape[0], key.shape[0]
            _require(
                tuple(attn_mask.shape) == expected,
                f"Expected `attn_mask` shape to be {expected} but got {tuple(attn_mask.shape)}",
            )
    return ndim == 3


def added_mask(mask: Tensor | None, name: str, dtype, other: Tensor | None = None) -> Tensor | None:
    """A mask as numbers to be added to scores: of a bool one minus infinity where it holds. ``other``: the mask that it
    goes with."""
    if mask is None:
        return None
    _require(
        mask.dtype is bool_ or mask.dtype.is_floating_point, f"only bool and floating types of {name} are supported"
    )
    if other is not None and other.dtype is not mask.dtype:
        warnings.warn(
            f"Support for mismatched {name} and the other mask is deprecated. Use same type for both instead.",
            stacklevel=4,
        )
    if mask.dtype is bool_:
        return zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(mask, -math.inf)
    return mask


def _projected(query, key, value, weights, bias, shared: bool):
    """Query, key and value times their weights: a matrix of three parts, or one matrix each."""
    parts = (None, None, None) if bias is None else bias.chunk(3)
    if not shared:
        return [linear(x, w, b) for x, w, b in zip((query, key, value), weights, parts, strict=True)]
    if query is key and key is value:  # one product
        return linear(query, weights, bias).chunk(3, -1)
    size = query.shape[-1]
    if key is value:
        rest = None if bias is None else bias[size:]
        return [linear(query, weights[:size], parts[0]), *linear(key, weights[size:], rest).chunk(2, -1)]
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weights.chunk(3), parts, strict=True)]


def _heads(x, heads: int):
    """(length, N, E) as (N, heads, length, E / heads)."""
    return x.unflatten(-1, (heads, x.shape[-1] // heads)).permute(1, 2, 0, 3)


def _one_more(mask):
    """A mask, or none, with a further key, which is seen."""
    return None if mask is None else cat([mask, mask.new_zeros((*mask.shape[:-1], 1))], -1)


def _four_dimensional(mask, batch: int, heads: int, rows: int, keys: int):
    """(L, S) or (N heads, L, S) as it broadcasts to (N, heads, L, S)."""
    if mask is None:
        return None
    shape, ndim = tuple(mask.shape), mask._h.ndim
    wanted = (rows, keys) if ndim == 2 else (batch * heads, rows, keys)
    if shape != wanted:
        raise RuntimeError(f"The shape of the {ndim}D attn_mask is {shape}, but should be {wanted}.")
    return mask[None, None] if ndim == 2 else mask.unflatten(0, (batch, heads))


def _static(x, name: str, batch: int, heads: int, width: int):
    """Keys or values that a caller has projected, (N heads, S, E / heads), as (N, heads, S, E / heads)."""
    _require(x.shape[0] == batch * heads, f"expecting {name}.size(0) of {batch * heads}, but got {x.shape[0]}")
    _require(x.shape[2] == width, f"expecting {name}.size(2) of {width}, but got {x.shape[2]}")
    return x.unflatten(0, (batch, heads))


def multi_head_attention_forward(
    query,
    key,
    value,
    embed_dim_to_check,
    num_heads,
    in_proj_weight,
    in_proj_bias,
    bias_k,
    bias_v,
    add_zero_attn,
    dropout_p,
    out_proj_weight,
    out_proj_bias,
    training=True,
    key_padding_mask=None,
    need_weights=True,
    attn_mask=None,
    use_separate_proj_weight=False,
    q_proj_weight=None,
    k_proj_weight=None,
    v_proj_weight=None,
    static_k=None,
    static_v=None,
    average_attn_weights=True,
    is_causal=False,
):
    """Projects query (L, N, E), key and value (S, N, ...), lets each of ``num_heads`` heads attend, and projects what
    they find, side by side. Without N, tensors have two dimensions. Follows
    ``torch.nn.functional.multi_head_attention_forward``.

    Args:
        embed_dim_to_check: E
        num_heads: how many heads; they divide E
        in_proj_weight: (3 E, E), the weights of the three projections; or see ``use_separate_proj_weight``
        in_proj_bias: (3 E), or None
        bias_k: (1, 1, E), a further key, or None
        bias_v: (1, 1, E), its value, or None
        add_zero_attn: whether there is a further key of zeros
        dropout_p: the probability of a weight to become 0, while ``training``
        out_proj_weight: (E, E)
        out_proj_bias: (E), or None
        training: whether there is dropout
        key_padding_mask: (N, S), bool (True is left out) or added
        need_weights: whether the weights are a result: else attention works in tiles
        attn_mask: (L, S) or (N num_heads, L, S), bool (True is left out) or added
        use_separate_proj_weight: whether the projections have weights of their own
        q_proj_weight: (E, E)
        k_proj_weight: (E, the size of keys)
        v_proj_weight: (E, the size of values)
        static_k: (N num_heads, S, E / num_heads), keys instead of the projected ones
        static_v: likewise, values
        average_attn_weights: whether the weights are the mean over heads
        is_causal: a hint that ``attn_mask`` lets a position see those up to its own
    Returns:
        (L, N, E), and the weights (N, L, S), or (N, num_heads, L, S), or None.
    Raises:
        AssertionError: sizes or dimensions do not match
        RuntimeError: the mask is of another shape, or ``is_causal`` is given without one
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    if not batched:
        same = query is key, key is value
        query = query[:, None]
        key = query if same[0] else key[:, None]
        value = key if same[1] else value[:, None]
        if key_padding_mask is not None:
            key_padding_mask = key_padding_mask[None]
    rows, batch, size = query.shape
    _require(size == embed_dim_to_check, f"was expecting embedding dimension of {embed_dim_to_check}, but got {size}")
    width = size // num_heads
    _require(width * num_heads == size, f"embed_dim {size} not divisible by num_heads {num_heads}")
    if use_separate_proj_weight:
        _require(
            tuple(key.shape[:2]) == tuple(value.shape[:2]),
            f"key's sequence and batch dims {tuple(key.shape[:2])} do not match value's {tuple(value.shape[:2])}",
        )
        weights = q_proj_weight, k_proj_weight, v_proj_weight
        for name, w in zip(("q_proj_weight", "k_proj_weight", "v_proj_weight"), weights, strict=True):
            _require(w is not None, f"use_separate_proj_weight is True but {name} is None")
    else:
        _require(key.shape == value.shape, f"key shape {tuple(key.shape)} does not match value shape {value.shape}")
        _require(in_proj_weight is not None, "use_separate_proj_weight is False but in_proj_weight is None")
        weights = in_proj_weight

    padding = added_mask(key_padding_mask, "key_padding_mask", query.dtype, attn_mask)
    is_causal = is_causal and padding is None and not need_weights
    mask = None if is_causal else added_mask(attn_mask, "attn_mask", query.dtype)

    q, k, v = _projected(query, key, value, weights, in_proj_bias, not use_separate_proj_weight)
    if mask is not None:
        mask = _four_dimensional(mask, batch, num_heads, rows, k.shape[0] if static_k is None else static_k.shape[1])
    _require((bias_k is None) == (bias_v is None), "bias_k and bias_v must both be given, or neither")
    if bias_k is not None:
        _require(static_k is None, "bias cannot be added to static key.")
        _require(static_v is None, "bias cannot be added to static value.")
        k, v = (cat([x, b.expand(1, batch, size)]) for x, b in ((k, bias_k), (v, bias_v)))
        mask, padding = _one_more(mask), _one_more(padding)
    q = _heads(q, num_heads)
    k = _heads(k, num_heads) if static_k is None else _static(static_k, "static_k", batch, num_heads, width)
    v = _heads(v, num_heads) if static_v is None else _static(static_v, "static_v", batch, num_heads, width)
    if add_zero_attn:
        k, v = (cat([x, x.new_zeros((batch, num_heads, 1, width))], 2) for x in (k, v))
        mask, padding = _one_more(mask), _one_more(padding)
    if padding is not None:
        wanted = batch, k.shape[2]
        _require(
            tuple(padding.shape) == wanted,
            f"expecting key_padding_mask shape of {wanted}, but got {tuple(padding.shape)}",
        )
        mask = padding[:, None, None] if mask is None else mask + padding[:, None, None]

    p = dropout_p if training else 0.0
    if need_weights:
        scores = (q * math.sqrt(1 / width)) @ k.mT
        found = _softmax(scores if mask is None else scores + mask, -1)
        found = dropped(found, p) if p > 0 else found
        out = found @ v
        found = found.mean(1) if average_attn_weights else found
        found = found if batched else found[0]
    else:
        found, out = None, scaled_dot_product_attention(q, k, v, mask, p, is_causal)
    out = linear(out.permute(2, 0, 1, 3).reshape(rows, batch, size), out_proj_weight, out_proj_bias)
    return out if batched else out[:, 0], found
