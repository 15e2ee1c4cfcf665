"""Training steps of models people train, on the CPU or on a GPU (``--device``): tinytorch eager and fused, PyTorch and
torch.compile. All sides start from the same weights, and losses of later steps are compared before anything is timed.

PyTorch's side is written for speed: its fused optimizers, scaled_dot_product_attention, channels last where it helps
(convolutions on the CPU are faster with it, but for those of one channel).
"""

import functools
from dataclasses import dataclass

import numpy as np

from .cuda import facts, normal, obstacle
from .devices import DEVICES, DeviceRow
from .models import perceptron
from .suite import Suite
from .timing import apart
from .train_data import add_rows
from .train_first import measure_on_gpu
from .train_models import (
    make_cnn,
    make_first_output,
    make_gan,
    make_gpt,
    make_language_lstm,
    make_odeint,
    make_resnet,
    make_vit,
)

SIDES = ("eager", "fused", "torch", "compile")
#: What is demanded of fused mode besides.
ON_CPU = ((("fused",), "compile", 1.0),)
ON_GPU = ((("fused",), "eager", 1.0),)


@dataclass(frozen=True)
class TrainRow(DeviceRow):
    """A row whose ``make(side)`` returns the step. A step returns the loss."""

    sides: tuple[str, ...] = SIDES
    repeatable: bool = False
    tolerance: float = 1e-4
    #: Of a first step: the caches hold what an earlier process has left there.
    warm: bool = False


def _torch_first(row, sides, rounds):
    """Every side is compared with PyTorch."""
    return apart(row, sorted(sides, key=lambda side: side != "torch"), rounds)


_COMMON = {
    "sides": {side: DEVICES[side].module for side in SIDES},
    "ours": "eager",
    "peers": ("torch",),
    "kind": TrainRow,
}
CPU = Suite(
    "training steps on the CPU: tinytorch eager and fused, PyTorch and torch.compile",
    measure=_torch_first,
    rounds=8,
    **_COMMON,
)
CUDA = Suite(
    "training steps on a GPU: tinytorch eager and fused, PyTorch and torch.compile; memory; first steps",
    measure=measure_on_gpu,
    rounds=10,
    obstacle=obstacle,
    facts=facts,
    **_COMMON,
)


def _below(end, *shape, seed=1):
    return np.random.default_rng(seed).integers(0, end, shape)


def train(side, model, data, target, *, loss=None, autocast=None, last=False):
    """A step of AdamW. The loss is the cross entropy of the model's scores, unless another is given.

    ``last``: channels last.
    """
    torch = side.torch
    model, data, target = side.placed(model), side.tensor(data), side.tensor(target)
    if last:
        model, data = (x.to(memory_format=torch.channels_last) for x in (model, data))
    optimizer = adamw(side, model.parameters())
    scores_of, loss = side.model(model), loss or torch.nn.functional.cross_entropy

    def step():
        optimizer.zero_grad()
        with torch.autocast(side.device, getattr(torch, autocast or "bfloat16"), enabled=autocast is not None):
            scores = scores_of(data)
            result = loss(scores.flatten(0, -2) if loss is torch.nn.functional.cross_entropy else scores, target)
        result.backward()
        optimizer.step()
        return result.detach()

    return side.step(step)


def adamw(side, parameters, rate=1e-4):
    return side.torch.optim.AdamW(parameters, lr=rate, fused=True)


def _is_torch(side):
    return side.module == "torch"


# On the CPU.


def _cpu(name, **details):
    return CPU.row(f"{name}, AdamW step", device="cpu", target=0.8, also=ON_CPU, **details)


@_cpu("MLP 784-1024-1024-10, batch 256")
def mlp(side):
    return train(side, perceptron(side.torch.nn, 784, 1024, 1024, 10), normal(256, 784), _below(10, 256))


@_cpu("CNN of digits, 8 x 8, batch 64")
def cnn(side):
    return train(side, make_cnn(side.torch), normal(64, 1, 8, 8), _below(10, 64))


_HALF = {"autocast": "bfloat16"}


def _cpu_and_half(name, **details):
    """A row in float32, and one under autocast."""

    def add(make):
        _cpu(name, **details)(make)
        return _cpu(f"{name}, autocast", tolerance=2e-2)(functools.partial(make, **_HALF))

    return add


@_cpu_and_half("ResNet-18, 32 x 32, batch 32", tolerance=1e-3)
def resnet18(side, autocast=None):
    model = make_resnet(side.torch, depths=(2, 2, 2, 2), bottleneck=False, classes=10, small_images=True)
    last = _is_torch(side) or autocast is not None
    return train(side, model, normal(32, 3, 32, 32), _below(10, 32), autocast=autocast, last=last)


@_cpu_and_half("GPT 6 x 256, 8 x 128 tokens")
def gpt(side, autocast=None):
    tokens = _below(96, 8, 129)
    model = make_gpt(side.torch, vocabulary=96, length=128, width=256, heads=8, layers=6)
    return train(side, model, tokens[:, :-1].copy(), tokens[:, 1:].flatten(), autocast=autocast)


@_cpu("ViT-tiny 12 x 192, 32 x 32 by 4, batch 16")
def vit(side):
    model = make_vit(side.torch, image=32, patch=4, width=192, heads=3, layers=12, classes=10)
    return train(side, model, normal(16, 3, 32, 32), _below(10, 16))


@_cpu_and_half("LSTM 2 x 256, 64 tokens, batch 32")
def lstm(side, autocast=None):
    tokens = _below(96, 65, 32)
    model = make_language_lstm(side.torch, vocabulary=96, width=256, layers=2)
    return train(side, model, tokens[:-1].copy(), tokens[1:].flatten(), autocast=autocast)


@_cpu("MAML, 1-40-40-1, 8 tasks of 10 points, 1 inner step")
def maml(side):
    """The loss on new points after a step of gradient descent on others, of every task: second derivatives."""
    torch, F = side.torch, side.torch.nn.functional
    model = side.placed(perceptron(torch.nn, 1, 40, 40, 1))
    parameters = list(model.parameters())
    optimizer = adamw(side, parameters)

    def loss_of(weights, x, y):
        w1, b1, w2, b2, w3, b3 = weights
        return F.mse_loss(F.linear(F.relu(F.linear(F.relu(F.linear(x, w1, b1)), w2, b2)), w3, b3), y)

    inner = side.gradients(loss_of)

    def adapted_loss(weights, x, y, new_x, new_y):
        gradients = inner(weights, x, y)
        return loss_of([w - 0.01 * g for w, g in zip(weights, gradients)], new_x, new_y)

    adapted_loss = side.model(adapted_loss)
    points = side.tensor(normal(8, 2, 10, 1))
    waves = side.tensor(np.sin(normal(8, 2, 10, 1)))

    def step():
        optimizer.zero_grad()
        tasks = [adapted_loss(parameters, x, y, new_x, new_y) for (x, new_x), (y, new_y) in zip(points, waves)]
        loss = torch.stack(tasks).mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return side.step(step)


@_cpu("WGAN-GP, 28 x 28, batch 64: critic and generator")
def wgan(side):
    """The critic's slope between real and false images is to be 1: the derivative of a gradient."""
    torch = side.torch
    generator, critic = (side.placed(model) for model in make_gan(torch, noise=64, channels=32))
    of_generator, of_critic = (adamw(side, model.parameters()) for model in (generator, critic))
    real, noise = side.tensor(normal(64, 1, 28, 28)), side.tensor(normal(64, 64, seed=1))
    share = side.tensor(np.random.default_rng(2).random((64, 1, 1, 1), dtype=np.float32))
    slopes = side.gradients(lambda images: critic(images[0]).sum())

    def critic_loss(real, false, share):
        between = share * real + (1 - share) * false
        (slope,) = slopes([between.requires_grad_() if side.requires_leaves else between])
        penalty = (slope.flatten(1).norm(dim=1) - 1).square().mean()
        return critic(false).mean() - critic(real).mean() + 10 * penalty

    critic_loss, generate = side.model(critic_loss), side.model(generator)
    generator_loss = side.model(lambda noise: -critic(generator(noise)).mean())

    def step():
        with torch.no_grad():
            false = generate(noise)
        of_critic.zero_grad()
        loss = critic_loss(real, false, share)
        loss.backward()
        of_critic.step()
        of_generator.zero_grad()
        generator_loss(noise).backward()
        of_generator.step()
        return loss.detach()

    return side.step(step)


@_cpu("neural ODE, 2-50-2, batch 64, 20 steps of RK4, adjoint")
def ode(side):
    torch = side.torch
    model = side.placed(torch.nn.Sequential(torch.nn.Linear(2, 50), torch.nn.Tanh(), torch.nn.Linear(50, 2)))
    parameters = list(model.parameters())
    optimizer, odeint = adamw(side, parameters), make_odeint(torch, side.model(model), parameters)
    start, end = side.tensor(normal(64, 2)), side.tensor(normal(64, 2, seed=1))
    times = [k / 20 for k in range(21)]

    def step():
        optimizer.zero_grad()
        loss = (odeint(start, times) - end).abs().mean()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return side.step(step)


add_rows(CPU)  # batches from a DataLoader with workers


# On a GPU: every model's step, the memory it takes, and the first step of a process.


def _cuda(name, make, *, first=True, **details):
    """Add the rows of a model."""
    name = f"{name}, AdamW step"
    CUDA.row(name, target=1.0, also=ON_GPU, batch=0.2, **details)(make)
    CUDA.row(f"{name}: memory at most", target=1.0, megabytes=True, self_timed=True, rounds=1, **details)(
        functools.partial(_memory, make)
    )
    if first:
        limits = {"absolute": True, "first": True, "rounds": 1, "ours": ("eager", "fused")}
        CUDA.row(f"{name}: the first, empty caches", target=3.0, **limits, **details)(make)
        CUDA.row(f"{name}: the first, filled caches", target=0.5, warm=True, **limits, **details)(make)


def _memory(make, side):
    """What three steps take at most, with the model and the optimizer's state, in megabytes."""
    cuda = side.torch.cuda
    side.clear()
    cuda.reset_peak_memory_stats()
    before = cuda.memory_allocated()
    step = make(side)
    for _ in range(3):
        step()
    megabytes = (cuda.max_memory_allocated() - before) / 2**20
    return lambda: megabytes


def vit_b(side, autocast=None):
    model = make_vit(side.torch, image=224, patch=16, width=768, heads=12, layers=12, classes=1000)
    return train(side, model, normal(64, 3, 224, 224), _below(1000, 64), autocast=autocast)


def resnet50(side, autocast=None, last=False):
    model = make_resnet(side.torch, depths=(3, 4, 6, 3), bottleneck=True, classes=1000, small_images=False)
    return train(side, model, normal(64, 3, 224, 224), _below(1000, 64), autocast=autocast, last=last)


def gpt2(side, autocast=None):
    tokens = _below(50257, 8, 1025)
    model = make_gpt(side.torch, vocabulary=50257, length=1024, width=768, heads=12, layers=12)
    return train(side, model, tokens[:, :-1].copy(), tokens[:, 1:].flatten(), autocast=autocast)


def lstm_layers(side):
    model, loss = make_first_output(side.torch, side.torch.nn.LSTM(512, 512, 2)), side.torch.nn.functional.mse_loss
    return train(side, model, normal(64, 128, 512), normal(64, 128, 512, seed=1), loss=loss)


_cuda("ViT-B/16, batch 64, float32", vit_b, tolerance=1e-3)
_cuda("ViT-B/16, batch 64, autocast", functools.partial(vit_b, **_HALF), tolerance=2e-2)
_cuda("ResNet-50, batch 64, float32", resnet50, tolerance=1e-3)
_cuda("ResNet-50, batch 64, autocast, channels last", functools.partial(resnet50, **_HALF, last=True), tolerance=2e-2)
_cuda("GPT-2 124M, 8 x 1024 tokens, float32", gpt2, tolerance=1e-3)
_cuda("GPT-2 124M, 8 x 1024 tokens, autocast", functools.partial(gpt2, **_HALF), tolerance=2e-2)
_cuda("LSTM 2 x 512, 64 x 128", lstm_layers, tolerance=1e-3)

SUITES = {"cpu": CPU, "cuda": CUDA}
