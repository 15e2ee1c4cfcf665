"""Modules as functions of their parameters. Follows ``torch.nn.utils.stateless`` and ``torch.func``."""

from __future__ import annotations

import contextlib

from ...tensor import Tensor
from ..module import Module

__all__ = ["_reparametrize_module", "functional_call"]

MISSING = object()


def functional_call(
    module: Module, parameters_and_buffers, args=None, kwargs=None, *, tie_weights: bool = True, strict: bool = False
):
    """``module(*args, **kwargs)`` with other tensors in the place of parameters and buffers: a dictionary of tensors by
    their names in the state dict, or several. What the call writes into the module's buffers ends up in the dictionary.
    ``tie_weights`` puts a tensor in every place where the one that it replaces is. ``args`` is a tuple, or one
    argument. RuntimeError, with ``strict``, unless there is a tensor for every name; ValueError for two tensors for one
    that is tied. Follows ``torch.func.functional_call``."""
    if isinstance(parameters_and_buffers, dict):
        tensors = parameters_and_buffers
    else:
        several = parameters_and_buffers
        if not isinstance(several, (list, tuple)) or not all(isinstance(part, dict) for part in several):
            raise ValueError("functional_call: expected a dictionary of tensors, or a sequence of dictionaries")
        tensors = {name: t for part in several for name, t in part.items()}
        if len(tensors) != sum(map(len, several)):
            raise ValueError("functional_call: several dictionaries have the same name")
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    with _reparametrize_module(module, tensors, tie_weights, strict):
        return module(*args, **(kwargs or {}))


@contextlib.contextmanager
def _reparametrize_module(
    module: Module,
    parameters_and_buffers: dict,
    tie_weights: bool = False,
    strict: bool = False,
    stack_weights: bool = False,
):
    """A context in which a module has other tensors. ``stack_weights`` puts those back first that were put in last."""
    tensors = parameters_and_buffers
    wanted = _tied(module, tensors) if tie_weights else dict(tensors)
    if strict:
        known = {n for n, _ in (*_named(module, "named_parameters"), *_named(module, "named_buffers"))}
        problems = [
            f"{kind} key(s): {', '.join(map(repr, sorted(keys)))}."
            for kind, keys in (("Unexpected", wanted.keys() - known), ("Missing", known - wanted.keys()))
            if keys
        ]
        if problems:
            raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:\n\t" + "\n\t".join(problems))
    before: dict = {}
    try:
        for name, t in wanted.items():
            if not isinstance(t, Tensor):
                raise TypeError(f"{t} is not an instance of Tensor")
            before[name] = _swap(module, name, t)
        yield
    finally:
        for name, t in reversed(before.items()) if stack_weights else before.items():
            after = _swap(module, name, t)
            if name in tensors:
                tensors[name] = after


def _named(module: Module, method: str):
    return getattr(module, method)(remove_duplicate=False)


def _swap(module: Module, name: str, new):
    """Puts a tensor (MISSING: none) in a place. Returns what was there. AttributeError for an unknown module."""
    path, _, last = name.rpartition(".")
    owner = module.get_submodule(path)
    for kind in (owner._parameters, owner._buffers):
        if last in kind:
            old, kind[last] = kind[last], new
            return old
    old = getattr(owner, last, MISSING)
    if new is MISSING:
        delattr(owner, last)
    else:
        setattr(owner, last, new)
    return old


def _tied(module: Module, tensors: dict) -> dict:
    """The tensors, also under the other names of what they replace. ValueError where two replace one."""
    names: dict[int, list[str]] = {}
    for name, t in (*_named(module, "named_parameters"), *_named(module, "named_buffers")):
        names.setdefault(id(t), []).append(name)
    result = dict(tensors)
    for tied in names.values():
        given = {id(tensors[name]): tensors[name] for name in tied if name in tensors}
        if len(given) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(tied)}, which are tied. Consider using "
                "tie_weights=False"
            )
        for t in given.values():
            result.update(dict.fromkeys(tied, t))
    return result
