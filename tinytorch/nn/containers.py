"""Containers of modules and of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from ..tensor import Tensor
from .module import Module, indent
from .parameter import Parameter


def position(index, n: int, name: str) -> int:
    """``index`` as a number from 0 on; IndexError when out of range."""
    index = operator.index(index)
    if not -n <= index < n:
        raise IndexError(f"index {index} is out of range for {name} of length {n}")
    return index % n


class _Numbered(Module):
    """Modules under the names "0", "1", ..."""

    def _renumber(self, modules) -> None:
        self._modules.clear()
        self._modules.update((str(i), m) for i, m in enumerate(modules))

    def _name_at(self, index) -> str:
        return list(self._modules)[position(index, len(self), type(self).__name__)]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules.values())

    def __contains__(self, module):
        return any(m is module for m in self)

    def __setitem__(self, index, module):
        setattr(self, self._name_at(index), module)

    def append(self, module: Module):
        """Adds a module at the end. Returns this container."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules):
        """Adds modules at the end. Returns this container."""
        if not isinstance(modules, Iterable):
            raise TypeError(
                f"{type(self).__name__}.extend should be called with an iterable, but got {type(modules).__name__}"
            )
        for module in list(modules):
            self.append(module)
        return self

    def insert(self, index: int, module: Module):
        """Puts a module before position ``index``. Returns this container."""
        index = operator.index(index)
        if not isinstance(module, Module):
            error = AssertionError if isinstance(self, Sequential) else TypeError
            raise error(f"module should be of type: {Module}")
        if not -len(self) <= index <= len(self):
            raise IndexError(f"Index out of range: {index}")
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self

    def pop(self, key):
        """Takes the module at a position, or those of a slice, out and returns it."""
        module = self[key]
        del self[key]
        return module

    def __dir__(self):
        return [n for n in super().__dir__() if not n.isdigit()]


class Sequential(_Numbered):
    """Modules in a row, each on the output of the one before: ``Sequential(a, b)`` or
    ``Sequential(OrderedDict(...))``."""

    def __init__(self, *args):
        super().__init__()
        named = args[0].items() if len(args) == 1 and isinstance(args[0], OrderedDict) else enumerate(args)
        for name, module in named:
            self.add_module(str(name), module)

    def forward(self, input):
        for module in self._modules.values():
            input = module(input)
        return input

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(OrderedDict(list(self._modules.items())[index]))
        return self._modules[self._name_at(index)]

    def __delitem__(self, index):
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [self._name_at(index)]:
            del self._modules[name]
        self._renumber(list(self))

    def __add__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other):
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(other)

    def __mul__(self, times):
        if not isinstance(times, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(times)}")
        if times <= 0:
            raise ValueError(f"Non-positive multiplication factor {times} for {type(self)}")
        return Sequential(*list(self) * times)

    __rmul__ = __mul__


class ModuleList(_Numbered):
    """A list of modules."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.extend(modules)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)(list(self)[index])
        return self._modules[str(position(index, len(self), type(self).__name__))]

    def __delitem__(self, index):
        modules = list(self)
        if not isinstance(index, slice):
            index = position(index, len(self), type(self).__name__)
        del modules[index]
        self._renumber(modules)

    def __add__(self, other):
        return ModuleList([*self, *other])

    def __iadd__(self, modules):
        return self.extend(modules)

    def __repr__(self):
        runs: list[list] = []  # [text, first, last]: equal modules in a row stand once
        for i, module in enumerate(self):
            text = repr(module)
            if runs and runs[-1][0] == text:
                runs[-1][2] = i
            else:
                runs.append([text, i, i])
        if not runs:
            return f"{type(self).__name__}()"
        lines = [
            f"({a}): {indent(text)}" if a == b else f"({a}-{b}): {b - a + 1} x {indent(text)}" for text, a, b in runs
        ]
        return f"{type(self).__name__}(\n  " + "\n  ".join(lines) + "\n)"


def _add_pairs(to, given, kind: type, name: str) -> None:
    """``to.update(given)``: a mapping, one of this ``kind``, or pairs."""
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    for key, value in given.items() if isinstance(given, (Mapping, kind)) else given:
        to[key] = value


class ModuleDict(Module):
    """A dictionary of modules, in the order of insertion."""

    def __init__(self, modules=None):
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str):
        return self._modules[key]

    def __setitem__(self, key: str, module):
        self.add_module(key, module)

    def __delitem__(self, key: str):
        del self._modules[key]

    def __len__(self):
        return len(self._modules)

    def __iter__(self):
        return iter(self._modules)

    def __contains__(self, key):
        return key in self._modules

    def clear(self):
        """Takes all out."""
        self._modules.clear()

    def pop(self, key: str):
        """Takes a module out and returns it."""
        return self._modules.pop(key)

    def keys(self):
        return self._modules.keys()

    def items(self):
        return self._modules.items()

    def values(self):
        return self._modules.values()

    def update(self, modules):
        """Adds modules from a mapping or from pairs."""
        _add_pairs(self, modules, ModuleDict, "ModuleDict")


def as_entry(value):
    """Tensors become Parameters; all else is kept as it is."""
    return Parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def describe(key, value) -> str:
    """A line of the repr of a container of parameters."""
    if isinstance(value, Tensor):
        kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
        size = "x".join(str(s) for s in value.shape)
        return f"  ({key}): {kind} containing: [{value.dtype} of size {size}]"
    return f"  ({key}): Object of type: {type(value).__name__}"


class ParameterList(Module):
    """A list of parameters; tensors given to it become Parameters."""

    def __init__(self, values=None):
        super().__init__()
        self._size = 0
        if values is not None:
            self.extend(values)

    def __getitem__(self, index):
        if isinstance(index, slice):
            return type(self)([self[i] for i in range(*index.indices(len(self)))])
        return getattr(self, str(position(index, len(self), "ParameterList")))

    def __setitem__(self, index, value):
        setattr(self, str(position(index, len(self), "ParameterList")), as_entry(value))

    def __len__(self):
        return self._size

    def __iter__(self):
        return iter(self[i] for i in range(len(self)))

    def __iadd__(self, values):
        return self.extend(values)

    def append(self, value):
        """Adds a value at the end. Returns this list."""
        self._size += 1
        self[self._size - 1] = value
        return self

    def extend(self, values):
        """Adds values at the end. Returns this list."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in values:
            self.append(value)
        return self

    def __repr__(self):
        lines = [describe(i, v) for i, v in enumerate(self)]
        return "ParameterList(\n" + "\n".join(lines) + "\n)" if lines else "ParameterList()"


def _name(key) -> str:
    """A key of a ParameterDict; TypeError for what is no text."""
    if not isinstance(key, str):
        raise TypeError(f"Index given to ParameterDict must be a string, got {type(key).__name__}")
    return key


class ParameterDict(Module):
    """A dictionary of parameters, in the order of insertion; tensors given to it become Parameters."""

    def __init__(self, parameters=None):
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key):
        if _name(key) not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key, value):
        self._keys[_name(key)] = None
        setattr(self, key, as_entry(value))

    def __delitem__(self, key):
        del self._keys[key]
        delattr(self, key)

    def __len__(self):
        return len(self._keys)

    def __iter__(self):
        return iter(self._keys)

    def __reversed__(self):
        return reversed(list(self._keys))

    def __contains__(self, key):
        return key in self._keys

    def keys(self):
        return self._keys.keys()

    def values(self):
        return (self[k] for k in self._keys)

    def items(self):
        return ((k, self[k]) for k in self._keys)

    def get(self, key, default=None):
        """The value of ``key``, or ``default``."""
        return self[key] if key in self else default  # noqa: SIM401 (this is get)

    def setdefault(self, key, default=None):
        """The value of ``key``, which becomes ``default`` if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key):
        """Takes a value out and returns it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self):
        """Takes the last entry out and returns it."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self):
        """Takes all out."""
        for key in list(self._keys):
            del self[key]

    def copy(self):
        """Another dictionary of the same parameters."""
        return ParameterDict(dict(self.items()))

    @classmethod
    def fromkeys(cls, keys, default=None):
        """A dictionary of ``keys`` that all have the value ``default``."""
        return cls(dict.fromkeys(keys, default))

    def update(self, parameters):
        """Adds entries from a mapping or from pairs."""
        _add_pairs(self, parameters, ParameterDict, "ParametersDict")

    def __or__(self, other):
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other):
        made = type(self)(dict(other.items()))
        made.update(self)
        return made

    def __ior__(self, other):
        self.update(other)
        return self

    def __repr__(self):
        lines = [describe(k, v) for k, v in self.items()]
        return "ParameterDict(\n" + "\n".join(lines) + "\n)" if lines else "ParameterDict()"
