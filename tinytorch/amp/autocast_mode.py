"""Autocast: operators get their arguments in the dtype that suits them.

Note [Autocast]
Nothing looks for autocast in a program that has none. When the first context is made, the functions and methods of
`policies.POLICIES` get other code, as the profiler's (wrapper_code.py): it asks whether this thread's mode has an
autocast, and casts. The mode is that of autograd/modes.py: threads differ, backward runs without, and fused mode
records the casts as operators. A parameter is cast once in a context, and the copy kept until the outermost ends.
"""

from __future__ import annotations

import functools
import warnings
from _thread import get_ident
from types import FunctionType

from ..autograd.modes import DEFAULT, Mode, ModeContext, current
from ..cuda.devices import is_available
from ..backends.cpu import lib
from ..backends.native import modes
from ..dtypes import bfloat16, dtype, float16, float32, float64
from ..dtypes import dtype as _dtype
from ..ops.class_loss import cross_entropy_of_halves
from ..ops.convert import cast
from ..ops.declare import OPS
from ..tensor import Tensor
from ..wrapper_code import is_over, original_of, own_code, put_over, wrapper_code
from .policies import NOTATION, POLICIES

_LOWER = {"cuda": (float16, bfloat16), "cpu": (bfloat16, float16)}  # what each takes; the first is the default
_defaults = {device: dtypes[0] for device, dtypes in _LOWER.items()}
_caching = [True]
_CASTABLE = frozenset(d.code for d in (float16, bfloat16, float32))
_FLOAT32, _DEVICE = float32.code, lib.TT_FLAG_DEVICE
# What is done instead of a cast to float32, with the same result: functions whose kernels read half types.
_OF_HALVES = {"nn.functional.cross_entropy": cross_entropy_of_halves}
_wrapped: dict[int, tuple] = {}  # by id: functions, and the code that they got

_WRAPPER = """
def outer({free}):
    def wrapper(*_a_args, **_a_kwargs):
        {things}
        if _a_modes:
            _a_mode = _a_modes.get(_a_ident())
            if _a_mode is not None and _a_mode.autocast is not None:
                return _a_call(_a_rules, _a_original, _a_args, _a_kwargs, _a_mode)
        return _a_original(*_a_args, **_a_kwargs)
        ({free})
"""


class State:
    """What autocast does in a thread: the dtype for each kind of device, and the copies of parameters."""

    __slots__ = ("dtypes", "copies")

    def __init__(self, dtypes: dict[str, dtype], copies: dict | None):
        self.dtypes, self.copies = dtypes, copies


def install() -> None:
    """Gives the operators of the lists the code that casts."""
    for name, rules in POLICIES.items():
        op = OPS[name]
        found = [op.function, op.method, *(getattr(Tensor, method) for method in NOTATION.get(name, ()))]
        for fn in {id(f): f for f in found if isinstance(f, FunctionType)}.values():
            if id(fn) in _wrapped and is_over(fn, _wrapped[id(fn)][1]):
                continue
            things = {
                "_a_modes": modes,
                "_a_ident": get_ident,
                "_a_call": _call,
                "_a_rules": (name, rules),
                "_a_original": original_of(fn),
            }
            text = _WRAPPER.format(free=", ".join(fn.__code__.co_freevars), things="{things}")
            code = wrapper_code(text, " " * 8, things, "<eager, autocast>", fn.__code__.co_name)
            _wrapped[id(fn)] = fn, code
            put_over(fn, code, things["_a_original"])


def renew() -> None:
    """Again, where a profiler has put the old code back."""
    if _wrapped:
        install()


def remove() -> None:
    """All functions are as they were before any context: for tests, each of which wants that."""
    for fn, _ in _wrapped.values():
        fn.__code__ = own_code(fn)
    _wrapped.clear()


def _call(rules: tuple, original, args: tuple, kwargs: dict, mode: Mode):
    """The operator with its arguments cast; what it is made of sees no autocast."""
    name, by_device = rules
    state, tensors, nested = mode.autocast, [], False
    for v in (*args, *kwargs.values()) if kwargs else args:
        if isinstance(v, Tensor):
            tensors.append(v)
        elif isinstance(v, (list, tuple)):
            inner = [t for t in v if isinstance(t, Tensor)]
            tensors += inner
            nested = nested or bool(inner)
    for t in tensors:
        place = t._h.flags & _DEVICE
        device = "cuda" if place else "cpu"
        if device in state.dtypes:
            break
    else:
        return original(*args, **kwargs)
    rule = by_device.get(device)
    if rule is None:
        return original(*args, **kwargs)
    eligible = [t for t in tensors if t._h.dtype in _CASTABLE and t._h.flags & _DEVICE == place]
    to = float32
    if rule == "lower":
        to = state.dtypes[device]
    elif rule == "full":
        if name in _OF_HALVES and args and type(args[0]) is Tensor and args[0].dtype in _LOWER[device]:
            original, eligible = _OF_HALVES[name], ()
    elif rule == "widest":
        dtypes = {t.dtype for t in eligible}
        to = dtypes.pop() if len(dtypes) == 1 else float32
    elif rule == "second":
        to = eligible[1].dtype if len(eligible) > 1 else to
    elif any(t.dtype is not float32 for t in eligible):
        raise RuntimeError(
            f"{name}: unsafe to autocast; combine it with the sigmoid before it "
            "(binary_cross_entropy_with_logits, BCEWithLogitsLoss), or disable autocast around it"
        )
    code = to.code
    chosen = [id(t) for t in eligible if t._h.dtype != code]
    if chosen:
        convert = _converted if nested else _copy
        args = [convert(v, code, state, chosen) if nested or id(v) in chosen else v for v in args]
        if kwargs:
            kwargs = {k: _converted(v, code, state, chosen) for k, v in kwargs.items()}
    thread = get_ident()
    inside = mode.without_autocast()
    try:  # Note [Interrupts] in kernels/python/contexts.c
        modes[thread] = inside
        return original(*args, **kwargs)
    finally:
        modes[thread] = mode


def _converted(value, code: int, state: State, chosen: list):
    """An argument, in lists and tuples too: the chosen tensors in the dtype."""
    if isinstance(value, (list, tuple)):
        inside = any(id(v) in chosen for v in value)
        return type(value)([_converted(v, code, state, chosen) for v in value]) if inside else value
    return _copy(value, code, state) if id(value) in chosen else value


def _copy(t: Tensor, code: int, state: State, _=None) -> Tensor:
    """A tensor in the dtype; parameters are cast once."""
    copies = state.copies
    if copies is None or code == _FLOAT32 or not current().grad:
        return cast(t, code)
    kept = copies.get(id(t))
    if kept is not None and kept[1] == t._version and kept[2]._h.dtype == code:
        return kept[2]
    made = cast(t, code)
    if t.requires_grad and t.is_leaf and t._h.dtype == _FLOAT32 and t._base is None:
        copies[id(t)] = t, t._version, made
    return made


def switched(outside: Mode | None, device: str, to: dtype | None, cache: bool) -> Mode | None:
    """The mode with autocast to this dtype for the kind of device, or with none."""
    state = (outside or DEFAULT).autocast
    dtypes = {} if state is None else dict(state.dtypes)
    dtypes.pop(device, None)
    if to is not None:
        dtypes[device] = to
    copies = (state.copies if state is not None and state.copies is not None else {}) if cache else None
    return (outside or DEFAULT).changed(autocast=State(dtypes, copies) if dtypes else None)


class autocast(ModeContext):
    """A context, and a decorator, in which operators that gain from it run in a half type, and those that need it in
    float32. Follows ``torch.autocast``.

    Args:
        device_type: ``"cuda"`` or ``"cpu"``: whose tensors are cast
        dtype: float16 or bfloat16; float16 on CUDA and bfloat16 on the CPU without it
        enabled: False: none of them are cast inside
        cache_enabled: are parameters cast once and kept?
    Raises:
        RuntimeError: an unknown kind of device
    """

    def __init__(self, device_type: str, dtype=None, enabled: bool = True, cache_enabled: bool | None = None):
        check_device(device_type)
        self.device = device_type
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self._enabled, self._cache = enabled, _caching[0] if cache_enabled is None else cache_enabled
        if enabled and self.fast_dtype not in _LOWER[device_type]:
            names = " or ".join(d.name for d in _LOWER[device_type])
            warnings.warn(
                f"In {device_type} autocast, but the target dtype is not supported. Disabling autocast.\n"
                f"{device_type} autocast only supports dtype of {names} currently.",
                stacklevel=2,
            )
            self._enabled = False
        if enabled and device_type == "cuda" and not is_available():
            warnings.warn("User provided device_type of 'cuda', but CUDA is not available. Disabling", stacklevel=2)
            self._enabled = False
        if self._enabled and not _wrapped:
            install()

    def inside(self, outside):
        return switched(outside, self.device, self.fast_dtype if self._enabled else None, self._cache)

    def clone(self):
        return self


class autocast_of_here(ModeContext):
    """A context with the autocast that was in force where this object was made: for what is computed again."""

    def __init__(self):
        super().__init__()
        self.state = current().autocast

    def changes(self):
        if self.state is None:
            return {"autocast": None}
        return {"autocast": State(self.state.dtypes, None if self.state.copies is None else {})}

    def clone(self):
        return self


def check_device(device_type) -> None:
    """TypeError or RuntimeError for what names no kind of device."""
    if not isinstance(device_type, str):
        raise TypeError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")
    if device_type not in _LOWER:
        raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")


def is_autocast_available(device_type: str) -> bool:
    """Is there autocast for this kind of device? Follows ``torch.amp.is_autocast_available``."""
    return device_type in _LOWER


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Is this thread in an autocast for the kind of device? Follows ``torch.is_autocast_enabled``."""
    check_device(device_type)
    state = current().autocast
    return state is not None and device_type in state.dtypes


def get_autocast_dtype(device_type: str) -> dtype:
    """The dtype of autocast. Follows ``torch.get_autocast_dtype``."""
    check_device(device_type)
    state = current().autocast
    return (state.dtypes if state is not None else {}).get(device_type, _defaults[device_type])


def set_autocast_dtype(device_type: str, dtype: dtype) -> None:
    """The dtype of contexts that name none, and of the one that this thread is in. Follows
    ``torch.set_autocast_dtype``."""
    check_device(device_type)
    if not isinstance(dtype, _dtype):
        raise TypeError(f"set_autocast_dtype(): argument 'dtype' must be tinytorch.dtype, not {type(dtype).__name__}")
    _defaults[device_type] = dtype
    state = current().autocast
    if state is not None and device_type in state.dtypes:
        state.dtypes[device_type] = dtype


def is_autocast_cache_enabled() -> bool:
    """Do contexts that do not say keep copies of parameters? Follows ``torch.is_autocast_cache_enabled``."""
    return _caching[0]


def set_autocast_cache_enabled(enabled: bool) -> None:
    """Follows ``torch.set_autocast_cache_enabled``."""
    _caching[0] = bool(enabled)


def clear_autocast_cache() -> None:
    """Forgets this thread's copies of parameters. Follows ``torch.clear_autocast_cache``."""
    state = current().autocast
    if state is not None and state.copies is not None:
        state.copies.clear()


def custom_fwd(fwd=None, *, device_type: str, cast_inputs: dtype | None = None):
    """Decorates ``forward`` of an `autograd.Function`. With ``cast_inputs``, floating arguments on the device are cast
    to that dtype in an autocast, and ``forward`` runs without it. Follows ``torch.amp.custom_fwd``."""
    check_device(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(*args, **kwargs):
        ctx, enabled = args[0], is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = enabled and cast_inputs is None
        if not enabled or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_all_cast(args, device_type, cast_inputs), **_all_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type: str):
    """Decorates ``backward`` of an `autograd.Function`, which then runs in the autocast that ``forward`` ran in.
    Follows ``torch.amp.custom_bwd``."""
    check_device(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(*args, **kwargs):
        with autocast(device_type, args[0]._dtype, args[0]._fwd_used_autocast):
            return bwd(*args, **kwargs)

    return decorated


def _all_cast(value, device_type: str, to: dtype):
    if isinstance(value, Tensor):
        floating = value.is_floating_point() and value.device.type == device_type and value.dtype is not float64
        return value.to(to) if floating else value
    if isinstance(value, dict):
        return {_all_cast(k, device_type, to): _all_cast(v, device_type, to) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)([_all_cast(v, device_type, to) for v in value])
    return value
