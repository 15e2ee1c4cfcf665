"""Model-agnostic meta-learning: weights from which a network learns any sine wave from ten points, in one step.

    python examples/maml.py
    python examples/maml.py --inner-steps 3

A task is a sine wave of a random amplitude and phase. The inner loop takes a step of gradient descent on ten of its
points, the outer one changes the weights it began with, so that the loss on other points *after* that step gets less
(Finn et al. 2017, arXiv:1703.03400). The inner step is part of the graph: its gradient is differentiated again.
The picture shows a wave never seen before, and what the network makes of it before and after a step.
"""

import math
import sys

import common
from matplotlib.figure import Figure

import tinytorch as torch
from tinytorch import nn
from tinytorch.func import functional_call
from tinytorch.nn import functional as F

#: The mean squared error on new tasks, one step after ten points; amplitudes are up to 5. Before the step it is over 3.
REQUIRED_ERROR = 0.5


def sine_wave(device):
    """A task: a function that gives so many random points (x, y) of one wave."""
    amplitude = 0.1 + 4.9 * torch.rand(1, device=device)
    phase = math.pi * torch.rand(1, device=device)

    def points(count):
        x = 10 * torch.rand(count, 1, device=device) - 5
        return x, amplitude * torch.sin(x + phase)

    return points


def adapted(model, x, y, steps, lr):
    """The parameters after some steps of gradient descent on the points, as functions of the model's own."""
    parameters = dict(model.named_parameters())
    for _ in range(steps):
        loss = F.mse_loss(functional_call(model, parameters, (x,)), y)
        gradients = torch.autograd.grad(loss, list(parameters.values()), create_graph=True)
        parameters = {name: p - lr * g for (name, p), g in zip(parameters.items(), gradients)}
    return parameters


def loss_after_learning(model, task, options, points=10):
    """Learn from some points of a task; return the loss on others."""
    parameters = adapted(model, *task(points), options.inner_steps, options.inner_lr)
    x, y = task(points)
    return F.mse_loss(functional_call(model, parameters, (x,)), y)


def evaluate(model, options, tasks=200):
    """The mean loss on new tasks after learning from ten points each."""
    losses = [loss_after_learning(model, sine_wave(options.device), options, 10).item() for _ in range(tasks)]
    return sum(losses) / tasks


def save_picture(model, options, path):
    """One task: the points, the truth, and the network before and after."""
    points = sine_wave(options.device)
    x, y = points(10)
    curve_x, curve_y = points(200)
    curve_x, order = curve_x.sort(dim=0)
    after = adapted(model, x, y, options.inner_steps, options.inner_lr)
    curves = {
        "true": curve_y[order.view(-1)],
        "before learning": model(curve_x),
        "after learning": functional_call(model, after, (curve_x,)),
    }
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    for label, values in curves.items():
        axes.plot(curve_x.view(-1).cpu().numpy(), values.detach().view(-1).cpu().numpy(), label=label)
    axes.plot(x.view(-1).cpu().numpy(), y.view(-1).cpu().numpy(), "o", label="the ten points")
    axes.legend()
    figure.savefig(path, dpi=150)


def main(arguments=None):
    parser = common.parser(__doc__, steps=3000, batch_size=8, lr=5e-3, width=40, inner_steps=1, inner_lr=0.05)
    options = parser.parse_args(arguments)
    torch.manual_seed(options.seed)
    model = nn.Sequential(
        nn.Linear(1, options.width),
        nn.Tanh(),
        nn.Linear(options.width, options.width),
        nn.Tanh(),
        nn.Linear(options.width, 1),
    ).to(options.device)
    optimizer = torch.optim.Adam(model.parameters(), lr=options.lr)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, options.total)
    print(common.parameters_of(model))

    run = common.Run(options, model=model, optimizer=optimizer, schedule=schedule)
    for _ in run:
        with run.fused():
            with run.autocast():
                tasks = [sine_wave(options.device) for _ in range(options.batch_size)]
                loss = sum(loss_after_learning(model, task, options) for task in tasks) / len(tasks)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        run.log(loss=loss.item())

    error = evaluate(model, options)
    save_picture(model, options, options.out)
    steps = f"{options.inner_steps} step" + "s" * (options.inner_steps > 1)
    return run.finish(f"error {error:.3f} on new waves, {steps} after ten points,", error <= REQUIRED_ERROR)


if __name__ == "__main__":
    sys.exit(main().exit_code)
