"""``torch.utils._foreach_utils``: tensors by kind."""

from __future__ import annotations

__all__ = ["_device_has_foreach_support", "_get_foreach_kernels_supported_devices",
           "_get_fused_kernels_supported_devices", "_group_tensors_by_device_and_dtype",
           "_has_foreach_support"]  # fmt: skip


def _get_foreach_kernels_supported_devices() -> list[str]:
    """["cuda"], as in PyTorch."""
    return ["cuda"]


def _get_fused_kernels_supported_devices() -> list[str]:
    """["cuda", "cpu"]."""
    return ["cuda", "cpu"]


def _device_has_foreach_support(device) -> bool:
    """Has the device kernels for lists of tensors?"""
    return device.type == "cuda"


def _has_foreach_support(tensors, device) -> bool:
    """Has the device kernels for these tensors?"""
    return _device_has_foreach_support(device)


def _group_tensors_by_device_and_dtype(tensorlistlist, with_indices: bool = False) -> dict:
    """Lists of as many tensors, in parts of one device and dtype, those of the first list: (device, dtype) -> (the
    lists, where each tensor was)."""
    groups: dict = {}
    for at, first in enumerate(tensorlistlist[0]):
        lists, places = groups.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for to, tensors in zip(lists, tensorlistlist):
            if tensors:
                to.append(tensors[at])
        places.append(at)
    return {key: (lists, places if with_indices else None) for key, (lists, places) in groups.items()}
