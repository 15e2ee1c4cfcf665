"""Reductions, cumulative sums and products, sorting."""

import numpy as np
from compare import FLOATS

from optable.core import NUMBERS, ONE, Op, S, T, only, rough

ALL_OF = tuple(S(t) for t in ONE)
NOT_EMPTY = tuple(sample for sample in ALL_OF if all(sample.args[0].shape))
# One dimension, negative dimensions, keepdim, several dimensions, a 0-d tensor's only dimension,
# an empty dimension kept and an empty dimension reduced.
DIM = (
    S(T(2, 3), 0),
    S(T(2, 3), -1),
    S(T(2, 3), 1, keepdim=True),
    S(T(2, 3, 4), dim=-2),
    S(T(), 0),
    S(T(), -1),
    S(T(2, 3, layout="transposed"), 0),
    S(T(3, 4, layout="strided"), -1, True),
    S(T(3, 2, layout="expanded"), 0),
    S(T(0, 3), 1),
    S(T(5, 2, layout="offset"), 0),
)
DIMS = (
    *DIM,
    S(T(2, 3, 4), (0, 2)),
    S(T(2, 3, 4), (-1, 0), keepdim=True),
    S(T(2, 3, 4), dim=(0, 1, 2)),
    S(T(2, 3, 4, layout="transposed"), (1, 2)),
    S(T(2, 3), ()),
)
EMPTY_DIM = (S(T(0, 3), 0), S(T(2, 0), -1, keepdim=True))
TIES = only(FLOATS, rough(S(T(5, values=(1.0, 3.0, 3.0, 0.0, 3.0)))))
TIES_DIM = only(FLOATS, rough(S(T(2, 3, values=(1.0, 3.0, 3.0, 2.0, 2.0, 2.0)), 1)))
NANS = only(FLOATS, rough(S(T(2, 3, values=(1.0, np.nan, 3.0, np.inf, 2.0, -np.inf), grad=False), 1)))
SOME_NANS = only(
    FLOATS,
    rough(S(T(2, 3, values=(1.0, np.nan, 3.0, np.nan, 2.0, np.nan)), 0)),
    rough(S(T(2, 2, values=(1.0, np.nan, 3.0, np.nan), grad=False), 0)),
    rough(S(T(2, 3, values=(1.0, np.nan, 3.0, 0.5, np.nan, -2.0)), dim=1, keepdim=True, dtype="float64")),
)
ONE_ZERO = only(FLOATS, S(T(4, values=(1.5, 0.0, -2.0, 0.5))), rough(S(T(4, values=(0.0, 0.0, 2.0, 0.5)))))


def along(name):
    """NumPy's reduction, called as torch's: no dimensions at all means every dimension, and a number has one."""
    function = getattr(np, name, None)
    if function is None or name.startswith("cum"):
        return function
    return lambda x, dim=None, keepdim=False: function(x, dim if x.ndim and dim != () else None, keepdims=keepdim)


def reduction(name, samples, **how):
    how = {"method": True, "out": False, "ref": along(name)} | how
    return Op(name, samples, **how)


def distinct(samples):
    """The same samples without ties, whose order would be a matter of taste."""
    return tuple(
        S(
            T(*s.args[0].shape, layout=s.args[0].layout, distinct=s.args[0].layout != "expanded"),
            *s.args[1:],
            **s.kwargs,
        )
        for s in samples
    )


SPREAD = (
    S(T(2, 3)),
    S(T(2, 3, layout="transposed")),
    S(T(2, 3), 0),
    S(T(2, 3), -1, keepdim=True),
    S(T(2, 3, 4), (0, 2)),
    S(T(2, 3), dim=1, correction=0),
    S(T(2, 3, 4), dim=(0, 1), correction=2, keepdim=True),
    S(T(2, 3), unbiased=False),
    S(T(4, 3, layout="strided"), 0),
    S(T(5, 2, layout="offset"), (0, 1)),
    S(T(4, 3, layout="transposed"), 1, False),
    S(T(2, 0, 3), 0),
)
SUMMED = (
    *ALL_OF,
    *DIMS,
    *EMPTY_DIM,
    S(T(2, 3), dim=1, dtype="float64"),
    S(T(40, 50, layout="transposed"), 1),
)


def with_dtype(name):
    """Samples write dtype="float64"; the library's own dtype object goes in its place."""

    def call(m, *args, dtype=None, **kwargs):
        return getattr(m, name)(*args, **({"dtype": getattr(m, dtype)} if dtype else {}), **kwargs)

    return call


REDUCTIONS = (
    reduction("sum", SUMMED, call=with_dtype("sum"), method=False),
    reduction("mean", SUMMED, call=with_dtype("mean"), method=False, dtypes=FLOATS),
    reduction("prod", (*ALL_OF, *DIM, *EMPTY_DIM, *ONE_ZERO), half_ulps=4, domain=(0.5, 1.5), int_domain=(-2, 3)),
    reduction("amax", (*NOT_EMPTY, *DIMS, *TIES, *NANS), out=True),
    reduction("amin", (*NOT_EMPTY, *DIMS, *TIES, *NANS), out=True),
    reduction("max", (*NOT_EMPTY, *DIM, *TIES, *NANS)),
    reduction("min", (*NOT_EMPTY, *DIM, *TIES, *NANS)),
    reduction("argmax", (*NOT_EMPTY, *DIM, *NANS), grad=False, dtypes=NUMBERS),
    reduction("argmin", (*NOT_EMPTY, *DIM, *NANS), grad=False, dtypes=NUMBERS),
    reduction("var", SPREAD, dtypes=FLOATS, ref=None),
    reduction("std", SPREAD, dtypes=FLOATS, ref=None),
    reduction(
        "norm",
        (
            S(T(2, 3)),
            S(T()),
            S(T(0)),
            S(T(2, 3), 1),
            S(T(2, 3), 2, 0),
            S(T(2, 3), 2, -1, True),
            S(T(2, 3), "fro"),
            S(T(2, 3), float("inf")),
            S(T(2, 3), 3, 1),
            S(T(2, 3, 4), 2, (0, 2)),
            S(T(2, 3, layout="transposed"), 2, 1),
            S(T(2, 3), -float("inf"), 0),
            S(T(2, 3, grad=False), 0, 1),
            S(T(2, 3), p=1.5, dim=0),
            rough(S(T(3, values=(0.0, 0.0, 0.0)))),
            rough(S(T(3, values=(0.0, 2.0, 0.0)), 1)),
        ),
        dtypes=FLOATS,
        ref=None,
    ),
    reduction(
        "logsumexp",
        (
            *DIMS[:-1],
            *EMPTY_DIM,
            *NANS,
            *only(
                FLOATS,
                S(T(3, values=(3e4, 3e4, -3e4)), 0),
                rough(S(T(2, values=(-np.inf, -np.inf), grad=False), 0)),
            ),
        ),
        out=True,
        half_ulps=4,
    ),
    reduction("any", (*ALL_OF, *DIMS[:-1], *EMPTY_DIM), grad=False),
    reduction("all", (*ALL_OF, *DIMS[:-1], *EMPTY_DIM), grad=False),
    *(
        reduction(
            name,
            tuple(S(*s.args[:1], *([s.kwargs["dim"]] if "dim" in s.kwargs else s.args[1:2])) for s in DIM)
            + EMPTY_DIM[:1]
            + only(FLOATS, rough(S(T(4, values=(1.5, 0.0, 2.0, 0.0)), 0))),
            inplace=True,
            out=True,
            domain=(0.5, 1.5),
            int_domain=(-2, 3),
        )
        for name in ("cumsum", "cumprod")
    ),
)

SORTED = distinct(
    (
        S(T(5)),
        S(T(2, 3)),
        S(T(2, 3), 0),
        S(T(2, 3), -1),
        S(T(2, 3), dim=0, descending=True),
        S(T()),
        S(T(0)),
        S(T(4, 3, layout="transposed")),
        S(T(3, 4, layout="strided"), 1, True),
        S(T(2, 0), 0),
    )
)
STABLE = (S(T(9), dim=0, stable=True), S(T(9), dim=0, stable=True, descending=True), *NANS)

SORTING = (
    reduction("sort", (*SORTED, *STABLE), ref=None),
    reduction("argsort", (*SORTED, *STABLE), grad=False, ref=None),
    reduction(
        "topk",
        distinct(
            (
                S(T(5), 2),
                S(T(2, 4), 3, 1),
                S(T(3, 2), 1, 0),
                S(T(2, 4), 2, -1, False),
                S(T(5), 0),
                S(T(5), 5),
                S(T(4, 3, layout="transposed"), 2, dim=0),
                S(T(), 1),
                S(T(3), k=2),
            )
        ),
        ref=None,
        dtypes=NUMBERS,
    ),
)

OPS = REDUCTIONS + SORTING
