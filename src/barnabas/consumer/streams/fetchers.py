"""The fetchers of a consumer: one per broker and number, and one task that finds leaders.

A newly added partition has no leader yet: the leader finder asks the cluster, assigns it to the
fetcher of its leader, and takes it back when a fetch fails. A fetcher has one request in flight,
for those of its partitions whose stream has room. A partition without a valid offset begins where
auto.offset.reset says.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any, NamedTuple

from barnabas.client.cluster_client import ClusterClient
from barnabas.consumer.streams.assignment import fetcher_of
from barnabas.consumer.streams.chunks import PartitionFeed
from barnabas.consumer.streams.options import StreamOptions
from barnabas.consumer.streams.simple import SimpleConsumer
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition

logger = logging.getLogger("barnabas.streams")


class FetcherId(NamedTuple):
    """Identity of a fetcher: its broker, and its number among that broker's fetchers."""

    broker_id: int
    number: int


class _Fetcher:
    """The partitions of one fetcher, and its task."""

    __slots__ = ("feeds", "room", "task")

    def __init__(self) -> None:
        self.feeds: dict[TopicPartition, PartitionFeed] = {}
        self.room = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Fetchers:
    """All fetchers of one consumer; started and stopped by each rebalance."""

    def __init__(self, client: ClusterClient, options: StreamOptions) -> None:
        self._client = client
        self._options = options
        self._simple = SimpleConsumer(
            client,
            wait_max_ms=options.fetch_wait_max_ms,
            min_bytes=options.fetch_min_bytes,
            partition_max_bytes=options.fetch_message_max_bytes,
        )
        self._fetchers: dict[FetcherId, _Fetcher] = {}
        self._leaderless: dict[TopicPartition, PartitionFeed] = {}
        self._lost_leader = asyncio.Event()
        self._finder: asyncio.Task[None] | None = None

    @property
    def ids(self) -> list[FetcherId]:
        """The current fetchers, sorted."""
        return sorted(self._fetchers)

    def start(self, feeds: Iterable[PartitionFeed]) -> None:
        """Fetch these partitions."""
        assert self._finder is None, "stop first"
        self._leaderless = {feed.partition: feed for feed in feeds}
        self._lost_leader.set()
        self._finder = _spawn(self._find_leaders(), "leader finder")

    async def stop(self) -> None:
        """Stop fetching; when this returns no further chunk arrives."""
        tasks = [fetcher.task for fetcher in self._fetchers.values()]
        tasks.append(self._finder)
        self._fetchers, self._finder = {}, None
        self._leaderless = {}
        running = [task for task in tasks if task is not None]
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    def room_made(self) -> None:
        """Handle that a stream has taken a chunk."""
        for fetcher in self._fetchers.values():
            fetcher.room.set()

    # The leader finder

    async def _find_leaders(self) -> None:
        while True:
            await self._lost_leader.wait()
            self._lost_leader.clear()
            try:
                await self._client.refresh(sorted({each.topic for each in self._leaderless}))
            except BarnabasError as failure:
                logger.warning(
                    "%d partitions: leaders could not be found, retrying: %s",
                    len(self._leaderless),
                    failure,
                )
            else:
                await self._find_fetchers()
            if self._leaderless:
                self._lost_leader.set()
            # Even if all were found: a leader that is dead and not yet replaced fails at once.
            await asyncio.sleep(self._options.refresh_leader_backoff_ms / 1000)

    async def _find_fetchers(self) -> None:
        """Assign partitions to the fetchers of their leaders; each may fail on its own."""
        for partition in list(self._leaderless):
            leader = self._client.cluster.leader(partition)
            if leader is None:
                continue
            try:
                await self._settle(self._leaderless[partition])
            except BarnabasError as failure:
                logger.warning(
                    "%s: start offset could not be looked up, retrying: %s", partition, failure
                )
                continue
            self._hand_over(self._leaderless.pop(partition), leader)

    async def _settle(self, feed: PartitionFeed) -> None:
        """Look up where a partition without an offset begins."""
        if feed.fetched < 0:
            smallest = self._options.auto_offset_reset == "smallest"
            time_ms = EARLIEST if smallest else LATEST
            feed.begin_at(await self._simple.offset_before(feed.partition, time_ms))

    def _hand_over(self, feed: PartitionFeed, leader: int) -> None:
        number = fetcher_of(*feed.partition, self._options.num_consumer_fetchers)
        fetcher_id = FetcherId(leader, number)
        fetcher = self._fetchers.get(fetcher_id)
        if fetcher is None:
            fetcher = self._fetchers[fetcher_id] = _Fetcher()
            fetcher.task = _spawn(
                self._run(fetcher_id, fetcher), f"fetcher {number} of broker {leader}"
            )
        fetcher.feeds[feed.partition] = feed
        fetcher.room.set()

    def _give_back(self, fetcher: _Fetcher, partition: TopicPartition) -> None:
        self._leaderless[partition] = fetcher.feeds.pop(partition)
        self._lost_leader.set()

    # A fetcher

    async def _run(self, fetcher_id: FetcherId, fetcher: _Fetcher) -> None:
        while True:
            wanted = {
                partition: feed.fetched
                for partition, feed in fetcher.feeds.items()
                if not feed.queue.is_full
            }
            if not wanted:
                fetcher.room.clear()
                await fetcher.room.wait()
                continue
            try:
                await self._fetch(fetcher_id, fetcher, wanted)
            except BarnabasError as failure:
                logger.warning(
                    "fetcher %d of broker %d: fetch failed, looking for new leaders: %s",
                    *reversed(fetcher_id),
                    failure,
                )
                for partition in wanted.keys() & fetcher.feeds.keys():
                    self._give_back(fetcher, partition)

    async def _fetch(
        self, fetcher_id: FetcherId, fetcher: _Fetcher, wanted: dict[TopicPartition, int]
    ) -> None:
        channel = f"fetcher-{fetcher_id.number}"
        answers = await self._simple.fetch(wanted, fetcher_id.broker_id, channel=channel)
        for partition, answer in answers.items():
            feed = fetcher.feeds[partition]
            if answer.error is ErrorCode.NONE:
                feed.receive(answer.records)
                if answer.records:
                    # To the end of the next request: only a response's first batch is surely whole.
                    fetcher.feeds[partition] = fetcher.feeds.pop(partition)
                continue
            if answer.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                logger.warning(
                    "%s: offset=%d is out of range, resetting to %s (auto.offset.reset)",
                    partition,
                    feed.fetched,
                    self._options.auto_offset_reset,
                )
                feed.fetched = -1
            self._give_back(fetcher, partition)


def _spawn(work: Coroutine[Any, Any, None], name: str) -> asyncio.Task[None]:
    """Run a fetcher's task, and log if it crashes: its partitions are no longer read then."""
    task = asyncio.get_running_loop().create_task(work, name=name)
    task.add_done_callback(_report)
    return task


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (failure := task.exception()) is not None:
        logger.error(
            "%s crashed, its partitions are no longer read", task.get_name(), exc_info=failure
        )
