"""Anomaly mode: Nodes remember the forward stack, and NaN gradients are errors."""

from __future__ import annotations

import pathlib
import sys
import traceback
import warnings

from .modes import ModeContext, ModeSwitch, current

_PACKAGE = str(pathlib.Path(__file__).resolve().parent.parent)


def stack() -> str:
    """The stack down to the user's last line outside of tinytorch."""
    frame = sys._getframe(1)
    while frame is not None and (frame.f_code.co_filename.startswith((_PACKAGE, "<eager", "<derivative"))):
        frame = frame.f_back
    return "".join(traceback.format_stack(frame))


class detect_anomaly(ModeContext):
    """Inside, an error in backward shows the forward call it comes from, an overwritten saved value shows both lines,
    and a NaN in a gradient raises RuntimeError (``check_nan``). Slow. Follows ``torch.autograd.detect_anomaly``."""

    def __init__(self, check_nan=True):
        super().__init__()
        self.check_nan = check_nan
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be "
            "enabled for debugging.",
            stacklevel=2,
        )

    def changes(self):
        return {"anomaly": stack, "check_nan": self.check_nan}

    def clone(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return type(self)(self.check_nan)


class set_detect_anomaly(ModeSwitch):
    """Switches anomaly mode on or off at once, and back on leaving a ``with``."""

    def configure(self, mode: bool, check_nan: bool = True):
        super().configure(mode)
        self.check_nan = check_nan

    def changes(self):
        return {"anomaly": stack if self.mode else False, "check_nan": self.check_nan}

    def clone(self):
        return type(self)(self.mode, self.check_nan)


def is_anomaly_enabled() -> bool:
    """Is this thread in anomaly mode?"""
    return bool(current().anomaly)


def is_anomaly_check_nan_enabled() -> bool:
    """Does this thread's anomaly mode look for NaN?"""
    return current().check_nan
