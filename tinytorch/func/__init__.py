"""Modules as functions. Follows ``torch.func``."""

from ..nn.utils.stateless import functional_call

__all__ = ["functional_call"]
