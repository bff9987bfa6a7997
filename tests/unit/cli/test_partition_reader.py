"""Partitions are read through failures that pass, up to their timeout, and not through others."""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE, Closing, ScriptedBroker

from barnabas.cli.command_config import CommandConfig
from barnabas.cli.partition_reader import PartitionReader, reader_options
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import LogTruncationError, NetworkError
from barnabas.consumer.fetch_buffer import FetchBuffer
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition
from barnabas.records.builder import build_batch
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
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
ID = bytes(range(16))


class Leader:
    """A scripted leader that holds the numbers 0 to 9 and meets failures before it serves them."""

    def __init__(self, *failures: ErrorCode | Closing, topic_id: bytes = ID) -> None:
        self.failures = list(failures)
        self.topic_id = topic_id
        self.served = True
        self.stale_id: bytes | None = None
        """The id of which the next answer tells, instead of the topic's."""
        self.offsets = {EARLIEST: 0, LATEST: 10}
        self.broker = ScriptedBroker(
            {
                MetadataRequest: self.metadata,
                FetchRequest: self.fetch,
                ListOffsetsRequest: self.list_offsets,
            }
        )

    def metadata(self, request: MetadataRequest, version: int) -> MetadataResponse:
        host, port = self.broker.address
        partition = MetadataResponsePartition(partition_index=0, leader_id=1 if self.served else -1)
        self.served = True
        return MetadataResponse(
            brokers=[MetadataResponseBroker(node_id=1, host=host, port=port)],
            topics=[
                MetadataResponseTopic(name="t", topic_id=self.topic_id, partitions=[partition])
            ],
        )

    def list_offsets(self, request: ListOffsetsRequest, version: int) -> ListOffsetsResponse:
        [topic] = request.topics
        [asked] = topic.partitions
        found = ListOffsetsPartitionResponse(
            partition_index=0, offset=self.offsets[asked.timestamp]
        )
        return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(name="t", partitions=[found])])

    def fetch(self, request: FetchRequest, version: int) -> FetchResponse | Closing:
        [topic] = request.topics
        [wanted] = topic.partitions
        assert topic.topic_id == self.topic_id if version >= 13 else topic.topic == "t"
        failure = self.failures.pop(0) if self.failures else ErrorCode.NONE
        if isinstance(failure, Closing):
            return failure
        data = PartitionData(partition_index=0, error_code=failure, high_watermark=10)
        if failure is ErrorCode.NONE:
            start = wanted.fetch_offset // 4 * 4  # batches of four
            rows = [(0, None, b"%d" % number) for number in range(start, min(start + 4, 10))]
            data.records = build_batch(rows, base_offset=start)
        answered_id, self.stale_id = self.stale_id or self.topic_id, None
        return FetchResponse(
            responses=[FetchableTopicResponse(topic="t", topic_id=answered_id, partitions=[data])]
        )


Move = tuple[TopicPartition, int, int]


def fetched(
    leader: Leader, start: int, end: int, *, timeout: float = 60, moves: list[Move] | None = None
) -> list[int]:
    seen: list[Move] = [] if moves is None else moves

    async def conversation() -> list[int]:
        values: list[int] = []
        async with (
            leader.broker,
            ClusterClient([leader.broker.address], reconnect_backoff_ms=(1, 2)) as client,
        ):
            arguments = argparse.Namespace(
                bootstrap=str(leader.broker.address),
                command_config=CommandConfig(None),
                isolation="uncommitted",
                timeout=timeout,
            )
            reader = PartitionReader(
                client,
                reader_options(arguments),
                {T0: start},
                ends={T0: end},
                moved=lambda *move: seen.append(move),
            )
            async for delivery in reader.deliveries():
                values += [int(record.value or b"") for record in delivery.records]
        return values

    return asyncio.run(conversation())


@pytest.mark.parametrize("topic_id", [ID, bytes(16)])
def test_records_come_once_each_from_start_to_end(topic_id: bytes) -> None:
    assert fetched(Leader(topic_id=topic_id), 2, 10) == list(range(2, 10))
    assert fetched(Leader(topic_id=topic_id), 0, 5) == list(range(5))


def test_an_empty_range_asks_nothing() -> None:
    leader = Leader()
    assert fetched(leader, 5, 5) == []
    assert leader.broker.asked(FetchRequest) == []


@pytest.mark.parametrize(
    "failure",
    [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_LEADER_EPOCH, CLOSE],
    ids=str,
)
def test_a_passing_failure_is_passed(failure: Any) -> None:
    leader = Leader(failure, failure)
    assert fetched(leader, 0, 10) == list(range(10))
    assert leader.failures == []


def test_a_leader_is_waited_for() -> None:
    leader = Leader()
    leader.served = False
    assert fetched(leader, 0, 4) == list(range(4))


def test_an_answer_about_a_topic_that_is_gone_is_passed() -> None:
    """A topic may be deleted and created again while a fetch is in progress."""
    leader = Leader()
    leader.stale_id = bytes(reversed(ID))
    assert fetched(leader, 0, 4) == list(range(4))


@pytest.mark.parametrize(("start", "first", "last", "moved"), [(2, 4, 10, 4), (8, 0, 5, 5)])
def test_an_offset_outside_of_the_log_is_moved_to_the_nearer_end(
    start: int, first: int, last: int, moved: int
) -> None:
    leader = Leader(ErrorCode.OFFSET_OUT_OF_RANGE)
    leader.offsets = {EARLIEST: first, LATEST: last}
    moves: list[Move] = []
    assert fetched(leader, start, 10, moves=moves) == list(range(moved, 10))
    assert moves == [(T0, start, moved)]


def test_an_offset_that_the_log_has_again_is_not_reported() -> None:
    moves: list[Move] = []
    leader = Leader(ErrorCode.OFFSET_OUT_OF_RANGE)
    assert fetched(leader, 2, 10, moves=moves) == list(range(2, 10))
    assert moves == []


def test_a_truncated_log_is_read_on(monkeypatch: pytest.MonkeyPatch) -> None:
    collect, truncations = FetchBuffer.collect, [T0]

    def truncated_once(self: FetchBuffer, *arguments: Any) -> Any:
        if truncations:
            raise LogTruncationError({truncations.pop(): None})
        return collect(self, *arguments)

    monkeypatch.setattr(FetchBuffer, "collect", truncated_once)
    leader = Leader()
    leader.offsets[LATEST] = 6
    moves: list[Move] = []
    assert fetched(leader, 8, 10, moves=moves) == list(range(6, 10))
    assert moves == [(T0, 8, 6)]


def test_a_final_failure_ends_it() -> None:
    with pytest.raises(RequestError, match="access to the topic is denied"):
        fetched(Leader(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 0, 10)


@pytest.mark.parametrize("failure", [ErrorCode.NOT_LEADER_OR_FOLLOWER, CLOSE], ids=str)
def test_a_failure_that_lasts_is_raised_after_the_timeout(failure: Any) -> None:
    with pytest.raises((RequestError, NetworkError)):
        fetched(Leader(*[failure] * 10_000), 0, 10, timeout=0.3)
