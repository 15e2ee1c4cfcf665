"""Further names of ``torch.nn.attention.flex_attention``."""

__all__ = ["_DEFAULT_SPARSE_BLOCK_SIZE"]

_DEFAULT_SPARSE_BLOCK_SIZE = 128
