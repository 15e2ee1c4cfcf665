"""Which kernel computes ``nn.functional.scaled_dot_product_attention``. Follows ``torch.nn.attention``."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator

from ...ops.attention import ALL_BACKENDS, chosen

__all__ = ["SDPBackend", "sdpa_kernel", "WARN_FOR_UNFUSED_KERNELS"]

WARN_FOR_UNFUSED_KERNELS = False  # taken as in PyTorch: the error of a call without a kernel says why


class SDPBackend(enum.IntEnum):
    """The kernels of ``scaled_dot_product_attention``. MATH is a composition of other operators, which holds all scores
    at once. FLASH_ATTENTION and EFFICIENT_ATTENTION are both the one that works in tiles, of any floating dtype.
    CUDNN_ATTENTION is cuDNN's, of half types on CUDA devices, without mask and dropout; its derivative is the other
    one's while ``backends.cudnn.deterministic`` is on. OVERRIDEABLE is PyTorch's, and never available. Follows
    ``torch.nn.attention.SDPBackend``."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends: list[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[dict]:
    """Allows ``scaled_dot_product_attention`` these kernels alone, in all threads; a call that none of them can compute
    raises RuntimeError. Follows ``torch.nn.attention.sdpa_kernel``.

    Args:
        backends: one, or a list of them
        set_priority: whether the first of the list that can compute a call does; else cuDNN's goes first, then the
            one in tiles
    Raises:
        AssertionError: ``backends`` is something else
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances, got "
            f"{type(backends).__name__}"
        )
    names = [SDPBackend(b).name for b in ([backends] if isinstance(backends, SDPBackend) else backends)]
    before = chosen[0]
    order = names if set_priority else ALL_BACKENDS
    chosen[0] = tuple(name for name in order if name in names and name in ALL_BACKENDS)
    try:
        yield {}
    finally:
        chosen[0] = before
