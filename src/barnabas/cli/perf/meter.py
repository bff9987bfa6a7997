"""Counts what a client does, while it does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from barnabas.cli.perf.histogram import LatencyHistogram

MEGABYTE = 1 << 20


class Counter(Protocol):
    """Is notified of what becomes of the records that are sent."""

    def begin(self) -> None:
        """Start the clock: the client is connected."""

    def end(self) -> None:
        """Stop the clock: nothing is outstanding."""

    def succeeded(self, started_s: float, size: int, _: object = None) -> None:
        """Count a record whose latency started at a time and ends now."""

    def failed(self, failure: object) -> None:
        """Count a record that was not written."""


class Meter:
    """Records, bytes, failures and latencies; other threads may read it meanwhile.

    `wait_for_others` returns when all clients of a measurement are connected.
    """

    def __init__(self, wait_for_others: Callable[[], object] = lambda: None) -> None:
        self.wait_for_others = wait_for_others
        self.records = 0
        self.bytes = 0
        self.failures = 0
        self.first_failure: str | None = None
        self.latencies = LatencyHistogram()
        self.cpu_s = 0.0
        self._cpu_s = 0.0
        self._began_s: float | None = None
        self._last_s: float | None = None
        self._ended = False

    def begin(self) -> None:
        """Start the clock: the client is connected, and so are the others."""
        self.wait_for_others()
        self._began_s = self._last_s = time.perf_counter()
        self._cpu_s = time.process_time()

    def end(self) -> None:
        """Stop the clock: nothing is outstanding."""
        self._last_s = time.perf_counter()
        self.cpu_s = time.process_time() - self._cpu_s
        self._ended = True

    def stop_at_last(self) -> None:
        """Stop the clock when the last record arrived: what came after was waiting for more."""
        last_s = self._last_s
        self.end()
        self._last_s = last_s

    def succeeded(self, started_s: float, size: int, _: object = None) -> None:
        """Count a record whose latency started at a time and ends now."""
        now_s = time.perf_counter()
        self.records += 1
        self.bytes += size
        self.latencies.add(int((now_s - started_s) * 1e6))

    def failed(self, failure: object) -> None:
        """Count a record that was not written; the first reason is kept."""
        self.failures += 1
        if self.first_failure is None:
            self.first_failure = str(failure) or type(failure).__name__

    def read(self, records: int, size: int) -> None:
        """Count records that have arrived."""
        self.records += records
        self.bytes += size
        self._last_s = time.perf_counter()

    @property
    def seconds(self) -> float:
        """How long it has worked: until now, or its end."""
        if self._began_s is None or self._last_s is None:
            return 0.0
        return (self._last_s if self._ended else time.perf_counter()) - self._began_s

    def document(self) -> dict[str, Any]:
        """Return the figures as JSON can have them."""
        return {
            "records": self.records,
            "bytes": self.bytes,
            "failures": self.failures,
            "first_failure": self.first_failure,
            "seconds": self.seconds,
            "cpu_s": self.cpu_s,
            "latencies": self.latencies.document(),
        }


class Figures:
    """What one client, or several of a kind, have done."""

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        self.failures = 0
        self.first_failure: str | None = None
        self.seconds = 0.0
        self.cpu_s = 0.0
        self.latencies = LatencyHistogram()

    def add(self, document: Mapping[str, Any]) -> None:
        """Add the figures of another client, which worked at the same time."""
        self.records += document["records"]
        self.bytes += document["bytes"]
        self.failures += document["failures"]
        self.first_failure = self.first_failure or document["first_failure"]
        self.seconds = max(self.seconds, document["seconds"])
        self.cpu_s += document["cpu_s"]
        self.latencies.merge(LatencyHistogram.from_document(document["latencies"]))

    @property
    def records_per_s(self) -> float:
        """Records per second."""
        return self.records / self.seconds if self.seconds else 0.0

    @property
    def mb_per_s(self) -> float:
        """Megabytes (2^20 bytes) of keys and values per second."""
        return self.bytes / self.seconds / MEGABYTE if self.seconds else 0.0
