"""The queue of one partition: closed batches in order, and the one being filled."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from barnabas.model.ids import TopicPartition
from barnabas.producer.accumulator import PendingBatch, PendingPartition
from barnabas.producer.batch import ProducerBatch
from barnabas.producer.identity import Sequences


class PartitionQueue:
    """The batches of one partition, as the sender sees them."""

    __slots__ = (
        "batches",
        "count",
        "in_flight",
        "open_batch",
        "open_since_ms",
        "sequences",
        "slot",
    )

    def __init__(self, slot: PendingPartition) -> None:
        self.slot = slot
        self.batches: deque[ProducerBatch] = deque()
        self.count = 0
        self.in_flight: list[ProducerBatch] = []
        self.sequences = Sequences()
        self.open_batch: PendingBatch | None = None
        self.open_since_ms = 0.0

    @property
    def partition(self) -> TopicPartition:
        """The partition that this is for."""
        return self.slot.partition

    @property
    def idle(self) -> bool:
        """Return whether nothing is queued or in flight."""
        return not self.batches and not self.in_flight and self.slot.open is None

    @property
    def waits(self) -> bool:
        """Return whether something was not sent yet."""
        return bool(self.batches) or self.slot.open is not None

    def notice(self, closed: Iterable[PendingBatch], now_ms: float) -> None:
        """Queue batches that were closed, and record when an open one was first seen."""
        for records in closed:
            since_ms = self.open_since_ms if records is self.open_batch else now_ms
            self.batches.append(ProducerBatch(records, since_ms, (self.count,)))
            self.count += 1
        if self.slot.open is not self.open_batch:
            self.open_batch = self.slot.open
            self.open_since_ms = now_ms

    def put_back(self, batch: ProducerBatch) -> None:
        """Requeue a batch, before all that came after it."""
        index = 0
        for waiting in self.batches:
            if waiting.order > batch.order:
                break
            index += 1
        self.batches.insert(index, batch)
