"""Further names of ``torch.utils``."""

from . import _pytree, backcompat, collect_env, model_zoo

__all__ = ["_pytree", "backcompat", "collect_env", "model_zoo", "set_module"]


def set_module(obj, mod) -> None:
    """Makes ``mod`` the name of its module."""
    obj.__module__ = mod
