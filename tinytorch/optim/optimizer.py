"""What all optimisers share: groups of parameters, state, saving and restoring, hooks.

A step is one C call for each group (kernels/ops/optim.c). Handles are gathered anew for every step: a list of six
costs less than knowing whether a kept one is still right."""

from __future__ import annotations

import functools
import warnings
from collections import defaultdict
from collections.abc import Mapping
from copy import deepcopy
from types import MappingProxyType

from ..autograd.modes import enable_grad, no_grad
from ..autograd.node import Handle, count
from ..autograd.views import writer_number
from ..backends.cpu import ffi, lib
from ..backends.native import last_write
from ..devices import CPU, on_device
from ..dtypes import float32, float64, get_default_dtype
from ..nn.hooks import register
from ..tensor import Tensor, owned

NULL = ffi.NULL


class _Required:
    """The default of an option that every group must give."""

    def __repr__(self):
        return "<required parameter>"


required = _Required()


class Optimizer:
    """Base of all optimisers. ``params`` are tensors, (name, tensor) pairs, or dictionaries with ``"params"`` and
    options of their own; ``defaults`` holds the options that a group leaves out. A subclass gives ``update(group)``,
    or, as in PyTorch, a ``step`` of its own. Follows ``torch.optim.Optimizer``."""

    _stepped = False  # a scheduler warns when it is stepped first
    _repeats = False  # is a parameter twice in its group? Then it is updated twice, one after the other
    # Hooks. These stay empty: an optimiser gets dictionaries of its own with its first hook.
    _optimizer_step_pre_hooks: Mapping = MappingProxyType({})
    _optimizer_step_post_hooks: Mapping = MappingProxyType({})
    _optimizer_state_dict_pre_hooks: Mapping = MappingProxyType({})
    _optimizer_state_dict_post_hooks: Mapping = MappingProxyType({})
    _optimizer_load_state_dict_pre_hooks: Mapping = MappingProxyType({})
    _optimizer_load_state_dict_post_hooks: Mapping = MappingProxyType({})

    def __init__(self, params, defaults: dict):
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                f"{type(params).__name__}"
            )
        if not isinstance(defaults, Mapping):
            raise TypeError(f"the optimizer's defaults should be a dict, but got {type(defaults).__name__}")
        self.defaults = defaults
        self.state: defaultdict[Tensor, dict] = defaultdict(dict)
        self.param_groups: list[dict] = []
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _with_hooks(cls.__dict__["step"])

    def add_param_group(self, param_group: dict) -> None:
        """Adds a group: ``{"params": [...], option: value, ...}``. TypeError or ValueError for what is no parameter,
        for one that another group has, and for a missing option."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        group = dict(param_group)
        params = group["params"]
        if isinstance(params, Tensor):
            params = [params]
        elif isinstance(params, set):
            raise TypeError(
                "optimizer parameters need to be organized in ordered collections, but the ordering of "
                "tensors in sets will change between runs. Please use a list instead."
            )
        params = list(params)
        if params and isinstance(params[0], tuple):
            if not all(isinstance(p, tuple) for p in params):
                raise ValueError("all optimizer params should be with/without names. Some param names are missing")
            group["param_names"] = [name for name, _ in params]
            params = [p for _, p in params]
        for p in params:
            if not isinstance(p, Tensor):
                raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {type(p).__name__}")
            if not (p.is_leaf or p.retains_grad or self.defaults.get("differentiable")):
                raise ValueError("can't optimize a non-leaf Tensor")
        group["params"] = params
        for name, default in self.defaults.items():
            if default is required and name not in group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            group.setdefault(name, default)
        ids = {id(p) for p in params}
        if len(ids) != len(params):
            self._repeats = True
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error",
                stacklevel=3,
            )
        if any(id(p) in ids for other in self.param_groups for p in other["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        if self.param_groups and ("param_names" in group) != ("param_names" in self.param_groups[0]):
            raise ValueError("all optimizer param groups should be with/without names.")
        for p in params:
            if not hasattr(p, "_grad"):
                p._grad = None
        self.param_groups.append(group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the parameters' gradients, or fills them with zeros."""
        for group in self.param_groups:
            for p in group["params"]:
                g = p._grad
                if g is None:
                    continue
                if set_to_none:
                    p._grad = None
                else:
                    if g.requires_grad:
                        p._grad = g = g.detach()
                    with no_grad():
                        g.zero_()

    def step(self, closure=None):
        """One step along the gradients. ``closure``, if given, computes the loss anew, and the loss is returned."""
        if self._optimizer_step_pre_hooks or _pre_hooks:
            args, kwargs = _before_step(self, (self,) if closure is None else (self, closure), {})
            closure = kwargs.get("closure", args[1] if len(args) > 1 else None)
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        try:
            for group in self.param_groups:
                if self._repeats:
                    for p in group["params"]:
                        self.update({**group, "params": [p]})
                else:
                    self.update(group)
        finally:
            last_write[0] = count()
        self._stepped = True
        if self._optimizer_step_post_hooks or _post_hooks:
            _after_step(self, (self,) if closure is None else (self, closure), {})
        return loss

    def update(self, group: dict) -> None:
        """Updates the parameters of one group that have a gradient."""
        raise NotImplementedError(f"{type(self).__name__} defines neither step() nor update()")

    # Hooks.

    def _register(self, kind: str, hook, prepend: bool = False) -> Handle:
        return register(self.__dict__.setdefault(f"_optimizer_{kind}_hooks", {}), hook, prepend)

    def register_step_pre_hook(self, hook) -> Handle:
        """Calls ``hook(optimizer, args, kwargs)`` before each step; ``args`` begin with the optimiser. It may return
        other args and kwargs, as a pair."""
        return self._register("step_pre", hook)

    def register_step_post_hook(self, hook) -> Handle:
        """Calls ``hook(optimizer, args, kwargs)`` after each step."""
        return self._register("step_post", hook)

    def register_state_dict_pre_hook(self, hook, prepend: bool = False) -> Handle:
        """Calls ``hook(optimizer)`` before ``state_dict()``."""
        return self._register("state_dict_pre", hook, prepend)

    def register_state_dict_post_hook(self, hook, prepend: bool = False) -> Handle:
        """Calls ``hook(optimizer, state_dict)`` when the state dict is made; it may return another."""
        return self._register("state_dict_post", hook, prepend)

    def register_load_state_dict_pre_hook(self, hook, prepend: bool = False) -> Handle:
        """Calls ``hook(optimizer, state_dict)`` before ``load_state_dict()``, with a copy of the dictionary that it
        may change, or return another."""
        return self._register("load_state_dict_pre", hook, prepend)

    def register_load_state_dict_post_hook(self, hook, prepend: bool = False) -> Handle:
        """Calls ``hook(optimizer)`` after ``load_state_dict()``."""
        return self._register("load_state_dict_post", hook, prepend)

    # Saving and restoring.

    def state_dict(self) -> dict:
        """``{"state": {number of a parameter: its state}, "param_groups": [options, with numbers for parameters]}``.
        The tensors are the optimiser's own."""
        for hook in list(self._optimizer_state_dict_pre_hooks.values()):
            hook(self)
        numbers: dict[int, int] = {}
        for group in self.param_groups:
            for p in group["params"]:
                numbers.setdefault(id(p), len(numbers))
        groups = [
            {**{k: v for k, v in group.items() if k != "params"}, "params": [numbers[id(p)] for p in group["params"]]}
            for group in self.param_groups
        ]
        state = {numbers[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()}
        made = {"state": state, "param_groups": groups}
        for hook in list(self._optimizer_state_dict_post_hooks.values()):
            changed = hook(self, made)
            made = made if changed is None else changed
        return made

    def load_state_dict(self, state_dict: dict) -> None:
        """Takes the state of another optimiser of the same groups; tensors are copied, in the parameters' dtypes.
        What is kept by other keys is copied as it is. ValueError when the groups differ in number or size."""
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"load_state_dict(): expected state_dict to be dict-like, got {type(state_dict).__name__}")
        state_dict = dict(state_dict)
        for hook in list(self._optimizer_load_state_dict_pre_hooks.values()):
            changed = hook(self, state_dict)
            state_dict = state_dict if changed is None else changed
        saved_groups = deepcopy(state_dict["param_groups"])
        if len(saved_groups) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        for mine, theirs in zip(self.param_groups, saved_groups):
            if len(mine["params"]) != len(theirs["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
                )
        owner = {
            number: (p, theirs)
            for mine, theirs in zip(self.param_groups, saved_groups)
            for number, p in zip(theirs["params"], mine["params"])
        }
        state: defaultdict = defaultdict(dict)
        for k, value in state_dict["state"].items():
            if k in owner:
                p, group = owner[k]
                state[p] = _adopted(value, p, "", group)
            else:
                state[k] = deepcopy(value)
        self.__setstate__(
            {
                "state": state,
                "param_groups": [
                    {**theirs, "params": mine["params"]} for mine, theirs in zip(self.param_groups, saved_groups)
                ],
            }
        )
        for hook in list(self._optimizer_load_state_dict_post_hooks.values()):
            hook(self)

    def __getstate__(self):
        return {
            "defaults": self.defaults,
            "state": self.state,
            "param_groups": self.param_groups,
            "_repeats": self._repeats,
        }

    def __setstate__(self, state: dict) -> None:
        self.__dict__.update(state)
        for group in self.param_groups:
            for name, default in self.defaults.items():
                group.setdefault(name, default)
        for values in self.state.values():
            if isinstance(values, Mapping) and "step" in values and not isinstance(values["step"], Tensor):
                values["step"] = step_count(values["step"])

    def __repr__(self):
        text = f"{type(self).__name__} ("
        for i, group in enumerate(self.param_groups):
            text += f"\nParameter Group {i}\n"
            text += "".join(f"    {key}: {group[key]}\n" for key in sorted(group) if key != "params")
        return text + ")"


_pre_hooks: dict = {}  # of every optimiser
_post_hooks: dict = {}


def register_optimizer_step_pre_hook(hook) -> Handle:
    """Calls ``hook(optimizer, args, kwargs)`` before each step of every optimiser. Follows
    ``torch.optim.optimizer.register_optimizer_step_pre_hook``."""
    return Handle(_pre_hooks, hook)


def register_optimizer_step_post_hook(hook) -> Handle:
    """Calls ``hook(optimizer, args, kwargs)`` after each step of every optimiser. Follows
    ``torch.optim.optimizer.register_optimizer_step_post_hook``."""
    return Handle(_post_hooks, hook)


def _before_step(optimizer, args: tuple, kwargs: dict) -> tuple:
    """Calls the hooks before a step. Returns the arguments that they want. RuntimeError for a hook that returns
    something else."""
    for hook in [*_pre_hooks.values(), *optimizer._optimizer_step_pre_hooks.values()]:
        changed = hook(optimizer, args, kwargs)
        if changed is None:
            continue
        if not isinstance(changed, tuple) or len(changed) != 2:
            raise RuntimeError(
                f"{type(optimizer).__name__}.step must return None or a tuple of (new_args, new_kwargs), but got "
                f"{changed}."
            )
        args, kwargs = changed
    return args, kwargs


def _after_step(optimizer, args: tuple, kwargs: dict) -> None:
    """Calls the hooks after a step."""
    for hook in [*optimizer._optimizer_step_post_hooks.values(), *_post_hooks.values()]:
        hook(optimizer, args, kwargs)


def _with_hooks(step):
    """A subclass's own ``step``, with the hooks around it."""

    @functools.wraps(step)
    def inner(*args, **kwargs):
        self = args[0]
        args, kwargs = _before_step(self, args, kwargs)
        result = step(*args, **kwargs)
        self._stepped = True
        _after_step(self, args, kwargs)
        return result

    return inner


def _adopted(value, p: Tensor, name: str, group: dict):
    """A loaded value of the state of ``p``: tensors in it are copied to its device, in its dtype. Step counts keep
    theirs, and go to the CPU unless the group is capturable."""
    if isinstance(value, dict):
        return {k: _adopted(v, p, k, group) for k, v in value.items()}
    if type(value) in (list, tuple):
        return type(value)([_adopted(v, p, "", group) for v in value])
    if not isinstance(value, Tensor):
        return deepcopy(value)
    value = value.detach()
    with no_grad():
        if name == "step":
            return value.to(p.device if group.get("capturable") else CPU, copy=True)
        return value.to(p.device, p.dtype if p.is_floating_point() else value.dtype, copy=True)


def zeros_for(p: Tensor) -> Tensor:
    """A state of zeros that lies in memory as ``p`` does."""
    return filled_for(p, 0.0)


def filled_for(p: Tensor, value: complex) -> Tensor:
    """A state of one value that lies in memory as ``p`` does."""
    with no_grad():
        return empty_for(p).fill_(value)


def empty_for(p: Tensor) -> Tensor:
    """A state, yet to be written, that lies in memory as ``p`` does."""
    h = p._h
    return owned.tt_empty_like(h, h.dtype)


def step_count(start: float = 0.0, p: Tensor | None = None) -> Tensor:
    """A count of steps: 0-d, floating; on the CPU, or on the device of ``p``."""
    dtype = float64 if get_default_dtype() is float64 else float32
    device = CPU if p is None else p.device
    return on_device(device, owned.tt_full, dtype.code, 0, NULL, lib.TT_KIND_FLOAT, float(start), 0)


def check(valid: bool, what: str, value) -> None:
    """ValueError for an option that is not valid."""
    if not valid:
        raise ValueError(f"Invalid {what}: {value}")


def check_options(lr, betas=(0.0, 0.0), **numbers: float) -> None:
    """A learning rate is a number or a tensor of one element; neither it nor ``numbers`` are negative; both rates of
    decay lie in [0, 1). TypeError or ValueError for the first that is not so."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")
    if isinstance(betas, dict):
        raise TypeError("betas must be a pair of numbers, not dict")
    check(lr >= 0.0, "learning rate", lr)
    for name, value in numbers.items():
        check(value >= 0.0, f"{'epsilon' if name == 'eps' else name} value", value)
    for k in range(2):
        check(0.0 <= betas[k] < 1.0, f"beta parameter at index {k}", betas[k])


def check_ways(differentiable: bool, foreach: bool | None, fused: bool | None) -> None:
    """RuntimeError for ways to update that exclude each other."""
    if fused and foreach:
        raise RuntimeError("`fused` and `foreach` cannot be `True` together.")
    if fused and differentiable:
        raise RuntimeError("`fused` does not support `differentiable`")


__all__ = [
    "NULL",
    "Optimizer",
    "check",
    "check_options",
    "check_ways",
    "empty_for",
    "filled_for",
    "lib",
    "register_optimizer_step_post_hook",
    "register_optimizer_step_pre_hook",
    "required",
    "step_count",
    "writer_number",
    "zeros_for",
]
