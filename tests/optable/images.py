"""What networks do with images: normalisation over batches, shuffled pixels, resampling."""

from optable.core import Op, S, T, only, rough
from optable.nn import fn, functional
from optable.windows import channels_last

CHANNELS = T(3, low=0.5, high=2)
MEAN, VARIANCE = T(3, grad=False), T(3, low=0.5, high=2, grad=False)


def _with_running(name):
    """The result, and the running statistics behind it, which are made anew for every call."""

    def call(m, x, mean, variance, *args, **kwargs):
        mean, variance = mean.clone(), variance.clone()
        out = getattr(m.nn.functional, name)(x, mean, variance, *args, **kwargs)
        return out, mean, variance

    return call


STEPS = {"half_ulps": 16, "composite": True}
BATCHES = (
    fn(
        "batch_norm",
        (
            S(T(4, 3), None, None, CHANNELS, T(3), True),
            S(T(2, 3, 4), None, None, training=True),
            S(T(2, 3, 2, 2), None, None, CHANNELS, None, True, 0.1, 1e-2),
            S(T(2, 3, 2, 2), None, None, None, T(3), True),
            S(T(4, 3), MEAN, VARIANCE, CHANNELS, T(3)),
            S(T(2, 3, 4), MEAN, VARIANCE, training=False, eps=0.1),
            S(T(2, 3, 2, 1, 2), MEAN, VARIANCE, None, T(3)),
            S(T(2, 3, 2, 2, layout="transposed"), None, None, CHANNELS, T(3), training=True),
            rough(S(T(0, 3, 2, grad=False), MEAN, VARIANCE, CHANNELS, T(3))),
        ),
        **STEPS,
    ),
    Op(
        "F.batch_norm(running)",
        (
            S(T(4, 3), MEAN, VARIANCE, CHANNELS, T(3), True, 0.25),
            S(T(2, 3, 2, 2), MEAN, VARIANCE, training=True, momentum=1.0),
        ),
        call=_with_running("batch_norm"),
        dtypes=("float32", "float64"),
        composite=True,
    ),
    fn(
        "instance_norm",
        (
            S(T(2, 3, 4)),
            S(T(2, 3, 2, 2), None, None, CHANNELS, T(3)),
            S(T(2, 3, 4), MEAN, VARIANCE, CHANNELS, T(3), False),
        ),
        **STEPS,
    ),
    Op(
        "F.instance_norm(running)",
        (S(T(2, 3, 4), MEAN, VARIANCE, CHANNELS, T(3), True, 0.25),),
        call=_with_running("instance_norm"),
        dtypes=("float32", "float64"),
        composite=True,
    ),
    fn(
        "local_response_norm",
        (
            S(T(2, 5, 3), 3),
            S(T(2, 5, 2, 2), 2, 0.5, 0.5, 2.0),
            S(T(1, 4, 2, 1, 2), size=4, alpha=0.1),
        ),
        dtypes=("float32", "float64"),
        composite=True,
    ),
)

SHUFFLES = (
    Op(
        "pixel_shuffle",
        (
            S(T(1, 8, 2, 3), 2),
            S(T(9, 1, 2), 3),
            S(T(2, 1, 4, 2, 2), 2),
            S(T(2, 2, 2), 1),
            S(T(3, 4, 2, 2, layout="transposed"), 2),
        ),
        call=functional("pixel_shuffle"),
    ),
    Op(
        "pixel_unshuffle",
        (S(T(1, 2, 4, 6), 2), S(T(1, 3, 6), 3), S(T(2, 2, 2), 1), S(T(4, 2, 4, 2, layout="transposed"), 2)),
        call=functional("pixel_unshuffle"),
    ),
    Op(
        "channel_shuffle",
        (S(T(1, 6, 2, 2), 3), S(T(2, 4, 3), 2), S(T(2, 6, 2, 1, 2), 2)),
        call=functional("channel_shuffle"),
    ),
)

L1, L2, L3 = T(2, 2, 5), T(1, 2, 4, 5), T(1, 2, 3, 2, 4)
RESAMPLING = (
    fn(
        "interpolate",
        (
            *(
                S(t, **where, mode=mode)
                for mode in ("nearest", "nearest-exact", "area")
                for t, where in ((L1, {"size": 7}), (L2, {"scale_factor": (1.6, 0.7)}), (L3, {"size": (2, 5, 3)}))
            ),
            S(L2, None, 2.0),
            *(
                S(t, **where, mode=mode, align_corners=align)
                for align in (False, True)
                for mode, t in (("linear", L1), ("bilinear", L2), ("trilinear", L3), ("bicubic", L2))
                for where in ({"size": (7, 3, 4)[: len(t.shape) - 2]}, {"scale_factor": 1.6})
            ),
            S(L2, scale_factor=(0.6, 1.7), mode="bilinear", recompute_scale_factor=True),
            *only(
                ("float32", "float64"),
                *(
                    S(t, size, mode=mode, antialias=True, align_corners=align)
                    for mode, align in (("bilinear", False), ("bicubic", False), ("bilinear", True))
                    for t, size in ((T(1, 2, 7, 8), (3, 4)), (L2, (9, 2)))
                ),
            ),
            S(T(2, 3, 2, 4, layout="transposed"), (3, 5), mode="bilinear"),
        ),
        half_ulps=8,
        composite=True,
    ),
    Op(
        "F.interpolate(channels_last)",
        tuple(
            S(t, scale_factor=factor, mode=mode)
            for mode in ("bilinear", "bicubic", "nearest")
            for t, factor in ((T(2, 3, 4, 5), 1.7), (T(1, 70, 5, 4), 0.6))
        ),
        call=channels_last("interpolate"),
        dtypes=("float32", "float64"),
        composite=True,
    ),
    Op(
        "F.interpolate(uint8)",
        tuple(
            S(T(1, 2, 4, 5, dtype="uint8", low=0, high=255), (7, 3), mode=mode) for mode in ("nearest", "nearest-exact")
        ),
        call=functional("interpolate"),
        dtypes=("float32",),
        composite=True,
    ),
)

UPSAMPLING = (
    fn("upsample", (S(L2, 7), S(L1, scale_factor=2, mode="linear")), half_ulps=8, composite=True),
    fn("upsample_nearest", (S(L2, (3, 7)), S(L2, scale_factor=2)), half_ulps=8, composite=True),
    fn("upsample_bilinear", (S(L2, (3, 7)), S(L2, scale_factor=2)), half_ulps=8, composite=True),
)

GRID, GRID3 = T(1, 3, 2, 2, low=-1.3, high=1.3), T(1, 2, 3, 2, 3, low=-1.3, high=1.3)
PLACES = (
    fn(
        "grid_sample",
        (
            *(
                S(T(1, 2, 4, 5), GRID, mode, padding, align)
                for mode in ("bilinear", "nearest", "bicubic")
                for padding in ("zeros", "border", "reflection")
                for align in (False, True)
            ),
            *(
                S(T(1, 2, 3, 2, 4), GRID3, mode, padding, align)
                for mode, padding, align in (("bilinear", "zeros", True), ("nearest", "border", False))
            ),
            S(T(1, 2, 3, 2, 4), GRID3, padding_mode="reflection"),
            S(T(1, 2, 4, 5, layout="transposed"), T(1, 3, 2, 2, layout="transposed", low=-1, high=1)),
        ),
        # torch knows no second derivative. In half types the places themselves are rounded.
        twice=False,
        dtypes=("float32", "float64"),
        composite=True,
    ),
    fn(
        "affine_grid",
        (S(T(2, 2, 3), (2, 1, 3, 4), False), S(T(1, 2, 3), (1, 2, 1, 3), True), S(T(1, 3, 4), (1, 1, 2, 3, 2), False)),
        dtypes=("float32", "float64"),
        composite=True,
    ),
)

OPS = BATCHES + SHUFFLES + RESAMPLING + UPSAMPLING + PLACES
