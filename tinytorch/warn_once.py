"""The one warning that a process may get about compiled kernels: there is no compiler, or no place for them."""

from __future__ import annotations

import contextlib
import itertools
import warnings

_calls = itertools.count()


def warn_once(text: str) -> None:
    """Warns, if this process has not been warned yet. Without a compiler or a cache everything works, only slower."""
    if next(_calls) == 0:
        with contextlib.suppress(Warning):  # where warnings are errors: in the worker thread no one could catch it
            warnings.warn(f"tinytorch: {text}", RuntimeWarning, stacklevel=2)
