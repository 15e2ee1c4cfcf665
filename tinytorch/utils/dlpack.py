"""DLPack, under PyTorch's name for the module."""

from ..dlpack import from_dlpack, to_dlpack

__all__ = ["from_dlpack", "to_dlpack"]
