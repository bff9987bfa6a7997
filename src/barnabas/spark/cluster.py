"""What the driver asks brokers for: topics, and the start and end offsets of their logs.

Connects on the first call, in the process that makes it, until `close`. A pickled copy is not
connected: readers are sent to tasks, connections are not.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Any, TypeVar

from barnabas.admin.group_offsets import commit_offsets
from barnabas.admin.offsets import list_offsets
from barnabas.admin.topic_descriptions import describe_topics
from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.cluster_client import ClusterClient
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import parse_client_options
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.model.ids import EARLIEST, LATEST, ZERO_UUID, TopicPartition, uuid_text
from barnabas.model.isolation import IsolationLevel
from barnabas.spark.micro_batch import TopicSnapshot
from barnabas.spark.offset_limits import OffsetLimits
from barnabas.spark.topic_selection import SelectedTopic, TopicSelection
from barnabas.structs import OffsetAndMetadata

Result = TypeVar("Result")


class Cluster:
    """A cluster, with calls that block until there is a response."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = dict(client)
        self._options: ConsumerOptions | None = None
        self._thread: LoopThread | None = None
        self._cluster_client: ClusterClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"client": self._client}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["client"])  # type: ignore[misc]

    def snapshot(self, selection: TopicSelection) -> TopicSnapshot:
        """Return the selected topics that exist, and both ends of their partitions."""
        return self._call(self._snapshot(selection))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the end offsets of partitions, in one request to each broker."""
        return self._call(self._offsets(dict.fromkeys(partitions, LATEST)))

    def resolve(
        self, limits: OffsetLimits, snapshot: TopicSnapshot, selection: TopicSelection
    ) -> dict[TopicPartition, int]:
        """Return the offsets that an option resolves to."""
        partitions = selection.partitions(snapshot.topics)
        limits.check(partitions)
        specs = limits.list_offsets_specs(partitions)
        known = {EARLIEST: snapshot.earliest, LATEST: snapshot.latest}
        found = {
            partition: known[spec][partition] for partition, spec in specs.items() if spec in known
        }
        times = {partition: spec for partition, spec in specs.items() if spec not in known}
        if times:
            found |= self._call(self._offsets(times))
        return limits.resolve(partitions, found, snapshot.latest)

    def commit(self, group: str, offsets: Mapping[TopicPartition, int], metadata: str) -> None:
        """Commit offsets of a group that has no members, each with the metadata."""
        committed = {
            partition: OffsetAndMetadata(offset, metadata, -1)
            for partition, offset in offsets.items()
        }
        for partition, failure in self._call(self._commit(group, committed)).items():
            if failure is not None:
                raise BarnabasError(
                    f"offsetGroup={group}: {partition} was not committed: {failure}"
                )

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        thread, self._thread = self._thread, None
        cluster_client, self._cluster_client = self._cluster_client, None
        if thread is not None and cluster_client is not None:
            thread.call(cluster_client.close())
            thread.stop()

    async def _snapshot(self, selection: TopicSelection) -> TopicSnapshot:
        cluster_client = await self._opened()
        topics = {}
        for topic in await describe_topics(cluster_client, selection.names):
            if topic.error is not None:
                if topic.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                raise topic.error
            if topic.name is not None and selection.covers(topic.name):
                if selection.pattern is not None and topic.internal:
                    continue
                topic_id = "" if topic.topic_id == ZERO_UUID else uuid_text(topic.topic_id)
                numbers = tuple(partition.index for partition in topic.partitions)
                topics[topic.name] = SelectedTopic(topic_id, numbers)
        partitions = selection.partitions(topics)
        earliest, latest = await asyncio.gather(
            self._offsets(dict.fromkeys(partitions, EARLIEST)),
            self._offsets(dict.fromkeys(partitions, LATEST)),
        )
        return TopicSnapshot(topics, earliest, latest)

    async def _offsets(self, specs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        cluster_client = await self._opened()
        assert self._options is not None
        found = await list_offsets(
            cluster_client,
            specs,
            committed=self._options.isolation_level == IsolationLevel.READ_COMMITTED,
        )
        return {partition: each.offset for partition, each in found.items()}

    async def _commit(
        self, group: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> Mapping[TopicPartition, BarnabasError | None]:
        return await commit_offsets(await self._opened(), group, offsets)

    async def _opened(self) -> ClusterClient:
        if self._cluster_client is None:
            self._options = parse_client_options(ConsumerOptions, self._client)
            cluster_client = ClusterClient.from_options(self._options)
            try:
                await cluster_client.retrying(
                    cluster_client.refresh, timeout_ms=self._options.bootstrap_timeout_ms
                )
            except BaseException:
                await cluster_client.close()
                raise
            cluster_client.start()
            self._cluster_client = cluster_client
        return self._cluster_client

    def _call(self, work: Coroutine[Any, Any, Result]) -> Result:
        if self._thread is None:
            self._thread = LoopThread("barnabas-spark")
        return self._thread.call(work)
