"""The functions of nn.functional that the first models need."""

import math

from compare import DTYPES, FLOATS

from optable.core import INTEGRAL, NUMBERS, ONE, Op, S, T, only, rough
from optable.index import index

EVERY = tuple(S(t) for t in ONE)
KINK = only(FLOATS, rough(S(T(4, values=(0.0, -0.0, 1.0, -1.0)))))
EXTREMES = only(FLOATS, rough(S(T(6, values=(math.inf, -math.inf, math.nan, 6e4, -6e4, 0.0), grad=False))))
# At infinity torch's own gelu gives inf or NaN as its dtype and instruction set will have it.
FINITE = only(FLOATS, rough(S(T(4, values=(math.nan, 6e4, -6e4, 0.0), grad=False))))
SOFTMAX = (
    S(T(2, 3), 1),
    S(T(2, 3), 0),
    S(T(2, 3), -2),
    S(T(), 0),
    S(T(0, 3), 0),
    S(T(2, 3, 4), dim=1),
    S(T(2, 3, layout="transposed"), 0),
    S(T(3, 4, layout="strided"), -1),
    S(T(2, 3, layout="expanded"), 1),
    *only(
        FLOATS,
        S(T(3, values=(3e4, 3e4, -3e4)), 0),
        rough(S(T(2, 2, values=(-math.inf, 1.0, -math.inf, 0.0), grad=False), 0)),
    ),
)


def functional(name):
    return lambda m, *args, **kwargs: getattr(m.nn.functional, name)(*args, **kwargs)


def fn(name, samples, **how):
    how = {"dtypes": FLOATS, "half_ulps": 4} | how
    return Op(name, tuple(samples), call=functional(name), **how)


def reduced(*args, **kwargs):
    """The sample with every reduction a loss knows."""
    return tuple(S(*args, reduction=r, **kwargs) for r in ("mean", "sum", "none"))


CLASSES = index(4, size=3)
# The first: where a loss has no second derivative, or no first.
EDGES = (T(6, values=(1.0, -1.0, 0.25, -0.25, 0.0, -0.0)), T(6, values=(math.inf, -math.inf, math.nan, 6e4, -6e4, 0.1)))
ORIGIN = T(6, values=(0.0,) * 6)
IGNORED = T(4, dtype="int64", values=(0, -100, 2, -100))

LAYERS = (
    Op("softmax", SOFTMAX, method=True, dtypes=FLOATS, half_ulps=4),
    Op("log_softmax", SOFTMAX, method=True, dtypes=FLOATS, half_ulps=4),
    Op("F.softmax", SOFTMAX, call=functional("softmax"), dtypes=FLOATS, half_ulps=4),
    Op("F.log_softmax", SOFTMAX, call=functional("log_softmax"), dtypes=FLOATS, half_ulps=4),
    fn("gelu", (*EVERY, *FINITE, *(S(t, approximate="tanh") for t in ONE[:5]))),
    fn("silu", (*EVERY, *EXTREMES)),
    Op("F.relu", (*EVERY, *KINK, *EXTREMES), call=functional("relu"), dtypes=NUMBERS),
    Op(
        "F.dropout",
        (S(T(2, 3), 0.5, False), S(T(2, 3), 0.0, True), S(T(2, 3), p=1.0)),
        call=functional("dropout"),
    ),
    # As they are in evaluation, which has no random numbers: tests/nn/test_modules.py has the others.
    Op("F.alpha_dropout", (S(T(3, 4)), S(T(3, 4), 0.0, True)), call=functional("alpha_dropout")),
    Op("F.feature_alpha_dropout", (S(T(2, 3, 4)),), call=functional("feature_alpha_dropout")),
    fn(
        "layer_norm",
        (
            S(T(2, 3), (3,)),
            S(T(2, 3), (3,), T(3), T(3)),
            S(T(2, 3), (2, 3), T(2, 3), T(2, 3)),
            S(T(2, 2, 3), (3,), T(3)),
            S(T(2, 3), [3], None, T(3), 1e-3),
            rough(S(T(0, 3), (3,), T(3), T(3))),
            S(T(3, 4, layout="transposed"), (4,), T(4, layout="strided"), T(4, layout="offset")),
        ),
    ),
    fn("mse_loss", (*reduced(T(2, 3), T(2, 3)), S(T(2, 3, layout="transposed"), T(2, 3)), S(T(), T()))),
    fn(
        "smooth_l1_loss",
        (
            *reduced(T(2, 3), T(2, 3)),
            *reduced(T(2, 3), T(2, 3, layout="transposed"), beta=0.5),
            *reduced(T(2, 3), T(2, 3), beta=0),
            S(T(), T(), beta=3),
            *only(FLOATS, *(rough(S(t, ORIGIN, beta=b, reduction="none")) for t in EDGES for b in (1.0, 0.25, 0))),
        ),
    ),
    fn(
        "huber_loss",
        (
            *reduced(T(2, 3), T(2, 3)),
            *reduced(T(2, 3), T(2, 3, layout="transposed"), delta=0.5),
            S(T(), T(), delta=3),
            S(T(2, 3), T(2, 3), delta=math.inf),
            *only(FLOATS, *(rough(S(t, ORIGIN, delta=b, reduction="none")) for t in EDGES for b in (1.0, 0.25))),
        ),
    ),
    fn(
        "nll_loss",
        (
            *reduced(T(4, 3), CLASSES),
            *reduced(T(4, 3), IGNORED),
            *reduced(T(4, 3), CLASSES, weight=T(3, low=0.5, high=2, grad=False)),
            S(T(3), index(size=3)),
            *reduced(T(2, 3, 4), index(2, 4, size=3)),
            S(T(4, 3), CLASSES, ignore_index=1),
            *reduced(T(2, 3, 4), index(2, 4, size=3), ignore_index=1, weight=T(3, low=0.5, high=2, grad=False)),
            S(T(4, 3, layout="transposed"), CLASSES),
        ),
    ),
    fn(
        "cross_entropy",
        (
            *reduced(T(4, 3), CLASSES),
            *reduced(T(4, 3), IGNORED),
            *reduced(T(4, 3), CLASSES, weight=T(3, low=0.5, high=2, grad=False)),
            *reduced(T(4, 3), CLASSES, label_smoothing=0.1),
            S(T(3), index(size=3)),
            *reduced(T(2, 3, 4), index(2, 4, size=3)),
            *reduced(T(4, 3), T(4, 3, low=0, high=1)),
            S(T(4, 3, layout="transposed"), CLASSES),
            *reduced(T(4, 3), CLASSES, label_smoothing=0.2, weight=T(3, low=0.5, high=2, grad=False)),
            *reduced(T(4, 3), IGNORED, label_smoothing=0.2, weight=T(3, low=0.5, high=2, grad=False)),
            *reduced(T(4, 3), T(4, 3, low=0, high=1), label_smoothing=0.2, weight=T(3, low=0.5, high=2, grad=False)),
            *reduced(T(2, 3, 4), T(2, 3, 4, low=0, high=1), weight=T(3, low=0.5, high=2, grad=False)),
            *reduced(T(2, 3, 4), index(2, 4, size=3), label_smoothing=0.2, ignore_index=1),
            *only(("float32", "float64"), S(T(1, 2, values=(1e4, -1e4)), T(1, dtype="int64", values=(1,)))),
        ),
    ),
    fn(
        "binary_cross_entropy_with_logits",
        (
            *reduced(T(2, 3), T(2, 3, low=0, high=1)),
            *reduced(T(2, 3), T(2, 3, low=0, high=1, grad=False), weight=T(3, low=0.5, high=2, grad=False)),
            S(T(2, 3), T(2, 3, low=0, high=1), pos_weight=T(3, low=0.5, high=2, grad=False)),
            S(T(2, 3, layout="transposed"), T(2, 3, low=0, high=1)),
            *only(FLOATS, S(T(2, values=(80.0, -80.0)), T(2, values=(0.0, 1.0), grad=False))),
        ),
    ),
    fn(
        "embedding",
        (
            S(index(3, size=5), T(5, 2)),
            S(index(2, 3, size=5), T(5, 2)),
            S(index(size=5), T(5, 2)),
            rough(S(index(0, size=5), T(5, 2))),
            rough(S(index(6, size=5), T(5, 2), padding_idx=1)),
            S(index(3, size=4), T(4, 3, layout="transposed")),
            rough(S(index(9, size=4), T(4, 3), padding_idx=1, scale_grad_by_freq=True)),
            S(T(3, dtype="int32", low=0, high=5), T(5, 2)),
        ),
        dtypes=DTYPES,
    ),
)

FEATURES = T(2, 4, 3)
PER_CHANNEL = (T(4), T(4))
PAIRS = ((T(2, 3), T(2, 3)), (T(2, 3, layout="transposed"), T(2, 3, layout="strided")), (T(3, 4), T(4)))
SAME = rough(S(T(2, 2, values=(1.0, 2.0, 0.0, 3.0)), T(2, 2, values=(1.0, 2.0, 0.0, 1.0))))

ACTIVATIONS = (
    fn("celu", (*EVERY, *KINK, *EXTREMES, *(S(t, 0.5) for t in ONE[:5]), S(T(2, 3), alpha=-2.0))),
    fn("selu", (*EVERY, *KINK, *EXTREMES)),
    fn(
        "hardshrink",
        (
            *EVERY,
            *EXTREMES,
            S(T(2, 3), 0.25),
            S(T(2, 3), lambd=0.0),
            S(T(2, 3), -1.0),
            *only(FLOATS, rough(S(T(4, values=(0.5, -0.5, 0.75, math.nan))))),
        ),
        method=True,
        half_ulps=1,
    ),
    fn(
        "prelu",
        (
            *only(
                FLOATS,
                *(S(t, T(1)) for t in ONE),
                S(T(2, 3), T(3)),
                S(T(2, 3, 4), T(3)),
                S(T(2, 3), T()),
                S(T(4), T(1)),
                S(T(2, 3, layout="transposed"), T(3, layout="strided")),
                rough(S(T(4, values=(0.0, -0.0, 1.0, -1.0)), T(1))),
                rough(S(T(4, values=(math.inf, -math.inf, math.nan, 0.0), grad=False), T(1, grad=False))),
            ),
            # Integers are refused by torch whatever the weight; here, so far, only for a weight of a wrong size.
            *only(INTEGRAL, S(T(2, 3), T(4))),
        ),
        method=True,
    ),
)

NORMS = (
    fn(
        "group_norm",
        (
            S(FEATURES, 2),
            S(FEATURES, 1),
            S(FEATURES, 4, *PER_CHANNEL),
            S(FEATURES, 2, *PER_CHANNEL),
            S(FEATURES, 2, T(4)),
            # torch has no gradient for a bias alone.
            S(FEATURES, 2, None, T(4, grad=False), 1e-3),
            S(T(3, 4), 1, *PER_CHANNEL),
            S(T(2, 4, 2, 3), 2, *PER_CHANNEL, eps=0.1),
            S(T(2, 4, 3, layout="transposed"), 2, T(4, layout="strided"), T(4, layout="offset")),
            # torch's own backward fails for an empty batch.
            S(T(0, 4, 3, grad=False), 2, T(4, grad=False), T(4, grad=False)),
        ),
    ),
    fn(
        "rms_norm",
        (
            S(T(2, 3), (3,)),
            S(T(2, 3), (3,), T(3)),
            S(T(2, 3), (2, 3), T(2, 3)),
            S(T(2, 2, 3), [3], T(3), 1e-3),
            S(T(2, 3), (3,), eps=0.5),
            S(T(3, 4, layout="transposed"), (4,), T(4, layout="strided")),
            rough(S(T(0, 3), (3,), T(3))),
            *only(FLOATS, rough(S(T(2, 2, values=(0.0, 0.0, 1.0, -1.0)), (2,), None, 1e-3))),
            # Small enough for eps to count, and too steep for finite differences.
            *only(("float32", "float64"), rough(S(T(1, 3, values=(1e-4, 2e-4, -3e-4)), (3,)))),
        ),
    ),
)

DISTANCES = (
    fn(
        "cosine_similarity",
        (
            *(S(*pair) for pair in PAIRS[:2]),
            S(T(2, 3), T(2, 3), 0),
            S(T(2, 3), T(2, 3), dim=-1, eps=0.5),
            # torch's derivative takes no notice of a norm below eps.
            S(T(2, 3, grad=False), T(2, 3, grad=False), eps=1e3),
            S(T(3, 1, 4), T(2, 4), -1),
            *only(("float32", "float64"), S(T(1, 2, 3), T(2, 1, 3), dim=-2)),
            S(T(3), T(3), 0),
            rough(S(T(0, 3), T(0, 3))),
            # In float16 eps is 0, and the result NaN in torch too.
            *only(
                ("bfloat16", "float32", "float64"),
                rough(S(T(2, 2, values=(0.0, 0.0, 1.0, 2.0)), T(2, 2, values=(1.0, 2.0, 2.0, 4.0)))),
            ),
        ),
    ),
    fn(
        "pairwise_distance",
        (
            *(S(*pair) for pair in PAIRS),
            *(S(T(2, 3), T(2, 3), p) for p in (1.0, 3.0, 1.5, math.inf)),
            *(S(T(2, 3), T(2, 3), p=2, keepdim=keepdim) for keepdim in (True, False)),
            S(T(2, 3), T(2, 3), eps=0.5),
            S(T(3), T(3)),
            S(T(2, 2, 3), T(2, 1, 3)),
            rough(S(T(0, 3), T(0, 3))),
            SAME,
        ),
        dtypes=NUMBERS,
    ),
    fn(
        "triplet_margin_loss",
        (
            *reduced(T(3, 4), T(3, 4), T(3, 4)),
            *reduced(T(3, 4), T(3, 4), T(3, 4), margin=5.0, swap=True),
            S(T(3, 4), T(3, 4), T(3, 4), 4.0, 1),
            S(T(3, 4), T(3, 4), T(3, 4), p=3, eps=0.1, margin=4.0),
            S(T(3, 4, layout="transposed"), T(3, 4, layout="strided"), T(3, 4, layout="offset"), margin=6.0),
            S(T(4), T(4), T(4), margin=6.0),
            S(T(2, 3, 4), T(2, 3, 4), T(2, 3, 4), margin=6.0, reduction="none"),
        ),
        dtypes=NUMBERS,
    ),
)

BAG = T(6, dtype="int64", values=(0, 2, 1, 2, 3, 0))
BAGS = (
    fn(
        "embedding_bag",
        (
            *(
                S(BAG, T(4, 3, distinct=True), T(3, dtype="int64", values=(0, 2, 2)), mode=mode)
                for mode in ("sum", "mean", "max")
            ),
            *(
                S(T(2, 3, dtype="int64", values=(0, 1, 1, 3, 2, 1)), T(4, 2, distinct=True), mode=mode, padding_idx=1)
                for mode in ("sum", "mean", "max")
            ),
            S(BAG, T(4, 3), T(2, dtype="int64", values=(0, 4)), mode="sum", per_sample_weights=T(6)),
            S(BAG, T(4, 3), T(3, dtype="int64", values=(0, 1, 6)), include_last_offset=True),
        ),
        half_ulps=16,
        composite=True,
    ),
)

OPS = BAGS + LAYERS + ACTIVATIONS + NORMS + DISTANCES
