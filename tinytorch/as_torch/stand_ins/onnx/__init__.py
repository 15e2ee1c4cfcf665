"""``torch.onnx`` without an exporter."""

from __future__ import annotations

import enum

from . import symbolic_helper, symbolic_opset9, symbolic_opset11

__all__ = ["OperatorExportTypes", "TrainingMode", "export", "is_in_onnx_export", "register_custom_op_symbolic",
           "symbolic_helper", "symbolic_opset9", "symbolic_opset11"]  # fmt: skip


class TrainingMode(enum.Enum):
    """How a model is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class OperatorExportTypes(enum.Enum):
    """What is exported for an operator."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


def is_in_onnx_export() -> bool:
    """False."""
    return False


def export(*args, **kwargs):
    """NotImplementedError: tinytorch writes no ONNX."""
    raise NotImplementedError("onnx.export: tinytorch writes no ONNX")


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn, opset_version: int) -> None:
    """Nothing: nothing is exported."""
