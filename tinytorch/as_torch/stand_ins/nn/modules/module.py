"""Further names of ``torch.nn.modules.module``."""

from __future__ import annotations

from tinytorch.nn.state import IncompatibleKeys as _IncompatibleKeys

__all__ = ["_EXTRA_STATE_KEY_SUFFIX", "_IncompatibleKeys", "_addindent"]

_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


def _addindent(s_: str, numSpaces: int) -> str:
    """The text, its lines but the first moved to the right."""
    return s_.replace("\n", "\n" + " " * numSpaces)
