"""Settings of ``save`` and ``load``. Follows ``torch.utils.serialization``."""

from __future__ import annotations

import mmap
from types import SimpleNamespace

__all__ = ["config"]

config = SimpleNamespace(
    load=SimpleNamespace(mmap=False, endianness=None, mmap_flags=mmap.MAP_PRIVATE, calculate_storage_offsets=False),
    save=SimpleNamespace(compute_crc32=True, use_pinned_memory_for_d2h=False, storage_alignment=64),
)
_load, _save = vars(config.load), vars(config.save)
