"""Generated code: the bits of eager mode for every operator and cast, and how stages are cut into loops."""

import numpy as np
import pytest
from fuse.kernels import DTYPES, NUMPY, Kernel, Loaded, array, bits, operators, tensor, values
from tinytorch.backends.cpu import ffi, lib
from tinytorch.fuse.flags import ISAS
from tinytorch.ops.elementwise import Elementwise

N = 3019  # no multiple of anything, and more than two blocks


HERE = ffi.string(lib.tt_isa_name()).decode()


@pytest.fixture(params=[pytest.param(isa, marks=() if isa == HERE else pytest.mark.slow) for isa in ISAS])
def isa(request):
    before = ffi.string(lib.tt_isa_name())
    if lib.tt_set_isa(request.param.encode()) < 0:
        pytest.skip(f"no {request.param} on this machine")
    yield request.param
    lib.tt_set_isa(before)


def operands(name, arity, dtype, rule):
    """Arrays for an operator, and their dtypes."""
    dtypes = ["b8" if rule == "SELECT" and k == 0 else dtype for k in range(arity)]
    divides = name in ("fmod", "remainder", "floor_divide", "trunc_divide")
    made = [values(t, N, k, divisor=divides and k == 1) for k, t in enumerate(dtypes)]
    if name == "pow" and np.issubdtype(NUMPY[dtype], np.integer):
        made[1] = np.abs(made[1] % 7).astype(NUMPY[dtype])
    return made, dtypes


@pytest.mark.parametrize("dtype", ["f32", "f64", "u8", "i8", "i16", "i32", "i64", "b8"])
def test_every_operator_has_the_bits_of_eager_mode(dtype, isa, tmp_path):
    mine = [entry for entry in operators() if dtype in entry[2]]
    kernel, slots = Kernel(), []
    for stage, (name, arity, _, rule) in enumerate(mine):  # one function each
        inputs = [kernel.slot("load", "b8" if rule == "SELECT" and k == 0 else dtype, stage) for k in range(arity)]
        slots.append((inputs, kernel.op(name, dtype, *inputs, stage=stage)))
        kernel.store(slots[-1][1], stage)
    loaded = Loaded(kernel, tmp_path, isa)
    for stage, (name, arity, _, rule) in enumerate(mine):
        arrays, dtypes = operands(name, arity, dtype, rule)
        want = Elementwise.TABLE[name].slow(tuple(tensor(a, t) for a, t in zip(arrays, dtypes))).numpy()
        inputs, out = slots[stage]
        for n in (N, 1, 0):
            got = loaded.result(out, dict(zip(inputs, arrays)), n, stage)
            assert bits(got) == bits(want[:n]), f"{name} of {dtype}, {n} elements"


def test_every_cast_has_the_bits_of_eager_mode(isa, tmp_path):
    pairs = [(a, b) for a in DTYPES for b in DTYPES]
    kernel, slots = Kernel(), []
    for stage, (a, b) in enumerate(pairs):
        source = kernel.slot("load", a, stage)
        slots.append((source, kernel.cast(source, b, stage)))
        kernel.store(slots[-1][1], stage)
    loaded = Loaded(kernel, tmp_path, isa)
    for stage, (a, b) in enumerate(pairs):
        data = values(a, N, stage)
        want = array(tensor(data, a).to(DTYPES[b])) if a != b else data
        source, out = slots[stage]
        assert bits(loaded.result(out, {source: data}, N, stage), b) == bits(want, b), f"{a} to {b}"
