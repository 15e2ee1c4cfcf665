"""Grad modes, per thread.

``modes`` holds only the threads that deviate from the default (gradients recorded, nothing else). The hot path of an
operator asks ``if modes:`` first, which is false in an ordinary forward pass.
"""

from __future__ import annotations

import functools
import inspect
from _thread import get_ident

from ..backends.cpu import lib

modes: dict[int, Mode] = {}


class Mode:
    """What a thread has switched on or off."""

    __slots__ = ("grad", "inference", "anomaly", "check_nan", "saved_hooks", "hooks_refused")

    def __init__(self, grad=True, inference=False, anomaly=False, check_nan=True, saved_hooks=(), hooks_refused=""):
        self.grad, self.inference, self.anomaly = grad, inference, anomaly
        self.check_nan, self.saved_hooks, self.hooks_refused = check_nan, saved_hooks, hooks_refused

    def is_default(self) -> bool:
        return self.grad and not (self.inference or self.anomaly or self.saved_hooks or self.hooks_refused)


DEFAULT = Mode()
_QUIET = Mode(grad=False)


def current() -> Mode:
    """This thread's mode."""
    return modes.get(get_ident(), DEFAULT)


def replace(**changes) -> Mode:
    """Changes this thread's mode; returns the one before, for ``restore``."""
    old = current()
    fields = {name: getattr(old, name) for name in Mode.__slots__}
    restore(Mode(**{**fields, **changes}))
    return old


def set_grad(grad: bool) -> Mode:
    """``replace(grad=grad)`` without its cost in the usual cases: every backward pass begins with it."""
    old = modes.get(get_ident(), DEFAULT)
    if old.grad == grad:
        return old
    if old is not DEFAULT:
        return replace(grad=grad)
    modes[get_ident()] = _QUIET
    return old


def restore(mode: Mode) -> None:
    """Makes ``mode`` this thread's."""
    if mode is DEFAULT and modes.get(get_ident()) is _QUIET:
        del modes[get_ident()]
        return
    if mode.inference != current().inference:
        lib.tt_set_inference(mode.inference)
    if mode.is_default():
        modes.pop(get_ident(), None)
    else:
        modes[get_ident()] = mode


def is_grad_enabled() -> bool:
    """Are operations of this thread recorded?"""
    return current().grad


def is_inference_mode_enabled() -> bool:
    """Is this thread in inference mode?"""
    return current().inference


class ModeContext:
    """A context manager and decorator that changes this thread's mode inside. Generators keep it per step."""

    def __init__(self):
        self._saved: list[Mode] = []

    def changes(self) -> dict:
        raise NotImplementedError("a ModeContext names the fields it changes")

    def __enter__(self):
        self._saved.append(replace(**self.changes()))
        return self

    def __exit__(self, *exc_info):
        restore(self._saved.pop())

    def clone(self):
        return type(self)()

    def __call__(self, fn):
        if inspect.isgeneratorfunction(fn):

            @functools.wraps(fn)
            def generator(*args, **kwargs):
                # The caller's code between two steps must not run in the changed mode.
                inner = fn(*args, **kwargs)
                with self.clone():
                    try:
                        value = next(inner)
                    except StopIteration as stop:
                        return stop.value
                while True:
                    try:
                        sent = yield value
                    except GeneratorExit:
                        inner.close()
                        raise
                    except BaseException as exc:
                        resume = functools.partial(inner.throw, exc)
                    else:
                        resume = functools.partial(inner.send, sent)
                    with self.clone():
                        try:
                            value = resume()
                        except StopIteration as stop:
                            return stop.value

            return generator

        @functools.wraps(fn)
        def inside(*args, **kwargs):
            with self.clone():
                return fn(*args, **kwargs)

        return inside


class _Maybe(type):
    """``@no_grad`` without parentheses decorates too."""

    def __call__(cls, fn=None):
        made = super().__call__()
        return made if fn is None else made(fn)


class no_grad(ModeContext, metaclass=_Maybe):
    """Nothing is recorded inside, in this thread. Context manager and decorator; follows ``torch.no_grad``."""

    def changes(self):
        return {"grad": False}


class enable_grad(ModeContext, metaclass=_Maybe):
    """Recording is on inside, in this thread. Context manager and decorator; follows ``torch.enable_grad``."""

    def changes(self):
        return {"grad": True}


class set_grad_enabled(ModeContext):
    """Sets recording on or off at once, and back on leaving a ``with``. Follows ``torch.set_grad_enabled``."""

    def __init__(self, mode: bool):
        super().__init__()
        self.mode = bool(mode)
        self._saved.append(replace(**self.changes()))
        self._entered = False

    def changes(self):
        return {"grad": self.mode}

    def __enter__(self):
        if self._entered:
            return super().__enter__()
        self._entered = True
        return self

    def clone(self):
        return type(self)(self.mode)

    def __call__(self, fn):
        restore(self._saved.pop())  # as a decorator it leaves the present mode alone
        return super().__call__(fn)


class inference_mode(ModeContext):
    """No recording inside; the promise is that results never enter a graph. Follows ``torch.inference_mode``."""

    def __new__(cls, mode=True):
        if callable(mode):
            return cls()(mode)
        made = super().__new__(cls)
        made.mode = bool(mode)
        return made

    def __init__(self, mode=True):
        super().__init__()

    def changes(self):
        return {"grad": False, "inference": True} if self.mode else {"inference": False, "grad": True}

    def clone(self):
        return type(self)(self.mode)
