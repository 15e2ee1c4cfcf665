"""``torch.func``'s transforms of functions, which refuse when what they return is called."""

from __future__ import annotations

import functools

__all__ = [
    "functionalize",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]


def _refuse(name: str):
    raise NotImplementedError(f"func.{name}: tinytorch has no transforms of functions; autograd.functional has some")


def _transform(name: str):
    def transform(func, *args, **kwargs):
        """A function that raises NotImplementedError."""

        @functools.wraps(func)
        def transformed(*args, **kwargs):
            _refuse(name)

        return transformed

    transform.__name__ = transform.__qualname__ = name
    return transform


def _call(name: str):
    def call(*args, **kwargs):
        """NotImplementedError."""
        _refuse(name)

    call.__name__ = call.__qualname__ = name
    return call


vmap, grad, grad_and_value, hessian = map(_transform, ("vmap", "grad", "grad_and_value", "hessian"))
jacrev, jacfwd, functionalize = map(_transform, ("jacrev", "jacfwd", "functionalize"))
vjp, jvp, linearize, stack_module_state = map(_call, ("vjp", "jvp", "linearize", "stack_module_state"))
