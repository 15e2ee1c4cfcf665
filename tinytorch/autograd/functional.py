"""Derivatives of functions: jacobian, hessian and products with them. Follow ``torch.autograd.functional``."""

from __future__ import annotations

from ..tensor import FUNCTIONS, Tensor
from .api import grad
from .modes import enable_grad

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _tuple(op, x, what) -> tuple[tuple, bool]:
    single = not isinstance(x, tuple)
    items = (x,) if single else tuple(x)
    for k, t in enumerate(items):
        if not isinstance(t, Tensor):
            raise TypeError(
                f"The {what} given to {op} must be either a Tensor or a tuple of Tensors but the value at "
                f"index {k} has type {type(t).__name__}."
            )
    return items, not single


def _call(op, func, inputs, create_graph):
    """Fresh leaves (or, with create_graph, views of the given tensors) and the outputs of ``func`` there."""
    inputs, many = _tuple(op, inputs, "inputs")
    if create_graph:
        points = tuple(t.view_as(t) if t.requires_grad else t.detach().requires_grad_() for t in inputs)
    else:
        points = tuple(t.detach().requires_grad_() for t in inputs)
    outputs, many_outputs = _tuple(op, func(*points), "outputs")
    return points, outputs, many, many_outputs


def _pack(values, many):
    return tuple(values) if many else values[0]


def _detached(values, create_graph):
    return values if create_graph else tuple(v.detach() for v in values)


def _like(op, v, points, what):
    """``v`` checked against the tensors it multiplies; ones for a single scalar."""
    if v is None:
        if len(points) != 1 or points[0].numel() != 1:
            raise RuntimeError(
                f"{op}: the vector v can only be None if the {what} is a single tensor with one "
                f"element, "
                f"got shapes {[tuple(p.shape) for p in points]}"
            )
        return (points[0].detach().new_ones(points[0].shape),)
    v, _ = _tuple(op, v, "vector")
    if len(v) != len(points) or any(a.shape != b.shape for a, b in zip(v, points)):
        raise RuntimeError(
            f"{op}: v has invalid size: should be {[tuple(p.shape) for p in points]} but got "
            f"{[tuple(x.shape) for x in v]}."
        )
    return v


def _grad(outputs, inputs, seeds, create_graph, strict, op):
    outputs, seeds = (
        zip(*[(o, s) for o, s in zip(outputs, seeds) if o.requires_grad])
        if any(o.requires_grad for o in outputs)
        else ((), ())
    )
    found = (
        grad(outputs, inputs, seeds, create_graph=create_graph, retain_graph=True, allow_unused=True)
        if outputs
        else (None,) * len(inputs)
    )
    if strict and any(g is None for g in found):
        raise RuntimeError(
            f"{op}: the output of the user-provided function is independent of input "
            f"{[g is None for g in found].index(True)}. This is not allowed in strict mode."
        )
    return tuple(g if g is not None else i.new_zeros(i.shape) for g, i in zip(found, inputs))


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v^T J): the product of a vector of the output's shape with the Jacobian."""
    with enable_grad():
        points, outputs, many, many_outputs = _call("vjp", func, inputs, create_graph)
        v = _like("vjp", v, outputs, "output")
        products = _grad(outputs, points, v, create_graph, strict, "vjp")
    return _pack(_detached(outputs, create_graph), many_outputs), _pack(_detached(products, create_graph), many)


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), J v): by differentiating vjp with respect to its vector (the double-backward trick)."""
    with enable_grad():
        points, outputs, many, many_outputs = _call("jvp", func, inputs, create_graph)
        v = _like("jvp", v, points, "input")
        seeds = tuple(o.detach().new_zeros(o.shape).requires_grad_() for o in outputs)
        pulled = _grad(outputs, points, seeds, True, strict, "jvp")
        products = _grad(pulled, seeds, v, create_graph, strict, "jvp")
    return _pack(_detached(outputs, create_graph), many_outputs), _pack(_detached(products, create_graph), many_outputs)


def jacobian(func, inputs, create_graph=False, strict=False, vectorize=False, strategy="reverse-mode"):
    """The derivative of every output element with respect to every input element: shape ``output.shape + input.shape``;
    nested tuples when there are several inputs or outputs. ``vectorize`` and ``strategy`` change nothing but what is
    refused: RuntimeError for ``strict`` with the first, NotImplementedError for "forward-mode" without it."""
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(f'Expected strategy to be either "forward-mode" or "reverse-mode", but got {strategy}')
    if strategy == "forward-mode" and create_graph:
        raise NotImplementedError('jacobian: `create_graph=True` is not implemented for strategy="forward-mode"')
    if strategy == "forward-mode" and not vectorize:
        raise NotImplementedError('jacobian: strategy="forward-mode" is implemented with `vectorize=True` only')
    if strict and vectorize:
        raise RuntimeError("jacobian: `strict=True` and `vectorize=True` are not supported together")
    with enable_grad():
        points, outputs, many, many_outputs = _call("jacobian", func, inputs, create_graph)
        rows = []
        for o in outputs:
            flat, per_input = o.reshape(-1), [[] for _ in points]
            for k in range(flat.numel()):
                found = _grad((flat[k],), points, (flat.detach().new_ones(()),), create_graph, strict, "jacobian")
                for store, g in zip(per_input, found):
                    store.append(g if create_graph else g.detach())
            rows.append(
                tuple(
                    FUNCTIONS["stack"](store).reshape((*o.shape, *p.shape))
                    if store
                    else p.new_zeros((*o.shape, *p.shape))
                    for store, p in zip(per_input, points)
                )
            )
    result = [_pack(row, many) for row in rows]
    return _pack(result, many_outputs)


def _scalar(op, func):
    def checked(*args):
        out = func(*args)
        if op == "hessian":
            _tuple(op, out, "outputs of the user-provided function")
        if not isinstance(out, Tensor) or out.numel() != 1:
            raise RuntimeError(
                f"The output of the function given to {op} should be a single Tensor with one "
                f"element, got "
                f"{tuple(out.shape) if isinstance(out, Tensor) else type(out).__name__}"
            )
        return out.reshape(())

    return checked


def hessian(func, inputs, create_graph=False, strict=False, vectorize=False, outer_jacobian_strategy="reverse-mode"):
    """The second derivatives of a scalar function: shape ``input.shape + input.shape``, nested for several inputs."""
    inputs, many = _tuple("hessian", inputs, "inputs")
    func = _scalar("hessian", func)

    def first(*args):
        return jacobian(func, args, create_graph=True)

    result = jacobian(first, inputs, create_graph=create_graph, strict=strict)
    return result if many else result[0][0]


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), v^T H) for a scalar function."""
    return _products(func, inputs, v, create_graph, strict, "vhp")


def _products(func, inputs, v, create_graph, strict, op):
    func = _scalar(op, func)
    with enable_grad():
        points, outputs, many, _ = _call(op, func, inputs, create_graph)
        v = _like(op, v, points, "input")
        first = _grad(outputs, points, (outputs[0].detach().new_ones(()),), True, strict, op)
        products = _grad(first, points, v, create_graph, strict, op)
    return _detached(outputs, create_graph)[0], _pack(_detached(products, create_graph), many)


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(inputs), H v) for a scalar function: H is symmetric, so this is ``vhp``."""
    return _products(func, inputs, v, create_graph, strict, "hvp")
