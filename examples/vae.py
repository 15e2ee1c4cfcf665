"""A variational autoencoder of handwritten digits, and a map of what its two latent numbers mean.

    python examples/vae.py
    python examples/vae.py --fuse --amp --device cuda

The encoder maps an image to a normal distribution of a few numbers z, the decoder maps z back to an image (Kingma and
Welling 2013, arXiv:1312.6114). The loss is a bound on the images' log-likelihood: how many nats an image costs that is
sent through z. With two numbers, the plane of z can be drawn: the picture shows the decoder's image at each place.
"""

import sys

import common

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

#: Standard deviation of a pixel about the decoder's, as the loss sees it: smaller, z says more about the image.
DEVIATION = 0.15
#: Nats per image of the test set. With every image taken for the mean of all it is 68.
REQUIRED_LOSS = 52


class VAE(nn.Module):
    """64 pixels, a hidden layer, the mean and the logarithm of the variance of z, and the same way back."""

    def __init__(self, latent=2, width=256):
        super().__init__()
        self.encode = nn.Sequential(
            nn.Flatten(),
            nn.Linear(64, width),
            nn.SiLU(),
            nn.Linear(width, width),
            nn.SiLU(),
            nn.Linear(width, 2 * latent),
        )
        self.decode = nn.Sequential(
            nn.Linear(latent, width), nn.SiLU(), nn.Linear(width, width), nn.SiLU(), nn.Linear(width, 64), nn.Sigmoid()
        )

    def forward(self, images):
        """The decoded image, and the distribution that z was drawn from."""
        mean, log_variance = self.encode(images).chunk(2, dim=1)
        # z = mean + deviation * noise: written so, the sample has a derivative by mean and deviation.
        z = mean + torch.exp(0.5 * log_variance) * torch.randn_like(mean)
        return self.decode(z), mean, log_variance


def loss_of(model, images):
    """Minus the evidence lower bound, in nats per image."""
    decoded, mean, log_variance = model(images)
    # Minus the logarithm of the normal density of the pixels, but for a constant.
    reconstruction = ((decoded - images.flatten(1)) ** 2).sum(dim=1) / (2 * DEVIATION**2)
    # The divergence of N(mean, variance) from N(0, 1), which is what the decoder's z are drawn from later.
    divergence = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(dim=1)
    return (reconstruction + divergence).mean()


@torch.no_grad()
def evaluate(model, images, samples=16):
    """The loss on images never seen, over some samples of z for each."""
    return loss_of(model, images.repeat(samples, 1, 1, 1)).item()


@torch.no_grad()
def map_of_the_plane(model, device, side=16):
    """The decoder's images on a grid whose places are equally probable under N(0, 1)."""
    axis = torch.special.ndtri(torch.linspace(0.02, 0.98, side, device=device))
    z = torch.cartesian_prod(axis, axis)
    if model.decode[0].in_features > 2:  # the others at their mean
        z = F.pad(z, (0, model.decode[0].in_features - 2))
    return model.decode(z).view(-1, 1, 8, 8)


def main(arguments=None):
    options = common.parser(__doc__, steps=3000, batch_size=128, lr=2e-3, latent=2, width=256).parse_args(arguments)
    torch.manual_seed(options.seed)
    train, _, test, _ = (tensor.to(options.device) for tensor in common.digits())
    model = VAE(options.latent, options.width).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.total)
    print(common.parameters_of(model))

    run = common.Run(options, model=model, optimizer=optimizer, schedule=schedule)
    for _ in run:
        images = train[torch.randint(len(train), (options.batch_size,), device=options.device)]
        with run.fused():
            with run.autocast():
                loss = loss_of(model, images)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        run.log(loss=loss.item())

    loss = evaluate(model, test)
    common.save_grid(map_of_the_plane(model, options.device), options.out, columns=16)
    return run.finish(f"test loss {loss:.2f} nats", loss <= REQUIRED_LOSS)


if __name__ == "__main__":
    sys.exit(main().exit_code)
