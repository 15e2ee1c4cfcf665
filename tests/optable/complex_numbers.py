"""Operators about complex numbers, as far as they take real ones; complex ones are test_complex.py's affair."""

import numpy as np

from optable.core import ONE, Op, S
from optable.pointwise import BINARY, unary

WIDE = ("float32", "float64")

OPS = (
    unary("angle", inplace=False, ref=lambda x: np.where(np.isnan(x), x, np.where(x < 0, np.pi, 0)), twice=False),
    Op("conj", tuple(S(t) for t in ONE), method=True, ref=np.conj),
    Op("conj_physical", tuple(S(t) for t in ONE), method=True),
    Op("resolve_conj", tuple(S(t) for t in ONE), method=True),
    Op("resolve_neg", tuple(S(t) for t in ONE), method=True),
    Op("real", tuple(S(t) for t in ONE)),
    Op("isreal", tuple(S(t) for t in ONE), method=True, grad=False),
    Op("complex", BINARY, dtypes=WIDE, composite=True, twice=False),
    Op("polar", BINARY, dtypes=WIDE, composite=True, twice=False, domain=(0.1, 2.5)),  # torch takes sizes for positive
)
