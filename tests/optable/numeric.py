"""Views as copies; integrals and derivatives of samples; quantiles, covariances, histograms; distances."""

import math

from compare import FLOATS, INTS

from optable.core import NUMBERS, Op, S, T, only, rough
from optable.index import index

WIDE = ("float32", "float64")


def copy(name, *samples, **how):
    return Op(f"{name}_copy", samples, **how)


COPIES = (
    copy("alias", S(T(2, 3)), S(T()), S(T(2, 3, layout="transposed"))),
    copy("as_strided", S(T(6), (2, 2), (3, 1), 1)),
    copy("detach", S(T(2, 3, grad=False))),
    copy("diagonal", S(T(3, 4)), S(T(2, 3, 4), -1, 0, 2)),
    copy("expand", S(T(2, 1), (3, 2, 4)), S(T(), (2,))),
    copy("narrow", S(T(4, 3), 0, 1, 2), S(T(4, 3), 1, -2, 2), method=True, grad=False),  # PyTorch has no derivative
    copy("permute", S(T(2, 3, 4), (2, 0, 1))),
    copy("select", S(T(4, 3), 0, 1), S(T(4, 3), -1, -1)),
    copy("slice", S(T(4, 3)), S(T(4, 3), 1, 0, -1), S(T(4, 3), 0, 1, 9, 2)),
    copy("squeeze", S(T(2, 1, 3, 1)), S(T(2, 1, 3, 1), 1), S(T(2, 1, 3, 1), (1, 3))),
    copy("t", S(T(2, 3)), S(T(3))),
    copy("transpose", S(T(2, 3, 4), 0, 2)),
    copy("unfold", S(T(5), 0, 3, 1), S(T(4, 5), 1, 2, 2), S(T(), 0, 1, 1)),
    copy("unsqueeze", S(T(2, 3), 1)),
    copy("view", S(T(2, 3), (3, 2)), S(T(2, 3), (-1,))),
    copy("split", S(T(5, 2), 2), S(T(2, 5), 3, 1)),
    copy("split_with_sizes", S(T(5, 2), (2, 3)), S(T(2, 5), (1, 4), 1)),
    copy("unbind", S(T(3, 2)), S(T(2, 3), 1)),
)

PLACES = T(4, values=(0, 1, 3, 4), grad=False)
CALCULUS = (
    Op(
        "trapezoid",
        (
            S(T(4)),
            S(T(2, 4), dx=2),
            S(T(4, 2), dim=0),
            S(T(2, 4), PLACES),
            S(T(4, 2), PLACES, dim=0),
            S(T(2, 4), T(2, 4)),
            S(T(3, 2, 4), T(2, 4), dim=1),
            S(T(2, 0)),
            S(T(2, 1)),
        ),
        dtypes=NUMBERS,
        composite=True,
        half_ulps=4,
    ),
    Op(
        "cumulative_trapezoid",
        (S(T(4)), S(T(2, 4), dx=0.5), S(T(4, 2), dim=0), S(T(2, 4), PLACES), S(T(2, 4), T(2, 4)), S(T(2, 1))),
        dtypes=NUMBERS,
        composite=True,
        half_ulps=8,
    ),
    Op(
        "gradient",
        (
            S(T(4)),
            S(T(3, 4)),
            S(T(3, 4), dim=1, edge_order=2),
            S(T(3, 4), spacing=0.5),
            S(T(3, 4), spacing=(0.5, 2.0), dim=(1, 0), edge_order=2),
            *only(WIDE, S(T(2, 4), spacing=(PLACES,), dim=1), S(T(4, 2), spacing=(PLACES,), dim=0, edge_order=2)),
        ),
        dtypes=tuple(d for d in NUMBERS if d != "uint8"),
        composite=True,
        half_ulps=8,
    ),
)

Q = T(3, values=(0.0, 0.4, 1.0), grad=False)
HOLES = T(2, 4, values=(1.0, math.nan, 3.0, 0.5, math.nan, math.nan, math.nan, math.nan))
QUANTILES = tuple(
    Op(
        name,
        (
            S(T(5, distinct=True), 0.3),
            S(T(2, 4, distinct=True), 0.3, 1),
            S(T(2, 4, distinct=True), 0.5, 0, True),
            S(T(4, 3, distinct=True, layout="transposed"), Q, 0),
            S(T(2, 4, distinct=True), Q, 1, True),
            S(T(2, 3, distinct=True), Q, keepdim=True),
            *(
                S(T(2, 4, distinct=True), 0.4, 1, interpolation=kind)
                for kind in ("lower", "higher", "midpoint", "nearest")
            ),
            *only(WIDE, *(rough(S(HOLES, q, 1)) for q in (0.6, Q))),
            S(T(distinct=True), 0.5),
        ),
        method=True,
        dtypes=WIDE,
    )
    for name in ("quantile", "nanquantile")
)
COUNTS, MASSES = index(4, size=5), T(4, values=(0.5, 1.0, 2.0, 0.25), grad=False)
COVARIANCES = (
    Op(
        "cov",
        (
            S(T(3, 4)),
            S(T(4)),
            S(T(3, 4), correction=0),
            S(T(3, 4), fweights=COUNTS),
            *only(WIDE, S(T(3, 4), aweights=MASSES), S(T(3, 4), fweights=COUNTS, aweights=MASSES, correction=0)),
            S(T(3, 4, layout="transposed")),
        ),
        method=True,
        dtypes=NUMBERS,
        composite=True,
        half_ulps=16,
    ),
    Op("corrcoef", (S(T(3, 5)), S(T(4))), method=True, dtypes=FLOATS, composite=True, half_ulps=16),
)

HISTOGRAMS = (
    Op(
        "histogram",
        (
            S(T(9, grad=False), 4),
            S(T(3, 3, grad=False), 4, range=(-1.0, 1.0)),
            S(T(2, 5, grad=False), 3, weight=T(2, 5, grad=False), density=True),
            *only(WIDE, S(T(9, grad=False), T(4, values=(-2.0, -0.5, 0.0, 2.0), grad=False))),
            S(T(3, values=(1.0, 1.0, 1.0), grad=False), 4),
            S(T(0, grad=False), 4),
        ),
        method=True,
        grad=False,
        dtypes=WIDE,
    ),
    Op(
        "histogramdd",
        (
            S(T(9, 2, grad=False), 3),
            S(T(2, 4, 2, grad=False), (3, 2), range=(-1.0, 1.0, -2.0, 2.0)),
            *only(
                WIDE, S(T(5, 2, grad=False), [T(2, values=(0.0, 1.0), grad=False), T(2, values=(-9, 9), grad=False)])
            ),
            S(T(7, 1, grad=False), 3, None, T(7, grad=False), True),
        ),
        grad=False,
        dtypes=WIDE,
    ),
    Op(
        "nonzero_static",
        (S(T(3, 4), size=5), S(T(3, 4), size=2, fill_value=7), S(T(), size=2), S(T(2, 3), size=0)),
        call=lambda m, x, **how: m.nonzero_static((x > 0).to(x.dtype) if x.dtype is not m.bool else x, **how),
        grad=False,
    ),
    Op("unravel_index", (S(T(2, 3, low=0, high=11), (3, 4)), S(T(low=0, high=11), 12)), dtypes=INTS, grad=False),
)

ORDERS = (0, 0.5, 1, 1.5, 2, 3, math.inf)
ALIKE = T(2, 3, values=(1.0, 2.0, 3.0, 1.0, 2.0, 3.0))
BY_PRODUCT = "use_mm_for_euclid_dist"
DISTANCES = (
    Op(
        "cdist",
        (
            *(S(T(3, 4), T(2, 4), p) for p in ORDERS),
            *(rough(S(ALIKE, T(3, 3, values=(1, 2, 3, 1, 0, 3, 4, 4, 4)), p)) for p in ORDERS),
            S(T(2, 3, 4), T(2, 4)),
            S(T(2, 1, 3, 4), T(3, 2, 4), 1.5),
            S(T(2, 3, 4), T(2, 4), 2, BY_PRODUCT),
            rough(S(ALIKE, T(2, 3, values=(1, 2, 3, 4, 4, 4)), 2, BY_PRODUCT)),
            S(T(3, 4, layout="transposed"), T(26, 4)),
            S(T(0, 4), T(2, 4)),
            S(T(3, 0), T(2, 0)),
        ),
        dtypes=WIDE,
        twice=False,  # PyTorch has no second derivative but of the product's form
    ),
    Op(
        "F.pdist",
        (*(S(T(4, 3), p) for p in ORDERS), *(rough(S(ALIKE, p)) for p in ORDERS), S(T(1, 3)), S(T(2, 0))),
        call=lambda m, *args: m.nn.functional.pdist(*args),
        dtypes=WIDE,
        twice=False,
    ),
)

CLASSES = index(3, size=5)


def linear_cross_entropy(m, *args, chunk=None, **how):
    options = chunk and m.nn.LinearCrossEntropyOptions(batch_chunk_size=chunk, allow_retain_graph=True)
    return m.nn.functional.linear_cross_entropy(*args, **how, options=options)


LOSSES = (
    Op(
        "F.linear_cross_entropy",
        (
            S(T(3, 4), T(5, 4), CLASSES),
            S(T(3, 4), T(5, 4), CLASSES, linear_bias=T(5), weight=T(5, low=0.5, grad=False), label_smoothing=0.2),
            S(T(3, 4), T(5, 2, 4), index(3, 2, size=5), linear_bias=T(5, 2), reduction="none"),
            S(T(4), T(5, 4), index(size=5), reduction="sum"),
            # In chunks PyTorch has no second derivative: these are no smooth samples for it.
            *only(
                FLOATS,
                *(
                    rough(S(T(3, 4), T(5, 4), CLASSES, reduction=kind, chunk=2, ignore_index=1))
                    for kind in ("mean", "sum", "none")
                ),
                rough(S(T(3, 4), T(5, 4), CLASSES, linear_bias=T(5), weight=T(5, low=0.5, grad=False), chunk=2)),
            ),
        ),
        call=linear_cross_entropy,
        since=(2, 13),
        dtypes=FLOATS,
        half_ulps=16,
    ),
)

OPS = COPIES + CALCULUS + QUANTILES + COVARIANCES + HISTOGRAMS + DISTANCES + LOSSES
