"""Convolutions on a device: by a stand-in of cuDNN that has its interface and computes here, and by our kernel."""

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
import tinytorch as tt
from gpu import emulator
from gpu.memory import ctrl_c_in_memory
from tinytorch.backends import cudnn as settings
from tinytorch.backends.cpu import lib
from tinytorch.backends.cuda import binding, convolution, cudnn, libraries

HERE = Path(__file__).resolve().parent
F = tt.nn.functional
TENSOR_CORE, NONDETERMINISTIC = 1 << cudnn.TENSOR_CORE, 1 << cudnn.NONDETERMINISTIC


@pytest.fixture(scope="module")
def fake_path(tmp_path_factory):
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("fake") / "libcudnn.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", path, HERE / "fake_cudnn.c"], check=True)
    return str(path)


@pytest.fixture
def fake(emulated, fake_path, monkeypatch):
    """The library, in the place of NVIDIA's; the emulated device asks it."""
    library = cudnn._Cudnn(
        "cudnn",
        cudnn.DECLARATIONS
        + """
        extern int fake_engines, fake_notes[8], fake_refused, fake_heuristics, fake_executed[8], fake_streams;
        extern int64_t fake_workspace, fake_alive;
    """,
        "cudnnGetErrorString",
    )
    library._lib = libraries.opened(library.ffi, fake_path)
    monkeypatch.setattr(cudnn, "_dnn", library)
    monkeypatch.setattr(cudnn, "_handles", {})

    def convolve(device, problem, input, weight, result, stream):
        with emulated:
            return convolution.convolve(device, problem, input, weight, result, stream or 0)

    monkeypatch.setattr(emulated, "convolve", convolve)
    lib = library.lib
    lib.fake_engines, lib.fake_refused, lib.fake_heuristics, lib.fake_workspace = 3, 0, 0, 0
    for k in range(8):
        lib.fake_notes[k] = lib.fake_executed[k] = 0
    return lib


def executed(fake):
    return list(fake.fake_executed)[:3]


CASES = [
    ((2, 3, 7), (4, 3, 3), {"padding": 1}),
    ((2, 4, 7), (6, 2, 2), {"stride": 2, "groups": 2}),
    ((2, 3, 6, 5), (4, 3, 3, 2), {"padding": (1, 0), "stride": (2, 1)}),
    ((1, 4, 7, 7), (4, 1, 3, 3), {"padding": 2, "dilation": 2, "groups": 4}),
    ((2, 3, 5, 6), (4, 3, 1, 1), {}),
    ((2, 3, 6, 6), (4, 3, 1, 1), {"stride": 2}),
    ((2, 3, 5, 5), (4, 3, 2, 2), {"stride": 3}),
    ((1, 2, 3, 4, 5), (3, 2, 2, 2, 2), {"padding": 1}),
]
DTYPES = [("float32", 1e-4), ("float64", 1e-12)]


def derived(device, dtype, x, w, b, last, how):
    """The result and the three gradients, of operands on a device."""
    x, w, b = (tt.tensor(t).to(getattr(tt, dtype)).to(device) for t in (x, w, b))
    if last and x.ndim == 4:
        x, w = (t.contiguous(memory_format=tt.channels_last) for t in (x, w))
    x, w, b = (t.requires_grad_() for t in (x, w, b))
    y = getattr(F, f"conv{x.ndim - 2}d")(x, w, b, **how)
    (y * y).sum().backward()
    return y.detach(), x.grad, w.grad, b.grad


def same_as_cpu(case, dtype, tolerance, last):
    x, w, how = case
    rng = np.random.default_rng(0)
    operands = [rng.standard_normal(shape) for shape in (x, w, w[:1])]
    wanted = derived("cpu", dtype, *operands, last, how)
    for got, want in zip(derived("cuda", dtype, *operands, last, how), wanted, strict=True):
        assert got.device.type == "cuda" and got.stride() == want.stride()
        np.testing.assert_allclose(got.cpu().numpy(), want.numpy(), rtol=tolerance, atol=tolerance * 10)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("dtype, tolerance", DTYPES)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "x".join(map(str, case[0])))
def test_the_library_gets_the_problem(fake, case, dtype, tolerance, last):
    same_as_cpu(case, dtype, tolerance, last)
    assert sum(executed(fake)) >= 2  # the gradient of a weight of one tap may be a product


@pytest.mark.parametrize("case", CASES, ids=lambda case: "x".join(map(str, case[0])))
def test_without_the_library(gpu, monkeypatch, case):
    monkeypatch.setattr(settings, "enabled", False)
    same_as_cpu(case, "float32", 1e-4, True)


def convolve(n=1, size=6, dtype=None):
    x, w = tt.ones(n, 2, size, size, dtype=dtype, device="cuda"), tt.ones(2, 2, 3, 3, dtype=dtype, device="cuda")
    return F.conv2d(x, w)


def test_plans_are_chosen_once(fake):
    for _ in range(3):
        convolve()
    assert fake.fake_heuristics == 1 and executed(fake) == [3, 0, 0]
    convolve(2)
    assert fake.fake_heuristics == 2
    assert len(cudnn._handles[0].plans) == 2


def test_plans_do_not_pile_up(fake, monkeypatch):
    monkeypatch.setattr(cudnn, "_PLANS", 3)
    monkeypatch.setattr(cudnn, "_graphs", [])
    monkeypatch.setattr(cudnn, "_retired", [])
    for n in range(1, 9):
        convolve(n)
        assert len(cudnn._handles[0].plans) <= 3 and len(cudnn._retired) <= 3
    there = len(cudnn._handles[0].plans) + len(cudnn._retired)
    cudnn.expect_graphs()
    for n in range(1, 9):
        convolve(n)
    assert len(cudnn._retired) + len(cudnn._handles[0].plans) == there + 8


def test_results_are_the_same_in_every_run_unless_allowed_otherwise(fake, monkeypatch):
    fake.fake_notes[0] = NONDETERMINISTIC
    convolve()
    assert executed(fake) == [0, 1, 0]
    monkeypatch.setattr(settings, "deterministic", False)
    convolve()
    assert executed(fake) == [1, 1, 0]
    tt.use_deterministic_algorithms(True)
    try:
        convolve()
    finally:
        tt.use_deterministic_algorithms(False)
    assert executed(fake) == [1, 2, 0]


@pytest.fixture
def again(fake, emulated, monkeypatch):
    """The problems of which Python is told: C asks the library for others itself."""
    told = []

    def convolve(device, problem, *how):
        told.append(problem.computed)
        return convolution.convolve(device, problem, *how[:-1], 0, keep=True)

    monkeypatch.setattr(emulated, "convolve", convolve)
    lib.tt_cuda_forget_plans()
    with emulated:  # its memory can be read
        yield told
    lib.tt_cuda_forget_plans()


@pytest.mark.parametrize("workspace", [0, 1000])
def test_python_is_told_once(again, fake, workspace):
    fake.fake_workspace = workspace
    x, w = tt.randn(2, 3, 5, 6), tt.randn(4, 3, 3, 3)
    wanted = F.conv2d(x, w, padding=1)
    x, w = x.to("cuda"), w.to("cuda")
    after = []
    for _ in range(3):
        assert tt.allclose(F.conv2d(x, w, padding=1).cpu(), wanted, 1e-4, 1e-5)
        after.append(tt.cuda.memory_allocated())
    assert len(again) == 1 and executed(fake) == [3, 0, 0]
    assert after[2] == after[1] == after[0]


def test_a_plan_that_is_replaced_is_forgotten(again, monkeypatch):
    """As where there was no memory for it; what another thread executes stays for a while."""
    monkeypatch.setattr(cudnn, "_retired", [])
    for _ in range(2):
        convolve()
    ((key, plan),) = cudnn._handles[0].plans.items()
    cudnn.keep_plan(cudnn._handles[0], key, None)
    assert len(again) == 1 and cudnn._retired == [plan]
    cudnn.keep_plan(cudnn._handles[0], key, plan)
    for _ in range(2):
        convolve()
    assert len(again) == 2


def test_a_setting_that_another_thread_changes_meanwhile(again, fake, monkeypatch):
    """What was chosen before is not kept."""
    fake.fake_notes[0] = NONDETERMINISTIC
    execute = cudnn.Plan.execute

    def changed(plan, *how):
        execute(plan, *how)
        settings.deterministic = True

    monkeypatch.setattr(settings, "deterministic", False)
    monkeypatch.setattr(cudnn.Plan, "execute", changed)
    convolve()
    assert executed(fake) == [1, 0, 0]
    convolve()
    assert executed(fake) == [1, 1, 0] and len(again) == 2


def test_settings_make_python_choose_anew(again, fake, monkeypatch):
    fake.fake_notes[0] = NONDETERMINISTIC
    for deterministic, asked, runs in (
        (True, False, [0, 2, 0]),
        (False, False, [2, 2, 0]),
        (False, True, [2, 4, 0]),
        (True, False, [2, 6, 0]),
    ):
        monkeypatch.setattr(settings, "deterministic", deterministic)
        tt.use_deterministic_algorithms(asked)
        try:
            convolve()
            convolve()
        finally:
            tt.use_deterministic_algorithms(False)
        assert executed(fake) == runs
    told = len(again)
    monkeypatch.setattr(settings, "enabled", False)
    convolve()  # by our kernel
    assert executed(fake) == [2, 6, 0] and len(again) == told + 1


def test_no_memory_to_work_in(again, fake, emulated):
    """Of a plan that C knows: Python finds another, or our kernel does it."""
    convolve()
    (plan,) = cudnn._handles[0].plans.values()
    plan.told.workspace = emulator.ARENA + 1
    convolve()
    assert len(again) == 2 and executed(fake) == [2, 0, 0]
    assert lib.tt_error_kind() == lib.TT_DECLINED and tt.ones(3).t().shape == (3,)  # nor is a later call refused


def test_ctrl_c_while_there_is_memory_to_find(again, fake, emulated, monkeypatch):
    fake.fake_workspace = 1000
    convolve()
    ctrl_c_in_memory(emulated, monkeypatch, 1000, convolve)
    assert len(again) == 1


def test_tf32_must_be_allowed(fake, monkeypatch):
    fake.fake_notes[0] = fake.fake_notes[1] = TENSOR_CORE
    convolve()
    assert executed(fake) == [0, 0, 1]  # that of the other list
    convolve(dtype=tt.float64)  # its tensor cores are float64's
    assert executed(fake) == [1, 0, 1]
    monkeypatch.setattr(settings, "allow_tf32", True)
    convolve()
    assert executed(fake) == [2, 0, 1]


def test_engines_that_make_no_plan(fake):
    fake.fake_refused = 1
    convolve()
    assert executed(fake) == [0, 1, 0]
    fake.fake_refused = 7
    assert convolve(2).sum().item() == 2 * 2 * 16 * 18  # by our kernel
    fake.fake_engines = 0
    assert convolve(3).sum().item() == 3 * 2 * 16 * 18
    assert executed(fake) == [0, 1, 0]


def test_workspace(fake):
    fake.fake_workspace = 1000
    assert convolve().sum().item() == 2 * 16 * 18
    fake.fake_workspace = emulator.ARENA + 1  # more than there is: by our kernel
    assert convolve(2).sum().item() == 2 * 2 * 16 * 18
    assert executed(fake) == [1, 0, 0] and lib.tt_error_kind() == lib.TT_DECLINED


def test_descriptors_are_freed(fake):
    convolve()
    before = fake.fake_alive
    for _ in range(5):
        convolve()
    assert fake.fake_alive == before


def test_an_input_that_would_have_to_be_cut(fake):
    """The places end before the padding at the beginning does: no plan, but a result."""
    x, w = tt.ones(1, 1, 4, 1, device="cuda"), tt.ones(1, 1, 1, 1, device="cuda")
    grad = F.conv_transpose2d(tt.ones(1, 1, 2, 1, device="cuda"), w, stride=(2, 1), output_padding=(1, 0))
    assert grad.flatten().tolist() == [1, 0, 1, 0]
    assert F.conv2d(x, w, stride=(3, 1)).flatten().tolist() == [1, 1]


def test_what_the_library_says(fake):
    with pytest.raises(RuntimeError, match=r"cuDNN error: CUDNN_STATUS_BAD_PARAM .*Finalize`: an attribute is missing"):
        cudnn.Descriptor(cudnn.TENSOR)


def test_a_missing_library_is_named(emulated, monkeypatch):
    library = binding.Library("cudnn_of_nobody", cudnn.DECLARATIONS, "", (9,), "nvidia-cudnn-cu13")
    monkeypatch.setattr(cudnn, "_dnn", library)
    monkeypatch.setattr(cudnn, "_handles", {})
    monkeypatch.setattr(emulated, "convolve", convolution.convolve)
    with pytest.raises(OSError, match="pip install 'nvidia-cudnn-cu13'"):
        convolve()
    assert settings.version() is None and not settings.is_available()
    monkeypatch.setattr(settings, "enabled", False)
    assert convolve().sum().item() == 2 * 16 * 18


def test_settings_have_types():
    before = settings.set_flags()
    with pytest.raises(TypeError, match="backends.cudnn.benchmark must be a bool, not int"):
        settings.benchmark = 1
    with settings.flags(enabled=True, benchmark=True, allow_tf32=False):
        assert settings.benchmark and not settings.deterministic
    with settings.flags(fp32_precision="ieee"):
        assert not settings.allow_tf32 and not settings.enabled
    with pytest.raises(RuntimeError, match="fp32_precision must be one of none, ieee, tf32"):
        settings.set_flags(_fp32_precision="half")
    assert settings.set_flags() == before == (True, False, 10, True, False)


def test_benchmark_takes_the_fastest(gpu, monkeypatch):
    if settings.version() is None:
        pytest.skip("needs a GPU, and cuDNN")
    monkeypatch.setattr(settings, "benchmark", True)
    x, w = tt.randn(4, 16, 28, 28, device="cuda"), tt.randn(16, 16, 3, 3, device="cuda")
    want = F.conv2d(x.cpu(), w.cpu())
    assert (F.conv2d(x, w).cpu() - want).abs().max() < 1e-3


def test_in_a_graph(gpu):
    x, w = tt.randn(2, 8, 6, 6).cuda(), tt.randn(8, 8, 3, 3).cuda().requires_grad_()
    want = F.conv2d(x, w)
    graph = tt.cuda.CUDAGraph()
    with tt.cuda.graph(graph):
        y = F.conv2d(x, w)
        (of_w,) = tt.autograd.grad(y, w, y.detach())
    x.mul_(2)
    graph.replay()
    assert (y - 2 * want).abs().max() < 1e-4
    (again,) = tt.autograd.grad(F.conv2d(x, w), w, 2 * want)
    assert (of_w - again).abs().max() < 1e-2


def test_the_same_bits_in_every_run(gpu):
    x, w = tt.randn(4, 16, 20, 20).cuda().requires_grad_(), tt.randn(16, 16, 3, 3).cuda().requires_grad_()
    y = F.conv2d(x, w)
    g = tt.randn(*y.shape).cuda()
    first = y.detach(), *tt.autograd.grad(y, (x, w), g)
    for _ in range(10):
        y = F.conv2d(x, w)
        for a, b in zip(first, (y.detach(), *tt.autograd.grad(y, (x, w), g)), strict=True):
            assert bool((a == b).all())


def test_on_other_streams(gpu):
    x, w = tt.randn(4, 16, 20, 20).cuda(), tt.randn(16, 16, 3, 3).cuda()
    want, made = F.conv2d(x, w), []
    for _ in range(3):
        stream = tt.cuda.Stream()
        stream.wait_stream(tt.cuda.current_stream())
        with tt.cuda.stream(stream):
            made.append(F.conv2d(x, w))
        tt.cuda.current_stream().wait_stream(stream)
    assert all(bool((y == want).all()) for y in made)


def test_convolutions_of_two_devices_are_refused(gpu):
    x, w = tt.ones(1, 2, 5, device="cuda"), tt.ones(3, 2, 2, device="cuda")
    with pytest.raises(RuntimeError, match="convolution: .*on the same device"):
        tt.conv1d(x, w.cpu())
