"""Two problems that need derivatives of derivatives, each checked against what is known.

    python examples/higher_order.py

1. The product of a network's Hessian with a vector, without the Hessian, against differences of gradients.
2. Newton's method with conjugate gradients on such products, for a logistic regression.

The means are the same in both: ``grad(..., create_graph=True)`` returns gradients that are themselves
part of the graph, so they can be used in a further expression and differentiated again. The exit code is 1 if
a check fails.
"""

import argparse
import sys
import time

import tinytorch as torch
from tinytorch import nn
from tinytorch.autograd import grad
from tinytorch.nn import functional as F

# --- 1. the Hessian times a vector ----------------------------------------------------------------

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


# --- 2. Newton's method ---------------------------------------------------------------------------

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


def main(arguments=None):
    parser = argparse.ArgumentParser(description="Problems that need derivatives of derivatives.")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)

    torch.manual_seed(options.seed)
    start = time.perf_counter()
    checks = [
        report("Hessian-vector product, relative error", compare_hvp_with_differences(), HVP_TOLERANCE),
        report("Newton's method, gradient norm", newton(*logistic_regression()), NEWTON_TOLERANCE),
    ]
    print(f"{time.perf_counter() - start:.1f} s")
    return 0 if all(checks) else 1


if __name__ == "__main__":
    sys.exit(main())
