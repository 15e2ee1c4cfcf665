"""Further names of ``torch.optim.lbfgs``, which programs with line searches of their own use."""

from __future__ import annotations

from tinytorch.optim.line_search import Point, minimum, strong_wolfe

__all__ = ["_cubic_interpolate", "_strong_wolfe"]


def _cubic_interpolate(x1, f1, g1, x2, f2, g2, bounds=None) -> float:
    """Where the cubic through two points, of these losses and slopes, is least."""
    least, largest = bounds if bounds is not None else sorted((x1, x2))
    return minimum(Point(x1, f1, None, g1), Point(x2, f2, None, g2), least, largest)


def _strong_wolfe(obj_func, x, t, d, f, g, gtd, c1=1e-4, c2=0.9, tolerance_change=1e-9, max_ls=25) -> tuple:
    """The line search, from ``x`` along ``d``: loss, gradient, length of the step, and calls of ``obj_func``."""

    def evaluate(t) -> Point:
        loss, grad = obj_func(x, t, d)
        return Point(t, loss, grad.clone(), grad.dot(d))

    size = d.abs().max()
    point, calls = strong_wolfe(evaluate, Point(0.0, f, g, gtd), t, size, max_ls, c1, c2, tolerance_change)
    return point.loss, point.grad, point.t, calls
