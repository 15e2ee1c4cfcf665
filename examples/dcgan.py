"""A deep convolutional GAN draws handwritten digits of 16 x 16 pixels.

    python examples/dcgan.py
    python examples/dcgan.py --device cuda --amp --fuse

A generator of transposed convolutions against a discriminator of strided ones, both with batch norm (Radford et al.
2015, arXiv:1511.06434). The discriminator learns to tell real from made images, the generator to be taken for real.
The picture shows made images. They are measured by how well a nearest neighbour tells them from real ones.
"""

import sys

import common

import tinytorch as torch
from tinytorch import nn
from tinytorch.nn import functional as F

LATENT = 32
#: 0.5 is a nearest neighbour's chance with images just like real ones; those of an untrained generator give 1.
REQUIRED_TOLD_APART = 0.9


def make_generator(width):
    """LATENT numbers become 4 x 4, 8 x 8 and then 16 x 16 places."""
    return nn.Sequential(
        nn.Unflatten(1, (LATENT, 1, 1)),
        nn.ConvTranspose2d(LATENT, 2 * width, 4, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(2 * width, width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(width),
        nn.ReLU(inplace=True),
        nn.ConvTranspose2d(width, 1, 4, stride=2, padding=1),
        nn.Tanh(),
    )


def make_discriminator(width):
    """The way back; the number is large for what is taken for real."""
    return nn.Sequential(
        nn.Conv2d(1, width, 4, stride=2, padding=1),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(width, 2 * width, 4, stride=2, padding=1, bias=False),
        nn.BatchNorm2d(2 * width),
        nn.LeakyReLU(0.2, inplace=True),
        nn.Conv2d(2 * width, 1, 4),
        nn.Flatten(0),
    )


def initialise(module):
    """The paper's: weights of deviation 0.02, scales of batch norm about 1."""
    if isinstance(module, (nn.Conv2d, nn.ConvTranspose2d)):
        nn.init.normal_(module.weight, 0.0, 0.02)
    elif isinstance(module, nn.BatchNorm2d):
        nn.init.normal_(module.weight, 1.0, 0.02)


def taken_for(logits, real, smooth=0.0):
    """The loss of logits that should say real, or made; ``smooth`` keeps a discriminator from being too sure."""
    wanted = torch.full_like(logits, 1 - smooth if real else 0.0)
    return F.binary_cross_entropy_with_logits(logits, wanted)


def train_step(run, generator, discriminator, optimizers, real):
    """One update of each; return their losses."""
    for_generator, for_discriminator = optimizers
    noise = torch.randn(len(real), LATENT, device=real.device)

    with run.autocast():
        made = generator(noise)
        discriminator_loss = taken_for(discriminator(real), True, smooth=0.1) + taken_for(
            discriminator(made.detach()), False
        )
    for_discriminator.zero_grad()
    discriminator_loss.backward()
    for_discriminator.step()

    with run.autocast():
        generator_loss = taken_for(discriminator(made), True)
    for_generator.zero_grad()
    generator_loss.backward()
    for_generator.step()
    return generator_loss.item(), discriminator_loss.item()


@torch.no_grad()
def draw(generator, count, device):
    """Made images, with pixels from 0 to 1."""
    generator.eval()
    made = generator(torch.randn(count, LATENT, device=device))
    generator.train()
    return (made + 1) / 2


def main(arguments=None):
    options = common.parser(__doc__, steps=1500, batch_size=64, lr=4e-4, width=32).parse_args(arguments)
    torch.manual_seed(options.seed)
    train, _, test, _ = (tensor.to(options.device) for tensor in common.digits(size=16))
    generator = make_generator(options.width).apply(initialise).to(options.device)
    discriminator = make_discriminator(options.width).apply(initialise).to(options.device)
    optimizers = [
        torch.optim.Adam(m.parameters(), lr=options.lr, betas=(0.5, 0.999)) for m in (generator, discriminator)
    ]
    print(common.parameters_of(generator, discriminator))

    run = common.Run(
        options,
        generator=generator,
        discriminator=discriminator,
        generator_optimizer=optimizers[0],
        discriminator_optimizer=optimizers[1],
    )
    for _ in run:
        real = 2 * train[torch.randint(len(train), (options.batch_size,), device=options.device)] - 1
        with run.fused():
            losses = train_step(run, generator, discriminator, optimizers, real)
        run.log(generator=losses[0], discriminator=losses[1])

    made = draw(generator, len(test), options.device)
    share = common.told_apart(test, made)
    common.save_grid(made[:100], options.out)
    return run.finish(f"told from real images: {share:.1%}", share <= REQUIRED_TOLD_APART)


if __name__ == "__main__":
    sys.exit(main().exit_code)
