"""``torch.__future__``: switches of how modules are converted, which change nothing here."""

from __future__ import annotations

__all__ = ["get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion",
           "set_overwrite_module_params_on_conversion", "set_swap_module_params_on_conversion"]  # fmt: skip

_switches = {"overwrite": False, "swap": False}


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Remembers it."""
    _switches["overwrite"] = value


def get_overwrite_module_params_on_conversion() -> bool:
    """What was set."""
    return _switches["overwrite"]


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Remembers it."""
    _switches["swap"] = value


def get_swap_module_params_on_conversion() -> bool:
    """What was set."""
    return _switches["swap"]
