"""Devices: where a tensor's memory is. See Note [Devices] in kernels/core/devices.h."""

from __future__ import annotations

import operator

from .backends.cuda import runtime
from .backends.native import call_on_device


# PyTorch's kinds: they have names, and no tensor is there.
_ABSENT = ("meta", "mps", "xpu", "hpu", "mtia", "xla", "ipu", "vulkan", "privateuseone")


class device:
    """Where a tensor's memory is: ``device("cpu")``, ``device("cuda")``, ``device("cuda", 1)``, ``device("cuda:1")``,
    ``device(1)``. As a context, where functions that create tensors put them unless told otherwise. Follows
    ``torch.device``. RuntimeError for an unknown one; whether the machine has it is asked when it is used: of PyTorch's
    other kinds ("meta", "mps", ...) there are names alone."""

    __slots__ = ("type", "index", "_before")

    def __init__(self, type="cpu", index: int | None = None):
        if isinstance(type, bytes):
            type = type.decode("latin-1")
        if isinstance(type, device):
            type, index = type.type, type.index
        elif not isinstance(type, str):
            type, index = "cuda", _index("device(): argument 'type' must be str, int or device", type)
        elif index is not None:
            index = _index("device(): argument 'index' must be int", index)
        if ":" in type:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            kind, number = type.split(":", 1)
            if not (number.isdecimal() and number.isascii()) or (number[0] == "0" and len(number) > 1):
                raise RuntimeError(f"Invalid device string: '{type}'")
            type, index = kind, int(number)
        if type not in ("cpu", "cuda", *_ABSENT):
            raise RuntimeError(f"Expected one of cpu, cuda device type at start of device string: '{type}'")
        self.type, self.index = type, index

    def __eq__(self, other):
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self):
        return hash((self.type, self.index))

    def __repr__(self):
        return f"device(type='{self.type}'" + (f", index={self.index})" if self.index is not None else ")")

    def __str__(self):
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self):
        return device, (self.type, self.index)

    def __enter__(self):
        self._before = set_default_device(self)
        return self

    def __exit__(self, *_):
        set_default_device(self._before)


def _index(wanted: str, value) -> int:
    """A device's number. TypeError, which says what was wanted, for what is none."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{wanted}, not {value.__class__.__name__}")
    number = operator.index(value)
    if number < 0:
        raise RuntimeError(f"Device index must not be negative, but got {number}")
    return number


CPU, CUDA = device("cpu"), device("cuda")
_KNOWN = [CPU]  # by number
_default = None  # where tensors are created; None: on the CPU


def set_default_device(where) -> device | None:
    """Where functions that create tensors put them unless told otherwise; None: on the CPU. Gives the one before.
    Follows ``torch.set_default_device``."""
    global _default
    before = _default
    chosen = None if where is None else device(where)
    if chosen is not None:
        number_of(chosen)
    _default = None if chosen == CPU else chosen
    return before


def get_default_device() -> device:
    """Where functions that create tensors put them. Follows ``torch.get_default_device``."""
    return CPU if _default is None else _default


def cuda_device(where) -> device:
    """A CUDA device given in any way. RuntimeError for another kind of device."""
    chosen = device(where)
    if chosen.type != "cuda":
        raise RuntimeError(f"Invalid device, must be cuda device, but got {chosen}")
    return chosen


def absent(kind: str, op: str = "") -> Exception:
    """The error for a kind of device that is not here: PyTorch's where it was built without them."""
    error = AssertionError if kind in ("xpu", "mtia") else RuntimeError
    return error(f"{op}tinytorch has no {kind} devices")


def number_of(where) -> int:
    """A device as the C side numbers it: 0 for the CPU, k + 1 for cuda:k, which is opened. RuntimeError when it is not
    there."""
    if where is None or where == "cpu":
        return 0
    if not isinstance(where, device):
        where = device(where)
    if where.type == "cpu":
        return 0
    if where.type != "cuda":
        raise absent(where.type)
    index = runtime.current_device() if where.index is None else where.index
    runtime.open_device(index)
    return index + 1


def device_of(number: int) -> device:
    """The device that the C side numbers so."""
    while number >= len(_KNOWN):
        _KNOWN.append(device("cuda", len(_KNOWN) - 1))
    return _KNOWN[number]


def on_device(where, make, *args):
    """Calls the C function ``make``, which allocates its result, on device ``where`` (None: the default)."""
    if where is None:
        if _default is None:
            return make(*args)
        where = _default
    elif where == "cpu":
        return make(*args)
    return call_on_device(number_of(where), make, *args)
