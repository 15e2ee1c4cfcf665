"""Warnings that a process gets once."""

from __future__ import annotations

import contextlib
import warnings

told: dict[str, object] = {}


def first_time(what: str) -> bool:
    """Is this the first call with ``what`` in this process? True for one thread alone."""
    mine = object()
    return told.setdefault(what, mine) is mine


def warn_once(text: str) -> None:
    """The one warning about compiled kernels: there is no compiler, or no place for them. Everything works without,
    only slower."""
    if first_time("compiled kernels"):
        with contextlib.suppress(Warning):  # where warnings are errors: in the worker thread no one could catch it
            warnings.warn(f"tinytorch: {text}", RuntimeWarning, stacklevel=2)
