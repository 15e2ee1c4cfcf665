"""Modules of images and of losses of margins, as test_modules.py has them: the constructor's call, and the inputs."""

import numpy as np


def floats(*shape, low=-2.0, high=2.0, seed=3):
    return np.random.default_rng(seed).uniform(low, high, shape)


def of(source):
    """The call of a constructor in library m."""
    return lambda m: eval(source, vars(m.nn).copy())


L, H, D = floats(2, 4, 6), floats(2, 4, 5, 6), floats(1, 4, 3, 4, 3)
SAMPLES = {1: L, 2: H, 3: D}
PAIR = floats(5, 3), floats(5, 3, seed=4)
SIGNS = np.array([1, -1, 1, -1, 1])
BAGS = np.array([[0, 1, 2], [2, 2, 1]])

LAYERS = {"GroupNorm": (of("GroupNorm(2, 4)"), L), "LocalResponseNorm": (of("LocalResponseNorm(2, alpha=0.1)"), L)}
for n, x in SAMPLES.items():
    LAYERS |= {
        f"{name}{n}d": (of(f"{name}{n}d({arguments})"), x)
        for name, arguments in (
            ("MaxPool", "2"),
            ("AvgPool", "2"),
            ("LPPool", "2, 2"),
            ("AdaptiveAvgPool", "3"),
            ("AdaptiveMaxPool", "3"),
            ("ConstantPad", "1, 2.5"),
            ("ZeroPad", "1"),
            ("ReflectionPad", "1"),
            ("ReplicationPad", "2"),
            ("CircularPad", "1"),
            ("BatchNorm", "4"),
            ("InstanceNorm", "4, affine=True"),
        )
    }
    LAYERS[f"MaxUnpool{n}d"] = (of(f"MaxUnpool{n}d(2)"), x, np.arange(x.size).reshape(x.shape) % x[0, 0].size)
for n in (2, 3):
    LAYERS[f"FractionalMaxPool{n}d"] = (
        lambda m, n=n: getattr(m.nn, f"FractionalMaxPool{n}d")(
            2, 2, _random_samples=m.full((2, 4, n), 0.4, dtype=m.float64)
        ),
        floats(2, 4, *(5,) * n),
    )
LAYERS |= {
    "LPPool1d": (of("LPPool1d(2, 2)"), abs(L)),
    "LPPool2d": (of("LPPool2d(2, 2)"), abs(H)),
    "LPPool3d": (of("LPPool3d(2, 2)"), abs(D)),
    "BatchNorm1d, momentum=None": (of("BatchNorm1d(4, momentum=None)"), L),
    "BatchNorm1d, no statistics": (of("BatchNorm1d(4, track_running_stats=False, bias=False)"), L),
    "Softmax2d": (of("Softmax2d()"), H),
    "Upsample": (of("Upsample(scale_factor=(2, 1.5), mode='bilinear')"), H),
    "UpsamplingNearest2d": (of("UpsamplingNearest2d(scale_factor=2)"), H),
    "UpsamplingBilinear2d": (of("UpsamplingBilinear2d(7)"), H),
    "PixelShuffle": (of("PixelShuffle(2)"), H),
    "PixelUnshuffle": (of("PixelUnshuffle(2)"), floats(1, 2, 4, 6)),
    "ChannelShuffle": (of("ChannelShuffle(2)"), H),
    "EmbeddingBag": (of("EmbeddingBag(3, 4)"), BAGS),
    "EmbeddingBag, sum": (of("EmbeddingBag(3, 4, mode='sum', padding_idx=1)"), BAGS),
    "PairwiseDistance": (of("PairwiseDistance()"), *PAIR),
    "CosineSimilarity": (of("CosineSimilarity()"), *PAIR),
    "SoftMarginLoss": (of("SoftMarginLoss()"), L[0, 0, :5], SIGNS),
    "MultiLabelMarginLoss": (of("MultiLabelMarginLoss()"), PAIR[0], np.array([[0, 2, -1]] * 5)),
    "MultiLabelSoftMarginLoss": (of("MultiLabelSoftMarginLoss()"), PAIR[0], np.array([[0, 1, 1]] * 5)),
    "MultiMarginLoss": (of("MultiMarginLoss(2, 0.5)"), PAIR[0], np.array([0, 2, 1, 2, 0])),
    "HingeEmbeddingLoss": (of("HingeEmbeddingLoss(0.5)"), L[0, 0, :5], SIGNS),
    "CosineEmbeddingLoss": (of("CosineEmbeddingLoss(0.1)"), *PAIR, SIGNS),
    "MarginRankingLoss": (of("MarginRankingLoss(0.1)"), L[0, 0, :5], L[1, 0, :5], SIGNS),
    "TripletMarginLoss": (of("TripletMarginLoss(swap=True)"), *PAIR, floats(5, 3, seed=5)),
    "TripletMarginWithDistanceLoss": (of("TripletMarginWithDistanceLoss()"), *PAIR, floats(5, 3, seed=5)),
    "PoissonNLLLoss": (of("PoissonNLLLoss()"), PAIR[0], np.array([[0, 2, 1]] * 5)),
    "GaussianNLLLoss": (of("GaussianNLLLoss()"), *PAIR, floats(5, 3, low=0.5)),
    "CTCLoss": (of("CTCLoss()"), floats(4, 2, 3), np.array([[1, 2], [2, 1]]), np.array([4, 4]), np.array([2, 1])),
}
