"""Partitions are fetched through failures that pass, and not through others."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.network.scripted_broker import CLOSE, Closing, ScriptedBroker

from barnabas.cli.fetcher import Fetcher
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import NetworkError
from barnabas.client.retry import Backoff
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.records.builder import build_batch
from barnabas.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
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
        self.broker = ScriptedBroker({MetadataRequest: self.metadata, FetchRequest: self.fetch})

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


def fetched(leader: Leader, start: int, end: int, *, patience_ms: float = 60_000) -> list[int]:
    async def conversation() -> list[int]:
        values: list[int] = []
        async with (
            leader.broker,
            ClusterClient([leader.broker.address], reconnect_backoff_ms=(1, 2)) as client,
        ):
            await client.refresh(["t"])
            fetcher = Fetcher(
                client,
                {T0: start},
                Backoff(lambda: 0.5, initial_ms=1, max_ms=2),
                ends={T0: end},
                patience_ms=patience_ms,
                moved=lambda *_: None,
            )
            async for delivery in fetcher.deliveries():
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
    """A topic may be deleted and made anew while a poll is under way."""
    leader = Leader()
    leader.stale_id = bytes(reversed(ID))
    assert fetched(leader, 0, 4) == list(range(4))


def test_a_final_failure_ends_it() -> None:
    with pytest.raises(RequestError, match="ACL denies topic"):
        fetched(Leader(ErrorCode.TOPIC_AUTHORIZATION_FAILED), 0, 10)


@pytest.mark.parametrize("failure", [ErrorCode.NOT_LEADER_OR_FOLLOWER, CLOSE], ids=str)
def test_patience_ends(failure: Any) -> None:
    with pytest.raises((RequestError, NetworkError)):
        fetched(Leader(*[failure] * 10_000), 0, 10, patience_ms=30)
