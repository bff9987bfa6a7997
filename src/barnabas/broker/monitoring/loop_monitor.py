"""How busy the event loop is, and how late.

No loop tells how long it has slept. But a sleeping thread uses no CPU: what the thread of the loop
has used is the time in which it was busy, except that a disk may make it wait as well; appends that
took long are taken for such waits. How late a timer is says for how long a request may have waited
unread in its socket, which no phase of the request includes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from barnabas.broker.housekeeping import LOOP_TICK_MS
from barnabas.metrics.catalogue import loop as catalogue
from barnabas.metrics.catalogue.network import NETWORK_PROCESSOR
from barnabas.metrics.metric import Metric
from barnabas.metrics.registry import WINDOW_S, Registry

SAMPLE_S = 1.0
MINUTE_S = 60.0
RECENTLY_S = 10.0


class LoopMonitor:
    """Measures one loop; `tick` is called by a timer on it."""

    def __init__(
        self,
        registry: Registry,
        clock: Callable[[], float],
        thread_clock: Callable[[], float],
        blocked_s: Callable[[], float],
    ) -> None:
        """`blocked_s` is for how long the loop has waited for disks, since the start."""
        self._registry = registry
        self._clock = clock
        self._thread_clock = thread_clock
        self._blocked_s = blocked_s
        self._lag = registry.histogram(catalogue.LOOP_LAG)
        self._due_s: float | None = None
        self._samples: deque[tuple[float, float]] = deque()
        """When each was taken, and how long the loop had been busy by then."""
        self._rotated_s = 0.0
        self._rotation: Iterator[Metric] = iter(())
        registry.gauge(catalogue.LOOP_BUSY, lambda: self.busy(RECENTLY_S))
        for metric in (catalogue.PROCESSOR_IDLE, catalogue.HANDLER_IDLE):
            registry.gauge(metric, self._idle)
        registry.gauge(catalogue.ONE_PROCESSOR_IDLE, self._idle, NETWORK_PROCESSOR)

    def tick(self) -> None:
        """Record how late this is; now and then take a sample, and begin a window of quantiles."""
        now = self._clock()
        if self._due_s is None:
            self._rotated_s = now
        else:
            self._lag.record(int((now - self._due_s) * 1e6))
        self._due_s = now + LOOP_TICK_MS / 1000
        if not self._samples or now - self._samples[-1][0] >= SAMPLE_S:
            self._sample(now)
        if now - self._rotated_s >= WINDOW_S:
            self._rotated_s = now
            self._rotation = self._registry.rotation()
        next(self._rotation, None)  # one metric a tick: all together would take milliseconds

    def busy(self, within_s: float) -> float:
        """Return the part of the last seconds in which the loop was busy, from 0 to 1."""
        samples = self._samples
        if len(samples) < 2:
            return 0.0
        last_s, last_busy_s = samples[-1]
        first_s, first_busy_s = samples[0]
        for at_s, busy_s in samples:
            if last_s - at_s <= within_s:
                break
            first_s, first_busy_s = at_s, busy_s
        if first_s == last_s:
            return 0.0
        return min((last_busy_s - first_busy_s) / (last_s - first_s), 1.0)

    def _sample(self, now: float) -> None:
        samples = self._samples
        samples.append((now, self._thread_clock() + self._blocked_s()))
        while len(samples) > 2 and now - samples[1][0] >= MINUTE_S:
            samples.popleft()

    def _idle(self) -> float:
        return 1.0 - self.busy(MINUTE_S)
