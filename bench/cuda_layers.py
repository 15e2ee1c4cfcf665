"""Rows of the suite for GPUs: convolutions, recurrent layers, attention, decompositions: libraries' work, and ours
beside them."""

import contextlib
import functools
import itertools

import numpy as np

from .cuda import MILLION
from .cuda_images import SUITE, normal

# Convolutions and recurrent layers. All sides: float32 is not rounded to TF32, results are the same in every run, but
# in rows that say otherwise.


def _settle(torch, deterministic=True):
    """Products of float32 numbers as they are, the same in every run."""
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = False, deterministic


def _convolution(side, sizes, dtype="float32", last=False, stride=1, groups=1, deterministic=True):
    """Input and weight, for sizes: batch, channels of both sides, taps and places along a side."""
    _settle(side.torch, deterministic)
    batch, channels, out, taps, places = sizes
    x = side.tensor(normal(batch, channels, places, places), dtype)
    weight = side.tensor(normal(out, channels // groups, taps, taps, seed=1), dtype)
    if last:
        x, weight = (t.contiguous(memory_format=side.torch.channels_last) for t in (x, weight))
    return x, weight, {"stride": stride, "padding": taps // 2, "groups": groups}


def _convolved(side, *how, **more):
    x, weight, how = _convolution(side, *how, **more)
    return lambda: side.torch.nn.functional.conv2d(x, weight, **how)


def _convolved_back(side, which, sizes, **more):
    """The gradient of input (0) or weight (1)."""
    *operands, how = _convolution(side, sizes, **more)
    operands[which].requires_grad_()
    y = side.torch.nn.functional.conv2d(*operands, **how)
    g = y.detach() * 0.5
    return lambda: side.torch.autograd.grad(y, operands[which], g, retain_graph=True)[0]


CONV = 32, 64, 64, 3, 56
HALF = {"dtype": "bfloat16", "last": True}
# Channels of both sides, taps, places along a side, stride.
RESNET50 = (
    *((3, 64, 7, 224, 2), (64, 64, 1, 56, 1), (64, 64, 3, 56, 1), (64, 256, 1, 56, 1), (256, 64, 1, 56, 1)),
    *((256, 128, 1, 56, 1), (128, 128, 3, 56, 2), (128, 512, 1, 28, 1), (256, 512, 1, 56, 2), (512, 128, 1, 28, 1)),
    *((128, 128, 3, 28, 1), (512, 256, 1, 28, 1), (256, 256, 3, 28, 2), (256, 1024, 1, 14, 1), (512, 1024, 1, 28, 2)),
    *((1024, 256, 1, 14, 1), (256, 256, 3, 14, 1), (1024, 512, 1, 14, 1), (512, 512, 3, 14, 2), (512, 2048, 1, 7, 1)),
    *((1024, 2048, 1, 14, 2), (2048, 512, 1, 7, 1), (512, 512, 3, 7, 1)),
)


def _convolutions(name, tolerance, *sizes, **how):
    """Add three rows: the result, and both gradients."""
    row = functools.partial(SUITE.row, target=1.05, tolerance=tolerance)
    row(name)(lambda side: _convolved(side, sizes, **how))
    row(f"{name}, gradient of input")(lambda side: _convolved_back(side, 0, sizes, **how))
    row(f"{name}, gradient of weight")(lambda side: _convolved_back(side, 1, sizes, **how))


_convolutions("conv2d 3 x 3, 64 to 64, 56 x 56, batch 32", 1e-3, *CONV)
_convolutions("conv2d 3 x 3, bfloat16, channels last", 2e-2, *CONV, **HALF)
_convolutions("conv2d 1 x 1, 256 to 64, 56 x 56, batch 32", 1e-3, 32, 256, 64, 1, 56)
_convolutions("conv2d 3 x 3, stride 2, 128 to 128, 56 x 56, batch 32", 1e-3, 32, 128, 128, 3, 56, stride=2)
_convolutions("conv2d 3 x 3, depthwise, 144 channels, 56 x 56, batch 32", 1e-3, 32, 144, 144, 3, 56, groups=144)


for _which, _of in enumerate(("input", "weight")):
    for _dtype, _tolerance, _more in ("float32", 1e-3, {}), ("bfloat16, channels last", 2e-2, HALF):
        SUITE.row(
            f"conv2d 3 x 3, 64 to 64, 56 x 56, batch 32, {_dtype}, gradient of {_of}, not deterministic",
            target=1.05,
            tolerance=_tolerance,
        )(functools.partial(_convolved_back, which=_which, sizes=CONV, deterministic=False, **_more))


def _resnet50(name, tolerance, **more):
    """Add a row: of the network each convolution of another shape."""

    @SUITE.row(f"the 23 convolutions of ResNet-50, batch 32, {name}", target=1.05, tolerance=tolerance)
    def make(side):
        calls = [_convolved(side, (32, a, b, taps, n), stride=step, **more) for a, b, taps, n, step in RESNET50]
        return lambda: [call() for call in calls][-1]


_resnet50("float32", 1e-3)
_resnet50("bfloat16, channels last", 2e-2, **HALF)


def _recurrent(name, layer):
    """Add a row: a forward and a backward pass over 64 steps of 128 sequences."""

    @SUITE.row(f"{name} 2 x 512, 64 steps, batch 128, forward + backward", target=1.05, tolerance=1e-3, rounds=15)
    def make(side):
        _settle(side.torch)
        model = side.placed(getattr(side.torch.nn, layer)(512, 512, 2))
        x, g = side.tensor(normal(64, 128, 512), differentiable=True), side.tensor(normal(64, 128, 512, seed=1))
        parameters = list(model.parameters())
        return lambda: side.torch.autograd.grad(model(x)[0], [x, *parameters], g)[0]


_recurrent("LSTM", "LSTM")
_recurrent("GRU", "GRU")


# Attention.


def _as_it_chooses(torch):
    return contextlib.nullcontext()


def _flash(torch):
    """PyTorch's flash kernel, where by itself it takes cuDNN's."""
    if torch.__name__ != "torch":
        return _as_it_chooses(torch)
    return torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.FLASH_ATTENTION)


def _in_any_order(torch):
    """The last bits may be others in each run, as PyTorch has it by default: cuDNN derives on all sides."""
    return torch.backends.cudnn.flags(enabled=True, deterministic=False, allow_tf32=False)


@contextlib.contextmanager
def _in_one_order(torch):
    """The same in every run, on all sides: ours by default."""
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


def _attention(side, dtype, causal, backward, how=_as_it_chooses):
    """A function that attends, and derives, if it is to."""
    *operands, g = (side.tensor(normal(*HEADS, seed=k), dtype, differentiable=backward and k < 3) for k in range(4))
    attend = functools.partial(side.torch.nn.functional.scaled_dot_product_attention, *operands, is_causal=causal)
    if not backward:
        return attend

    def step():
        with how(side.torch):
            out = attend()
            return out.detach(), *side.torch.autograd.grad(out, operands, g)

    return step


def _attentions(dtype, tolerance, target):
    """Add the rows of a dtype."""
    for causal in (False, True):
        for backward in (False, True):
            name = f"attention 8 x 12 x 4096 x 64, {dtype}{', causal' * causal}{', forward + backward' * backward}"
            make = functools.partial(_attention, dtype=dtype, causal=causal, backward=backward)
            SUITE.row(name, target=target, tolerance=tolerance)(make)


#: Batch, heads, rows, width.
HEADS = (8, 12, 4096, 64)
_attentions("float32", 1e-4, 1.05)
_attentions("bfloat16", 2e-2, 1.1)
_HOW = {"PyTorch's flash kernel": _flash, "not deterministic": _in_any_order, "deterministic": _in_one_order}
for causal, (name, how) in itertools.product((False, True), _HOW.items()):
    SUITE.row(
        f"attention 8 x 12 x 4096 x 64, bfloat16{', causal' * causal}, forward + backward, {name}",
        target=1.1,
        tolerance=2e-2,
    )(functools.partial(_attention, dtype="bfloat16", causal=causal, backward=True, how=how))


@SUITE.row(
    "attention 8 x 12 x 4096 x 64, float32, forward + backward: memory at most, beyond the operands",
    target=1.0,
    self_timed=True,
    megabytes=True,
    rounds=3,
)
def attention_memory(side):
    step, cuda = _attention(side, "float32", False, True), side.torch.cuda

    def measure():
        cuda.reset_peak_memory_stats()
        before = cuda.memory_allocated()
        kept = step()
        del kept
        return (cuda.max_memory_allocated() - before) / MILLION

    return measure


# Decompositions. Of vectors, whose signs are anyone's, the values beside them are compared.


def _decomposed(name, operation):
    """Add rows of ``operation(linalg, x, A)`` with x random and A positive definite."""

    def add(shape, said):
        @SUITE.row(f"{name}, {said} float32", target=1.05, tolerance=1e-3)
        def make(side):
            x = normal(*shape)
            a = side.tensor(x @ x.swapaxes(-1, -2) / shape[-1] + np.eye(shape[-1], dtype=np.float32))
            x = side.tensor(x)
            return lambda: operation(side.torch.linalg, x, a)

    add((512, 512), "512 x 512")
    add((4096, 16, 16), "4096 x (16, 16)")


_decomposed("svd", lambda linalg, x, a: linalg.svd(x)[1])
_decomposed("eigh", lambda linalg, x, a: linalg.eigh(a)[0])
_decomposed("solve", lambda linalg, x, a: linalg.solve(a, x))
_decomposed("cholesky", lambda linalg, x, a: linalg.cholesky(a))
_decomposed("qr", lambda linalg, x, a: linalg.qr(x)[1])
_decomposed("inv", lambda linalg, x, a: linalg.inv(a))
