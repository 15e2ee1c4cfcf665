"""Paths that PyTorch's modules have, or had, for names that tinytorch has elsewhere: old path -> the modules in which
they are, and further names that stand there for those of the modules."""

from __future__ import annotations

from typing import NamedTuple


class Home(NamedTuple):
    """Names of an old path, and where they are."""

    modules: tuple[str, ...]
    renamed: dict[str, str] = {}


def _at(*modules: str, **renamed: str) -> Home:
    return Home(modules, renamed)


PATHS = {
    "_tensor": _at("tensor"),
    "amp.grad_scaler": _at("amp.grad_scaler"),
    "autograd.anomaly_mode": _at("autograd.anomaly"),
    "autograd.profiler": _at("profiler"),
    "autograd.variable": _at("autograd.variable"),
    "cuda.amp.grad_scaler": _at("amp.grad_scaler"),
    "nn.modules.activation": _at("nn.activation", "nn.multihead", "nn.linear"),
    "nn.modules.adaptive": _at("nn.adaptive"),
    "nn.modules.batchnorm": _at("nn.batch_norm", "nn.lazy", _NormBase="_Norm"),
    "nn.modules.channelshuffle": _at("nn.resampling"),
    "nn.modules.container": _at("nn.containers"),
    "nn.modules.conv": _at("nn.conv", "nn.lazy", _ConvTransposeNd="_TransposedConvolution"),
    "nn.modules.distance": _at("nn.distance"),
    "nn.modules.dropout": _at("nn.dropout", _DropoutNd="_Dropout"),
    "nn.modules.flatten": _at("nn.linear"),
    "nn.modules.fold": _at("nn.conv"),
    "nn.modules.instancenorm": _at("nn.batch_norm", "nn.lazy"),
    "nn.modules.linear": _at("nn.linear", "nn.lazy"),
    "nn.modules.loss": _at("nn.loss", "nn.margin_loss"),
    "nn.modules.normalization": _at("nn.normalization"),
    "nn.modules.padding": _at("nn.padding", _ConstantPadNd="_ConstantPad"),
    "nn.modules.pixelshuffle": _at("nn.resampling"),
    "nn.modules.pooling": _at(
        "nn.pooling",
        _MaxPoolNd="_MaxPool",
        _AvgPoolNd="_AvgPool",
        _AdaptiveAvgPoolNd="_AdaptiveAvgPool",
        _AdaptiveMaxPoolNd="_AdaptiveMaxPool",
    ),
    "nn.modules.rnn": _at("nn.recurrent"),
    "nn.modules.sparse": _at("nn.sparse"),
    "nn.modules.transformer": _at("nn.transformer", "nn.multihead", _get_clones="_copies"),
    "nn.modules.upsampling": _at("nn.resampling"),
    "utils.data._utils.collate": _at("utils.data.collate"),
    "utils.data.dataloader": _at("utils.data.loader", "utils.data.collate", "utils.data.workers", "utils.data"),
}
