"""Autocast: dtypes, gradients and copies of parameters, as with PyTorch."""

import subprocess
import sys
import threading
import warnings

import numpy as np
import pytest
import tinytorch as tt
from tinytorch import nn
from tinytorch.amp.policies import POLICIES
from tinytorch.nn import functional as F

torch = pytest.importorskip("torch")

PLAIN = False, 1, 0.0, False, False, False  # a recurrent layer without biases
# Calls of operators in and beside the lists: of float32 and bfloat16 operands.
CALLS = {
    "matmul": lambda m, x, w, h: x @ w,
    "mm, method": lambda m, x, w, h: x.mm(w),
    "bmm": lambda m, x, w, h: m.bmm(x[None], w[None]),
    "addmm": lambda m, x, w, h: m.addmm(h, x, w),
    "baddbmm": lambda m, x, w, h: m.baddbmm(h[None], x[None], w[None]),
    "linear": lambda m, x, w, h: m.nn.functional.linear(x, w),
    "einsum": lambda m, x, w, h: m.einsum("ij,jk->ik", x, w),
    "conv1d": lambda m, x, w, h: m.nn.functional.conv1d(x[None], w[:, :, None]),
    "attention": lambda m, x, w, h: m.nn.functional.scaled_dot_product_attention(x[None], w[None], w[None]),
    "exp": lambda m, x, w, h: h.exp(),
    "softmax": lambda m, x, w, h: h.softmax(1),
    "add": lambda m, x, w, h: x + h,
    "relu": lambda m, x, w, h: h.relu(),
    "gelu": lambda m, x, w, h: m.nn.functional.gelu(h),
    "sum": lambda m, x, w, h: h.sum(),
    "prod": lambda m, x, w, h: h.prod(),
    "mse_loss": lambda m, x, w, h: m.nn.functional.mse_loss(h, x),
    "cross_entropy": lambda m, x, w, h: m.nn.functional.cross_entropy(h, h.argmax(1)),
    "bce with logits": lambda m, x, w, h: m.nn.functional.binary_cross_entropy_with_logits(h, x.sigmoid()),
    "layer_norm": lambda m, x, w, h: m.nn.functional.layer_norm(h, (4,)),
    "cat": lambda m, x, w, h: m.cat([x, h]),
    "stack of one dtype": lambda m, x, w, h: m.stack([h, h]),
    "float64 stays": lambda m, x, w, h: x.double() @ w.double(),
    "integers stay": lambda m, x, w, h: x.long() @ w.long(),
    "linalg.inv": lambda m, x, w, h: m.linalg.inv(x + 5 * m.eye(4)),
    "quantile": lambda m, x, w, h: m.quantile(h, 0.5),
    "rnn": lambda m, x, w, h: m.rnn_tanh(x[None], x[None], [w, w], *PLAIN)[0],
    "lstm": lambda m, x, w, h: m.lstm(x[None], (x[None], x[None]), [w.repeat(4, 1)] * 2, *PLAIN)[0],
    "gru": lambda m, x, w, h: m.gru(x[None], x[None], [w.repeat(3, 1)] * 2, *PLAIN)[0],
    "rnn cell": lambda m, x, w, h: m.rnn_tanh_cell(x, x, w, w),
    "lstm cell": lambda m, x, w, h: m.lstm_cell(x, (x, x), w.repeat(4, 1), w.repeat(4, 1))[1],
    "gru cell": lambda m, x, w, h: m.gru_cell(x, x, w.repeat(3, 1), w.repeat(3, 1)),
}


def inputs(m):
    rng = np.random.default_rng(0)
    x, w, h = (m.tensor(rng.standard_normal((4, 4)).astype("float32")) for _ in range(3))
    return x, w, h.bfloat16()


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_dtypes_and_values(call):
    results = []
    for m in (tt, torch):
        with m.autocast("cpu", dtype=m.bfloat16):
            results.append(call(m, *inputs(m)))
    mine, theirs = results
    assert mine.dtype.name == str(theirs.dtype).removeprefix("torch.")
    np.testing.assert_allclose(mine.double().numpy(), theirs.double().numpy(), rtol=0.02, atol=0.02)


def test_lists_are_pytorchs_as_far_as_it_shows():
    """No operator changes its dtype under autocast that is in no list."""
    x = tt.rand(4, 4).bfloat16()
    for name in ("sin", "sigmoid", "abs", "neg", "sqrt", "tanh"):
        assert f"{name}" not in POLICIES
        with tt.autocast("cpu"):
            assert getattr(tt, name)(x).dtype is tt.bfloat16


def test_training():
    """Parameters and gradients are float32, products bfloat16; backward runs outside and inside alike."""
    for inside in (False, True):
        tt.manual_seed(0)
        model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
        x, y = tt.randn(5, 8), tt.tensor([0, 1, 2, 0, 1])
        seen = []
        model[1].register_forward_hook(lambda module, args, out, seen=seen: seen.append(out.dtype))
        with tt.autocast("cpu"):
            loss = F.cross_entropy(model(x), y)
            if inside:
                loss.backward()
        if not inside:
            loss.backward()
        exact = F.cross_entropy(model(x), y)
        assert seen == [tt.bfloat16, tt.float32] and loss.dtype is tt.float32
        assert loss.item() == pytest.approx(exact.item(), rel=0.02)
        wanted = tt.autograd.grad(exact, list(model.parameters()))
        for p, g in zip(model.parameters(), wanted):
            assert p.dtype is tt.float32 and p.grad.dtype is tt.float32
            np.testing.assert_allclose(p.grad.numpy(), g.numpy(), atol=0.02)


#: Layers whose parameters stay float32, and the sizes of their input.
LAYERS = {
    "Linear": (lambda nn: nn.Linear(4, 3), (2, 4)),
    "Conv2d": (lambda nn: nn.Conv2d(2, 2, 3), (1, 2, 8, 8)),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(2), (2, 2, 4, 4)),
    "InstanceNorm2d": (lambda nn: nn.InstanceNorm2d(2, affine=True), (2, 2, 4, 4)),
    "LayerNorm": (lambda nn: nn.LayerNorm(4), (2, 4)),
    "RMSNorm": (lambda nn: nn.RMSNorm(4), (2, 4)),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 4), (2, 4)),
    "RNN": (lambda nn: nn.RNN(4, 3), (3, 2, 4)),
    "LSTM": (lambda nn: nn.LSTM(4, 3, 2), (3, 2, 4)),
    "GRU": (lambda nn: nn.GRU(4, 3), (3, 2, 4)),
    "encoder layer": (lambda nn: nn.TransformerEncoderLayer(4, 2, 8, dropout=0.0), (3, 2, 4)),
}


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_behind_one_that_gives_a_half_type(name):
    make, shape = LAYERS[name]
    results = []
    for m in (torch, tt):
        m.manual_seed(0)
        layer = make(m.nn)
        x = m.tensor(np.random.default_rng(0).standard_normal(shape).astype("float32")).bfloat16()
        with m.autocast("cpu"):
            y = layer(x)
        y = y[0] if isinstance(y, tuple) else y
        y.float().square().sum().backward()
        results.append((y.dtype, {n: p.grad.dtype for n, p in layer.named_parameters()}))
    assert str(results[0]).replace("torch.", "tinytorch.") == str(results[1])


def test_a_parameter_is_cast_once():
    w = tt.randn(4, 4, requires_grad=True)
    x = tt.randn(2, 4)

    def casts(cache):
        with tt.autocast("cpu", cache_enabled=cache):
            a, b = F.linear(x, w), F.linear(x, w)
        # The products' parents of the weight: one cast, or two.
        found = set()
        pending = [a.grad_fn, b.grad_fn]
        while pending:
            node = pending.pop()
            for parent, _ in node.next_functions:
                if parent is not None:
                    pending.append(parent)
                    if "ToCopy" in type(parent).__name__ or "ToCopy" in parent.name():
                        found.add(parent)
        return len(found)

    assert (casts(True), casts(False)) == (1, 2)
    with tt.autocast("cpu"):
        before = F.linear(x, w)
        with tt.no_grad():
            w.zero_()
        assert F.linear(x, w).abs().sum() == 0 and before.abs().sum() > 0  # a written parameter is cast anew
        with tt.no_grad():
            F.linear(x, w)
        assert F.linear(x, w).requires_grad


def test_contexts():
    x = tt.randn(2, 2)
    assert not tt.is_autocast_enabled("cpu")
    with tt.autocast("cpu"):
        assert tt.is_autocast_enabled("cpu") and not tt.is_autocast_enabled("cuda")
        with tt.autocast("cpu", enabled=False):
            assert (x @ x).dtype is tt.float32
        with tt.autocast("cpu", dtype=tt.float16):
            assert (x @ x).dtype is tt.float16 and tt.get_autocast_dtype("cpu") is tt.float16
        with tt.no_grad():
            assert (x @ x).dtype is tt.bfloat16
        other = []
        thread = threading.Thread(target=lambda: other.append((x @ x).dtype))
        thread.start()
        thread.join()
        assert other == [tt.float32]
    assert (x @ x).dtype is tt.float32

    @tt.autocast("cpu")
    def decorated():
        return x @ x

    assert decorated().dtype is tt.bfloat16 and (x @ x).dtype is tt.float32
    with pytest.raises(ZeroDivisionError), tt.autocast("cpu"):
        raise ZeroDivisionError
    assert not tt.is_autocast_enabled("cpu")


def test_bad_contexts():
    with pytest.raises(TypeError, match="device_type"):
        tt.autocast(tt.device("cpu"))
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'tpu'"):
        tt.autocast("tpu")
    with pytest.warns(UserWarning, match="not supported"), tt.autocast("cpu", dtype=tt.float64):
        assert not tt.is_autocast_enabled("cpu")
    with pytest.warns(FutureWarning, match="deprecated"):
        tt.cpu.amp.autocast()


def test_fused_mode_casts_alike():
    x, w = tt.randn(64, 32), tt.randn(16, 32, requires_grad=True)

    def step():
        with tt.autocast("cpu"):
            y = F.gelu(F.linear(x, w))
            loss = y.float().square().mean()
        (g,) = tt.autograd.grad(loss, w)
        return loss, g

    eager = step()
    with tt.fuse():
        fused = step()
    fast = tt.fuse(step)
    for result in (fused, fast(), fast(), fast(), fast()):
        for a, b in zip(eager, result):
            np.testing.assert_array_equal(a.detach().numpy(), b.detach().numpy())


def test_functions():
    class Scaled(tt.autograd.Function):
        @staticmethod
        @tt.amp.custom_fwd(device_type="cpu", cast_inputs=tt.float32)
        def forward(ctx, x):
            ctx.seen = x.dtype, (x @ x).dtype
            Scaled.seen = ctx.seen
            return x * 2

        @staticmethod
        @tt.amp.custom_bwd(device_type="cpu")
        def backward(ctx, g):
            Scaled.back = (g @ g).dtype
            return g * 2

    x = tt.randn(2, 2).bfloat16().requires_grad_()
    with tt.autocast("cpu"):
        Scaled.apply(x).sum().backward()
    assert Scaled.seen == (tt.float32, tt.float32) and Scaled.back is tt.float32


def scaler_program(m, scaler, infinite=()):
    """Steps of a parameter, some with infinite gradients."""
    p = m.tensor([1.0, -2.0], requires_grad=True)
    optimizer = m.optim.SGD([p], lr=0.1)
    trace = []
    for step in range(8):
        optimizer.zero_grad()
        loss = (p * p).sum() * (float("inf") if step in infinite else 1.0)
        scaler.scale(loss).backward()
        if step % 2:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        trace.append([*p.tolist(), scaler.get_scale(), scaler._get_growth_tracker()])
    return trace


@pytest.mark.parametrize("infinite", [(), (0,), (2, 5)])
def test_grad_scaler(infinite):
    options = {"init_scale": 128.0, "growth_interval": 3}
    mine = scaler_program(tt, tt.amp.GradScaler("cpu", **options), infinite)
    theirs = scaler_program(torch, torch.amp.GradScaler("cpu", **options), infinite)
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)


def test_grad_scaler_state_and_errors():
    scaler = tt.amp.GradScaler("cpu", init_scale=4.0)
    p = tt.ones(2, requires_grad=True)
    optimizer = tt.optim.SGD([p], lr=0.1)
    with pytest.raises(AssertionError, match="_scale is None"):
        scaler.step(optimizer)
    scaler.scale(p.sum()).backward()
    scaler.unscale_(optimizer)
    assert p.grad.tolist() == [1, 1]
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.unscale_(optimizer)
    scaler.step(optimizer)
    with pytest.raises(RuntimeError, match="already been called"):
        scaler.step(optimizer)
    scaler.update(8.0)
    other = tt.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == 8.0 and scaler.state_dict() == other.state_dict()
    off = tt.amp.GradScaler("cpu", enabled=False)
    assert off.scale(p) is p and off.state_dict() == {}
    half = tt.ones(2).half().requires_grad_()
    half.grad = tt.ones(2).half()
    scaler.scale(half.sum())
    with pytest.raises(ValueError, match="FP16"):
        scaler.unscale_(tt.optim.SGD([half], lr=0.1))
    nested = scaler.scale([p, (p,)])
    assert isinstance(nested[1], tuple) and nested[0].tolist() == [v * 8 for v in p.tolist()]


def test_a_program_without_pays_nothing():
    """Operators keep their code until the first context."""
    code = """
import tinytorch as tt
assert tt.matmul.__code__.co_filename != "<eager, autocast>"
before = tt.matmul.__code__
with tt.autocast("cpu"):
    pass
assert tt.matmul.__code__ is not before
"""
    subprocess.run([sys.executable, "-c", code], check=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tt.autocast("cpu")


SWITCHES = """
m.set_autocast_enabled("cpu", True); say(m.is_autocast_enabled("cpu"), (a @ a).dtype)
m.set_autocast_dtype("cpu", m.float16); say((a @ a).dtype, m.get_autocast_dtype("cpu"))
with m.autocast("cpu", enabled=False): say((a @ a).dtype, m.is_autocast_enabled("cpu"))
with m.autocast("cpu", dtype=m.bfloat16): m.set_autocast_enabled("cpu", False); say((a @ a).dtype)
say((a @ a).dtype)
m.set_autocast_enabled("cpu", False); say((a @ a).dtype, m.is_autocast_enabled("cpu"))
say(m.is_autocast_cpu_enabled(), m.get_autocast_cpu_dtype(), m.get_autocast_gpu_dtype())
m.set_autocast_cpu_dtype(m.bfloat16); m.set_autocast_cpu_enabled(True); say((a @ a).dtype)
m.set_autocast_cpu_enabled(False)
m.set_autocast_gpu_dtype(m.bfloat16); say(m.get_autocast_dtype("cuda")); m.set_autocast_gpu_dtype(m.float16)
say(m.autocast_increment_nesting(), m.autocast_increment_nesting(), m.autocast_decrement_nesting())
say(m.autocast_decrement_nesting())
m.clear_autocast_cache()
"""


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_switches():
    said = []
    for m in (tt, torch):
        words = []
        exec(SWITCHES, {"m": m, "a": m.ones(2, 2), "say": lambda *values, words=words: words.extend(values)})
        said.append([str(word).rpartition(".")[2] for word in words])
    assert said[0] == said[1]
    for m in (tt, torch):
        with pytest.warns(DeprecationWarning):
            m.is_autocast_cpu_enabled()
        with pytest.raises((TypeError, RuntimeError)):
            m.set_autocast_enabled("cpu", 3)
