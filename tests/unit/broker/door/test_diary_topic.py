"""The diary is read from the log here, or else from its leader."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.broker.door.diary_topic import CLIENT_ID, PARTITION, READ_BYTES, DiaryTopic
from barnabas.metadata.cluster_view import ClusterView, PartitionView, TopicView
from barnabas.metadata.topic_names import DIARY_TOPIC
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import EARLIEST, LATEST
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

TOPIC_ID = b"d" * 16
OFFSETS = {EARLIEST: 3, LATEST: 8}


class FakeLog:
    """A log from 3 to 8, of which 7 are committed."""

    log_start_offset, high_watermark = 3, 7

    def __init__(self) -> None:
        self.fails = False
        self.reads: list[tuple[int, int, int]] = []
        self.released = 0

    def read(self, offset: int, max_bytes: int, *, max_offset: int) -> Any:
        self.reads.append((offset, max_bytes, max_offset))
        return SimpleNamespace(read=self.batches, release=self.release)

    def batches(self) -> bytes:
        if self.fails:
            raise OSError("the disk is gone")
        return b"here"

    def release(self) -> None:
        self.released += 1


class FakePeers:
    """The leader, broker 2."""

    def __init__(self) -> None:
        self.code = 0
        self.records: bytes | None = b"there"
        self.names: list[str] = []
        self.asked: list[Any] = []
        self.is_closed = False

    def apart(self, client_id: str) -> FakePeers:
        self.names.append(client_id)
        return self

    async def ask(self, broker_id: int, request: Any, timeout_ms: int) -> Any:
        assert broker_id == 2
        self.asked.append(request)
        if isinstance(request, ListOffsetsRequest):
            offset = OFFSETS[request.topics[0].partitions[0].timestamp]
            listed = ListOffsetsPartitionResponse(error_code=self.code, offset=offset)
            return ListOffsetsResponse(topics=[ListOffsetsTopicResponse(partitions=[listed])])
        found = PartitionData(error_code=self.code, records=self.records)
        return FetchResponse(responses=[FetchableTopicResponse(partitions=[found])])

    def close(self) -> None:
        self.is_closed = True


class Here:
    """Broker 1, with what it knows of the topic."""

    def __init__(self, *, leader: int | None = 2, log: FakeLog | None = None) -> None:
        cluster = ClusterView()
        if leader is not None:
            view = PartitionView(leader, 0, [2], [2])
            cluster.put_topic(TopicView(DIARY_TOPIC, TOPIC_ID, [view]))
        hosted: Any = {} if log is None else {PARTITION: SimpleNamespace(log=log)}
        self.peers = FakePeers()
        peers: Any = self.peers
        self.topic = DiaryTopic(1, cluster, hosted, peers)


def test_without_a_topic_there_is_nothing() -> None:
    here = Here(leader=None)
    assert asyncio.run(here.topic.ends()) == (0, 0)
    assert here.peers.asked == []


def test_the_log_here_is_read_as_far_as_it_is_committed() -> None:
    log = FakeLog()
    here = Here(log=log)
    assert asyncio.run(here.topic.ends()) == (3, 7)
    assert asyncio.run(here.topic.read(4)) == b"here"
    assert log.reads == [(4, READ_BYTES, 7)]
    assert log.released == 1
    assert here.peers.asked == []


def test_what_was_to_be_read_is_released_also_if_that_fails() -> None:
    log = FakeLog()
    log.fails = True
    with pytest.raises(OSError, match="the disk is gone"):
        asyncio.run(Here(log=log).topic.read(4))
    assert log.released == 1


def test_the_leader_is_asked_where_there_is_no_log() -> None:
    here = Here()
    assert asyncio.run(here.topic.ends()) == (3, 8)
    assert asyncio.run(here.topic.read(5)) == b"there"
    fetch = here.peers.asked[-1]
    assert isinstance(fetch, FetchRequest)
    [topic] = fetch.topics
    assert (topic.topic, topic.topic_id) == (DIARY_TOPIC, TOPIC_ID)
    assert [each.fetch_offset for each in topic.partitions] == [5]
    here.peers.records = None
    assert asyncio.run(here.topic.read(8)) == b""


@pytest.mark.parametrize("leader", [-1, 1])
def test_a_leader_that_is_not_there_is_not_asked(leader: int) -> None:
    """Broker 1 itself is no leader that could be asked: it has no log."""
    here = Here(leader=leader)
    for work in (here.topic.ends(), here.topic.read(5)):
        with pytest.raises(RequestError, match="has no leader") as raised:
            asyncio.run(work)
        assert raised.value.code is ErrorCode.LEADER_NOT_AVAILABLE
    assert here.peers.asked == []


def test_what_the_leader_refuses_is_raised() -> None:
    here = Here()
    here.peers.code = ErrorCode.NOT_LEADER_OR_FOLLOWER
    for work in (here.topic.ends(), here.topic.read(5)):
        with pytest.raises(RequestError, match=DIARY_TOPIC) as raised:
            asyncio.run(work)
        assert raised.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_its_connections_are_its_own_and_are_closed() -> None:
    here = Here()
    assert here.peers.names == [CLIENT_ID]
    here.topic.close()
    assert here.peers.is_closed
