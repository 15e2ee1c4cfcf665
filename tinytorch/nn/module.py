"""Module: the base of everything that has parameters."""

from __future__ import annotations

from ..autograd.modes import no_grad
from ..devices import CUDA, cuda_device
from ..devices import device as _device
from ..dtypes import as_dtype, bfloat16, float16, float32, float64
from ..ops.convert import asked_of_to
from ..ops.create_like import empty_like
from ..tensor import Tensor
from .hooks import GLOBAL, REGISTRATION, HookMethods, as_registered
from .parameter import Buffer, Parameter, is_lazy
from .state import StateMethods

_DICTS = (
    "_parameters",
    "_buffers",
    "_modules",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_backward_pre_hooks",
    "_backward_hooks",
    "_state_dict_pre_hooks",
    "_state_dict_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)


class Module(HookMethods, StateMethods):
    """The base of layers and models: subclass it, assign Parameters and Modules as attributes after
    ``super().__init__()``, and define ``forward``. Follows ``torch.nn.Module``."""

    training: bool

    dump_patches = False
    call_super_init = False

    def __init__(self, *args, **kwargs):
        if (args or kwargs) and not self.call_super_init:
            raise TypeError(f"{type(self).__name__}.__init__() got unexpected arguments {args or kwargs}")
        attributes = self.__dict__
        attributes["training"] = True
        attributes["_is_full_backward_hook"] = None
        attributes["_non_persistent_buffers_set"] = set()
        for name in _DICTS:
            attributes[name] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def forward(self, *args, **kwargs):
        """What the module computes. A subclass defines it."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __call__(self, *args, **kwargs):
        if self._forward_pre_hooks or self._forward_hooks or self._backward_hooks or self._backward_pre_hooks or GLOBAL:
            return self._call_with_hooks(args, kwargs)
        return self.forward(*args, **kwargs)

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__getattr__ is not Module.__getattr__ or cls.__getattribute__ is not object.__getattribute__:
            cls._weights = lambda self: (self.weight, self.bias)  # it answers for attributes itself

    def _weights(self):
        """``weight`` and ``bias``, for a layer's forward: as attributes they would cost half a microsecond each."""
        attributes = self.__dict__
        own = attributes["_parameters"]
        if "weight" not in attributes and "bias" not in attributes and "weight" in own and "bias" in own:
            weight = own["weight"]
            if weight is not None:
                return weight, own["bias"]
        return self.weight, self.bias  # other attributes in their place

    # Attributes.

    def __getattr__(self, name):
        attributes = self.__dict__  # parameters, buffers and modules are not in it: we come here only for them
        if "_parameters" in attributes:
            found = attributes["_parameters"]
            if name in found:
                return found[name]
            found = attributes["_modules"]
            if name in found:
                return found[name]
            found = attributes["_buffers"]
            if name in found:
                return found[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name, value):
        attributes = self.__dict__
        parameters = attributes.get("_parameters")
        if isinstance(value, Parameter):
            if parameters is None:
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif isinstance(value, Module):
            if parameters is None:
                raise AttributeError("cannot assign module before Module.__init__() call")
            self._forget(name, "_modules")
            attributes["_modules"][name] = as_registered("module", self, name, value) if REGISTRATION else value
        elif parameters is None:
            object.__setattr__(self, name, value)
        elif name in parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as parameter '{name}' (nn.Parameter or None expected)"
                )
            parameters[name] = None
        elif name in attributes["_modules"]:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as child module '{name}' (nn.Module or None expected)"
                )
            attributes["_modules"][name] = None
        elif isinstance(value, Buffer):
            self._forget(name, "_buffers")
            self.register_buffer(name, value, value.persistent)
        elif name in attributes["_buffers"]:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{type(value).__name__}' as buffer '{name}' (Tensor, nn.Buffer or None expected)"
                )
            attributes["_buffers"][name] = as_registered("buffer", self, name, value) if REGISTRATION else value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, keep: str) -> None:
        """Takes ``name`` out of wherever else it is, before it becomes an entry of ``keep``."""
        self.__dict__.pop(name, None)
        self._non_persistent_buffers_set.discard(name)
        for kind in ("_parameters", "_buffers", "_modules"):
            if kind != keep:
                self.__dict__[kind].pop(name, None)

    def __delattr__(self, name):
        for kind in ("_parameters", "_buffers", "_modules"):
            if name in self.__dict__.get(kind, ()):
                del self.__dict__[kind][name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self):
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers, *self._modules}
        return sorted(n for n in names if not n[:1].isdigit())

    def __setstate__(self, state):
        self.__dict__.update(state)
        for name in _DICTS:
            self.__dict__.setdefault(name, {})

    def _check_name(self, kind: str, name: str, known: dict) -> None:
        if not known and "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type(name).__name__}")
        if "." in name:
            raise KeyError(f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else ""))
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in known and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Adds a parameter; None holds the place of one that is absent."""
        known = self.__dict__.get("_parameters", {})
        self._check_name("parameter", name, known)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{type(param).__name__}' object to parameter '{name}' (nn.Parameter "
                    "or None required)"
                )
            if not param.is_leaf:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                    f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                    "the value in the forward() method."
                )
            if REGISTRATION:
                param = as_registered("parameter", self, name, param)
        known[name] = param

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Adds a tensor that is state but no parameter; not in the state dict unless ``persistent``."""
        known = self.__dict__.get("_buffers", {})
        self._check_name("buffer", name, known)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type(tensor).__name__}' object to buffer '{name}' (Tensor or None required)"
            )
        known[name] = as_registered("buffer", self, name, tensor) if REGISTRATION else tensor
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a module inside this one."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{type(module).__name__} is not a Module subclass")
        known = self.__dict__.get("_modules", {})
        self._check_name("module", name, known)
        known[name] = as_registered("module", self, name, module) if REGISTRATION else module

    register_module = add_module

    # What is inside.

    def _named_members(self, get, prefix: str, recurse: bool, remove_duplicate: bool):
        seen = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for at, module in modules:
            for name, value in get(module):
                if value is None or id(value) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(value))
                yield (f"{at}.{name}" if at else name), value

    def named_parameters(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        """All parameters with their names."""
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True):
        """All parameters, each once."""
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_buffers(self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True):
        """All buffers with their names."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True):
        """All buffers, each once."""
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    def named_children(self):
        """The modules directly inside, with their names, each once."""
        seen = set()
        for name, module in self._modules.items():
            if module is not None and id(module) not in seen:
                seen.add(id(module))
                yield name, module

    def children(self):
        """The modules directly inside."""
        for _, module in self.named_children():
            yield module

    def named_modules(self, memo: set | None = None, prefix: str = "", remove_duplicate: bool = True):
        """This module and all inside, with their names."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True):
        """This module and all inside, each once."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def get_submodule(self, target: str) -> Module:
        """The module of a dotted name; AttributeError when there is none."""
        module = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts a module in the place of a dotted name. ValueError without a name or for what is no module;
        AttributeError where something else has the name, or, with ``strict``, nothing."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = str.rpartition(target, ".")  # TypeError for what is no str
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if not isinstance(getattr(parent, name, module), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _get_member(self, target: str, kind: str, what: str):
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
        if name not in getattr(module, kind):
            raise AttributeError(f"`{name}` is not {what}")
        return getattr(module, name)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a dotted name; AttributeError when there is none."""
        return self._get_member(target, "_parameters", "an nn.Parameter")

    def get_buffer(self, target: str) -> Tensor:
        """The buffer of a dotted name; AttributeError when there is none."""
        return self._get_member(target, "_buffers", "a buffer")

    # What is done to all that is inside.

    def apply(self, fn):
        """Calls ``fn(module)`` on everything inside, then on this module. Returns this module."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def train(self, mode: bool = True):
        """Training mode for this module and all inside: dropout drops. Returns this module."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self):
        """The opposite of ``train()``."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True):
        """Lets all parameters have gradients, or none. Returns this module."""
        for p in self.parameters():
            p.requires_grad_(requires_grad)
        return self

    def share_memory(self):
        """Moves all parameters, gradients and buffers to memory that other processes can have. Returns this module.
        RuntimeError where other tensors show that of one of them."""
        for t in (*self.parameters(), *self.buffers()):
            t.share_memory_()
            if t.grad is not None:
                t.grad.share_memory_()
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forgets the parameters' gradients, or fills them with zeros."""
        for p in self.parameters():
            if p.grad is None:
                continue
            if set_to_none:
                p.grad = None
            else:
                if p.grad.requires_grad:
                    p.grad = p.grad.detach()
                with no_grad():
                    p.grad.zero_()

    def _apply(self, fn, recurse: bool = True):
        """Replaces the data of all parameters and buffers, and the gradients, by ``fn`` of them. Parameters stay the
        same objects: optimisers keep them."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        with no_grad():
            for p in self._parameters.values():
                if p is None:
                    continue
                if is_lazy(p):
                    p.data = fn(p.data)
                    continue
                grad = p.grad
                new = fn(p.detach())
                if not isinstance(new, Tensor):
                    raise TypeError(f"{self._get_name()}: a parameter must become a Tensor, not {type(new).__name__}")
                if new._h != p._h:
                    p.grad = None
                    p.data = new
                    if grad is not None:
                        p.grad = fn(grad.detach()).requires_grad_(grad.requires_grad)
            for name, b in self._buffers.items():
                if b is not None:
                    self._buffers[name] = fn(b)
        return self

    def to_empty(self, *, device, recurse: bool = True):
        """Puts parameters and buffers on a device, with values yet to be set. Returns this module."""
        return self._apply(lambda t: empty_like(t, device=device), recurse)

    def to(self, *args, device=None, dtype=None, non_blocking=False, copy=False, memory_format=None):
        """``to(device)``, ``to(dtype)``, ``to(device, dtype)`` or ``to(tensor)``: floating-point parameters and buffers
        take the dtype, all go to the device, in place; ``non_blocking``: no wait for those in page-locked memory;
        ``memory_format``: those of four and five dimensions lie so. Returns this module. TypeError for an integer
        dtype."""
        device, dtype, non_blocking, copy = asked_of_to(args, device, dtype, non_blocking, copy)
        if copy:
            raise RuntimeError(".to() does not accept copy argument")
        if dtype is not None and not (dtype := as_dtype(dtype, "to")).is_floating_point:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        if device is not None:
            device = _device(device)  # an unknown one raises
        if dtype is None and device is None and memory_format is None:
            return self

        def moved(t):
            how = {"memory_format": memory_format} if memory_format is not None and t.ndim in (4, 5) else {}
            return t.to(device, dtype if t.is_floating_point() else None, non_blocking=non_blocking, **how)

        return self._apply(moved)

    def type(self, dst_type):
        """Casts all parameters and buffers. Returns this module."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Floating-point parameters and buffers as float32. Returns this module."""
        # Not self.to: a subclass may define it by these.
        return Module.to(self, float32)

    def double(self):
        """Floating-point parameters and buffers as float64. Returns this module."""
        return Module.to(self, float64)

    def half(self):
        """Floating-point parameters and buffers as float16. Returns this module."""
        return Module.to(self, float16)

    def bfloat16(self):
        """Floating-point parameters and buffers as bfloat16. Returns this module."""
        return Module.to(self, bfloat16)

    def cpu(self):
        """On the CPU. Returns this module."""
        return Module.to(self, "cpu")

    def cuda(self, device=None):
        """On a CUDA device (the current one). Returns this module. RuntimeError for another kind of device."""
        return Module.to(self, CUDA if device is None else cuda_device(device))

    def xpu(self, device=None):
        """On an Intel GPU: PyTorch's name for a kind of device that is not here. RuntimeError."""
        return Module.to(self, "xpu" if device is None else f"xpu:{device}")

    def mtia(self, device=None):
        """On an accelerator of Meta's: PyTorch's name for a kind of device that is not here. RuntimeError."""
        return Module.to(self, "mtia" if device is None else f"mtia:{device}")

    def ipu(self, device=None):
        """On a Graphcore processor: PyTorch's name for a kind of device that is not here. RuntimeError."""
        return Module.to(self, "ipu" if device is None else f"ipu:{device}")

    # As text.

    def compile(self, *args, **kwargs):
        """NotImplementedError: there is no ``torch.compile``. ``fuse`` has what it is for."""
        raise NotImplementedError("Module.compile: not implemented; call the module in `with tinytorch.fuse():`")

    def extra_repr(self) -> str:
        """What stands in the parentheses of ``repr``. A subclass defines it."""
        return ""

    def _get_name(self) -> str:
        return type(self).__name__

    def __repr__(self):
        extra = self.extra_repr()
        lines = extra.split("\n") if extra else []
        children = [f"({name}): {indent(repr(module))}" for name, module in self._modules.items()]
        if len(lines) == 1 and not children:
            return f"{self._get_name()}({extra})"
        if not lines and not children:
            return f"{self._get_name()}()"
        return f"{self._get_name()}(\n  " + "\n  ".join(lines + children) + "\n)"


def indent(text: str) -> str:
    """``text`` with all lines but the first set in by two spaces."""
    return text.replace("\n", "\n  ")
