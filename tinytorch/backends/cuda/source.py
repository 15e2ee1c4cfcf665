"""The CUDA source of a kernel, from its key. See Note [Launching] in kernels/cuda/host/launch.h."""

from __future__ import annotations

import functools
import os

from ...dtypes import SUFFIXES
from ...scalar import ELEMENTWISE
from ..cpu import ffi, lib


@functools.cache
def kernels_folder() -> str:
    """The folder ``kernels`` with the headers and the families' files: in the package, or in the source tree."""
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    inside = os.path.join(package, "kernels")
    return inside if os.path.isdir(inside) else os.path.join(os.path.dirname(package), "kernels")


def parts_of(key: int) -> tuple[str, int, list[int], int]:
    """A key's family, operator, dtypes and variant."""
    out = ffi.new("int32_t[8]")
    lib.tt_key_parts(key, out)
    return ffi.string(lib.tt_family_name(out[0])).decode(), out[1], list(out[2:7]), out[7]


def name_of(key: int) -> str:
    """What people call the kernel: its family, the operator, and the dtypes."""
    family, op, dtypes, _ = parts_of(key)
    if family == "fused":  # the rest of the key is a number
        return family
    operator = ffi.string(lib.tt_operator_name(key & 255, op)).decode()
    return "_".join(filter(None, (operator or family, *(SUFFIXES[d] for d in dict.fromkeys(dtypes) if d))))


# Families whose numbers are the CPU's whatever the setting "approximate".
EXACT = {"random", "dropout", "multinomial", "variates", "permutation", "optim", "optim_count"}


def approximate(source: str) -> str:
    """A kernel's source with the functions of kernels/cuda/device/approximate.cuh."""
    return '#define TT_APPROXIMATE "cuda/device/approximate.cuh"\n' + source


def quick(operator: str, dtype: str) -> str:
    """The operator, or the function of prelude.cuh that gives the same bits in fewer instructions."""
    return f"quick_{operator}" if dtype == "f32" and operator in ("sin", "cos", "lgamma") else operator


@functools.cache
def source_of(key: int) -> str:
    """What NVRTC compiles: the key's choices as macros, and the family's file."""
    family, op, dtypes, variant = parts_of(key)
    operator = ffi.string(lib.tt_operator_name(key & 255, op)).decode()
    macros = {"TT_OP": op, "TT_VARIANT": variant, **{f"TT_D{k}": SUFFIXES[d] for k, d in enumerate(dtypes)}}
    if operator:
        macros["TT_NAME"] = quick(operator, SUFFIXES[dtypes[0]])
    if family == "elementwise":
        macros["TT_ARITY"] = ELEMENTWISE[op].arity
        macros.update({f"TT_K{k}": SUFFIXES[lib.tt_compute_of(op, k, dtypes[0])] for k in range(4)})
    elif family == "copy":
        macros.update({f"TT_K{k}": SUFFIXES[dtypes[0]] for k in range(4)})
    head = "".join(f"#define {name} {value}\n" for name, value in macros.items())
    if family == "elementwise" and ELEMENTWISE[op].special:
        head += '#include "cuda/device/prelude.cuh"\n#include "scalar/special.h"\n'
    if macros.get("TT_NAME") == "quick_lgamma":
        head += "#define TT_TOGETHER tt_lgamma_together\n"
    if family == "elementwise" and operator == "gelu" and dtypes[1] in (lib.TT_F16, lib.TT_BF16):
        head += '#include "cuda/device/prelude.cuh"\n#include "cuda/device/rounded.cuh"\n'
        head += "#define TT_BOUNDS tt_bounds_of_gelu\n"
    return head + f'#include "cuda/device/{family}.cuh"\n'
