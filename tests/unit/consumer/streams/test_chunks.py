"""Chunks between fetchers and a stream: bounded, in order, and worthless once released."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client.errors import ConsumerTimeout
from barnabas.consumer.streams.chunks import ChunkQueue, PartitionFeed
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch


def batch(base_offset: int, *values: bytes) -> bytes:
    rows = [(1, None, value, ()) for value in values]
    data = bytearray(build_batch(rows))
    data[:8] = base_offset.to_bytes(8, "big")
    return bytes(data)


def test_records_before_the_position_are_not_given_out_again() -> None:
    """A batch comes whole; what was consumed of it stays consumed."""

    async def story() -> None:
        feed = PartitionFeed(TopicPartition("t", 0), ChunkQueue(2, lambda: None), 6)
        feed.receive(batch(5, b"five", b"six", b"seven"))
        assert (feed.fetched, feed.consumed) == (8, 6)
        chunk = await feed.queue.take()
        records = chunk.unread()
        assert next(records).offset == 6
        assert feed.consumed == 7
        assert [record.offset for record in records] == [7]
        assert feed.consumed == 8
        feed.receive(b"")
        assert feed.fetched == 8

    asyncio.run(story())


def test_a_released_partition_gives_nothing_more() -> None:
    """After a rebalance the rest of a chunk belongs to the next owner."""

    async def story() -> None:
        feed = PartitionFeed(TopicPartition("t", 0), ChunkQueue(2, lambda: None), 0)
        feed.receive(batch(0, b"a", b"b"))
        records = (await feed.queue.take()).unread()
        next(records)
        feed.released = True
        assert list(records) == []
        assert feed.consumed == 1

    asyncio.run(story())


def test_a_queue_is_full_until_a_chunk_is_taken() -> None:
    """The bound counts chunks; taking one tells the fetchers."""

    async def story() -> None:
        room = []
        queue = ChunkQueue(1, lambda: room.append(True))
        feed = PartitionFeed(TopicPartition("t", 0), queue, 0)
        assert not queue.is_full
        feed.receive(batch(0, b"a"))
        assert queue.is_full
        feed.receive(batch(1, b"b"))
        first = await queue.take()
        assert [r.value for r in first.unread()] == [b"a"]
        assert room == [True]
        queue.clear()
        assert not queue.is_full

    asyncio.run(story())


def test_a_reader_waits_times_out_and_is_woken() -> None:
    """Each wait has its own end: a chunk, the time, or the end of the stream."""

    async def story() -> None:
        queue = ChunkQueue(1, lambda: None)
        with pytest.raises(ConsumerTimeout, match="0 ms"):
            await queue.take(0)
        waiting = asyncio.ensure_future(queue.take())
        await asyncio.sleep(0)
        PartitionFeed(TopicPartition("t", 0), queue, 0).receive(batch(0, b"a"))
        assert (await waiting).feed.fetched == 1
        ending = asyncio.ensure_future(queue.take())
        await asyncio.sleep(0)
        queue.close()
        assert await ending is None
        assert await queue.take() is None

    asyncio.run(story())
