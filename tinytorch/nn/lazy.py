"""Layers that learn from their first input how many channels or features it has."""

from __future__ import annotations

from itertools import chain

from ..autograd.modes import no_grad
from ..dtypes import int64
from ..ops.create import tensor
from ..tensor import Tensor
from .batch_norm import BatchNorm1d, BatchNorm2d, BatchNorm3d, InstanceNorm1d, InstanceNorm2d, InstanceNorm3d, _Norm
from .conv import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
from .linear import Linear
from .module import Module
from .parameter import UninitializedBuffer, UninitializedParameter, is_lazy


class LazyModuleMixin:
    """Makes of a layer one whose parameters get their shapes at its first forward: a subclass gives itself
    UninitializedParameters, and defines ``initialize_parameters(*args, **kwargs)``, which is called with the first
    input and materializes them. Then the object becomes one of the class ``cls_to_become``. Follows
    ``torch.nn.modules.lazy.LazyModuleMixin``."""

    cls_to_become: type[Module] | None = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._load_hook = self._register_load_state_dict_pre_hook(self._lazy_load_hook)
        self._initialize_hook = self.register_forward_pre_hook(self._infer_parameters, with_kwargs=True)

    def _lazy_load_hook(self, state_dict, prefix, *rest) -> None:
        """A parameter without shape takes that of the entry to be loaded."""
        for name, own in chain(self._parameters.items(), self._buffers.items()):
            given = state_dict.get(prefix + name)
            if is_lazy(own) and given is not None and not is_lazy(given):
                with no_grad():
                    own.materialize(given.shape)

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Gives the parameters the shapes that fit this input. A subclass defines it."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Has a parameter or buffer of this module no shape yet?"""
        return any(map(is_lazy, chain(self._parameters.values(), self._buffers.values())))

    def _infer_parameters(self, module, args, kwargs=None) -> None:
        module.initialize_parameters(*args, **(kwargs or {}))
        if module.has_uninitialized_params():
            raise RuntimeError(f"module {self._get_name()} has not been fully initialized")
        module._initialize_hook.remove()
        module._load_hook.remove()
        del module._initialize_hook, module._load_hook
        if module.cls_to_become is not None:
            module.__class__ = module.cls_to_become


class _LazyLayer(LazyModuleMixin):
    """A lazy layer of this package: ``sized_by`` names the attribute that is 0 until the first input tells it."""

    sized_by = ""

    def _without_shape(self, weight: bool, bias: bool, device, dtype) -> None:
        if weight:
            self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """The initial values of the layer that it becomes, once the shapes are known."""
        if not self.has_uninitialized_params() and getattr(self, self.sized_by) != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor, *args, **kwargs) -> None:
        """Gives the parameters the shapes that fit ``input``, and their initial values."""
        unknown = self.has_uninitialized_params()
        if unknown or getattr(self, self.sized_by) == 0:  # or the parameters were loaded
            setattr(self, self.sized_by, self._size_of(input))
        if unknown:
            with no_grad():
                for name, shape in self._shapes().items():
                    if is_lazy(getattr(self, name)):
                        getattr(self, name).materialize(shape)
                self.reset_parameters()


class LazyLinear(_LazyLayer, Linear):
    """Linear, whose ``in_features`` is the size of the first input's last dimension. Follows
    ``torch.nn.LazyLinear``."""

    cls_to_become = Linear
    sized_by = "in_features"

    def __init__(self, out_features: int, bias: bool = True, device=None, dtype=None):
        super().__init__(0, 0, False)
        self.out_features = out_features
        self._without_shape(True, bias, device, dtype)

    def _size_of(self, input: Tensor) -> int:
        features = input.shape[-1]
        assert is_lazy(self.weight) or features == self.weight.shape[-1], (
            f"The in_features inferred from input: {features} is not equal to in_features from self.weight: "
            f"{self.weight.shape[-1]}"
        )
        return features

    def _shapes(self) -> dict[str, tuple]:
        return {"weight": (self.out_features, self.in_features), "bias": (self.out_features,)}


class _LazyConv(_LazyLayer):
    sized_by = "in_channels"

    def _size_of(self, input: Tensor) -> int:
        n = self.dimensions
        if input.dim() not in (n + 1, n + 2):
            raise RuntimeError(
                f"Expected {n + 1}D (unbatched) or {n + 2}D (batched) input to {type(self).__name__}, but got input of "
                f"size: {input.shape}"
            )
        channels = input.shape[-n - 1]
        if channels % self.groups != 0:
            raise ValueError("in_channels must be divisible by groups")
        return channels

    def _shapes(self) -> dict[str, tuple]:
        one, other = self.out_channels, self.in_channels
        if self.transposed:
            one, other = other, one
        return {"weight": (one, other // self.groups, *self.kernel_size), "bias": (self.out_channels,)}


class _LazyConvolution(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        dilation=1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(0, 0, kernel_size, stride, padding, dilation, groups, False, padding_mode)
        self.out_channels = out_channels
        self._without_shape(True, bias, device, dtype)


class LazyConv1d(_LazyConvolution, Conv1d):
    """Conv1d, whose ``in_channels`` is that of the first input. Follows ``torch.nn.LazyConv1d``."""

    cls_to_become = Conv1d


class LazyConv2d(_LazyConvolution, Conv2d):
    """Conv2d, whose ``in_channels`` is that of the first input. Follows ``torch.nn.LazyConv2d``."""

    cls_to_become = Conv2d


class LazyConv3d(_LazyConvolution, Conv3d):
    """Conv3d, whose ``in_channels`` is that of the first input. Follows ``torch.nn.LazyConv3d``."""

    cls_to_become = Conv3d


class _LazyTransposedConvolution(_LazyConv):
    def __init__(
        self,
        out_channels: int,
        kernel_size,
        stride=1,
        padding=0,
        output_padding=0,
        groups: int = 1,
        bias: bool = True,
        dilation=1,
        padding_mode: str = "zeros",
        device=None,
        dtype=None,
    ):
        super().__init__(0, 0, kernel_size, stride, padding, output_padding, groups, False, dilation, padding_mode)
        self.out_channels = out_channels
        self._without_shape(True, bias, device, dtype)


class LazyConvTranspose1d(_LazyTransposedConvolution, ConvTranspose1d):
    """ConvTranspose1d, whose ``in_channels`` is that of the first input. Follows ``torch.nn.LazyConvTranspose1d``."""

    cls_to_become = ConvTranspose1d


class LazyConvTranspose2d(_LazyTransposedConvolution, ConvTranspose2d):
    """ConvTranspose2d, whose ``in_channels`` is that of the first input. Follows ``torch.nn.LazyConvTranspose2d``."""

    cls_to_become = ConvTranspose2d


class LazyConvTranspose3d(_LazyTransposedConvolution, ConvTranspose3d):
    """ConvTranspose3d, whose ``in_channels`` is that of the first input. Follows ``torch.nn.LazyConvTranspose3d``."""

    cls_to_become = ConvTranspose3d


class _LazyNorm(_LazyLayer, _Norm):
    sized_by = "num_features"

    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, device=None, dtype=None, *, bias=True
    ):
        super().__init__(0, eps, momentum, False, False, None, None, bias=False)
        self.affine, self.track_running_stats = affine, track_running_stats
        self._without_shape(affine, affine and bias, device, dtype)
        if track_running_stats:
            self.running_mean = UninitializedBuffer(device=device, dtype=dtype)
            self.running_var = UninitializedBuffer(device=device, dtype=dtype)
            self.num_batches_tracked = tensor(0, dtype=int64, device=device)

    def _size_of(self, input: Tensor) -> int:
        return input.shape[1]

    def _shapes(self) -> dict[str, tuple]:
        return dict.fromkeys(("weight", "bias", "running_mean", "running_var"), (self.num_features,))


class LazyBatchNorm1d(_LazyNorm, BatchNorm1d):
    """BatchNorm1d of as many channels as the first input has. Follows ``torch.nn.LazyBatchNorm1d``."""

    cls_to_become = BatchNorm1d


class LazyBatchNorm2d(_LazyNorm, BatchNorm2d):
    """BatchNorm2d of as many channels as the first input has. Follows ``torch.nn.LazyBatchNorm2d``."""

    cls_to_become = BatchNorm2d


class LazyBatchNorm3d(_LazyNorm, BatchNorm3d):
    """BatchNorm3d of as many channels as the first input has. Follows ``torch.nn.LazyBatchNorm3d``."""

    cls_to_become = BatchNorm3d


class LazyInstanceNorm1d(_LazyNorm, InstanceNorm1d):
    """InstanceNorm1d of as many channels as the first input has. Follows ``torch.nn.LazyInstanceNorm1d``."""

    cls_to_become = InstanceNorm1d


class LazyInstanceNorm2d(_LazyNorm, InstanceNorm2d):
    """InstanceNorm2d of as many channels as the first input has. Follows ``torch.nn.LazyInstanceNorm2d``."""

    cls_to_become = InstanceNorm2d


class LazyInstanceNorm3d(_LazyNorm, InstanceNorm3d):
    """InstanceNorm3d of as many channels as the first input has. Follows ``torch.nn.LazyInstanceNorm3d``."""

    cls_to_become = InstanceNorm3d
