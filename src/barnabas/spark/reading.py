"""What a task does: read ranges of offsets, and nothing beyond them, as Arrow batches.

All partitions of a task are fetched together. A range is done when the consumer's position has
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
from barnabas.spark.errors import DataLossError, Loss, StalledError
from barnabas.spark.plan import Range

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_MAX = 65_536
"""Of one Arrow batch: more gain nothing, far fewer cost."""

_LOOK_MS = 50
"""How long a poll waits: a range may end in offsets that no poll tells of."""

_FETCHING = {"fetch.max.wait.ms": "25", "max.partition.fetch.bytes": str(4 << 20)}
"""Unless options say else: what a task reads is there, much of it, and nothing is worth a wait."""

Lend = Callable[[Mapping[str, str]], AbstractContextManager[KafkaConsumer]]
"""Gives out a consumer with some options."""


def open_consumer(client: Mapping[str, str]) -> KafkaConsumer:
    """Return a new consumer."""
    return KafkaConsumer(**client)


def read_ranges(
    client: Mapping[str, str],
    ranges: Sequence[Range],
    *,
    fails_on_loss: bool,
    patience_ms: float,
    lend: Lend = open_consumer,
    monotonic: Callable[[], float] = time.monotonic,
) -> Iterator[pa.RecordBatch]:
    """Yield the records of ranges as polled batches."""
    if not ranges:
        return
    with lend({**_FETCHING, **client}) as consumer:
        for wave in waves(ranges):
            reading = Reading(consumer, wave, fails_on_loss, patience_ms, monotonic)
            yield from reading


def waves(ranges: Sequence[Range]) -> list[list[Range]]:
    """Return ranges so that each list has at most one of a partition."""
    found: list[list[Range]] = []
    counts: dict[TopicPartition, int] = {}
    for each in ranges:
        number = counts.get(each.place, 0)
        counts[each.place] = number + 1
        if number == len(found):
            found.append([])
        found[number].append(each)
    return found


class Reading:
    """Ranges of different partitions on their way from one consumer."""

    def __init__(
        self,
        consumer: KafkaConsumer,
        ranges: Sequence[Range],
        fails_on_loss: bool,
        patience_ms: float,
        monotonic: Callable[[], float],
    ) -> None:
        self._consumer = consumer
        self._left = {each.place: each.until for each in ranges}
        self._starts = {each.place: each.start for each in ranges}
        self._fails_on_loss = fails_on_loss
        self._patience_ms = patience_ms
        self._monotonic = monotonic

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        consumer = self._consumer
        consumer.assign(list(self._left))
        for place, start in self._starts.items():
            consumer.seek(place, start)
        consumer.resume(*self._starts)  # they may have been paused at the end of an earlier range
        before = dict(self._starts)
        moved_s = self._monotonic()
        while self._left:
            batch = None
            try:
                batch = consumer.poll_arrow(timeout_ms=_LOOK_MS, max_records=ROWS_MAX)
            except OffsetOutOfRangeError:
                self._skip_what_is_gone()
            positions = {place: consumer.position(place) for place in self._left}
            done = {
                place: self._left.pop(place)
                for place, position in positions.items()
                if position >= self._left[place]
            }
            if batch is not None and batch.num_rows:
                batch = without_tails(batch, done)
                if batch.num_rows:
                    yield batch
            if done and self._left:
                consumer.pause(*done)
            now_s = self._monotonic()
            if positions != before:
                before, moved_s = positions, now_s
            elif (now_s - moved_s) * 1000 > self._patience_ms:
                where = ", ".join(f"{place} at {positions[place]}" for place in self._left)
                raise StalledError(
                    f"no record came for kafkaConsumer.pollTimeoutMs={self._patience_ms:g}: {where}"
                )

    def _skip_what_is_gone(self) -> None:
        """Go on where logs begin now, or raise and say what is lost."""
        consumer = self._consumer
        begins = consumer.beginning_offsets(list(self._left))
        ends = consumer.end_offsets(list(self._left))
        losses = []
        for place, until in list(self._left.items()):
            position = consumer.position(place)
            if position < begins[place]:
                lost = min(until, begins[place])
                why = f"the log begins at {begins[place]}"
                losses.append(Loss(place, position, lost, why))
            elif position > ends[place]:
                lost = until
                losses.append(Loss(place, position, until, f"the log ends at {ends[place]}"))
            else:
                continue
            if lost >= until:
                del self._left[place]
                consumer.pause(place)
            else:
                consumer.seek(place, lost)
        if losses and self._fails_on_loss:
            raise DataLossError(losses)


def without_tails(batch: pa.RecordBatch, ends: Mapping[TopicPartition, int]) -> pa.RecordBatch:
    """Return a batch without the rows at and after the ends of some partitions."""
    import pyarrow.compute as pc

    offsets = batch.column("offset")
    keep = None
    for place, until in ends.items():
        beyond = pc.greater_equal(offsets, until)
        if not pc.any(beyond).as_py():
            continue
        here = pc.and_(
            pc.equal(batch.column("partition"), place.partition),
            pc.equal(batch.column("topic").dictionary_decode(), place.topic),
        )
        wanted = pc.invert(pc.and_(here, beyond))
        keep = wanted if keep is None else pc.and_(keep, wanted)
    return batch if keep is None else batch.filter(keep)
