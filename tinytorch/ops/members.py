"""Members of Tensor that say what no tensor here is, and those that other libraries' dtypes would be needed for."""

from __future__ import annotations

from ..tensor import Tensor
from .declare import both, method


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


@method(kind="query")
def chalf(self, memory_format=None):
    """NotImplementedError: there is no complex number of two float16. PyTorch's is ``torch.Tensor.chalf``."""
    raise NotImplementedError("chalf: complex32 is not implemented; the least complex dtype is complex64: cfloat()")


@both(kind="query")
def hash_tensor(input, dim=None, *, keepdim=False, mode: int = 0):
    """NotImplementedError: the hash would be of the dtype uint64. PyTorch's is ``torch.hash_tensor``."""
    raise NotImplementedError("hash_tensor: uint64, the dtype of its results, is not implemented")
