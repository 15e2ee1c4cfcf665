"""Who handles a call: modes, then the arguments that have a ``__torch_function__`` of their own. PyTorch's protocol."""

from __future__ import annotations

from _thread import get_ident

from .tensor import Tensor

_off: dict[int, int] = {}  # by thread: how many contexts have switched overriding off: of arguments,
_all_off: dict[int, int] = {}  # ... and of modes too
on_subclass: list = []  # what is called with each class of tensors
modes: dict[int, list] = {}  # by thread: the modes that are entered, the innermost last


class _Off:
    """A context manager that counts itself in ``counts``."""

    counts: dict[int, int]

    def __enter__(self):
        thread = get_ident()
        self.counts[thread] = self.counts.get(thread, 0) + 1

    def __exit__(self, *exc_info):
        thread = get_ident()
        self.counts[thread] -= 1
        if not self.counts[thread]:
            del self.counts[thread]


class DisableTorchFunctionSubclass(_Off):
    """A context in which no argument's ``__torch_function__`` is called; modes' are. Follows
    ``torch._C.DisableTorchFunctionSubclass``."""

    counts = _off


class DisableTorchFunction(_Off):
    """A context in which no ``__torch_function__`` is called. Follows ``torch._C.DisableTorchFunction``."""

    counts = _all_off


def _disabled_torch_function_impl(func, types, args=(), kwargs=None):
    """``__torch_function__ = _disabled_torch_function_impl`` in a class: it overrides nothing, and operators on its
    tensors give plain ones. Follows ``torch._C._disabled_torch_function_impl``."""
    with DisableTorchFunctionSubclass():
        return func(*args, **kwargs or {})


def overrides(cls: type) -> bool:
    """Has the class a ``__torch_function__`` that is to be called?"""
    if cls is Tensor:
        return False
    impl = getattr(cls, "__torch_function__", None)
    return impl is not None and impl is not _disabled_torch_function_impl


def overriding(values) -> list:
    """Those of the arguments that override: the first of each type, and that of a subclass before that of its base."""
    found: list = []
    for v in values:
        cls = type(v)
        if cls.__module__ == "builtins" or not overrides(cls) or any(type(other) is cls for other in found):
            continue
        place = next((k for k, other in enumerate(found) if issubclass(cls, type(other))), len(found))
        found.insert(place, v)
    return found


def _within(values) -> list:
    """The arguments, and in the place of sequences their elements."""
    return [v for value in values for v in (value if type(value) in (tuple, list) else (value,))]


def off() -> bool:
    """Is no argument of this thread's calls to be asked?"""
    thread = get_ident()
    return thread in _off or thread in _all_off


def active_mode() -> bool:
    """Is this thread in a mode that is to be asked?"""
    thread = get_ident()
    return bool(modes.get(thread)) and thread not in _all_off


def call(public, original, args: tuple, kwargs: dict):
    """What ``public(*args, **kwargs)`` gives: what a mode or an argument makes of it, or else ``original``'s result."""
    thread = get_ident()
    if thread in _all_off:
        return original(*args, **kwargs)
    found = () if thread in _off else overriding(_within((*args, *kwargs.values())))
    if found or modes.get(thread):
        return dispatch(public, found, args, kwargs)
    return original(*args, **kwargs)


def dispatch(public, found, args: tuple, kwargs: dict):
    """Asks the innermost mode, then the overriding arguments ``found``, for the result of ``public(*args, **kwargs)``.
    TypeError when all say NotImplemented."""
    types = tuple([type(v) for v in found])
    stack = modes.get(get_ident())
    mode = stack.pop() if stack else None
    if mode is not None:  # what it calls is for the modes around it
        try:
            result = mode.__torch_function__(public, types, args, kwargs)
        finally:
            stack.append(mode)
        if result is not NotImplemented:
            return result
    for v in found:
        result = type(v).__torch_function__(public, types, args, kwargs)
        if result is not NotImplemented:
            return result
    if not callable(public):
        raise TypeError(f"{type(public).__name__!r} object is not callable")
    name = f"{public.__module__}.{public.__qualname__}" if hasattr(public, "__module__") else public.__name__
    raise TypeError(
        f"Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n"
        + "".join(f"  - mode object {mode!r}\n" if mode is not None else "")
        + "".join(f"  - tensor subclass {cls}\n" for cls in types)
    )


def convert(result, cls: type):
    """A result's tensors as instances of ``cls``."""
    if cls is Tensor:
        return result
    if isinstance(result, Tensor):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts = [convert(r, cls) for r in result]
        return type(result)(*parts) if hasattr(result, "_fields") else type(result)(parts)
    return result


def get_default_nowrap_functions() -> set:
    """The functions whose result ``Tensor.__torch_function__`` gives as it is. Follows
    ``torch.overrides.get_default_nowrap_functions``."""
    return {Tensor._base.__get__, Tensor.grad.__get__}


def __torch_function__(cls, func, types, args=(), kwargs=None):
    """What a subclass makes of ``func(*args, **kwargs)``: its result, with Tensors as instances of the subclass; one
    that overrides this calls it through ``super()``. NotImplemented for arguments of other types. Follows
    ``torch.Tensor.__torch_function__``."""
    if not all(issubclass(cls, t) for t in types):
        return NotImplemented
    with DisableTorchFunctionSubclass():
        result = func(*args, **kwargs or {})
    if result is None or isinstance(result, (bool, int, float, str)) or func in get_default_nowrap_functions():
        return result
    return convert(result, cls)


def __init_subclass__(cls, **kwargs):
    super(Tensor, cls).__init_subclass__(**kwargs)
    for take_note in on_subclass:
        take_note(cls)


Tensor.__torch_function__, Tensor.__init_subclass__ = classmethod(__torch_function__), classmethod(__init_subclass__)
