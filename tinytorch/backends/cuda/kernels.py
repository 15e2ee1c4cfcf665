"""Kernels from their keys: found in the disk cache or compiled by NVRTC, and loaded."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable

from ... import cache
from . import nvrtc
from .source import kernels_folder


def load(driver, device, source: str, name: str):
    """What launches the kernel on the device."""
    return driver.load(device.index, driver.build(source, name, device.arch), "tt_kernel")


@functools.cache
def kept() -> cache.Cache:
    """The kernels on disk."""
    return cache.Cache(cache.default_folder())


@functools.cache
def headers_digest() -> str:
    """Changes when anything does that kernels include."""
    return cache.digest_of(os.path.join(kernels_folder(), name) for name in ("scalar", "cuda/device"))


def key_of(source: str, arch: str) -> str:
    """The name of a kernel's file: a hash of its source and of all that turns it into machine code."""
    return cache.key_of(source, arch, nvrtc.version(), " ".join(nvrtc.OPTIONS), headers_digest())


def on_disk(key: str) -> bytes | None:
    """Machine code of the kernel of that name, if it is there."""
    return kept().read(key, cache.CUDA)


def cubin(source: str, name: str, arch: str, compile_cubin: Callable[..., bytes] | None = None) -> bytes:
    """Machine code for the architecture, from the disk or from NVRTC, which ``compile_cubin`` asks; ``source`` may
    include what is in kernels/. Threads may compile at once. RuntimeError when it does not compile, OSError without
    NVRTC."""

    def compile_file(text: str, library: str) -> None:
        made = compile_cubin(source, name, arch, kernels_folder())
        with open(library, "wb") as file:
            file.write(made)
        fresh.append(made)

    compile_cubin = compile_cubin or nvrtc.compile_cubin
    fresh: list[bytes] = []
    key = key_of(source, arch)
    found = on_disk(key)
    if found is None:
        try:
            kept().build(key, source, compile_file, cache.CUDA)
        except nvrtc.CompileError:
            raise
        except cache.CompileError:  # there is no place for files
            fresh.append(compile_cubin(source, name, arch, kernels_folder()))
        found = fresh[-1] if fresh else on_disk(key)
    return found if found is not None else compile_cubin(source, name, arch, kernels_folder())
