"""Members of Tensor that say what no tensor here is, and how its dimensions lie in memory."""

from __future__ import annotations

from ..layouts import memory_format
from ..tensor import Tensor
from .declare import method


def _never(what: str) -> property:
    return property(lambda self: False, doc=f"Is it {what}? Never here.")


NEVER = {
    "is_meta": "without memory, on the device 'meta'",
    "is_quantized": "quantized",
    "is_nested": "nested",
    "is_mkldnn": "in oneDNN's layout",
    "is_mps": "on an Apple GPU",
    "is_xpu": "on an Intel GPU",
    "is_xla": "on an XLA device",
    "is_vulkan": "on a Vulkan device",
    "is_ipu": "on a Graphcore device",
    "is_maia": "on a Maia device",
    "is_mtia": "on an MTIA device",
}
for _name, _what in NEVER.items():
    setattr(Tensor, _name, _never(_what))


@method(kind="query")
def dim_order(self, *, ambiguity_check=False) -> tuple[int, ...]:
    """The dimensions from the one with the largest stride to the one with the least. Follows
    ``torch.Tensor.dim_order``.

    Args:
        ambiguity_check: True: sizes of 1 and equal strides, which leave the order open, are an error; a list of memory
            formats: sizes of 1 are not, where the tensor is in exactly one of these
    Raises:
        RuntimeError: the order is open, and it was to be checked
    """
    formats = ambiguity_check if isinstance(ambiguity_check, list) else []
    if not isinstance(ambiguity_check, (bool, list)) or not all(isinstance(f, memory_format) for f in formats):
        raise TypeError("dim_order(): argument 'ambiguity_check' must be a bool or a list of memory formats")
    shape, strides = self.shape, self.stride()
    is_open = len(set(strides)) < len(strides)
    is_open = is_open or (1 in shape and sum(map(self.is_contiguous, formats)) != 1)
    if ambiguity_check is not False and is_open:
        raise RuntimeError(
            f"dim_order: sizes {list(shape)} and strides {list(strides)} leave the order open"
            + (", and are in none or several of the formats given" if formats else "")
        )
    return tuple(sorted(range(self.ndim), key=lambda d: (-strides[d], -shape[d], d)))
