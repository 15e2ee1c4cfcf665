"""Throughput with all cores: each side in a process of its own, the others frozen meanwhile."""

import subprocess
import sys

from .suite import Suite
from .timing import apart

SUITE = Suite("throughput on the CPU with all cores, and the time of the import", measure=apart, rounds=12)

MILLION = 1 << 20


def _normal(np, *shape):
    return np.random.default_rng(0).standard_normal(shape, dtype=np.float32)


def _numpy(operation, *shape):
    """The NumPy side of a row on one array of normal numbers: ``operation(np, x)``."""

    def make(np):
        x = _normal(np, *shape)
        return lambda: operation(np, x)

    return make


@SUITE.row("A + B, 16M float32, into new memory", target=0.3, numpy=_numpy(lambda np, a: a + a, 16 * MILLION))
def add(torch):
    """What this measures is the allocator: of PyTorch and NumPy every call gets pages from the system, which clears
    them at the first touch (16,385 page faults); tinytorch keeps the memory of the result before."""
    a, b = torch.randn(16 * MILLION), torch.randn(16 * MILLION)
    return lambda: a + b


def _add_into(np):
    a, b = _normal(np, 16 * MILLION), _normal(np, 16 * MILLION)
    out = np.empty_like(a)
    return lambda: np.add(a, b, out=out)


@SUITE.row("A + B, 16M float32, out=", numpy=_add_into)
def add_into(torch):
    """The kernel: no side allocates."""
    a, b, out = torch.randn(16 * MILLION), torch.randn(16 * MILLION), torch.empty(16 * MILLION)
    return lambda: torch.add(a, b, out=out)


@SUITE.row("tanh, 1M float32", target=0.6, numpy=_numpy(lambda np, x: np.tanh(x), MILLION))
def tanh(torch):
    x = torch.randn(MILLION)
    return lambda: torch.tanh(x)


@SUITE.row("exp, 1M", numpy=_numpy(lambda np, x: np.exp(x), MILLION))
def exp(torch):
    x = torch.randn(MILLION)
    return lambda: torch.exp(x)


@SUITE.row("sin, 1M", numpy=_numpy(lambda np, x: np.sin(x), MILLION))
def sin(torch):
    x = torch.randn(MILLION)
    return lambda: torch.sin(x)


@SUITE.row("erf, 1M")
def erf(torch):
    x = torch.randn(MILLION)
    return lambda: torch.erf(x)


@SUITE.row("sigmoid, 1M")
def sigmoid(torch):
    x = torch.randn(MILLION)
    return lambda: torch.sigmoid(x)


def _log_numpy(np):
    x = np.random.default_rng(0).random(MILLION, dtype=np.float32) + 0.5
    return lambda: np.log(x)


@SUITE.row("log, 1M", numpy=_log_numpy)
def log(torch):
    x = torch.rand(MILLION) + 0.5
    return lambda: torch.log(x)


@SUITE.row("sgemm 1024", target=1.8, flops=2 * 1024**3, numpy=_numpy(lambda np, a: a @ a, 1024, 1024))
def sgemm(torch):
    a, b = torch.randn(1024, 1024), torch.randn(1024, 1024)
    return lambda: a @ b


@SUITE.row("product 1024, bfloat16", flops=2 * 1024**3)
def product_of_halves(torch):
    a, b = torch.randn(1024, 1024).to(torch.bfloat16), torch.randn(1024, 1024).to(torch.bfloat16)
    return lambda: a @ b


@SUITE.row("sum, 16M", numpy=_numpy(lambda np, x: x.sum(), 16 * MILLION))
def sum_all(torch):
    x = torch.randn(16 * MILLION)
    return lambda: x.sum()


@SUITE.row("softmax, 1024 x 1024")
def softmax(torch):
    x = torch.randn(1024, 1024)
    return lambda: torch.softmax(x, dim=-1)


@SUITE.row("layer_norm, 1024 x 1024")
def layer_norm(torch):
    x, weight, bias = torch.randn(1024, 1024), torch.randn(1024), torch.randn(1024)
    return lambda: torch.nn.functional.layer_norm(x, (1024,), weight, bias)


@SUITE.row("max_pool2d 3x3, stride 2, 32 x 64 x 56 x 56, forward + backward", target=1.0)
def max_pool2d(torch):
    x = torch.randn(32, 64, 56, 56, requires_grad=True)
    g = torch.randn(32, 64, 28, 28)

    def step():
        x.grad = None
        torch.nn.functional.max_pool2d(x, 3, 2, 1).backward(g)

    return step


@SUITE.row("batch_norm in training, 32 x 64 x 56 x 56, forward + backward", target=1.0)
def batch_norm(torch):
    x, g = torch.randn(32, 64, 56, 56, requires_grad=True), torch.randn(32, 64, 56, 56)
    mean, variance = torch.zeros(64), torch.ones(64)
    weight, bias = torch.ones(64, requires_grad=True), torch.zeros(64, requires_grad=True)

    def step():
        x.grad = weight.grad = bias.grad = None
        torch.nn.functional.batch_norm(x, mean, variance, weight, bias, True).backward(g)

    return step


@SUITE.row("interpolate bilinear, 16 x 64 x 56 x 56 to twice the size, forward + backward", target=1.0)
def interpolate(torch):
    x, g = torch.randn(16, 64, 56, 56, requires_grad=True), torch.randn(16, 64, 112, 112)

    def step():
        x.grad = None
        torch.nn.functional.interpolate(x, scale_factor=2, mode="bilinear").backward(g)

    return step


@SUITE.row("cross_entropy 4096 x 1000, forward + backward")
def cross_entropy(torch):
    logits, target = torch.randn(4096, 1000, requires_grad=True), torch.randint(1000, (4096,))

    def step():
        logits.grad = None
        torch.nn.functional.cross_entropy(logits, target).backward()

    return step


@SUITE.row("x.t().contiguous(), 2048 x 2048", target=1.0, numpy=_numpy(lambda np, x: x.T.copy(), 2048, 2048))
def transpose_copy(torch):
    x = torch.randn(2048, 2048)
    return lambda: x.t().contiguous()


def _argsort(np, x):
    """What torch.sort returns: the values and where they came from."""
    order = np.argsort(x)
    return x[order], order


@SUITE.row("sort, 1M", numpy=_numpy(_argsort, MILLION))
def sort(torch):
    x = torch.randn(MILLION)
    return lambda: torch.sort(x)


@SUITE.row("rfft, 1M", target=1.0, numpy=_numpy(lambda np, x: np.fft.rfft(x), MILLION))
def rfft(torch):
    x = torch.randn(MILLION)
    return lambda: torch.fft.rfft(x)


@SUITE.row("rfft, 4096 x 256", target=1.0, numpy=_numpy(lambda np, x: np.fft.rfft(x), 4096, 256))
def rfft_rows(torch):
    x = torch.randn(4096, 256)
    return lambda: torch.fft.rfft(x)


def _convolution(torch, *sizes, stride=1, groups=1):
    """Input and weight, for sizes: batch, channels of both sides, taps and places along a side."""
    batch, channels, out, taps, side = sizes
    x = torch.randn(batch, channels, side, side, requires_grad=True)
    weight = torch.randn(out, channels // groups, taps, taps, requires_grad=True)
    return x, weight, {"stride": stride, "padding": taps // 2, "groups": groups}


def _convolved(torch, *sizes, **how):
    x, weight, how = _convolution(torch, *sizes, **how)
    x, weight = x.detach(), weight.detach()
    return lambda: torch.nn.functional.conv2d(x, weight, **how)


def _convolved_back(torch, which, *sizes, **how):
    """The gradient of input (0) or weight (1)."""
    x, weight, how = _convolution(torch, *sizes, **how)
    y = torch.nn.functional.conv2d(x, weight, **how)
    g = torch.randn(*y.shape)
    return lambda: torch.autograd.grad(y, (x, weight)[which], g, retain_graph=True)


CONV = 32, 64, 64, 3, 56


@SUITE.row("conv2d 3 x 3, 64 to 64, 56 x 56, batch 32", target=0.9)
def conv2d(torch):
    return _convolved(torch, *CONV)


@SUITE.row("conv2d, gradient of input", target=0.9)
def conv2d_input(torch):
    return _convolved_back(torch, 0, *CONV)


@SUITE.row("conv2d, gradient of weight", target=0.9)
def conv2d_weight(torch):
    return _convolved_back(torch, 1, *CONV)


def _convolved_last(torch, dtype):
    x, weight, how = _convolution(torch, *CONV)
    x, weight = (t.detach().to(dtype, memory_format=torch.channels_last) for t in (x, weight))
    return lambda: torch.nn.functional.conv2d(x, weight, **how)


@SUITE.row("conv2d, channels last")
def conv2d_channels_last(torch):
    return _convolved_last(torch, torch.float32)


@SUITE.row("conv2d, channels last, bfloat16")
def conv2d_of_halves(torch):
    return _convolved_last(torch, torch.bfloat16)


@SUITE.row("conv2d 1 x 1, 256 to 64, 56 x 56, batch 32", target=1.0)
def conv2d_of_one_tap(torch):
    return _convolved(torch, 32, 256, 64, 1, 56)


@SUITE.row("conv2d 3 x 3, depthwise, 144 channels, 56 x 56, batch 32", target=0.7)
def conv2d_depthwise(torch):
    return _convolved(torch, 32, 144, 144, 3, 56, groups=144)


# Channels of both sides, taps, places along a side, stride.
RESNET50 = (
    *((3, 64, 7, 224, 2), (64, 64, 1, 56, 1), (64, 64, 3, 56, 1), (64, 256, 1, 56, 1), (256, 64, 1, 56, 1)),
    *((256, 128, 1, 56, 1), (128, 128, 3, 56, 2), (128, 512, 1, 28, 1), (256, 512, 1, 56, 2), (512, 128, 1, 28, 1)),
    *((128, 128, 3, 28, 1), (512, 256, 1, 28, 1), (256, 256, 3, 28, 2), (256, 1024, 1, 14, 1), (512, 1024, 1, 28, 2)),
    *((1024, 256, 1, 14, 1), (256, 256, 3, 14, 1), (1024, 512, 1, 14, 1), (512, 512, 3, 14, 2), (512, 2048, 1, 7, 1)),
    *((1024, 2048, 1, 14, 2), (2048, 512, 1, 7, 1), (512, 512, 3, 7, 1)),
)


@SUITE.row("the 23 convolutions of ResNet-50, one after the other, batch 8", target=1.0)
def resnet50(torch):
    """Each of another shape; a network has some of them several times."""
    calls = [_convolved(torch, 8, a, b, taps, side, stride=stride) for a, b, taps, side, stride in RESNET50]

    def step():
        for call in calls:
            call()

    return step


def _decomposed(name, operation):
    """Rows of ``operation(linalg, x, A)`` with x random and A positive definite. NumPy's linalg has these names."""

    def definite(m, x):
        return x @ x.swapaxes(-1, -2) / x.shape[-1] + m.eye(x.shape[-1], dtype=x.dtype)

    def add(shape, said):
        def numpy(np):
            x = _normal(np, *shape)
            a = definite(np, x)
            return lambda: operation(np.linalg, x, a)

        @SUITE.row(f"{name}, {said} float32", target=1.0, numpy=numpy)
        def make(torch):
            x = torch.randn(*shape)
            a = definite(torch, x)
            return lambda: operation(torch.linalg, x, a)

    add((512, 512), "512 x 512")
    add((4096, 16, 16), "4096 x (16, 16)")


_decomposed("svd", lambda linalg, x, a: linalg.svd(x))
_decomposed("eigh", lambda linalg, x, a: linalg.eigh(a))
_decomposed("solve", lambda linalg, x, a: linalg.solve(a, x))
_decomposed("cholesky", lambda linalg, x, a: linalg.cholesky(a))


@SUITE.row("Adam step, 10M parameters in 50 tensors", optimizes=True)
def adam(torch, **options):
    parameters = [torch.randn(200_000, requires_grad=True) for _ in range(50)]
    for parameter in parameters:
        parameter.grad = torch.randn(200_000)
    return torch.optim.Adam(parameters, lr=1e-3, **options).step


@SUITE.row("MLP 784-1024-1024-10, batch 256, Adam step", optimizes=True)
def mlp(torch, **options):
    nn = torch.nn
    hidden = [nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU()]
    model = nn.Sequential(*hidden, nn.Linear(1024, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, **options)
    x, target = torch.randn(256, 784), torch.randint(10, (256,))

    def step():
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), target).backward()
        optimizer.step()

    return step


def _attention(torch, *shape):
    """A forward and a backward pass of causal attention."""
    operands = [torch.randn(*shape, requires_grad=True) for _ in range(3)]
    g = torch.randn(*shape)

    def step():
        out = torch.nn.functional.scaled_dot_product_attention(*operands, is_causal=True)
        return torch.autograd.grad(out, operands, g)

    return step


@SUITE.row("attention, causal 8 x 12 x 1024 x 64, forward", target=0.8)
def attention(torch):
    operands = [torch.randn(8, 12, 1024, 64) for _ in range(3)]
    return lambda: torch.nn.functional.scaled_dot_product_attention(*operands, is_causal=True)


@SUITE.row("attention, causal 8 x 12 x 1024 x 64, forward + backward", target=0.8)
def attention_backward(torch):
    return _attention(torch, 8, 12, 1024, 64)


def _memory(name):
    """VmRSS or VmHWM of this process, its memory now or at most, in megabytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) / 1024


@SUITE.row(
    "attention, causal 12 x 8192 x 64, forward + backward: memory at most, beyond the operands",
    target=1.0,
    self_timed=True,
    megabytes=True,
    first=True,
    rounds=3,
)
def attention_memory(torch):
    _attention(torch, 1, 12, 256, 64)()  # what libraries allocate once
    step = _attention(torch, 1, 12, 8192, 64)

    def measure():
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # VmHWM starts again
        before = _memory("VmRSS")
        kept = step()
        del kept
        return _memory("VmHWM") - before

    return measure


def _recurrent(torch, layer):
    """A forward and a backward pass over 64 steps of 128 sequences."""
    model, x = layer(512, 512, 2), torch.randn(64, 128, 512, requires_grad=True)
    g, parameters = torch.randn(64, 128, 512), list(model.parameters())
    return lambda: torch.autograd.grad(model(x)[0], [x, *parameters], g)


@SUITE.row("LSTM 2 x 512, 64 steps, batch 128, forward + backward", target=0.9)
def lstm(torch):
    return _recurrent(torch, torch.nn.LSTM)


@SUITE.row("GRU 2 x 512, 64 steps, batch 128, forward + backward", target=1.0)
def gru(torch):
    return _recurrent(torch, torch.nn.GRU)


@SUITE.row("import, beyond NumPy's", target=0.15, absolute=True, self_timed=True)
def import_time(torch):
    code = f"""
import time, numpy
start = time.perf_counter()
import {torch.__name__}
print(time.perf_counter() - start)
"""
    return lambda: float(subprocess.check_output([sys.executable, "-c", code]))
