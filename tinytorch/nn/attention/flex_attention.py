"""Attention whose scores a function of the program changes. Follows ``torch.nn.attention.flex_attention``.

A ``mask_mod(b, h, q_idx, kv_idx)`` says whether a query sees a key, a ``score_mod(score, b, h, q_idx, kv_idx)`` what
becomes of a score. PyTorch calls them for 0-d tensors, under ``vmap``. Here they are called once, for tensors whose
shapes broadcast to (B, H, L, S): what a function of 0-d tensors does element by element, it does to these as well.

Masks are applied element by element: a BlockMask's blocks say what could be left out, and nothing is.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import NamedTuple

from ...dtypes import bool as bool_
from ...dtypes import float32, float64, int32
from ...ops.create import zeros
from ...ops.ranges import arange
from ...tensor import Tensor
from .. import functional as F

__all__ = [
    "AuxOutput",
    "AuxRequest",
    "BlockMask",
    "and_masks",
    "create_block_mask",
    "create_mask",
    "flex_attention",
    "noop_mask",
    "or_masks",
]


class AuxRequest(NamedTuple):
    """What ``flex_attention`` is to return besides."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """What ``flex_attention`` returns besides: of each query, the logarithm of the sum of its scores' exponentials, and
    the greatest score."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask_mod by which every query sees every key."""
    return batch.new_ones((), dtype=bool_)


def _joined(mask_mods, join: Callable, start: bool, name: str) -> Callable:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def joined(b, h, q_idx, kv_idx):
        seen = b.new_full((), start, dtype=bool_)
        for mod in mask_mods:
            seen = join(seen, mod(b, h, q_idx, kv_idx))
        return seen

    joined.__name__ = name
    return joined


def or_masks(*mask_mods: Callable) -> Callable:
    """The mask_mod by which a key is seen that one of these shows."""
    return _joined(mask_mods, lambda x, y: x | y, False, "or_mask")


def and_masks(*mask_mods: Callable) -> Callable:
    """The mask_mod by which a key is seen that all of these show."""
    return _joined(mask_mods, lambda x, y: x & y, True, "and_mask")


def _places(B: int, H: int, Q_LEN: int, KV_LEN: int, device) -> list[Tensor]:
    """The four indices, of shapes that broadcast to (B, H, Q_LEN, KV_LEN)."""
    sizes = (B, H, Q_LEN, KV_LEN)
    return [arange(n, device=device).view([-1 if k == d else 1 for k in range(4)]) for d, n in enumerate(sizes)]


def create_mask(mod_fn: Callable, B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device=None) -> Tensor:
    """What a mask_mod says of each score, True where a key is seen; or where a score_mod leaves it above minus
    infinity. Returns bools of shape (B, H, Q_LEN, KV_LEN), where None counts as 1."""
    shape = (B or 1, H or 1, Q_LEN, KV_LEN)
    places = _places(*shape, device)
    parameters = inspect.signature(mod_fn).parameters.values()
    if sum(p.default is p.empty and p.kind is not p.VAR_POSITIONAL for p in parameters) == 5:
        return mod_fn(zeros(shape, device=device), *places).isneginf().logical_not().expand(shape)
    return mod_fn(*places).expand(shape)


def _ordered(dense: Tensor) -> tuple[Tensor, Tensor]:
    """Of each row, how many blocks are there, and all numbers of blocks, those first."""
    dense = dense.to(int32)
    return dense.sum(-1).to(int32), dense.argsort(dim=-1, descending=True, stable=True).to(int32)


def _dense(counts: Tensor, indices: Tensor) -> Tensor:
    """1 where a block is there: ``_ordered`` undone."""
    there = arange(indices.shape[-1], device=indices.device) < counts.unsqueeze(-1)
    return there.new_zeros(indices.shape, dtype=int32).scatter_(-1, indices.long(), there.to(int32))


class BlockMask:
    """Which blocks of the scores have elements that are seen. Follows
    ``torch.nn.attention.flex_attention.BlockMask``.

    ``kv_num_blocks`` (B, H, rows) counts the blocks of a row of which a part is seen, ``kv_indices`` (B, H, rows,
    columns) begins with their columns; ``full_kv_num_blocks`` and ``full_kv_indices`` are the same of those that are
    seen entirely; ``q_...`` are the transposes.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (128, 128),
        mask_mod: Callable = noop_mask,
    ):
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        for kind, pair in (("kv", (full_kv_num_blocks, full_kv_indices)), ("q", (full_q_num_blocks, full_q_indices))):
            if (pair[0] is None) != (pair[1] is None):
                raise AssertionError(f"full_{kind}_num_blocks and full_{kind}_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = 128,
        mask_mod: Callable | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
    ) -> BlockMask:
        """A mask from its rows; the transposes are made."""
        if kv_indices.ndim < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else BLOCK_SIZE
        rows = ((kv_num_blocks, kv_indices), (full_kv_num_blocks, full_kv_indices))
        columns = [
            _ordered(_dense(*pair).transpose(-2, -1)) if compute_q_blocks and pair[0] is not None else (None, None)
            for pair in rows
        ]
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        return cls(seq_lengths, *rows[0], *rows[1], *columns[0], *columns[1], size, mask_mod or noop_mask)

    def _tensors(self) -> tuple[Tensor | None, ...]:
        return (
            self.kv_num_blocks,
            self.kv_indices,
            self.full_kv_num_blocks,
            self.full_kv_indices,
            self.q_num_blocks,
            self.q_indices,
            self.full_q_num_blocks,
            self.full_q_indices,
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, L, S)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """How many scores there are."""
        return math.prod(self.shape)

    def sparsity(self) -> float:
        """How many of 100 blocks have nothing that is seen."""
        counts = [n for n in (self.kv_num_blocks, self.full_kv_num_blocks) if n is not None]
        return 100 * (1 - sum(n.sum().item() for n in counts) * math.prod(self.BLOCK_SIZE) / self.numel())

    def to_dense(self) -> Tensor:
        """1 for each block of which something is seen."""
        dense = _dense(self.kv_num_blocks, self.kv_indices)
        return (
            dense if self.full_kv_num_blocks is None else dense | _dense(self.full_kv_num_blocks, self.full_kv_indices)
        )

    def to(self, device) -> BlockMask:
        """The mask with its tensors on ``device``."""
        moved = (None if t is None else t.to(device) for t in self._tensors())
        return BlockMask(self.seq_lengths, *moved, self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index) -> BlockMask:
        """The mask of some batches, heads and rows of blocks. Its mask_mod cannot be called: it would be given other
        indices."""
        index = (*(index if isinstance(index, tuple) else (index,)), *[slice(None)] * 3)[:3]
        sizes = self.kv_num_blocks.shape
        index = tuple(
            slice(i % n, i % n + 1) if isinstance(i, int) and -n <= i < n else i
            for i, n in zip(index, sizes, strict=True)
        )
        parts = [None if t is None else t[index] for t in self._tensors()[:4]]
        return BlockMask.from_kv_blocks(
            *parts,
            self.BLOCK_SIZE,
            _sliced_mask_mod_error,
            self.seq_lengths,
            compute_q_blocks=self.q_indices is not None,
        )

    def __repr__(self):
        def shape(t):
            return None if t is None else t.shape

        return (
            f"BlockMask(\n    kv_num_blocks={shape(self.kv_num_blocks)},\n    kv_indices={shape(self.kv_indices)},\n"
            f"    full_kv_num_blocks={shape(self.full_kv_num_blocks)},\n"
            f"    full_kv_indices={shape(self.full_kv_indices)},\n    q_num_blocks={shape(self.q_num_blocks)},\n"
            f"    q_indices={shape(self.q_indices)},\n    full_q_num_blocks={shape(self.full_q_num_blocks)},\n"
            f"    full_q_indices={shape(self.full_q_indices)},\n    BLOCK_SIZE={self.BLOCK_SIZE},\n"
            f"    shape={self.shape},\n    sparsity={self.sparsity():.2f}%,\n"
            f"    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )


def _sliced_mask_mod_error(b, h, q_idx, kv_idx):
    raise RuntimeError("Cannot use mask_mod from a sliced BlockMask")


def create_block_mask(
    mask_mod: Callable,
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device=None,
    BLOCK_SIZE: int | tuple[int, int] = 128,
    _compile: bool = False,
    separate_full_blocks: bool = True,
) -> BlockMask:
    """The blocks in which ``mask_mod`` shows something. Follows
    ``torch.nn.attention.flex_attention.create_block_mask``.

    Args:
        B: the batch size, or None where the mask is the same for all
        H: the number of heads, or None
        Q_LEN: the length of the queries
        KV_LEN: the length of the keys
        BLOCK_SIZE: of a block, or its (rows, columns)
        separate_full_blocks: whether blocks that are seen entirely are counted apart
    """
    size = (BLOCK_SIZE, BLOCK_SIZE) if isinstance(BLOCK_SIZE, int) else tuple(BLOCK_SIZE)
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    mask = F.pad(mask, (0, -KV_LEN % size[1], 0, -Q_LEN % size[0]))
    *batch, q, kv = mask.shape
    seen = mask.reshape(*batch, q // size[0], size[0], kv // size[1], size[1]).sum((-3, -1))
    full = seen == math.prod(size)
    partly = (seen > 0) & full.logical_not() if separate_full_blocks else seen > 0
    rows = (*_ordered(partly), *(_ordered(full) if separate_full_blocks else (None, None)))
    return BlockMask.from_kv_blocks(*rows, BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN))


def _check(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if not query.ndim == key.ndim == value.ndim == 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(
            f"Expect query and key/value to have the same embedding dimension but got E={query.shape[-1]} and "
            f"E={key.shape[-1]}."
        )
    heads, of_keys = query.shape[1], key.shape[1]
    if not enable_gqa and heads != of_keys:
        raise ValueError(
            f"Expect query and key/value to have the same number of heads but got Hq={heads} and Hkv={of_keys}. Try "
            "setting enable_gqa=True for GQA."
        )
    if heads % of_keys:
        raise ValueError(
            f"Expect number of query heads to be a multiple of kv heads for GQA but got Hq={heads} and Hkv={of_keys}."
        )
    if query.shape[0] != key.shape[0] and (block_mask is None or block_mask.shape[0] != query.shape[0]):
        raise ValueError(
            "Expect query and key/value to have the same batch size, or block_mask and query to have the same batch "
            f"size, but got Bq={query.shape[0]}, and Bkv={key.shape[0]}."
        )
    lengths = (query.shape[-2], key.shape[-2])
    if block_mask is not None and tuple(block_mask.seq_lengths) != lengths:
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={lengths[0]} and "
            f"kv_len={lengths[1]}. Create a new block mask with the correct length."
        )


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: dict | None = None,
    *,
    return_aux: AuxRequest | None = None,
):
    """softmax(score_mod(scale query key^T)) value, of the keys that ``block_mask`` shows. A query that sees no key gets
    zeros. Without score_mod it is ``scaled_dot_product_attention``. Follows
    ``torch.nn.attention.flex_attention.flex_attention``.

    Args:
        query: (B, H, L, E)
        key: (B, H, S, E), or fewer heads with ``enable_gqa``
        value: (B, H, S, V)
        scale: a factor of the scores, 1 / sqrt(E) by default
        return_lse: deprecated: ``return_aux=AuxRequest(lse=True)``
        kernel_options: taken as in PyTorch, and without effect
        return_aux: what is wanted besides
    Returns:
        A tensor (B, H, L, V); with ``return_lse`` and the logarithms, with ``return_aux`` and an AuxOutput.
    Raises:
        ValueError: shapes do not match
        RuntimeError: the mask is a part of another
    """
    _check(query, key, value, block_mask, enable_gqa)
    if return_lse and return_aux is not None:
        raise ValueError(
            "Cannot specify both return_lse and return_aux. return_lse is deprecated, please use "
            "return_aux=AuxRequest(lse=True) instead."
        )
    shape = (*query.shape[:3], key.shape[2])
    scale = 1 / math.sqrt(query.shape[-1]) if scale is None else scale
    seen = None
    places = _places(*shape, query.device)
    if block_mask is not None:
        seen = block_mask.mask_mod(*places).expand(shape)
    groups = query.shape[1] // key.shape[1]
    key, value = (t.expand(query.shape[0], -1, -1, -1) for t in (key, value))
    wanted = return_aux or AuxRequest(lse=return_lse)
    if score_mod is None and not any(wanted):
        out = F.scaled_dot_product_attention(query, key, value, seen, scale=scale, enable_gqa=groups > 1)
        return out if return_aux is None else (out, AuxOutput())
    if groups > 1:
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    wide = float64 if query.dtype is float64 else float32
    scores = (query.to(wide) @ key.to(wide).mT) * scale
    if score_mod is not None:
        scores = score_mod(scores, *places)
    if seen is not None:
        scores = scores.masked_fill(seen.logical_not(), -math.inf)
    blind = (scores.detach() == -math.inf).all(-1)
    weights = scores.masked_fill(blind.unsqueeze(-1), 0).softmax(-1).masked_fill(blind.unsqueeze(-1), 0)
    out = weights.to(query.dtype) @ value
    if not any(wanted):
        return out if return_aux is None else (out, AuxOutput())
    lse = None
    if wanted.lse:
        lse = scores.masked_fill(blind.unsqueeze(-1), 0).logsumexp(-1).masked_fill(blind, -math.inf)
    if return_aux is None:
        return out, lse
    return out, AuxOutput(lse, scores.amax(-1) if wanted.max_scores else None)
