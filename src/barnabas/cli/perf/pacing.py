"""When records are due.

With a throughput, record n is due n intervals after the first, whatever became of those before it:
a client that falls behind sends at once until it has caught up (open loop). Its latencies count
from when records were due, so that a stall shows in all records that it has delayed, not only in
the one that was sent meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

from barnabas.cli.perf.plan import Plan

WAIT_S = 0.2
"""How long a client waits at most before it looks whether it is to stop."""


class Pace:
    """The times at which the records of a plan are due, in seconds of `time.perf_counter`."""

    def __init__(self, plan: Plan, began_s: float) -> None:
        self._records = plan.records
        self._end_s = None if plan.duration_s is None else began_s + plan.duration_s
        self._interval_s = 1 / plan.throughput if plan.throughput else None
        self._from_intended = plan.from_intended
        self._began_s = began_s
        self._index = 0

    def next_due(self, now_s: float) -> float | None:
        """Return when the next record is due, perhaps in the past; None if there is none."""
        if self._records is not None and self._index >= self._records:
            return None
        due_s = now_s
        if self._interval_s is not None:
            due_s = self._began_s + self._index * self._interval_s
        if self._end_s is not None and max(due_s, now_s) >= self._end_s:
            return None
        self._index += 1
        return due_s

    def counted_from(self, due_s: float, now_s: float) -> float:
        """Return when the latency of a record starts that is sent now."""
        return due_s if self._from_intended else now_s


def due_times(
    plan: Plan, stop: threading.Event, wait: Callable[[float], object]
) -> Iterator[float]:
    """Yield when each record's latency starts, once it is due; end when `stop` is set.

    `wait` passes so many seconds, or fewer.
    """
    clock = time.perf_counter
    pace = Pace(plan, clock())
    while not stop.is_set():
        now_s = clock()
        due_s = pace.next_due(now_s)
        if due_s is None:
            return
        while due_s > now_s:
            wait(min(due_s - now_s, WAIT_S))
            if stop.is_set():
                return
            now_s = clock()
        yield pace.counted_from(due_s, now_s)
