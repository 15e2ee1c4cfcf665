"""Names of threads, also of those that end before the profiler does."""

from __future__ import annotations

import functools
import threading


class Threads:
    """Threads that there are or that begin between ``start`` and ``stop``. Thread.start is replaced meanwhile."""

    def start(self) -> None:
        """Begins to look."""
        self.seen: list[threading.Thread] = threading.enumerate()
        self.before, seen = threading.Thread.start, self.seen

        @functools.wraps(self.before)
        def start(thread):
            seen.append(thread)
            start.original(thread)

        start.original = self.before
        threading.Thread.start = self.mine = start

    def stop(self) -> dict[int, str]:
        """Ends it: names, by the system's numbers. One that the system has given again is the later thread's."""
        if threading.Thread.start is self.mine:  # else another wrapper came later
            threading.Thread.start = self.before
        names = {t.native_id: t.name for t in [*self.seen, *threading.enumerate()]}
        self.seen.clear()
        return names
