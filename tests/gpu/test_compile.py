"""What is launched, and that it compiles for the GPUs there are. Needs neither a GPU nor PyCUDA; where NVRTC is not
installed (pip install nvidia-cuda-nvrtc) nothing is compiled."""

import struct

import pytest
from gpu import programs

import tinytorch as tt
from tinytorch.backends.cpu import ffi, lib
from tinytorch.backends.cuda import nvrtc
from tinytorch.backends.cuda.source import kernels_folder
from tinytorch.scalar import ELEMENTWISE, OPERATORS

OLDEST, NEWEST = "sm_80", "sm_100"
HOPPER = {"attention_wgmma"}  # families with instructions that no other architecture has
MACHINE_CODE = b"\x7fELF"


def families():
    """All families of kernels, in their order."""
    names, number = [], 0
    while (name := lib.tt_family_name(number)) != ffi.NULL:
        names.append(ffi.string(name).decode())
        number += 1
    return names


@pytest.fixture(scope="module")
def compiler():
    """A function that compiles a planned launch for an architecture."""
    try:
        nvrtc.library()
    except OSError:
        pytest.skip("NVRTC is not installed")
    return lambda plan, arch: nvrtc.compile_cubin(plan.source, plan.name, arch, kernels_folder())


def launched_by(emulated, family):
    """The different kernels of its family that a program launches."""
    with emulated.planning(run=family in programs.CHECKED) as plans:
        getattr(programs, family)()
    return list({plan.source: plan for plan in plans if plan.family == family}.values())


@pytest.mark.parametrize("family", families())
def test_a_kernel_of_each_family_compiles(emulated, compiler, family):
    """The first for the oldest and the newest architecture, the last for the one between."""
    plans = launched_by(emulated, family)
    assert plans, f"the program {family} launches no kernel of its family"
    everywhere = [] if family in HOPPER else [(plans[0], OLDEST), (plans[0], NEWEST)]
    for plan, arch in *everywhere, (plans[-1], "sm_90a"):
        assert compiler(plan, arch).startswith(MACHINE_CODE)


@pytest.mark.parametrize("family", ["elementwise", "softmax", "fused"])
def test_kernels_compile_with_approximate_functions(emulated, compiler, family):
    with tt.config(approximate=1):
        plans = launched_by(emulated, family)
    assert plans and all(plan.source.startswith("#define TT_APPROXIMATE ") for plan in plans)
    for plan, arch in zip(plans, (OLDEST, "sm_90", NEWEST), strict=False):
        assert compiler(plan, arch).startswith(MACHINE_CODE)


@pytest.mark.slow
@pytest.mark.parametrize("arch", [OLDEST, "sm_90a", NEWEST])
@pytest.mark.parametrize("family", families())
def test_all_kernels_of_a_family_compile(emulated, compiler, family, arch):
    if family in HOPPER and arch != "sm_90a":
        pytest.skip("it is for Hopper alone")
    for plan in launched_by(emulated, family):
        assert compiler(plan, arch).startswith(MACHINE_CODE)


SPECIAL = [op.name for op in ELEMENTWISE if op.special]
SOME_SPECIAL = {"bessel_y1", "airy_ai", "log_ndtr", "igamma", "zeta", "chebyshev_polynomial_t", "dirichlet_grad"}


@pytest.mark.parametrize("name", [n if n in SOME_SPECIAL else pytest.param(n, marks=pytest.mark.slow) for n in SPECIAL])
def test_special_functions_compile(emulated, compiler, name):
    call, number_of_inputs = getattr(tt.special, name, None) or getattr(tt, name, None), OPERATORS[name].arity
    call = call or getattr(tt, "_" + name)
    x = empty(1000, dtype=tt.float64)
    assert compiler(planned(emulated, lambda: call(*[x] * number_of_inputs)), "sm_90").startswith(MACHINE_CODE)


def test_what_does_not_compile_is_reported(compiler):
    plan = type("Plan", (), {"name": "wrong", "source": 'extern "C" __global__ void tt_kernel() { nonsense; }'})
    with pytest.raises(nvrtc.CompileError, match='(?s)the kernel wrong did not compile for sm_90:.*"nonsense"'):
        compiler(plan, "sm_90")


# Launch plans of elementwise operators.

THREADS, FLAT_THREADS = 256, 128
MANY, ONE, VALUE = 0, 1, 2  # how an input is given: kernels/cuda/host/elementwise.c
DIMS = 16
FLAT = struct.Struct("q11Q")
STRIDED = struct.Struct(f"q10Qii{DIMS}q{3 * DIMS}I{4 * DIMS}qQ")


def planned(emulated, run):
    """The only launch of ``run()``."""
    with emulated.planning() as plans:
        run()
    (plan,) = plans
    return plan


def variant_of(plan):
    """The log of a thread's elements, is it strided, are indices of 64 bits, how each input is given: TT_VARIANT."""
    bits = int(plan.source.split("#define TT_VARIANT ")[1].split()[0])
    return bits & 7, bits >> 3 & 1, bits >> 4 & 1, [bits >> at & 3 for at in (5, 7, 9)]


def empty(*shape, dtype=None):
    return tt.empty(*shape, dtype=dtype, device="cuda")


@pytest.mark.parametrize("dtype, log", [("float64", 1), ("float32", 2), ("bfloat16", 3), ("bool", 4)])
@pytest.mark.parametrize("numel", [1, 511, 4096, 4097, 1_000_003])
def test_flat_operands_are_taken_sixteen_bytes_at_a_time(emulated, dtype, log, numel):
    a, b = empty(numel, dtype=getattr(tt, dtype)), empty(numel, dtype=getattr(tt, dtype))
    out = empty(numel, dtype=getattr(tt, dtype))
    plan = planned(emulated, lambda: tt.add(a, b, out=out))
    assert variant_of(plan) == (log, 0, 0, [MANY] * 3)
    tile = FLAT_THREADS << log
    assert plan.grid == (-(-numel // tile), 1, 1) and plan.block == (FLAT_THREADS, 1, 1) and plan.shared == 0
    assert len(plan.arguments) == FLAT.size
    count, to, first, second, *_ = FLAT.unpack(plan.arguments)
    assert (count, to, first, second) == (numel, out.data_ptr(), a.data_ptr(), b.data_ptr())


@pytest.mark.parametrize("run, vectors", [(tt.exp, 2), (tt.neg, 1), (lambda x: tt.atan2(x, x), 1)])
def test_a_thread_takes_two_vectors_where_it_computes_for_long(emulated, run, vectors):
    x = empty(100_000)
    plan = planned(emulated, lambda: run(x))
    assert plan.grid == (-(-100_000 // (FLAT_THREADS * 4 * vectors)), 1, 1)
    with tt.config(approximate=1):
        assert planned(emulated, lambda: run(x)).grid == (-(-100_000 // (FLAT_THREADS * 4)), 1, 1)


@pytest.mark.parametrize("offset, log", [(1, 0), (2, 1), (3, 0), (4, 2)])
def test_accesses_are_as_wide_as_the_operands_are_aligned(emulated, offset, log):
    a = empty(1000)[offset:]
    assert variant_of(planned(emulated, lambda: a.exp()))[0] == log


def test_the_widest_operand_limits_the_accesses(emulated):
    assert variant_of(planned(emulated, lambda: empty(100, dtype=tt.float16) + empty(100)))[0] == 2


def test_numbers_are_given_by_their_values(emulated):
    a = empty(64)
    plan = planned(emulated, lambda: a * 1.5)
    assert variant_of(plan)[3] == [MANY, VALUE, MANY]
    value = FLAT.unpack(plan.arguments)[7]
    assert struct.unpack("f", struct.pack("I", value & 0xFFFFFFFF)) == (1.5,)


def test_one_element_for_all_is_read_once(emulated):
    a, one = empty(5, 6), empty(1)
    plan = planned(emulated, lambda: a - one)
    assert variant_of(plan)[1:] == (0, 0, [MANY, ONE, MANY])
    assert FLAT.unpack(plan.arguments)[3] == one.data_ptr()


def test_dimensions_that_lie_one_after_the_other_are_merged(emulated):
    a = empty(4, 5, 6).permute(2, 0, 1)  # all operands in the same order
    assert variant_of(planned(emulated, lambda: a * a))[1] == 0


def test_other_layouts_are_walked(emulated):
    a, row = empty(7, 5).t(), empty(7)  # a's dimension of size 5 is the inner one of its memory
    out = empty(5, 7)
    plan = planned(emulated, lambda: tt.add(a, row, out=out))
    assert variant_of(plan)[1:] == (1, 0, [MANY] * 3)
    assert plan.grid == (1, 1, 1) and plan.block == (THREADS, 1, 1) and len(plan.arguments) == STRIDED.size
    numel, to, first, second, _, *rest = STRIDED.unpack(plan.arguments)
    assert (numel, to, first, second) == (35, out.data_ptr(), a.data_ptr(), row.data_ptr())
    rest = rest[6:]  # after the values
    ndim, sizes, by, steps = rest[0], rest[2 : 2 + DIMS], rest[2 + DIMS : 2 + 4 * DIMS], rest[2 + 4 * DIMS :]
    assert ndim == 2 and sizes[:2] == [7, 5]
    assert [steps[k * DIMS : k * DIMS + 2] for k in (0, 1, 2)] == [[4, 28], [20, 4], [4, 0]]
    for size, magic, shift in (by[0:3], by[3:6]):  # the division by each size, as the kernel does it
        for x in (0, 1, 6, 7, 34, 1 << 20, (1 << 31) - 1):
            assert ((x * magic >> 32) + x) >> shift == x // size


def test_nothing_is_launched_for_no_elements(emulated):
    with emulated.planning() as plans:
        empty(0, 5) + 1
        empty(3, 0).t().exp()
    assert not plans
