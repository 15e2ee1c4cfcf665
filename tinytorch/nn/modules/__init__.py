"""PyTorch's paths to layers, to what makes them lazy, and to hooks on all modules. Follows ``torch.nn.modules``."""

from __future__ import annotations

import sys
import types

from .. import batch_norm, conv, dropout, linear, loss, padding, pooling, transformer
from . import lazy, module, utils  # noqa: F401 (PyTorch's paths)
from .module import Module

_nn = sys.modules[__package__.rpartition(".")[0]]  # which imports this module last

# PyTorch's files, and the layers that are in each.
_LAYERS = {
    "activation": """
        CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax
        Mish MultiheadAttention PReLU RReLU ReLU ReLU6 SELU SiLU Sigmoid Softmax Softmax2d Softmin
        Softplus Softshrink Softsign Tanh Tanhshrink Threshold
    """,
    "adaptive": """
        AdaptiveLogSoftmaxWithLoss
    """,
    "batchnorm": """
        BatchNorm1d BatchNorm2d BatchNorm3d LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d
        SyncBatchNorm
    """,
    "channelshuffle": """
        ChannelShuffle
    """,
    "container": """
        Container ModuleDict ModuleList ParameterDict ParameterList Sequential
    """,
    "conv": """
        Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d LazyConv1d LazyConv2d
        LazyConv3d LazyConvTranspose1d LazyConvTranspose2d LazyConvTranspose3d
    """,
    "distance": """
        CosineSimilarity PairwiseDistance
    """,
    "dropout": """
        AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout
    """,
    "flatten": """
        Flatten Unflatten
    """,
    "fold": """
        Fold Unfold
    """,
    "instancenorm": """
        InstanceNorm1d InstanceNorm2d InstanceNorm3d LazyInstanceNorm1d LazyInstanceNorm2d
        LazyInstanceNorm3d
    """,
    "linear": """
        Bilinear Identity LazyLinear Linear
    """,
    "loss": """
        BCELoss BCEWithLogitsLoss CTCLoss CosineEmbeddingLoss CrossEntropyLoss GaussianNLLLoss
        HingeEmbeddingLoss HuberLoss KLDivLoss L1Loss LinearCrossEntropyLoss MSELoss
        MarginRankingLoss MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss
        NLLLoss2d PoissonNLLLoss SmoothL1Loss SoftMarginLoss TripletMarginLoss
        TripletMarginWithDistanceLoss
    """,
    "normalization": """
        CrossMapLRN2d GroupNorm LayerNorm LocalResponseNorm RMSNorm
    """,
    "padding": """
        CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d
        ReflectionPad1d ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d
        ReplicationPad3d ZeroPad1d ZeroPad2d ZeroPad3d
    """,
    "pixelshuffle": """
        PixelShuffle PixelUnshuffle
    """,
    "pooling": """
        AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d
        AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d FractionalMaxPool2d FractionalMaxPool3d
        LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d
    """,
    "rnn": """
        GRU GRUCell LSTM LSTMCell RNN RNNBase RNNCell RNNCellBase
    """,
    "sparse": """
        Embedding EmbeddingBag
    """,
    "transformer": """
        Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder
        TransformerEncoderLayer
    """,
    "upsampling": """
        Upsample UpsamplingBilinear2d UpsamplingNearest2d
    """,
}

# Classes that are not public, but that programs ask for: isinstance(layer, nn.modules.batchnorm._BatchNorm).
_BASES = {
    "batchnorm": {"_BatchNorm": batch_norm._BatchNorm, "_NormBase": batch_norm._Norm},
    "conv": {"_ConvNd": conv._ConvNd, "_ConvTransposeNd": conv._TransposedConvolution},
    "dropout": {"_DropoutNd": dropout._Dropout},
    "instancenorm": {"_InstanceNorm": batch_norm._InstanceNorm, "_NormBase": batch_norm._Norm},
    "linear": {"NonDynamicallyQuantizableLinear": linear.NonDynamicallyQuantizableLinear},
    "loss": {"_Loss": loss._Loss, "_WeightedLoss": loss._WeightedLoss},
    "padding": {"_ConstantPadNd": padding._ConstantPad},
    "pooling": {
        "_AdaptiveAvgPoolNd": pooling._AdaptiveAvgPool,
        "_AdaptiveMaxPoolNd": pooling._AdaptiveMaxPool,
        "_AvgPoolNd": pooling._AvgPool,
        "_LPPoolNd": pooling._LPPool,
        "_MaxPoolNd": pooling._MaxPool,
        "_MaxUnpoolNd": pooling._MaxUnpool,
    },
    "transformer": {"_get_clones": transformer._copies},
}


def _publish(path: str, names: list[str]) -> None:
    """The module ``path``, with these layers in it; they are here as well."""
    made = types.ModuleType(f"{__name__}.{path}", f"Layers. Follows ``torch.nn.modules.{path}``.")
    made.__all__ = names
    for name in names:
        vars(made)[name] = globals()[name] = getattr(_nn, name)
    vars(made).update(_BASES.get(path, {}))
    sys.modules[made.__name__] = globals()[path] = made


for _path, _names in _LAYERS.items():
    _publish(_path, _names.split())

__all__ = ["Module", *sorted(name for names in _LAYERS.values() for name in names.split())]
