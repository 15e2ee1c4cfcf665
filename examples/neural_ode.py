"""A neural ordinary differential equation learns the law of motion of a spiral; its gradient is another such equation.

    python examples/neural_ode.py

The network is the right-hand side of z' = f(z). Instead of recording every step of the solver, the gradient of the loss
by z and by the parameters is found by solving the adjoint equation backwards in time, from the end to the start, next
to z itself (Chen et al. 2018, arXiv:1806.07366): memory does not grow with the number of steps. The solver is a custom
``autograd.Function``. The picture shows the true spiral and the learnt one.
"""

import sys

import common
from matplotlib.figure import Figure

import tinytorch as torch
from tinytorch import nn

#: The mean distance of the learnt spiral from the true one.
REQUIRED_DISTANCE = 0.2
START = (2.0, 0.0)
TIME, POINTS = 10.0, 400


def runge_kutta(f, state, dt):
    """The state, a tuple of tensors, a time ``dt`` later: the classical method of order four."""

    def after(slopes, dt):
        return tuple(s + dt * k for s, k in zip(state, slopes))

    k1 = f(state)
    k2 = f(after(k1, dt / 2))
    k3 = f(after(k2, dt / 2))
    k4 = f(after(k3, dt))
    return after([(a + 2 * b + 2 * c + d) / 6 for a, b, c, d in zip(k1, k2, k3, k4)], dt)


def solve(f, z, times, dt):
    """z at so many equidistant times, the first of which is now: (times, ...)."""
    trajectory = [z]
    for _ in range(times - 1):
        (z,) = runge_kutta(lambda state: (f(state[0]),), (z,), dt)
        trajectory.append(z)
    return torch.stack(trajectory)


class AdjointSolve(torch.autograd.Function):
    """``solve``, whose gradient is found by solving backwards."""

    @staticmethod
    def forward(ctx, f, z, times, dt, *parameters):
        trajectory = solve(f, z, times, dt)  # nothing is recorded in here
        ctx.f, ctx.dt, ctx.parameters = f, dt, parameters
        ctx.save_for_backward(trajectory)
        return trajectory

    @staticmethod
    def backward(ctx, gradient):
        (trajectory,) = ctx.saved_tensors

        def slopes(state):
            """Of z, of the adjoint a (the loss's gradient by z): a' = -a df/dz, and of the parameters' gradients."""
            z, a = state[:2]
            with torch.enable_grad():
                z = z.detach().requires_grad_()
                f = ctx.f(z)
            products = torch.autograd.grad(f, (z, *ctx.parameters), a)
            return (f.detach(), *(-product for product in products))

        a = torch.zeros_like(trajectory[0])
        gradients = tuple(torch.zeros_like(p) for p in ctx.parameters)
        for i in range(len(trajectory) - 1, 0, -1):
            a = a + gradient[i]  # what the loss says of z at this time
            _, a, *gradients = runge_kutta(slopes, (trajectory[i], a, *gradients), -ctx.dt)
        return None, a + gradient[0], None, None, *gradients


class Dynamics(nn.Module):
    """z' as a network of z cubed."""

    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2, width), nn.Tanh(), nn.Linear(width, 2))
        for module in self.layers[::2]:
            nn.init.normal_(module.weight, std=0.1)
            nn.init.zeros_(module.bias)

    def forward(self, z):
        return self.layers(z**3)


def true_dynamics(z):
    """A spiral inwards."""
    return z**3 @ torch.tensor([[-0.1, 2.0], [-2.0, -0.1]], device=z.device)


def gradient_difference(f, z, wanted, dt):
    """The relative difference of the adjoint's gradient from that of backpropagation through the solver."""
    parameters = list(f.parameters())
    gradients = []
    for trajectory in (AdjointSolve.apply(f, z, len(wanted), dt, *parameters), solve(f, z, len(wanted), dt)):
        loss = ((trajectory - wanted) ** 2).mean()
        gradients.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)]))
    adjoint, recorded = gradients
    return ((adjoint - recorded).norm() / recorded.norm()).item()


def save_picture(truth, learnt, losses, path):
    """The two spirals, and the loss."""
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for label, z in (("true", truth), ("learnt", learnt)):
        left.plot(*z.cpu().t().numpy(), label=label)
    left.legend()
    right.semilogy(losses)
    right.set(title="training loss", xlabel="step")
    figure.savefig(path, dpi=150)


def main(arguments=None):
    options = common.parser(__doc__, steps=1500, batch_size=64, lr=2e-2, width=50, length=12).parse_args(arguments)
    torch.manual_seed(options.seed)
    dt = TIME / POINTS
    start = torch.tensor(START, device=options.device)
    truth = solve(true_dynamics, start, POINTS, dt)
    f = Dynamics(options.width).to(options.device)
    optimizer = torch.optim.Adam(f.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.total)
    print(common.parameters_of(f))

    run = common.Run(options, f=f, optimizer=optimizer, schedule=schedule)
    parameters = list(f.parameters())
    for _ in run:
        z = 4 * torch.rand(options.batch_size, 2, device=options.device) - 2
        with run.fused():
            wanted = solve(true_dynamics, z, options.length, dt)
            with run.autocast():
                trajectory = AdjointSolve.apply(f, z, options.length, dt, *parameters)
                loss = ((trajectory - wanted) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        run.log(loss=loss.item())

    with torch.no_grad():
        learnt = solve(f, start, POINTS, dt)
    difference = gradient_difference(f, start, truth[: options.length], dt)
    print(f"relative difference of the adjoint's gradient from backpropagation's: {difference:.1e}")
    save_picture(truth, learnt, run.history["loss"], options.out)
    distance = (learnt - truth).norm(dim=1).mean().item()
    return run.finish(f"mean distance {distance:.3f}", distance <= REQUIRED_DISTANCE)


if __name__ == "__main__":
    sys.exit(main().exit_code)
