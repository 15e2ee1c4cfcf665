"""``torch.backends.cuda``."""

from __future__ import annotations

import contextlib

from tinytorch.backends.cuda.flags import is_built, matmul
from tinytorch.nn.attention import SDPBackend, sdpa_kernel
from tinytorch.ops.attention import ALL_BACKENDS, chosen

__all__ = [
    "can_use_efficient_attention",
    "can_use_flash_attention",
    "cudnn_sdp_enabled",
    "enable_cudnn_sdp",
    "enable_flash_sdp",
    "enable_math_sdp",
    "enable_mem_efficient_sdp",
    "flash_sdp_enabled",
    "is_built",
    "math_sdp_enabled",
    "matmul",
    "mem_efficient_sdp_enabled",
    "preferred_linalg_library",
    "sdp_kernel",
]

_KERNELS = {
    "cudnn": "CUDNN_ATTENTION",
    "flash": "FLASH_ATTENTION",
    "math": "MATH",
    "mem_efficient": "EFFICIENT_ATTENTION",
}


def _functions(backend: str):
    def enabled() -> bool:
        return backend in chosen[0]

    def enable(enabled: bool) -> None:
        chosen[0] = tuple(b for b in ALL_BACKENDS if (enabled if b == backend else b in chosen[0]))

    enabled.__doc__ = f"May attention be computed by {backend}?"
    enable.__doc__ = f"Lets attention be computed by {backend}, or not."
    return enabled, enable


cudnn_sdp_enabled, enable_cudnn_sdp = _functions(_KERNELS["cudnn"])
flash_sdp_enabled, enable_flash_sdp = _functions(_KERNELS["flash"])
math_sdp_enabled, enable_math_sdp = _functions(_KERNELS["math"])
mem_efficient_sdp_enabled, enable_mem_efficient_sdp = _functions(_KERNELS["mem_efficient"])


@contextlib.contextmanager
def sdp_kernel(
    enable_flash: bool = True, enable_math: bool = True, enable_mem_efficient: bool = True, enable_cudnn: bool = True
):
    """As ``nn.attention.sdpa_kernel``, in the older form."""
    wanted = {"flash": enable_flash, "math": enable_math, "mem_efficient": enable_mem_efficient, "cudnn": enable_cudnn}
    with sdpa_kernel([SDPBackend[_KERNELS[name]] for name, on in wanted.items() if on]):
        yield {}


def can_use_flash_attention(params, debug: bool = False) -> bool:
    """Does attention work in tiles? Always, but for complex numbers."""
    return True


can_use_efficient_attention = can_use_flash_attention


def preferred_linalg_library(backend=None) -> str:
    """The one there is: cuSOLVER."""
    return "cusolver"
