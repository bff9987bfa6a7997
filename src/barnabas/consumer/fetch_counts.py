"""What a consumer's fetching has done so far: plain counters."""

from __future__ import annotations


class FetchCounts:
    """Fetches, their latencies and bytes."""

    __slots__ = ("bytes", "failures", "fetches", "latency_ms", "latency_ms_max", "parts")

    def __init__(self) -> None:
        self.fetches = 0
        self.failures = 0
        self.parts = 0
        self.bytes = 0
        self.latency_ms = 0.0
        self.latency_ms_max = 0.0

    def answered(self, latency_ms: float) -> None:
        """Count an answer."""
        self.fetches += 1
        self.latency_ms += latency_ms
        self.latency_ms_max = max(self.latency_ms_max, latency_ms)

    def received(self, size: int) -> None:
        """Count what came of one partition."""
        self.parts += 1
        self.bytes += size

    def metrics(self, records: int, elapsed_s: float) -> dict[str, float]:
        """Return the counters under the names that Kafka's consumers use."""
        rate = 1 / elapsed_s if elapsed_s > 0 else 0.0
        return {
            "fetch-total": self.fetches,
            "fetch-rate": self.fetches * rate,
            "fetch-failed-total": self.failures,
            "fetch-latency-avg": self.latency_ms / self.fetches if self.fetches else 0.0,
            "fetch-latency-max": self.latency_ms_max,
            "fetch-size-avg": self.bytes / self.fetches if self.fetches else 0.0,
            "bytes-consumed-total": self.bytes,
            "bytes-consumed-rate": self.bytes * rate,
            "records-consumed-total": records,
            "records-consumed-rate": records * rate,
            "records-per-request-avg": records / self.fetches if self.fetches else 0.0,
        }
