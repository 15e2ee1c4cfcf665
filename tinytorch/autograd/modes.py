"""Grad modes, per thread.

``modes`` holds only the threads that deviate from the default (gradients recorded, nothing else). The hot path of an
operator asks ``if modes:`` first, which is false in an ordinary forward pass.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from _thread import get_ident

from ..backends.native import ModeContextBase, ModeSwitchBase, modes


class Mode:
    """What a thread has switched on or off."""

    FIELDS = (
        "grad", "inference", "anomaly", "check_nan", "saved_hooks", "hooks_refused", "on_write", "multithreading",
        "autocast",
    )  # fmt: skip
    __slots__ = (*FIELDS, "watches_writes", "plain")

    def __init__(
        self,
        grad=True,
        inference=False,
        anomaly=False,
        check_nan=True,
        saved_hooks=(),
        hooks_refused="",
        on_write=None,
        multithreading=True,
        autocast=None,
    ):
        self.grad, self.inference, self.anomaly = grad, inference, anomaly
        self.check_nan, self.saved_hooks, self.hooks_refused = check_nan, saved_hooks, hooks_refused
        self.on_write, self.multithreading = on_write, multithreading
        self.autocast, self.plain = autocast, None  # autocast: an amp.autocast_mode.State
        self.watches_writes = bool(anomaly or on_write)  # do writes in place take the general path?

    def is_default(self) -> bool:
        special = self.inference or self.anomaly or self.saved_hooks or self.hooks_refused or self.on_write
        return self.grad and self.multithreading and not special and self.autocast is None

    def changed(self, **fields) -> Mode | None:
        """This mode with other fields; None for the default."""
        made = Mode(**{**{name: getattr(self, name) for name in Mode.FIELDS}, **fields})
        return None if made.is_default() else made

    def with_grad(self, grad: bool) -> Mode | None:
        """``changed(grad=grad)``, and this very mode where nothing changes."""
        return self if self.grad == grad else self.changed(grad=grad)

    def without_autocast(self) -> Mode:
        """This mode but for autocast; kept, since each operator that autocast casts runs in it."""
        if self.autocast is None:
            return self
        if self.plain is None:
            self.plain = self.changed(autocast=None) or DEFAULT
        return self.plain


DEFAULT = Mode()
QUIET = Mode(grad=False)
PARTIAL = Mode(grad=False)  # in a backward to some of the leaves only


inference_used = [False]  # was any thread ever in inference mode? Else no tensor was made there


def current() -> Mode:
    """This thread's mode."""
    return modes.get(get_ident(), DEFAULT)


def is_grad_enabled() -> bool:
    """Are operations of this thread recorded?"""
    return current().grad


def is_inference_mode_enabled() -> bool:
    """Is this thread in inference mode?"""
    return current().inference


class Decorator:
    """A context manager that decorates functions: each call, and each step of a generator, is within a ``clone()``."""

    def clone(self):
        return type(self)()

    def __call__(self, fn):
        if inspect.isclass(fn):
            warnings.warn(
                "Decorating classes is deprecated and will be disabled in future versions. You should only decorate "
                "functions or methods. To preserve the current behavior of class decoration, you can directly decorate "
                "the `__init__` method and nothing else.",
                FutureWarning,
                stacklevel=2,
            )
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
                        with self.clone():
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


class ModeContext(ModeContextBase, Decorator):
    """A context manager and decorator that changes this thread's mode inside. Generators keep it per step. No signal's
    handler interrupts entering and leaving: Note [Interrupts] in kernels/python/contexts.c."""

    def changes(self) -> dict:
        raise NotImplementedError("a ModeContext names the fields it changes")

    def inside(self, outside: Mode | None) -> Mode | None:
        """The mode inside; None is the default."""
        return (outside or DEFAULT).changed(**self.changes())


class MaybeBare(type):
    """``@no_grad`` without parentheses decorates too."""

    def __call__(cls, fn=None):
        made = super().__call__()
        return made if fn is None else made(fn)


class no_grad(ModeContext, metaclass=MaybeBare):
    """Nothing is recorded inside, in this thread. Context manager and decorator; follows ``torch.no_grad``."""

    def inside(self, outside):
        return QUIET if outside is None else outside.with_grad(False)


class enable_grad(ModeContext, metaclass=MaybeBare):
    """Recording is on inside, in this thread. Context manager and decorator; follows ``torch.enable_grad``."""

    def inside(self, outside):
        return None if outside is None else outside.with_grad(True)


class ModeSwitch(ModeSwitchBase, ModeContext):
    """A ModeContext that changes the mode as soon as it is made, by C: no handler comes between that and ``with``."""

    _decorates = False

    def configure(self, mode: bool):
        """What ``__init__`` does before the mode is changed."""
        if not isinstance(mode, bool):
            raise TypeError(f"{type(self).__name__}(): argument 'mode' must be bool, not {type(mode).__name__}")
        self.mode = mode

    def __init_subclass__(cls):
        parameters = list(inspect.signature(cls.configure).parameters.values())
        cls.__signature__ = inspect.Signature(parameters[1:])

    def __call__(self, fn):
        if not self._decorates:
            self._decorates = True
            self.__exit__()  # as a decorator it leaves the present mode alone
        return super().__call__(fn)


class set_grad_enabled(ModeSwitch):
    """Sets recording on or off at once, and back on leaving a ``with``. Follows ``torch.set_grad_enabled``."""

    def inside(self, outside):
        return (outside or DEFAULT).with_grad(self.mode)

    def clone(self):
        return enable_grad() if self.mode else no_grad()


class set_multithreading_enabled(ModeSwitch):
    """Taken as in PyTorch: backward runs in the thread that calls it in any case. Follows
    ``torch.autograd.set_multithreading_enabled``."""

    def inside(self, outside):
        return (outside or DEFAULT).changed(multithreading=self.mode)

    def clone(self):
        return type(self)(self.mode)


def is_multithreading_enabled() -> bool:
    """What ``set_multithreading_enabled`` has said in this thread."""
    return current().multithreading


class inference_mode(ModeContext):
    """No recording inside; the promise is that results never enter a graph. Follows ``torch.inference_mode``."""

    def __new__(cls, mode=True):
        if callable(mode):
            return cls()(mode)
        made = super().__new__(cls)
        made.mode = bool(mode)
        return made

    def __init__(self, mode=True):
        """All is done in ``__new__``."""

    def changes(self):
        if not self.mode:
            return {"inference": False, "grad": True}
        inference_used[0] = True
        return {"grad": False, "inference": True}

    def clone(self):
        return type(self)(self.mode)
