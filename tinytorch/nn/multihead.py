"""Attention of several heads as a layer."""

from __future__ import annotations

from ..ops.create import empty
from ..tensor import Tensor
from . import functional as F
from . import init
from .linear import NonDynamicallyQuantizableLinear
from .module import Module
from .parameter import Parameter


class MultiheadAttention(Module):
    """Projects query (L, N, embed_dim), key (S, N, kdim) and value (S, N, vdim), attends with ``num_heads`` heads, and
    projects their results, side by side: (L, N, embed_dim), and the weights (N, L, S). With ``batch_first`` N is the
    first dimension; without a batch there is no N. Follows ``torch.nn.MultiheadAttention``."""

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device=None,
        dtype=None,
    ):
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.batch_first, self.add_zero_attn = dropout, batch_first, add_zero_attn
        self._qkv_same_embed_dim = self.kdim == self.vdim == embed_dim
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")

        def parameter(*shape, wanted=True):
            return Parameter(empty(shape, device=device, dtype=dtype)) if wanted else None

        same = self._qkv_same_embed_dim
        self.register_parameter("in_proj_weight", parameter(3 * embed_dim, embed_dim, wanted=same))
        self.register_parameter("q_proj_weight", parameter(embed_dim, embed_dim, wanted=not same))
        self.register_parameter("k_proj_weight", parameter(embed_dim, self.kdim, wanted=not same))
        self.register_parameter("v_proj_weight", parameter(embed_dim, self.vdim, wanted=not same))
        self.register_parameter("in_proj_bias", parameter(3 * embed_dim, wanted=bias))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, device=device, dtype=dtype)
        self.register_parameter("bias_k", parameter(1, 1, embed_dim, wanted=add_bias_kv))
        self.register_parameter("bias_v", parameter(1, 1, embed_dim, wanted=add_bias_kv))
        self._reset_parameters()

    def _reset_parameters(self) -> None:
        """Weights by Glorot's uniform rule, biases 0; further keys and values by his normal rule."""
        for weight in (self.in_proj_weight, self.q_proj_weight, self.k_proj_weight, self.v_proj_weight):
            if weight is not None:
                init.xavier_uniform_(weight)
        if self.in_proj_bias is not None:
            init.zeros_(self.in_proj_bias)
            init.zeros_(self.out_proj.bias)
        for bias in (self.bias_k, self.bias_v):
            if bias is not None:
                init.xavier_normal_(bias)

    def __setstate__(self, state):
        super().__setstate__({"_qkv_same_embed_dim": True, **state})

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        swap = self.batch_first and query.dim() == 3
        if swap:
            same = query is key, key is value
            query = query.transpose(0, 1)
            key = query if same[0] else key.transpose(0, 1)
            value = key if same[1] else value.transpose(0, 1)
        out, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return out.transpose(0, 1) if swap else out, weights

    def merge_masks(
        self, attn_mask: Tensor | None, key_padding_mask: Tensor | None, query: Tensor
    ) -> tuple[Tensor | None, int | None]:
        """The two masks as one of (N, num_heads, L, S), and its type, 2; where there is only the second one, that, and
        its type, 1. ``query`` has N first."""
        merged, kind = key_padding_mask, None if key_padding_mask is None else 1
        if attn_mask is not None:
            batch, rows, _ = query.shape
            if attn_mask.dim() == 3:
                merged = attn_mask.view(batch, -1, rows, attn_mask.shape[-1])
            else:
                merged = attn_mask.view(1, 1, *attn_mask.shape).expand(batch, self.num_heads, -1, -1)
            kind = 2
            if key_padding_mask is not None:
                padding = key_padding_mask.view(batch, 1, 1, -1).expand(-1, self.num_heads, -1, -1)
                merged = merged.expand(batch, self.num_heads, -1, -1) + padding
        return merged, kind
