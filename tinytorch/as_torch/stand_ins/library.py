"""``torch.library``: an operator of the program's own is the function it is, with the derivative it is given."""

from __future__ import annotations

import inspect

from tinytorch.autograd import Function

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "impl",
    "impl_abstract",
    "register_autograd",
    "register_fake",
    "register_kernel",
]


class CustomOpDef:
    """A function as an operator. ``register_fake`` changes nothing: shapes are found by computing."""

    known: dict[str, CustomOpDef] = {}  # by name

    def __init__(self, name: str, fn):
        self._qualname, self._init_fn, self._recorded = name, fn, None
        self.known[name] = self

    def __call__(self, *args, **kwargs):
        if self._recorded is None:
            return self._init_fn(*args, **kwargs)
        bound = inspect.signature(self._init_fn).bind(*args, **kwargs)
        bound.apply_defaults()
        return self._recorded.apply(*bound.args, **bound.kwargs)

    def register_fake(self, fn, /):
        """``fn`` itself."""
        return fn

    def register_kernel(self, device_types, fn=None, /):
        """``fn`` becomes the operator, for all devices. A decorator without ``fn``."""
        if fn is None:
            return lambda f: self.register_kernel(device_types, f)
        self._init_fn = fn
        return fn

    def register_autograd(self, backward, /, *, setup_context=None) -> None:
        """Makes ``backward(ctx, *grads)`` its derivative; ``setup_context(ctx, inputs, output)`` keeps things."""
        members = {
            "forward": staticmethod(lambda *args, **kwargs: self._init_fn(*args, **kwargs)),
            "setup_context": staticmethod(setup_context or (lambda ctx, inputs, output: None)),
            "backward": staticmethod(backward),
        }
        self._recorded = type(self._qualname.replace("::", "_"), (Function,), members)


def custom_op(name: str, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """``fn`` as an operator of that name. A decorator, too."""
    return CustomOpDef(name, fn) if fn is not None else lambda f: CustomOpDef(name, f)


def _decorator(*args, **kwargs):
    """Gives the function that it decorates: nothing asks for what it registers."""
    return lambda fn: fn


impl = impl_abstract = register_fake = register_kernel = _decorator


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """``CustomOpDef.register_autograd`` of an operator, or of its name. ValueError where there is none."""
    found = CustomOpDef.known.get(op, op) if isinstance(op, str) else op
    if not isinstance(found, CustomOpDef):
        raise ValueError(f"library.register_autograd: custom_op has made no operator {op}")
    found.register_autograd(backward, setup_context=setup_context)


def define(*args, **kwargs) -> None:
    """Nothing: operators are called as functions."""


class Library:
    """A namespace of operators; what it is told is forgotten."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        self.ns, self.kind = ns, kind

    def define(self, schema: str, *args, **kwargs) -> str:
        """The name in the schema."""
        return schema.partition("(")[0]

    def impl(self, op_name, fn, *args, **kwargs) -> None:
        """Nothing."""
