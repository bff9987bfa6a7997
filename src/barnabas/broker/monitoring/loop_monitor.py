"""How busy the event loop is, and how late.

No loop tells how long it has slept. But a sleeping thread uses no CPU: what the thread of the loop
has used is the time in which it was busy, except that a disk may make it wait as well; appends that
took long are taken for such waits. How late a timer is says for how long a request may have waited
unread in its socket, which no phase of the request includes. A loop that stood still for 100 ms is
noted in the diary, with the step that took most of that time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.broker.housekeeping import LOOP_TICK_MS
from barnabas.broker.loop import LongSteps, Step
from barnabas.diary.catalogue import STALL_CAUSES
from barnabas.metrics.catalogue import loop as catalogue
from barnabas.metrics.catalogue.network import NETWORK_PROCESSOR
from barnabas.metrics.metric import Metric
from barnabas.metrics.registry import WINDOW_S, Registry

SAMPLE_S = 1.0
MINUTE_S = 60.0
RECENTLY_S = 10.0
STALL_S = 0.1
"""From here on the loop stood still."""
MOST = 0.5
"""The part of a stall that a step must have taken to be named as its cause."""


class LoopMonitor:
    """Measures one loop; `tick` is called by a timer on it, also before `start`."""

    def __init__(
        self,
        registry: Registry,
        clock: Callable[[], float],
        thread_clock: Callable[[], float],
        blocked_s: Callable[[], float],
        long_steps: LongSteps,
        note_stall: Callable[[str, dict[str, Any]], None],
    ) -> None:
        """`blocked_s` is for how long the loop has waited for disks, since the start.

        `note_stall` is called with the cause and the numbers of a stall.
        """
        self._registry = registry
        self._clock = clock
        self._thread_clock = thread_clock
        self._blocked_s = blocked_s
        self._long_steps = long_steps
        self._note_stall = note_stall
        self._used_s = 0.0
        # All causes: a rate needs the 0 before the first.
        self._stalls = {
            cause: registry.counter(catalogue.LOOP_STALLS, cause) for cause in STALL_CAUSES
        }
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

    def start(self) -> None:
        """Watch the garbage collector."""
        pauses = self._registry.histogram(catalogue.GC_PAUSE)
        self._long_steps.watch_collector(lambda seconds: pauses.record(int(seconds * 1e6)))

    def stop(self) -> None:
        """Watch it no more."""
        self._long_steps.unwatch_collector()

    def tick(self) -> None:
        """Record how late this is; now and then take a sample, and begin a window of quantiles."""
        now = self._clock()
        used_s = self._thread_clock()
        step = self._long_steps.take()
        if self._due_s is None:
            self._rotated_s = now
        else:
            late_s = now - self._due_s
            self._lag.record(int(late_s * 1e6))
            if late_s >= STALL_S:
                self._stalled(late_s, used_s - self._used_s, step)
        self._used_s = used_s
        self._due_s = now + LOOP_TICK_MS / 1000
        if not self._samples or now - self._samples[-1][0] >= SAMPLE_S:
            self._sample(now)
        if now - self._rotated_s >= WINDOW_S:
            self._rotated_s = now
            self._rotation = self._registry.rotation()
        next(self._rotation, None)  # one metric a tick: all together would take milliseconds

    def _stalled(self, late_s: float, used_s: float, step: Step | None) -> None:
        """Note for how long the loop stood still, and what ran."""
        data: dict[str, Any] = {
            "ms": round(late_s * 1000),
            "used_ms": round(min(used_s, late_s) * 1000),
        }
        if step is not None and step.seconds >= late_s * MOST:
            cause = step.kind
            data |= {"what": step.name, "step_ms": round(step.seconds * 1000)}
        else:
            cause = "busy" if used_s >= late_s * MOST else "waiting"
        self._stalls[cause].add()
        self._note_stall(cause, data)

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
