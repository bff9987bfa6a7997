"""Drives a timing wheel by one timer of the event loop, set for the wheel's next bucket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.timing.wheel import TimingWheel


class Alarm:
    """Wakes a wheel when its next timer is due; time is the loop's own, in milliseconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.wheel = TimingWheel(start_ms=self.now_ms())
        self._handle: asyncio.TimerHandle | None = None
        self._set_for_ms = 0
        self.before_ringing: Callable[[], object] = lambda: None
        """Called before anything that is due: whoever stood still meanwhile must know it first."""

    def now_ms(self) -> int:
        """Return the loop's time: it never jumps, and means nothing outside this process."""
        return int(self._loop.time() * 1000)

    def set(self) -> None:
        """Make sure that the wheel is woken in time; call after adding timers."""
        due_ms = self.wheel.next_deadline_ms()
        if due_ms is None or (self._handle is not None and due_ms >= self._set_for_ms):
            return
        if self._handle is not None:
            self._handle.cancel()
        self._set_for_ms = due_ms
        self._handle = self._loop.call_at((due_ms + 1) / 1000, self._ring)

    def stop(self) -> None:
        """Never ring again."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _ring(self) -> None:
        self._handle = None
        try:
            self.before_ringing()
            self.wheel.run(self.now_ms())
        finally:
            self.set()  # also if a timer fails: the others are due all the same
