"""What a child process notes while a client works: time, CPU, each latency, and its memory.

CPU is that of the whole process with all threads. Memory is the most that was resident at once
since the process began (VmHWM of Linux), imports and all.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any


class Meter:
    """A span of work on a number of records."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._latencies: list[float] = []
        self._wall_s = self._cpu_s = 0.0

    def __enter__(self) -> Meter:
        self._wall_s, self._cpu_s = time.perf_counter(), time.process_time()
        return self

    def __exit__(self, *about: object) -> None:
        self._wall_s = time.perf_counter() - self._wall_s
        self._cpu_s = time.process_time() - self._cpu_s

    def took(self, began_s: float) -> None:
        """Note that a record's wait ends now."""
        self._latencies.append(time.perf_counter() - began_s)

    def result(self) -> dict[str, float]:
        """Return the figures by name."""
        found = {
            "records/s": self.count / self._wall_s,
            "CPU s per million": self._cpu_s * 1e6 / self.count,
            "peak memory MB": _peak_memory_mb(),
        }
        if self._latencies:
            cuts = statistics.quantiles(self._latencies, n=100, method="inclusive")
            found |= {"p50 µs": cuts[49] * 1e6, "p99 µs": cuts[98] * 1e6}
        return found


class Reading:
    """Counts records from the first batch of them on, which is not counted: finding it is no part
    of what is measured.
    """

    def __init__(self, count: int) -> None:
        self._left = count
        self._meter: Meter | None = None

    def add(self, count: int) -> bool:
        """Count; tell whether that was all."""
        self._left -= count
        if self._meter is None and count:
            self._meter = Meter(self._left)
            self._meter.__enter__()
        if self._left > 0:
            return False
        assert self._meter is not None
        self._meter.__exit__()
        return True

    def result(self) -> dict[str, float]:
        assert self._meter is not None
        return self._meter.result()


def run_on_uvloop(
    program: Callable[[str, str, int], Coroutine[Any, Any, dict[str, float]]],
) -> Callable[[str, str, int], dict[str, float]]:
    """Return a way that runs a coroutine on uvloop, which users of either client would take."""

    def way(bootstrap: str, topic: str, count: int) -> dict[str, float]:
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(program(bootstrap, topic, count))

    return way


def _peak_memory_mb() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    raise RuntimeError("/proc/self/status has no VmHWM")
