"""Padding and pooling."""

import math
from dataclasses import replace

from compare import FLOATS

from optable.core import NUMBERS, Op, S, T, only, rough
from optable.nn import fn, functional


PADDING = (
    Op(
        "F.pad",
        (
            S(T(2, 3), (1, 2)),
            S(T(2, 3), (1, 2, 0, 1), value=2),
            S(T(2, 3), [-1, 1], "constant", None),
            S(T(3, 2, 4), (-1, -2, 1, 0, 2, -1), value=1),
            S(T(2, 3), ()),
            S(T(0, 3), (1, 1)),
            S(T(2, 0), (2, 1, 1, 0)),
            S(T(), ()),
            S(T(2, 1, 3, 2, layout="transposed"), (1, 0, 0, 2)),
            S(T(2, 3, layout="expanded"), (1, 1)),
        ),
        call=functional("pad"),
    ),
    Op(
        "F.pad(circular)",
        (
            S(T(2, 3), (3, 2), mode="circular"),
            S(T(2, 3), (-1, 2), "circular"),
            S(T(1, 4, 3), (2, -1, 1, 4), "circular"),
            S(T(1, 2, 3, 2, 2), (1, 0, 0, 1, 2, 3), "circular"),
            S(T(0, 2, 3), (1, 0), "circular"),
            S(T(2, 2, 3, 2, layout="transposed"), (1, 2, 2, 0), "circular"),
        ),
        call=functional("pad"),
    ),
    Op(
        "F.pad(own)",
        tuple(
            S(t, pad, mode)
            for mode in ("reflect", "replicate")
            for t, pad in (
                (T(2, 3), (2, 1)),
                (T(1, 2, 4), (3, 0)),
                (T(2, 4), (-1, 3)),
                (T(2, 4), (2, -3)),
                (T(1, 3, 4), (1, 3, 2, 0)),
                (T(2, 1, 3, 2), (1, -1, -1, 2)),
                (T(1, 2, 3, 2), (1, 0, 0, 1, 2, 0)[:4]),
                (T(1, 2, 3, 2, 3), (1, 2, 0, 1, 2, 0)),
                (T(2, 2, 3, 2), (1, 0, 0, 1, -1, 1)),
                (T(0, 2, 3), (1, 0)),
                (T(2, 2, 3, 2, layout="transposed"), (1, 0, 1, 0)),
                (T(2, 3, layout="strided"), (1, 1)),
            )
            if mode != "reflect" or t.shape[-1] > max(pad)
        )
        + (S(T(2, 3), (4, 5), "replicate"),),
        call=functional("pad"),
        dtypes=NUMBERS,
        half_ulps=4,
    ),
)

X1, X2, X3 = T(2, 2, 6, distinct=True), T(1, 2, 5, 6, distinct=True), T(1, 2, 4, 3, 4, distinct=True)
EDGES = T(1, 6, values=(math.nan, 1.0, -math.inf, -math.inf, math.nan, math.inf), grad=False)


def channels_last(name):
    """Of an input whose channels lie closest together; the result's strides are asked for, too."""

    def call(m, x, *args, **kwargs):
        form = m.channels_last if x.dim() == 4 else m.channels_last_3d
        return getattr(m.nn.functional, name)(x.contiguous(memory_format=form), *args, **kwargs)

    return call


def pool(name, samples, **how):
    how = {"dtypes": NUMBERS, "half_ulps": 4, "cpu": True} | how
    return Op(f"F.{name}", tuple(samples), call=functional(name), **how)


def _both(sample):
    """With and without indices."""
    return sample, replace(sample, kwargs=sample.kwargs | {"return_indices": True})


MAXIMA = (
    pool(
        "max_pool1d",
        (
            *_both(S(X1, 2)),
            *_both(S(X1, 3, 2, 1)),
            S(T(3, 7, distinct=True), (3,), stride=(2,), dilation=2),
            S(T(2, 7, distinct=True), 3, 2, 1, 2, True),
            *only(FLOATS, *(rough(s) for s in _both(S(EDGES, 2, 1)))),
            S(T(0, 2, 4), 2),
        ),
        dtypes=FLOATS,
    ),
    pool(
        "max_pool2d",
        (
            *_both(S(X2, 2)),
            *_both(S(X2, 3, 2, 1)),
            *_both(S(X2, (2, 3), (1, 2), (1, 0), (2, 1), ceil_mode=True)),
            S(T(2, 5, 6, distinct=True), [3], []),
            S(T(2, 3, 4, 5, distinct=True, layout="transposed"), 2, 1),
            S(T(0, 2, 4, 4), 2),
        ),
    ),
    pool(
        "max_pool3d",
        (
            *_both(S(X3, 2)),
            *_both(S(X3, 3, 2, 1)),
            S(T(2, 4, 3, 5, distinct=True), (2, 1, 3), 1, (1, 0, 1), dilation=(1, 2, 1)),
        ),
    ),
    Op(
        "F.max_pool2d(channels_last)",
        (
            *_both(S(T(2, 3, 5, 6, distinct=True), 3, 2, 1)),
            *_both(S(T(1, 130, 4, 4, distinct=True), 2, dilation=2)),
            *only(FLOATS, *_both(S(T(2, 3, 1, 4, grad=False), (2, 1), 1, (1, 0), (2, 1)))),  # of padding alone
        ),
        call=channels_last("max_pool2d"),
        dtypes=NUMBERS,
        view=True,
    ),
    pool("adaptive_max_pool1d", (*_both(S(X1, 4)), S(T(2, 5, distinct=True), [3])), dtypes=FLOATS),
    pool(
        "adaptive_max_pool2d",
        (*_both(S(X2, 3)), *_both(S(X2, (None, 4))), S(T(1, 2, 5, 6, grad=False), 0)),
        dtypes=FLOATS,
    ),
    pool("adaptive_max_pool3d", (*_both(S(X3, 2)), S(X3, (3, None, 2))), dtypes=FLOATS),
    pool(
        "fractional_max_pool2d",
        (
            *_both(S(X2, 2, 3, _random_samples=T(1, 2, 2, low=0, high=0.99, grad=False))),
            S(X2, (2, 1), output_ratio=(0.5, 0.6), _random_samples=T(1, 2, 2, low=0, high=0.99, grad=False)),
            S(X2, 2, 1, _random_samples=T(1, 2, 2, low=0, high=0.99, grad=False)),
        ),
        dtypes=("float32", "float64"),
        composite=True,
    ),
    pool(
        "fractional_max_pool3d",
        _both(S(X3, 2, (2, 1, 2), _random_samples=T(1, 2, 3, low=0, high=0.99, grad=False))),
        dtypes=("float32", "float64"),
        composite=True,
    ),
    *(
        Op(
            f"F.max_unpool{n}d",
            (
                S(T(2, *(3,) * n), 2),
                S(T(2, *(3,) * n), 3, 2, 1),
                S(T(2, 1, *(3,) * n), 2, output_size=(7,) * n),
            ),
            # Places in the windows, as max_pool finds them.
            call=lambda m, x, k, stride=None, padding=0, n=n, **how: getattr(m.nn.functional, f"max_unpool{n}d")(
                x, _places(m, x, n), k, stride, padding, **how
            ),
            dtypes=FLOATS,
        )
        for n in (1, 2, 3)
    ),
)


def _places(m, x, n):
    """Different places in the last n dimensions, taken as one, for each element."""
    count = math.prod(x.shape[-n:])
    return m.arange(x.numel(), device=x.device).reshape(x.shape) % count


MEANS = (
    pool(
        "avg_pool1d",
        (S(T(2, 2, 6), 2), S(T(2, 2, 6), (3,), 2, 1), S(T(3, 7), 3, 2, 1, True, False), S(T(0, 2, 4), 2)),
        dtypes=(*FLOATS, "int64"),
    ),
    pool(
        "avg_pool2d",
        (
            S(T(1, 2, 5, 6), 2),
            S(T(1, 2, 5, 6), (2, 3), (1, 2), (1, 0), True),
            S(T(2, 5, 6), 3, 2, 1, ceil_mode=True, count_include_pad=False),
            S(T(1, 2, 5, 6), 2, divisor_override=3),
            S(T(2, 3, 4, 5, layout="transposed"), 2, 1),
        ),
        dtypes=(*FLOATS, "int64"),
    ),
    pool(
        "avg_pool3d",
        (S(T(1, 2, 4, 3, 4), 2), S(T(2, 4, 3, 5), (2, 1, 3), 1, (1, 0, 1), True, False)),
        dtypes=("float32", "float64", "int64"),
        composite=True,
    ),
    Op(
        "F.avg_pool2d(channels_last)",
        (S(T(2, 3, 5, 6), 3, 2, 1), S(T(1, 130, 4, 4), 2, divisor_override=3)),
        call=channels_last("avg_pool2d"),
        dtypes=(*FLOATS, "int64"),
        half_ulps=4,
    ),
    pool("adaptive_avg_pool1d", (S(T(2, 2, 6), 4), S(T(2, 5), [3])), dtypes=FLOATS),
    pool("adaptive_avg_pool2d", (S(T(1, 2, 5, 6), 3), S(T(1, 2, 5, 6), (None, 4)), S(T(2, 5, 6), 1)), dtypes=FLOATS),
    pool("adaptive_avg_pool3d", (S(T(1, 2, 4, 3, 4), 2), S(T(2, 4, 3, 4), (3, None, 2))), dtypes=FLOATS),
    *(
        fn(
            f"lp_pool{n}d",
            (
                S(T(1, 2, *(5,) * n, low=0.2, high=2), 2, 2),
                S(T(2, *(5,) * n, low=0.2, high=2), 3.0, 3, 2, True),
                S(T(2, *(5,) * n, low=0.2, high=2), norm_type=1, kernel_size=(2,) * n if n > 1 else 2, stride=1),
            ),
            dtypes=FLOATS if n < 3 else ("float32", "float64"),
            half_ulps=16,
            composite=True,
        )
        for n in (1, 2, 3)
    ),
)


WITH_INDICES = tuple(
    pool(f"{kind}_with_indices", (S(x, *arguments),), dtypes=("float32", "float64"), composite=True)
    for kinds, arguments in ((("max_pool{}d", "adaptive_max_pool{}d"), (2,)),)
    for n, x in ((1, X1), (2, X2), (3, X3))
    for kind in [k.format(n) for k in kinds]
) + tuple(
    pool(
        f"fractional_max_pool{n}d_with_indices",
        (S(x, 2, (2, 1, 2)[:n], _random_samples=T(1, 2, n, low=0, high=0.99, grad=False)),),
        dtypes=("float32", "float64"),
        composite=True,
    )
    for n, x in ((2, X2), (3, X3))
)

OPS = PADDING + MAXIMA + MEANS + WITH_INDICES
