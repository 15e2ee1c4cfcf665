"""The switches for deterministic algorithms. Results here never depend on the order in which threads run, unless
``backends.cudnn.deterministic`` was set to False: that is all that these overrule. Follow PyTorch's."""

from __future__ import annotations

from .backends.cpu import lib

__all__ = [
    "are_deterministic_algorithms_enabled",
    "get_deterministic_debug_mode",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_deterministic_debug_mode",
    "use_deterministic_algorithms",
]

MODES = ("default", "warn", "error")
_asked = {"mode": False, "warn_only": False}


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Asks for deterministic algorithms, which all are but those of cuDNN where it may choose others. TypeError for
    what is no bool. Follows ``torch.use_deterministic_algorithms``."""
    for name, value in (("mode", mode), ("warn_only", warn_only)):
        if not isinstance(value, bool):
            raise TypeError(f"use_deterministic_algorithms: argument '{name}' must be bool, not {type(value).__name__}")
    _asked.update(mode=mode, warn_only=warn_only)
    lib.tt_cuda_forget_plans()  # some may have been chosen otherwise


def are_deterministic_algorithms_enabled() -> bool:
    """Was ``use_deterministic_algorithms(True)`` called last? Follows
    ``torch.are_deterministic_algorithms_enabled``."""
    return _asked["mode"]


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Was it called with ``warn_only``? Follows ``torch.is_deterministic_algorithms_warn_only_enabled``."""
    return _asked["warn_only"]


def set_deterministic_debug_mode(debug_mode: int | str) -> None:
    """The same by a word or number: "default" (0), "warn" (1), "error" (2). RuntimeError for others, TypeError for what
    is neither. Follows ``torch.set_deterministic_debug_mode``."""
    if not isinstance(debug_mode, (int, str)):
        raise TypeError(f"debug_mode must be str or int, but got {type(debug_mode)}")
    if debug_mode not in (*MODES, *range(len(MODES))):
        raise RuntimeError(
            f"invalid value of debug_mode, expected one of `default`, `warn`, `error` or 0, 1, 2, but got {debug_mode}"
        )
    number = MODES.index(debug_mode) if isinstance(debug_mode, str) else int(debug_mode)
    use_deterministic_algorithms(number > 0, warn_only=number == 1)


def get_deterministic_debug_mode() -> int:
    """0, 1 or 2: see ``set_deterministic_debug_mode``. Follows ``torch.get_deterministic_debug_mode``."""
    return (1 if _asked["warn_only"] else 2) if _asked["mode"] else 0
