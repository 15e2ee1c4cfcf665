"""Floating-point operations of scalar functions: what an operator on elements and a reduction cost."""

from __future__ import annotations

import functools

from ..backends.cpu import lib
from .recording import op_name, reducer_name

# Operations for an element of the scalar functions of kernels/scalar that take more than one.
WORK = {
    "exp": 18, "exp2": 16, "expm1": 22, "log": 22, "log2": 24, "log10": 24, "log1p": 26, "sin": 24, "cos": 24,
    "tan": 34, "asin": 24, "acos": 24, "atan": 24, "atan2": 28, "sinh": 26, "cosh": 22, "tanh": 26, "asinh": 34,
    "acosh": 34, "atanh": 30, "erf": 30, "erfc": 36, "erfinv": 40, "lgamma": 70, "digamma": 50, "zeta": 150,
    "sigmoid": 21, "logsigmoid": 46, "softplus": 46, "silu": 22, "gelu": 34, "gelu_tanh": 34, "pow": 48,
    "logaddexp": 48, "xlogy": 24, "hypot": 6, "fmod": 4, "remainder": 5, "rsqrt": 2, "relu_backward": 2,
    "sigmoid_backward": 3, "tanh_backward": 3, "silu_backward": 26, "gelu_backward": 54, "gelu_tanh_backward": 44,
    "clamp": 2, "lerp": 3, "addcmul": 3, "addcdiv": 3, "positive": 0, "where": 0, "copysign": 0, "signbit": 0,
    "smooth_l1": 5, "smooth_l1_backward": 4, "huber": 5, "huber_backward": 3,
}
# And those of reductions, for an element read.
REDUCTION = {"sum": 1, "prod": 1, "max": 1, "min": 1, "count": 1, "nansum": 2, "abssum": 2, "sqsum": 2, "maxabs": 2,
              "minabs": 2, "nonzero": 1, "devsq": 3, "expsum": 20}


def kernel_work(kernel) -> int:
    """Of a ``tt_kernel *``: its instructions, each for every element or every row, and its reductions."""
    total = 0
    for i in kernel.instrs[0:kernel.num_instrs]:
        if i.kind == lib.TT_INSTR_OP:
            total += _op_work(i.op) * (kernel.numel if i.level == 1 else kernel.rows)
    return total + sum(_reducer_work(f.reducer) for f in kernel.folds[0:kernel.num_folds]) * kernel.numel


@functools.cache
def _op_work(op: int) -> int:
    return WORK.get(op_name(op), 1)


@functools.cache
def _reducer_work(reducer: int) -> int:
    return REDUCTION.get(reducer_name(reducer), 1)
