"""Keeps the target's topics like the source's, and says which partitions there are to copy."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

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
from barnabas.mirror.selection import Selection
from barnabas.mirror.topic_plan import Plan, TopicShape, plan_topics
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition


@dataclass(frozen=True, slots=True)
class Followed:
    """The partitions to copy, with the ids of their topics, and what was changed for them."""

    partitions: dict[TopicPartition, str]
    plan: Plan


async def follow_topics(
    source: ClusterClient,
    target: ClusterClient,
    selection: Selection,
    *,
    replication_factor: int = -1,
) -> Followed:
    """Look at both clusters, change the target, and return what there is to copy."""
    wanted = [
        view
        for view in await describe_topics(source, None)
        if view.error is ErrorCode.NONE and selection.wants(view.name, internal=view.internal)
    ]
    present = {view.name: view for view in await describe_topics(target, None)}
    there = [
        view
        for view in (present.get(selection.target_name(each.name)) for each in wanted)
        if view is not None
    ]
    shapes = await _shapes(source, wanted)
    plan = plan_topics(
        {selection.target_name(name): shape for name, shape in shapes.items()},
        await _shapes(target, there),
    )
    await _apply(target, plan, replication_factor)
    return Followed(
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
                continue  # it was deleted just now
            raise entries
        own = {
            entry.name: entry.value
            for entry in entries
            if entry.source is ConfigSource.TOPIC and entry.value is not None
        }
        shapes[view.name] = TopicShape(len(view.partitions), own)
    return shapes


async def _apply(target: ClusterClient, plan: Plan, replication_factor: int) -> None:
    new = [
        NewTopic(name, shape.partitions, replication_factor, topic_configs=dict(shape.configs))
        for name, shape in plan.create.items()
    ]
    if new:
        for created in await create_topics(target, new):
            if created.error is not None:
                if created.error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
                    continue  # somebody was faster; the next look compares them
                raise _named(created.error, f"creating topic {created.name!r} on the target")
    if plan.grow:
        for grown in await create_partitions(target, plan.grow):
            if grown.error is not None:
                raise _named(grown.error, f"adding partitions to {grown.name!r} on the target")
    changes = {
        Resource(ConfigResourceType.TOPIC, name): [
            Change(AlterConfigOp.SET, option, value) for option, value in options.items()
        ]
        for name, options in plan.configure.items()
    }
    if changes:
        for resource, failure in (await alter_resources(target, changes)).items():
            if failure is not None:
                raise _named(failure, f"setting options of {resource} on the target")


def _named(failure: RequestError, deed: str) -> RequestError:
    return RequestError(failure.code, f"{deed}: {failure}")
