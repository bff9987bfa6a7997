"""A consumer of the ZooKeeper era: registered in the tree, balanced with its group by watches.

    connector = ConsumerConnector(tree, options)
    streams = await connector.create_message_streams({"orders": 2})
    chunk = await streams["orders"][0].take()

Members agree without a coordinator: each watches the registered members and the partitions,
computes the same assignment, and takes its part by creating ephemeral owner nodes. A rebalance
stops the fetchers, commits, releases all partitions, reads the facts again, claims its part and
resumes fetching; if a claim fails because another member still owns a partition, it is retried.

An expired session loses the registration and all ownership: the consumer registers in a new one.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from barnabas.client.addresses import Address, parse_addresses
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import IllegalStateError
from barnabas.client.retry import Verdict, verdict
from barnabas.consumer.streams import nodes
from barnabas.consumer.streams.assignment import Assignment, assign_range, assign_round_robin
from barnabas.consumer.streams.chunks import ChunkQueue, PartitionFeed
from barnabas.consumer.streams.fetchers import Fetchers
from barnabas.consumer.streams.nodes import owner_path
from barnabas.consumer.streams.offsets import Offsets
from barnabas.consumer.streams.options import StreamOptions
from barnabas.consumer.streams.simple import SimpleConsumer
from barnabas.consumer.streams.topic_count import (
    StaticTopics,
    TopicCount,
    TopicFilter,
    registered,
    thread_ids,
)
from barnabas.coordination.contract import (
    Coordination,
    Event,
    NodeExists,
    NoNode,
    ServiceUnavailable,
    SessionExpired,
    SessionState,
)
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.records.bounds import Bounds

logger = logging.getLogger("barnabas.streams")


class ConsumerRebalanceFailed(BarnabasError):
    """Partitions could not be taken over within rebalance.max.retries attempts."""


class ConsumerConnector:
    """One consumer of a group, with any number of streams."""

    def __init__(
        self,
        tree: Coordination,
        options: StreamOptions,
        *,
        host: str | None = None,
        wall_clock: Callable[[], float] = time.time,
        random_bytes: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Create a consumer on a session, which it starts and closes."""
        self.options = options
        self._tree = tree
        self._wall_clock = wall_clock
        name = options.consumer_id or (
            f"{host or socket.gethostname()}-{self._now_ms()}-{random_bytes(4).hex()}"
        )
        self.consumer_id = f"{options.group}_{name}"
        self._group = options.group
        self.ownership = Ownership(tree, self._group)
        self._topics: TopicCount | None = None
        self._queues: dict[tuple[str, str], ChunkQueue] = {}
        """By topic and thread id; one queue serves all topics of a pattern's stream."""
        self._feeds: dict[TopicPartition, PartitionFeed] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._stirred = asyncio.Event()
        self._due = False
        """Whether a rebalance is needed, whatever the pattern matches."""
        self._matching: dict[str, int] = {}
        """The topics that a pattern matched at the last rebalance."""
        self._balancing = asyncio.Lock()
        self._running = False
        self._ended = False

    # Public methods

    async def start(self) -> None:
        """Open the session and find the brokers."""
        await self._tree.start()
        options = self.options
        self._client = ClusterClient(
            await self._brokers(),
            client_id=options.client_id or self._group,
            request_timeout_ms=options.socket_timeout_ms + options.fetch_wait_max_ms,
        )
        self._fetchers = Fetchers(self._client, options)
        self._offsets = Offsets(self._tree, SimpleConsumer(self._client), options)
        self._tree.add_session_listener(self._hear_session)
        self._running = True

    async def create_message_streams(
        self, topics: Mapping[str, int]
    ) -> dict[str, list[ChunkQueue]]:
        """Subscribe to topics with a number of streams each; return the streams by topic."""
        self._check_unsubscribed()
        counted = StaticTopics(dict(topics))
        queues: dict[str, list[ChunkQueue]] = {}
        for topic, count in counted.counts.items():
            for thread_id in thread_ids(self.consumer_id, count):
                queue = self._queues[topic, thread_id] = self._new_queue()
                queues.setdefault(topic, []).append(queue)
        await self._subscribe(counted)
        return queues

    async def create_message_streams_by_filter(
        self, expression: str, streams: int = 1, *, blacklist: bool = False
    ) -> list[ChunkQueue]:
        """Subscribe to all topics that match a pattern, or that do not; return the streams."""
        self._check_unsubscribed()
        wanted = TopicFilter(expression, streams, blacklist, self.options.exclude_internal_topics)
        queues = []
        for thread_id in thread_ids(self.consumer_id, streams):
            queue = self._queues["", thread_id] = self._new_queue()
            queues.append(queue)
        await self._subscribe(wanted)
        return queues

    async def commit_offsets(self) -> None:
        """Commit what the streams have returned."""
        await self._offsets.commit(
            {
                partition: feed.consumed
                for partition, feed in self._feeds.items()
                if feed.consumed >= 0
            }
        )

    async def shutdown(self) -> None:
        """Commit (with auto-commit), release the partitions, end the streams and the session."""
        if self._ended:
            return
        self._ended = True
        self._tree.remove_session_listener(self._hear_session)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._running:
            await self._stop_fetching()
            for queue in self._queues.values():
                queue.close()
            try:
                if self.options.auto_commit_enable:
                    await self.commit_offsets()
                if self._tree.state is SessionState.CONNECTED:
                    await self.ownership.release()
            except BarnabasError as failure:
                logger.warning(
                    "consumer %s: shutdown continues after: %s", self.consumer_id, failure
                )
            await self._client.close()
        await self._tree.close()

    @property
    def assignment(self) -> dict[TopicPartition, str]:
        """The partitions of this consumer, and the stream that reads each."""
        return dict(self.ownership.owned)

    # Joining the group

    def _now_ms(self) -> int:
        return int(self._wall_clock() * 1000)

    def _check_unsubscribed(self) -> None:
        """Raise before existing streams could be replaced."""
        if self._topics is not None or not self._running:
            raise IllegalStateError("streams can be created only once, between start and shutdown")

    async def _subscribe(self, topics: TopicCount) -> None:
        self._topics = topics
        await self._register()
        async with self._balancing:
            await self._rebalance()
        loop = asyncio.get_running_loop()
        self._tasks.append(loop.create_task(self._keep_balanced()))
        if self.options.auto_commit_enable:
            self._tasks.append(loop.create_task(self._commit_regularly()))

    async def _register(self) -> None:
        assert self._topics is not None
        path = f"{nodes.ids_path(self._group)}/{self.consumer_id}"
        data = nodes.encode_subscription(
            self._topics.encoded(), self._topics.pattern, self._now_ms()
        )
        try:
            await self._tree.create(path, data, ephemeral=True, make_parents=True)
        except NodeExists as taken:
            raise IllegalStateError(
                f"consumer.id={self.options.consumer_id}: group {self._group} has a live consumer "
                f"{self.consumer_id} already"
            ) from taken

    async def _brokers(self) -> list[Address]:
        if self.options.bootstrap_servers is not None:
            return parse_addresses(self.options.bootstrap_servers)
        addresses = []
        for broker in await _children(self._tree, nodes.BROKER_IDS):
            path = f"{nodes.BROKER_IDS}/{broker}"
            with suppress(NoNode):
                address = nodes.decode_address(path, (await self._tree.get(path))[0])
                if address is not None:
                    addresses.append(address)
        if not addresses:
            raise ServiceUnavailable(f"no broker without TLS is registered in {nodes.BROKER_IDS}")
        return addresses

    # Rebalancing

    def _stir(self, _: Event) -> None:
        self._due = True
        self._stirred.set()

    def _hear_topics(self, _: Event) -> None:
        self._stirred.set()

    def _hear_session(self, state: SessionState) -> None:
        if state is SessionState.EXPIRED:
            self._due = True
            self._stirred.set()

    async def _keep_balanced(self) -> None:
        while True:
            await self._stirred.wait()
            self._stirred.clear()
            try:
                async with self._balancing:
                    if self._tree.state is SessionState.EXPIRED:
                        await self._renew_session()
                    if self._due or await self._matches_others():
                        await self._rebalance()
            except (SessionExpired, ServiceUnavailable):
                self._due = True
                self._stirred.set()
            except BarnabasError as failure:
                # As in Kafka: the consumer idles until the group or the topics change again.
                logger.error(
                    "consumer %s: rebalance failed, idle until the group changes: %s",
                    self.consumer_id,
                    failure,
                )

    async def _matches_others(self) -> bool:
        """Return whether the pattern matches other topics than at the last rebalance."""
        assert self._topics is not None
        existing = await _children(self._tree, nodes.TOPICS, self._hear_topics)
        return self._topics.streams(existing) != self._matching

    async def _renew_session(self) -> None:
        """Register again: what the old session owned is gone."""
        await self._stop_fetching()
        self.ownership.forget()
        await self._tree.start()
        await self._register()

    async def _rebalance(self) -> None:
        """Take over our part of the partitions, in several attempts if needed."""
        attempts = max(1, self.options.rebalance_max_retries)
        for attempt in range(attempts):
            if attempt:
                await asyncio.sleep(self.options.rebalance_backoff_ms / 1000)
            self._due = False
            if await self._attempt():
                logger.info(
                    "consumer %s: %d partitions assigned", self.consumer_id, len(self._feeds)
                )
                return
        raise ConsumerRebalanceFailed(
            f"consumer {self.consumer_id}: partitions not taken over in {attempts} attempts "
            "(rebalance.max.retries)"
        )

    async def _attempt(self) -> bool:
        if not await _children(self._tree, nodes.BROKER_IDS, self._stir):
            return True  # the first broker that registers triggers us
        await self._stop_fetching()
        if self.options.auto_commit_enable:
            await self._commit_if_possible()
        self._feeds.clear()
        self._offsets.forget()
        await self.ownership.release()
        try:
            assignment = await self._work_out()
            offsets = await self._offsets.fetch(assignment)
        except NoNode:
            return False  # a member or a topic was removed meanwhile
        except RequestError as failure:
            if verdict(failure) is Verdict.FAIL:
                raise
            logger.warning("group %s: could not read committed offsets: %s", self._group, failure)
            return False
        if not await self.ownership.claim(assignment):
            return False
        for partition, thread_id in assignment.items():
            queue = self._queue_of(partition.topic, thread_id)
            offset = offsets.get(partition, -1)
            self._feeds[partition] = PartitionFeed(partition, queue, offset)
        self._fetchers.start(self._feeds.values())
        return True

    async def _stop_fetching(self) -> None:
        """Stop fetching, and drop the chunks that were not taken yet."""
        await self._fetchers.stop()
        for feed in self._feeds.values():
            feed.released = True
        for queue in self._queues.values():
            queue.clear()

    async def _work_out(self) -> Assignment:
        """Read the group's members and partitions; return our part of the assignment."""
        assert self._topics is not None
        by_pattern = isinstance(self._topics, TopicFilter)
        watch = self._hear_topics if by_pattern else None
        existing = await _children(self._tree, nodes.TOPICS, watch)
        ids = nodes.ids_path(self._group)
        threads: dict[str, list[str]] = {}
        for consumer_id in await self._tree.children(ids, self._stir):
            path = f"{ids}/{consumer_id}"
            streams, pattern = nodes.decode_subscription(path, (await self._tree.get(path))[0])
            member = registered(path, streams, pattern, self.options.exclude_internal_topics)
            for topic, count in member.streams(existing).items():
                threads.setdefault(topic, []).extend(thread_ids(consumer_id, count))
        mine = self._matching = self._topics.streams(existing)
        partitions = {topic: await self._partitions(topic) for topic in threads if topic in mine}
        assign = (
            assign_range
            if self.options.partition_assignment_strategy == "range"
            else assign_round_robin
        )
        own = {key[1] for key in self._queues}
        whole = assign({topic: threads[topic] for topic in partitions}, partitions)
        return {each: thread_id for each, thread_id in whole.items() if thread_id in own}

    async def _partitions(self, topic: str) -> list[int]:
        """Return a topic's partitions; one that does not exist yet has none, and is watched."""
        path = nodes.topic_path(topic)
        try:
            data, _ = await self._tree.get(path, self._stir)
        except NoNode:
            await self._tree.exists(path, self._stir)
            return []
        return nodes.decode_partitions(path, data)

    def _queue_of(self, topic: str, thread_id: str) -> ChunkQueue:
        return self._queues.get((topic, thread_id)) or self._queues["", thread_id]

    def _new_queue(self) -> ChunkQueue:
        bound = self.options.queued_max_message_chunks
        bounds = Bounds(self.options.barnabas_unpacked_record_max_bytes)
        return ChunkQueue(bound, lambda: self._fetchers.room_made(), bounds)

    async def _commit_regularly(self) -> None:
        while True:
            await asyncio.sleep(self.options.auto_commit_interval_ms / 1000)
            async with self._balancing:
                with suppress(SessionExpired):  # then a rebalance follows
                    await self._commit_if_possible()

    async def _commit_if_possible(self) -> None:
        """Commit; after a failure some messages are read again, nothing else."""
        try:
            await self.commit_offsets()
        except SessionExpired:
            raise
        except BarnabasError as failure:
            logger.warning(
                "consumer %s: auto-commit failed, messages may be read twice: %s",
                self.consumer_id,
                failure,
            )


async def _children(
    tree: Coordination, path: str, watch: Callable[[Event], object] | None = None
) -> list[str]:
    """Return the children of a node that may not exist yet."""
    try:
        return await tree.children(path, watch)
    except NoNode:
        if watch is not None:
            await tree.exists(path, watch)
        return []


class Ownership:
    """The partitions of a group that one consumer owns.

    Each has an ephemeral node that names the stream that reads it.
    """

    def __init__(self, tree: Coordination, group: str) -> None:
        self._tree = tree
        self._group = group
        self.owned: dict[TopicPartition, str] = {}

    async def claim(self, wanted: Mapping[TopicPartition, str]) -> bool:
        """Claim all partitions, or none: False if another consumer still owns one of them."""
        for partition, thread_id in wanted.items():
            path = owner_path(self._group, *partition)
            try:
                await self._tree.create(path, thread_id.encode(), ephemeral=True, make_parents=True)
            except NodeExists:
                await self.release(list(self.owned))
                return False
            self.owned[partition] = thread_id
        return True

    async def release(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Release partitions, by default all."""
        for partition in list(self.owned) if partitions is None else list(partitions):
            del self.owned[partition]
            try:
                await self._tree.delete(owner_path(self._group, *partition))
            except NoNode:
                continue  # it expired with an earlier session

    def forget(self) -> None:
        """Forget everything: the session that owned the nodes has expired."""
        self.owned.clear()
