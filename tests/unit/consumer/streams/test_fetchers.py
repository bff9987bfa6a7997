"""Fetchers and the leader finder, over a cluster that the test plays."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.config.clients.options import parse_client_options
from barnabas.consumer.streams import StreamOptions
from barnabas.consumer.streams.chunks import ChunkQueue, PartitionFeed
from barnabas.consumer.streams.fetchers import Fetchers
from barnabas.consumer.streams.simple import Fetched
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition

DEAD, ALIVE = TopicPartition("t", 0), TopicPartition("t", 1)


class Played:
    """A cluster whose broker 0 is dead and not yet replaced; broker 1 has nothing to tell."""

    def __init__(self) -> None:
        self.cluster = self
        self.refreshes = 0
        self.fetches: list[int] = []

    async def refresh(self, topics: Iterable[str]) -> None:
        self.refreshes += 1

    def leader(self, partition: TopicPartition) -> int:
        return partition.partition

    async def offset_before(self, partition: TopicPartition, time_ms: int) -> int:
        if partition == DEAD:
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, "connection refused")
        return 5

    async def fetch(
        self, offsets: Mapping[TopicPartition, int], leader: int, *, channel: str
    ) -> dict[TopicPartition, Fetched]:
        self.fetches.append(leader)
        if leader == 0:
            raise RequestError(ErrorCode.BROKER_NOT_AVAILABLE, "connection refused")
        await asyncio.Event().wait()
        raise AssertionError("nobody sets it")


def fetchers_of(played: Any) -> Fetchers:
    """Return fetchers that look for leaders once an hour."""
    given = {"group_id": "g", "refresh_leader_backoff_ms": 3_600_000}
    fetchers = Fetchers(played, parse_client_options(StreamOptions, given))
    fetchers._simple = played
    return fetchers


def feed(partition: TopicPartition, offset: int) -> PartitionFeed:
    return PartitionFeed(partition, ChunkQueue(2, lambda: None), offset)


async def settle() -> None:
    """Let everything happen that waits for nothing."""
    for _ in range(100):
        await asyncio.sleep(0)


def test_a_partition_whose_beginning_is_not_known_holds_up_no_other() -> None:
    async def story() -> None:
        played = Played()
        fetchers = fetchers_of(played)
        other = feed(ALIVE, -1)
        fetchers.start([feed(DEAD, -1), other])
        await settle()
        assert played.fetches == [1]
        assert other.fetched == 5
        assert list(fetchers._leaderless) == [DEAD]
        await fetchers.stop()

    asyncio.run(story())


def test_a_dead_leader_is_asked_for_after_a_pause() -> None:
    """Its fetch fails at once, and the cluster names it until its session is over."""

    async def story() -> None:
        played = Played()
        fetchers = fetchers_of(played)
        fetchers.start([feed(DEAD, 7)])
        await settle()
        assert (played.refreshes, played.fetches) == (1, [0])
        assert list(fetchers._leaderless) == [DEAD]
        await fetchers.stop()

    asyncio.run(story())
