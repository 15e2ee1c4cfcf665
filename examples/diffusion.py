"""A diffusion model draws the digits it is asked for, by taking noise away little by little.

    python examples/diffusion.py
    python examples/diffusion.py --device cuda --amp --fuse

Noise is added to an image in many steps, until nothing else is left; a network learns to tell, of a noisy image, its
noise (Ho et al. 2020, arXiv:2006.11239, with the schedule of Nichol and Dhariwal 2021). Drawing goes the other way,
from noise alone. The network is a small U-Net that is told the step and the digit; images are drawn with a moving
average of its weights. The picture has a column for each digit.
"""

import math
import sys

import common

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F
from tinytorch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

#: 0.5 is a nearest neighbour's chance with images just like real ones.
REQUIRED_TOLD_APART = 0.7


class Block(nn.Module):
    """Two convolutions, told the step and the digit between them, and their input added."""

    def __init__(self, inputs, outputs, width):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.told = nn.Linear(width, outputs)
        self.norm2, self.conv2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.shortcut = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, told):
        h = self.conv1(F.silu(self.norm1(x))) + self.told(told)[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(h)))


class UNet(nn.Module):
    """The noise in images of 8 x 8: down to 4 x 4 places and back, where the finer features are joined again."""

    def __init__(self, width, classes=10):
        super().__init__()
        self.width = width
        self.digit = nn.Embedding(classes, width)
        self.tell = nn.Sequential(nn.Linear(width, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU())
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.fine = Block(width, width, width)
        self.down = nn.Conv2d(width, 2 * width, 3, stride=2, padding=1)
        self.coarse = Block(2 * width, 2 * width, width)
        self.up = nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(2 * width, width, 3, padding=1))
        self.joined = Block(2 * width, width, width)
        self.last = nn.Sequential(nn.GroupNorm(8, width), nn.SiLU(), nn.Conv2d(width, 1, 3, padding=1))

    def forward(self, images, steps, digits):
        rates = torch.exp(torch.linspace(0, -math.log(1000), self.width // 2, device=images.device))
        angles = steps[:, None].float() * rates
        told = self.tell(torch.cat([angles.sin(), angles.cos()], dim=1) + self.digit(digits))
        fine = self.fine(self.first(images), told)
        coarse = self.coarse(self.down(fine), told)
        return self.last(self.joined(torch.cat([fine, self.up(coarse)], dim=1), told))


class Diffusion:
    """How much of the image and how much noise there is after each step."""

    def __init__(self, steps, device):
        self.steps, self.device = steps, device
        share = torch.cos((torch.linspace(0, 1, steps + 1) + 0.008) / 1.008 * math.pi / 2) ** 2
        self.beta = (1 - share[1:] / share[:-1]).clamp(max=0.999).to(device)  # what a step replaces by noise
        self.left = torch.cumprod(1 - self.beta, dim=0)  # the image's share of the variance after it

    def loss(self, model, images, digits):
        """The mean squared error of the noise that the model sees in images after random numbers of steps."""
        steps = torch.randint(self.steps, (len(images),), device=self.device)
        noise = torch.randn_like(images)
        left = self.left[steps].view(-1, 1, 1, 1)
        return F.mse_loss(model(left.sqrt() * images + (1 - left).sqrt() * noise, steps, digits).float(), noise)

    @torch.no_grad()
    def draw(self, model, digits, size=8):
        """Images of the digits, from noise."""
        x = torch.randn(len(digits), 1, size, size, device=self.device)
        for step in range(self.steps - 1, -1, -1):
            noise = model(x, torch.full((len(digits),), step, device=self.device), digits)
            beta, left = self.beta[step], self.left[step]
            # The image as it is guessed now, kept within its range; then the step before is drawn, given both.
            guess = ((x - (1 - left).sqrt() * noise) / left.sqrt()).clamp(-1, 1)
            before = self.left[step - 1] if step else torch.ones_like(left)
            x = (before.sqrt() * beta * guess + (1 - beta).sqrt() * (1 - before) * x) / (1 - left)
            if step:
                x = x + (beta * (1 - before) / (1 - left)).sqrt() * torch.randn_like(x)
        return x


def main(arguments=None):
    parser = common.parser(__doc__, steps=1500, batch_size=64, lr=2e-3, width=32, noise_steps=100)
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    train, labels, test, test_labels = (tensor.to(options.device) for tensor in common.digits())
    model = UNet(options.width).to(options.device)
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.995))
    optimizer = torch.optim.AdamW(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.total)
    diffusion = Diffusion(options.noise_steps, options.device)
    print(common.parameters_of(model))

    run = common.Run(options, model=model, average=average, optimizer=optimizer, schedule=schedule)
    for _ in run:
        batch = torch.randint(len(train), (options.batch_size,), device=options.device)
        with run.fused():
            with run.autocast():
                loss = diffusion.loss(model, 2 * train[batch] - 1, labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            average.update_parameters(model)
        schedule.step()
        run.log(loss=loss.item())

    drawn = (diffusion.draw(average, test_labels) + 1) / 2
    common.save_grid(drawn[torch.argsort(test_labels, stable=True)][: 340 - 340 % 10], options.out, columns=20)
    share = common.told_apart(test, drawn)
    return run.finish(f"told from real images: {share:.1%}", share <= REQUIRED_TOLD_APART)


if __name__ == "__main__":
    sys.exit(main().exit_code)
