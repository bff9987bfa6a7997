"""A consumer without a group: it reads everything that it subscribes to, and commits nothing.

As in kafka-python and aiokafka: `subscribe` without a group id means all partitions of the topics,
updated as topics and partitions are created and deleted.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any, NoReturn

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import IllegalStateError, NetworkError
from barnabas.consumer.group.callbacks import (
    CommitCallback,
    Invoke,
    ListenerCalls,
    Offsets,
    unbroken,
)
from barnabas.consumer.group.counts import GroupCounts
from barnabas.consumer.subscription import Mode, Subscription
from barnabas.model.group_metadata import ConsumerGroupMetadata, MemberState
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata


class NoGroup:
    """Stands in for a `GroupMember`."""

    generation = -1
    member_id = ""
    state = MemberState.UNJOINED

    def __init__(
        self,
        cluster_client: ClusterClient,
        subscription: Subscription,
        *,
        invoke: Invoke,
        exclude_internal_topics: bool = True,
    ) -> None:
        self._client = cluster_client
        self._subscription = subscription
        self.counts = GroupCounts()
        self._listener = ListenerCalls(subscription, invoke, self.counts)
        self._exclude_internal_topics = exclude_internal_topics
        self._is_new = True

    @property
    def needs_poll(self) -> bool:
        """Return whether the subscription or the topics have changed."""
        return self._is_new and self._subscription.by_group

    def group_metadata(self) -> ConsumerGroupMetadata:
        """Return that there is no group."""
        return ConsumerGroupMetadata()

    async def start(self) -> None:
        """Do nothing: there is no background work."""

    async def close(
        self, *, commit: bool = True, leave: bool = True, timeout_ms: float | None = None
    ) -> None:
        """Do nothing: there is no membership to end."""

    def user_polled(self, now_ms: float) -> None:
        """Do nothing: no group expects polls."""

    def subscription_changed(self) -> None:
        """Check the topics in the next poll."""
        self._is_new = True

    def metadata_changed(self) -> None:
        """Check the topics in the next poll."""
        self._is_new = True

    def topics_followed(self) -> Iterable[str] | None:
        """Return no topics besides the user's; all topics for a pattern."""
        return None if self._subscription.mode is Mode.PATTERN else ()

    async def poll(self, timeout_ms: float) -> bool:
        """Assign all partitions of the topics; return False while none of the topics is known."""
        if not self.needs_poll:
            return True
        deadline = asyncio.get_running_loop().time() + timeout_ms / 1000
        subscription, client = self._subscription, self._client
        topics = None if subscription.mode is Mode.PATTERN else subscription.topics
        if not any(name in client.cluster.topics for name in topics or ()):
            try:
                async with asyncio.timeout_at(deadline):
                    await client.refresh(topics)
            except (TimeoutError, NetworkError):
                return False
        self._is_new = False
        if subscription.mode is Mode.PATTERN:
            subscription.match(
                name
                for name, topic in client.cluster.topics.items()
                if topic.partitions and not (topic.internal and self._exclude_internal_topics)
            )
        await unbroken(self._assign_all())
        return True

    async def _assign_all(self) -> None:
        subscription = self._subscription
        views = self._client.cluster.topics
        everything = [
            TopicPartition(topic, number)
            for topic in subscription.topics
            if topic in views
            for number in sorted(views[topic].partitions)
        ]
        owned = subscription.assigned_partitions()
        if owned == set(everything):
            return
        await self._listener.revoked(owned - set(everything))
        added = subscription.assign_from_group(everything)
        await self._listener.assigned(set(added))
        self._listener.raise_failure()

    async def commit(self, offsets: Offsets, timeout_ms: float | None = None) -> None:
        """Raise: there is no group to commit to."""
        _refuse("commit")

    def commit_soon(self, offsets: Offsets, callback: CommitCallback | None = None) -> None:
        """Raise: there is no group to commit to."""
        _refuse("commit")

    def commit_parting(self, offsets: Offsets) -> None:
        """Do nothing: nothing is committed."""

    async def committed(
        self, partitions: Iterable[TopicPartition], timeout_ms: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Raise: there is no group that could have committed."""
        _refuse("committed")

    def maybe_auto_commit(self, now_ms: float) -> None:
        """Do nothing: nothing is committed."""

    def health(self) -> dict[str, Any]:
        """Return the state for operators."""
        return {"group": None, "state": self.state, "assigned": len(self._subscription.assigned)}


def _refuse(call: str) -> NoReturn:
    raise IllegalStateError(f"{call} needs a group: set group.id (group_id=...)")
