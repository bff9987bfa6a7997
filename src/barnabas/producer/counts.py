"""What a producer counts, per batch; `metrics` shows it under the names of Kafka's clients."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.kernels import HEADER_SIZE

if TYPE_CHECKING:
    from barnabas.producer.batch import ProducerBatch


class TopicCounts:
    """The outcome of a topic's records."""

    __slots__ = ("bytes", "errors", "packed_bytes", "raw_bytes", "records", "retries")

    def __init__(self) -> None:
        self.records = self.bytes = self.errors = self.retries = 0
        self.packed_bytes = self.raw_bytes = 0
        """Bytes of its batches as they were sent, and before they were compressed."""


class Counts:
    """Totals since the start; times are in milliseconds."""

    def __init__(self) -> None:
        self.topics: dict[str, TopicCounts] = {}
        self.batches = 0
        self.batch_bytes = 0
        self.raw_bytes = 0
        self.batch_bytes_max = 0
        self.batch_records = 0
        self.record_bytes_max = 0.0
        self.requests = 0
        self.splits = 0
        self.queue_ms = 0.0
        self.queue_ms_max = 0.0
        self.responses = 0
        self.throttled_ms = 0
        self.throttled_ms_max = 0
        self.flush_ms = 0.0

    def topic(self, name: str) -> TopicCounts:
        """Return the counts of a topic."""
        found = self.topics.get(name)
        if found is None:
            found = self.topics[name] = TopicCounts()
        return found

    def packed(self, batch: ProducerBatch, size: int, now_ms: float) -> None:
        """Count a batch that is sent for the first time."""
        waited_ms = now_ms - batch.created_ms
        self.batches += 1
        self.batch_bytes += size
        records = batch.records
        raw_bytes = records.size
        self.raw_bytes += raw_bytes
        topic = self.topic(batch.partition.topic)
        topic.packed_bytes += size
        topic.raw_bytes += raw_bytes
        if records.count:
            self.batch_records += records.count
            record_bytes = (raw_bytes - HEADER_SIZE) / records.count
            if record_bytes > self.record_bytes_max:
                self.record_bytes_max = record_bytes
        self.queue_ms += waited_ms
        if waited_ms > self.queue_ms_max:
            self.queue_ms_max = waited_ms
        if size > self.batch_bytes_max:
            self.batch_bytes_max = size

    def acknowledged(self, batch: ProducerBatch) -> None:
        """Count a batch that was written."""
        topic = self.topic(batch.partition.topic)
        topic.records += batch.records.count
        topic.bytes += batch.records.size

    def failed(self, batch: ProducerBatch) -> None:
        """Count a batch that failed."""
        self.topic(batch.partition.topic).errors += batch.records.count

    def retried(self, batch: ProducerBatch) -> None:
        """Count a batch that is retried."""
        self.topic(batch.partition.topic).retries += batch.records.count

    def answered(self, throttle_ms: int) -> None:
        """Count a response, which may ask the producer to wait."""
        self.responses += 1
        if throttle_ms > 0:
            self.throttled_ms += throttle_ms
            if throttle_ms > self.throttled_ms_max:
                self.throttled_ms_max = throttle_ms

    def metrics(
        self, elapsed_s: float, memory: int, in_use: int
    ) -> Mapping[str, Mapping[str, float]]:
        """Return groups of metrics: the producer's, then those of each topic."""
        seconds = max(elapsed_s, 1e-9)
        records = sum(topic.records for topic in self.topics.values())
        errors = sum(topic.errors for topic in self.topics.values())
        retries = sum(topic.retries for topic in self.topics.values())
        batches = max(self.batches, 1)
        size = sum(topic.bytes for topic in self.topics.values())
        record_bytes = self.raw_bytes - self.batches * HEADER_SIZE
        groups: dict[str, Mapping[str, float]] = {
            "producer-metrics": {
                "record-send-total": records,
                "record-send-rate": records / seconds,
                "byte-total": size,
                "byte-rate": size / seconds,
                "record-error-total": errors,
                "record-error-rate": errors / seconds,
                "record-retry-total": retries,
                "record-retry-rate": retries / seconds,
                "record-size-avg": (
                    record_bytes / self.batch_records if self.batch_records else 0.0
                ),
                # Records are not looked at one by one: the largest average of a batch.
                "record-size-max": self.record_bytes_max,
                "batch-size-avg": self.batch_bytes / batches,
                "batch-size-max": self.batch_bytes_max,
                "batch-split-total": self.splits,
                "batch-split-rate": self.splits / seconds,
                "compression-rate-avg": _ratio(self.batch_bytes, self.raw_bytes),
                "records-per-request-avg": records / self.requests if self.requests else 0.0,
                "record-queue-time-avg": self.queue_ms / batches,
                "record-queue-time-max": self.queue_ms_max,
                "produce-throttle-time-avg": (
                    self.throttled_ms / self.responses if self.responses else 0.0
                ),
                "produce-throttle-time-max": self.throttled_ms_max,
                "flush-time-ns-total": int(self.flush_ms * 1e6),
                "buffer-total-bytes": memory,
                "buffer-available-bytes": memory - in_use,
            }
        }
        for name, topic in self.topics.items():
            groups[f"producer-topic-metrics.{name}"] = {
                "record-send-total": topic.records,
                "record-send-rate": topic.records / seconds,
                "byte-total": topic.bytes,
                "byte-rate": topic.bytes / seconds,
                "record-error-total": topic.errors,
                "record-error-rate": topic.errors / seconds,
                "record-retry-total": topic.retries,
                "record-retry-rate": topic.retries / seconds,
                "compression-rate": _ratio(topic.packed_bytes, topic.raw_bytes),
            }
        return groups


def _ratio(packed_bytes: int, raw_bytes: int) -> float:
    return packed_bytes / raw_bytes if raw_bytes else 1.0
