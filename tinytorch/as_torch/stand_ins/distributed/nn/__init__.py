"""``torch.distributed.nn``: collectives of one rank that have derivatives."""

from . import functional

__all__ = functional.__all__
globals().update({name: getattr(functional, name) for name in __all__})
