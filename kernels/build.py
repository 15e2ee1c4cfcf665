"""Builds the extension `tinytorch.backends._cpu`: the C files of this folder behind cffi in API mode.

The files in cpu/simd/ are compiled once per instruction set (x86-64: baseline, AVX2, AVX-512) and linked together;
cpu/dispatch.c chooses when the extension is loaded. setup.py runs this through cffi's `cffi_modules`.
"""

import os
import pathlib
import re
import runpy
import sys

from cffi import FFI

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent

BITS = runpy.run_path(str(ROOT / "tinytorch" / "fuse" / "flags.py"))
FLAGS = [*BITS["BITS"], "-fvisibility=hidden", "-Wall", "-Wextra", "-Wno-type-limits", "-Wno-unknown-pragmas"]
ISAS = BITS["ISAS"] if BITS["X86"] else {"baseline": []}
GCC = BITS["GCC"]

# An operator asks some ten times for what belongs to its thread. glibc has about 500 bytes for libraries loaded
# late that want it where one instruction, no call, reaches it; all of ours are fewer (tests/test_kernels.py).
if sys.platform == "linux" and "glibc" in (os.confstr("CS_GNU_LIBC_VERSION") or ""):
    FLAGS.append("-ftls-model=initial-exec")

FOLDERS = ("core", "backend", "cpu", "cuda/host", "fuse", "ops", "python")
SOURCES = [source for folder in FOLDERS for source in sorted((HERE / folder).glob("*.c"))]


def relative(path):
    """A path below the project's root, as setuptools wants sources."""
    return str(path.relative_to(ROOT))


# The ones that take longest come first, to be compiled first.
LONGEST = ["superinstructions", "loops", "reduce"]
SIMD_SOURCES = [
    relative(s) for s in sorted((HERE / "cpu" / "simd").glob("*.c"), key=lambda s: (s.stem not in LONGEST, s.stem))
]


def headers():
    """The headers in api/, core.h first: one for each family of functions that Python calls."""
    return sorted((HERE / "api").glob("*.h"), key=lambda h: (h.name != "core.h", h.name))


def enumerators(header, *macros):
    """An enum for cffi of the names that X-macros of a header in scalar/ list: the compiler knows their values."""
    text = (HERE / "scalar" / header).read_text().replace("\\\n", " ")
    names = []
    for macro, prefix in macros:
        rows = re.search(rf"#define {macro}\(X\)(.*)", text)[1]
        names += [prefix + name for name in re.findall(r"\bX\((\w+)", rows)]
    return f"enum {{ {', '.join(names)}, ... }};"


def declarations():
    """The headers without their preprocessor lines, and the enumerators of X-macros: what cffi parses."""
    return "\n".join(
        [
            enumerators("dtypes.h", ("TT_DTYPES", "TT_")),
            enumerators("dtypes.h", ("TT_KINDS", "TT_KIND_")),
            enumerators("optim.h", ("TT_UPDATE_RULES", "TT_RULE_"), ("TT_UPDATE_FLAGS", "TT_")),
            *(re.sub(r"^#.*$", "", h.read_text(), flags=re.M) for h in headers()),
        ]
    )


ffibuilder = FFI()
ffibuilder.cdef(declarations())
# tinytorch/backends/cuda: see Note [Launching] in kernels/cuda/host/launch.h
ffibuilder.cdef("""extern "Python+C" {
    int tt_cuda_launch(int number, int device, int stream, int64_t key, int64_t x, int64_t y, int threads,
                       int64_t shared, void *args, int nbytes);
    int tt_cuda_launch_again(int number);
    int tt_cuda_copy(int kind, int device, int stream, void *to, void *from, int64_t nbytes, int wait);
    int tt_cuda_gemm(int device, int stream, tt_gemm *problem, void *a, void *b, void *c, void *out, void *bias,
                     void *alpha, void *beta);
    int tt_cuda_transform(int device, int stream, tt_transform *problem, void *a, void *out);
    int tt_cuda_solver(int device, int stream, tt_solver *problem);
    int tt_cuda_attend(int device, int stream, tt_attend *problem, void **tensors);
    int tt_cuda_convolve(int device, int stream, tt_convolution *problem, intptr_t input, intptr_t weight,
                         intptr_t result);
    int64_t tt_cuda_segment(int device, int64_t nbytes);
    int tt_cuda_segment_free(int device, int64_t address);
    int64_t tt_cuda_event(int what, int device, int stream, int64_t event);
    int tt_cuda_memory_info(int device, int64_t *free_and_total);
}""")
ffibuilder.cdef('extern "Python+C" { void tt_fuse_notify(tt_run_record *); void tt_fuse_where(int, int64_t); }')
ffibuilder.set_source(
    "tinytorch.backends._cpu",
    "".join(f'#include "scalar/{name}"\n' for name in ("dtypes.h", "optim.h"))
    + "".join(f'#include "api/{h.name}"\n' for h in headers())
    + """tt_array *tt_pointer_of(PyObject *cdata, PyObject *ctype); /* see python/python.h */
tt_array *tt_pointer_of(PyObject *cdata, PyObject *ctype) {
    return (tt_array *)_cffi_to_c_pointer(cdata, (struct _cffi_ctypedescr *)ctype);
}
PyObject *tt_cdata_of(tt_array *a, PyObject *ctype);
PyObject *tt_cdata_of(tt_array *a, PyObject *ctype) {
    return _cffi_from_c_pointer((char *)a, (struct _cffi_ctypedescr *)ctype);
}
""",
    sources=[relative(s) for s in SOURCES],
    include_dirs=[relative(HERE)],
    depends=[relative(h) for h in sorted(HERE.rglob("*.[ch]"))],
    define_macros=[("TT_X86", "1")] if BITS["X86"] else [],
    extra_compile_args=FLAGS,
    extra_link_args=["-lm", "-lpthread", "-ldl"],
)
