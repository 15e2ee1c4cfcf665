"""Pruning: some of a parameter's elements are held at 0 by a mask, which a hook applies before each forward. Follows
``torch.nn.utils.prune``.

A pruned parameter ``weight`` is three things: the parameter ``weight_orig``, the buffer ``weight_mask``, and the
attribute ``weight``, their product.
"""

from __future__ import annotations

import abc
import numbers
from collections.abc import Iterable, Iterator

from ...autograd.modes import no_grad
from ...layouts import contiguous_format
from ...ops.create_like import ones_like, zeros_like
from ...ops.random import rand, rand_like
from ...tensor import Tensor
from ..module import Module
from .convert_parameters import parameters_to_vector

__all__ = [
    "BasePruningMethod",
    "CustomFromMask",
    "Identity",
    "L1Unstructured",
    "LnStructured",
    "PruningContainer",
    "RandomStructured",
    "RandomUnstructured",
    "custom_from_mask",
    "global_unstructured",
    "identity",
    "is_pruned",
    "l1_unstructured",
    "ln_structured",
    "random_structured",
    "random_unstructured",
    "remove",
]


class BasePruningMethod(abc.ABC):
    """What decides which elements stay. A subclass defines ``compute_mask``, and ``PRUNING_TYPE``: ``"unstructured"``
    (single elements), ``"structured"`` (slices along ``self.dim``) or ``"global"`` (elements of several tensors)."""

    _tensor_name: str

    def __call__(self, module: Module, inputs) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    @abc.abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """``default_mask`` with further elements 0, chosen by the scores ``t``."""

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter times its mask. AssertionError if nothing is pruned."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned")
        original = getattr(module, name + "_orig")
        return getattr(module, name + "_mask").to(dtype=original.dtype) * original

    @classmethod
    def apply(cls, module: Module, name: str, *args, importance_scores: Tensor | None = None, **kwargs):
        """Prunes ``module.<name>`` by the method that ``cls(*args, **kwargs)`` is, after those it is pruned by.

        Args:
            importance_scores: of the elements, in place of the parameter itself
        Returns:
            The method, or the PruningContainer of them all.
        """
        method = cls._after_others(module, name, *args, **kwargs)
        parameter = getattr(module, name)
        scores = parameter if importance_scores is None else importance_scores
        if scores.shape != parameter.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as parameter {name} of {module}, got {scores.shape} "
                f"vs {parameter.shape}"
            )
        first = not isinstance(method, PruningContainer)
        if first:
            module.register_parameter(name + "_orig", parameter)
            del module._parameters[name]
            mask = ones_like(parameter)
        else:
            mask = getattr(module, name + "_mask").detach().clone(memory_format=contiguous_format)
        try:
            with no_grad():
                mask = method.compute_mask(scores, default_mask=mask)
            module.register_buffer(name + "_mask", mask)
            setattr(module, name, method.apply_mask(module))
            module.register_forward_pre_hook(method)
        except Exception:
            if first:
                module.register_parameter(name, module._parameters.pop(name + "_orig"))
            raise
        return method

    @classmethod
    def _after_others(cls, module: Module, name: str, *args, **kwargs):
        """The method, in one container with the one that prunes ``module.<name>`` already, whose hook is taken out."""
        hooks = module._forward_pre_hooks
        found = [k for k, hook in hooks.items() if isinstance(hook, BasePruningMethod) and hook._tensor_name == name]
        if len(found) > 1:
            raise AssertionError(
                f"Avoid adding multiple pruning hooks to the same tensor {name} of module {module}. Use a "
                "PruningContainer."
            )
        before = hooks.pop(found[0]) if found else None
        method = cls(*args, **kwargs)
        method._tensor_name = name
        if before is None:
            return method
        container = before if isinstance(before, PruningContainer) else PruningContainer(before)
        container.add_pruning_method(method)
        return container

    def prune(self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None) -> Tensor:
        """``t`` times a new mask; no module is changed."""
        scores = t if importance_scores is None else importance_scores
        if scores.shape != t.shape:
            raise AssertionError(
                f"importance_scores should have the same shape as tensor t, got {scores.shape} vs {t.shape}"
            )
        return t * self.compute_mask(scores, default_mask=ones_like(t) if default_mask is None else default_mask)

    def remove(self, module: Module) -> None:
        """Makes the product the parameter again."""
        name = self._tensor_name
        if name is None:
            raise AssertionError(f"Module {module} has to be pruned before pruning can be removed")
        weight = self.apply_mask(module)
        if hasattr(module, name):
            delattr(module, name)
        original = module._parameters.pop(name + "_orig")
        original.data = weight.data
        del module._buffers[name + "_mask"]
        setattr(module, name, original)


class PruningContainer(BasePruningMethod):
    """The methods that prune one tensor, one after the other: each has a say in what the earlier ones left."""

    def __init__(self, *args: BasePruningMethod):
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        if len(args) == 1:
            self._tensor_name = args[0]._tensor_name
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """TypeError for what is no method, ValueError for one of another tensor."""
        if method is not None and not isinstance(method, BasePruningMethod):
            raise TypeError(f"{type(method)} is not a BasePruningMethod subclass")
        if method is not None and method._tensor_name != self._tensor_name:
            raise ValueError(
                f"Can only add pruning methods acting on the parameter named '{self._tensor_name}' to "
                f"PruningContainer {self}. Found '{method._tensor_name}'"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, index):
        return self._pruning_methods[index]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask of the newest method, among the elements or slices that ``default_mask`` leaves."""
        method = self._pruning_methods[-1]
        if method.PRUNING_TYPE == "unstructured":
            left = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            left = _slices_left(method, default_mask)
        elif method.PRUNING_TYPE == "global":
            left = (slice(None),) * t.ndim
        else:
            raise ValueError(f"Unrecognized PRUNING_TYPE {method.PRUNING_TYPE}")
        mask = default_mask.to(dtype=t.dtype, copy=True)
        mask[left] = method.compute_mask(t[left], default_mask=default_mask[left]).to(dtype=mask.dtype)
        return mask


def _slices_left(method: BasePruningMethod, mask: Tensor) -> tuple:
    """The index of those slices along the method's dimension of which an element is left."""
    if not hasattr(method, "dim"):
        raise AttributeError('Pruning methods of PRUNING_TYPE "structured" need to have the attribute `dim` defined.')
    dim = method.dim + mask.ndim if method.dim < 0 else method.dim
    if dim < 0:
        raise IndexError(f"Index is out of bounds for tensor with dimensions {mask.ndim}")
    index = [slice(None)] * mask.ndim
    index[dim] = mask.sum(dim=[d for d in range(mask.ndim) if d != dim]) != 0
    return tuple(index)


class Identity(BasePruningMethod):
    """Prunes nothing, but makes mask and hook."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        return default_mask

    @classmethod
    def apply(cls, module: Module, name: str):
        return super().apply(module, name)


class _Amount(BasePruningMethod):
    """Prunes a number of elements or slices (int), or a fraction of them (float)."""

    def __init__(self, amount: int | float):
        if not isinstance(amount, numbers.Real):
            raise TypeError(f"Invalid type for amount: {amount}. Must be int or float.")
        if amount < 0 or not (isinstance(amount, numbers.Integral) or amount <= 1):
            raise ValueError(f"amount={amount} should either be a float in the range [0, 1] or a non-negative integer")
        self.amount = amount

    def _count(self, size: int) -> int:
        """How many of ``size`` go."""
        count = self.amount if isinstance(self.amount, numbers.Integral) else round(self.amount * size)
        if count > size:
            raise ValueError(f"amount={count} should be smaller than the number of parameters to prune={size}")
        return count


class _Unstructured(_Amount):
    """Single elements: those that ``_scores`` puts first."""

    PRUNING_TYPE = "unstructured"

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define _scores()")

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        count = self._count(t.numel())
        mask = default_mask.clone(memory_format=contiguous_format)
        if count:
            mask.view(-1)[self._scores(t).reshape(-1).topk(count, largest=False).indices] = 0
        return mask


class RandomUnstructured(_Unstructured):
    """Elements chosen at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return rand_like(t)

    @classmethod
    def apply(cls, module: Module, name: str, amount):
        return super().apply(module, name, amount=amount)


class L1Unstructured(_Unstructured):
    """The elements of least absolute value."""

    def _scores(self, t: Tensor) -> Tensor:
        return t.abs()

    @classmethod
    def apply(cls, module: Module, name: str, amount, importance_scores: Tensor | None = None):
        return super().apply(module, name, amount=amount, importance_scores=importance_scores)


class _Structured(_Amount):
    """Whole slices along ``dim``: those that ``_scores`` puts first."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: int | float, dim: int = -1):
        super().__init__(amount)
        self.dim = dim

    def _scores(self, t: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} must define _scores()")

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if t.ndim <= 1:
            raise ValueError(
                "Structured pruning can only be applied to multidimensional tensors. Found tensor of shape "
                f"{t.shape} with {t.ndim} dims"
            )
        if self.dim >= t.ndim:
            raise IndexError(f"Invalid index {self.dim} for tensor of size {t.shape}")
        size = t.shape[self.dim]
        count = self._count(size)
        if not count:
            return default_mask
        index = [slice(None)] * t.ndim
        index[self.dim] = self._scores(t).topk(size - count).indices
        mask = zeros_like(t)
        mask[tuple(index)] = 1
        return mask.mul_(default_mask.to(dtype=mask.dtype))


class RandomStructured(_Structured):
    """Slices chosen at random."""

    def _scores(self, t: Tensor) -> Tensor:
        return rand(t.shape[self.dim])

    @classmethod
    def apply(cls, module: Module, name: str, amount, dim: int = -1):
        return super().apply(module, name, amount=amount, dim=dim)


class LnStructured(_Structured):
    """The slices of least ``n``-norm."""

    def __init__(self, amount: int | float, n, dim: int = -1):
        super().__init__(amount, dim)
        self.n = n

    def _scores(self, t: Tensor) -> Tensor:
        return t.norm(p=self.n, dim=[d for d in range(t.ndim) if d != self.dim % t.ndim])

    @classmethod
    def apply(cls, module: Module, name: str, amount, n, dim: int, importance_scores: Tensor | None = None):
        return super().apply(module, name, amount=amount, n=n, dim=dim, importance_scores=importance_scores)


class CustomFromMask(BasePruningMethod):
    """The elements that a given mask has 0 for."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor):
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        if default_mask.shape != self.mask.shape:
            raise AssertionError(
                f"default_mask shape {default_mask.shape} must match self.mask shape {self.mask.shape}"
            )
        return default_mask * self.mask.to(dtype=default_mask.dtype)

    @classmethod
    def apply(cls, module: Module, name: str, mask: Tensor):
        return super().apply(module, name, mask=mask)


def identity(module: Module, name: str) -> Module:
    """Makes ``name_orig`` and ``name_mask`` of a parameter, and prunes nothing yet. Returns the module."""
    Identity.apply(module, name)
    return module


def random_unstructured(module: Module, name: str, amount: int | float) -> Module:
    """Prunes elements at random: ``amount`` of them, or this fraction. Returns the module."""
    RandomUnstructured.apply(module, name, amount)
    return module


def l1_unstructured(module: Module, name: str, amount: int | float, importance_scores: Tensor | None = None) -> Module:
    """Prunes the elements of least absolute value, or score. Returns the module."""
    L1Unstructured.apply(module, name, amount=amount, importance_scores=importance_scores)
    return module


def random_structured(module: Module, name: str, amount: int | float, dim: int) -> Module:
    """Prunes slices along ``dim`` at random. Returns the module."""
    RandomStructured.apply(module, name, amount, dim)
    return module


def ln_structured(
    module: Module, name: str, amount: int | float, n, dim: int, importance_scores: Tensor | None = None
) -> Module:
    """Prunes the slices along ``dim`` of least ``n``-norm. Returns the module."""
    LnStructured.apply(module, name, amount, n, dim, importance_scores=importance_scores)
    return module


def global_unstructured(parameters, pruning_method, importance_scores: dict | None = None, **kwargs) -> None:
    """Prunes several parameters as if they were one vector.

    Args:
        parameters: pairs of a module and a parameter's name
        pruning_method: a class of type ``"unstructured"``, made with ``kwargs``
        importance_scores: scores for some of the pairs
    Raises:
        TypeError: an argument is of the wrong type, or the method of another kind
    """
    if not isinstance(parameters, Iterable):
        raise TypeError("global_unstructured(): parameters is not an Iterable")
    scores = {} if importance_scores is None else importance_scores
    if not isinstance(scores, dict):
        raise TypeError("global_unstructured(): importance_scores must be of type dict")
    parameters = list(parameters)
    method = pruning_method(**kwargs)
    if method.PRUNING_TYPE != "unstructured":
        raise TypeError(
            'Only "unstructured" PRUNING_TYPE supported for the `pruning_method`. Found method '
            f"{pruning_method} of type {method.PRUNING_TYPE}"
        )
    method._tensor_name = "temp"
    with no_grad():
        values = [getattr(module, name) for module, name in parameters]
        masks = [
            getattr(module, name + "_mask", ones_like(t)) for (module, name), t in zip(parameters, values, strict=True)
        ]
        mask = PruningContainer(method).compute_mask(
            parameters_to_vector([scores.get(key, t) for key, t in zip(parameters, values, strict=True)]),
            parameters_to_vector(masks),
        )
    start = 0
    for (module, name), t in zip(parameters, values, strict=True):
        custom_from_mask(module, name, mask=mask[start : start + t.numel()].view_as(t))
        start += t.numel()


def custom_from_mask(module: Module, name: str, mask: Tensor) -> Module:
    """Prunes the elements that ``mask`` has 0 for. Returns the module."""
    CustomFromMask.apply(module, name, mask)
    return module


def remove(module: Module, name: str) -> Module:
    """Makes a pruned parameter an ordinary one, with its zeros. Returns the module. ValueError if it is not pruned."""
    for k, hook in module._forward_pre_hooks.items():
        if isinstance(hook, BasePruningMethod) and hook._tensor_name == name:
            hook.remove(module)
            del module._forward_pre_hooks[k]
            return module
    raise ValueError(f"Parameter '{name}' of module {module} has to be pruned before pruning can be removed")


def is_pruned(module: Module) -> bool:
    """Is a parameter of the module, or of one inside, pruned?"""
    return any(
        isinstance(hook, BasePruningMethod) for part in module.modules() for hook in part._forward_pre_hooks.values()
    )
