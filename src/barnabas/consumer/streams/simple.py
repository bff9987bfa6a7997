"""The simple consumer: fetches, looks up offsets and commits, and keeps no state.

It asks the leader that the metadata names and returns the result of each partition; handling a
failure is up to the caller. The streams' fetchers are such callers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.client.cluster_client import ClusterClient, Destination
from barnabas.consumer.streams.one_broker import by_topic
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import EARLIEST, LATEST, ZERO_UUID, TopicPartition
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from barnabas.wire.messages.find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.wire.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.wire.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
    OffsetFetchResponse,
)

__all__ = ["EARLIEST", "LATEST", "Fetched", "SimpleConsumer"]

_RESPONSE_BYTES_MAX = 50 * 1024 * 1024


class Fetched(NamedTuple):
    """One partition's part of a fetch response."""

    error: ErrorCode
    records: bytes
    high_watermark: int


class SimpleConsumer:
    """Reads partitions of a cluster at offsets that the caller knows."""

    def __init__(
        self,
        client: ClusterClient,
        *,
        wait_max_ms: int = 100,
        min_bytes: int = 1,
        partition_max_bytes: int = 1024 * 1024,
    ) -> None:
        self._client = client
        self._wait_max_ms = wait_max_ms
        self._min_bytes = min_bytes
        self._partition_max_bytes = partition_max_bytes

    async def fetch(
        self,
        offsets: Mapping[TopicPartition, int],
        leader: int | None = None,
        *,
        channel: str = "",
    ) -> dict[TopicPartition, Fetched]:
        """Fetch partitions that one broker leads (by default: the first one's leader)."""
        first = next(iter(offsets))
        to: Destination = first if leader is None else leader
        connection = await self._client.connection(to, channel=channel)
        grouped = by_topic(offsets)
        ids = {topic: self._client.cluster.topic_id(topic) for topic in grouped}
        request = FetchRequest(
            max_wait_ms=self._wait_max_ms,
            min_bytes=self._min_bytes,
            max_bytes=_RESPONSE_BYTES_MAX,
            topics=[
                FetchTopic(
                    topic=topic,
                    topic_id=ids[topic],
                    partitions=[
                        FetchPartition(
                            partition=each.partition,
                            fetch_offset=offsets[each],
                            partition_max_bytes=self._partition_max_bytes,
                        )
                        for each in group
                    ],
                )
                for topic, group in grouped.items()
            ],
        )
        version = connection.version_of(
            FetchRequest,
            at_least=4,  # the first that may carry batches of magic 2
            at_most=12 if ZERO_UUID in ids.values() else None,  # from 13 on topics are named by id
        )
        response: FetchResponse = await connection.send(request, version=version)
        _raise_for(response.error_code, "fetch")
        names = {topic_id: topic for topic, topic_id in ids.items()}
        return {
            TopicPartition(topic.topic or names[topic.topic_id], each.partition_index): Fetched(
                ErrorCode.of(each.error_code), bytes(each.records or b""), each.high_watermark
            )
            for topic in response.responses
            for each in topic.partitions
        }

    async def offset_before(self, partition: TopicPartition, time_ms: int) -> int:
        """Return the first offset at or after a timestamp, or LATEST or EARLIEST; -1 without one.

        Raise RequestError if the partition's leader returns an error.
        """
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=partition.topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=partition.partition, timestamp=time_ms)
                    ],
                )
            ],
        )
        connection = await self._client.connection(partition)
        version = connection.version_of(ListOffsetsRequest, at_least=1)
        response: ListOffsetsResponse = await connection.send(request, version=version)
        answer = response.topics[0].partitions[0]
        _raise_for(answer.error_code, f"offset of {partition}")
        return answer.offset

    async def commit(
        self, group: str, offsets: Mapping[TopicPartition, int], timeout_ms: float | None = None
    ) -> None:
        """Commit offsets of a group to Kafka; raise RequestError for the first that is rejected."""
        request = OffsetCommitRequest(
            group_id=group,
            topics=[
                OffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        OffsetCommitRequestPartition(
                            partition_index=each.partition, committed_offset=offsets[each]
                        )
                        for each in partitions
                    ],
                )
                for topic, partitions in by_topic(offsets).items()
            ],
        )
        connection = await self._client.connection(await self._coordinator(group))
        version = connection.version_of(OffsetCommitRequest, at_least=2, at_most=9)
        response: OffsetCommitResponse = await connection.send(
            request, version=version, timeout_ms=timeout_ms
        )
        for topic in response.topics:
            for each in topic.partitions:
                _raise_for(each.error_code, f"commit of {topic.name}-{each.partition_index}")

    async def committed(
        self, group: str, partitions: Iterable[TopicPartition]
    ) -> dict[TopicPartition, int]:
        """Return a group's offsets committed to Kafka; partitions without one are left out."""
        request = OffsetFetchRequest(
            group_id=group,
            topics=[
                OffsetFetchRequestTopic(
                    name=topic, partition_indexes=[each.partition for each in group_of]
                )
                for topic, group_of in by_topic(partitions).items()
            ],
        )
        connection = await self._client.connection(await self._coordinator(group))
        version = connection.version_of(OffsetFetchRequest, at_least=1, at_most=7)
        response: OffsetFetchResponse = await connection.send(request, version=version)
        _raise_for(response.error_code, f"offsets of group {group}")
        found = {}
        for topic in response.topics:
            for each in topic.partitions:
                _raise_for(each.error_code, f"offset of {topic.name}-{each.partition_index}")
                if each.committed_offset >= 0:
                    found[TopicPartition(topic.name, each.partition_index)] = each.committed_offset
        return found

    async def _coordinator(self, group: str) -> int:
        connection = await self._client.connection()
        version = connection.version_of(FindCoordinatorRequest, at_most=3)
        response: FindCoordinatorResponse = await connection.send(
            FindCoordinatorRequest(key=group), version=version
        )
        _raise_for(response.error_code, f"coordinator of group {group}")
        return response.node_id


def _raise_for(error_code: int, what: str) -> None:
    if error_code:
        code = ErrorCode.of(error_code)
        raise RequestError(code, f"{what}: {code.meaning}")
