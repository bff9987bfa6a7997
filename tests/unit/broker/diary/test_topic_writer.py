"""Entries go to the diary's topic in batches, later if need be; nothing else waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Any

from barnabas.broker.diary import topic_writer
from barnabas.broker.diary.topic_writer import TopicWriter, diary_topic
from barnabas.config.broker import BrokerOptions
from barnabas.diary.entry import Entry
from barnabas.diary.ring import FOLD_MS, Ring
from barnabas.metadata.cluster_view import ClusterView, PartitionView, TopicView
from barnabas.metadata.topic_names import DIARY_TOPIC
from barnabas.metadata.topic_store import NewTopic
from barnabas.metrics.catalogue.diary import DROPPED
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError, StorageError
from barnabas.model.note import Note
from barnabas.records.batch import iterate
from barnabas.wire.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from barnabas.wire.schema import Message

DENIED = Note("reject.authorization", "client:a@::1", "no-rule", {"resource": "Topic:t"})
ELECTED = Note("controller.elected", "broker:7", "elected", {"epoch": 1})


def runs(test: Callable[[], Awaitable[None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


class World:
    """A cluster with or without the topic, and what was written to it."""

    def __init__(self) -> None:
        self.now_ms = 50_000
        self.cluster = ClusterView()
        self.metrics = Registry()
        self.created: list[NewTopic] = []
        self.written: list[tuple[bytes, Entry]] = []
        self.asked: list[int] = []
        self.failure: Exception | None = None
        self.ring = Ring(7)
        self.writer = TopicWriter(
            7,
            123,
            self.cluster,
            self.metrics,
            lambda: self.now_ms,
            new_topic=lambda: diary_topic(BrokerOptions.parse({})),
            create_topic=self._create,
            append=self._append,
            ask=self._ask,
        )

    async def _create(self, topic: NewTopic) -> None:
        self.created.append(topic)
        self.put(7)

    def put(self, leader: int) -> None:
        view = PartitionView(leader, 0, (leader,), (leader,))
        self.cluster.put_topic(TopicView(DIARY_TOPIC, b"d" * 16, [view]))

    def _append(self, batch: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        self.written += [
            (bytes(record.key or b""), Entry.decode(bytes(record.value or b"")))
            for record in iterate(batch)
        ]

    async def _ask(self, leader: int, request: Message, timeout_ms: int) -> ProduceResponse:
        assert isinstance(request, ProduceRequest)
        self.asked.append(leader)
        [data] = request.topic_data[0].partition_data
        code = ErrorCode.NONE
        try:
            self._append(bytes(data.records or b""))
        except RequestError as failure:
            code = failure.code
        result = PartitionProduceResponse(index=0, error_code=code, base_offset=0)
        return ProduceResponse(responses=[TopicProduceResponse(partition_responses=[result])])

    def note(self, note: Note) -> Entry:
        entry = self.ring.write(note, self.now_ms)
        self.writer.take(entry)
        return entry

    async def work(self) -> Any:
        """Do what the timer does."""
        return await self.writer._write_all()


@runs
async def test_an_entry_is_written_and_the_topic_created_for_it() -> None:
    world = World()
    world.note(DENIED)
    assert await world.work() is None
    [topic] = world.created
    assert (topic.name, topic.partitions) == (DIARY_TOPIC, 1)
    assert topic.configs["cleanup.policy"] == "delete"
    assert topic.configs["retention.ms"] == "604800000"
    [(key, entry)] = world.written
    assert key == b"7.123.1"
    assert (entry.event, entry.at_ms) == ("reject.authorization", 50_000)
    await world.writer.stop()


@runs
async def test_what_belongs_to_every_start_creates_no_topic() -> None:
    world = World()
    world.note(ELECTED)
    assert await world.work() is None
    assert world.created == world.written == []
    world.note(DENIED)
    await world.work()
    assert [entry.event for _, entry in world.written] == [ELECTED.event, DENIED.event]
    await world.writer.stop()


@runs
async def test_another_broker_leads_the_topic() -> None:
    world = World()
    world.put(3)
    world.note(DENIED)
    await world.work()
    assert (world.asked, len(world.written)) == ([3], 1)
    await world.writer.stop()


@runs
async def test_a_repeated_entry_is_written_again_when_nothing_more_is_folded() -> None:
    world = World()
    world.put(7)
    world.note(DENIED)
    await world.work()
    world.note(DENIED)
    world.note(DENIED)
    assert await world.work() == FOLD_MS / 1000
    assert len(world.written) == 1
    world.now_ms += FOLD_MS
    await world.work()
    (first, before), (second, after) = world.written
    assert first == second
    assert (before.count, after.count) == (1, 3)
    await world.writer.stop()


@runs
async def test_a_failure_is_tried_again_later_each_time_after_a_longer_pause() -> None:
    for failure in (StorageError("the disk"), RequestError(ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        world = World()
        world.put(7)
        world.failure = failure
        world.note(DENIED)
        first, second = await world.work(), await world.work()
        assert 0 < first < second
        world.failure = None
        assert await world.work() is None
        assert len(world.written) == 1
        await world.writer.stop()


@runs
async def test_without_a_leader_entries_wait_and_the_oldest_are_dropped() -> None:
    world = World()
    world.put(-1)
    for number in range(topic_writer.QUEUE_MAX + 5):
        world.note(DENIED._replace(subject=f"client:{number}"))
    assert await world.work() > 0
    assert world.metrics.value(DROPPED) == 5
    world.put(7)
    await world.work()
    assert len(world.written) == topic_writer.QUEUE_MAX
    assert world.written[0][1].subject == "client:5"
    await world.writer.stop()


@runs
async def test_a_broker_that_stops_writes_its_last_entries() -> None:
    world = World()
    world.put(7)
    world.note(DENIED)
    await world.work()
    world.note(DENIED)
    await world.writer.flush()
    assert [entry.count for _, entry in world.written] == [1, 2]
    await world.writer.stop()
    world.note(ELECTED)
    await world.writer.flush()
    assert len(world.written) == 2, "nothing is taken any more"


@runs
async def test_a_broker_that_stops_does_not_wait_for_a_broken_diary() -> None:
    world = World()
    world.put(7)
    world.failure = StorageError("the disk")
    world.note(DENIED)
    await world.writer.flush()
    assert world.written == []
    await world.writer.stop()
