"""What the examples share: options, fused mode and autocast, checkpoints, progress, data, and pictures.

A program's own part is its model, its training step and what it measures:

    options = common.parser(__doc__, steps=1000, lr=1e-3).parse_args()
    torch.manual_seed(options.seed)
    ...
    run = common.Run(options, model=model, optimizer=optimizer)
    for step in run:                      # shows progress, saves checkpoints, goes on from one
        with run.fused():                 # --fuse
            with run.autocast():          # --amp
                loss = ...
            loss.backward()
            optimizer.step()
        run.log(loss=loss.item())
    return run.finish("what was reached", reached_enough)
"""

import argparse
import contextlib
import math
import pathlib
import sys
import sysconfig
import time

from matplotlib.figure import Figure
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from tqdm import tqdm

import tinytorch as torch
from tinytorch.nn import functional as F


def parser(description, *, steps=None, epochs=None, **settings):
    """The options of every example, and ``--name`` with its default for each of the ``settings``."""
    name = pathlib.Path(sys.argv[0]).stem
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    unit, total = ("epochs", epochs) if steps is None else ("steps", steps)
    options.add_argument(f"--{unit}", type=int, default=total, dest="total", help=f"default: {total}")
    for setting, default in settings.items():
        flag = "--" + setting.replace("_", "-")
        options.add_argument(flag, type=type(default), default=default, help=f"default: {default}")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--device", default="cpu", help='where to train: "cpu" or "cuda"')
    options.add_argument("--fuse", action="store_true", help="train in fused mode: faster, and the same losses")
    options.add_argument("--amp", action="store_true", help="mixed precision: products and convolutions in bfloat16")
    options.add_argument("--checkpoint", metavar="FILE", help="save the training there; go on from it if it exists")
    options.add_argument("--save-every", type=int, metavar="N", help=f"{unit} from one checkpoint to the next")
    options.add_argument("--out", default=f"{name}.png", help="where to save the picture")
    options.set_defaults(unit=unit)
    return options


class Run:
    """One training: a loop over its steps (or epochs) that shows progress, keeps what is logged, and can be resumed.

    ``parts`` are all that a step changes, by name: modules, optimizers, schedules, anything with a ``state_dict``.
    With these and the states of the random number generators a checkpoint has all of a training: a program that is
    killed and started again computes the bits that it would have.
    """

    def __init__(self, options, **parts):
        self.options = options
        self.parts = parts
        self.done = 0
        self.history = {}
        self.seconds = 0.0
        self.exit_code = 0
        if options.checkpoint and pathlib.Path(options.checkpoint).exists():
            self.load(options.checkpoint)

    def __iter__(self):
        every = self.options.save_every or (100 if self.options.unit == "steps" else 1)
        total = self.options.total
        start = time.perf_counter()
        with tqdm(initial=self.done, total=total, unit=self.options.unit[:-1]) as progress:
            for step in range(self.done, total):
                yield step
                self.done = step + 1
                progress.set_postfix(
                    {name: f"{values[-1]:.4g}" for name, values in self.history.items()}, refresh=False
                )
                progress.update()
                if self.options.checkpoint and (self.done % every == 0 or self.done == total):
                    self.save(self.options.checkpoint)
        self.seconds = time.perf_counter() - start

    def fused(self):
        """Fused mode, with ``--fuse``."""
        return torch.fuse() if self.options.fuse else contextlib.nullcontext()

    def autocast(self):
        """Mixed precision, with ``--amp``. bfloat16 has float32's range: no gradient needs scaling."""
        kind = torch.device(self.options.device).type
        return torch.autocast(kind, dtype=torch.bfloat16, enabled=self.options.amp)

    def log(self, **values):
        """Append numbers to the history, each to the list of its name."""
        for name, value in values.items():
            self.history.setdefault(name, []).append(value)

    def save(self, path):
        """Write a checkpoint. The file is replaced when the new one is whole: a kill leaves the old one or the new."""
        random = {"cpu": torch.get_rng_state()}
        if torch.device(self.options.device).type == "cuda":
            random["cuda"] = torch.cuda.get_rng_state(self.options.device)
        checkpoint = {
            "options": vars(self.options),
            "done": self.done,
            "history": self.history,
            "random": random,
            "parts": {name: part.state_dict() for name, part in self.parts.items()},
        }
        torch.save(checkpoint, path)

    def load(self, path):
        """Go on from a checkpoint."""
        checkpoint = torch.load(path, map_location="cpu")
        for name, part in self.parts.items():
            part.load_state_dict(checkpoint["parts"][name])
        self.done, self.history = checkpoint["done"], checkpoint["history"]
        torch.set_rng_state(checkpoint["random"]["cpu"])
        if "cuda" in checkpoint["random"]:
            torch.cuda.set_rng_state(checkpoint["random"]["cuda"], self.options.device)
        print(f"going on from {path}, which has {self.done} {self.options.unit}")

    def finish(self, reached, enough):
        """Print what was reached; the exit code is 1 if that is not enough."""
        print(f"{reached} after {self.done} {self.options.unit} in {self.seconds:.1f} s")
        print(f"picture saved to {self.options.out}")
        self.exit_code = 0 if enough else 1
        return self


def warmup_and_cosine(optimizer, steps):
    """The learning rate: up in a straight line for a tenth of the steps, then down to zero along a cosine."""
    warmup = max(1, steps // 10)

    def share(step):
        if step < warmup:
            return (step + 1) / warmup
        return 0.5 * (1 + math.cos(math.pi * (step - warmup) / max(1, steps - warmup)))

    return torch.optim.lr_scheduler.LambdaLR(optimizer, share)


def parameters_of(*modules):
    """How many parameters the modules have, as text."""
    return f"{sum(p.numel() for module in modules for p in module.parameters()):,} parameters"


def digits(size=8, seed=0):
    """The UCI handwritten digits that ship inside scikit-learn: images and labels for training, and for testing.

    1,437 and 360 images, (n, 1, size, size) with pixels from 0 to 1; they have 8 x 8 and are interpolated to more.
    """
    images, labels = load_digits(return_X_y=True)
    images = (images / 16).astype("float32").reshape(-1, 1, 8, 8)
    arrays = train_test_split(images, labels, test_size=0.2, stratify=labels, random_state=seed)
    train_images, test_images, train_labels, test_labels = map(torch.from_numpy, arrays)
    if size != 8:
        train_images, test_images = (
            F.interpolate(images, size=size, mode="bilinear") for images in (train_images, test_images)
        )
    return train_images, train_labels, test_images, test_labels


def library_text(characters):
    """So much of the text of Python's own standard library, ASCII only."""
    text, size = [], 0
    for path in sorted(pathlib.Path(sysconfig.get_path("stdlib")).glob("[a-z]*.py")):
        source = path.read_text(encoding="utf-8")
        if size < characters and source.isascii():
            text.append(source)
            size += len(source)
    return "".join(text)[:characters]


@torch.no_grad()
def told_apart(real, made):
    """How well a nearest neighbour tells as many real from made images: 0.5, by chance alone, is the best.

    Each image is taken for what its nearest neighbour among all others is (Lopez-Paz and Oquab 2017,
    arXiv:1610.06545). Images that are all different from real ones, or copies of a few, give 1 or nearly so.
    """
    images = torch.cat([real, made]).flatten(1).float()
    distances = torch.cdist(images, images)
    nearest = distances.fill_diagonal_(float("inf")).argmin(dim=1)
    is_made = torch.arange(len(images), device=images.device) >= len(real)
    return (is_made[nearest] == is_made).float().mean().item()


def save_grid(images, path, columns=10):
    """Save (n, 1, height, width) images, with values from 0 to 1, in rows of ``columns`` as one picture."""
    rows = len(images) // columns
    _, _, height, width = images.shape
    images = F.pad(images.detach().float().cpu()[: rows * columns], (1, 1, 1, 1), value=0.2)
    grid = images.view(rows, columns, height + 2, width + 2).transpose(1, 2).flatten(2).flatten(0, 1)
    figure = Figure(figsize=(columns * 0.6, rows * 0.6))
    axes = figure.add_axes((0, 0, 1, 1))
    axes.imshow(grid.clamp(0, 1).numpy(), cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    axes.set_axis_off()
    figure.savefig(path, dpi=150)


def save_curves(path, curves, logarithmic=()):
    """Save {title: numbers, or {x: number}} as one curve each, side by side."""
    figure = Figure(figsize=(4.5 * len(curves), 3.5), layout="constrained")
    for axes, (title, values) in zip(figure.subplots(1, len(curves), squeeze=False)[0], curves.items()):
        if not isinstance(values, dict):
            values = dict(enumerate(values, 1))
        axes.plot(list(values.keys()), list(values.values()))
        axes.set(title=title, yscale="log" if title in logarithmic else "linear")
    figure.savefig(path, dpi=150)
