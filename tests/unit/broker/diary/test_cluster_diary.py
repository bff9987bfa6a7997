"""The diary of all brokers: a ring, and what others wrote to the topic."""

from __future__ import annotations

import asyncio

from barnabas.broker.diary.cluster_diary import ClusterDiary
from barnabas.diary.entry import Entry
from barnabas.diary.ring import Ring
from barnabas.kernels import BatchBuilder
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.note import Note

ELECTED = Note("controller.elected", "broker:7", "elected", {"epoch": 1})


class World:
    """A topic, and the diary of broker 7 that reads it."""

    def __init__(self, size: int = 100) -> None:
        self.now_s = 100.0
        self.start = 0
        self.batches: list[tuple[int, bytes]] = []
        self.end = 0
        self.reads: list[int] = []
        self.failure: Exception | None = None
        self.ring = Ring(7)
        self.diary = ClusterDiary(
            self.ring, "7.55.", self.ends, self.read, lambda: self.now_s, size
        )

    def write(self, key: str, at_ms: int, count: int = 1, value: bytes | None = None) -> None:
        """Append one record in a batch of its own."""
        entry = Entry(0, 3, at_ms, "isr.shrink", f"orders-{at_ms}", "lag-time", {}, count, at_ms)
        builder = BatchBuilder()
        builder.append_many([(at_ms, key.encode(), entry.encode() if value is None else value, ())])
        batch = bytearray(builder.finish())
        batch[:8] = self.end.to_bytes(8, "big")
        self.batches.append((self.end, bytes(batch)))
        self.end += 1

    async def ends(self) -> tuple[int, int]:
        if self.failure is not None:
            raise self.failure
        return self.start, self.end

    async def read(self, offset: int) -> bytes:
        self.reads.append(offset)
        return next((batch for base, batch in self.batches if base >= offset), b"")

    def subjects(self, limit: int = 100) -> list[str]:
        """Read what is new, a second after the last time; return what the entries are about."""
        self.now_s += 1.5
        asyncio.run(self.diary.refresh())
        return [each.subject for each in self.diary.entries(limit)]


def test_entries_of_all_brokers_are_merged_by_time() -> None:
    world = World()
    world.write("3.1.1", 1000)
    world.write("3.1.2", 3000)
    world.ring.write(ELECTED, 2000)
    assert world.subjects() == ["orders-3000", "broker:7", "orders-1000"]
    assert world.subjects(2) == ["orders-3000", "broker:7"]
    found = world.diary.entries(5, lambda each: each.event == "isr.shrink")
    assert [each.at_ms for each in found] == [3000, 1000]


def test_what_is_in_the_ring_is_not_read_twice_but_that_of_an_earlier_start_is() -> None:
    world = World()
    world.write("7.55.1", 1000)
    world.write("7.44.1", 2000)
    world.write("77.55.1", 3000)
    assert world.subjects() == ["orders-3000", "orders-2000"]


def test_only_what_is_new_is_read_and_a_repeated_entry_takes_the_place_of_its_former() -> None:
    world = World()
    world.write("3.1.1", 1000)
    world.write("3.1.2", 2000)
    assert world.subjects() == ["orders-2000", "orders-1000"]
    world.write("3.1.1", 3000, count=4)
    world.reads.clear()
    assert world.subjects() == ["orders-3000", "orders-2000"]
    assert world.reads == [2]
    assert world.diary.entries(1)[0].count == 4
    asyncio.run(world.diary.refresh())  # at once: the same again
    assert world.reads == [2]


def test_it_has_a_size_and_a_new_topic_begins_from_its_start() -> None:
    world = World(size=2)
    for at_ms in (1, 2, 3, 4):
        world.write(f"3.1.{at_ms}", at_ms)
    assert world.subjects() == ["orders-4", "orders-3"]
    assert world.reads == [2, 3], "older ones are not even read"
    world.batches.clear()
    world.end = 0
    world.write("3.1.9", 9)
    assert world.subjects() == ["orders-9"]


def test_what_cannot_be_read_is_said_and_what_is_known_stays() -> None:
    world = World()
    world.write("3.1.1", 1000)
    assert world.subjects() == ["orders-1000"]
    world.failure = RequestError(ErrorCode.LEADER_NOT_AVAILABLE, "no leader")
    assert world.subjects() == ["orders-1000"]
    assert world.diary.failure == "no leader"
    world.failure = None
    world.write("x", 1, value=b"not an entry")
    assert world.subjects() == ["orders-1000"]
    assert world.diary.failure == ""


def test_without_a_topic_there_is_the_ring() -> None:
    world = World()
    world.diary = ClusterDiary(world.ring, None, world.ends, world.read, lambda: world.now_s)
    world.write("3.1.1", 1000)
    world.ring.write(ELECTED, 2000)
    assert world.subjects() == ["broker:7"]
