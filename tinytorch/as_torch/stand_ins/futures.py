"""``torch.futures``: values that another thread gives."""

from __future__ import annotations

import threading
from typing import Generic, TypeVar

__all__ = ["Future", "collect_all", "wait_all"]


T = TypeVar("T")


class Future(Generic[T]):
    """A value that is set later, once. ``devices`` changes nothing."""

    def __init__(self, *, devices=None):
        self._changed = threading.Condition()
        self._done = False
        self._value = self._error = None
        self._callbacks: list = []

    def done(self) -> bool:
        """Is there a value, or an exception?"""
        return self._done

    def wait(self):
        """The value, once it is there; raises the exception that was set instead."""
        with self._changed:
            self._changed.wait_for(self.done)
        return self.value()

    def value(self):
        """The value; raises the exception that was set instead. RuntimeError before there is one."""
        if not self._done:
            raise RuntimeError("value() is called on a Future that is not complete")
        if self._error is not None:
            raise self._error
        return self._value

    def add_done_callback(self, callback) -> None:
        """Calls ``callback(self)`` when the value is there, or now."""
        with self._changed:
            if not self._done:
                return self._callbacks.append(callback)
        callback(self)

    def then(self, callback) -> Future:
        """The Future of ``callback(self)``, which is called when the value is there, or now;
        what it raises is a RuntimeError there."""
        following = Future()

        def follow(done: Future) -> None:
            try:
                result = callback(done)
            except Exception as e:
                told = f"Got the following error when running the callback: {type(e).__name__}: {e}"
                following.set_exception(RuntimeError(told))
            else:
                following.set_result(result)

        self.add_done_callback(follow)
        return following

    def set_result(self, result) -> None:
        """Sets the value. RuntimeError for the second time."""
        self._finish(result, None)

    def set_exception(self, result) -> None:
        """Sets what ``wait`` and ``value`` raise. RuntimeError for the second time."""
        assert isinstance(result, Exception), f"{result} is of type {type(result)}, not an Exception."
        self._finish(None, result)

    def _finish(self, value, error) -> None:
        with self._changed:
            if self._done:
                raise RuntimeError("Future can only be set as completed once")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._changed.notify_all()
        for callback in callbacks:
            callback(self)


def collect_all(futures) -> Future:
    """The Future of the list of all Futures, once they are done."""
    futures, every = list(futures), Future()
    if not futures:
        every.set_result([])
    done, lock = [], threading.Lock()

    def one(future: Future) -> None:
        with lock:
            done.append(future)
            last = len(done) == len(futures)
        if last:
            every.set_result(futures)

    for future in futures:
        future.add_done_callback(one)
    return every


def wait_all(futures) -> list:
    """The values of all, once they are there; raises the first exception."""
    return [future.wait() for future in collect_all(futures).wait()]
