"""A reader of pickles that makes tensors, containers and plain values, and nothing else.

Python's own unpickler does whatever a pickle says: call, import, set attributes of anything. This one is a machine of
its own, for files that nobody vouches for:

- a name stands for one of a table (``SAFE``), or for what the program has allowed (``add_safe_globals``);
- a call makes a new object, of arguments that are checked first;
- attributes and elements are set in objects made by the same reading, never in what has a name;
- what is copied or hashed counts against the length of the pickle: no pickle makes more than a multiple of itself.
"""

from __future__ import annotations

import enum
import pickle
import struct
from collections import OrderedDict, defaultdict
from pickle import UnpicklingError

from .nn.state import StateDict
from .pickling import slots_of
from .safe_names import BLOCKED, MAKERS, MOST_PARTS, RENAMED, SAFE, check_key, users
from .tensor import Tensor


def _name(of) -> str:
    """What to call something in a message; not by ``repr``, which a file could make as long as it likes."""
    return getattr(of, "__qualname__", "which has no name") if isinstance(of, type) or callable(of) else "an object"


class Reading:
    """One pickle being read, from a place on. ``persistent_load`` gives what a persistent id stands for."""

    def __init__(self, content: bytes, persistent_load, at: int = 0):
        self.content, self.at, self.persistent_load = content, at, persistent_load
        self.nested = 0  # defaultdicts that are values of others
        self.left = 64 + len(content) - at  # what may yet be copied
        self.stack: list = []
        self.marks: list[list] = []  # the stacks below the marks
        self.memo: dict[int, object] = {}
        self.made: dict[int, object] = {}  # what this reading has made and may change, by id
        self.users = users()
        self.calls_user = False

    def load(self):
        """The object. UnpicklingError for what is not allowed, or makes no sense; EOFError when there is no pickle."""
        if self.at >= len(self.content):
            raise EOFError("Ran out of input")
        try:
            while (code := self.take(1)[0]) != pickle.STOP[0]:
                op = OPS.get(code)
                if op is None:
                    raise UnpicklingError(f"Unsupported operand {code}")
                op(self)
            return self.stack.pop()
        except UnpicklingError as e:
            raise UnpicklingError(f"Weights only load failed: {e}") from None
        except (IndexError, KeyError, ValueError, TypeError, AttributeError, OverflowError, struct.error) as e:
            if self.calls_user:
                raise
            raise UnpicklingError(f"Weights only load failed: the pickle is corrupt: {type(e).__name__}: {e}") from None

    # Bytes, and what they may cost.

    def take(self, n: int) -> bytes:
        """The next bytes."""
        end = self.at + n
        if n < 0 or end > len(self.content):
            raise UnpicklingError("the pickle ends too early")
        part, self.at = self.content[self.at : end], end
        return part

    def number(self, size: int) -> int:
        """The next number, without a sign."""
        return int.from_bytes(self.take(size), "little")

    def line(self) -> str:
        """The text up to the end of the line."""
        end = self.content.find(b"\n", self.at)
        if end < 0:
            raise UnpicklingError("the pickle ends too early")
        part, self.at = self.content[self.at : end], end + 1
        return part.decode()

    def spend(self, n: int) -> None:
        """Counts what is copied: a pickle of save() says each thing once."""
        self.left -= n
        if self.left < 0:
            raise UnpicklingError("the pickle makes more than it holds")

    # Objects.

    def new(self, made):
        """Takes note of an object that may be changed, and puts it on the stack."""
        self.made[id(made)] = made
        self.stack.append(made)

    def changeable(self, *kinds):
        """The object on top, to be changed. UnpicklingError for one that this reading has not made."""
        top = self.stack[-1]
        if self.made.get(id(top)) is not top or not isinstance(top, kinds):
            raise UnpicklingError(f"Can only change what the file itself has made, not {type(top)}")
        return top

    def to_mark(self) -> list:
        """What is on the stack above the last mark; it is taken away."""
        items, self.stack = self.stack, self.marks.pop()
        return items

    def find(self, module: str, name: str) -> None:
        """Puts what a name stands for on the stack."""
        path = f"{RENAMED.get(module, module)}.{name}"
        if path in self.users:
            if module.partition(".")[0] in BLOCKED or path in BLOCKED:
                raise UnpicklingError(f"Trying to load unsupported GLOBAL {path} whose module {module} is blocked.")
            found = self.users[path]
        elif path in SAFE:
            found = SAFE[path]
        else:
            raise UnpicklingError(
                f"Unsupported global: GLOBAL {path} was not an allowed global by default. Use "
                f"`serialization.add_safe_globals([{name}])` or the `serialization.safe_globals([{name}])` context "
                "manager to allow it if you trust it, or load with weights_only=False if you trust the file: it can "
                "then run any code."
            )
        self.stack.append(found)

    def call(self, new: bool) -> None:
        """Calls what is on the stack below its arguments, or makes an object of a class (``new``)."""
        args, fn = self.stack.pop(), self.stack.pop()
        if type(args) is not tuple:
            raise UnpicklingError("the arguments of a call are no tuple")
        make = MAKERS.get(fn) if isinstance(fn, type) or callable(fn) else None
        if make is not None:
            made = make(self, *args)
            own = isinstance(made, (dict, set, Tensor))  # what can be changed; a dtype is everybody's
        elif any(fn is allowed for allowed in self.users.values()):
            self.calls_user = True
            made = fn.__new__(fn, *args) if new else fn(*args)
            self.calls_user = False
            own = isinstance(fn, type) and isinstance(made, fn) and not isinstance(made, (enum.Enum, type))
        else:
            raise UnpicklingError(f"Trying to call a {type(fn).__name__}, {_name(fn)}, that was not allowed")
        if own:
            self.new(made)
        else:
            self.stack.append(made)

    def build(self) -> None:
        """Gives the object on top its state."""
        state = self.stack.pop()
        top = self.changeable(object)
        mine = any(type(top) is allowed for allowed in self.users.values())
        if mine and hasattr(top, "__setstate__"):
            self.calls_user = True
            top.__setstate__(state)
            self.calls_user = False
            return
        slots = None
        if type(state) is tuple and len(state) == 2:
            state, slots = state
        if not mine and (slots is not None or not isinstance(top, (StateDict, OrderedDict, Tensor))):
            raise UnpicklingError(f"Can only set attributes of tensors and state dicts, not of {type(top)}")
        if slots is not None and not (isinstance(slots, dict) and slots.keys() <= slots_of(type(top))):
            raise UnpicklingError(f"{type(top)} has no slots of these names")
        for attributes in (state, slots):
            if attributes is not None and not (
                isinstance(attributes, dict) and all(type(k) is str and k[:2] != "__" for k in attributes)
            ):
                raise UnpicklingError("a state is no dictionary of attributes")
        if state:
            self.spend(len(state))
            top.__dict__.update(state)
        for name, value in (slots or {}).items():
            setattr(top, name, value)

    def set_state(self, made, state) -> None:
        """Gives an object that is being made its state."""
        self.new(made)
        self.stack.append(state)
        self.build()
        self.stack.pop()

    # Operators of more than a line.

    def persistent(self) -> None:
        reference = self.stack.pop()
        self.calls_user = True  # a function that is map_location
        self.stack.append(self.persistent_load(reference))
        self.calls_user = False

    def set_items(self, items: list) -> None:
        target = self.changeable(dict)
        if len(items) % 2:
            raise UnpicklingError("a key has no value")
        for key, value in zip(items[::2], items[1::2]):
            check_key(key)
            if type(target) is type(value) is defaultdict:
                self.nested += 1  # CPython frees a defaultdict by recursion: a chain of them would end the process
                if self.nested > MOST_PARTS:
                    raise UnpicklingError(f"more than {MOST_PARTS} defaultdicts are values of others")
            target[key] = value

    def set_item(self) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.set_items([key, value])

    def append(self) -> None:
        value = self.stack.pop()
        self.changeable(list).append(value)

    def appends(self) -> None:
        items = self.to_mark()
        self.changeable(list).extend(items)

    def add_items(self) -> None:
        items = self.to_mark()
        for key in items:
            check_key(key)
        self.changeable(set).update(items)

    def frozen(self) -> None:
        items = self.to_mark()
        for key in items:
            check_key(key)
        self.stack.append(frozenset(items))

    def mark(self) -> None:
        self.marks.append(self.stack)
        self.stack = []

    def dictionary(self) -> None:
        items = self.to_mark()
        self.new({})
        self.set_items(items)

    def tuple_of(self, n: int) -> None:
        if len(self.stack) < n:
            raise UnpicklingError("the stack is too short")
        self.stack[-n:] = [tuple(self.stack[-n:])]

    def stack_global(self) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        if type(name) is not str or type(module) is not str:
            raise UnpicklingError("a name is no text")
        self.find(module, name)

    def new_with_keywords(self) -> None:
        keywords, args, cls = self.stack.pop(), self.stack.pop(), self.stack.pop()
        if not (isinstance(cls, type) and any(cls is allowed for allowed in self.users.values())):
            raise UnpicklingError(f"Trying to make a {_name(cls)} of keyword arguments: it was not allowed")
        self.calls_user = True
        made = cls.__new__(cls, *args, **keywords)
        self.calls_user = False
        self.new(made)

    def bytes_8(self) -> None:
        data = bytearray(self.take(self.number(8)))
        self.new(data)

    def get(self, key: int) -> None:
        if key not in self.memo:
            raise UnpicklingError(f"Memo value not found at index {key}")
        self.stack.append(self.memo[key])


def _pushes(value):
    """An operator that puts something on the stack."""

    def op(reading):
        made = value(reading)  # which may change what the stack is
        reading.stack.append(made)

    return op


def _text(size):
    return _pushes(lambda r: r.take(r.number(size)).decode("utf-8", "surrogatepass"))


def _raw(size):
    return _pushes(lambda r: r.take(r.number(size)))


def _old_text(size, signed: bool):
    """The text of Python 2's strings."""
    return _pushes(lambda r: r.take(int.from_bytes(r.take(size), "little", signed=signed)).decode())


def _integer(size):
    return _pushes(lambda r: int.from_bytes(r.take(r.number(size)), "little", signed=True))


OPS = {
    code[0]: op
    for code, op in (
        (pickle.PROTO, lambda r: r.take(1)),
        (pickle.FRAME, lambda r: r.take(8)),
        (pickle.NONE, _pushes(lambda r: None)),
        (pickle.NEWTRUE, _pushes(lambda r: True)),
        (pickle.NEWFALSE, _pushes(lambda r: False)),
        (pickle.BININT, _pushes(lambda r: int.from_bytes(r.take(4), "little", signed=True))),
        (pickle.BININT1, _pushes(lambda r: r.number(1))),
        (pickle.BININT2, _pushes(lambda r: r.number(2))),
        (pickle.LONG1, _integer(1)),
        (pickle.LONG4, _integer(4)),
        (pickle.BINFLOAT, _pushes(lambda r: struct.unpack(">d", r.take(8))[0])),
        (pickle.SHORT_BINUNICODE, _text(1)),
        (pickle.BINUNICODE, _text(4)),
        (pickle.BINUNICODE8, _text(8)),
        (pickle.SHORT_BINSTRING, _old_text(1, False)),
        (pickle.BINSTRING, _old_text(4, True)),
        (pickle.SHORT_BINBYTES, _raw(1)),
        (pickle.BINBYTES, _raw(4)),
        (pickle.BINBYTES8, _raw(8)),
        (pickle.BYTEARRAY8, Reading.bytes_8),
        (pickle.EMPTY_TUPLE, _pushes(lambda r: ())),
        (pickle.EMPTY_LIST, lambda r: r.new([])),
        (pickle.EMPTY_DICT, lambda r: r.new({})),
        (pickle.EMPTY_SET, lambda r: r.new(set())),
        (pickle.MARK, Reading.mark),
        (pickle.POP, lambda r: r.stack.pop() if r.stack else r.to_mark()),
        (pickle.POP_MARK, Reading.to_mark),
        (pickle.DUP, lambda r: r.stack.append(r.stack[-1])),
        (pickle.TUPLE, _pushes(lambda r: tuple(r.to_mark()))),
        (pickle.TUPLE1, lambda r: r.tuple_of(1)),
        (pickle.TUPLE2, lambda r: r.tuple_of(2)),
        (pickle.TUPLE3, lambda r: r.tuple_of(3)),
        (pickle.LIST, lambda r: r.new(r.to_mark())),
        (pickle.DICT, Reading.dictionary),
        (pickle.FROZENSET, Reading.frozen),
        (pickle.APPEND, Reading.append),
        (pickle.APPENDS, Reading.appends),
        (pickle.ADDITEMS, Reading.add_items),
        (pickle.SETITEM, Reading.set_item),
        (pickle.SETITEMS, lambda r: r.set_items(r.to_mark())),
        (pickle.MEMOIZE, lambda r: r.memo.__setitem__(len(r.memo), r.stack[-1])),
        (pickle.BINPUT, lambda r: r.memo.__setitem__(r.number(1), r.stack[-1])),
        (pickle.LONG_BINPUT, lambda r: r.memo.__setitem__(r.number(4), r.stack[-1])),
        (pickle.BINGET, lambda r: r.get(r.number(1))),
        (pickle.LONG_BINGET, lambda r: r.get(r.number(4))),
        (pickle.GLOBAL, lambda r: r.find(r.line(), r.line())),
        (pickle.STACK_GLOBAL, Reading.stack_global),
        (pickle.REDUCE, lambda r: r.call(False)),
        (pickle.NEWOBJ, lambda r: r.call(True)),
        (pickle.NEWOBJ_EX, Reading.new_with_keywords),
        (pickle.BUILD, Reading.build),
        (pickle.BINPERSID, Reading.persistent),
    )
}
