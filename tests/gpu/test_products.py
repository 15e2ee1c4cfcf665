"""Products of matrices: what is handed to the library, and what comes back."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import tinytorch as tt
from gpu import products
from gpu.memory import ctrl_c_in_memory
from tinytorch.backends import cudnn as settings
from tinytorch.backends.cpu import ffi, lib
from tinytorch.backends.cuda import binding, cublas, flags, libraries, runtime

HERE = Path(__file__).resolve().parent
RNG = np.random.default_rng(0)
DTYPES = [("float32", 1e-5), ("float64", 1e-12), ("float16", 2e-3), ("bfloat16", 2e-2), ("int64", 0), ("uint8", 0)]


def pair(shape, dtype="float32"):
    """The same numbers for NumPy and on the device."""
    a = RNG.integers(0, 9, shape) if "int" in dtype else RNG.standard_normal(shape)
    t = tt.tensor(a).to(getattr(tt, dtype))
    return t.to(tt.float64 if t.is_floating_point() else t.dtype).numpy(), t.to("cuda")


def check(got, want, tolerance=1e-5):
    assert got.device.type == "cuda" and tuple(got.shape) == want.shape
    got = got.cpu()
    got = got.to(tt.float64).numpy() if got.is_floating_point() else got.numpy()
    np.testing.assert_allclose(got, want.astype(got.dtype), rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("dtype, tolerance", DTYPES)
def test_dtypes(gpu, dtype, tolerance):
    a, x = pair((33, 17), dtype)
    b, y = pair((17, 20), dtype)
    check(x @ y, a @ b, tolerance)
    check(x.mT.contiguous().mT @ y, a @ b, tolerance)


@pytest.mark.parametrize(
    "left, right",
    [
        ((4,), (4,)),
        ((3, 4), (4,)),
        ((4,), (4, 5)),
        ((2, 3, 4), (4, 5)),
        ((2, 3, 4), (2, 4, 5)),
        ((3, 4), (2, 4, 5)),
        ((2, 1, 3, 4), (1, 5, 4, 6)),
        ((2, 5, 1, 4), (4,)),
        ((0, 3), (3, 4)),
        ((3, 0), (0, 4)),
        ((1, 4), (4, 1)),
    ],
)
def test_shapes(gpu, left, right):
    (a, x), (b, y) = pair(left), pair(right)
    check(x @ y, np.asarray(a @ b))


def test_layouts(gpu):
    (a, x), (b, y) = pair((2, 7, 3, 4)), pair((2, 7, 3, 4))
    check(x.transpose(1, 2) @ y.transpose(1, 2).mT, a.swapaxes(1, 2) @ b.swapaxes(1, 2).swapaxes(2, 3))
    check(x[:, 1::2, :, :3] @ y[:, 1::2, :, :3].mT, a[:, 1::2, :, :3] @ b[:, 1::2, :, :3].swapaxes(2, 3))
    check(x[0, 0].mT @ y[0, 0], a[0, 0].T @ b[0, 0])
    one = np.broadcast_to(a[0, :1, :1, :1], (7, 3, 4))
    check(x[0, :1, :1, :1].expand(7, 3, 4) @ y[0].mT, one @ b[0].swapaxes(1, 2))


@pytest.mark.parametrize("shape", [(4, 6), (6,), (4, 1), (1, 6), ()])
def test_addmm(gpu, shape):
    (c, z), (a, x), (b, y) = pair(shape), pair((4, 5)), pair((5, 6))
    check(tt.addmm(z, x, y), c + a @ b)
    check(tt.addmm(z, x, y, beta=0.5, alpha=2), 0.5 * c + 2 * (a @ b))
    check(tt.addmm(z, x[:, :0], y[:0], beta=0.5), np.broadcast_to(0.5 * c, (4, 6)))


@pytest.mark.parametrize("dtype, tolerance", DTYPES[:4])
def test_linear_and_its_gradients(gpu, dtype, tolerance):
    (a, x), (w, y), (c, z), (g, u) = [pair(shape, dtype) for shape in ((2, 3, 5), (6, 5), (6,), (2, 3, 6))]
    for t in (x, y, z):
        t.requires_grad_()
    out = tt.nn.functional.linear(x, y, z)
    check(out.detach(), a @ w.T + c, tolerance)
    out.backward(u)
    check(x.grad, g @ w, tolerance)
    check(y.grad, np.einsum("bij,bik->jk", g, a), tolerance)
    check(z.grad, g.sum((0, 1)), tolerance)


def test_equal_calls_give_equal_bits(gpu):
    x, y = pair((65, 130))[1], pair((130, 33))[1]
    assert tt.equal(x @ y, x @ y)


def test_errors(gpu):
    x = tt.ones(3, 4, device="cuda")
    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        x @ x
    with pytest.raises(RuntimeError, match="same device"):
        x @ tt.ones(4, 4)
    with pytest.raises(RuntimeError, match="same dtype"):
        x @ tt.ones(4, 4, dtype=tt.float64, device="cuda")


def test_one_call_for_a_linear_layer(emulated):
    x, w, b = tt.ones(2, 3, 5, device="cuda"), tt.ones(6, 5, device="cuda"), tt.ones(6, device="cuda")
    emulated.launches.clear()
    tt.nn.functional.linear(x, w, b)
    assert emulated.launches == ["gemm"]


@pytest.fixture
def asked(emulated, monkeypatch):
    """m, n and k of each product, and whether all of its rows begin at multiples of 16 bytes."""
    plain, found = products.multiply, []

    def multiply(p, *operands):
        aligned = all((p.align >> shift & 15) >= 4 for shift in (0, 4, 8)) and not (p.lda | p.ldb | p.n) % 8
        found.append((p.m, p.n, p.k, aligned))
        plain(p, *operands)

    monkeypatch.setattr(products, "multiply", multiply)
    return found


@pytest.mark.parametrize("dtype, tolerance", DTYPES[2:4])
def test_rows_of_half_types_are_padded(asked, dtype, tolerance):
    """What becomes of the ends shows in no result; memory that was in use before holds NaNs there."""
    tt.full((3_000_000,), float("nan"), dtype=getattr(tt, dtype), device="cuda")
    (a, x), (w, y), (g, u) = [pair(shape, dtype) for shape in ((1100, 1000), (1003, 1000), (1100, 1003))]
    x.requires_grad_()
    y.requires_grad_()
    out = tt.nn.functional.linear(x, y)
    check(out.detach(), a @ w.T, 20 * tolerance)
    out.backward(u)
    check(x.grad, g @ w, 20 * tolerance)
    check(y.grad, g.T @ a, 20 * tolerance)
    assert asked == [(1100, 1008, 1000, True), (1100, 1000, 1008, True), (1008, 1000, 1100, True)]


@pytest.mark.parametrize("left, right", [(0, 0), (0, 1), (1, 0), (1, 1)])
@pytest.mark.parametrize("sizes", [(1101, 1102, 1103), (1104, 1112, 1120)])
def test_padded_rows_in_each_layout(asked, sizes, left, right):
    """The second sizes are multiples of 8, but the matrices lie one element further on."""
    m, n, k = sizes
    (a, x), (b, y) = [
        pair((r, c + 1), "bfloat16") for r, c in ((m, k)[:: -1 if left else 1], (k, n)[:: -1 if right else 1])
    ]
    x, y, a, b = x[:, 1:], y[:, 1:], a[:, 1:], b[:, 1:]
    check((x.mT if left else x) @ (y.mT if right else y), (a.T if left else a) @ (b.T if right else b), 0.4)
    up = [-(-size // 8) * 8 for size in sizes]
    assert asked == [(up[0] if left else m, up[1], k if left and not right else up[2], True)]


@pytest.mark.parametrize("shape", [(1100, 1000, 1003), (1100, 100, 1003)])
def test_rows_are_left_where_copies_do_not_pay(asked, shape):
    """Of wide numbers, of short sums, and where something is added."""
    m, k, n = shape
    dtype = tt.float32 if k == 1000 else tt.float16
    x, y, z = [tt.ones(*sizes, dtype=dtype, device="cuda") for sizes in ((m, k), (k, n), (m, n))]
    x @ y
    tt.addmm(z.half(), x.half(), y.half())
    assert [found[:3] for found in asked] == [(m, n, k)] * 2 and not any(found[3] for found in asked)


@pytest.mark.parametrize("kind, layers", [("LSTM", 2), ("GRU", 1), ("RNN", 1)])
def test_products_of_recurrent_layers(emulated, monkeypatch, kind, layers):
    """All of them may be rounded where cuDNN's may: forward and backward, packed sequences too."""
    plain, found = products.multiply, []
    monkeypatch.setattr(products, "multiply", lambda p, *operands: found.append(p.layer) or plain(p, *operands))
    network = getattr(tt.nn, kind)(4, 5, layers).to("cuda")
    for x in (
        tt.ones(3, 2, 4, device="cuda", requires_grad=True),
        tt.nn.utils.rnn.pack_sequence([tt.ones(n, 4, device="cuda") for n in (3, 2)]),
    ):
        out = network(x)[0]
        (out.data if isinstance(out, tt.nn.utils.rnn.PackedSequence) else out).sum().backward()
    assert len(found) > 15 * layers and all(found)
    tt.ones(2, 2, device="cuda") @ tt.ones(2, 2, device="cuda")
    assert not found[-1]


# The binding, over a library of the same interface that works on the CPU's memory.


@pytest.fixture(scope="module")
def fake_path(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("fake") / "libcublasLt.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", path, HERE / "fake_cublas.c"], check=True)
    return str(path)


@pytest.fixture
def fake(gpu, fake_path, monkeypatch):
    """The library, in the place of NVIDIA's."""
    library = binding.Library(
        "cublasLt",
        cublas.DECLARATIONS
        + """
        extern int fake_heuristics, fake_refuses_bias, fake_compute;
        extern int64_t fake_workspace_needed;
        extern uint32_t fake_align[4], fake_reductions;
    """,
        "cublasLtGetStatusString",
    )
    library._lib = libraries.opened(library.ffi, fake_path)
    monkeypatch.setattr(cublas, "_blas", library)
    for kept, empty in ("_handles", {}), ("_plans", {}), ("_retired", []):
        monkeypatch.setattr(cublas, kept, empty)
    lib = library.lib
    lib.fake_heuristics = lib.fake_refuses_bias = lib.fake_workspace_needed = 0
    return lib


def multiply(a, b, *, trans=0, bias=None, alpha=1.0, beta=0.0, c=None, layer=0):
    """Operands as they lie: a (count, m, k), or (count, k, m) with bit 0 of trans; b likewise with bit 1."""
    count = max(a.shape[0], b.shape[0])
    m, k = (a.shape[2], a.shape[1]) if trans & 1 else a.shape[1:]
    n = b.shape[1] if trans & 2 else b.shape[2]
    kind = "double" if a.dtype == np.float64 else "float"
    p = ffi.new(
        "tt_gemm *",
        {
            "m": m,
            "n": n,
            "k": k,
            "lda": a.shape[2],
            "ldb": b.shape[2],
            "count": count,
            "trans": trans,
            "bias": bias is not None,
            "step_a": a[0].size if a.shape[0] > 1 else 0,
            "step_b": b[0].size if b.shape[0] > 1 else 0,
            "dtype": 9 if kind == "double" else 8,
            "align": 4 | 3 << 4 | 2 << 8,
            "layer": layer,
        },
    )
    out = np.full((count, m, n), np.nan, a.dtype)
    memory = (a, b, out if c is None else c, out, bias)
    at = [ffi.NULL if x is None else ffi.cast("void *", x.ctypes.data) for x in memory]
    factors = [ffi.new(f"{kind} *", x) for x in (alpha, beta)]
    status = cublas.multiply(0, p, *at, *[ffi.cast("void *", f) for f in factors], 0)
    return out if status == 0 else status


@pytest.mark.parametrize("trans", range(4))
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_library_gets_the_transposed_problem(fake, trans, dtype):
    a, b = RNG.standard_normal((3, 4, 5)).astype(dtype), RNG.standard_normal((3, 5, 6)).astype(dtype)
    want = a @ b
    a = np.ascontiguousarray(a.swapaxes(1, 2)) if trans & 1 else a
    b = np.ascontiguousarray(b.swapaxes(1, 2)) if trans & 2 else b
    np.testing.assert_allclose(multiply(a, b, trans=trans), want, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(multiply(a[:1], b[:1], trans=trans), want[:1], rtol=1e-4, atol=1e-6)
    shared = multiply(a[:1], b, trans=trans)  # one matrix for the whole stack
    np.testing.assert_allclose(shared[0], want[0], rtol=1e-4, atol=1e-6)
    c = RNG.standard_normal(want.shape).astype(dtype)
    np.testing.assert_allclose(
        multiply(a, b, trans=trans, alpha=2.0, beta=0.5, c=c), 2 * want + 0.5 * c, rtol=1e-4, atol=1e-6
    )


def test_bias(fake):
    a, b = RNG.standard_normal((1, 4, 5)), RNG.standard_normal((1, 5, 6))
    for _ in range(2):  # the second time the plan is there, and another bias
        bias = RNG.standard_normal(6)
        np.testing.assert_allclose(multiply(a, b, bias=bias), a @ b + bias)
    assert fake.fake_heuristics == 1
    fake.fake_refuses_bias = 1
    assert multiply(a[:, :3], b, bias=bias) == 1
    assert multiply(a[:, :3], b, bias=bias) == 1
    assert fake.fake_heuristics == 2


def test_a_bias_belongs_to_its_call(fake):
    a, b = np.ones((1, 2, 3)), np.ones((1, 3, 4))
    wrong = []

    def work(value):
        bias = np.full(4, float(value))
        wrong.extend(1 for _ in range(200) if (multiply(a, b, bias=bias) != 3 + value).any())

    threads = [threading.Thread(target=work, args=(v,)) for v in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_what_a_library_made_outlives_its_object(fake_path):
    """As at the interpreter's exit, where modules go in any order."""
    program = f"""
import gc
from tinytorch.backends.cuda import binding, cublas, libraries
library = binding.Library("cublasLt", cublas.DECLARATIONS, "cublasLtGetStatusString")
library._lib = libraries.opened(library.ffi, {fake_path!r})
made = library.made("cublasLtMatmulPreferenceCreate", "cublasLtMatmulPreferenceDestroy", "void *")
del library
gc.collect()
del made
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


def test_algorithms_are_chosen_once(fake):
    a, b = np.ones((1, 2, 3), np.float32), np.ones((1, 3, 4), np.float32)
    for _ in range(3):
        multiply(a, b)
    assert fake.fake_heuristics == 1
    assert list(fake.fake_align) == [8, 16, 4, 4]  # of the library's a, b, c, d; its a is our b
    multiply(a[:, :1], b)
    assert fake.fake_heuristics == 2


def test_plans_do_not_pile_up(fake, monkeypatch):
    monkeypatch.setattr(cublas, "_PLANS", 3)
    for n in range(1, 9):
        multiply(np.ones((1, n, 3)), np.ones((1, 3, 4)))
    assert all(len(plans) <= 3 for plans in cublas._plans.values())


def test_workspace(fake):
    fake.fake_workspace_needed = 1 << 20
    before = tt.cuda.memory_allocated()
    for _ in range(2):
        multiply(np.ones((1, 2, 3)), np.ones((1, 3, 4)))
        assert tt.cuda.memory_allocated() == before
    fake.fake_workspace_needed = 1 << 40
    with pytest.raises(RuntimeError, match="CUBLAS_STATUS_NOT_SUPPORTED when calling `cublasLtMatmulAlgoGetHeuristic`"):
        multiply(np.ones((1, 5, 3)), np.ones((1, 3, 4)))


def test_flags(fake, monkeypatch):
    a, b = np.ones((1, 2, 3), np.float32), np.ones((1, 3, 4), np.float32)
    multiply(a, b)
    assert fake.fake_compute == 68
    assert tt.backends.cuda.matmul is flags.matmul
    monkeypatch.setattr(flags.matmul, "allow_tf32", True)
    multiply(a, b)
    assert fake.fake_compute == 77 and fake.fake_heuristics == 2
    monkeypatch.setattr(flags.matmul, "allow_tf32", False)
    for rounds in (True, False):
        monkeypatch.setattr(settings, "allow_tf32", rounds)
        multiply(a, b, layer=1)
        assert fake.fake_compute == (77 if rounds else 68)
    with pytest.raises(TypeError, match="allow_tf32 must be a bool"):
        flags.matmul.allow_tf32 = "yes"
    with pytest.raises(AttributeError):
        flags.matmul.allow_tf23 = True


# Products that C asks for itself.


@pytest.fixture
def again(fake, emulated, monkeypatch):
    """The problems of which Python is told, of products that the fake library computes."""
    told = []

    def multiply(device, problem, *how):
        told.append((problem.m, problem.k, problem.n))
        return cublas.multiply(device, problem, *how[:-1], emulated.handle(how[-1]) or 0, keep=True)

    monkeypatch.setattr(emulated, "multiply", multiply)
    lib.tt_cuda_forget_plans()
    with emulated:  # its memory can be read
        yield told
    lib.tt_cuda_forget_plans()


def product(m, k, n, bias=False):
    (a, x), (b, y), (c, z) = pair((m, k)), pair((k, n)), pair((n,))
    return (tt.addmm(z, x, y), a @ b + c) if bias else (x @ y, a @ b)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("workspace", [0, 1 << 20])
def test_python_is_told_once(again, fake, bias, workspace):
    fake.fake_workspace_needed = workspace
    before = tt.cuda.memory_allocated()
    for _ in range(3):
        check(*product(3, 4, 5, bias))
    assert again == [(3, 4, 5)] and fake.fake_heuristics == 1
    check(*product(3, 4, 6, bias))
    assert again == [(3, 4, 5), (3, 4, 6)]
    assert tt.cuda.memory_allocated() == before


def test_the_plan_of_another_thread_that_was_first(fake, monkeypatch):
    """C may have been told of that one, which must last."""
    made, plan = [], cublas.Plan

    def slowly(*how):
        own = plan(*how)
        made.append(own)
        if len(made) == 1:
            multiply(a, b)  # the other thread
        return own

    monkeypatch.setattr(cublas, "Plan", slowly)
    a, b = np.ones((1, 2, 3), np.float32), np.ones((1, 3, 4), np.float32)
    multiply(a, b)
    ((kept,),) = (plans.values() for plans in cublas._plans.values())
    assert len(made) == 2 and kept is made[1]


def test_what_else_it_depends_on(again, fake, monkeypatch):
    """Python is told again: precision, stream, the current context, a profiler."""
    product(3, 4, 5)
    monkeypatch.setattr(flags.matmul, "allow_tf32", True)
    for _ in range(2):
        product(3, 4, 5)
    assert len(again) == 2 and fake.fake_compute == 77
    with tt.cuda.stream(tt.cuda.Stream()):
        for _ in range(2):
            product(3, 4, 5)
    assert len(again) == 3
    product(3, 4, 5)
    nobody = ffi.callback("int(void **)", lambda context: 1)
    lib.tt_cuda_launcher(ffi.NULL, ffi.cast("void *", nobody))
    lib.tt_cuda_context(0, ffi.cast("void *", 1))  # which is not current
    for _ in range(2):
        product(3, 4, 5)
    lib.tt_cuda_context(0, ffi.NULL)
    assert len(again) == 3 + 2
    runtime.let_work(dict(runtime.WORK))
    for _ in range(2):
        product(3, 4, 5)
    runtime.let_work(runtime.WORK)
    for _ in range(2):
        product(3, 4, 5)
    assert len(again) == 5 + 2 + 1


@pytest.mark.parametrize("at", [1, 2])
def test_flags_that_another_thread_changes_meanwhile(again, fake, monkeypatch, at):
    """What was chosen before is not kept, however late they change."""
    choices, looks = cublas._choices, []

    def changed(*asked):
        found = choices(*asked)
        looks.append(found)
        if len(looks) == at:
            flags.matmul.allow_tf32 = True
        return found

    monkeypatch.setattr(flags.matmul, "allow_tf32", False)
    monkeypatch.setattr(cublas, "_choices", changed)
    product(3, 4, 5)
    assert fake.fake_compute == 68
    flags.matmul.allow_tf32 = True
    product(3, 4, 5)
    assert fake.fake_compute == 77


def test_ctrl_c_while_there_is_memory_to_find(again, fake, emulated, monkeypatch):
    fake.fake_workspace_needed = 1 << 20
    product(3, 4, 5)
    ctrl_c_in_memory(emulated, monkeypatch, 1 << 20, lambda: product(3, 4, 5))
    assert again == [(3, 4, 5)]


def test_plans_that_are_too_many_are_forgotten(again, monkeypatch):
    monkeypatch.setattr(cublas, "_PLANS", 2)
    for n in (5, 6, 7, 5):
        check(*product(3, 4, n))
    assert [n for _, _, n in again] == [5, 6, 7, 5]


def test_what_the_library_refuses(again, fake):
    """Python asks again, for the error's words."""
    product(3, 4, 5)
    fake.fake_workspace_needed = 1 << 20  # but the plan has none
    with pytest.raises(RuntimeError, match="a fault when calling `cublasLtMatmul`"):
        product(3, 4, 5)
    fake.fake_workspace_needed = 0
    check(*product(3, 4, 5))
