"""``torch.library``: an operator of the program's own is the function it is."""

from __future__ import annotations

__all__ = [
    "CustomOpDef",
    "Library",
    "custom_op",
    "define",
    "fallthrough_kernel",
    "impl",
    "impl_abstract",
    "register_autograd",
    "register_fake",
    "register_kernel",
]


class CustomOpDef:
    """A function as an operator. ``register_fake`` changes nothing: shapes are found by computing;
    ``register_autograd`` refuses."""

    def __init__(self, name: str, fn):
        self._qualname, self._init_fn = name, fn

    def __call__(self, *args, **kwargs):
        return self._init_fn(*args, **kwargs)

    def register_fake(self, fn, /):
        """``fn`` itself."""
        return fn

    def register_kernel(self, device_types, fn=None, /):
        """NotImplementedError: the function is that of every device."""
        raise NotImplementedError("library: kernels of single devices cannot be registered with tinytorch")

    def register_autograd(self, backward, /, *, setup_context=None) -> None:
        """NotImplementedError: an autograd.Function has a derivative of its own."""
        raise NotImplementedError("library.register_autograd: tinytorch has autograd.Function for derivatives")


def custom_op(name: str, fn=None, /, *, mutates_args, device_types=None, schema=None, tags=None):
    """``fn`` as an operator of that name. A decorator, too."""
    return CustomOpDef(name, fn) if fn is not None else lambda f: CustomOpDef(name, f)


def _decorator(*args, **kwargs):
    """Gives the function that it decorates: nothing asks for what it registers."""
    return lambda fn: fn


impl = impl_abstract = register_fake = register_kernel = _decorator


def register_autograd(op, backward, /, *, setup_context=None, lib=None) -> None:
    """NotImplementedError: an autograd.Function has a derivative of its own."""
    raise NotImplementedError("library.register_autograd: tinytorch has autograd.Function for derivatives")


def define(*args, **kwargs) -> None:
    """Nothing: operators are called as functions."""


def fallthrough_kernel() -> None:
    """NotImplementedError."""
    raise NotImplementedError("library.fallthrough_kernel: tinytorch has no dispatcher")


class Library:
    """A namespace of operators; what it is told is forgotten."""

    def __init__(self, ns: str, kind: str, dispatch_key: str = ""):
        self.ns, self.kind = ns, kind

    def define(self, schema: str, *args, **kwargs) -> str:
        """The name in the schema."""
        return schema.partition("(")[0]

    def impl(self, op_name, fn, *args, **kwargs) -> None:
        """Nothing."""
