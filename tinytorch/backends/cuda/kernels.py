"""Kernels from their keys: found in the disk cache or compiled by NVRTC, and loaded."""

from __future__ import annotations

from .source import name_of, source_of


def load(driver, device, key: int):
    """The function that launches the kernel on the device."""
    return driver.load(device.index, driver.build(source_of(key), name_of(key), device.arch), "tt_kernel")
