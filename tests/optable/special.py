"""The rarer pointwise functions."""

import math
from dataclasses import replace

import numpy as np
from compare import DTYPES, FLOATS, HALVES

from optable.core import INTS, NUMBERS, ONE, Op, S, T, only, rough
from optable.pointwise import BINARY, SHIFTS, SPECIAL, SPECIAL_PAIRS, TIES, WITH_SCALARS, binary, unary

POLES = only(FLOATS, rough(S(T(6, values=(0.0, -1.0, -2.0, math.inf, math.nan, 171.0), grad=False))))
NOT_HALF = tuple(dtype for dtype in DTYPES if dtype not in HALVES)
UNIT = (0.05, 0.95)
UNIT_ENDS = only(FLOATS, rough(S(T(6, values=(0.0, 1.0, -1.0, 2.0, math.nan, 0.5), grad=False))))
AROUND_ZERO = only(FLOATS, S(T(5, values=(0.0, 1.0, -2.0, 0.5, -0.03125))))
# Without NaN, whose sign may change on the way into a half type.
SIGNED = only(FLOATS, rough(S(T(4, values=(0.0, -0.0, math.inf, -math.inf), grad=False))))
SIGNED_PAIRS = only(
    FLOATS,
    rough(
        S(
            T(4, 1, values=(0.0, -0.0, math.inf, -2.0), grad=False),
            T(3, values=(0.0, -0.0, -math.inf), grad=False),
        )
    ),
)
NAN = math.nan
MISSING = only(FLOATS, rough(S(T(4, values=(1.0, NAN, 2.0, NAN)), T(4, values=(NAN, 1.0, 2.0, NAN)))))
TERNARY = tuple(
    S(*tensors, **more)
    for tensors in (
        (T(2, 3), T(2, 3), T(2, 3)),
        (T(2, 3), T(3), T(2, 1)),
        (T(), T(), T()),
        (T(0), T(0), T(0)),
        (T(2, 3, layout="transposed"), T(2, 3, layout="strided"), T(3)),
    )
    for more in ({}, {"value": 2})
)


def log_gamma(x):
    """math.lgamma, which raises at its poles."""
    return math.inf if x <= 0 and x == math.floor(x) else math.lgamma(x)


NEARBY = only(
    ("float32", "float64"),
    rough(S(T(3, values=(1.0, 1e-9, 1e4)), T(3, values=(1.000001, 0.0, 1e4 + 1)))),
)

INFINITE = T(6, values=(math.nan, math.inf, -math.inf, 1.5, -0.0, -2.0))
NAN_TO_NUM = (
    *(S(t) for t in ONE if t.layout != "expanded"),
    S(T(2, 3), 1.0, 2.0, 3.0),
    *only(
        FLOATS,
        rough(S(INFINITE, posinf=2.0, neginf=-3.0)),
        rough(S(INFINITE, nan=1.5, posinf=4, neginf=0.5)),
        rough(S(INFINITE, math.inf, math.inf, -math.inf)),
    ),
    *only(("float32", "float64"), rough(S(INFINITE)), rough(S(INFINITE, 2.0)), rough(S(INFINITE, posinf=1.0))),
)

OPS = (
    unary("lgamma", (0.3, 4), np.vectorize(log_gamma, otypes="d"), more=POLES),
    unary("digamma", (0.3, 4), more=POLES),
    # torch's trigamma is off by 1e-9; ours agrees with mpmath's to the last digits.
    Op(
        "polygamma",
        only(NUMBERS, *(S(1, t) for t in ONE), S(2, T(2, 3))),
        domain=(0.3, 4),
        int_domain=(1, 6),
        rtol=1e-8,
    ),
    unary("erfinv", (-0.9, 0.9), more=UNIT_ENDS),
    unary("logit", UNIT, lambda x: np.log(x / (1 - x)), more=UNIT_ENDS, half_ulps=4),
    unary("sgn", ref=lambda x: np.nan_to_num(np.sign(x)), twice=False),
    unary("signbit", more=SIGNED, inplace=False, grad=False),
    unary("sinc", more=(*SPECIAL, *AROUND_ZERO)),
    unary("deg2rad"),
    unary("rad2deg"),
    binary(
        "rsub",
        method=False,
        inplace=False,
        out=False,
        ref=lambda a, b: b - a,
        dtypes=NUMBERS,
        more=WITH_SCALARS,
    ),
    binary("fmax", inplace=False, more=(*SPECIAL_PAIRS, *TIES, *MISSING)),
    binary("fmin", inplace=False, more=(*SPECIAL_PAIRS, *TIES, *MISSING)),
    binary("copysign", more=(*WITH_SCALARS, *SIGNED_PAIRS)),
    binary("hypot", more=SPECIAL_PAIRS, dtypes=FLOATS),
    # A half type's neighbour is not float32's, rounded: the halves are left out.
    binary(
        "nextafter",
        samples=only(NOT_HALF, *BINARY),
        more=only(("float32", "float64"), *SPECIAL_PAIRS),
        grad=False,
        dtypes=FLOATS,
    ),
    binary("heaviside", more=SPECIAL_PAIRS, grad=False, ref=None),
    binary("logaddexp", inplace=False, more=SPECIAL_PAIRS, dtypes=FLOATS),
    binary("logaddexp2", inplace=False, more=SPECIAL_PAIRS, dtypes=FLOATS),
    binary("xlogy", domain=(0.3, 2.5), int_domain=(1, 5), more=SPECIAL_PAIRS),
    binary("float_power", domain=(0.3, 2.5), int_domain=(0, 4), more=WITH_SCALARS),
    binary("bitwise_left_shift", samples=SHIFTS, ref=np.left_shift, grad=False, dtypes=INTS, more=WITH_SCALARS),
    binary("bitwise_right_shift", samples=SHIFTS, ref=np.right_shift, grad=False, dtypes=INTS, more=WITH_SCALARS),
    Op("clamp_max", (*BINARY[:3], S(T(2, 3), 1)), method=True, inplace=True, out=True),
    Op("clamp_min", (*BINARY[:3], S(T(2, 3), 1)), method=True, inplace=True, out=True),
    unary("isposinf", inplace=False, out=False, grad=False),
    unary("isneginf", inplace=False, out=False, grad=False),
    Op(
        "isclose",
        (
            *BINARY,
            *SPECIAL_PAIRS,
            *TIES,
            *NEARBY,
            S(T(2, 3), T(2, 3), 0.5, 1.0),
            S(T(2, 3), T(3), rtol=0.0, atol=0.0),
            S(T(2, 3), T(3), atol=2.0),
            *(replace(s, kwargs={"equal_nan": True}) for s in SPECIAL_PAIRS),
        ),
        method=True,
        grad=False,
        since=(2, 13),
    ),
    Op("nan_to_num", NAN_TO_NUM, method=True, inplace=True, out=True),
    Op("addcmul", TERNARY, method=True, inplace=True, out=True, dtypes=NUMBERS),
    Op(
        "frexp",
        (
            *(S(spec) for spec in ONE),
            *only(FLOATS, rough(S(T(8, values=(0.0, -0.0, 1.0, -4.0, math.inf, -math.inf, math.nan, 5e-8))))),
            *only(("float32", "float64"), rough(S(T(3, values=(1e-45, -1e-40, 3e38))))),
        ),
        method=True,
        dtypes=FLOATS,
    ),
    Op("addcdiv", TERNARY, method=True, inplace=True, out=True, domain=(0.5, 2), dtypes=FLOATS),
)

# Functions that take no tensor or return none: they have tests of their own.
WITHOUT_ENTRY = {
    "tensor", "as_tensor", "from_numpy", "from_dlpack", "to_dlpack", "asarray", "frombuffer", "scalar_tensor",
    "zeros", "ones", "full", "empty", "empty_strided", "arange", "range", "linspace", "logspace", "eye",
    "zeros_like", "ones_like", "full_like", "empty_like", "tril_indices", "triu_indices",
    "rand", "randn", "randint", "randperm", "normal", "bernoulli", "multinomial", "poisson", "binomial",
    "get_rng_state", "set_rng_state", "manual_seed", "initial_seed", "seed",
    "rand_like", "randn_like", "randint_like", "is_tensor", "is_storage", "numel", "equal", "allclose", "is_same_size",
    "is_floating_point", "is_complex", "is_conj", "is_neg", "view_as_real", "view_as_complex", "imag",
    "is_nonzero", "is_signed", "is_inference", "get_device", "resize_as_",
    "empty_permuted", "view_as_real_copy", "view_as_complex_copy",
    "sparse_coo_tensor", "sparse_csr_tensor", "smm", "spmm", "native_batch_norm", "hash_tensor",
    # nn/test_top_level.py
    "constant_pad_nd", "grid_sampler", "affine_grid_generator", "grid_sampler_2d", "grid_sampler_3d", "conv_tbc",
    "vander", "embedding_renorm_", "feature_dropout", "feature_dropout_", "detach_", "addmv_",
    "dequantize", "eig", "lstsq", "matrix_rank", "solve", "symeig", "is_distributed", "_is_all_true", "_is_any_true",
    "_addmm_activation", "sparse_compressed_tensor", "from_file",  # test_older_members.py, test_storage.py
    "lobpcg",  # linalg/test_lobpcg.py
    "embedding_bag", "native_layer_norm", "native_group_norm", "native_dropout",
    "result_type", "promote_types", "can_cast", "broadcast_shapes",
}  # fmt: skip
