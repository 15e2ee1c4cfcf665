"""Kernels made by hand, and their generated code, compiled and loaded."""

import itertools
import re
from pathlib import Path

import cffi
import numpy as np
import tinytorch as tt
from tinytorch.backends.cpu import ffi, lib
from tinytorch.dtypes import ALL
from tinytorch.fuse import codegen, compiler
from tinytorch.fuse.codegen import SUFFIXES

DTYPES = {d.suffix: d for d in ALL}
NUMPY = {d.suffix: d.stored.type for d in ALL}
INTS = {2: tt.int16, 4: tt.int32}
DOMAINS = {"FLT": ("f32", "f64"), "REAL": ("f32", "f64"), "INTS": ("u8", "i8", "i16", "i32", "i64")}
DOMAINS["NUM"] = DOMAINS["FLT"] + DOMAINS["INTS"]
DOMAINS["ALL"] = (*DOMAINS["NUM"], "b8")
DOMAINS["INT"] = (*DOMAINS["INTS"], "b8")
DOMAINS["NONE"] = ()  # complex numbers only: tests/test_complex_scalars.py

_calls = cffi.FFI()
_calls.cdef("".join(f"void fused_{k}(char **slot, int64_t n);" for k in range(256)))


def operators():
    """(name, arity, dtype suffixes, rule) of every operator in ops.h."""
    text = Path(compiler.headers(), "ops.h").read_text()
    return [
        (name, int(arity), DOMAINS[domain], rule)
        for name, arity, domain, rule in re.findall(r"X\((\w+), (\d), (\w+), (\w+), \d+, \d+\)", text)
    ]


class Kernel:
    """A tt_kernel that is filled in step by step."""

    def __init__(self, block=1024, row=1):
        self.slots, self.instrs, self.stores, self.reductions = [], [], [], []
        self.block, self.row = block, row

    def slot(self, kind, dtype, stage=0, last=None, source=0):
        """A slot of a kind: "load", "one", "const", "row", "temp"; its number."""
        number = getattr(lib, f"TT_SLOT_{kind.upper()}")
        self.slots.append(
            {
                "kind": number,
                "dtype": SUFFIXES.index(dtype),
                "level": 1,
                "stage": stage,
                "last": stage if last is None else last,
                "from": source,
                "index": 0,
                "buffer": -1,
            }
        )
        return len(self.slots) - 1

    def instr(self, kind, dtype, inputs, out_dtype, op="", to=0, stage=0, last=None):
        """An instruction into a new TEMP slot; that slot's number."""
        out = self.slot("temp", out_dtype, stage, last)
        for s in inputs:
            self.slots[s]["last"] = max(self.slots[s]["last"], stage)
        code = lib.tt_op_code(op.encode()) if op else 0
        self.instrs.append(
            {
                "kind": getattr(lib, f"TT_INSTR_{kind.upper()}"),
                "op": code,
                "to": to,
                "out": out,
                "dtype": SUFFIXES.index(dtype),
                "stage": stage,
                "level": 1,
                "in": [*inputs, -1, -1, -1][:3],
                "node": len(self.instrs),
            }
        )
        return out

    def op(self, name, dtype, *inputs, stage=0, last=None):
        """An operator; the slot of its result."""
        rule = next(r for n, _, _, r in operators() if n == name)
        return self.instr("op", dtype, inputs, "b8" if rule == "BOOL" else dtype, op=name, stage=stage, last=last)

    def cast(self, slot, to, stage=0):
        """A cast; the slot of its result."""
        dtype = SUFFIXES[self.slots[slot]["dtype"]]
        return self.instr("cast", dtype, [slot], to, to=SUFFIXES.index(to), stage=stage)

    def store(self, slot, stage=0):
        """Leaves a slot in memory."""
        self.stores.append({"slot": slot, "stage": stage, "access": 0})

    def struct(self):
        """The ``tt_kernel *``; it keeps its parts alive."""
        stages = 1 + max((i["stage"] for i in self.instrs), default=0)
        parts = [
            ffi.new("tt_slot[]", self.slots),
            ffi.new("tt_instr[]", self.instrs),
            ffi.new("tt_store[]", self.stores),
            ffi.new("tt_kernel_reduction[]", self.reductions),
            ffi.new("void *[]", stages),
        ]
        made = ffi.new(
            "tt_kernel *",
            {
                "num_stages": stages,
                "num_slots": len(self.slots),
                "num_instrs": len(self.instrs),
                "num_stores": len(self.stores),
                "num_reductions": len(self.reductions),
                "block": self.block,
                "row": self.row,
                "slots": parts[0],
                "instrs": parts[1],
                "stores": parts[2],
                "reductions": parts[3],
                "compiled": parts[4],
            },
        )
        _alive[made] = parts
        return made


_alive = {}
_numbers = itertools.count()


class Loaded:
    """The compiled functions of a kernel."""

    def __init__(self, kernel, folder, isa=None):
        isa = isa or ffi.string(lib.tt_isa_name()).decode()
        self.kernel = kernel
        self.source = codegen.source(kernel.struct())
        c = Path(folder, f"kernel{next(_numbers)}.c")
        c.write_text(self.source)
        compiler.compile_file(str(c), str(c.with_suffix(".so")), isa)
        self.library = _calls.dlopen(str(c.with_suffix(".so")))

    def __call__(self, arrays, n, stage=0):
        """Runs a stage; ``arrays`` maps slots to NumPy arrays, which it reads and writes."""
        slots = _calls.new("char *[]", len(self.kernel.slots))
        for s, array in arrays.items():
            assert array.flags.c_contiguous
            slots[s] = _calls.cast("char *", array.ctypes.data)
        getattr(self.library, f"fused_{stage}")(slots, n)

    def result(self, slot, inputs, n, stage=0):
        """The n elements that a stage leaves in a slot, and nothing behind them."""
        dtype = NUMPY[SUFFIXES[self.kernel.slots[slot]["dtype"]]]
        made = np.full(n + 64, 77, np.uint8).astype(dtype)
        guard = made[n:].copy()
        self({**inputs, slot: made}, n, stage)
        assert made[n:].tobytes() == guard.tobytes(), "wrote past the end"
        return made[:n]


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    2.0,
    np.inf,
    -np.inf,
    np.nan,
    1e-45,
    -1e-40,
    1.1754944e-38,
    3.4e38,
    -3.4e38,
    88.8,
    -103.0,
    1e5,
    100001.0,
    -2e7,
    2.0**30,
    2.0**31,
    -(2.0**31),
    2.0**53,
    1e300,
    -1e300,
    5e-324,
    254.7,
    -129.3,
]


def values(dtype, n, seed, divisor=False):
    """n elements with the special ones among them, as a contiguous array."""
    rng = np.random.default_rng(seed)
    kind = NUMPY[dtype]
    if dtype == "b8":
        return rng.integers(0, 2, n).astype(bool)
    if dtype in DOMAINS["INTS"]:
        info = np.iinfo(kind)
        wide = rng.integers(info.min, info.max, n, endpoint=True, dtype=kind)
        small = rng.integers(0 if info.min == 0 else -20, 20, n).astype(kind)
        made = np.where(rng.random(n) < 0.5, wide, small)
        made[: min(n, 4)] = [info.min, info.max, 1, info.max // 2][: min(n, 4)]
        return np.where(made == 0, 3, made).astype(kind) if divisor else made
    with np.errstate(over="ignore"):
        made = rng.standard_normal(n) * 10.0 ** rng.integers(-6, 7, n)
        at = rng.permutation(n)[: len(SPECIAL)]
        made[at] = rng.permutation(SPECIAL)[: len(at)]
        if dtype == "bf16":
            return (made.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)
        if dtype == "c32":
            return np.stack([made, made[::-1]], 1).astype(np.float16).view(kind)[:, 0]
        return made.astype(kind)


def tensor(array, dtype):
    """The same bits as a tensor."""
    of = DTYPES[dtype]
    return tt.from_numpy(array) if of.numpy is not None else tt.from_numpy(array.view(f"i{of.itemsize}")).view(of)


def array(tensor):
    """The same bits as an array."""
    of = tensor.dtype
    return tensor.numpy() if of.numpy is not None else tensor.view(INTS[of.itemsize]).numpy().view(of.stored)


def bits(array, dtype=None):
    """The bytes, for comparison: every NaN the same, for a NaN's sign and payload are not promised."""
    if array.dtype.kind == "f":
        array = np.where(np.isnan(array), array.dtype.type(np.nan), array)
    elif dtype == "bf16":
        array = np.where((array & 0x7FFF) > 0x7F80, np.uint16(0x7FC0), array)
    elif dtype == "c32":
        return bits(array.view(np.float16))
    return array.tobytes()
