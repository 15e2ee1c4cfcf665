"""``torch.cuda.profiler``: tells profilers of NVIDIA's where to begin and where to end."""

from __future__ import annotations

import contextlib
import importlib

__all__ = ["profile", "start", "stop"]


def start() -> None:
    """Profilers begin here."""
    importlib.import_module("pycuda.driver").start_profiler()


def stop() -> None:
    """Profilers end here."""
    importlib.import_module("pycuda.driver").stop_profiler()


@contextlib.contextmanager
def profile():
    """Profilers see what is within."""
    start()
    try:
        yield
    finally:
        stop()
