"""Floating-point operations of a fused kernel."""

from __future__ import annotations

from ..backends.cpu import lib
from ..scalar import ELEMENTWISE, REDUCERS


def kernel_work(kernel) -> int:
    """Of a ``tt_kernel *``: its instructions, each for every element or every row, and its reductions."""
    total = 0
    for i in kernel.instrs[0 : kernel.num_instrs]:
        if i.kind == lib.TT_INSTR_OP:
            total += ELEMENTWISE[i.op].flops * (kernel.numel if i.level == 1 else kernel.rows)
    return total + sum(REDUCERS[f.reducer].flops for f in kernel.reductions[0 : kernel.num_reductions]) * kernel.numel
