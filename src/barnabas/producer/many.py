"""Many records in one call: their outcome, and Arrow tables as their source."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from barnabas.model.errors import InvalidValueError
from barnabas.producer.accumulator import Accumulator, PendingBatch, Refusal, Segment
from barnabas.records.arrow import binary_column, time_values

if TYPE_CHECKING:
    import pyarrow

Append = Callable[[int, list[Segment], bool], tuple[int, Refusal | None]]
"""Takes rows from a given one on, in turn for memory or not: returns the first that was not taken,
and the refusal (None: all were)."""


@dataclass(frozen=True, slots=True)
class RecordRange:
    """Records of one call that follow each other in a partition."""

    topic: str
    partition: int
    offset: int
    count: int


class ManyFuture:
    """The outcome of the records of one call."""

    def __init__(self, segments: Sequence[Segment], wait: Callable[[PendingBatch, Any], object]):
        self._segments = segments
        self._wait = wait

    @property
    def count(self) -> int:
        """How many records there are."""
        return sum(segment.count for segment in self._segments)

    @property
    def is_done(self) -> bool:
        """Whether the outcome of all is known."""
        return all(segment.batch.done for segment in self._segments)

    @property
    def exception(self) -> BaseException | None:
        """The first failure, if there is one so far."""
        parts = (part for segment in self._segments for part, _, _ in _parts(segment))
        return next((part.exception for part in parts if part.exception is not None), None)

    def succeeded(self) -> bool:
        """Return whether all records were written."""
        return self.is_done and self.exception is None

    def failed(self) -> bool:
        """Return whether every outcome is known and some records failed."""
        return self.is_done and self.exception is not None

    def batches(self) -> list[PendingBatch]:
        """Return the batches that hold the records."""
        return list(dict.fromkeys(segment.batch for segment in self._segments))

    def ranges(self) -> list[RecordRange]:
        """Return where the records were written."""
        return [written for segment in self._segments for written in _ranges(segment)]

    def __await__(self) -> Generator[Any, None, list[RecordRange]]:
        """Wait on an event loop, whichever thread the producer works in."""
        loop = asyncio.get_running_loop()
        for batch in self.batches():
            if not batch.done:
                done = asyncio.Event()
                batch.watch(partial(loop.call_soon_threadsafe, done.set))
                yield from done.wait().__await__()
        return self.get()

    def get(self, timeout: float | None = None) -> list[RecordRange]:
        """Wait for the outcome of all; return where they are, or raise the first failure.

            for written in producer.send_many("orders", rows).get(timeout=10):
                print(written.partition, written.offset, written.count)

        KafkaTimeoutError after `timeout` seconds, however many batches there are.
        """
        deadline_s = None if timeout is None else time.monotonic() + timeout
        for batch in self.batches():
            if not batch.done:
                left_s = None if deadline_s is None else max(deadline_s - time.monotonic(), 0.0)
                self._wait(batch, left_s)
        failure = self.exception
        if failure is not None:
            raise failure
        return self.ranges()


def _ranges(segment: Segment) -> Iterator[RecordRange]:
    for batch, first, count in _parts(segment):
        offset = batch.base_offset + first if batch.base_offset >= 0 else -1
        yield RecordRange(batch.partition.topic, batch.partition.partition, offset, count)


def _parts(segment: Segment) -> Iterator[tuple[PendingBatch, int, int]]:
    """Cut a segment where its batch was split: the batches, where it begins there, its records."""
    index, left = segment.first, segment.count
    while left:
        batch, first = segment.batch.find(index)
        count = min(left, batch.count - first)
        yield batch, first, count
        index += count
        left -= count


def rows_appender(
    accumulator: Accumulator, topic: str, rows: Sequence[Any], partition: int | None
) -> Append:
    """Return what appends rows: values, or (key, value[, headers[, timestamp[, partition]]])."""
    return lambda start, segments, in_turn: accumulator.append_many(
        topic, rows, start, segments, partition, in_turn
    )


def table_appenders(
    accumulator: Accumulator,
    topic: str,
    table: pyarrow.Table | pyarrow.RecordBatch,
    partition: int | None,
) -> Iterator[Append]:
    """Yield what appends each part of a table, column by column."""
    import pyarrow as pa

    names = table.schema.names
    unknown = set(names) - {"value", "key", "headers", "partition", "timestamp"}
    if unknown or "value" not in names:
        raise InvalidValueError(
            f"a table with the columns {names}: must have value, and may have key, headers, "
            "partition and timestamp"
        )
    for part in table.to_batches() if isinstance(table, pa.Table) else [table]:
        headers = part.column("headers") if "headers" in names else None
        if headers is not None and headers.null_count < len(headers):
            yield rows_appender(accumulator, topic, _rows(part), partition)
        else:
            yield _columns_appender(accumulator, topic, part, partition)


def _columns_appender(
    accumulator: Accumulator, topic: str, part: Any, partition: int | None
) -> Append:
    import pyarrow as pa
    import pyarrow.compute as pc

    times = time_values(part, -1)
    keys = binary_column(part, "key")
    values = binary_column(part, "value")
    targets: memoryview | None = None
    if "partition" in part.schema.names:
        chosen = pc.fill_null(part.column("partition").cast(pa.int32()), -1)
        start = 4 * chosen.offset
        targets = memoryview(chosen.buffers()[1])[start : start + 4 * len(chosen)]
    return lambda start, segments, in_turn: accumulator.append_columns(
        topic, times, keys, values, targets, start, part.num_rows, segments, partition, in_turn
    )


def _rows(part: Any) -> list[tuple[Any, ...]]:
    count = part.num_rows

    def column(name: str) -> list[Any]:
        if name not in part.schema.names:
            return [None] * count
        found: list[Any] = part.column(name).to_pylist()
        return found

    def encoded(cell: Any) -> Any:
        return cell.encode("utf-8") if isinstance(cell, str) else cell

    headers = [
        [(pair["key"], pair["value"]) for pair in row] if row else None for row in column("headers")
    ]
    times = time_values(part, -1)
    stamps: list[int | None] = [None] * count
    if times is not None:
        stamps = [time if time >= 0 else None for time in times.cast("q")]
    return list(
        zip(
            map(encoded, column("key")),
            map(encoded, column("value")),
            headers,
            stamps,
            column("partition"),
            strict=True,
        )
    )
