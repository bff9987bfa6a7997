"""From a topic to files: each partition from one offset up to another, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.aio import AIOKafkaConsumer
from barnabas.archive.formats import Format
from barnabas.archive.output import Output
from barnabas.archive.parquet_file import plain_topic
from barnabas.kernels import ConsumerRecord
from barnabas.model.ids import TopicPartition

if TYPE_CHECKING:
    import pyarrow

WAIT_MS = 500.0
CHUNK_ROWS = 20_000


@dataclass(frozen=True, slots=True)
class Range:
    """Offsets of a partition: from `start` up to, but excluding, `end`."""

    start: int
    end: int


class Export:
    """One export; `records` and `offsets_left` may be read while it runs."""

    def __init__(
        self, ranges: Mapping[TopicPartition, Range], output: Output, format: Format
    ) -> None:
        self._left = {each: found for each, found in ranges.items() if found.start < found.end}
        self._positions = {each: found.start for each, found in self._left.items()}
        self._output = output
        self._by_columns = format is Format.PARQUET
        self.offsets = sum(found.end - found.start for found in self._left.values())
        self.records = 0

    @property
    def offsets_left(self) -> int:
        """Offsets that were not read yet; not each of them has a record."""
        return sum(found.end - self._positions[each] for each, found in self._left.items())

    async def run(self, options: dict[str, Any], show: Callable[[], None]) -> None:
        """Read everything; complete files have their final names then."""
        if not self._left:
            self._output.finish()
            return
        consumer = AIOKafkaConsumer(**options)
        consumer.assign(self._left)
        async with consumer:
            for partition, position in self._positions.items():
                consumer.seek(partition, position)
            while self._left:
                for partition, chunk in await self._take(consumer):
                    self._write(partition, chunk)
                await self._drop_finished(consumer)
                show()
        self._output.finish()

    async def _take(self, consumer: AIOKafkaConsumer) -> list[tuple[TopicPartition, Any]]:
        if self._by_columns:
            batch = await consumer.poll_arrow(WAIT_MS, CHUNK_ROWS)
            return list(_runs(plain_topic(batch))) if batch.num_rows else []
        found = await consumer.getmany(timeout_ms=WAIT_MS, max_records=CHUNK_ROWS)
        return list(found.items())

    def _write(self, partition: TopicPartition, chunk: Any) -> None:
        if partition not in self._left:
            return  # it was fetched before the partition was complete
        end = self._left[partition].end
        chunk = _rows_before(chunk, end) if self._by_columns else _records_before(chunk, end)
        while rows := len(chunk):
            room = self._output.room(partition)
            part = chunk if room is None else chunk[:room]
            first = part["offset"][0].as_py() if self._by_columns else part[0].offset
            self._output.write(partition, first, part, len(part))
            self.records += len(part)
            chunk = chunk[len(part) :] if len(part) < rows else []

    async def _drop_finished(self, consumer: AIOKafkaConsumer) -> None:
        for partition, found in list(self._left.items()):
            position = await consumer.position(partition)
            self._positions[partition] = min(position, found.end)
            if position >= found.end:
                consumer.pause(partition)
                self._output.finish_partition(partition)
                del self._left[partition]


def _runs(batch: pyarrow.RecordBatch) -> Iterator[tuple[TopicPartition, pyarrow.RecordBatch]]:
    """Split a batch at changes of the partition, without copying."""
    import pyarrow.compute as pc

    runs = pc.run_end_encode(batch["partition"])
    topic = batch["topic"][0].as_py()
    start = 0
    for end, partition in zip(runs.run_ends.to_pylist(), runs.values.to_pylist(), strict=True):
        yield TopicPartition(topic, partition), batch[start:end]
        start = end


def _rows_before(batch: pyarrow.RecordBatch, end: int) -> pyarrow.RecordBatch:
    import pyarrow.compute as pc

    if batch["offset"][-1].as_py() < end:
        return batch
    return batch[: pc.sum(pc.less(batch["offset"], end)).as_py() or 0]


def _records_before(records: list[ConsumerRecord], end: int) -> list[ConsumerRecord]:
    if records[-1].offset < end:
        return records
    return [record for record in records if record.offset < end]
