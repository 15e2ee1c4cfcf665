"""Parameters and buffers that are computed from others whenever they are read. Follows
``torch.nn.utils.parametrize``.

A module whose ``weight`` is parametrized becomes of a class of its own, where ``weight`` is a property: reading it
calls the modules of ``parametrizations["weight"]``, one after the other, on what is trained instead (``original``, or
``original0``, ``original1``, ...); assigning to it takes the way back, through their ``right_inverse``.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy

from ...autograd.modes import no_grad
from ...tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter

__all__ = [
    "ParametrizationList",
    "cached",
    "is_parametrized",
    "register_parametrization",
    "remove_parametrizations",
    "transfer_parametrizations_and_params",
    "type_before_parametrizations",
]

_contexts: list[None] = []  # one for each cached() that is entered
_cache: dict[tuple[int, str], tuple] = {}  # (id of a module, name) -> the module, and what it computed within cached()


@contextmanager
def cached():
    """A context in which each parametrized tensor is computed once, when it is first read. Follows
    ``torch.nn.utils.parametrize.cached``."""
    _contexts.append(None)
    try:
        yield
    finally:
        _contexts.pop()
        if not _contexts:
            _cache.clear()


def _register(module: Module, name: str, t: Tensor) -> None:
    if isinstance(t, Parameter):
        module.register_parameter(name, t)
    else:
        module.register_buffer(name, t)


def _set(target: Tensor, source: Tensor) -> None:
    """Makes ``target`` show the elements of ``source``; it stays the same object, which an optimiser may know."""
    if target is not source:
        target.data = source.detach()


def _check_same(given: Tensor, wanted: Tensor, who: str, complaint: str) -> None:
    """ValueError unless a parametrization leaves dtype and shape as they are."""
    if not isinstance(given, Tensor):
        raise ValueError(f"{who} must return a tensor. Got {type(given).__name__}.")
    for fact in ("dtype", "shape"):
        before, after = getattr(wanted, fact), getattr(given, fact)
        if before != after:
            raise ValueError(
                f"{complaint.format(fact)}, unless the `unsafe` flag is enabled: {before} would become {after}"
            )


CHANGES = "Registering a parametrization may not change the {} of the tensor"


class ParametrizationList(ModuleList):
    """The parametrizations of one tensor, and what is computed from: ``original``, or ``original0``, ``original1``, ...
    where the last ``right_inverse`` gives a sequence. Follows ``torch.nn.utils.parametrize.ParametrizationList``."""

    def __init__(self, modules, original: Tensor, unsafe: bool = False):
        if len(modules) == 0:
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        before = original.detach()  # its shape and dtype; ``original`` is about to change
        with no_grad():
            new = original
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    with suppress(NotImplementedError):
                        new = module.right_inverse(new)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got "
                f"{type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            for fact in ("dtype", "device"):
                if getattr(original, fact) != getattr(new, fact):
                    raise ValueError(
                        f"When `right_inverse` outputs one tensor, it may not change the {fact}.\n"
                        f"original.{fact}: {getattr(original, fact)}\n"
                        f"right_inverse(original).{fact}: {getattr(new, fact)}"
                    )
            with no_grad():
                _set(original, new)
            _register(self, "original", original)
        else:
            for i, part in enumerate(new):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). Got element "
                        f"{i} of the sequence with type {type(part).__name__}."
                    )
                if isinstance(original, Parameter):
                    part = Parameter(part, original.requires_grad)
                part.requires_grad_(original.requires_grad)
                _register(self, f"original{i}", part)
        if not self.unsafe:
            _check_same(self(), before, "A parametrization", CHANGES)

    def right_inverse(self, value: Tensor) -> None:
        """Changes the originals so that the parametrized tensor becomes ``value``. RuntimeError where a parametrization
        has no ``right_inverse``, ValueError where it gives something else than it gave at first."""
        with no_grad():
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                if not isinstance(value, Tensor):
                    raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
                parts, names = [value], ["original"]
            else:
                if not isinstance(value, Sequence):
                    raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(value).__name__}.")
                if len(value) != self.ntensors:
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. Got a sequence "
                        f"of length {len(value)}."
                    )
                parts, names = list(value), [f"original{i}" for i in range(self.ntensors)]
            for name, part in zip(names, parts):
                if not isinstance(part, Tensor):
                    raise ValueError(
                        f"'right_inverse' must return a sequence of tensors. Got {type(part).__name__} for {name}."
                    )
                if part.dtype is not getattr(self, name).dtype:
                    raise ValueError(
                        f"The tensor returned by `right_inverse` has dtype {part.dtype} while `{name}` has dtype "
                        f"{getattr(self, name).dtype}"
                    )
            for name, part in zip(names, parts):
                _set(getattr(self, name), part)

    def forward(self) -> Tensor:
        originals = ["original"] if self.is_tensor else [f"original{i}" for i in range(self.ntensors)]
        x = self[0](*[getattr(self, name) for name in originals])
        at = 1
        while str(at) in self._modules:
            x = self._modules[str(at)](x)
            at += 1
        return x


def _deepcopy(self, memo):
    """A copy with a class of its own: what is parametrized in one is its own matter."""
    if id(self) in memo:
        return memo[id(self)]
    copied = memo[id(self)] = _parametrized(type_before_parametrizations(self)).__new__(type(self))
    copied.__class__ = _parametrized(type_before_parametrizations(self))
    copied.__dict__.update(deepcopy(self.__dict__, memo))
    for name in copied.parametrizations:
        _inject_property(copied, name)
    return copied


def _getstate(self):
    raise RuntimeError(
        "Serialization of parametrized modules is only supported through state_dict(). See:\n"
        "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
        "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
    )


def _parametrized(cls: type) -> type:
    """A subclass for one module."""
    members = {"__getstate__": _getstate}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopy
    return type(f"Parametrized{cls.__name__}", (cls,), members)


def _inject_property(module: Module, name: str) -> None:
    def get(self) -> Tensor:
        parametrization = self.parametrizations[name]
        if not _contexts:
            return parametrization()
        key = id(self), name
        if key not in _cache:
            _cache[key] = self, parametrization()
        return _cache[key][1]

    def set_original(self, value: Tensor) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, set_original))


def register_parametrization(module: Module, tensor_name: str, parametrization: Module, *, unsafe: bool = False):
    """Makes a parameter or buffer of ``module`` what ``parametrization`` computes from it; another one is applied to
    what the last gave. Returns the module. With ``right_inverse``, the tensor can be assigned to, and keeps its value
    now if that is possible. ValueError for an unknown name, and for a parametrization that changes dtype or shape,
    unless ``unsafe``. Follows ``torch.nn.utils.parametrize.register_parametrization``."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            now = getattr(module, tensor_name)
            then = parametrization(now)
            _check_same(then, now, "A parametrization", CHANGES)
            if hasattr(parametrization, "right_inverse"):
                complaint = (
                    f"The tensor returned by parametrization.right_inverse must have the same {{}} as {tensor_name}"
                )
                with suppress(NotImplementedError):
                    back = parametrization.right_inverse(then)
                    _check_same(back, now, "parametrization.right_inverse", complaint)
        parametrizations = module.parametrizations[tensor_name]
        parametrizations.append(parametrization)
        parametrizations.unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            module.__class__ = _parametrized(type(module))
            module.parametrizations = ModuleDict()
        _inject_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name "
            f"'{tensor_name}'"
        )
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Is a tensor of the module parametrized, or this one? Follows ``torch.nn.utils.parametrize.is_parametrized``."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


def remove_parametrizations(module: Module, tensor_name: str, leave_parametrized: bool = True) -> Module:
    """Makes the tensor a parameter or buffer again: with the value that it has, or (not ``leave_parametrized``) the
    original. Returns the module. ValueError where it is not parametrized, or has several originals and is to get one
    back. Follows ``torch.nn.utils.parametrize.remove_parametrizations``."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with no_grad():
                _set(original, getattr(module, tensor_name))
    elif leave_parametrized:
        t = getattr(module, tensor_name)
        original = Parameter(t.detach()) if t.requires_grad else t
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a "
            "sequence of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        del module.parametrizations
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Module) -> type:
    """The class that the module had before it was parametrized. Follows
    ``torch.nn.utils.parametrize.type_before_parametrizations``."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


def transfer_parametrizations_and_params(
    from_module: Module, to_module: Module, tensor_name: str | None = None
) -> Module:
    """Gives ``to_module`` the parametrizations and originals of ``from_module``, all or those of one tensor; a
    parameter that it has not is made. Returns ``to_module``. Follows
    ``torch.nn.utils.parametrize.transfer_parametrizations_and_params``."""
    if not is_parametrized(from_module):
        return to_module
    for name in list(from_module.parametrizations) if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, Parameter(getattr(from_module, name).detach()))
        theirs = from_module.parametrizations[name]
        for parametrization in theirs:
            register_parametrization(to_module, name, parametrization)
        mine = to_module.parametrizations[name]
        for original in ["original"] if theirs.is_tensor else [f"original{i}" for i in range(theirs.ntensors)]:
            setattr(mine, original, getattr(theirs, original))
    return to_module
