"""Paths that PyTorch's modules have for names that tinytorch has elsewhere."""

from __future__ import annotations

PATHS = {
    "_tensor": "tensor",
    "autograd.anomaly_mode": "autograd.anomaly",
    "autograd.profiler": "profiler",
    "cuda.amp.grad_scaler": "amp.grad_scaler",
    "mps": "as_torch.no_device",
    "mtia": "as_torch.no_device",
    "xpu": "as_torch.no_device",
}
