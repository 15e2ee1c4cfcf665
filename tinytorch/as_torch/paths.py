"""Paths that PyTorch's modules have for names that tinytorch has elsewhere."""

from __future__ import annotations

PATHS = {
    "_lobpcg": "ops.lobpcg",
    "_lowrank": "ops.low_rank",
    "_tensor": "tensor",
    "autograd.anomaly_mode": "autograd.anomaly",
    "autograd.profiler": "profiler",
    "cpu.amp.autocast_mode": "amp.autocast_mode",
    "cpu.amp.grad_scaler": "amp.grad_scaler",
    "cuda.amp.autocast_mode": "amp.autocast_mode",
    "cuda.amp.grad_scaler": "amp.grad_scaler",
    "mps": "as_torch.no_device",
    "mtia": "as_torch.no_device",
    "optim.adamw": "optim.adam",
    "signal.windows.windows": "signal.windows",
    "xpu": "as_torch.no_device",
}
