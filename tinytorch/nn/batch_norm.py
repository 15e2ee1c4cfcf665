"""Normalisation of channels, with running statistics."""

from __future__ import annotations

from ..dtypes import int64
from ..ops.create import ones, tensor, zeros
from ..tensor import Tensor
from . import functional as F
from .module import Module
from .normalization import Affine


class _Norm(Affine):
    """What normalisations of channels have in common: weights and running statistics. ``_dims``: how many dimensions an
    input may have."""

    _version = 2  # since then num_batches_tracked is saved

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__()
        self.num_features, self.eps, self.momentum = num_features, eps, momentum
        self.affine, self.track_running_stats = affine, track_running_stats
        self._set_affine(num_features, affine, affine and bias, device, dtype)
        where = {"device": device, "dtype": dtype}
        self.register_buffer("running_mean", zeros(num_features, **where) if track_running_stats else None)
        self.register_buffer("running_var", ones(num_features, **where) if track_running_stats else None)
        self.register_buffer(
            "num_batches_tracked", tensor(0, dtype=int64, device=device) if track_running_stats else None
        )
        self.reset_parameters()

    def reset_running_stats(self) -> None:
        """Mean 0, variance 1, no batches."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self) -> None:
        """Weight 1, bias 0, and new running statistics."""
        self.reset_running_stats()
        super().reset_parameters()

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() not in self._dims:
            wanted = " or ".join(f"{d}D" for d in self._dims)
            raise ValueError(f"expected {wanted} input (got {input.dim()}D input)")

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, affine={self.affine}, "
            f"bias={self.bias is not None}, track_running_stats={self.track_running_stats}"
        )

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *rest):
        key = prefix + "num_batches_tracked"
        if (local_metadata.get("version") or 1) < 2 and self.track_running_stats and key not in state_dict:
            state_dict[key] = self.num_batches_tracked.detach().clone()
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *rest)


class _BatchNorm(_Norm):
    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.track_running_stats and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:  # the mean of all batches
                momentum = 1.0 / float(self.num_batches_tracked)
        own = self.training or (self.running_mean is None and self.running_var is None)
        kept = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if kept else None,
            self.running_var if kept else None,
            self.weight,
            self.bias,
            own,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Mean 0 and variance 1 of each channel of (N, C) or (N, C, L), then scale and shift. Follows
    ``torch.nn.BatchNorm1d``."""

    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Mean 0 and variance 1 of each channel of (N, C, H, W), then scale and shift. Follows ``torch.nn.BatchNorm2d``."""

    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Mean 0 and variance 1 of each channel of (N, C, D, H, W), then scale and shift. Follows
    ``torch.nn.BatchNorm3d``."""

    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Mean 0 and variance 1 of each channel of (N, C, ...), over the batches of all processes of a group: with one
    process, BatchNorm of any number of dimensions. Follows ``torch.nn.SyncBatchNorm``."""

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)
        self.process_group = process_group

    def _check_input_dim(self, input: Tensor) -> None:
        if input.dim() < 2:
            raise ValueError(f"expected at least 2D input (got {input.dim()}D input)")
        if not input.shape[1]:
            raise ValueError("SyncBatchNorm number of input channels should be non-zero")

    @classmethod
    def convert_sync_batchnorm(cls, module: Module, process_group=None) -> Module:
        """``module`` with a SyncBatchNorm of the same parameters and statistics in the place of each BatchNorm in it;
        a new layer where it is one itself."""
        made = module
        if isinstance(module, _BatchNorm):
            options = module.eps, module.momentum, module.affine, module.track_running_stats, process_group
            made = SyncBatchNorm(module.num_features, *options, bias=module.bias is not None)
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_Norm):
    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
        *,
        bias=True,
    ):
        super().__init__(num_features, eps, momentum, affine, track_running_stats, device, dtype, bias=bias)

    def forward(self, input: Tensor) -> Tensor:
        self._check_input_dim(input)
        alone = input.dim() == self._dims[0]
        channels = input.shape[0 if alone else 1]
        if self.affine and channels != self.num_features:
            raise ValueError(
                f"expected input's size at dim={0 if alone else 1} to match num_features "
                f"({self.num_features}), but got: {channels}."
            )
        out = F.instance_norm(
            input.unsqueeze(0) if alone else input,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            self.momentum if self.momentum is not None else 0.0,
            self.eps,
        )
        return out.squeeze(0) if alone else out


class InstanceNorm1d(_InstanceNorm):
    """BatchNorm1d of each sample by itself, of (N, C, L) or (C, L). Follows ``torch.nn.InstanceNorm1d``."""

    _dims = (2, 3)


class InstanceNorm2d(_InstanceNorm):
    """BatchNorm2d of each sample by itself, of (N, C, H, W) or (C, H, W). Follows ``torch.nn.InstanceNorm2d``."""

    _dims = (3, 4)


class InstanceNorm3d(_InstanceNorm):
    """BatchNorm3d of each sample by itself, of (N, C, D, H, W) or (C, D, H, W). Follows
    ``torch.nn.InstanceNorm3d``."""

    _dims = (4, 5)
