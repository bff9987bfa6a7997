"""Look up offsets of partitions, and delete the records before one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

from barnabas.admin.leaders import ask_leaders, by_topic, failure_of
from barnabas.admin.settling import settled_or_raise
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)


class OffsetSpec(IntEnum):
    """A special timestamp: a position in the log."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5
    EARLIEST_PENDING_UPLOAD = -6


class OffsetTimestamp(int):
    """A timestamp in milliseconds since 1970, to distinguish it from an offset."""


@dataclass(frozen=True)
class RecordsToDelete:
    """The records of a partition to delete: all before an offset.

    RecordsToDelete(before_offset=5000)
    """

    before_offset: int


EARLIEST: int = OffsetSpec.EARLIEST
LATEST: int = OffsetSpec.LATEST
MAX_TIMESTAMP: int = OffsetSpec.MAX_TIMESTAMP
"""The log's start, its end, the record with the highest timestamp."""

FIRST_VERSION_OF: dict[int, int] = {
    OffsetSpec.MAX_TIMESTAMP: 7,
    OffsetSpec.EARLIEST_LOCAL: 8,
    OffsetSpec.LATEST_TIERED: 9,
    OffsetSpec.EARLIEST_PENDING_UPLOAD: 11,
}
"""Of ListOffsets: the first versions that support these positions."""

HIGH_WATERMARK = -1
"""In place of an offset for `delete_records`: everything up to the high watermark."""


@dataclass(frozen=True, slots=True)
class FoundOffset:
    """The result of a lookup; -1 when no record is that recent."""

    offset: int
    timestamp_ms: int
    leader_epoch: int


async def list_offsets(
    client: ClusterClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    committed: bool = False,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, FoundOffset]:
    """Find the first offset at or after a timestamp (or EARLIEST, LATEST, MAX_TIMESTAMP).

    With `committed`, LATEST is the last stable offset. Raises if a partition has a failure.
    """
    return settled_or_raise(
        await find_offsets(client, timestamps, committed=committed, timeout_ms=timeout_ms)
    )


async def find_offsets(
    client: ClusterClient,
    timestamps: Mapping[TopicPartition, int],
    *,
    committed: bool = False,
    timeout_ms: float | None = None,
) -> dict[TopicPartition, FoundOffset | RequestError]:
    """Find offsets as `list_offsets` does; each has a result or its failure.

    await find_offsets(client, {TopicPartition("orders", 0): OffsetSpec.LATEST})
    """
    least = max((FIRST_VERSION_OF.get(each, 0) for each in timestamps.values()), default=0)

    async def ask(
        leader: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, FoundOffset | RequestError]:
        connection = await client.connection(leader)
        version = connection.version_of(ListOffsetsRequest, at_least=least)
        request = ListOffsetsRequest(
            replica_id=-1,
            # Brokers without transactions have no uncommitted records.
            isolation_level=int(committed and version >= 2),
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(
                            partition_index=index,
                            timestamp=timestamps[TopicPartition(topic, index)],
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ],
        )
        response: ListOffsetsResponse = await connection.send(request, version=version)
        found: dict[TopicPartition, FoundOffset | RequestError] = {}
        for topic in response.topics:
            for result in topic.partitions:
                partition = TopicPartition(topic.name, result.partition_index)
                if result.error_code:
                    found[partition] = failure_of(partition, result.error_code, None)
                else:
                    offset = next(iter(result.old_style_offsets), result.offset)
                    found[partition] = FoundOffset(offset, result.timestamp, result.leader_epoch)
        return found

    return await ask_leaders(client, timestamps, ask, timeout_ms=timeout_ms)


async def delete_records(
    client: ClusterClient,
    before: Mapping[TopicPartition, int],
    *,
    timeout_ms: int = 30_000,
    broker_id: int | None = None,
) -> dict[TopicPartition, int | RequestError]:
    """Delete the records before an offset (or HIGH_WATERMARK); return the new start of each log.

    The leaders are asked, or a broker that the caller knows to be one.
    """

    async def ask(
        leader: int, partitions: list[TopicPartition]
    ) -> dict[TopicPartition, int | RequestError]:
        request = DeleteRecordsRequest(
            topics=[
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(
                            partition_index=index, offset=before[TopicPartition(topic, index)]
                        )
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ],
            timeout_ms=timeout_ms,
        )
        response: DeleteRecordsResponse = await client.send(request, leader)
        outcomes: dict[TopicPartition, int | RequestError] = {}
        for topic in response.topics:
            for result in topic.partitions:
                partition = TopicPartition(topic.name, result.partition_index)
                outcomes[partition] = (
                    failure_of(partition, result.error_code, None)
                    if result.error_code
                    else result.low_watermark
                )
        return outcomes

    if broker_id is not None:
        return await ask(broker_id, list(before))
    return await ask_leaders(client, before, ask, timeout_ms=timeout_ms)
