"""A vision transformer on handwritten digits: mixed precision, eager against fused, a trace, and distillation.

    python examples/vit.py
    python examples/vit.py --amp --half float16        # float16 has a small range: the gradients are scaled
    python examples/vit.py --compare                   # a step eagerly and fused: do they agree, what does each take?
    python examples/vit.py --fuse --trace log          # then: tensorboard --logdir log

A small network learns more from a larger one's probabilities than from labels alone (Hinton et al. 2015,
arXiv:1503.02531). Here the larger one, and the loss that compares both, are part of the fused step:

    python examples/vit.py --width 128 --checkpoint teacher.pt
    python examples/vit.py --width 32 --layers 2 --teacher teacher.pt --fuse

The digits are enlarged to 32 x 32 pixels and cut into patches of 4 x 4, which a transformer reads as words (Dosovitskiy
et al. 2020, arXiv:2010.11929). The picture shows the loss and the test accuracy.
"""

import contextlib
import sys

import common

import tinytorch as torch
from tinytorch import nn, profiler
from tinytorch.nn import functional as F

REQUIRED_ACCURACY = 0.94
SIZE, PATCH = 32, 4
#: Both networks' probabilities are compared at this temperature, where the teacher's doubts show.
TEMPERATURE = 3.0


class Block(nn.Module):
    """Attention among all patches and a two-layer perceptron, each normalised first and added to its input."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.project = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v)
        x = x + self.project(attended.transpose(1, 2).reshape(batch, length, width))
        return x + self.mlp(self.norm2(x))


class ViT(nn.Module):
    """Patches and a token for the class, with learnt positions; the class is read from its token."""

    def __init__(self, width=64, heads=4, layers=4, classes=10):
        super().__init__()
        self.patches = nn.Conv2d(1, width, PATCH, stride=PATCH)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.positions = nn.Parameter(0.02 * torch.randn(1, (SIZE // PATCH) ** 2 + 1, width))
        self.blocks = nn.Sequential(*[Block(width, heads) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        self.classify = nn.Linear(width, classes)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.positions
        return self.classify(self.norm(self.blocks(x))[:, 0])


def load_teacher(path, device):
    """The network of another run's checkpoint, which says how wide it was."""
    checkpoint = torch.load(path, map_location="cpu")
    options = checkpoint["options"]
    teacher = ViT(options["width"], options["heads"], options["layers"])
    teacher.load_state_dict(checkpoint["parts"]["model"])
    return teacher.requires_grad_(False).eval().to(device)


def loss_of(model, teacher, images, labels):
    """Cross-entropy with the labels and, if there is a teacher, its divergence from the teacher's probabilities."""
    logits = model(images)
    loss = F.cross_entropy(logits, labels, label_smoothing=0.1)
    if teacher is None:
        return loss
    wanted = F.log_softmax(teacher(images) / TEMPERATURE, dim=1)
    divergence = F.kl_div(F.log_softmax(logits / TEMPERATURE, dim=1), wanted, reduction="batchmean", log_target=True)
    return 0.5 * loss + 0.5 * TEMPERATURE**2 * divergence


class Trainer:
    """The model and all that a step of its training needs."""

    def __init__(self, options, model, teacher):
        self.options, self.model, self.teacher = options, model, teacher
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr, weight_decay=0.05)
        self.schedule = common.warmup_and_cosine(self.optimizer, options.total)
        self.kind = torch.device(options.device).type
        # In float16, small gradients would be 0: the loss is multiplied by a large number, gradients divided by it.
        self.scaler = torch.amp.GradScaler(self.kind, enabled=options.amp and options.half == "float16")

    def step(self, images, labels):
        """One update; return the loss before it."""
        with torch.autocast(self.kind, dtype=getattr(torch, self.options.half), enabled=self.options.amp):
            loss = loss_of(self.model, self.teacher, images, labels)
        self.optimizer.zero_grad()
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.item()


def tracing(folder):
    """A profiler that writes three steps as a trace for TensorBoard, after five it leaves alone and two to warm up."""
    if folder is None:
        return contextlib.nullcontext()
    return profiler.profile(
        schedule=profiler.schedule(wait=5, warmup=2, active=3, repeat=1),
        on_trace_ready=profiler.tensorboard_trace_handler(folder),
        record_shapes=True,
    )


@torch.no_grad()
def accuracy(model, images, labels):
    """The share of images that the model gets right."""
    right = [model(x).argmax(dim=1) == y for x, y in zip(images.split(120), labels.split(120))]
    return torch.cat(right).float().mean().item()


def main(arguments=None):
    parser = common.parser(__doc__, steps=400, batch_size=64, lr=1e-3, width=64, heads=4, layers=4)
    parser.add_argument("--half", choices=["bfloat16", "float16"], default="bfloat16", help="the type of --amp")
    parser.add_argument("--teacher", metavar="FILE", help="learn from the network in this checkpoint, too")
    parser.add_argument("--trace", metavar="FOLDER", help="write a trace of three steps there, for TensorBoard")
    parser.add_argument("--compare", action="store_true", help="only compare a step eagerly and in fused mode")
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    train, labels, test, test_labels = (x.to(options.device) for x in common.digits(size=SIZE))
    model = ViT(options.width, options.heads, options.layers).to(options.device)
    teacher = load_teacher(options.teacher, options.device) if options.teacher else None
    trainer = Trainer(options, model, teacher)
    print(common.parameters_of(model))

    run = common.Run(
        options, model=model, optimizer=trainer.optimizer, schedule=trainer.schedule, scaler=trainer.scaler
    )
    if options.compare:
        print(profiler.compare(trainer.step, train[: options.batch_size], labels[: options.batch_size]))
        return run

    with tracing(options.trace) as trace:
        for step in run:
            batch = torch.randint(len(train), (options.batch_size,), device=options.device)
            with run.fused():
                loss = trainer.step(train[batch], labels[batch])
            trainer.schedule.step()
            run.log(loss=loss)
            if (step + 1) % 50 == 0 or step + 1 == options.total:
                run.log(accuracy=accuracy(model, test, test_labels))
            if trace is not None:
                trace.step()

    common.save_curves(
        options.out, {"training loss": run.history["loss"], "test accuracy, every 50 steps": run.history["accuracy"]}
    )
    reached = run.history["accuracy"][-1]
    return run.finish(f"test accuracy {reached:.2%}", reached >= REQUIRED_ACCURACY)


if __name__ == "__main__":
    sys.exit(main().exit_code)
