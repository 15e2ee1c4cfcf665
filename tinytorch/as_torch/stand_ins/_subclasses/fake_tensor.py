"""``torch._subclasses.fake_tensor``: every tensor has elements."""

from __future__ import annotations

__all__ = ["FakeTensor", "FakeTensorMode", "is_fake"]


class FakeTensor:
    """A tensor without elements: there is none."""


class FakeTensorMode:
    """NotImplementedError: shapes are found by computing."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("FakeTensorMode: tinytorch finds shapes by computing")


def is_fake(x) -> bool:
    """False."""
    return False
