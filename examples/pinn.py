"""A physics-informed network learns the heat equation, from nothing but the equation.

    python examples/pinn.py

The network u(x, t) is wanted to satisfy u_t = a u_xx; the loss is the mean square of u_t - a u_xx at random points
(Raissi et al. 2017, arXiv:1711.10561). The network's derivatives by its inputs come from
``autograd.grad(..., create_graph=True)``: they are part of the graph, so that the loss, which holds a second
derivative, is differentiated once more, by the parameters. The picture compares u with the exact solution.
"""

import math
import sys

import common
from matplotlib.figure import Figure

import tinytorch as torch
from tinytorch import nn
from tinytorch.autograd import grad

DIFFUSIVITY = 0.1
#: The relative L2 error that u may have on a grid.
TOLERANCE = 1.5e-2


def exact(x, t):
    """Two sines, as u_t = a u_xx lets them decay while the ends are held at zero: the higher one nine times as fast."""
    return sum(
        amplitude * torch.exp(-DIFFUSIVITY * (k * math.pi) ** 2 * t) * torch.sin(k * math.pi * x)
        for k, amplitude in ((1, 1.0), (3, 0.5))
    )


class HeatNetwork(nn.Module):
    """u(x, t) on the unit square, from a small network N.

    u = (the initial values) + t x (1 - x) N(x, t) has the right initial and boundary values whatever N is, so that
    nothing but the equation itself is left to learn.
    """

    def __init__(self, width=32):
        super().__init__()
        self.network = nn.Sequential(
            nn.Linear(2, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )

    def forward(self, x, t):
        return exact(x, torch.zeros_like(t)) + t * x * (1 - x) * self.network(torch.cat([x, t], dim=1))


def residual(u, x, t):
    """u_t - a u_xx at every point, as a part of the graph.

    A point's u depends on that point alone, so the gradient of the sum over all points holds the derivative
    at each of them.
    """
    u_x, u_t = grad(u(x, t).sum(), (x, t), create_graph=True)
    (u_xx,) = grad(u_x.sum(), x, create_graph=True)
    return u_t - DIFFUSIVITY * u_xx


@torch.no_grad()
def on_grid(u, device, side=51):
    """u and the exact solution on a grid, (side, side) each: x from left to right, t upwards."""
    axis = torch.linspace(0, 1, side, device=device)
    t, x = (a.reshape(-1, 1) for a in torch.meshgrid(axis, axis, indexing="ij"))
    return u(x, t).view(side, side), exact(x, t).view(side, side)


def save_picture(learnt, wanted, path):
    """The learnt solution, the exact one, and their difference."""
    figure = Figure(figsize=(11, 3.2), layout="constrained")
    for axes, title, values in zip(
        figure.subplots(1, 3), ("learnt", "exact", "difference"), (learnt, wanted, learnt - wanted)
    ):
        image = axes.imshow(values.cpu().numpy(), origin="lower", extent=(0, 1, 0, 1))
        axes.set(title=title, xlabel="x", ylabel="t")
        figure.colorbar(image, ax=axes)
    figure.savefig(path, dpi=150)


def main(arguments=None):
    options = common.parser(__doc__, steps=6000, batch_size=256, lr=1e-2, width=32).parse_args(arguments)
    torch.manual_seed(options.seed)
    u = HeatNetwork(options.width).to(options.device)
    optimizer = torch.optim.Adam(u.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.total)
    print(common.parameters_of(u))

    run = common.Run(options, u=u, optimizer=optimizer, schedule=schedule)
    for _ in run:
        x, t = torch.rand(2, options.batch_size, 1, device=options.device)
        with run.fused():
            with run.autocast():
                loss = (residual(u, x.requires_grad_(), t.requires_grad_()) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        run.log(residual=loss.item())

    learnt, wanted = on_grid(u, options.device)
    error = ((learnt - wanted).norm() / wanted.norm()).item()
    save_picture(learnt, wanted, options.out)
    return run.finish(f"relative L2 error {error:.1e}", error <= TOLERANCE)


if __name__ == "__main__":
    sys.exit(main().exit_code)
