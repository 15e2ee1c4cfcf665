"""A Wasserstein GAN with gradient penalty draws handwritten digits: second derivatives in every step of the critic.

    python examples/wgan_gp.py
    python examples/wgan_gp.py --fuse

The critic's mean over real images less that over made ones estimates the distance of the two distributions, if its
slope is nowhere more than 1. So the loss has a term that holds the norm of its gradient by its input to 1, on the way
from made images to real ones (Gulrajani et al. 2017, arXiv:1704.00028); to train on it is to differentiate a gradient.
The picture shows made images. They are measured by how well a nearest neighbour tells them from real ones.
"""

import sys

import common

import tinytorch as torch
from tinytorch import nn
from tinytorch.autograd import grad

LATENT = 32
#: Steps of the critic for one of the generator, and the weight of the gradient penalty.
CRITIC_STEPS, PENALTY = 5, 10.0
#: 0.5 is a nearest neighbour's chance with images just like real ones; those of an untrained generator give 1.
REQUIRED_TOLD_APART = 0.85


def network(inputs, width, outputs, *last):
    """Two hidden layers."""
    return nn.Sequential(
        nn.Linear(inputs, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, width),
        nn.LeakyReLU(0.2),
        nn.Linear(width, outputs),
        *last,
    )


def gradient_penalty(critic, real, made):
    """How far the norm of the critic's gradient is from 1, at one random place between each real and made image."""
    weight = torch.rand(len(real), 1, device=real.device)
    between = (weight * real + (1 - weight) * made).requires_grad_()
    (slope,) = grad(critic(between).sum(), between, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean()


def critic_step(run, generator, critic, optimizer, real):
    """One update of the critic; return its estimate of the distance."""
    with run.autocast():
        with torch.no_grad():
            made = generator(torch.randn(len(real), LATENT, device=real.device))
        distance = critic(real).mean() - critic(made).mean()
        loss = PENALTY * gradient_penalty(critic, real, made) - distance
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return distance.detach()


def generator_step(run, generator, critic, optimizer, count):
    """One update of the generator, which wants the critic to like what it makes."""
    device = run.options.device
    with run.autocast():
        loss = -critic(generator(torch.randn(count, LATENT, device=device))).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def main(arguments=None):
    options = common.parser(__doc__, steps=3000, batch_size=64, lr=5e-4, width=256).parse_args(arguments)
    torch.manual_seed(options.seed)
    train, _, test, _ = (tensor.to(options.device) for tensor in common.digits())
    train, test = train.flatten(1), test.flatten(1)
    generator = network(LATENT, options.width, 64, nn.Sigmoid()).to(options.device)
    critic = network(64, options.width, 1).to(options.device)
    optimizers = [torch.optim.Adam(m.parameters(), lr=options.lr, betas=(0.5, 0.9)) for m in (generator, critic)]
    schedules = [torch.optim.lr_scheduler.LinearLR(o, 1.0, 0.1, total_iters=options.total) for o in optimizers]
    print(common.parameters_of(generator, critic))

    run = common.Run(
        options,
        generator=generator,
        critic=critic,
        generator_optimizer=optimizers[0],
        critic_optimizer=optimizers[1],
        generator_schedule=schedules[0],
        critic_schedule=schedules[1],
    )
    for _ in run:
        with run.fused():
            for _ in range(CRITIC_STEPS):
                real = train[torch.randint(len(train), (options.batch_size,), device=options.device)]
                distance = critic_step(run, generator, critic, optimizers[1], real)
            generator_step(run, generator, critic, optimizers[0], options.batch_size)
        for schedule in schedules:
            schedule.step()
        run.log(distance=distance.item())

    with torch.no_grad():
        made = generator(torch.randn(len(test), LATENT, device=options.device))
    share = common.told_apart(test, made)
    common.save_grid(made[:100].view(-1, 1, 8, 8), options.out)
    return run.finish(f"told from real images: {share:.1%}", share <= REQUIRED_TOLD_APART)


if __name__ == "__main__":
    sys.exit(main().exit_code)
