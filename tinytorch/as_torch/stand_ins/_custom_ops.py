"""``torch._custom_ops``: an old path of ``torch.library``."""

from .library import custom_op, impl, impl_abstract

__all__ = ["custom_op", "impl", "impl_abstract"]
