"""Where calls are handed to ``__torch_function__``.

Note [Overriding]
Nothing looks for overriding arguments in a program that has none. Once a subclass of Tensor is defined (or a mode
entered), two things change. The class gets the base ``Overridable``, which stands before Tensor and has its
operators, properties, and methods that take no other tensor: plain tensors never see it. All other public functions
and methods, which may get such an argument beside plain ones, get other code, as the profiler's (wrapper_code.py): it
looks at the types of the arguments first. So do the operators that Parameter gets.
"""

from __future__ import annotations

import functools
import inspect
from types import CodeType, FunctionType

from ..autograd import engine
from ..devices import device
from ..dtypes import Size, dtype
from ..nn import init
from ..nn.parameter import Buffer, Parameter
from ..ops.declare import NAMESPACES
from ..tensor import Tensor
from ..torch_function import DisableTorchFunction, call, on_subclass, overrides
from ..wrapper_code import is_over, original_of, own_code, put_over, wrapper_code

# Arguments of these types override nothing, and have no elements. Empty while a mode is entered.
ORDINARY = frozenset({Tensor, Parameter, Buffer, int, float, bool, str, type(None), slice, dtype, device, Size})
plain: set[type] = set(ORDINARY)

_WRAPPER = """
def outer({free}):
    def wrapper(*_o_args, **_o_kwargs):
        {things}
        for _o_a in _o_args:
            if _o_type(_o_a) not in _o_plain:
                return _o_call(_o_public, _o_original, _o_args, _o_kwargs)
        if _o_kwargs:
            for _o_a in _o_kwargs.values():
                if _o_type(_o_a) not in _o_plain:
                    return _o_call(_o_public, _o_original, _o_args, _o_kwargs)
        return _o_original(*_o_args, **_o_kwargs)
        ({free})
"""
_NOT_WITHIN = """
def outer({free}):
    def wrapper(*_o_args, **_o_kwargs):
        {things}
        with _o_off():
            return _o_original(*_o_args, **_o_kwargs)
        ({free})
"""

#: Functions that nobody overrides, and those that modes may override, but no arguments: as in PyTorch.
NEVER = frozenset(
    """
    broadcast_shapes from_numpy frombuffer is_storage is_tensor manual_seed range set_rng_state
    """.split()  # noqa: SIM905 (a list of words)
)
NOT_BY_ARGUMENTS = NEVER | frozenset(
    """
    arange as_strided as_tensor asarray can_cast empty empty_strided eye fill full get_rng_state initial_seed linspace
    logspace normal ones promote_types rand randint randn randperm scalar_tensor seed tensor tril_indices triu_indices
    zeros
    """.split()  # noqa: SIM905 (a list of words)
)
#: Functions beside the operators that may be overridden, too.
INITS = init.uniform_, init.normal_, init.constant_, init.kaiming_uniform_
#: Methods that nobody overrides so; nor those whose name begins with one underscore.
IGNORED = frozenset(
    """
    __new__ __init__ __init_subclass__ __torch_function__ __hash__ __dir__ __iter__ __delitem__ as_subclass new
    """.split()  # noqa: SIM905 (a list of words)
)
#: Parameters of methods that may be other tensors.
_OTHERS = frozenset(
    """
    tensor gradient other condition mask value end weight values min max mat mat1 mat2 vec vec1 vec2 batch1 batch2
    tensor1 tensor2 key the_template source
    """.split()  # noqa: SIM905 (a list of words)
)
# What Python's operators are called in PyTorch, where they are other methods.
_NAMED = {
    "__add__": "add", "__radd__": "add", "__iadd__": "add_", "__sub__": "sub", "__isub__": "sub_", "__mul__": "mul",
    "__rmul__": "mul", "__imul__": "mul_", "__truediv__": "div", "__itruediv__": "div_", "__pow__": "pow",
    "__ipow__": "pow_", "__rtruediv__": "__rdiv__", "__mod__": "remainder", "__imod__": "remainder_",
    "__ifloordiv__": "floor_divide_",
    "__matmul__": "matmul", "__lt__": "lt", "__le__": "le", "__gt__": "gt", "__ge__": "ge", "__ne__": "ne",
}  # fmt: skip
#: Python's operators of two operands, by those that the right operand is asked for.
_REFLECTED = {f"__r{name[2:]}": name for name in vars(Tensor) if f"__r{name[2:]}" in vars(Tensor)}
_OPERATORS = {*_REFLECTED, *_REFLECTED.values(), "__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__"}

_codes: dict[int, tuple[FunctionType, CodeType]] = {}  # functions by id, and the code that they got
_installed: set[str] = set()
ordinary: list[type] = [Parameter, Buffer]  # classes of tensors that override nothing
_placed: list[tuple[type, str]] = []  # their operators that look at the right operand


class Overridable(Tensor):
    """The base, before Tensor, of subclasses whose ``__torch_function__`` is called."""

    __slots__ = ()
    __hash__ = Tensor.__hash__


def _override(fn: FunctionType, public, template: str = _WRAPPER) -> None:
    """Gives ``fn`` code that looks at its arguments first; handlers get ``public``."""
    if id(fn) in _codes and is_over(fn, _codes[id(fn)][1]):
        return
    original = original_of(fn)
    things = {
        "_o_type": type,
        "_o_plain": plain,
        "_o_call": call,
        "_o_public": public,
        "_o_original": original,
        "_o_off": DisableTorchFunction,
    }
    text = template.format(free=", ".join(fn.__code__.co_freevars), things="{things}")
    code = wrapper_code(text, " " * 8, things, "<eager, overridable>", fn.__code__.co_name)
    _codes[id(fn)] = fn, code
    put_over(fn, code, original)


def public_name(name: str) -> str:
    """The method that handlers get for the method ``Tensor.<name>``."""
    return _NAMED.get(name, name)


def overridable_methods() -> dict[str, FunctionType]:
    """The methods of Tensor that may be overridden, by name."""
    return {
        name: fn
        for name, fn in vars(Tensor).items()
        if isinstance(fn, FunctionType) and name not in IGNORED and (name[0] != "_" or name[:2] == "__")
    }


def _with_others(name: str, fn: FunctionType) -> bool:
    """May the method get another tensor, and is only the first one's class asked for it?"""
    return name not in _OPERATORS and not _OTHERS.isdisjoint(inspect.signature(fn).parameters)


def install() -> None:
    """Makes public functions and methods overridable by their arguments."""
    if "arguments" in _installed:
        return
    _installed.add("arguments")
    renew()
    for name, member in list(vars(Tensor).items()):
        if isinstance(member, property):
            setattr(Overridable, name, _property(member))
    for name, fn in overridable_methods().items():
        if id(fn) not in _codes:
            setattr(Overridable, name, _method(name, fn))
    for cls in ordinary:
        _look_at_the_right(cls)


def install_for_modes() -> None:
    """Makes everything that may be overridden look for a mode: its calls need have no overriding argument."""
    install()
    if "modes" not in _installed:
        _installed.add("modes")
        renew()


def renew() -> None:
    """Gives functions and methods their code; again to those that lost it, when a profiler has put the old code
    back."""
    if not _installed:
        return
    all_of_them = "modes" in _installed
    for namespace, functions in NAMESPACES.items():
        for name, fn in functions.items():
            if isinstance(fn, FunctionType) and (namespace or name not in (NEVER if all_of_them else NOT_BY_ARGUMENTS)):
                _override(fn, fn)
    for fn in INITS:
        _override(fn, fn)
    for name, fn in overridable_methods().items():
        if all_of_them or _with_others(name, fn):
            _override(fn, getattr(Tensor, public_name(name)))
    _override(engine.run, engine.run, _NOT_WITHIN)


def remove() -> None:
    """All functions are as they were before any class or mode overrode them: for tests, each of which wants that."""
    for fn, _ in _codes.values():
        fn.__code__ = own_code(fn)
    for cls, name in _placed:
        delattr(cls, name)
    _codes.clear()
    _installed.clear()
    _placed.clear()


def _method(name: str, fn: FunctionType):
    """``Overridable``'s method of that name."""
    if name not in _OPERATORS:

        @functools.wraps(fn)
        def method(*args, **kwargs):
            return call(fn, fn, args, kwargs)

        return method
    public = getattr(Tensor, public_name(name))
    direct = _REFLECTED.get(name)

    @functools.wraps(fn)
    def operator(self, other):
        try:
            if direct and isinstance(other, Tensor):  # a plain one, on the left
                plainly = vars(Tensor)[direct]
                return call(getattr(Tensor, public_name(direct)), plainly, (other, self), {})
            return call(public, fn, (self, other), {})
        except TypeError:  # the other operand's turn
            return NotImplemented

    return operator


def _property(member: property) -> property:
    """``Overridable``'s property in the place of Tensor's."""

    def get(self):
        return call(member.__get__, member.fget, (self,), {})

    def put(self, value):
        call(member.__set__, member.fset, (self, value), {})

    def delete(self):
        call(member.__delete__, member.fdel, (self,), {})

    return property(get, put if member.fset else None, delete if member.fdel else None, member.__doc__)


def _look_at_the_right(cls: type) -> None:
    """Operators of a class that overrides nothing look at their right operand: unlike that of a Tensor, it is not of a
    subclass of theirs, whose operators Python asks first."""
    for name in _OPERATORS - _REFLECTED.keys():
        if getattr(cls, name) is getattr(Tensor, name):
            setattr(cls, name, _method(name, getattr(Tensor, name)))
            _placed.append((cls, name))


def take_in(cls: type) -> None:
    """Gives a class of tensors that overrides the base Overridable."""
    if not overrides(cls):
        ordinary.append(cls)
        if "arguments" in _installed:
            _look_at_the_right(cls)
        return
    install()
    if Overridable not in cls.__mro__:
        bases = [Overridable if base is Tensor else base for base in cls.__bases__]
        cls.__bases__ = (*bases,) if Overridable in bases else (*bases, Overridable)


on_subclass.append(take_in)
