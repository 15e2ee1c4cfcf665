"""``torch.fx.experimental.proxy_tensor``: nothing is being traced."""

from __future__ import annotations

__all__ = ["get_proxy_mode"]


def get_proxy_mode() -> None:
    """None."""
