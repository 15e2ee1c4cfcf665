"""Padding and pooling."""

from optable.core import NUMBERS, Op, S, T
from optable.nn import functional


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

OPS = PADDING
