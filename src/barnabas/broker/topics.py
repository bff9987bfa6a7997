"""Topics as requests change them: one change at a time, each durable before it is answered."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from barnabas.controller.cluster import ClusterView, TopicView
from barnabas.controller.controller import Controller, NewTopic
from barnabas.controller.topics import check_name
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError

Prepare = Callable[[NewTopic], Awaitable[NewTopic]]
Outcomes = dict[str, TopicView | RequestError | None]


async def _ready(topic: NewTopic, prepare: Prepare, outcomes: Outcomes) -> NewTopic | None:
    try:
        return await prepare(topic)
    except RequestError as refusal:
        outcomes[topic.name] = refusal
        return None


class Topics:
    """Creation, extension and deletion of topics through the controller."""

    def __init__(
        self,
        controller: Controller,
        cluster: ClusterView,
        default_partitions: int,
        default_replication_factor: int,
    ) -> None:
        self._controller = controller
        self._cluster = cluster
        self._default_partitions = default_partitions
        self._default_replication_factor = default_replication_factor
        self._lock = asyncio.Lock()

    def name_error(self, name: str) -> ErrorCode | None:
        """Return INVALID_TOPIC_EXCEPTION if no topic can have this name."""
        try:
            check_name(name)
        except RequestError as refusal:
            return refusal.code
        return None

    async def create_automatically(self, name: str) -> None:
        """Create a topic with the broker's defaults; one that exists by now is fine."""
        async with self._lock:
            if self._cluster.topic(name) is not None:
                return
            topic = NewTopic(
                name,
                self._default_partitions,
                min(self._default_replication_factor, len(self._cluster.brokers)),
            )
            self._controller.check_topic(topic)
            await self._controller.create_topics([topic])

    async def create_internal(self, topic: NewTopic) -> None:
        """Create a topic of the broker's own, with no more replicas than brokers are alive."""
        async with self._lock:
            if self._cluster.topic(topic.name) is None:
                factor = min(topic.replication_factor, len(self._cluster.brokers))
                await self._controller.create_topics([replace(topic, replication_factor=factor)])

    async def create(
        self, topics: Sequence[NewTopic], *, dry_run: bool, prepare: Prepare | None = None
    ) -> list[TopicView | RequestError | None]:
        """Create the topics that can be; for each return it as it is now, or why not.

        A dry run creates nothing and returns None for a topic that could be created. `prepare` may
        do what must be there before a topic exists, and complete or refuse it.
        """
        async with self._lock:
            outcomes: Outcomes = {}
            good: list[NewTopic] = []
            for topic in topics:
                try:
                    self._controller.check_topic(topic, [other.name for other in good])
                    outcomes[topic.name] = None
                    good.append(topic)
                except RequestError as refusal:
                    outcomes[topic.name] = refusal
            if prepare is not None and not dry_run:
                good = [ready for each in good if (ready := await _ready(each, prepare, outcomes))]
            if good and not dry_run:
                for view in await self._controller.create_topics(good):
                    outcomes[view.name] = view
            return [outcomes[topic.name] for topic in topics]

    async def create_partitions(
        self, name: str, count: int, assignments: Sequence[Sequence[int]], *, dry_run: bool
    ) -> None:
        """Raise a topic's number of partitions; the assignments are those of the new ones."""
        async with self._lock:
            topic = self._cluster.topic(name)
            present = len(topic.partitions) if topic is not None else 0
            assignment = {present + number: each for number, each in enumerate(assignments)}
            await self._controller.create_partitions(name, count, assignment, dry_run=dry_run)

    async def delete(self, name: str) -> None:
        """Delete a topic."""
        async with self._lock:
            if self._cluster.topic(name) is None:
                raise RequestError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {name!r} does not exist"
                )
            await self._controller.delete_topic(name)
