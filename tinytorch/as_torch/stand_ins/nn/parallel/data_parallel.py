"""``torch.nn.parallel.data_parallel``."""

from __future__ import annotations

from tinytorch.nn import Module

__all__ = ["DataParallel"]


class DataParallel(Module):
    """``module`` on one device, as PyTorch's DataParallel is where there is one.

    Raises:
        ValueError: more than one device
    """

    def __init__(self, module: Module, device_ids=None, output_device=None, dim: int = 0):
        super().__init__()
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(f"DataParallel: tinytorch computes on one device, not on {device_ids}")
        self.module, self.device_ids = module, list(device_ids or [])
        self.output_device, self.dim = output_device, dim

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)
