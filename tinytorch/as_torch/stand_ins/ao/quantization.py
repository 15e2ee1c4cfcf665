"""``torch.ao.quantization``, which refuses: tensors have no quantized dtypes."""

from __future__ import annotations

from tinytorch.nn import Module

__all__ = ["DeQuantStub", "QuantStub", "convert", "prepare", "prepare_qat", "quantize", "quantize_dynamic"]


def _refuse(*args, **kwargs):
    """NotImplementedError: tinytorch has no quantized dtypes."""
    raise NotImplementedError("ao.quantization: tinytorch has no quantized dtypes")


convert = prepare = prepare_qat = quantize = quantize_dynamic = _refuse


class QuantStub(Module):
    """Where a quantized model's input would become quantized: the identity until it is converted."""

    def __init__(self, qconfig=None):
        super().__init__()

    def forward(self, x):
        return x


class DeQuantStub(QuantStub):
    """Where it would become floating again."""
