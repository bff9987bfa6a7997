"""Progress of a mirror: records, records per second and lag, at a given time."""

from __future__ import annotations

from collections import deque
from dataclasses import asdict, dataclass
from typing import Any

WINDOW_MS = 5000.0


@dataclass(frozen=True, slots=True)
class Report:
    """The progress at one time; `lag` is None while it is unknown."""

    topics: int
    partitions: int
    records: int
    skipped: int
    transactions: int
    restarts: int
    lag: int | None
    records_per_second: float
    elapsed_ms: float

    def document(self) -> dict[str, Any]:
        """Return what `--json` prints."""
        return asdict(self) | {
            "records_per_second": round(self.records_per_second, 1),
            "elapsed_ms": round(self.elapsed_ms),
        }


class MirrorProgress:
    """Counts what was committed; rates are of the last few seconds."""

    def __init__(self, now_ms: float) -> None:
        self.topics = 0
        self.partitions = 0
        self.records = 0
        self.skipped = 0
        self.transactions = 0
        self.restarts = 0
        self.lag: int | None = None
        self._started_ms = now_ms
        self._samples = deque([(now_ms, 0)])

    def committed(
        self, records: int, skipped: int, now_ms: float, *, transactions: int = 1
    ) -> None:
        """Count a transaction, or several that are reported together."""
        self.records += records
        self.skipped += skipped
        self.transactions += transactions
        self._samples.append((now_ms, self.records))

    def report(self, now_ms: float, *, total: bool = False) -> Report:
        """Return the progress at a time; with `total`, the rate is of the whole run."""
        while len(self._samples) > 1 and self._samples[1][0] <= now_ms - WINDOW_MS:
            self._samples.popleft()
        since_ms, before = (self._started_ms, 0) if total else self._samples[0]
        passed_ms = max(now_ms - since_ms, 1.0)
        return Report(
            self.topics,
            self.partitions,
            self.records,
            self.skipped,
            self.transactions,
            self.restarts,
            self.lag,
            (self.records - before) * 1000 / passed_ms,
            now_ms - self._started_ms,
        )
