"""``torch.nn.parallel.distributed``."""

from __future__ import annotations

import contextlib

from tinytorch.nn import Module

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """``module`` in a group of one process, whose gradients are the sum already. Options say how gradients would be
    sent, and change nothing."""

    def __init__(self, module: Module, device_ids=None, output_device=None, dim=0, broadcast_buffers=True, **options):
        super().__init__()
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a "
                "gradient."
            )
        self.module, self.device_ids, self.output_device, self.dim = module, device_ids, output_device, dim
        self.require_backward_grad_sync = True

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """A context in which gradients are not sent; they never are."""
        before, self.require_backward_grad_sync = self.require_backward_grad_sync, False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    def register_comm_hook(self, state, hook) -> None:
        """Nothing is sent, and so ``hook`` not called."""
