"""What the cluster says of itself, asked through librdkafka."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, ConfigResource, OffsetSpec, ResourceType

DEADLINE_S = 60.0
Make = Callable[..., str]
"""The fixture that makes topics for one test."""


def wait_for(condition: Callable[[], object], what: str) -> None:
    """Wait until something holds, and fail with its name if it never does."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def config_of(admin: AdminClient, kind: ResourceType, name: str, option: str) -> str | None:
    """Return an option as the cluster has it."""
    resource = ConfigResource(kind, name)
    found = admin.describe_configs([resource])[resource].result(DEADLINE_S)
    return found[option].value


def span(
    admin: AdminClient,
    topic: str,
    partition: int = 0,
    isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
) -> tuple[int, int]:
    """Return the first and the end offset of a partition."""
    place = TopicPartition(topic, partition)

    def offset(spec: OffsetSpec) -> int:
        deadline = time.monotonic() + DEADLINE_S
        while True:
            answer = admin.list_offsets({place: spec}, isolation_level=isolation)[place]
            try:
                return answer.result(DEADLINE_S).offset
            except KafkaException as failure:  # it may remember the leader of a deleted topic
                if not failure.args[0].retriable() or time.monotonic() > deadline:
                    raise

    return offset(OffsetSpec.earliest()), offset(OffsetSpec.latest())


def committed(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    """Return the offsets that a group has committed."""
    request = ConsumerGroupTopicPartitions(group)
    found = admin.list_consumer_group_offsets([request])[group].result(DEADLINE_S)
    return {(each.topic, each.partition): each.offset for each in found.topic_partitions}
