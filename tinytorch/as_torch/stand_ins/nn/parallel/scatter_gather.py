"""``torch.nn.parallel.scatter_gather``: tensors in parts, one for each device, and back."""

from __future__ import annotations

import tinytorch

__all__ = ["gather", "scatter", "scatter_kwargs"]


def _like(sequence, parts):
    return type(sequence)(*parts) if hasattr(sequence, "_fields") else type(sequence)(parts)


def scatter(inputs, target_gpus, dim: int = 0):
    """The inputs of each device: a part of every tensor, along ``dim``; other objects as they are."""
    devices = list(target_gpus)
    if isinstance(inputs, tinytorch.Tensor):
        return tuple(part.to(device) for part, device in zip(inputs.chunk(len(devices), dim), devices))
    if isinstance(inputs, (tuple, list)) and len(inputs):
        return [_like(inputs, parts) for parts in zip(*(scatter(v, devices, dim) for v in inputs))]
    if isinstance(inputs, dict) and len(inputs):
        each = zip(*(scatter(v, devices, dim) for v in inputs.values()))
        return [type(inputs)(zip(inputs, parts)) for parts in each]
    return [inputs] * len(devices)


def scatter_kwargs(inputs: tuple, kwargs: dict | None, target_gpus, dim: int = 0) -> tuple:
    """Positional arguments and keywords of each device, equally many."""
    args = scatter(inputs, target_gpus, dim) if inputs else []
    named = scatter(kwargs, target_gpus, dim) if kwargs else []
    n = max(len(args), len(named))
    return (*args, *[()] * (n - len(args))), (*named, *({} for _ in range(n - len(named))))


def gather(outputs, target_device, dim: int = 0):
    """The outputs of several devices as one, on a device: tensors along ``dim``, 0-d ones as a vector."""
    first = outputs[0]
    if isinstance(first, tinytorch.Tensor):
        there = [t.to(target_device) for t in outputs]
        return tinytorch.cat([t.reshape(1) if t.ndim == 0 else t for t in there], dim)
    if first is None:
        return None
    if isinstance(first, dict):
        return type(first)((name, gather([o[name] for o in outputs], target_device, dim)) for name in first)
    return _like(first, [gather(parts, target_device, dim) for parts in zip(*outputs)])
