"""Training in fused mode gives eager mode's losses, parameters, gradients and optimizer states, bit by bit."""

import contextlib
import os
import subprocess
import sys

import pytest
from load_example import EXAMPLES, load_example

import tinytorch
from tinytorch import nn, optim
from tinytorch.nn import functional as F

digits, gpt = load_example("digits"), load_example("gpt")

OPTIMIZERS = {
    "sgd": lambda parameters: optim.SGD(parameters, lr=0.05, momentum=0.9, weight_decay=1e-4),
    "nesterov": lambda parameters: optim.SGD(parameters, lr=0.05, momentum=0.9, nesterov=True),
    "adam": lambda parameters: optim.Adam(parameters, lr=3e-3, weight_decay=1e-3),
    "adamw": lambda parameters: optim.AdamW(parameters, lr=3e-3, weight_decay=0.1),
    "amsgrad": lambda parameters: optim.AdamW(parameters, lr=3e-3, amsgrad=True),
}


class Digits:
    """A network of examples/digits.py on images that are a pattern for each class and noise, with dropout before."""

    def __init__(self, network, dropout, batch=32):
        self.model = nn.Sequential(nn.Dropout(dropout), network())
        patterns = tinytorch.rand(10, 64)
        self.labels = tinytorch.randint(10, (64,))
        self.images = (patterns[self.labels] + 0.3 * tinytorch.randn(64, 64)).clamp(0, 1)
        self.batch = batch

    def loss(self):
        chosen = tinytorch.randint(64, (self.batch,))
        images = self.images[chosen]
        noisy = images + digits.NOISE * tinytorch.randn_like(images)
        return F.cross_entropy(self.model(noisy), self.labels[chosen])


class Sums:
    """The network of examples/gpt.py."""

    def __init__(self, dropout, width=32, batch=16):
        self.model = gpt.GPT(width=width, dropout=dropout)
        self.tokens, _ = gpt.load(seed=0, train_size=200, test_size=1)
        self.batch = batch

    def loss(self):
        return gpt.loss_of(self.model, self.tokens[tinytorch.randint(200, (self.batch,))])


MODELS = {"mlp": lambda dropout: Digits(digits.MLP, dropout), "gpt": Sums}
if hasattr(nn, "Conv2d"):
    MODELS["cnn"] = lambda dropout: Digits(digits.CNN, dropout)
#: Wide enough for several threads to share the work of most operators.
WIDE = {"mlp": lambda dropout: Digits(digits.MLP, dropout, 512), "gpt": lambda dropout: Sums(dropout, 64, 128)}


def plainly(step, steps):
    return [step() for _ in range(steps)]


def fused_steps(step, steps):
    """Fused mode is left after each step."""
    losses = []
    for _ in range(steps):
        with tinytorch.fuse():
            losses.append(step())
    return losses


def fused_function(step, steps):
    fast = tinytorch.fuse(step)
    return [fast() for _ in range(steps)]


def fused_and_read(step, steps):
    """Every loss is read where it was computed, as a program with a progress bar does."""
    with tinytorch.fuse():
        return [tinytorch.tensor(step().item()) for _ in range(steps)]


def fused_throughout(step, steps):
    """Nothing is read before the end."""
    with tinytorch.fuse():
        return [step() for _ in range(steps)]


WAYS = [fused_steps, fused_function, fused_and_read, fused_throughout]


def train(way, make, optimizer="adamw", dropout=0.0, clip=None, steps=5, set_to_none=True):
    """The bytes of all that a training leaves behind, by name."""
    tinytorch.manual_seed(0)
    task = make(dropout)
    task.model.train()
    opt = OPTIMIZERS[optimizer](task.model.parameters())

    def step():
        opt.zero_grad(set_to_none)
        loss = task.loss()
        loss.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(task.model.parameters(), clip)
        opt.step()
        return loss.detach()

    tensors = {f"loss {i}": loss for i, loss in enumerate(way(step, steps))}
    for name, p in task.model.named_parameters():
        tensors[name], tensors[f"{name}.grad"] = p.detach(), p.grad
        tensors.update({f"{name}: {key}": value for key, value in opt.state[p].items()})
    return {name: (tuple(t.shape), t.numpy().tobytes()) for name, t in tensors.items() if t is not None}


def assert_same_bits(fused, eager):
    assert fused.keys() == eager.keys()
    assert [name for name in eager if fused[name] != eager[name]] == []


@contextlib.contextmanager
def threads(count):
    before = tinytorch.get_num_threads()
    tinytorch.set_num_threads(count)
    try:
        yield
    finally:
        tinytorch.set_num_threads(before)


@pytest.fixture
def recorded():
    """Fails a test in which fused mode has recorded nothing, and so has shown nothing."""
    before = tinytorch.fuse.stats()["recorded"]
    yield
    assert tinytorch.fuse.stats()["recorded"] > before


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("model", MODELS)
def test_ways_to_fuse(recorded, model, way):
    options = {"dropout": 0.1, "clip": 1.0}
    assert_same_bits(train(way, MODELS[model], **options), train(plainly, MODELS[model], **options))


@pytest.mark.parametrize("dropout, clip, set_to_none", [(0.0, None, True), (0.2, None, False), (0.2, 0.5, True)])
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("model", MODELS)
def test_optimizers(recorded, model, optimizer, dropout, clip, set_to_none):
    options = {"optimizer": optimizer, "dropout": dropout, "clip": clip, "set_to_none": set_to_none}
    assert_same_bits(train(fused_steps, MODELS[model], **options), train(plainly, MODELS[model], **options))


@pytest.mark.parametrize("count", [1, 2, 7])
@pytest.mark.parametrize("model", WIDE)
def test_threads(recorded, model, count):
    options = {"dropout": 0.1, "clip": 1.0, "steps": 3}
    with threads(count):
        assert_same_bits(train(fused_steps, WIDE[model], **options), train(plainly, WIDE[model], **options))


@pytest.mark.parametrize("model", WIDE)
def test_both_tiers(recorded, model):
    def again():
        before = tinytorch.fuse.stats()["compiled"]
        assert_same_bits(train(fused_steps, WIDE[model], **options), eager)
        return tinytorch.fuse.stats()["compiled"] - before

    options = {"dropout": 0.3, "clip": 0.7, "steps": 3}
    eager = train(plainly, WIDE[model], **options)
    with tinytorch.config(fuse_hot=-1):
        again()  # interpreted, but for programs that earlier tests have made hot
    with tinytorch.config(fuse_hot=0):
        again()  # while kernels are being compiled
        assert tinytorch.fuse.wait(300)
        assert again() > 0


def run_example(name, *options, **environment):
    """What examples/``name``.py prints, without times and file names."""
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / f"{name}.py"), *options],
        capture_output=True,
        text=True,
        env=os.environ | environment,
    )
    assert "Traceback" not in done.stderr, done.stderr
    kept = [line.partition(" in ")[0] for line in done.stdout.splitlines() if "saved to" not in line]
    assert any("accuracy" in line for line in kept), done.stdout
    return kept


@pytest.mark.parametrize("name, option, steps", [("digits", "--epochs", "2"), ("gpt", "--steps", "40")])
def test_programs_print_the_same(tmp_path, name, option, steps):
    for needed in ("matplotlib", "sklearn", "tqdm"):
        pytest.importorskip(needed)
    options = [option, steps, "--out", str(tmp_path / "curves.png")]
    eager = run_example(name, *options)
    assert run_example(name, *options, "--fuse") == eager
    assert run_example(name, *options, TINYTORCH_FUSE="1") == eager
