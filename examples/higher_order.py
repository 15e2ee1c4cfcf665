"""Three problems that need derivatives of derivatives, each checked against what is known.

    python examples/higher_order.py

1. A physics-informed network learns the heat equation, in whose loss the network's second derivative appears.
2. The product of a network's Hessian with a vector, without the Hessian, against differences of gradients.
3. Newton's method with conjugate gradients on such products, for a logistic regression.

The means are the same in all three: ``grad(..., create_graph=True)`` returns gradients that are themselves
part of the graph, so they can be used in a further expression and differentiated again. The exit code is 1 if
a check fails.
"""

import argparse
import math
import sys
import time

from tqdm import tqdm

import tinytorch as torch
from tinytorch import nn
from tinytorch.autograd import grad
from tinytorch.nn import functional as F

# --- 1. the heat equation -------------------------------------------------------------------------

DIFFUSIVITY = 0.1
HEAT_TOLERANCE = 2e-3


def heat_solution(x, t):
    """What u_t = a u_xx makes of a sine, when the ends are held at zero: the sine, decaying."""
    return torch.exp(-DIFFUSIVITY * math.pi**2 * t) * torch.sin(math.pi * x)


class HeatNetwork(nn.Module):
    """u(x, t) on the unit square, from a small network N.

    u = sin(pi x) + t x (1 - x) N(x, t) has the right initial and boundary values whatever N is, so that
    nothing but the equation itself is left to learn.
    """

    def __init__(self, width=32):
        super().__init__()
        self.input = nn.Linear(2, width)
        self.hidden = nn.Linear(width, width)
        self.output = nn.Linear(width, 1)

    def forward(self, x, t):
        h = torch.tanh(self.input(torch.cat([x, t], dim=1)))
        h = torch.tanh(self.hidden(h))
        return torch.sin(math.pi * x) + t * x * (1 - x) * self.output(h)


def heat_residual(u, x, t):
    """u_t - a u_xx at every point, as a part of the graph.

    A point's u depends on that point alone, so the gradient of the sum over all points holds the derivative
    at each of them.
    """
    values = u(x, t)
    u_x, u_t = grad(values.sum(), (x, t), create_graph=True)
    (u_xx,) = grad(u_x.sum(), x, create_graph=True)
    return u_t - DIFFUSIVITY * u_xx


def learn_heat_equation(steps):
    """Train on random points; return the relative L2 error on a grid."""
    u = HeatNetwork()
    optimizer = torch.optim.Adam(u.parameters(), lr=5e-3)
    progress = tqdm(range(steps), desc="heat equation", unit="step")
    for step in progress:
        for group in optimizer.param_groups:
            group["lr"] = 5e-3 * (1 - step / steps)
        x = torch.rand(256, 1, requires_grad=True)
        t = torch.rand(256, 1, requires_grad=True)
        optimizer.zero_grad()
        loss = (heat_residual(u, x, t) ** 2).mean()
        loss.backward()
        optimizer.step()
        if step % 100 == 0:
            progress.set_postfix(residual=f"{loss.item():.1e}")

    axis = torch.linspace(0, 1, 51)
    x = axis.repeat(51).view(-1, 1)
    t = axis.view(-1, 1).expand(51, 51).reshape(-1, 1)
    with torch.no_grad():
        exact = heat_solution(x, t)
        return ((u(x, t) - exact).norm() / exact.norm()).item()


# --- 2. the Hessian times a vector ----------------------------------------------------------------

HVP_TOLERANCE = 1e-6


def hessian_vector_product(loss, parameters, vectors):
    """H v for the Hessian H of ``loss``, one tensor for each parameter, for the price of a second backward.

    The gradient g is a function of the parameters, and the derivative of the number g . v is H v.
    """
    gradients = grad(loss, parameters, create_graph=True)
    slope = sum((g * v).sum() for g, v in zip(gradients, vectors))
    return grad(slope, parameters)


def compare_hvp_with_differences(step=1e-5):
    """Return the relative difference of H v and (g(p + h v) - g(p - h v)) / 2h, in float64."""
    model = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 3)).double()
    parameters = list(model.parameters())
    vectors = [torch.randn_like(p) for p in parameters]
    inputs = torch.randn(64, 4, dtype=torch.float64)
    labels = torch.randint(3, (64,))

    def loss():
        return F.cross_entropy(model(inputs), labels)

    def gradients_after(distance):
        """The gradients with the parameters moved by ``distance`` along the vectors, and moved back again."""
        with torch.no_grad():
            for p, v in zip(parameters, vectors):
                p.add_(v, alpha=distance)
        gradients = grad(loss(), parameters)
        with torch.no_grad():
            for p, v in zip(parameters, vectors):
                p.sub_(v, alpha=distance)
        return gradients

    products = hessian_vector_product(loss(), parameters, vectors)
    ahead, behind = gradients_after(step), gradients_after(-step)
    differences = [(a - b) / (2 * step) for a, b in zip(ahead, behind)]
    error = sum(((h - d) ** 2).sum() for h, d in zip(products, differences))
    size = sum((h**2).sum() for h in products)
    return (error / size).sqrt().item()


# --- 3. Newton's method ---------------------------------------------------------------------------

NEWTON_TOLERANCE = 1e-9


def conjugate_gradient(product, b, tolerance=1e-10, max_steps=200):
    """Solve A x = b for a symmetric positive definite A that is known only through ``product(v)`` = A v."""
    x = torch.zeros_like(b)
    residual = b.clone()
    direction = residual.clone()
    squared = (residual @ residual).item()
    stop = squared * tolerance**2
    for _ in range(max_steps):
        if squared <= stop:
            break
        image = product(direction)
        step = squared / (direction @ image).item()
        x += step * direction
        residual -= step * image
        squared, previous = (residual @ residual).item(), squared
        direction = residual + (squared / previous) * direction
    return x


def newton(loss, weights, max_steps=20):
    """Minimise a convex ``loss(weights)``; print the gradient's norm on the way, return the last one.

    Every step solves H d = -g. Once the norm is small, each step squares it, and that is how one sees that
    the second derivatives are right.
    """
    for step in range(max_steps):
        weights = weights.detach().requires_grad_()
        # One graph of the gradient serves all the products of this step, hence retain_graph.
        (gradient,) = grad(loss(weights), weights, create_graph=True)
        norm = gradient.norm().item()
        print(f"    step {step}: gradient norm {norm:.1e}")
        if norm <= NEWTON_TOLERANCE:
            break

        def product(v, gradient=gradient, weights=weights):
            return grad(gradient @ v, weights, retain_graph=True)[0]

        weights = weights + conjugate_gradient(product, -gradient.detach())
    return norm


def logistic_regression():
    """A regularised logistic loss on two overlapping clouds of points, as a function of the weights."""
    points = torch.randn(500, 10, dtype=torch.float64)
    labels = (points.sum(dim=1) + torch.randn(500, dtype=torch.float64) > 0).double()

    def loss(weights):
        fit = F.binary_cross_entropy_with_logits(points @ weights, labels)
        return fit + 1e-3 * (weights @ weights)

    return loss, torch.zeros(10, dtype=torch.float64)


def report(what, error, tolerance):
    """Print one check; return whether it holds."""
    ok = error <= tolerance
    print(f"{what}: {error:.1e} (at most {tolerance:g} wanted): {'ok' if ok else 'FAILED'}")
    return ok


def main():
    parser = argparse.ArgumentParser(description="Problems that need derivatives of derivatives.")
    parser.add_argument("--steps", type=int, default=1500, help="training steps for the heat equation")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    torch.manual_seed(options.seed)
    start = time.perf_counter()
    checks = [
        report("heat equation, relative L2 error", learn_heat_equation(options.steps), HEAT_TOLERANCE),
        report("Hessian-vector product, relative error", compare_hvp_with_differences(), HVP_TOLERANCE),
        report("Newton's method, gradient norm", newton(*logistic_regression()), NEWTON_TOLERANCE),
    ]
    print(f"{time.perf_counter() - start:.1f} s")
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
