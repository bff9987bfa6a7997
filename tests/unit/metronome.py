"""A clock for upper bounds: it stands still while the machine does.

A call that must end "within a second" may be seen to take five where other processes have the
processor meanwhile. The metronome counts pauses of 10 ms instead, each as 10 ms however long it
took: what it measures is how long a call would have taken if nobody had been in its way. A call
that waits too long by itself is measured as long as ever.

    with Metronome() as clock:
        consumer.close(timeout_ms=300)
    assert clock.elapsed_s < 1
"""

from __future__ import annotations

import threading
from types import TracebackType

_TICK_S = 0.01


class Metronome:
    """Counts from `with` on; reads the same after it."""

    def __init__(self) -> None:
        self._ticks = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="metronome", daemon=True)

    @property
    def elapsed_s(self) -> float:
        """Return how long it has been running."""
        return self._ticks * _TICK_S

    def __enter__(self) -> Metronome:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._done.wait(_TICK_S):
            self._ticks += 1
