"""Keeps the target's topics like the source's, and returns the partitions to copy.

Topics are created with the source's partition count and with the options that were set for them;
both are followed later. A target topic may have more partitions than its source. An option that the
source leaves at its default is not set, so that the target may have a value of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from barnabas.admin.config_entries import (
    AlterConfigOp,
    Change,
    ConfigResourceType,
    ConfigSource,
    Resource,
)
from barnabas.admin.configs import alter_resources, describe_resources
from barnabas.admin.topics import NewTopic, create_partitions, create_topics, describe_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import TopicView
from barnabas.mirror.replication_policy import TopicFilter
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition

NOT_SYNCED = frozenset(
    {
        # Specific to the brokers of one cluster.
        "leader.replication.throttled.replicas",
        "follower.replication.throttled.replicas",
        "min.insync.replicas",
        "unclean.leader.election.enable",
        "remote.storage.enable",
        # Timestamps are copied: the target must neither replace nor reject them.
        "message.timestamp.type",
        "message.timestamp.difference.max.ms",
        "message.timestamp.before.max.ms",
        "message.timestamp.after.max.ms",
    }
)
"""Topic options that are not copied."""


@dataclass(frozen=True, slots=True)
class TopicShape:
    """A topic's partition count, and the options that were set for it."""

    partitions: int
    configs: Mapping[str, str] = field(default_factory=dict)

    @property
    def synced_configs(self) -> dict[str, str]:
        """The options that are copied."""
        return {name: self.configs[name] for name in self.configs if name not in NOT_SYNCED}


@dataclass(frozen=True, slots=True)
class TopicPlan:
    """Changes to the target, by the names that topics have there."""

    create: dict[str, TopicShape]
    grow: dict[str, int]
    configure: dict[str, dict[str, str]]

    def __bool__(self) -> bool:
        return bool(self.create or self.grow or self.configure)


def plan_topics(source: Mapping[str, TopicShape], target: Mapping[str, TopicShape]) -> TopicPlan:
    """Compare the source's topics with the target's, both by the target's names."""
    plan = TopicPlan({}, {}, {})
    for name, wanted in source.items():
        present = target.get(name)
        if present is None:
            plan.create[name] = TopicShape(wanted.partitions, wanted.synced_configs)
            continue
        if present.partitions < wanted.partitions:
            plan.grow[name] = wanted.partitions
        different = {
            option: value
            for option, value in wanted.synced_configs.items()
            if present.configs.get(option) != value
        }
        if different:
            plan.configure[name] = different
    return plan


@dataclass(frozen=True, slots=True)
class SyncedTopics:
    """The partitions to copy with their topic ids, and what was changed on the target."""

    partitions: dict[TopicPartition, str]
    plan: TopicPlan


async def sync_topics(
    source: ClusterClient,
    target: ClusterClient,
    topics: TopicFilter,
    *,
    replication_factor: int = -1,
) -> SyncedTopics:
    """Compare both clusters, change the target, and return the partitions to copy."""
    wanted = [
        view
        for view in await describe_topics(source, None)
        if view.error is ErrorCode.NONE and topics.replicates(view.name, internal=view.internal)
    ]
    present = {view.name: view for view in await describe_topics(target, None)}
    there = [
        view
        for view in (present.get(topics.target_topic(each.name)) for each in wanted)
        if view is not None
    ]
    shapes = await _shapes(source, wanted)
    plan = plan_topics(
        {topics.target_topic(name): shape for name, shape in shapes.items()},
        await _shapes(target, there),
    )
    await _apply(target, plan, replication_factor)
    return SyncedTopics(
        {
            TopicPartition(view.name, index): view.topic_id.hex()
            for view in wanted
            for index in sorted(view.partitions)
        },
        plan,
    )


async def _shapes(client: ClusterClient, views: Iterable[TopicView]) -> dict[str, TopicShape]:
    topics = {Resource(ConfigResourceType.TOPIC, view.name): view for view in views}
    if not topics:
        return {}
    described = await describe_resources(client, dict.fromkeys(topics))
    shapes = {}
    for resource, view in topics.items():
        entries = described[resource]
        if isinstance(entries, RequestError):
            if entries.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                continue  # deleted just now
            raise entries
        configs = {
            entry.name: entry.value
            for entry in entries
            if entry.source is ConfigSource.TOPIC and entry.value is not None
        }
        shapes[view.name] = TopicShape(len(view.partitions), configs)
    return shapes


async def _apply(target: ClusterClient, plan: TopicPlan, replication_factor: int) -> None:
    new = [
        NewTopic(name, shape.partitions, replication_factor, topic_configs=dict(shape.configs))
        for name, shape in plan.create.items()
    ]
    if new:
        for created in await create_topics(target, new):
            if created.error is not None:
                if created.error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                    continue  # created meanwhile; the next refresh compares the topics
                raise _explain(created.error, f"creating topic {created.name!r} on the target")
    if plan.grow:
        for grown in await create_partitions(target, plan.grow):
            if grown.error is not None:
                raise _explain(grown.error, f"adding partitions to {grown.name!r} on the target")
    changes = {
        Resource(ConfigResourceType.TOPIC, name): [
            Change(AlterConfigOp.SET, option, value) for option, value in options.items()
        ]
        for name, options in plan.configure.items()
    }
    if changes:
        for resource, failure in (await alter_resources(target, changes)).items():
            if failure is not None:
                raise _explain(failure, f"setting options of {resource} on the target")


def _explain(failure: RequestError, action: str) -> RequestError:
    return RequestError(failure.code, f"{action}: {failure}")
