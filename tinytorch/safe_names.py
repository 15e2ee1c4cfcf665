"""What the names in a file may stand for: how each is made, of arguments that are checked first.

``SAFE`` is the table; a program adds its own classes and functions with ``add_safe_globals``.
"""

from __future__ import annotations

import codecs
import sys
from collections import Counter, OrderedDict, defaultdict
from pickle import UnpicklingError

from .devices import device
from .dtypes import Size, _by_name, dtype
from .nn.parameter import Buffer, Parameter, _rebuild, _rebuild_buffer
from .nn.state import StateDict
from .pickling import rebuild
from .storage import UntypedStorage
from .tensor import Tensor

BLOCKED = ("sys", "os", "posix", "nt", "builtins.eval", "builtins.exec", "builtins.getattr", "builtins.setattr")
RENAMED = {"__builtin__": "builtins", "copy_reg": "copyreg"}  # what Python 2 called them, and protocol 2 does
MOST_PARTS = 1000  # of a key, with the parts of its parts: what is nested deeper would take for ever to hash
_allowed: dict = {}  # what the program has allowed: the object, or (object, name) -> None, in order


def _path(of) -> str:
    return f"{of.__module__}.{of.__qualname__}"


def users() -> dict:
    """What the program has allowed, by name."""
    named = {}
    for entry in _allowed:
        if isinstance(entry, tuple):
            if len(entry) != 2:
                raise ValueError(f"Expected tuple of length 2 (global, str of callable full path), but got {entry}")
            if not isinstance(entry[1], str):
                raise TypeError(f"Expected second item in tuple to be str of callable full path, got {type(entry[1])}")
            named[entry[1]] = entry[0]
        else:
            named[_path(entry)] = entry
            if str(entry.__module__).startswith("tinytorch."):
                named.update(dict.fromkeys(_paths_of_own(entry), entry))
    return named


def _paths_of_own(of):
    """The names that files, which hold PyTorch's, have for a class or function of tinytorch's own: of its packages, of
    PyTorch's inner modules."""
    from .nn import modules  # noqa: F401 (when used: it makes the inner modules)

    for path, module in list(sys.modules.items()):
        if path.partition(".")[0] == "tinytorch" and vars(module).get(of.__name__) is of:
            yield f"torch{path.removeprefix('tinytorch')}.{of.__name__}"


def add_safe_globals(safe_globals: list) -> None:
    """Lets ``load(weights_only=True)`` make objects of these classes and call these functions; an entry is the object,
    or a pair of it and the name that files have for it. For all threads. Follows
    ``torch.serialization.add_safe_globals``."""
    _allowed.update(dict.fromkeys(safe_globals))


def get_safe_globals() -> list:
    """What ``add_safe_globals`` was given. Follows ``torch.serialization.get_safe_globals``."""
    return list(_allowed)


def clear_safe_globals() -> None:
    """Forgets what ``add_safe_globals`` was given. Follows ``torch.serialization.clear_safe_globals``."""
    _allowed.clear()


class safe_globals:
    """A context in which ``load(weights_only=True)`` takes further classes and functions. Follows
    ``torch.serialization.safe_globals``."""

    def __init__(self, safe_globals: list):
        self.safe_globals = safe_globals

    def __enter__(self):
        add_safe_globals(self.safe_globals)

    def __exit__(self, *_):
        for entry in self.safe_globals:
            _allowed.pop(entry, None)


# What the names of the table make. Each gets the reading and the arguments of the file, of which nothing is known.


def check(valid, what: str) -> None:
    """UnpicklingError unless the file's arguments are those that save() writes."""
    if not valid:
        raise UnpicklingError(f"the arguments of {what} are not what save() writes")


def integers(values) -> bool:
    """Is this a tuple of integers?"""
    return isinstance(values, tuple) and all(type(v) is int for v in values)


def check_key(key) -> None:
    """UnpicklingError for a key that is nested so deeply, or shares so much with itself, that Python could not hash
    it."""
    if type(key) not in (tuple, Size):
        return
    waiting, parts = [key], 0
    while waiting:
        for part in waiting.pop():
            parts += 1
            if parts > MOST_PARTS:
                raise UnpicklingError(f"a key of a dictionary or set has more than {MOST_PARTS} parts")
            if isinstance(part, tuple):
                waiting.append(part)


def _empty(cls):
    def make(reading, *args):
        check(not args, cls.__name__)
        return cls()

    return make


def _collected(cls, *kinds):
    """A maker of a ``cls`` from one container of these kinds."""

    def make(reading, *args):
        check(len(args) <= 1 and all(type(a) in kinds for a in args), cls.__name__)
        for a in args:
            reading.spend(len(a))
            if cls is not Size:
                for key in a:
                    check_key(key)
        check(cls is not Size or all(map(integers, args)), "Size")
        return cls(*args)

    return make


def _defaultdict(reading, *args):
    check(len(args) == 1 and (args[0] is None or any(args[0] is f for f in FACTORIES)), "defaultdict")
    return defaultdict(*args)


def _bytes(reading, *args):
    """What protocol 2 writes for bytes: a text, and its encoding."""
    check(len(args) == 2 and type(args[0]) is str and args[1] in ("latin1", "latin-1"), "encode")
    reading.spend(len(args[0]))
    return codecs.encode(args[0], "latin1")


def _bytearray(reading, *args):
    if len(args) == 2:
        return bytearray(_bytes(reading, *args))
    check(len(args) <= 1 and all(type(a) is bytes for a in args), "bytearray")
    reading.spend(sum(map(len, args)))
    return bytearray(*args)


def _complex(reading, *args):
    check(len(args) == 2 and all(type(a) is float for a in args), "complex")
    return complex(*args)


def _slice(reading, *args):
    check(len(args) == 3 and all(a is None or type(a) is int for a in args), "slice")
    return slice(*args)


def _device(reading, *args):
    check(len(args) in (1, 2) and type(args[0]) is str and all(a is None or type(a) is int for a in args[1:]), "device")
    return device(*args)


def _dtype(reading, *args):
    check(len(args) == 1 and type(args[0]) is str, "dtype")
    return _by_name(args[0])


def _tensor(reading, *args):
    check(len(args) == 7, "a tensor")
    cls, storage, of, shape, stride, offset, requires_grad = args
    check(isinstance(cls, type) and issubclass(cls, Tensor), "a tensor")
    check(type(storage) is UntypedStorage and type(of) is dtype and type(requires_grad) is bool, "a tensor")
    check(integers(shape) and integers(stride) and len(shape) == len(stride) and type(offset) is int, "a tensor")
    check(all(abs(v) < 1 << 62 for v in (*shape, *stride, offset)), "a tensor")
    return rebuild(*args)


def tensor_of_0_1(load_storage, number, name, shape, strides, offset, requires_grad, where="cpu") -> Tensor:
    """A tensor as version 0.1 wrote it. ``load_storage`` gives what a persistent id stands for."""
    storage = load_storage(("storage", number, where))
    return rebuild(Tensor, storage, _by_name(name), tuple(shape), tuple(strides), offset, requires_grad)


def _tensor_of_0_1(reading, *args):
    check(
        len(args) in (6, 7) and type(args[0]) is int and all(type(a) is str for a in (args[1], *args[6:])), "a tensor"
    )
    storage = reading.persistent_load(("storage", args[0], *(args[6:] or ("cpu",))))
    return _tensor(reading, Tensor, storage, _by_name(args[1]), *args[2:6])


def _attribute(make, base):
    """A maker of a parameter or buffer of a tensor."""

    def made(reading, *args):
        check(len(args) == 3 and isinstance(args[0], type) and issubclass(args[0], base), base.__name__)
        check(isinstance(args[1], Tensor) and type(args[2]) is bool, base.__name__)
        return make(*args)

    return made


MAKERS = {
    OrderedDict: _empty(OrderedDict),
    StateDict: _empty(StateDict),
    Counter: _collected(Counter, dict),
    set: _collected(set, list),
    frozenset: _collected(frozenset, list),
    Size: _collected(Size, tuple),
    defaultdict: _defaultdict,
    codecs.encode: _bytes,
    bytes: _empty(bytes),
    bytearray: _bytearray,
    complex: _complex,
    slice: _slice,
    device: _device,
    _by_name: _dtype,
    rebuild: _tensor,
    tensor_of_0_1: _tensor_of_0_1,
    _rebuild: _attribute(_rebuild, Parameter),
    _rebuild_buffer: _attribute(_rebuild_buffer, Buffer),
}
FACTORIES = (dict, list, set, int, float, str, bool, tuple, OrderedDict)
SAFE = {_path(g): g for g in (*MAKERS, *FACTORIES, Tensor, Parameter, Buffer) if g is not codecs.encode}
SAFE["_codecs.encode"] = codecs.encode
SAFE["tinytorch.serialization._tensor"] = tensor_of_0_1
