"""Entries of the operator table (optable/), run: their results, gradients, and second gradients."""

import numpy as np

from compare import outputs
from optable import make


def run(op, m, sample, tensors, **more):
    args, kwargs = sample.fill(tensors)
    return op(m, *args, **kwargs, **more)


def describe(op, sample, dtype):
    return f"{op}{sample} in {dtype}"


def weights(results, seed=3):
    """Fixed numbers to weigh the outputs by, so that no gradient is a plain sum."""
    rng = np.random.default_rng(seed)
    return [rng.uniform(0.5, 1.5, tuple(r.shape)) for r in results]


def recorded(op, m, sample, arrays, dtype, device="cpu", call=run):
    """(The outputs that require grad, the differentiable bases), or None if there are none of either."""
    bases, tensors = make(m, sample, arrays, dtype, device, requires_grad=True)
    results = [r for r in outputs(call(op, m, sample, tensors)) if r.requires_grad]
    leaves = [base for base in bases if base.requires_grad]
    return (results, leaves) if results and leaves else None


def weigh(m, results, device="cpu", seed=3, rounded_to=None):
    """The weights as tensors of library m; `rounded_to` a half type, in the results' dtypes all the same."""
    tensors = [m.from_numpy(w).to(device) for w in weights(results, seed)]
    if rounded_to:
        tensors = [t.to(getattr(m, rounded_to)) for t in tensors]
    return [t.to(r.dtype) for t, r in zip(tensors, results)]


def gradients(op, m, sample, arrays, dtype, device="cpu", call=run, create_graph=False, rounded_to=None):
    """The gradients of every differentiable base, or None where the op's outputs do not depend on it."""
    found = recorded(op, m, sample, arrays, dtype, device, call)
    if found is None:
        return None
    outer = weigh(m, found[0], device, rounded_to=rounded_to)
    return m.autograd.grad(*found, outer, allow_unused=True, create_graph=create_graph)


def second_gradients(op, m, sample, arrays, dtype, device="cpu"):
    """The gradients of the weighted first gradients, for every differentiable base and the outputs' gradients; zeros
    where there are none."""
    found = recorded(op, m, sample, arrays, dtype, device)
    if found is None:
        return ()
    results, leaves = found
    outer = [w.requires_grad_() for w in weigh(m, results, device)]
    first = m.autograd.grad(results, leaves, outer, allow_unused=True, create_graph=True)
    chosen = [k for k, g in enumerate(first) if g is not None and g.requires_grad]
    inputs, inner = [*leaves, *outer], weigh(m, leaves, device, seed=4)
    found = [None] * len(inputs)
    if chosen:
        found = m.autograd.grad([first[k] for k in chosen], inputs, [inner[k] for k in chosen], allow_unused=True)
    return [m.zeros_like(x) if g is None else g for x, g in zip(inputs, found)]
