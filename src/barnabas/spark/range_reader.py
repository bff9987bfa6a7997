"""Reads ranges of offsets, and nothing beyond them, as Arrow batches; in tasks of a query.

All partitions of a task are fetched together. A range is complete when the consumer's position has
passed its end, not when its last record was seen: compaction, aborted transactions and control
records leave offsets without a record.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from barnabas.blocking.consumer import KafkaConsumer
from barnabas.errors import OffsetOutOfRangeError
from barnabas.model.ids import TopicPartition
from barnabas.spark.errors import DataLossError, LostOffsets, StalledError
from barnabas.spark.offset_ranges import OffsetRange

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX = 65_536
"""The maximum number of rows of one Arrow batch: more gain nothing, far fewer cost time."""

_POLL_MS = 50
"""How long a poll waits: a range may end in offsets without records, which no poll returns."""

_CONSUMER_DEFAULTS = {"fetch.max.wait.ms": "25", "max.partition.fetch.bytes": str(4 << 20)}
"""A task reads many records that exist, so a fetch need not wait."""

Acquire = Callable[[Mapping[str, str]], AbstractContextManager[KafkaConsumer]]
"""Lends a consumer with some options."""


def open_consumer(client: Mapping[str, str]) -> KafkaConsumer:
    """Return a new consumer."""
    return KafkaConsumer(**client)


def read_ranges(
    client: Mapping[str, str],
    ranges: Sequence[OffsetRange],
    *,
    fail_on_data_loss: bool,
    poll_timeout_ms: float,
    acquire: Acquire = open_consumer,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of ranges, as polled."""
    if not ranges:
        return
    with acquire({**_CONSUMER_DEFAULTS, **client}) as consumer:
        for each in one_per_partition(ranges):
            yield from RangeReader(consumer, each, fail_on_data_loss, poll_timeout_ms, monotonic)


def one_per_partition(ranges: Sequence[OffsetRange]) -> list[list[OffsetRange]]:
    """Return the ranges as lists that each have at most one range of a partition."""
    found: list[list[OffsetRange]] = []
    counts: dict[TopicPartition, int] = {}
    for each in ranges:
        number = counts.get(each.topic_partition, 0)
        counts[each.topic_partition] = number + 1
        if number == len(found):
            found.append([])
        found[number].append(each)
    return found


class RangeReader:
    """Reads ranges of different partitions from one consumer."""

    def __init__(
        self,
        consumer: KafkaConsumer,
        ranges: Sequence[OffsetRange],
        fail_on_data_loss: bool,
        poll_timeout_ms: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._consumer = consumer
        self._left = {each.topic_partition: each.until for each in ranges}
        self._starts = {each.topic_partition: each.start for each in ranges}
        self._fail_on_data_loss = fail_on_data_loss
        self._poll_timeout_ms = poll_timeout_ms
        self._monotonic = monotonic

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        consumer = self._consumer
        consumer.assign(list(self._left))
        for partition, start in self._starts.items():
            consumer.seek(partition, start)
        consumer.resume(*self._starts)  # they may be paused since the end of an earlier range
        before = dict(self._starts)
        moved_s = self._monotonic()
        while self._left:
            batch = None
            try:
                batch = consumer.poll_arrow(timeout_ms=_POLL_MS, max_records=ROWS_MAX)
            except OffsetOutOfRangeError:
                self._skip_lost_offsets()
            positions = {partition: consumer.position(partition) for partition in self._left}
            done = {
                partition: self._left.pop(partition)
                for partition, position in positions.items()
                if position >= self._left[partition]
            }
            if batch is not None and batch.num_rows:
                batch = drop_rows_beyond(batch, done)
                if batch.num_rows:
                    yield batch
            if done and self._left:
                consumer.pause(*done)
            now_s = self._monotonic()
            if positions != before:
                before, moved_s = positions, now_s
            elif (now_s - moved_s) * 1000 > self._poll_timeout_ms:
                where = ", ".join(
                    f"{partition} at {positions[partition]}" for partition in self._left
                )
                raise StalledError(
                    f"no record arrived within kafkaConsumer.pollTimeoutMs="
                    f"{self._poll_timeout_ms:g}: {where}"
                )

    def _skip_lost_offsets(self) -> None:
        """Continue at the start of each log, or raise DataLossError."""
        consumer = self._consumer
        starts = consumer.beginning_offsets(list(self._left))
        ends = consumer.end_offsets(list(self._left))
        losses = []
        for partition, until in list(self._left.items()):
            position = consumer.position(partition)
            if position < starts[partition]:
                lost = min(until, starts[partition])
                why = f"the log starts at {starts[partition]}"
                losses.append(LostOffsets(partition, position, lost, why))
            elif position > ends[partition]:
                lost = until
                losses.append(
                    LostOffsets(partition, position, until, f"the log ends at {ends[partition]}")
                )
            else:
                continue
            if lost >= until:
                del self._left[partition]
                consumer.pause(partition)
            else:
                consumer.seek(partition, lost)
        if losses and self._fail_on_data_loss:
            raise DataLossError(losses)


def drop_rows_beyond(batch: pa.RecordBatch, ends: Mapping[TopicPartition, int]) -> pa.RecordBatch:
    """Return a batch without the rows at or after the end offsets of partitions."""
    import pyarrow.compute as pc

    offsets = batch.column("offset")
    keep = None
    for partition, until in ends.items():
        beyond = pc.greater_equal(offsets, until)
        if not pc.any(beyond).as_py():
            continue
        here = pc.and_(
            pc.equal(batch.column("partition"), partition.partition),
            pc.equal(batch.column("topic").dictionary_decode(), partition.topic),
        )
        wanted = pc.invert(pc.and_(here, beyond))
        keep = wanted if keep is None else pc.and_(keep, wanted)
    return batch if keep is None else batch.filter(keep)
