"""Members of Tensor that say what no tensor here is, and how its dimensions lie in memory."""

from __future__ import annotations

from ..tensor import Tensor
from .declare import method


def _never(what: str) -> property:
    return property(lambda self: False, doc=f"Is it {what}? Never here.")


for _name, _what in (
    ("is_meta", "without memory, on the device 'meta'"),
    ("is_quantized", "quantized"),
    ("is_nested", "nested"),
    ("is_mkldnn", "in oneDNN's layout"),
    ("is_mps", "on an Apple GPU"),
    ("is_xpu", "on an Intel GPU"),
    ("is_xla", "on an XLA device"),
    ("is_vulkan", "on a Vulkan device"),
    ("is_ipu", "on a Graphcore device"),
    ("is_maia", "on a Maia device"),
    ("is_mtia", "on an MTIA device"),
):
    setattr(Tensor, _name, _never(_what))


@method(kind="query")
def dim_order(self) -> tuple[int, ...]:
    """The dimensions from the one with the largest stride to the one with the least. Follows
    ``torch.Tensor.dim_order``, of which ``ambiguity_check`` is not there."""
    strides = self.stride()
    return tuple(sorted(range(self.ndim), key=lambda d: (-strides[d], d)))
