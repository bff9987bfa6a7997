"""Offsets are found by time and by name, also at old brokers; records are deleted up to one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.network.scripted_broker import ScriptedBroker

from barnabas.admin.offsets import (
    EARLIEST,
    HIGH_WATERMARK,
    LATEST,
    FoundOffset,
    delete_records,
    list_offsets,
)
from barnabas.admin.topics import NewTopic, create_topics
from barnabas.client.cluster_client import ClusterClient
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

T0 = TopicPartition("t", 0)


def found_by(answer: ListOffsetsPartitionResponse, highest: int) -> tuple[Any, ListOffsetsRequest]:
    """Ask a leader that serves ListOffsets up to a version, and also return what it was asked."""

    async def conversation() -> tuple[Any, Any]:
        def metadata(request: MetadataRequest, version: int) -> MetadataResponse:
            partition = MetadataResponsePartition(partition_index=0, leader_id=1)
            host, port = broker.address
            return MetadataResponse(
                brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)],
                topics=[MetadataResponseTopic(name="t", partitions=[partition])],
            )

        def offsets(request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
            return ListOffsetsResponse(
                topics=[ListOffsetsTopicResponse(name="t", partitions=[answer])]
            )

        script = {MetadataRequest: metadata, ListOffsetsRequest: offsets}
        async with (
            ScriptedBroker(script, {ListOffsetsRequest: (0, highest)}) as broker,
            ClusterClient([broker.address]) as client,
        ):
            found = await list_offsets(client, {T0: LATEST}, committed=True)
            return found, broker.asked(ListOffsetsRequest)[0].message

    return asyncio.run(conversation())


def test_a_new_broker_tells_offset_time_and_epoch() -> None:
    answer = ListOffsetsPartitionResponse(offset=7, timestamp=5, leader_epoch=3)
    found, request = found_by(answer, 9)
    assert found == {T0: FoundOffset(7, 5, 3)}
    assert (request.replica_id, request.isolation_level) == (-1, 1)


def test_the_oldest_version_has_a_list_and_no_isolation() -> None:
    found, request = found_by(ListOffsetsPartitionResponse(old_style_offsets=[7]), 0)
    assert found == {T0: FoundOffset(7, -1, -1)}
    assert request.isolation_level == 0


def test_a_failure_names_the_partition() -> None:
    with pytest.raises(RequestError, match=r"^t-0: "):
        found_by(ListOffsetsPartitionResponse(error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED), 9)


def test_a_real_broker_and_an_empty_log(barnabas_bootstrap: str) -> None:
    partition = TopicPartition("empty", 0)

    async def conversation() -> None:
        async with ClusterClient(barnabas_bootstrap) as client:
            [created] = await create_topics(client, [NewTopic("empty", 1, 1)])
            assert created.error is None
            for timestamp, offset in ((EARLIEST, 0), (LATEST, 0), (1, -1)):
                found = await list_offsets(client, {partition: timestamp})
                assert found[partition].offset == offset
            assert await delete_records(client, {partition: HIGH_WATERMARK}) == {partition: 0}
            outcome = (await delete_records(client, {partition: 5}))[partition]
            assert isinstance(outcome, RequestError)
            assert outcome.code is ErrorCode.OFFSET_OUT_OF_RANGE

    asyncio.run(conversation())
