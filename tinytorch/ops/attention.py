"""Scaled dot product attention: a kernel that works in tiles, and the same as a composition, which holds all scores.

With S = scale Q K^T, P = softmax(S + mask), O = P V and g the gradient of O: dV = P^T g, dP = g V^T,
dS = P (dP - sum(P dP)), dQ = scale dS K and dK = scale dS^T Q, where the sums over a row, P dP, are those of g O
(Dao, Fu, Ermon, Rudra and Re 2022, arXiv:2205.14135).
"""

from __future__ import annotations

import math

from ..backends.cpu import error, ffi, lib
from ..dtypes import ALL, FLOATING
from ..dtypes import bool as bool_
from ..dtypes import float32
from ..generator import pointer
from ..tensor import Tensor, attempted, gives_array, gives_two
from .softmax import _softmax
from .convert import in_dtype
from .declare import primitive
from .dropout import dropped
from .random import _MASK
from .shape import broadcast_shapes

NULL = ffi.NULL
OP = "scaled_dot_product_attention"
WIDEST = 256  # head that CUDA's kernel takes

# The first that can compute a call does, by the names of nn.attention.SDPBackend; OWN are one kernel.
ALL_BACKENDS = ("CUDNN_ATTENTION", "FLASH_ATTENTION", "EFFICIENT_ATTENTION", "MATH")
OWN = ("FLASH_ATTENTION", "EFFICIENT_ATTENTION")
chosen: list[tuple[str, ...]] = [ALL_BACKENDS]


def _weights(query, key, mask, scale: float, causal: bool):
    """softmax(query key^T scale + mask) of (..., L, S). A row in which all is masked is 0, and so are its gradients."""
    scores = (query * scale) @ key.mT
    if causal:
        unseen = scores.detach().new_ones(tuple(scores.shape[-2:]), dtype=bool_).tril().logical_not()
        return _softmax(scores.masked_fill(unseen, -math.inf), -1)
    if mask is None:
        return _softmax(scores, -1)
    scores = scores.masked_fill(mask.logical_not(), -math.inf) if mask.dtype is bool_ else scores + mask
    blocked = (scores.detach() == -math.inf).all(-1, keepdim=True)
    return _softmax(scores.masked_fill(blocked, 0), -1).masked_fill(blocked, 0)


def _repeated(query, key, value):
    """The three, with a head of keys and values for each head of queries."""
    if query._h.ndim > 2 and query.shape[-3] != key.shape[-3]:
        times = query.shape[-3] // key.shape[-3]
        key, value = key.repeat_interleave(times, -3), value.repeat_interleave(times, -3)
    return query, key, value


def _composed(query, key, value, mask, scale: float, causal: bool, p: float):
    """Attention by its definition, for any number of dimensions of heads; half types are computed in float32."""
    dtype, wide = query.dtype, ALL[query.dtype.compute]
    query, key, value = in_dtype(query, wide), in_dtype(key, wide), in_dtype(value, wide)
    if mask is not None and mask.dtype is not bool_:
        mask = in_dtype(mask, wide)
    query, key, value = _repeated(query, key, value)
    weights = _weights(query, key, mask, scale, causal)
    return in_dtype((dropped(weights, p) if p > 0 else weights) @ value, dtype)


_forward, _backward = gives_two(lib.tt_attention), gives_array(lib.tt_attention_backward)


def _drawn(weights, keep: float, seed: int, draw: int, place):
    """What the kernel has multiplied ``weights`` by, to drop some: the same numbers of the stream."""
    kept = attempted.tt_empty_like(weights._h, weights._h.dtype)
    stream = ffi.new("tt_generator *", (seed, draw, place))
    if lib.tt_random(kept._h, _MASK, stream, keep, 1 / keep if keep else 0, -1) < 0:
        raise error(OP)
    return kept


def _formula(g, query, key, value, mask, how, edges):
    """In differentiable operations, on all scores."""
    scale, causal, keep, *drawn, _ = how
    dtypes, wide = (query.dtype, key.dtype, value.dtype), ALL[query.dtype.compute]
    g, query, key, value = (in_dtype(x, wide) for x in (g, query, key, value))
    heads, of_keys = query.shape[1], key.shape[1]
    query, key, value = _repeated(query, key, value)
    p = _weights(query, key, mask, scale, causal)
    kept = _drawn(p.detach(), keep, *drawn) if keep < 1 else None
    grads = [None, None, (p if kept is None else p * kept).mT @ g]
    if edges[0] is not None or edges[1] is not None:
        dp = g @ value.mT if kept is None else g @ value.mT * kept
        ds = p * (dp - (p * dp).sum(-1, keepdim=True)) * scale
        grads[:2] = ds @ key, ds.mT @ query
    if heads != of_keys:
        sizes = of_keys, heads // of_keys
        grads[1:] = (x if x is None else x.unflatten(1, sizes).sum(2) for x in grads[1:])
    return [None if edge is None else in_dtype(x, dtype) for x, dtype, edge in zip(grads, dtypes, edges, strict=True)]


def _first_order(g, query, key, value, mask, how, out, lse, edges):
    operands = g._h, query._h, key._h, value._h, out._h, lse._h, NULL if mask is None else mask._h
    grads = _backward(*operands, *how, ffi.new("tt_array *[3]"))
    return _formula(g, query, key, value, mask, how, edges) if grads is None else grads


@primitive(
    name="scaled_dot_product_flash_attention_for_cpu",
    extra=("lse",),
    inputs=("query", "key", "value"),
    vjp=_formula,
    first_order=_first_order,
)
def _in_tiles(query, key, value, mask, how):
    both = _forward(query._h, key._h, value._h, NULL if mask is None else mask._h, *how)
    if both is None:
        raise error(OP)
    return both


def _in_four_dimensions(x: Tensor) -> Tensor:
    """(N, H, rows, columns) of a tensor of two dimensions or more."""
    ndim = x._h.ndim
    if ndim == 4:
        return x
    if ndim > 4:
        return x.reshape(math.prod(x.shape[:-3]), *x.shape[-3:])
    return x[None] if ndim == 3 else x[None, None]


def _tiled(query, key, value, mask, scale: float, causal: bool, p: float, kernel: int):
    """Attention by the kernel, for any number of dimensions of heads, which are alike but for groups."""
    batch = tuple(query.shape[:-2])
    if mask is not None:
        if mask.dtype is not bool_:
            mask = in_dtype(mask, ALL[query.dtype.compute])
        if len(batch) > 2 and mask._h.ndim > 2:
            mask = mask.expand(*batch, *mask.shape[-2:])
        mask = _in_four_dimensions(mask)
    drawn = 0, 0, NULL
    if p > 0:
        generator = pointer(None, OP, query._h.storage.device)
        drawn = generator.seed, lib.tt_take_draws(generator, 1), generator.place
    operands = (_in_four_dimensions(x) for x in (query, key, value))
    out = _in_tiles(*operands, mask, (scale, causal, 1.0 - p, *drawn, kernel))[0]
    if len(batch) == 2:
        return out
    return out.unflatten(0, batch[:-1]) if len(batch) > 2 else out[0] if batch else out[0, 0]


def _check(query, key, value, mask, p: float, causal: bool) -> None:
    for name, x in (("query", query), ("key", key), ("value", value), ("attn_mask", mask)):
        if not isinstance(x, Tensor) and (name != "attn_mask" or x is not None):
            raise TypeError(f"{OP}(): argument '{name}' must be Tensor, not {type(x).__name__}")
    if causal and mask is not None:
        raise RuntimeError(f"{OP}: Explicit attn_mask should not be set when is_causal=True")
    q, k, v = query._h, key._h, value._h
    if min(q.ndim, k.ndim, v.ndim) < 2:
        raise RuntimeError(
            f"{OP}: expected query, key and value of at least 2 dimensions, got {q.ndim}, {k.ndim} and {v.ndim}"
        )
    if not q.dtype == k.dtype == v.dtype:
        raise RuntimeError(
            f"{OP}: Expected query, key, and value to have the same dtype, but got query.dtype: {query.dtype.name} "
            f"key.dtype: {key.dtype.name} and value.dtype: {value.dtype.name} instead."
        )
    if mask is not None and mask.dtype not in (bool_, float32, query.dtype):
        raise RuntimeError(
            f"{OP}: Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{mask.dtype.name} and query.dtype: {query.dtype.name} instead."
        )
    if mask is not None and mask._h.ndim < 2 and q.ndim == k.ndim == v.ndim == 4 and not p:  # of PyTorch's kernel alone
        raise IndexError(f"{OP}: expected attn_mask of at least 2 dimensions, got {mask._h.ndim}")
    if not 0 <= p <= 1:
        raise RuntimeError(f"{OP}: dropout probability has to be between 0 and 1, but got {p}")


def _for_groups(query, key, value):
    """Keys and values of as many heads as each other, which the kernel takes; a group of queries' heads shares them."""
    if min(query._h.ndim, key._h.ndim, value._h.ndim) < 3:
        raise IndexError(f"{OP}: enable_gqa needs a dimension of heads in query, key and value")
    heads, of_keys, of_values = query.shape[-3], key.shape[-3], value.shape[-3]
    if not of_keys or not of_values or heads % of_keys or heads % of_values:
        raise RuntimeError(
            f"{OP}: Number of heads in key and value must divide the number of heads in query, but got {heads} of "
            f"query, {of_keys} of key and {of_values} of value"
        )
    if of_keys != of_values:
        key, value = key.repeat_interleave(heads // of_keys, -3), value.repeat_interleave(heads // of_values, -3)
    return key, value


def scaled_dot_product_attention(
    query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False
):
    """softmax(query key^T scale + mask) value: query (..., L, E), key (..., S, E), value (..., S, Ev); ``attn_mask``,
    bool (True takes part) or added, broadcasts to (..., L, S); the scale is 1 / sqrt(E) by default. A kernel works in
    tiles and never holds all L times S scores, unless the mask requires grad, a second derivative is asked for, or, on
    CUDA devices, heads have more than 256 columns; there cuDNN computes half types without mask and dropout.
    ``nn.attention.sdpa_kernel`` chooses. Follows ``torch.nn.functional.scaled_dot_product_attention``.

    Args:
        query: a tensor (*, L, E)
        key: a tensor (*, S, E)
        value: a tensor (*, S, Ev)
        attn_mask: a bool or floating tensor that broadcasts to (*, L, S), or None
        dropout_p: the probability of a weight to become 0
        is_causal: whether a position sees only those up to its own
        scale: a number that multiplies the products
        enable_gqa: whether keys and values may have fewer heads, each for a group of queries'
    Returns:
        A tensor (*, L, Ev); a row in which all is masked is 0.
    Raises:
        RuntimeError: shapes or dtypes do not match, a mask is given with ``is_causal``, or no backend is enabled
    """
    _check(query, key, value, attn_mask, dropout_p, is_causal)
    if attn_mask is not None and attn_mask._h.ndim < 2:
        attn_mask = attn_mask.reshape(1, -1)
    if enable_gqa:
        key, value = _for_groups(query, key, value)
    query, key, value = _broadcast(query, key, value, attn_mask, enable_gqa)
    if scale is None:
        scale = 1 / math.sqrt(query.shape[-1]) if query.shape[-1] else 1.0
    operands = query, key, value, attn_mask, float(scale), bool(is_causal), float(dropout_p)
    for backend in chosen[0]:
        if backend == "MATH":
            return _composed(*operands)
        if backend == "CUDNN_ATTENTION" and not _may_be_librarys(query, attn_mask, dropout_p):
            continue
        if _has_kernel(query, key, value, attn_mask):
            return _tiled(*operands, _kernel_of(backend))
    raise RuntimeError(
        f"{OP}: No available kernel: of the backends that sdpa_kernel has left, {list(chosen[0])}, none can compute "
        "this call. The one in tiles takes floating tensors of one device, and a mask that does not require grad; "
        f"on CUDA devices heads of up to {WIDEST} columns, and cuDNN's half types without mask and dropout"
    )


def _may_be_librarys(query, mask, p: float) -> bool:
    return query._h.storage.device > 0 and query.dtype.itemsize == 2 and mask is None and not p


def _kernel_of(backend: str) -> int:
    """What the C side is asked for."""
    if backend != "CUDNN_ATTENTION":
        return lib.TT_ATTENTION_OWN
    return lib.TT_ATTENTION_ANY if any(b in OWN for b in chosen[0]) else lib.TT_ATTENTION_LIBRARY


def _has_kernel(query, key, value, mask) -> bool:
    h, k, v = query._h, key._h, value._h
    device = h.storage.device
    if not FLOATING[h.dtype] or not device == k.storage.device == v.storage.device:
        return False
    if device and max(h.shape[h.ndim - 1], v.shape[v.ndim - 1]) > WIDEST:
        return False
    return mask is None or (not mask.requires_grad and mask._h.storage.device == device)


def _broadcast(query, key, value, mask, grouped: bool):
    """The three with equal sizes before the last two, but for the heads of groups; checks them, and the mask's."""
    shapes = q, k, v = tuple(query.shape), tuple(key.shape), tuple(value.shape)
    if q[-1] != k[-1] or k[-2] != v[-2]:
        raise RuntimeError(
            f"{OP}: query {q}, key {k} and value {v} do not match: expected sizes (*, L, E), (*, S, E) and (*, S, Ev)"
        )
    own = 3 if grouped and q[-3] != k[-3] else 2  # dimensions that are not broadcast
    batch = q[:-own]
    if not batch == k[:-own] == v[:-own]:
        batch = tuple(broadcast_shapes(*(s[:-own] for s in shapes)))
        query, key, value = (x.expand(*batch, *x.shape[-own:]) for x in (query, key, value))
    if mask is not None:
        whole = (*batch, *q[-own:-1], k[-2])
        if tuple(broadcast_shapes(tuple(mask.shape), whole)) != whole:
            raise RuntimeError(f"{OP}: attn_mask of shape {tuple(mask.shape)} does not broadcast to {whole}")
    return query, key, value
