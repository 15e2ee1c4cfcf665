"""The compiler's flags on which a result's bits depend: the same for the kernels (kernels/build.py reads them
here, without importing the package) and for generated code."""

import os
import platform

# No contraction and no fast-math: every instruction set, and every generated kernel, gives the same bits.
BITS = ["-std=gnu11", "-O3", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]
# Of gcc alone, and bits do not depend on it. From `x < low ? low : x` gcc would make paths for x and for the constant,
# of which a vectorised loop then computes every one.
GCC = ["-fno-thread-jumps"]
ISAS = {"baseline": []}
X86 = platform.machine() in ("x86_64", "AMD64")
if X86:
    ISAS["avx2"] = ["-mavx2", "-mfma", "-mf16c"]
    ISAS["avx512"] = [
        "-mavx512f",
        "-mavx512bw",
        "-mavx512dq",
        "-mavx512vl",
        "-mavx2",
        "-mfma",
        "-mprefer-vector-width=512",
    ]
# TINYTORCH_BASELINE=1: kernels for one instruction set, which any processor has, in a third of the time.
X86 = X86 and not os.environ.get("TINYTORCH_BASELINE")
