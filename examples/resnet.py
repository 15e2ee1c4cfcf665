"""ResNet-18 on handwritten digits, enlarged to 32 x 32 pixels.

    python examples/resnet.py
    python examples/resnet.py --width 16               # a sixteenth of the work
    python examples/resnet.py --device cuda --amp --fuse

The network is that of He et al. 2015 (arXiv:1512.03385) as it is used for small images: the first convolution is
3 x 3 and keeps the size. Eleven million parameters are many for 1,437 images, so these are shifted by chance.
The picture shows the test images that it gets wrong (then some that it gets right), with what it takes them for.
"""

import sys

import common
from matplotlib.figure import Figure

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

REQUIRED_ACCURACY = 0.97
#: Training images are shifted by up to so many pixels.
SHIFT = 3


class Block(nn.Module):
    """Two convolutions with batch norm, and their input added to their output."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        h = F.relu(self.norm1(self.conv1(x)))
        h = self.norm2(self.conv2(h))
        return F.relu(h + self.shortcut(x))


class ResNet18(nn.Module):
    """Four stages of two blocks; each but the first halves the image and doubles the channels."""

    def __init__(self, width=64, classes=10):
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1, bias=False), nn.BatchNorm2d(width), nn.ReLU(inplace=True)
        )
        widths = [width, width, 2 * width, 4 * width, 8 * width]
        self.stages = nn.Sequential(
            *[
                nn.Sequential(Block(inputs, outputs, stride=1 if stage == 0 else 2), Block(outputs, outputs, stride=1))
                for stage, (inputs, outputs) in enumerate(zip(widths, widths[1:]))
            ]
        )
        self.classify = nn.Linear(8 * width, classes)

    def forward(self, images):
        x = self.stages(self.stem(images))
        return self.classify(x.mean(dim=(2, 3)))


def shifted(images):
    """The images, all moved by the same random number of pixels; what leaves on one side is blank on the other."""
    down, right = (torch.randint(-SHIFT, SHIFT + 1, (2,))).tolist()
    return F.pad(images, (right, -right, down, -down))


@torch.no_grad()
def predict(model, images):
    """The most likely class of each image; with the running means of batch norm, not the batch's."""
    model.eval()
    predictions = torch.cat([model(batch).argmax(dim=1) for batch in images.split(120)])
    model.train()
    return predictions


def save_picture(images, labels, predictions, path, count=20):
    """The wrong ones first."""
    order = torch.argsort((predictions == labels).to(torch.uint8), stable=True)[:count]
    figure = Figure(figsize=(10, 2.6), layout="constrained")
    for axes, i in zip(figure.subplots(2, count // 2).flat, order.tolist()):
        axes.imshow(images[i, 0].cpu().numpy(), cmap="gray_r")
        right = predictions[i] == labels[i]
        axes.set_title(f"{predictions[i].item()}", color="black" if right else "red", fontsize=9)
        axes.set_axis_off()
    figure.savefig(path, dpi=150)


def main(arguments=None):
    options = common.parser(__doc__, steps=80, batch_size=64, lr=0.02, width=64).parse_args(arguments)
    torch.manual_seed(options.seed)
    train, labels, test, test_labels = (x.to(options.device) for x in common.digits(size=32))
    model = ResNet18(options.width).to(options.device)
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr, momentum=0.9, nesterov=True, weight_decay=5e-4)
    schedule = common.warmup_and_cosine(optimizer, options.total)
    print(common.parameters_of(model))

    run = common.Run(options, model=model, optimizer=optimizer, schedule=schedule)
    for _ in run:
        batch = torch.randint(len(train), (options.batch_size,), device=options.device)
        with run.fused():
            with run.autocast():
                loss = F.cross_entropy(model(shifted(train[batch])), labels[batch], label_smoothing=0.1)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        run.log(loss=loss.item())

    predictions = predict(model, test)
    save_picture(test, test_labels, predictions, options.out)
    accuracy = (predictions == test_labels).float().mean().item()
    return run.finish(f"test accuracy {accuracy:.2%}", accuracy >= REQUIRED_ACCURACY)


if __name__ == "__main__":
    sys.exit(main().exit_code)
