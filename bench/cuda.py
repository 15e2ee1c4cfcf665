"""A GPU: eager mode, fused mode and CUDA graphs beside PyTorch and torch.compile, all in one process.

Every side gets batches in turn, and the device is waited for at the end of each. Before a side is timed its result
is compared with PyTorch's: of training steps the first loss, and that of a later step, which was compiled or recorded.

The models in bfloat16 have their parameters, gradients and optimizer states in bfloat16, on all sides, and the loss in
float32; there is no autocast. Attention is written out in the models, on all sides.
"""

import functools
import importlib
import subprocess

import numpy as np

from .devices import DEVICES, DeviceRow, on_gpu
from .fuse import chain
from .models import chain_of_products, make_gpt, perceptron
from .suite import Suite

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
#: Where nothing is a function that torch.compile could take whole.
UNCOMPILED = ("eager", "fused", "graph", "torch", "torch-graph")


def obstacle():
    """Why there is nothing to measure, if so."""
    cuda = importlib.import_module("tinytorch").cuda
    if cuda.is_available():
        return None
    return "tinytorch finds no CUDA GPU (it needs an NVIDIA driver and pip install 'tinytorch[cuda]')"


def facts():
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
    obstacle=obstacle,
    facts=facts,
    kind=DeviceRow,
)


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# The cost of a call.


@SUITE.row("a + b (4,4)", target=1.0)
def add(side):
    a, b = side.tensor(normal(4, 4)), side.tensor(normal(4, 4, seed=1))
    return lambda: a + b


@SUITE.row("a + b (4,4), recording", target=1.0)
def add_recording(side):
    a, b = side.tensor(normal(4, 4), differentiable=True), side.tensor(normal(4, 4, seed=1))
    return lambda: a + b


def _chain_of_products(side, differentiable):
    x = side.tensor(normal(4, 4), differentiable=True)
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
    x = side.tensor(normal(size))
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
    x, upstream = side.tensor(normal(GRADIENT), differentiable=True), side.tensor(normal(GRADIENT, seed=1))
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
    return functools.partial(side.pure(functools.partial(chain, side.torch)), side.tensor(normal(64)))


# Bandwidth of eager kernels.


@SUITE.row("A + B, 64M float32", nbytes=12 * LARGE, target=1.0, sides=("eager", "torch", "copy"))
def large_add(side):
    a, b = side.tensor(normal(LARGE)), side.tensor(normal(LARGE, seed=1))
    return lambda: a + b


@SUITE.row("A + row, 8192 x 8192, bfloat16", nbytes=4 * SIDE**2, target=1.0, tolerance=1e-2)
def broadcast(side):
    a, row = side.tensor(normal(SIDE, SIDE)).bfloat16(), side.tensor(normal(SIDE, seed=1)).bfloat16()
    return lambda: a + row


@SUITE.row("transposed copy, 8192 x 8192", nbytes=8 * SIDE**2, target=1.0)
def transposed(side):
    x = side.tensor(normal(SIDE, SIDE))
    return lambda: x.t().contiguous()


@SUITE.row("sum, 64M", nbytes=4 * LARGE, target=1.0)
def sum_all(side):
    x = side.tensor(normal(LARGE))
    return lambda: x.sum()


@SUITE.row("sum, 4M", nbytes=16 * MILLION, target=1.0)
def sum_some(side):
    x = side.tensor(normal(4 * MILLION))
    return lambda: x.sum()


@SUITE.row("amax, 64M", nbytes=4 * LARGE, target=1.0)
def amax_all(side):
    x = side.tensor(normal(LARGE))
    return lambda: x.amax()


@SUITE.row("argmax, 64M", nbytes=4 * LARGE, target=1.0)
def argmax_all(side):
    x = side.tensor(normal(LARGE))
    return lambda: x.argmax()


@SUITE.row("sum, 64M bfloat16", nbytes=2 * LARGE, target=1.0, tolerance=1e-2)
def sum_bfloat16(side):
    x = side.tensor(normal(LARGE)).bfloat16()
    return lambda: x.sum()


@SUITE.row("variance of rows, 8192 x 8192", nbytes=4 * SIDE**2, target=1.0)
def variance(side):
    x = side.tensor(normal(SIDE, SIDE))
    return lambda: x.var(1)


@SUITE.row("sum over rows' elements, 8192 x 8192", nbytes=4 * SIDE**2, target=1.0)
def sum_rows(side):
    x = side.tensor(normal(SIDE, SIDE))
    return lambda: x.sum(1)


@SUITE.row("sum over columns' elements, 8192 x 8192", nbytes=4 * SIDE**2, target=1.0)
def sum_columns(side):
    x = side.tensor(normal(SIDE, SIDE))
    return lambda: x.sum(0)


@SUITE.row("softmax, 8192 x 8192", nbytes=8 * SIDE**2, target=1.0)
def softmax(side):
    x = side.tensor(normal(SIDE, SIDE))
    return lambda: side.torch.softmax(x, dim=-1)


@SUITE.row("softmax, 65536 x 1024, bfloat16", nbytes=4 * LARGE, target=1.0, tolerance=1e-2)
def softmax_bfloat16(side):
    x = side.tensor(normal(LARGE // 1024, 1024)).bfloat16()
    return lambda: x.softmax(1)


@SUITE.row("softmax, 4M x 16", nbytes=8 * LARGE, target=1.0)
def softmax_narrow(side):
    x = side.tensor(normal(LARGE // 16, 16))
    return lambda: x.softmax(1)


@SUITE.row("softmax, 1024 x 50304, bfloat16", nbytes=4 * 1024 * GPT["vocabulary"], target=1.0, tolerance=1e-2)
def vocabulary_softmax(side):
    x = side.tensor(normal(1024, GPT["vocabulary"])).bfloat16()
    return lambda: x.softmax(1)


@SUITE.row("cross entropy, 1024 x 50304, bfloat16", nbytes=2 * 1024 * GPT["vocabulary"], target=1.0, tolerance=1e-2)
def vocabulary_loss(side):
    x = side.tensor(normal(1024, GPT["vocabulary"])).bfloat16()
    target = side.tensor(np.random.default_rng(1).integers(0, GPT["vocabulary"], 1024))
    return lambda: side.torch.nn.functional.cross_entropy(x, target)


@SUITE.row("layer_norm, 8192 x 8192", nbytes=8 * SIDE**2, target=1.0)
def layer_norm(side):
    x, weight, bias = (side.tensor(normal(*shape)) for shape in ((SIDE, SIDE), (SIDE,), (SIDE,)))
    return lambda: side.torch.nn.functional.layer_norm(x, (SIDE,), weight, bias)


# Scans, sorting, counting, indexing, losses: of 16M elements.


def _uniform(*shape, seed=0):
    return np.random.default_rng(seed).random(shape, dtype=np.float32)


def _below(end, *shape, seed=1):
    return np.random.default_rng(seed).integers(0, end, shape)


def _operator(name, call, *operands, **options):
    """Add a row: ``call(torch, *tensors)``, of operands that are made of a function and its arguments."""

    @SUITE.row(f"{name}, 16M", target=1.05, **options)
    def make(side):
        tensors = [side.tensor(function(*arguments)) for function, *arguments in operands]
        return lambda: call(side.torch, *tensors)


def _half(name, call, dtype, *shape):
    @SUITE.row(f"{name}, {dtype}", target=1.05, tolerance=1e-2)
    def make(side):
        x = side.tensor(normal(*shape), dtype)
        return lambda: call(side.torch, x)


_VECTOR, _MATRIX = (normal, GRADIENT), (normal, 4096, 4096)
_operator("cumsum", lambda torch, x: x.cumsum(0), (_uniform, GRADIENT))
_operator("cumsum of rows", lambda torch, x: x.cumsum(1), _MATRIX, tolerance=1e-3)
_operator("logcumsumexp", lambda torch, x: x.logcumsumexp(0), _VECTOR)
_operator("logcumsumexp of rows", lambda torch, x: x.logcumsumexp(1), _MATRIX)
_operator("sort", lambda torch, x: x.sort().values, _VECTOR)
_operator("sort of rows", lambda torch, x: x.sort(1).values, _MATRIX)
_operator("topk 100", lambda torch, x: x.topk(100).values, _VECTOR)
_operator("topk 10 of rows", lambda torch, x: x.topk(10).values, _MATRIX)
_operator("median", lambda torch, x: x.median(), _VECTOR)
_operator("median of rows", lambda torch, x: x.median(1).values, _MATRIX)
_operator("unique", lambda torch, x: x.unique(), (_below, MILLION, GRADIENT))
_operator("bincount to 10000", lambda torch, x: x.bincount(), (_below, 10_000, GRADIENT))
_operator(
    "scatter_add",
    lambda torch, x, at: torch.zeros_like(x).scatter_add_(0, at, x),
    (_uniform, GRADIENT),
    (_below, GRADIENT, GRADIENT),
)
_operator("x[i], rows of 1024", lambda torch, x, at: x[at], (normal, 16384, 1024), (_below, 16384, 16384))
_operator("lgamma", lambda torch, x: torch.lgamma(4 * x), (_uniform, GRADIENT))
_operator("mse_loss", lambda torch, x, y: torch.nn.functional.mse_loss(x, y), _VECTOR, (_uniform, GRADIENT))
_operator("smooth_l1_loss", lambda torch, x, y: torch.nn.functional.smooth_l1_loss(x, y), _VECTOR, (_uniform, GRADIENT))
for _dtype in ("float16", "bfloat16"):
    _half("gelu, 16M", lambda torch, x: torch.nn.functional.gelu(x), _dtype, GRADIENT)


# Matrix products.


def _product(name, dtype, tolerance, tf32=False):
    """Add a row: a product of square matrices."""

    @SUITE.row(f"matmul 4096, {name}", flops=2 * PRODUCT**3, target=0.98, tolerance=tolerance)
    def make(side):
        side.torch.backends.cuda.matmul.allow_tf32 = tf32
        a, b = side.tensor(normal(PRODUCT, PRODUCT), dtype), side.tensor(normal(PRODUCT, PRODUCT, seed=1), dtype)
        return lambda: a @ b


_product("float32", "float32", 1e-5)
_product("float32 as TF32", "float32", 1e-2, tf32=True)
_product("bfloat16", "bfloat16", 1e-2)
_product("float16", "float16", 1e-2)


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
    return _training(side, perceptron(side.torch.nn, *widths), dtype, normal(samples, widths[0]), target)


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
