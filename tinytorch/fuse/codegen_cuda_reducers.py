"""The words of reductions, for codegen_cuda_rows: what an element contributes, how two accumulators are joined."""

from __future__ import annotations

from ..dtypes import ALL, SUFFIXES
from ..scalar import REDUCERS
from .codegen_cuda_plan import Planning


class Joining(Planning):
    """The part of codegen_cuda.Kernel that writes what a reducer does (kernels/scalar/reducers.h)."""

    @staticmethod
    def reducer(reduction) -> str:
        return REDUCERS[reduction.reducer].name

    @staticmethod
    def acc_type(reduction) -> str:
        return ALL[reduction.acc].c_type

    def nothing(self, reduction) -> str:
        return f"({self.acc_type(reduction)})TT_NONE_{self.reducer(reduction)}({SUFFIXES[reduction.dtype]})"

    def mapped(self, reduction, n: int) -> str:
        """What an element contributes."""
        x = SUFFIXES[reduction.dtype]
        name = self.name(reduction.slot)
        return f"({self.acc_type(reduction)})TT_MAP_{self.reducer(reduction)}({x}, {name}, param{n})"

    def usually(self, reduction, n: int) -> str:
        """The same for usual arguments."""
        if not self.may_be_odd(reduction):
            return self.mapped(reduction, n)
        return f"tt_usual_exp_f32({self.name(reduction.slot)} - param{n}, odd)"

    def may_be_odd(self, reduction) -> bool:
        return self.reducer(reduction) == "expsum" and SUFFIXES[reduction.dtype] == "f32"

    def join(self, reduction, a: str, b: str) -> str:
        t, x, name = self.acc_type(reduction), SUFFIXES[reduction.dtype], self.reducer(reduction)
        return f"{a} = ({t})TT_JOIN_{name}({x}, {a}, {b});"

    def shuffle(self, reduction, n: int, indent: str, hops: list[int]) -> list[str]:
        """Joins the accumulators of lanes so far apart."""
        text = []
        for h in hops:
            text += [
                f"{indent}{{ const {self.acc_type(reduction)} other = __shfl_down_sync(0xffffffffu, acc{n}, {h});",
                f"{indent}  {self.join(reduction, f'acc{n}', 'other')} }}",
            ]
        return text

    def param(self, reduction, n: int, index: str) -> str:
        t = self.acc_type(reduction)
        if reduction.param < 0:
            return f"    const {t} param{n} = 0;"
        rows = self.pattern == "row_reduction"
        value = self.name(reduction.param) if rows else f"(({t} *)p.access[{reduction.param}])[{index}]"
        return f"    const {t} param{n} = {value};"
