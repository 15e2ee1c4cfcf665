"""``torch.export``, which refuses."""

from __future__ import annotations

__all__ = ["Dim", "ExportedProgram", "export"]


class ExportedProgram:
    """An exported program: there is none."""


class Dim:
    """The name of a size that may vary."""

    AUTO = DYNAMIC = STATIC = None

    def __init__(self, name: str, *, min=None, max=None):
        self.name, self.min, self.max = name, min, max


def export(*args, **kwargs):
    """NotImplementedError: tinytorch makes no program of Python's code."""
    raise NotImplementedError("export: tinytorch has no exporter")
