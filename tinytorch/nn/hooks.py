"""Hooks of modules: what may be called before and after ``forward`` and around its derivative."""

from __future__ import annotations

import warnings
from typing import NamedTuple

from ..autograd.node import Handle
from .backward_hooks import Boundary, hook_last_node

GLOBAL: dict = {}  # hooks on every module: handle id -> GlobalHook
REGISTRATION: dict = {}  # hooks on what becomes a module's: handle id -> ("parameter", "buffer" or "module", hook)


class GlobalHook(NamedTuple):
    """A hook on every module, and how it wants to be called."""

    kind: str  # "pre", "post", "backward_pre", "backward" or "last_node"
    fn: object
    with_kwargs: bool = False
    always_call: bool = False


def register(hooks: dict, hook, prepend: bool = False, extra: tuple = ()) -> Handle:
    """Adds a hook, at the end or in front; its number goes into the dictionaries ``extra``, too."""
    handle = Handle(hooks, hook, extra_dict=list(extra))
    for flags in extra:
        flags[handle.id] = True
    if prepend:
        rest = {k: v for k, v in hooks.items() if k != handle.id}
        for k, v in rest.items():
            del hooks[k]
            hooks[k] = v
    return handle


def register_module_forward_pre_hook(hook) -> Handle:
    """``hook(module, args)`` before every module's forward. For debugging. Follows
    ``torch.nn.modules.module.register_module_forward_pre_hook``."""
    return register(GLOBAL, GlobalHook("pre", hook))


def register_module_forward_hook(hook, *, with_kwargs: bool = False, always_call: bool = False) -> Handle:
    """``hook(module, args, output)`` after every module's forward. For debugging. Follows
    ``torch.nn.modules.module.register_module_forward_hook``."""
    return register(GLOBAL, GlobalHook("post", hook, with_kwargs, always_call))


def _register_global_backward(kind: str, other: str, hook) -> Handle:
    if any(h.kind == other for h in GLOBAL.values()):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only "
            "one of them."
        )
    return register(GLOBAL, GlobalHook(kind, hook))


def register_module_full_backward_pre_hook(hook) -> Handle:
    """``hook(module, grad_output)`` before every module's derivative. For debugging. Follows
    ``torch.nn.modules.module.register_module_full_backward_pre_hook``."""
    return register(GLOBAL, GlobalHook("backward_pre", hook))


def register_module_full_backward_hook(hook) -> Handle:
    """``hook(module, grad_input, grad_output)`` after every module's derivative. For debugging. Follows
    ``torch.nn.modules.module.register_module_full_backward_hook``. RuntimeError beside
    ``register_module_backward_hook``."""
    return _register_global_backward("backward", "last_node", hook)


def register_module_backward_hook(hook) -> Handle:
    """``hook(module, grad_input, grad_output)`` with the gradients at the Node of every module's output: deprecated for
    ``register_module_full_backward_hook``. Follows ``torch.nn.modules.module.register_module_backward_hook``."""
    return _register_global_backward("last_node", "backward", hook)


def register_module_parameter_registration_hook(hook) -> Handle:
    """``hook(module, name, parameter)`` when a module gets a parameter; it may return another. Follows
    ``torch.nn.modules.module.register_module_parameter_registration_hook``."""
    return register(REGISTRATION, ("parameter", hook))


def register_module_buffer_registration_hook(hook) -> Handle:
    """``hook(module, name, buffer)`` when a module gets a buffer; it may return another. Follows
    ``torch.nn.modules.module.register_module_buffer_registration_hook``."""
    return register(REGISTRATION, ("buffer", hook))


def register_module_module_registration_hook(hook) -> Handle:
    """``hook(module, name, submodule)`` when a module gets another; it may return a third. Follows
    ``torch.nn.modules.module.register_module_module_registration_hook``."""
    return register(REGISTRATION, ("module", hook))


def as_registered(kind: str, module, name: str, value):
    """``value`` as the hooks want it to be registered."""
    for of, hook in list(REGISTRATION.values()):
        if of == kind:
            found = hook(module, name, value)
            value = value if found is None else found
    return value


class HookMethods:
    """The part of Module that has to do with hooks."""

    _is_full_backward_hook: bool | None = None  # which kind ``_backward_hooks`` holds; None: none yet

    def register_forward_pre_hook(self, hook, *, prepend: bool = False, with_kwargs: bool = False) -> Handle:
        """``hook(module, args)`` before forward; it may return other arguments (not a tuple: a single one). With
        ``with_kwargs``, ``hook(module, args, kwargs)`` and it may return a pair."""
        extra = (self._forward_pre_hooks_with_kwargs,) if with_kwargs else ()
        return register(self._forward_pre_hooks, hook, prepend, extra)

    def register_forward_hook(
        self, hook, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> Handle:
        """``hook(module, args, output)`` after forward, or ``hook(module, args, kwargs, output)`` with
        ``with_kwargs``; it may return another output. With ``always_call`` it is also called when forward raises."""
        extra = (self._forward_hooks_with_kwargs,) if with_kwargs else ()
        if always_call:
            extra += (self._forward_hooks_always_called,)
        return register(self._forward_hooks, hook, prepend, extra)

    def register_full_backward_pre_hook(self, hook, prepend: bool = False) -> Handle:
        """``hook(module, grad_output)`` before the derivative of this module is taken; it may return another
        ``grad_output``."""
        return register(self._backward_pre_hooks, hook, prepend)

    def register_full_backward_hook(self, hook, prepend: bool = False) -> Handle:
        """``hook(module, grad_input, grad_output)`` when the gradients of the inputs are there; it may return another
        ``grad_input``. Both are tuples, with None for what is no tensor or needs no gradient. RuntimeError beside
        ``register_backward_hook``."""
        self._choose_backward_hooks(True)
        return register(self._backward_hooks, hook, prepend)

    def register_backward_hook(self, hook) -> Handle:
        """``hook(module, grad_input, grad_output)`` with the gradients at the Node of the output: deprecated for
        ``register_full_backward_hook``, beside which it raises RuntimeError."""
        self._choose_backward_hooks(False)
        return register(self._backward_hooks, hook)

    def _choose_backward_hooks(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only "
                "one of them."
            )
        self._is_full_backward_hook = full

    def _call_with_hooks(self, args: tuple, kwargs: dict):
        every = list(GLOBAL.items())
        called = set()
        output = None
        try:
            args, kwargs = self._run_pre_hooks(every, args, kwargs)
            boundary = None
            pre = [h.fn for _, h in every if h.kind == "backward_pre"] + list(self._backward_pre_hooks.values())
            full = [h.fn for _, h in every if h.kind == "backward"]
            last_node = [h.fn for _, h in every if h.kind == "last_node"]
            (last_node if self._is_full_backward_hook is False else full).extend(self._backward_hooks.values())
            if pre or full:
                boundary = Boundary(self, pre, full)
                args = boundary.enter(args)
            output = self.forward(*args, **kwargs)
            for key, fn, with_kwargs, _ in self._post_hooks(every):
                called.add(key)
                output = self._run_hook(fn, with_kwargs, args, kwargs, output)
            if boundary is not None:
                output = boundary.leave(output)
            if last_node:
                hook_last_node(self, last_node, args, output)
            return output
        except Exception:
            for key, fn, with_kwargs, always in self._post_hooks(every):
                if always and key not in called:
                    try:
                        output = self._run_hook(fn, with_kwargs, args, kwargs, output)
                    except Exception as e:
                        warnings.warn(
                            "module forward hook with ``always_call=True`` raised an exception that was silenced as "
                            f"another error was raised in forward: {e}",
                            stacklevel=3,
                        )
            raise

    def _run_pre_hooks(self, every, args, kwargs):
        hooks = [(h.fn, False) for _, h in every if h.kind == "pre"]
        hooks += [(fn, key in self._forward_pre_hooks_with_kwargs) for key, fn in self._forward_pre_hooks.items()]
        for fn, with_kwargs in hooks:
            if with_kwargs:
                changed = fn(self, args, kwargs)
                if changed is not None:
                    if not isinstance(changed, tuple) or len(changed) != 2:
                        raise RuntimeError(
                            "forward pre-hook must return None or a tuple of (new_args, "
                            f"new_kwargs), but got {changed}."
                        )
                    args, kwargs = changed
            else:
                changed = fn(self, args)
                if changed is not None:
                    args = changed if isinstance(changed, tuple) else (changed,)
        return args, kwargs

    def _post_hooks(self, every) -> list[tuple]:
        """Number, hook, with kwargs?, called always? of the hooks after forward."""
        found = [(key, h.fn, h.with_kwargs, h.always_call) for key, h in every if h.kind == "post"]
        with_kwargs, always = self._forward_hooks_with_kwargs, self._forward_hooks_always_called
        return found + [(key, fn, key in with_kwargs, key in always) for key, fn in self._forward_hooks.items()]

    def _run_hook(self, fn, with_kwargs, args, kwargs, output):
        changed = fn(self, args, kwargs, output) if with_kwargs else fn(self, args, output)
        return output if changed is None else changed
