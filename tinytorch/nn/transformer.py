"""The transformer of Vaswani et al. 2017 (arXiv:1706.03762): layers of attention, and stacks of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ..ops.create import full
from ..ops.multi_head_attention import added_mask
from ..ops.rearrange import triu
from ..tensor import Tensor
from . import functional as F
from . import init
from .containers import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .multihead import MultiheadAttention
from .normalization import LayerNorm

_ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu}


def _causal_mask(size: int, device=None, dtype=None) -> Tensor:
    """(size, size): minus infinity above the diagonal, else 0."""
    return triu(full((size, size), -math.inf, device=device, dtype=dtype), diagonal=1)


def _is_causal(mask: Tensor | None, hint: bool | None, size: int) -> bool:
    """Does the mask let each position see those up to its own? The hint says so, unless it is None."""
    if hint is not None:
        return bool(hint)
    if mask is None:
        return False
    causal = _causal_mask(size, mask.device, mask.dtype if mask.dtype.is_floating_point else None)
    if not mask.dtype.is_floating_point:
        causal = causal != 0
    return tuple(mask.shape) == (size, size) and bool((mask == causal).all())


def _length(x: Tensor, batch_first: bool) -> int:
    """Of the sequences."""
    return x.shape[1] if x.dim() == 3 and batch_first else x.shape[0]


def _copies(module: Module, n: int) -> ModuleList:
    if not isinstance(module, Module):
        raise TypeError(f"{type(module).__name__} is not a Module subclass")
    copies: list = [None] * n  # a number for which there is no memory is refused before the first copy is made
    for k in range(n):
        copies[k] = copy.deepcopy(module)
    return ModuleList(copies)


class _Layer(Module):
    """What both kinds of layers have: attention to themselves, and two linear maps."""

    attentions = 1  # of which the names stand in the subclass

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        where = {"device": device, "dtype": dtype}
        for name in ("self_attn", "multihead_attn")[: self.attentions]:
            setattr(
                self,
                name,
                MultiheadAttention(d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **where),
            )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **where)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **where)
        self.norm_first = norm_first
        for k in range(1, self.attentions + 2):
            setattr(self, f"norm{k}", LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **where))
        for k in range(1, self.attentions + 2):
            setattr(self, f"dropout{k}", Dropout(dropout))
        if isinstance(activation, str):
            if activation not in _ACTIVATIONS:
                raise RuntimeError(f"activation should be relu/gelu, not {activation}")
            activation = _ACTIVATIONS[activation]
        self.activation = activation

    def __setstate__(self, state):
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _around(self, x: Tensor, norm: Module, block: Callable[[Tensor], Tensor]) -> Tensor:
        """x plus what the block makes of it, with the norm before the block or after the sum."""
        return x + block(norm(x)) if self.norm_first else norm(x + block(x))

    def _sa_block(self, x: Tensor, attn_mask, key_padding_mask, is_causal: bool = False) -> Tensor:
        x = self.self_attn(
            x, x, x, attn_mask=attn_mask, key_padding_mask=key_padding_mask, need_weights=False, is_causal=is_causal
        )[0]
        return self.dropout1(x)

    def _ff_block(self, x: Tensor) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return getattr(self, f"dropout{self.attentions + 1}")(x)


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, then two linear maps, each with a sum and a norm around it. Follows
    ``torch.nn.TransformerEncoderLayer``."""

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        padding = added_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask)
        mask = added_mask(src_mask, "src_mask", src.dtype)
        x = self._around(src, self.norm1, lambda x: self._sa_block(x, mask, padding, is_causal))
        return self._around(x, self.norm2, self._ff_block)


class TransformerDecoderLayer(_Layer):
    """Attention of a sequence to itself, then to another, ``memory``, then two linear maps, each with a sum and a norm
    around it. Follows ``torch.nn.TransformerDecoderLayer``."""

    attentions = 2

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        x = self._around(tgt, self.norm1, lambda x: self._sa_block(x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._around(
            x, self.norm2, lambda x: self._mha_block(x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        )
        return self._around(x, self.norm3, self._ff_block)

    def _mha_block(self, x: Tensor, mem: Tensor, attn_mask, key_padding_mask, is_causal: bool = False) -> Tensor:
        x = self.multihead_attn(
            x, mem, mem, attn_mask=attn_mask, key_padding_mask=key_padding_mask, is_causal=is_causal, need_weights=False
        )[0]
        return self.dropout2(x)


class TransformerEncoder(Module):
    """``num_layers`` copies of a layer, one after another, then ``norm``. The last two parameters are PyTorch's, and
    change nothing here. Follows ``torch.nn.TransformerEncoder``."""

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ):
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm
        self.enable_nested_tensor, self.mask_check = enable_nested_tensor, mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        padding = added_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask)
        mask = added_mask(mask, "mask", src.dtype)
        batch_first = len(self.layers) > 0 and self.layers[0].self_attn.batch_first
        is_causal = _is_causal(mask, is_causal, _length(src, batch_first))
        for layer in self.layers:
            src = layer(src, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """``num_layers`` copies of a layer, one after another, then ``norm``. Follows ``torch.nn.TransformerDecoder``."""

    def __init__(self, decoder_layer: TransformerDecoderLayer, num_layers: int, norm: Module | None = None):
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers, self.norm = num_layers, norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch_first = len(self.layers) > 0 and self.layers[0].self_attn.batch_first
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, _length(tgt, batch_first))
        for layer in self.layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """An encoder of one sequence, and a decoder of another that attends to what the encoder makes. Follows
    ``torch.nn.Transformer``."""

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any | None = None,
        custom_decoder: Any | None = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        of_layer = (
            d_model,
            nhead,
            dim_feedforward,
            dropout,
            activation,
            layer_norm_eps,
            batch_first,
            norm_first,
            bias,
            device,
            dtype,
        )

        def stack(kind, layer, n):
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, device=device, dtype=dtype)
            return kind(layer(*of_layer), n, norm)

        self.encoder = (
            stack(TransformerEncoder, TransformerEncoderLayer, num_encoder_layers)
            if custom_encoder is None
            else custom_encoder
        )
        self.decoder = (
            stack(TransformerDecoder, TransformerDecoderLayer, num_decoder_layers)
            if custom_decoder is None
            else custom_decoder
        )
        self._reset_parameters()
        self.d_model, self.nhead, self.batch_first = d_model, nhead, batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        of_batch = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(of_batch) != tgt.size(of_batch):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device=None, dtype=None) -> Tensor:
        """(sz, sz): minus infinity above the diagonal, else 0."""
        return _causal_mask(sz, device, dtype)

    def _reset_parameters(self) -> None:
        """Matrices by Glorot's uniform rule."""
        for parameter in self.parameters():
            if parameter.dim() > 1:
                init.xavier_uniform_(parameter)
