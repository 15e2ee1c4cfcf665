"""Train a classifier of handwritten digits, from data to a picture of the learning curves.

    python examples/digits.py                          # a multi-layer perceptron: seconds
    python examples/digits.py --model cnn
    python examples/digits.py --fuse                   # the same losses, from fused kernels
    python examples/digits.py --device cuda            # the same to float32 accuracy

The data are the 1,797 images of the UCI handwritten digits, 8 x 8 pixels each, that ship inside scikit-learn.
A fifth of them is held out for testing. The exit code is 1 if the test accuracy stays under 97 %.
"""

import contextlib
import sys

import common
from matplotlib.figure import Figure
from sklearn.metrics import confusion_matrix

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F
from tinytorch.utils.data import DataLoader, TensorDataset

REQUIRED_ACCURACY = 0.97
#: Standard deviation of the noise on the training images, which keeps a network from learning them by heart.
NOISE = 0.2


class MLP(nn.Module):
    """64 pixels, two hidden layers of 256, 10 classes."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Linear(64, 256),
            nn.ReLU(),
            nn.Linear(256, 256),
            nn.ReLU(),
            nn.Linear(256, 10),
        )

    def forward(self, images):
        return self.layers(images)


class CNN(nn.Module):
    """Two convolutions, the second one halving the image, and a linear classifier."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, kernel_size=3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, kernel_size=3, padding=1, stride=2)
        self.classify = nn.Linear(32 * 4 * 4, 10)

    def forward(self, images):
        x = images.view(-1, 1, 8, 8)
        x = F.relu(self.conv1(x))
        x = F.relu(self.conv2(x))
        return self.classify(x.flatten(1))


def load(seed):
    """The training and the test set; images as rows of 64 pixels from 0 to 1."""
    images, labels, test_images, test_labels = common.digits(seed=seed)
    return TensorDataset(images.flatten(1), labels), TensorDataset(test_images.flatten(1), test_labels)


def train_epoch(model, optimizer, batches, device, autocast=contextlib.nullcontext):
    """One pass over the training data; return the mean loss."""
    total = 0.0
    for images, labels in batches:
        optimizer.zero_grad()
        noisy = images + NOISE * torch.randn_like(images)  # the same noise for all devices
        with autocast():
            loss = F.cross_entropy(model(noisy.to(device)), labels.to(device))
        loss.backward()
        optimizer.step()
        total += loss.item()
    return total / len(batches)


@torch.no_grad()
def predict(model, images):
    """The most likely class of each image."""
    return model(images).argmax(dim=1)


def plot(losses, accuracies, path):
    """Save the curves of the loss and of the accuracy, epoch by epoch."""
    epochs = range(1, len(losses) + 1)
    figure = Figure(figsize=(9, 3.5), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.semilogy(epochs, losses)
    left.set(title="training loss", xlabel="epoch", ylabel="cross-entropy")
    right.plot(epochs, accuracies)
    right.axhline(REQUIRED_ACCURACY, color="gray", linestyle=":")
    right.set(title="test accuracy", xlabel="epoch", ylim=(0.8, 1.0))
    figure.savefig(path, dpi=150)


def main(arguments=None):
    parser = common.parser(__doc__, epochs=30, batch_size=32, lr=2e-3)
    parser.add_argument("--model", choices=["mlp", "cnn"], default="mlp")
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    train, test = load(options.seed)
    batches = DataLoader(train, batch_size=options.batch_size, shuffle=True)
    test_images, test_labels = (tensor.to(options.device) for tensor in test.tensors)
    model = (MLP() if options.model == "mlp" else CNN()).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)

    run = common.Run(options, model=model, optimizer=optimizer)
    for epoch in run:
        for group in optimizer.param_groups:  # large steps first, small ones to settle down
            group["lr"] = options.lr * (1 - epoch / options.total)
        with run.fused():
            loss = train_epoch(model, optimizer, batches, options.device, run.autocast)
        run.log(loss=loss, accuracy=(predict(model, test_images) == test_labels).float().mean().item())

    print("confusion matrix (a row for each true digit, a column for each predicted one):")
    print(confusion_matrix(test_labels.cpu().numpy(), predict(model, test_images).cpu().numpy()))
    plot(run.history["loss"], run.history["accuracy"], options.out)
    accuracy = run.history["accuracy"][-1]
    return run.finish(f"test accuracy {accuracy:.2%}", accuracy >= REQUIRED_ACCURACY)


if __name__ == "__main__":
    sys.exit(main().exit_code)
