"""What the driver asks brokers: which topics there are, where their logs begin and end.

Opens when it is first asked, in the process that asks; `close` ends it. Pickled, it is closed:
readers travel to tasks, connections do not.
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
from barnabas.model.ids import ZERO_UUID, TopicPartition, uuid_text
from barnabas.model.isolation import IsolationLevel
from barnabas.spark.choice import Choice, TopicNow
from barnabas.spark.places import EARLIEST, LATEST, Places
from barnabas.spark.progress import View

Result = TypeVar("Result")


class Cluster:
    """A cluster, asked by a thread that waits for the answers."""

    def __init__(self, client: Mapping[str, str]) -> None:
        self._client = dict(client)
        self._options: ConsumerOptions | None = None
        self._thread: LoopThread | None = None
        self._cluster_client: ClusterClient | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"client": self._client}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["client"])  # type: ignore[misc]

    def view(self, choice: Choice) -> View:
        """Return the chosen topics that exist, and both ends of their partitions."""
        return self._call(self._view(choice))

    def latest(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the ends of partitions, in one request of each broker."""
        return self._call(self._offsets(dict.fromkeys(partitions, LATEST)))

    def resolve(self, places: Places, view: View, choice: Choice) -> dict[TopicPartition, int]:
        """Return the offsets that an option means."""
        partitions = choice.partitions(view.topics)
        places.check(partitions)
        asked = places.wanted(partitions)
        known = {EARLIEST: view.earliest, LATEST: view.latest}
        found = {place: known[spec][place] for place, spec in asked.items() if spec in known}
        times = {place: spec for place, spec in asked.items() if spec not in known}
        if times:
            found |= self._call(self._offsets(times))
        return places.settle(partitions, found, view.latest)

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit offsets of a group that has no members."""
        for place, failure in self._call(self._commit(group, offsets)).items():
            if failure is not None:
                raise BarnabasError(f"offsetGroup={group}: {place} is not committed: {failure}")

    def close(self) -> None:
        """Close the connections; the next question opens new ones."""
        thread, self._thread = self._thread, None
        cluster_client, self._cluster_client = self._cluster_client, None
        if thread is not None and cluster_client is not None:
            thread.call(cluster_client.close())
            thread.stop()

    async def _view(self, choice: Choice) -> View:
        cluster_client = await self._opened()
        topics = {}
        for topic in await describe_topics(cluster_client, choice.names):
            if topic.error is not None:
                if topic.error.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    continue
                raise topic.error
            if topic.name is not None and choice.covers(topic.name):
                if choice.pattern is not None and topic.internal:
                    continue
                topic_id = "" if topic.topic_id == ZERO_UUID else uuid_text(topic.topic_id)
                numbers = tuple(partition.index for partition in topic.partitions)
                topics[topic.name] = TopicNow(topic_id, numbers)
        partitions = choice.partitions(topics)
        earliest, latest = await asyncio.gather(
            self._offsets(dict.fromkeys(partitions, EARLIEST)),
            self._offsets(dict.fromkeys(partitions, LATEST)),
        )
        return View(topics, earliest, latest)

    async def _offsets(self, asked: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        cluster_client = await self._opened()
        assert self._options is not None
        found = await list_offsets(
            cluster_client,
            asked,
            committed=self._options.isolation_level == IsolationLevel.READ_COMMITTED,
        )
        return {place: each.offset for place, each in found.items()}

    async def _commit(
        self, group: str, offsets: Mapping[TopicPartition, int]
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
