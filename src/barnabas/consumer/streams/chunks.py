"""Chunks of fetched messages on their way from fetchers to one stream.

A chunk is the result of one fetch for one partition, still as bytes; the stream decodes it. The
queue is bounded in chunks: a partition whose stream's queue is full is not fetched. All of this
belongs to one event loop; a stream that is read by another thread gets its chunks through it.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from barnabas.client.errors import ConsumerTimeout
from barnabas.errors import RecordTooLargeError
from barnabas.kernels import Buffer
from barnabas.model.ids import TopicPartition
from barnabas.records.batch import Record, iterate, read_headers
from barnabas.records.bounds import READING, Bounds
from barnabas.records.compression import TooLargeError
from barnabas.records.conversion import to_batches


class PartitionFeed:
    """One partition that a stream reads: how far it was fetched, and how far consumed.

    `consumed` is advanced by the reader, on whatever thread it runs, and read by commits.
    A feed that was released yields nothing more: another consumer may own the partition.
    """

    __slots__ = ("consumed", "fetched", "partition", "queue", "released")

    def __init__(self, partition: TopicPartition, queue: ChunkQueue, offset: int) -> None:
        self.partition = partition
        self.queue = queue
        self.fetched = offset
        """Where the next fetch begins; -1 if that is still unknown."""
        self.consumed = offset
        self.released = False

    def begin_at(self, offset: int) -> None:
        """Start, or start over, at an offset."""
        self.fetched = self.consumed = offset

    def consume(self, record: Record) -> bool:
        """Advance past a record; return False if this stream no longer owns the partition."""
        if self.released or record.offset < self.consumed:
            return False
        self.consumed = record.offset + 1
        return True

    def receive(self, records: Buffer) -> None:
        """Hand a fetch's records to the stream."""
        records = to_batches(records, self.queue.bounds.record)
        headers = read_headers(records)
        if headers:
            self.queue.put(Chunk(self, records))
            self.fetched = max(self.fetched, headers[-1].next_offset)


class Chunk(NamedTuple):
    """Records of one partition, from one fetch."""

    feed: PartitionFeed
    data: Buffer

    def unread(self) -> Iterator[Record]:
        """Yield the records that were not consumed yet, which consumes them."""
        return filter(self.feed.consume, self.ahead())

    def ahead(self) -> Iterator[Record]:
        """Yield the records that were not consumed yet, until the partition is released."""
        feed = self.feed
        try:
            for record in iterate(self.data, bounds=feed.queue.bounds):
                if feed.released:
                    return
                # A batch is fetched whole, also when its first records were consumed before.
                if record.offset >= feed.consumed:
                    yield record
        except TooLargeError as failure:
            raise RecordTooLargeError(
                f"{feed.partition}, offset {feed.consumed}: {failure}"
            ) from failure


class ChunkQueue:
    """The chunks that wait for one stream."""

    def __init__(
        self, chunks_max: int, room: Callable[[], object], bounds: Bounds = READING
    ) -> None:
        """Hold up to `chunks_max`; `room` is called when there is room again.

        `bounds` are the limits for compressed records in these chunks.
        """
        self.bounds = bounds
        self._chunks: deque[Chunk] = deque()
        self._chunks_max = chunks_max
        self._room = room
        self._came = asyncio.Event()
        self.closed = False

    @property
    def is_full(self) -> bool:
        """Return whether partitions of this stream should not be fetched now."""
        return len(self._chunks) >= self._chunks_max

    def put(self, chunk: Chunk) -> None:
        """Add a chunk; one that was in flight when the queue filled up is accepted, too."""
        self._chunks.append(chunk)
        self._came.set()

    async def take(self, timeout_ms: int = -1) -> Chunk | None:
        """Return the next chunk, or None after the end; raise ConsumerTimeout after the time."""
        try:
            async with asyncio.timeout(timeout_ms / 1000 if timeout_ms >= 0 else None):
                while not self._chunks and not self.closed:
                    self._came.clear()
                    await self._came.wait()
        except TimeoutError:
            raise ConsumerTimeout(
                f"no message within {timeout_ms} ms (consumer.timeout.ms)"
            ) from None
        if self.closed:
            return None
        chunk = self._chunks.popleft()
        self._room()
        return chunk

    def clear(self) -> None:
        """Drop the waiting chunks."""
        self._chunks.clear()

    def close(self) -> None:
        """End the stream."""
        self.closed = True
        self._chunks.clear()
        self._came.set()
