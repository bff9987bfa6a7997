"""Adopts logs that are on disk before the cluster has any topic.

This opens a data directory that another broker of Kafka's format has written, or whose
coordination file was lost. Each partition directory becomes a partition of the topic in its name,
with the id in its partition.metadata; leader epochs and producer ids continue after the highest
ones found. Done only if a broker with embedded coordination finds no topic at all: later, a log
without a topic is the remains of a deletion. What is not on disk is lost: configs of the topics,
and partitions without a directory (they start empty).
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from barnabas.broker.storage.logs import Logs
from barnabas.log.directory import Damaged
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.topic_store import NewTopic
from barnabas.model.ids import TopicPartition, Uuid

logger = logging.getLogger("barnabas.logs")

METADATA_TOPIC = "__cluster_metadata"
"""The log of a KRaft controller, which is stored beside the others and is not a topic."""


def producer_id_max(logs: Iterable[PartitionLog]) -> int:
    """Return the highest producer id in the logs, -1 without any: new ones must be higher."""
    return max((each.producer_id for log in logs for each in log.producers), default=-1)


def topics_of(
    logs: Iterable[PartitionLog],
    configs: Mapping[str, Mapping[str, str]],
    damaged: Mapping[TopicPartition, Damaged],
) -> list[NewTopic]:
    """Return the topics that logs belong to; `configs` are those of internal topics.

    A damaged log is included: its partition is offline until it is repaired.
    """
    found: dict[str, dict[int, tuple[Uuid | None, int]]] = {}
    known = {log.topic_partition: (log.topic_id, log.leader_epochs.latest) for log in logs}
    known |= {partition: (each.topic_id, each.leader_epoch) for partition, each in damaged.items()}
    for (topic, number), identity in known.items():
        if topic != METADATA_TOPIC:
            found.setdefault(topic, {})[number] = identity
    adopted = []
    for topic, partitions in sorted(found.items()):
        ids: set[Uuid] = {topic_id for topic_id, _ in partitions.values() if topic_id is not None}
        if len(ids) > 1:
            logger.error("topic %s not adopted: its partitions have different topic ids", topic)
            continue
        adopted.append(
            NewTopic(
                topic,
                max(partitions) + 1,
                1,
                configs=configs.get(topic, {}),
                topic_id=next(iter(ids), None),
                leader_epochs={number: epoch + 1 for number, (_, epoch) in partitions.items()},
            )
        )
    return adopted


async def adopt(
    logs: Logs,
    internal_configs: Mapping[str, Mapping[str, str]],
    *,
    reserve_producer_ids: Callable[[int], Awaitable[None]],
    create: Callable[[Sequence[NewTopic]], Awaitable[None]],
) -> None:
    """Adopt the logs of a single broker that has no topic.

    Producer ids up to the highest one found are reserved before the topics are created.
    """
    topics = topics_of(logs.all, internal_configs, logs.damaged)
    if topics:
        names = ", ".join(topic.name for topic in topics)
        logger.info("topics found on disk and adopted: %s", names)
        await reserve_producer_ids(producer_id_max(logs.all))
        await create(topics)
