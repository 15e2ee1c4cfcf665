"""The rest of nn.functional: compositions of other operators, and losses."""

import math

from compare import FLOATS

from optable.core import ONE, Op, S, T, only, rough
from optable.index import index
from optable.nn import EVERY, KINK, fn, functional, reduced

SOME = ONE[:5]
POINTS = only(FLOATS, rough(S(T(6, values=(0.5, -0.5, 3.0, -3.0, 6.0, -6.0)))))
SIGNS = T(2, 3, values=(1, -1, 1, -1, -1, 1), grad=False)
CLASS_WEIGHTS = T(3, low=0.5, high=2, grad=False)
PAIR, TARGET = T(2, 3), T(2, 3, layout="transposed")
PROBABILITIES = T(2, 3, low=0.1, high=0.9)
QUERY, KEY, VALUE = T(2, 3, 4), T(2, 5, 4), T(2, 5, 2)
ACROSS = T(3, 2, 4)  # two sequences of three
HEADS = 4, 2, T(12, 4), T(12), None, None, False, 0.0
LATER = T(3, 3, dtype="bool", values=(0, 1, 1, 0, 0, 1, 0, 0, 0))
# Made of others: rounded at each of several steps.
STEPS = {"half_ulps": 16, "composite": True}

ACTIVATIONS = (
    fn("elu", (*EVERY, *KINK, *(S(t, 0.5) for t in SOME))),
    fn("leaky_relu", (*EVERY, *KINK, *(S(t, 0.2) for t in SOME), S(T(2, 3), negative_slope=0.0))),
    fn("hardtanh", (*EVERY, *KINK, *POINTS, *(S(t, -0.5, 2.0) for t in SOME)), composite=True),
    fn("relu6", (*EVERY, *KINK, *POINTS), composite=True),
    fn("hardsigmoid", (*EVERY, *KINK, *POINTS), rtol=4e-8),  # torch's 1/6 is that of float32
    fn("hardswish", (*EVERY, *KINK, *POINTS)),
    fn("logsigmoid", (*EVERY, *only(FLOATS, rough(S(T(4, values=(80.0, -80.0, 0.0, -0.0))))))),
    fn("softplus", (*EVERY, S(T(2, 3), 2.0), S(T(2, 3), 2.0, 1.5), S(T(2, 3), threshold=0.5))),
    fn("softshrink", (*EVERY, *POINTS, *(S(t, 0.25) for t in SOME), S(T(2, 3), lambd=0.0))),
    fn("tanhshrink", EVERY, **STEPS),
    fn("softsign", EVERY, **STEPS),
    fn("mish", EVERY, **STEPS),
    fn(
        "threshold",
        (
            *(S(t, 0.5, 20.0) for t in ONE),
            S(T(2, 3), -1.0, 0.0),
            *only(FLOATS, rough(S(T(2, values=(0.5, 1.0)), 0.5, 2.0))),
        ),
        composite=True,
    ),
    fn("rrelu", (*EVERY, S(T(2, 3), 0.25, 0.5), S(T(2, 3), lower=0.1, upper=0.3, training=False))),
    fn("glu", (S(T(2, 4)), S(T(4, 3), 0), S(T(2, 6, 2), dim=-2), S(T(4)), S(T(4, 6, layout="transposed"), 1)), **STEPS),
    fn(
        "softmin",
        (S(T(2, 3), 1), S(T(2, 3), 0), S(T(2, 3, 4), dim=-2), S(T(2, 3, layout="transposed"), dim=0)),
        **STEPS,
    ),
    fn(
        "normalize",
        (
            S(T(2, 3)),
            S(T(2, 3), 1.0),
            S(T(2, 3), p=3.0, dim=0),
            S(T(2, 3), p=math.inf),
            S(T(2, 3, 4), dim=-1),
            S(T(2, 3), eps=10.0),
            S(T(2, 3, layout="transposed"), 2.0, 0),
        ),
        **STEPS,
    ),
)

LOSSES = (
    fn(
        "l1_loss",
        (
            *reduced(PAIR, TARGET),
            S(T(), T()),
            *only(FLOATS, rough(S(T(2, values=(1.0, 2.0)), T(2, values=(1.0, 0.0))))),
        ),
    ),
    fn(
        "binary_cross_entropy",
        (
            *reduced(PROBABILITIES, T(2, 3, low=0, high=1)),
            *reduced(PROBABILITIES, T(2, 3, low=0, high=1, grad=False), weight=T(3, low=0.5, high=2, grad=False)),
            S(T(2, 3, layout="transposed", low=0.1, high=0.9), T(2, 3, low=0, high=1, grad=False)),
        ),
        **STEPS,
    ),
    fn(
        "kl_div",
        (
            *(S(T(2, 3), PROBABILITIES, reduction=r) for r in ("none", "sum", "batchmean")),
            *(S(T(2, 3), T(2, 3), reduction=r, log_target=True) for r in ("none", "sum", "batchmean")),
            S(T(2, 3, layout="transposed"), PROBABILITIES, reduction="batchmean"),
            S(T(3), T(3, low=0.1, high=0.9), reduction="sum"),
            *only(FLOATS, rough(S(T(3), T(3, values=(0.0, 1.0, 0.5), grad=False), reduction="sum"))),
        ),
        **STEPS,
    ),
    fn(
        "poisson_nll_loss",
        (
            *reduced(PAIR, T(2, 3, low=0.5, high=4, grad=False)),
            *reduced(T(2, 3, low=0.5, high=4), T(2, 3, low=1.5, high=4, grad=False), log_input=False, full=True),
            *only(FLOATS, rough(S(T(3), T(3, values=(0.0, 1.0, 3.0), grad=False), full=True))),
            S(T(2, 3, low=0.5, high=4), T(2, 3, low=0.5, high=4, grad=False), log_input=False, eps=0.5),
        ),
        **STEPS,
    ),
    fn(
        "gaussian_nll_loss",
        (
            *reduced(PAIR, TARGET, T(2, 3, low=0.5, high=2)),
            *reduced(PAIR, TARGET, T(2, 1, low=0.5, high=2), full=True),
            S(PAIR, TARGET, T(2, low=0.5, high=2)),
            S(PAIR, TARGET, T(2, 3, low=0.5, high=2), eps=0.1),
        ),
        **STEPS,
    ),
    fn(
        "multilabel_margin_loss",
        (
            *reduced(T(2, 3), T(2, 3, dtype="int64", values=(2, 0, -1, 1, -1, 0))),
            S(T(4), T(4, dtype="int64", values=(3, 1, -1, 2))),
            S(T(2, 3, layout="transposed"), T(2, 3, dtype="int64", values=(0, 1, 2, -1, 0, 1)), reduction="none"),
        ),
        dtypes=("float32", "float64"),
        composite=True,
    ),
    fn(
        "ctc_loss",
        # The gradient is that for log-probabilities of log_softmax: finite differences are others.
        tuple(
            rough(S(T(5, 2, 4), targets, (5, 4), (3, 2), **how))
            for targets in (
                T(2, 3, dtype="int64", values=(1, 2, 2, 3, 1, 0)),
                T(5, dtype="int64", values=(1, 2, 2, 3, 1)),
            )
            for how in ({"reduction": "mean"}, {"reduction": "sum", "zero_infinity": True}, {"reduction": "none"})
        )
        + (
            rough(S(T(3, 4), T(2, dtype="int64", values=(0, 3)), (3,), (2,), blank=1)),
            rough(S(T(2, 2, 4), T(2, 2, dtype="int64", values=(1, 1, 3, 2)), (2, 2), (2, 0), zero_infinity=True)),
        ),
        dtypes=("float32", "float64"),
        composite=True,
        twice=False,
    ),
    fn("soft_margin_loss", (*reduced(PAIR, SIGNS), S(T(2, 3, layout="transposed"), SIGNS)), **STEPS),
    fn("hinge_embedding_loss", (*reduced(PAIR, SIGNS), *reduced(PAIR, SIGNS, margin=0.5)), **STEPS),
    fn(
        "margin_ranking_loss",
        (
            *reduced(PAIR, TARGET, SIGNS),
            *reduced(PAIR, TARGET, SIGNS, margin=0.5),
            S(T(3), T(3), T(3, values=(1, -1, 1), grad=False), margin=2.0),
        ),
        **STEPS,
    ),
    fn(
        "cosine_embedding_loss",
        (
            *reduced(PAIR, TARGET, T(2, values=(1, -1), grad=False)),
            *reduced(PAIR, TARGET, T(2, values=(-1, 1), grad=False), margin=-0.5),
            S(T(3), T(3), T(values=(1,), grad=False)),
        ),
        **STEPS,
    ),
    fn(
        "multi_margin_loss",
        (
            *reduced(T(4, 3), index(4, size=3)),
            *reduced(T(4, 3), index(4, size=3), p=2, margin=0.5),
            *reduced(T(4, 3), index(4, size=3), weight=CLASS_WEIGHTS),
            S(T(3), index(size=3)),
        ),
        dtypes=("float32", "float64"),
        twice=False,
        composite=True,
    ),
    fn(
        "multilabel_soft_margin_loss",
        (
            *reduced(PAIR, T(2, 3, values=(1, 0, 1, 0, 0, 1), grad=False)),
            *reduced(PAIR, T(2, 3, values=(1, 0, 1, 0, 0, 1), grad=False), weight=CLASS_WEIGHTS),
        ),
        **STEPS,
    ),
    fn(
        "triplet_margin_with_distance_loss",
        (*reduced(T(3, 4), T(3, 4), T(3, 4), margin=5.0), S(T(3, 4), T(3, 4), T(3, 4), margin=5.0, swap=True)),
        **STEPS,
    ),
)

LAYERS = (
    fn(
        "bilinear",
        (
            S(T(4, 2), T(4, 3), T(2, 2, 3), T(2)),
            S(T(4, 2), T(4, 3), T(2, 2, 3)),
            S(T(2), T(3), T(2, 2, 3), T(2)),
            S(T(2, 1, 2), T(2, 1, 3), T(1, 2, 3), T(1)),
        ),
        **STEPS,
    ),
    fn(
        "scaled_dot_product_attention",
        (
            S(QUERY, KEY, VALUE),
            S(T(2, 3, 4), T(2, 3, 4), T(2, 3, 2), is_causal=True),
            S(QUERY, KEY, VALUE, T(3, 5)),
            S(QUERY, KEY, VALUE, T(3, 5, dtype="bool", values=(1, 0, 1, 1, 0, 0, 1, 0, 0, 1, 1, 1, 1, 1, 1))),
            S(QUERY, KEY, VALUE, scale=0.3),
            S(T(2, 2, 3, 4), T(2, 2, 5, 4), T(2, 2, 5, 4, layout="transposed")),
            S(T(1, 4, 3, 2), T(1, 2, 5, 2), T(1, 2, 5, 2), enable_gqa=True),
            S(T(1, 4, 3, 2), T(1, 2, 5, 2), T(1, 1, 5, 3), enable_gqa=True),
            S(T(3, 4), T(5, 4), T(5, 2)),
            S(T(2, 1, 2, 3, 4), T(2, 1, 2, 5, 4), T(2, 1, 2, 5, 2), T(2, 1, 1, 1, 5, grad=False)),
            S(QUERY, T(1, 5, 4), T(5, 2), T(2, 3, 1, grad=False)),
            S(T(2, 0, 4), T(2, 3, 4), T(2, 3, 2)),
            S(T(2, 3, 4), T(2, 0, 4), T(2, 0, 2)),
            S(T(2, 3, 0), T(2, 4, 0), T(2, 4, 2)),
        ),
        **STEPS,
    ),
    fn(
        "multi_head_attention_forward",
        (
            S(ACROSS, *[T(5, 2, 4)] * 2, *HEADS, T(4, 4), T(4)),
            S(ACROSS, *[T(5, 2, 4)] * 2, *HEADS, T(4, 4), None, attn_mask=T(3, 5), average_attn_weights=False),
            S(ACROSS, *[T(3, 2, 4)] * 2, *HEADS, T(4, 4), T(4), need_weights=False, attn_mask=LATER, is_causal=True),
            S(T(3, 4), *[T(5, 4)] * 2, 4, 2, T(12, 4), None, T(1, 1, 4), T(1, 1, 4), True, 0.0, T(4, 4), T(4)),
        ),
        half_ulps=128,  # of two products after a softmax
        composite=True,
    ),
    Op(
        "one_hot",
        tuple(
            S(T(*shape, dtype="int64", low=0, high=4), *more)
            for shape, more in (((3,), (5,)), ((2, 3), (4,)), ((), (4,)), ((3,), ()), ((0,), (4,)))
        ),
        call=functional("one_hot"),
        grad=False,
    ),
)

OPS = ACTIVATIONS + LOSSES + LAYERS
