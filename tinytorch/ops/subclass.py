"""Operators: tensors as instances of subclasses of Tensor."""

from __future__ import annotations

from ..autograd.leaf import make_leaf
from ..tensor import Tensor, as_class
from .declare import method, primitive


def _shown_as(cls, input):
    if not (isinstance(cls, type) and issubclass(cls, Tensor)):
        raise TypeError(f"as_subclass(): argument 'cls' must be a subclass of Tensor, not {cls!r}")
    return as_class(input, cls)


@primitive(view=True, title="AliasBackward0", input=lambda g: g)
def _alias(input, cls):
    return _shown_as(cls, input)


@method(kind="query")
def as_subclass(self, cls):
    """The same elements as an instance of ``cls``, with its history. Follows ``torch.Tensor.as_subclass``.

    Args:
        cls: a subclass of Tensor
    Returns:
        A view.
    Raises:
        TypeError: ``cls`` is no subclass of Tensor
    """
    return _alias(self, cls)


def _make_subclass(cls, data, require_grad=False):
    """A ``cls`` on the memory of ``data``, without its history: a leaf. Follows ``torch.Tensor._make_subclass``."""
    if not isinstance(data, Tensor):
        raise TypeError(f"_make_subclass(): argument 'data' must be Tensor, not {type(data).__name__}")
    made = _shown_as(cls, data)
    return make_leaf(made) if require_grad else made


Tensor._make_subclass = staticmethod(_make_subclass)
