"""A GPU: eager mode, fused mode and CUDA graphs beside PyTorch and torch.compile, all in one process.

Every side gets batches in turn, and the device is waited for at the end of each. Before a side is timed its result
is compared with PyTorch's: of training steps the first loss, and that of a later step, which was compiled or recorded.

The models in bfloat16 have their parameters, gradients and optimizer states in bfloat16, on all sides, and the loss in
float32; there is no autocast. Attention is written out in the models, on all sides.
"""

import functools
import importlib
import subprocess
from dataclasses import dataclass, field

import numpy as np

from .devices import DEVICES, compare, ends_of, on_gpu
from .fuse import chain
from .models import chain_of_products, make_gpt, perceptron
from .suite import Row, Suite

MILLION = 1 << 20
#: Elements of the large tensors, the side of the square ones, and of the factors of matrix products.
LARGE, GRADIENT, SIDE, PRODUCT = 64 * MILLION, 16 * MILLION, 8192, 4096
#: What the sides of a GPT row train on.
GPT = {"vocabulary": 50304, "length": 256, "width": 512, "heads": 8, "layers": 6}
SEQUENCES = 16
#: The sizes of the large perceptron, and its batch.
WIDTHS, SAMPLES = (1024, 4096, 4096, 10), 4096

ALL = ("eager", "fused", "graph", "torch", "compile", "reduce-overhead")
#: Of a training step also PyTorch's fused optimizers, and its own CUDA graph of the whole step.
TRAINING = (*ALL, "torch-fused", "torch-graph")
#: The number of the training step whose loss is compared besides the first one's, and how much further from PyTorch's
#: it may be, after so many updates.
LAST_STEP, DRIFT = 12, 10
#: Where nothing is a function that torch.compile could take whole.
UNCOMPILED = ("eager", "fused", "graph", "torch", "torch-graph")


@dataclass(frozen=True)
class CudaRow(Row):
    """A row whose ``make(side)`` receives one of `bench.devices`."""

    sides: tuple[str, ...] = ("eager", "torch")
    #: How far from PyTorch's a result may be, relative to the largest element.
    tolerance: float = 1e-4
    batch: float = 0.01
    #: Every call has the same result, so that it can be compared again once the side is ready to be timed.
    repeatable: bool = True
    #: tinytorch's, while the row is measured.
    settings: dict[str, int] = field(default_factory=dict)
    #: The results of the side that was prepared first: of the first call, and of a training step's last.
    expected: list = field(default_factory=list, compare=False)

    def on(self, side):
        return side in self.sides

    def prepare(self, side, threads):
        device = DEVICES[side]()
        if side == "copy":
            return _copy(device, self.nbytes)
        call = self.make(device)
        if self.megabytes:
            call()
            return call
        self._compare(call(), 0)
        run = 1 + device.warm(call)
        if self.repeatable:
            self._compare(call(), 0)
        else:
            for _ in range(LAST_STEP - run):
                result = call()
            self._compare(result, 1, DRIFT * self.tolerance)
        return call

    def _compare(self, result, number, tolerance=None):
        """With that of the side that was prepared first."""
        result = ends_of(result)
        if len(self.expected) <= number:
            self.expected.append(result)
        compare(result, self.expected[number], tolerance or self.tolerance)

    def waiter(self, side):
        return importlib.import_module(DEVICES[side].module).cuda.synchronize


def _obstacle():
    """Why there is nothing to measure, if so."""
    cuda = importlib.import_module("tinytorch").cuda
    if cuda.is_available():
        return None
    return "tinytorch finds no CUDA GPU (it needs an NVIDIA driver and pip install 'tinytorch[cuda]')"


def _facts():
    """What is in the machine."""
    found = {"gpu": importlib.import_module("tinytorch").cuda.get_device_name(0)}
    try:
        asked = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader", "--id=0"]
        found["driver"] = subprocess.check_output(asked, text=True).strip()
    except (OSError, subprocess.CalledProcessError):
        pass  # known from the versions of CUDA's libraries, roughly
    return found


SUITE = Suite(
    "a GPU: eager, fused, graph (tinytorch), PyTorch's eager mode, optimizers, graphs and compiler, in one process",
    measure=on_gpu,
    rounds=30,
    sides={side: device.module for side, device in DEVICES.items()},
    ours="eager",
    obstacle=_obstacle,
    facts=_facts,
    kind=CudaRow,
)


def _normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


def _copy(device, nbytes):
    """A copy that reads and writes so many bytes together."""
    source = device.torch.empty(int(nbytes) // 8, device=device.device)
    target = device.torch.empty_like(source)
    return lambda: target.copy_(source)


# The cost of a call.


@SUITE.row("a + b (4,4)", target=1.0)
def add(side):
    a, b = side.tensor(_normal(4, 4)), side.tensor(_normal(4, 4, seed=1))
    return lambda: a + b


@SUITE.row("a + b (4,4), recording", target=1.0)
def add_recording(side):
    a, b = side.tensor(_normal(4, 4), differentiable=True), side.tensor(_normal(4, 4, seed=1))
    return lambda: a + b


def _chain_of_products(side, differentiable):
    x = side.tensor(_normal(4, 4), differentiable=True)
    near_one = np.full((4, 4), 1.01, np.float32)  # so that the products stay normal
    w = side.tensor(near_one, differentiable=differentiable)
    return side.step(chain_of_products(x, w, side.tensor(np.ones((4, 4), np.float32))))


@SUITE.row("50 muls by a constant, forward + backward, per op", target=0.5, per=50, sides=UNCOMPILED)
def products(side):
    return _chain_of_products(side, False)


@SUITE.row("50 muls by a parameter, forward + backward, per op", target=0.5, per=50, sides=UNCOMPILED)
def products_both(side):
    return _chain_of_products(side, True)


# Fused chains.


def _function(side, size):
    x = side.tensor(_normal(size))
    return functools.partial(side.function(functools.partial(chain, side.torch)), x)


AT_MEMORY_SPEED = {
    "sides": (*ALL, "copy"),
    "ours": ("fused",),
    "target": 0.95,
    "against": "copy",
    "also": ((("fused",), "compile", 1.0),),
}
APPROXIMATE = {"settings": {"approximate": 1}, **AT_MEMORY_SPEED}


@SUITE.row("13-op chain, 64M float32, approximate functions", nbytes=8 * LARGE, **APPROXIMATE)
@SUITE.row("13-op chain, 64M float32", nbytes=8 * LARGE, **AT_MEMORY_SPEED)
def large_chain(side):
    return _function(side, LARGE)


@SUITE.row("that chain and its gradient, 16M, approximate functions", nbytes=16 * GRADIENT, **APPROXIMATE)
@SUITE.row("that chain and its gradient, 16M", nbytes=16 * GRADIENT, **AT_MEMORY_SPEED)
def chain_gradient(side):
    """It cannot but read x and the gradient from upstream, and write the result and the gradient of x."""
    x, upstream = side.tensor(_normal(GRADIENT), differentiable=True), side.tensor(_normal(GRADIENT, seed=1))
    return functools.partial(side.vjp(functools.partial(chain, side.torch)), upstream, x)


@SUITE.row(
    "that chain on 64 floats",
    sides=ALL,
    ours=("fused",),
    target=10e-6,
    absolute=True,
    also=((("fused",), "compile", 1.0),),
)
def small_chain(side):
    return _function(side, 64)


@SUITE.row(
    "the same, promised to be pure",
    sides=ALL,
    ours=("fused",),
    target=10e-6,
    absolute=True,
    also=((("fused",), "compile", 1.0),),
)
def pure_chain(side):
    return functools.partial(side.pure(functools.partial(chain, side.torch)), side.tensor(_normal(64)))


# Bandwidth of eager kernels.


@SUITE.row("A + B, 64M float32", nbytes=12 * LARGE, target=1.0, sides=("eager", "torch", "copy"))
def large_add(side):
    a, b = side.tensor(_normal(LARGE)), side.tensor(_normal(LARGE, seed=1))
    return lambda: a + b


@SUITE.row("A + row, 8192 x 8192, bfloat16", nbytes=4 * SIDE**2, target=1.0, tolerance=1e-2)
def broadcast(side):
    a, row = side.tensor(_normal(SIDE, SIDE)).bfloat16(), side.tensor(_normal(SIDE, seed=1)).bfloat16()
    return lambda: a + row


@SUITE.row("transposed copy, 8192 x 8192", nbytes=8 * SIDE**2, target=1.0)
def transposed(side):
    x = side.tensor(_normal(SIDE, SIDE))
    return lambda: x.t().contiguous()


@SUITE.row("sum, 64M", nbytes=4 * LARGE, target=1.0)
def sum_all(side):
    x = side.tensor(_normal(LARGE))
    return lambda: x.sum()


@SUITE.row("sum, 4M", nbytes=16 * MILLION, target=1.0)
def sum_some(side):
    x = side.tensor(_normal(4 * MILLION))
    return lambda: x.sum()


@SUITE.row("amax, 64M", nbytes=4 * LARGE, target=1.0)
def amax_all(side):
    x = side.tensor(_normal(LARGE))
    return lambda: x.amax()


@SUITE.row("argmax, 64M", nbytes=4 * LARGE, target=1.0)
def argmax_all(side):
    x = side.tensor(_normal(LARGE))
    return lambda: x.argmax()


@SUITE.row("sum, 64M bfloat16", nbytes=2 * LARGE, target=1.0, tolerance=1e-2)
def sum_bfloat16(side):
    x = side.tensor(_normal(LARGE)).bfloat16()
    return lambda: x.sum()


@SUITE.row("variance of rows, 8192 x 8192", nbytes=4 * SIDE**2, target=1.0)
def variance(side):
    x = side.tensor(_normal(SIDE, SIDE))
    return lambda: x.var(1)


@SUITE.row("sum over rows' elements, 8192 x 8192", nbytes=4 * SIDE**2, target=1.0)
def sum_rows(side):
    x = side.tensor(_normal(SIDE, SIDE))
    return lambda: x.sum(1)


@SUITE.row("sum over columns' elements, 8192 x 8192", nbytes=4 * SIDE**2, target=1.0)
def sum_columns(side):
    x = side.tensor(_normal(SIDE, SIDE))
    return lambda: x.sum(0)


@SUITE.row("softmax, 8192 x 8192", nbytes=8 * SIDE**2, target=1.0)
def softmax(side):
    x = side.tensor(_normal(SIDE, SIDE))
    return lambda: side.torch.softmax(x, dim=-1)


@SUITE.row("softmax, 65536 x 1024, bfloat16", nbytes=4 * LARGE, target=1.0, tolerance=1e-2)
def softmax_bfloat16(side):
    x = side.tensor(_normal(LARGE // 1024, 1024)).bfloat16()
    return lambda: x.softmax(1)


@SUITE.row("softmax, 4M x 16", nbytes=8 * LARGE, target=1.0)
def softmax_narrow(side):
    x = side.tensor(_normal(LARGE // 16, 16))
    return lambda: x.softmax(1)


@SUITE.row("softmax, 1024 x 50304, bfloat16", nbytes=4 * 1024 * GPT["vocabulary"], target=1.0, tolerance=1e-2)
def vocabulary_softmax(side):
    x = side.tensor(_normal(1024, GPT["vocabulary"])).bfloat16()
    return lambda: x.softmax(1)


@SUITE.row("cross entropy, 1024 x 50304, bfloat16", nbytes=2 * 1024 * GPT["vocabulary"], target=1.0, tolerance=1e-2)
def vocabulary_loss(side):
    x = side.tensor(_normal(1024, GPT["vocabulary"])).bfloat16()
    target = side.tensor(np.random.default_rng(1).integers(0, GPT["vocabulary"], 1024))
    return lambda: side.torch.nn.functional.cross_entropy(x, target)


@SUITE.row("layer_norm, 8192 x 8192", nbytes=8 * SIDE**2, target=1.0)
def layer_norm(side):
    x, weight, bias = (side.tensor(_normal(*shape)) for shape in ((SIDE, SIDE), (SIDE,), (SIDE,)))
    return lambda: side.torch.nn.functional.layer_norm(x, (SIDE,), weight, bias)


# Matrix products.


def _product(name, dtype, tolerance, tf32=False):
    """Add a row: a product of square matrices."""

    @SUITE.row(f"matmul 4096, {name}", flops=2 * PRODUCT**3, target=0.98, tolerance=tolerance)
    def make(side):
        side.torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = side.tensor(_normal(PRODUCT, PRODUCT), dtype), side.tensor(_normal(PRODUCT, PRODUCT, seed=1), dtype)
        return lambda: a @ b


_product("float32", "float32", 1e-5)
_product("float32 as TF32", "float32", 1e-2, tf32=True)
_product("bfloat16", "bfloat16", 1e-2)
_product("float16", "float16", 1e-2)


# Convolutions and recurrent layers. All sides: float32 is not rounded to TF32, results are the same in every run.


def _settle(torch):
    """What is tinytorch's default."""
    torch.backends.cudnn.allow_tf32, torch.backends.cudnn.deterministic = False, True


def _convolution(side, sizes, dtype="float32", last=False, stride=1, groups=1):
    """Input and weight, for sizes: batch, channels of both sides, taps and places along a side."""
    _settle(side.torch)
    batch, channels, out, taps, places = sizes
    x = side.tensor(_normal(batch, channels, places, places), dtype)
    weight = side.tensor(_normal(out, channels // groups, taps, taps, seed=1), dtype)
    if last:
        x, weight = (t.contiguous(memory_format=side.torch.channels_last) for t in (x, weight))
    return x, weight, {"stride": stride, "padding": taps // 2, "groups": groups}


def _convolved(side, *how, **more):
    x, weight, how = _convolution(side, *how, **more)
    return lambda: side.torch.nn.functional.conv2d(x, weight, **how)


def _convolved_back(side, which, *how, **more):
    """The gradient of input (0) or weight (1)."""
    *operands, how = _convolution(side, *how, **more)
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
        x, g = side.tensor(_normal(64, 128, 512), differentiable=True), side.tensor(_normal(64, 128, 512, seed=1))
        parameters = list(model.parameters())
        return lambda: side.torch.autograd.grad(model(x)[0], [x, *parameters], g)[0]


_recurrent("LSTM", "LSTM")
_recurrent("GRU", "GRU")


# Attention.


def _attention(side, dtype, causal, backward):
    """A function that attends, and derives, if it is to."""
    *operands, g = (side.tensor(_normal(*HEADS, seed=k), dtype, differentiable=backward and k < 3) for k in range(4))
    attend = functools.partial(side.torch.nn.functional.scaled_dot_product_attention, *operands, is_causal=causal)
    if not backward:
        return attend

    def step():
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
            x = _normal(*shape)
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


# Training steps.


def _training(side, model, dtype, x, target):
    """A step of Adam on the cross entropy between the model's scores for ``x`` and the classes ``target``."""
    model = side.placed(model, dtype)
    optimizer = side.torch.optim.Adam(model.parameters(), lr=1e-3, **side.optimizing)
    scores_of, loss_of = side.model(model), side.torch.nn.functional.cross_entropy
    x, target = side.tensor(x, dtype), side.tensor(target)

    def step():
        optimizer.zero_grad()
        loss = loss_of(scores_of(x).flatten(0, -2).float(), target)
        loss.backward()
        optimizer.step()
        return loss.detach()

    return side.step(step)


def _classify(side, widths, samples, dtype="float32"):
    target = np.random.default_rng(1).integers(0, widths[-1], samples)
    return _training(side, perceptron(side.torch.nn, *widths), dtype, _normal(samples, widths[0]), target)


_BESIDES = ((("fused", "graph"), "compile", 1.0), (("graph",), "torch-graph", 1.0))


@SUITE.row(
    "MLP 64-64-64-10, batch 32, Adam step",
    sides=TRAINING,
    ours=("eager", "fused", "graph"),
    target=1 / 3,
    repeatable=False,
    also=_BESIDES,
)
def small_mlp(side):
    return _classify(side, (64, 64, 64, 10), 32)


@SUITE.row(
    "MLP 1024-4096-4096-10, batch 4096, all bfloat16, Adam step",
    sides=TRAINING,
    target=1.0,
    tolerance=2e-2,
    repeatable=False,
    also=_BESIDES,
)
def large_mlp(side):
    return _classify(side, WIDTHS, SAMPLES, "bfloat16")


def _gpt(name, dtype, tolerance):
    """Add a row: a training step of a GPT."""

    @SUITE.row(
        f"GPT 6 x 512, 16 x 256 tokens, {name}, Adam step",
        sides=TRAINING,
        target=1.0,
        tolerance=tolerance,
        repeatable=False,
        also=_BESIDES,
        rounds=15,
        batch=0.05,
    )
    def make(side):
        tokens = np.random.default_rng(1).integers(0, GPT["vocabulary"], (SEQUENCES, GPT["length"] + 1))
        model = make_gpt(side.torch, **GPT)
        return _training(side, model, dtype, tokens[:, :-1].copy(), tokens[:, 1:].flatten())


_gpt("float32", "float32", 1e-4)
_gpt("all bfloat16", "bfloat16", 2e-2)
