"""The partitions that a command names, checked to exist, and positions in them as offsets."""

from __future__ import annotations

from barnabas.admin.offsets import EARLIEST, LATEST, list_offsets
from barnabas.admin.topics import describe_topics
from barnabas.cli.position import Beginning, End, Offset, Position
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition


async def existing_partitions(
    client: ClusterClient, topic: str, wanted: list[int] | None
) -> list[TopicPartition]:
    """Return the partitions of a topic, or those wanted; raise if one does not exist."""
    [view] = await describe_topics(client, [topic])
    if view.error is not ErrorCode.NONE:
        failure = RequestError(view.error, f"topic {topic!r}: {view.error.meaning}")
        if view.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            failure = RequestError(view.error, f"topic {topic!r} does not exist")
            failure.add_note(f"create it with: barnabas topics create {topic}")
        raise failure
    missing = sorted(set(wanted or []) - set(view.partitions))
    if missing:
        raise RequestError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic!r} has partitions 0-{max(view.partitions)}, not {missing[0]}",
        )
    return [TopicPartition(topic, index) for index in sorted(wanted or view.partitions)]


async def offsets_at(
    client: ClusterClient, partitions: list[TopicPartition], position: Position, committed: bool
) -> dict[TopicPartition, int]:
    """Return the offset that a position means in each partition."""
    if isinstance(position, Offset):
        return dict.fromkeys(partitions, position.offset)
    if isinstance(position, Beginning | End):
        timestamp = EARLIEST if isinstance(position, Beginning) else LATEST
    else:
        timestamp = position.timestamp_ms
    found = await list_offsets(client, dict.fromkeys(partitions, timestamp), committed=committed)
    offsets = {partition: answer.offset for partition, answer in found.items()}
    # -1: all records are older, so it means the end.
    young = [partition for partition, offset in offsets.items() if offset < 0]
    if young:
        ends = await list_offsets(client, dict.fromkeys(young, LATEST), committed=committed)
        offsets |= {partition: answer.offset for partition, answer in ends.items()}
    return offsets
