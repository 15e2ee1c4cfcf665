"""State dicts: saving and restoring what a Module holds."""

from __future__ import annotations

import warnings
import weakref
from collections import OrderedDict
from collections.abc import Mapping
from typing import NamedTuple

from ..autograd.modes import no_grad
from ..autograd.node import Handle
from ..tensor import Tensor
from .hooks import register
from .parameter import Parameter, is_lazy

EXTRA = "_extra_state"


class IncompatibleKeys(NamedTuple):
    """What ``load_state_dict`` did not find, and what it had no use for."""

    missing_keys: list
    unexpected_keys: list

    def __repr__(self):
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys}, unexpected_keys={self.unexpected_keys})"

    __str__ = __repr__


class StateDict(OrderedDict):
    """An ordered dictionary that carries the versions of the modules (``_metadata``)."""


class PostHook:
    """A hook after ``state_dict()`` that changes it in place. RuntimeError when it returns another."""

    def __init__(self, hook):
        self.hook = hook

    def __call__(self, *args):
        if self.hook(*args) is not None:
            raise RuntimeError("state_dict post-hook must return None")


class WithModule:
    """A hook that gets its module first, and does not keep it alive. Pickles and copies take the module along."""

    def __init__(self, hook, module):
        self.hook, self.module = hook, weakref.ref(module)

    def __call__(self, *args):
        return self.hook(self.module(), *args)

    def __reduce__(self):
        return WithModule, (self.hook, self.module())


class StateMethods:
    """The part of Module that has to do with state dicts."""

    _version = 1  # a subclass raises it when the meaning of its entries changes; see _load_from_state_dict

    def get_extra_state(self):
        """More to put into the state dict; with it goes ``set_extra_state``."""
        raise RuntimeError(f"{type(self).__name__}: get_extra_state is not implemented")

    def set_extra_state(self, state):
        """Takes what ``get_extra_state`` gave."""
        raise RuntimeError(f"{type(self).__name__}: set_extra_state is not implemented")

    def register_state_dict_pre_hook(self, hook) -> Handle:
        """``hook(module, prefix, keep_vars)`` before the state dict of this module is made."""
        return register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook) -> Handle:
        """``hook(module, state_dict, prefix, local_metadata)`` when it is made; changes it in place. RuntimeError, when
        it is called, if it returns anything but None."""
        return register(self._state_dict_hooks, PostHook(hook))

    def _register_state_dict_hook(self, hook) -> Handle:
        return register(self._state_dict_hooks, hook)  # it may return another dictionary, which the root returns

    def register_load_state_dict_pre_hook(self, hook) -> Handle:
        """``hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)``
        before this module loads its entries."""
        return register(self._load_state_dict_pre_hooks, WithModule(hook, self))

    def _register_load_state_dict_pre_hook(self, hook, with_module: bool = False) -> Handle:
        return register(self._load_state_dict_pre_hooks, WithModule(hook, self) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook) -> Handle:
        """``hook(module, incompatible_keys)`` after this module has loaded; may change the lists in place."""
        return register(self._load_state_dict_post_hooks, hook)

    def state_dict(self, *args, destination=None, prefix: str = "", keep_vars: bool = False):
        """All parameters and persistent buffers by name, of this module and those inside. The tensors are the module's
        own, detached unless ``keep_vars``."""
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args) :])
        if destination is None:
            destination = StateDict()
            destination._metadata = OrderedDict()
        metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = metadata
        for hook in list(self._state_dict_pre_hooks.values()):
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in list(self._state_dict_hooks.values()):
            changed = hook(self, destination, prefix, metadata)
            if changed is not None:
                destination = changed
        return destination

    def _save_to_state_dict(self, destination, prefix: str, keep_vars: bool) -> None:
        """Puts this module's own entries into ``destination``."""
        for name, t in self._state().items():
            destination[prefix + name] = t if keep_vars or is_lazy(t) else t.detach()
        if type(self).get_extra_state is not StateMethods.get_extra_state:
            destination[prefix + EXTRA] = self.get_extra_state()

    def _state(self) -> dict[str, Tensor]:
        """This module's own parameters and persistent buffers."""
        named = {
            **self._parameters,
            **{k: v for k, v in self._buffers.items() if k not in self._non_persistent_buffers_set},
        }
        return {k: v for k, v in named.items() if v is not None}

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False) -> IncompatibleKeys:
        """Copies the entries of ``state_dict`` into parameters and buffers; with ``assign`` they take their place.
        Returns the missing and the unexpected keys; with ``strict``, RuntimeError when there are any. RuntimeError
        for an entry of another shape."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        problems: list[str] = []
        versions = getattr(state_dict, "_metadata", None) or {}

        def load(module, entries, prefix):
            local = {**versions.get(prefix[:-1], {}), **({"assign_to_params_buffers": True} if assign else {})}
            module._load_from_state_dict(entries, prefix, local, True, missing, unexpected, problems)
            for name, child in module._modules.items():
                if child is not None:
                    inner = f"{prefix}{name}."
                    load(child, {k: v for k, v in entries.items() if k.startswith(inner)}, inner)
            keys = IncompatibleKeys(missing, unexpected)
            for hook in list(module._load_state_dict_post_hooks.values()):
                if hook(module, keys) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, OrderedDict(state_dict), "")
        if strict:
            for kind, keys in (("Unexpected", unexpected), ("Missing", missing)):  # each goes to the front
                if keys:
                    names = ", ".join(f'"{k}"' for k in keys)
                    problems.insert(0, f"{kind} key(s) in state_dict: {names}. ")
        if problems:
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(problems))
        return IncompatibleKeys(missing, unexpected)

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Loads this module's own entries, those of ``prefix``, and notes in the lists what does not fit.
        ``local_metadata["version"]`` is the ``_version`` of the module that saved them."""
        for hook in list(self._load_state_dict_pre_hooks.values()):
            hook(state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        own = self._state()
        assign = local_metadata.get("assign_to_params_buffers", False)
        for name, t in own.items():
            key = prefix + name
            if key not in state_dict:
                if strict:
                    missing_keys.append(key)
                continue
            given = state_dict[key]
            if (
                isinstance(given, Tensor)
                and not is_lazy(given)
                and not is_lazy(t)
                and given.shape == (1,)
                and t.shape == ()
            ):
                given = given[0]  # what was a number before there were tensors of no dimension
            if not isinstance(given, Tensor):
                error_msgs.append(
                    f'While copying the parameter named "{key}", expected Tensor from checkpoint but '
                    f"received {type(given)}"
                )
            elif not is_lazy(t) and given.shape != t.shape:
                error_msgs.append(
                    f"size mismatch for {key}: copying a param with shape {given.shape} from "
                    f"checkpoint, the shape in current model is {t.shape}."
                )
            else:
                self._load_entry(name, t, given, key, assign, error_msgs)
        self._load_extra(state_dict, prefix + EXTRA, strict, missing_keys, unexpected_keys)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != prefix + EXTRA:
                    head, _, rest = key[len(prefix) :].partition(".")
                    if head not in (self._modules if rest else own):
                        unexpected_keys.append(key)

    def _load_entry(self, name, t, given, key, assign, error_msgs) -> None:
        try:
            with no_grad():
                if not assign:
                    t.copy_(given)
                    return
                if isinstance(t, Parameter):
                    if isinstance(given, Parameter):
                        given.requires_grad_(t.requires_grad)
                    else:
                        given = Parameter(given, t.requires_grad)
                setattr(self, name, given)
        except Exception as exc:
            error_msgs.append(
                f'While copying the parameter named "{key}", whose dimensions in the model are '
                f"{t.size()} and whose dimensions in the checkpoint are {given.size()}, an exception "
                f"occurred : {exc.args}."
            )

    def _load_extra(self, state_dict, key, strict, missing_keys, unexpected_keys) -> None:
        if type(self).set_extra_state is not StateMethods.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)
