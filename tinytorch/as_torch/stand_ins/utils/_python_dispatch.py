"""``torch.utils._python_dispatch``, which refuses: operators have no dispatcher below autograd."""

from __future__ import annotations

__all__ = ["TorchDispatchMode", "is_traceable_wrapper_subclass"]


class TorchDispatchMode:
    """A mode that sees operators below autograd. NotImplementedError when one is made;
    ``torch.overrides.TorchFunctionMode`` sees those above it."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError("TorchDispatchMode: tinytorch has torch.overrides.TorchFunctionMode")


def is_traceable_wrapper_subclass(t) -> bool:
    """False."""
    return False
