"""Attention in tiles on a device: against the composition on the CPU, for all kinds of masks, widths and layouts. On a
GPU half types are also computed by cuDNN."""

import contextlib
import itertools
import math

import pytest
import tinytorch as tt
from gpu import emulator
from tinytorch.autograd import grad, gradcheck, gradgradcheck
from tinytorch.backends.cpu import ffi
from tinytorch.backends.cuda import attention
from tinytorch.nn.attention import SDPBackend, sdpa_kernel

pytestmark = pytest.mark.usefixtures("gpu")

attend = tt.nn.functional.scaled_dot_product_attention
TOLERANCE = {"float64": 1e-12, "float32": 1e-5, "float16": 4e-3, "bfloat16": 3e-2}

# (N, H), heads of keys, L, S, E, Ev: several blocks of queries and keys, the last of them not whole; odd widths
SHAPES = [(1, 2, 1, 37, 70, 20, 12), (1, 1, 1, 150, 90, 64, 64), (2, 1, 1, 1, 33, 3, 1)]
WIDE = [(1, 1, 1, 20, 70, 100, 130), (1, 1, 1, 9, 40, 256, 256)]
MASKS = {
    "none": lambda rows, s: {},
    "causal": lambda rows, s: {"is_causal": True},
    "bool": lambda rows, s: {"attn_mask": (tt.rand(rows, s) > 0.5) & (tt.arange(rows) % 3 > 0)[:, None]},
    "added": lambda rows, s: {"attn_mask": tt.randn(rows, s).masked_fill(tt.arange(s) > s // 2, -math.inf)},
    "added to columns": lambda rows, s: {"attn_mask": tt.randn(1, s)},
}


def tensors(shape, dtype="float32"):
    """Query, key, value, and the result's gradient, on the CPU."""
    n, h, k, rows, s, e, v = shape
    tt.manual_seed(0)
    sizes = (n, h, rows, e), (n, k, s, e), (n, k, s, v), (n, h, rows, v)
    return [tt.randn(*size, dtype=getattr(tt, dtype)) for size in sizes]


def results(operands, device, keywords):
    """The result and the gradients, on the CPU."""
    q, k, v, g = (x.to(device) for x in operands)
    for x in (q, k, v):
        x.requires_grad_()
    keywords = {name: x.to(device) if isinstance(x, tt.Tensor) else x for name, x in keywords.items()}
    out = attend(q, k, v, enable_gqa=True, **keywords)
    return [x.cpu() for x in (out, *grad(out, (q, k, v), g))]


def compare(shape, dtype, keywords, backend):
    operands = tensors(shape, dtype)
    with sdpa_kernel(SDPBackend.MATH):
        wanted = results(operands, "cpu", keywords)
    with sdpa_kernel(backend):
        found = results(operands, "cuda", keywords)
    for ours, theirs in zip(found, wanted, strict=True):
        bound = TOLERANCE[dtype] * max(1.0, float(theirs.double().abs().max()))
        assert float((ours.double() - theirs.double()).abs().max()) <= bound


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])  # one without tensor cores, and one with
def test_tiles_compute_the_composition(dtype, mask):
    tt.manual_seed(1)
    compare(SHAPES[0], dtype, MASKS[mask](*SHAPES[0][3:5]), SDPBackend.EFFICIENT_ATTENTION)


@pytest.mark.parametrize(
    "dtype, shape",
    [*(("float32", shape) for shape in SHAPES), *itertools.product(("float16", "float64"), WIDE)],
    ids=str,
)
def test_of_shapes(shape, dtype):
    compare(shape, dtype, {"is_causal": True}, SDPBackend.EFFICIENT_ATTENTION)


# Derivatives by Hopper's matrix unit: more tiles than shared memory has room for, the last not whole; heads that share
# keys, and narrow ones; keys that no query sees.
TILES = {
    "bfloat16": [(1, 2, 1, 330, 390, 64, 64), (1, 1, 1, 1, 1, 64, 64)],
    "float16": [(2, 2, 2, 70, 200, 40, 64), (1, 4, 2, 300, 64, 96, 128)],
}


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype, shape", [(dtype, shape) for dtype in TILES for shape in TILES[dtype]], ids=str)
def test_derivatives_by_warp_groups(shape, dtype, causal):
    compare(shape, dtype, {"is_causal": causal}, SDPBackend.EFFICIENT_ATTENTION)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_what_is_dropped_is_what_the_cpu_drops(dtype):
    operands, found = tensors((1, 2, 1, 37, 70, 8, 8), dtype), []
    for device in ("cpu", "cuda"):
        tt.manual_seed(3)
        found.append(results(operands, device, {"dropout_p": 0.3}))
    for ours, theirs in zip(*found, strict=True):
        assert tt.allclose(ours, theirs, atol=1e-5)
    assert not attend(*(x.cuda() for x in operands[:3]), dropout_p=1.0, enable_gqa=True).any()


def test_bits_depend_on_no_order(emulated):
    operands, found = tensors(SHAPES[0]), []
    for emulated.backwards in (False, True):
        found.append(results(operands, "cuda", {"is_causal": True}))
    emulated.backwards = False
    assert all(tt.equal(a, b) for a, b in zip(*found, strict=True))


def test_layouts_are_taken_as_they_lie():
    """Heads split from the columns of one matrix, at places where no pack of four can be read, and joined again."""
    x = tt.randn(2, 20, 3 * 4 * 8 + 1, device="cuda")[..., 1:].unflatten(-1, (3, 4, 8)).requires_grad_()
    q, k, v = (x.select(2, i).transpose(1, 2) for i in range(3))
    out = attend(q, k, v, is_causal=True)
    assert out.transpose(1, 2).is_contiguous()
    assert tt.equal(out, attend(*(t.detach().contiguous() for t in (q, k, v)), is_causal=True))
    turned = k.detach().transpose(2, 3).contiguous().transpose(2, 3)  # whose columns are no neighbours
    assert tt.equal(out, attend(q, turned, v, is_causal=True))


def only_planned():
    """Where the device is emulated, kernels are not run inside."""
    return emulator.machine().planning() if tt.cuda.get_device_name() == "Emulator" else contextlib.nullcontext()


def test_never_all_scores():
    q = tt.randn(1, 1, 1024, 16, device="cuda").requires_grad_()
    tt.cuda.reset_peak_memory_stats()
    before = tt.cuda.memory_allocated()
    with only_planned():
        grad(attend(q, q, q, is_causal=True).sum(), q)
    assert tt.cuda.max_memory_allocated() - before < 1 << 20


@pytest.mark.parametrize("p", [0.0, 0.4])
def test_second_derivatives(p):
    def call(q, k, v):
        tt.manual_seed(5)
        return attend(q, k, v, mask, p, enable_gqa=True)

    mask = tt.ones(2, 3, dtype=tt.bool, device="cuda").tril()
    sizes = (1, 2, 2, 2), (1, 1, 3, 2), (1, 1, 3, 1)
    tt.manual_seed(0)
    operands = [tt.randn(*size, dtype=tt.float64, device="cuda").requires_grad_() for size in sizes]
    assert gradcheck(call, operands)
    assert gradgradcheck(call, operands)


def test_dropout_of_a_graph_goes_on():
    q = tt.randn(1, 1, 5, 4, device="cuda")
    attend(q, q, q, dropout_p=0.5)
    graph = tt.cuda.CUDAGraph()
    tt.cuda.manual_seed(1)
    with tt.cuda.graph(graph):
        out = attend(q, q, q, dropout_p=0.5)
    found = []
    for _ in range(2):
        graph.replay()
        found.append(out.clone())
    tt.cuda.manual_seed(1)
    wanted = [attend(q, q, q, dropout_p=0.5) for _ in range(2)]
    assert all(tt.equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert not tt.equal(*found)


def test_chosen_backends():
    q = tt.randn(1, 2, 3, 8, device="cuda")
    wide = tt.randn(1, 1, 2, 257, device="cuda")
    with sdpa_kernel(SDPBackend.EFFICIENT_ATTENTION):
        assert attend(q, q, q.requires_grad_()).grad_fn.name().startswith("ScaledDotProductFlashAttention")
        with pytest.raises(RuntimeError, match="No available kernel"):
            attend(wide, wide, wide)
    assert attend(wide, wide, wide).shape == wide.shape
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        with pytest.raises(RuntimeError, match="No available kernel"):
            attend(q, q, q)
        one = q.half()[:, :, :1]  # which cuDNN is not asked for
        with pytest.raises(RuntimeError, match="No available kernel: cuDNN has none"):
            attend(one, one, one)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape", [(2, 4, 2, 256, 128, 64, 64), (1, 2, 2, 100, 70, 40, 72)], ids=str)
def test_by_cudnn(shape, dtype, causal, gpu):
    if isinstance(gpu, emulator.Emulator):
        pytest.skip("needs a GPU")
    for deterministic in (True, False):
        with tt.backends.cudnn.flags(enabled=True, deterministic=deterministic):
            compare(shape, dtype, {"is_causal": causal}, SDPBackend.CUDNN_ATTENTION)


@pytest.mark.parametrize("deterministic, asked", [(True, False), (False, True), (False, False)])
def test_derivatives_by_cudnn_may_differ_from_run_to_run(deterministic, asked, monkeypatch):
    """The library is asked for them only where nobody wants them to be the same in every run."""
    wanted = []
    monkeypatch.setattr(attention, "_is_installed", lambda: True)
    monkeypatch.setattr(attention.cudnn, "version", lambda: 92000)
    monkeypatch.setattr(attention.cudnn, "handle_of", lambda device: None)
    monkeypatch.setattr(attention.cudnn, "kept_plan", lambda handle, key, make: wanted.append(key))  # it has none
    problem = ffi.new("tt_attend *", {"rows": 128, "keys": 128, "width": 64, "out_width": 64, "align": 4})
    for k in range(8):
        problem.steps[k] = [8, 8, 8]
    tensors = ffi.new("void *[]", 9)
    tt.use_deterministic_algorithms(asked)
    try:
        with tt.backends.cudnn.flags(enabled=True, deterministic=deterministic):
            for backward in (0, 1):
                problem.backward = backward
                assert attention.attend(0, problem, tensors, 0) == 1
    finally:
        tt.use_deterministic_algorithms(False)
    assert len(wanted) == (1 if deterministic or asked else 2)


def test_half_types_in_a_graph():
    q = tt.randn(1, 2, 128, 64, device="cuda").half()
    wanted = attend(q, q, q, is_causal=True)
    graph, twice = tt.cuda.CUDAGraph(), q * 2
    with tt.cuda.graph(graph):
        out = attend(twice, twice, twice, is_causal=True)
    twice.copy_(q)
    graph.replay()
    assert tt.equal(out, wanted)
