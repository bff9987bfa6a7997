"""A record goes to each broker and comes back; the topic made for that is deleted in any case."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.admin.topics import NewTopic
from barnabas.cli.doctor import round_trip
from barnabas.cli.doctor.connecting import Clock, RoundTrip
from barnabas.cli.doctor.finding import NotChecked
from barnabas.cli.doctor.round_trip import LOG_APPEND_TIME, PREFIX, SAMPLES, round_trips
from barnabas.client.metadata import PartitionView, TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import NotEnoughReplicasError, TopicAuthorizationFailedError
from barnabas.structs import RecordMetadata

AHEAD_MS = 3_600_000
"""What the clocks of the brokers are ahead of ours."""
TOOK_S = (0.5, 0.25, 0.125, 0.25)
"""How long a record takes; the first one opens the connection."""
CREATE_TIME = 0


class FakeCluster:
    """Brokers 1 and 2; `leaders` are those of the topic's partitions, look by look."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.leaders: list[list[int]] = [[1, 2]]
        self.error = ErrorCode.NONE
        self.refusal: RequestError | None = None
        self.failures: dict[int, Exception] = {}
        """By partition."""
        self.garbles = False
        self.is_silent = False
        self.timestamp_type = LOG_APPEND_TIME
        self.created: list[NewTopic] = []
        self.deleted: list[str] = []
        self.looks = 0
        self.now_s = 1_000.0
        self.log: dict[TopicPartition, list[bytes]] = {}
        monkeypatch.setattr(round_trip, "create_topics", self.create_topics)
        monkeypatch.setattr(round_trip, "delete_topics", self.delete_topics)
        monkeypatch.setattr(round_trip, "describe_topics", self.describe_topics)
        monkeypatch.setattr(round_trip, "AIOKafkaProducer", lambda **_: FakeProducer(self))
        monkeypatch.setattr(round_trip, "AIOKafkaConsumer", lambda **_: FakeConsumer(self))
        monkeypatch.setattr(round_trip, "time", self)

    def time(self) -> float:
        return self.now_s

    def perf_counter(self) -> float:
        return self.now_s

    async def refresh(self) -> Any:
        return SimpleNamespace(brokers={2: None, 1: None})

    async def create_topics(self, client: Any, topics: list[NewTopic]) -> Any:
        self.created += topics
        return [SimpleNamespace(error=self.refusal)]

    async def delete_topics(self, client: Any, names: list[str]) -> None:
        self.deleted += names

    async def describe_topics(self, client: Any, names: list[str]) -> list[TopicView]:
        self.looks += 1
        leaders = self.leaders.pop(0) if len(self.leaders) > 1 else self.leaders[0]
        views = {
            index: PartitionView(index, leader, 0, (), (), (), ErrorCode.NONE)
            for index, leader in enumerate(leaders)
        }
        return [TopicView(names[0], b"i" * 16, False, views, self.error)]

    def outcomes(self, topic: str | None = None, timeout_s: float = 20.0) -> list[Any]:
        async def collected() -> list[Any]:
            client: Any = self
            options: Mapping[str, Any] = {}
            return [each async for each in round_trips(client, options, topic, timeout_s)]

        return asyncio.run(collected())


class FakeProducer:
    """Appends to the log of a partition, and says by the broker's clock when."""

    def __init__(self, cluster: FakeCluster) -> None:
        self._cluster = cluster

    async def __aenter__(self) -> FakeProducer:
        return self

    async def __aexit__(self, *_: object) -> None:
        pass

    async def send_and_wait(self, topic: str, value: bytes, partition: int) -> Any:
        if partition in self._cluster.failures:
            raise self._cluster.failures[partition]
        if self._cluster.is_silent:
            await asyncio.Event().wait()
        log = self._cluster.log.setdefault(TopicPartition(topic, partition), [])
        log.append(value)
        # The request takes as long to the broker as back.
        took_s = TOOK_S[(len(log) - 1) % len(TOOK_S)]
        stamped_s = self._cluster.now_s + took_s / 2
        self._cluster.now_s += took_s
        return RecordMetadata(
            topic,
            partition,
            TopicPartition(topic, partition),
            len(log) - 1,
            int(stamped_s * 1000) + AHEAD_MS,
            self._cluster.timestamp_type,
        )


class FakeConsumer(FakeProducer):
    """Reads what is at a position."""

    def assign(self, partitions: list[TopicPartition]) -> None:
        [self._partition] = partitions

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._offset = offset

    async def getone(self) -> Any:
        value = self._cluster.log[self._partition][self._offset]
        return SimpleNamespace(value=b"other" if self._cluster.garbles else value)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    return FakeCluster(monkeypatch)


def test_a_record_goes_to_each_broker_and_back(cluster: FakeCluster) -> None:
    """Of a topic made for it, with a partition on each broker; the fastest record counts."""
    first, clock, second, _ = cluster.outcomes()
    [new] = cluster.created
    assert new.name.startswith(PREFIX)
    assert new.replica_assignments == {0: [1], 1: [2]}
    assert first == RoundTrip(1, f"{new.name}-0", 125.0, 0.0, came_back=True)
    assert (second.broker, second.partition) == (2, f"{new.name}-1")
    assert isinstance(clock, Clock)
    assert (clock.broker, clock.uncertain_ms) == (1, 125 / 2 + 1)
    assert clock.ahead_ms == pytest.approx(AHEAD_MS, abs=1), "stamps are whole milliseconds"
    assert [len(log) for log in cluster.log.values()] == [SAMPLES, SAMPLES]
    assert cluster.deleted == [new.name]


def test_what_comes_back_must_be_what_was_sent(cluster: FakeCluster) -> None:
    cluster.garbles = True
    found = [each.came_back for each in cluster.outcomes() if isinstance(each, RoundTrip)]
    assert found == [False, False]


def test_a_given_topic_is_neither_made_nor_deleted(cluster: FakeCluster) -> None:
    """One partition of each leader is enough, and its records have the clock of the client."""
    cluster.leaders, cluster.timestamp_type = [[2, 2, 1]], CREATE_TIME
    assert [(each.broker, each.partition) for each in cluster.outcomes("t")] == [
        (1, "t-2"),
        (2, "t-0"),
    ]
    assert (cluster.created, cluster.deleted) == ([], [])


def test_leaders_of_a_new_topic_are_waited_for(cluster: FakeCluster) -> None:
    cluster.leaders = [[], [1, -1], [1, 2]]
    assert [each.broker for each in cluster.outcomes()] == [1, 1, 2, 2]
    assert cluster.looks == 3


def test_a_topic_that_may_not_be_made_is_not_deleted(cluster: FakeCluster) -> None:
    cluster.refusal = TopicAuthorizationFailedError("no")
    [found] = cluster.outcomes()
    assert isinstance(found, NotChecked)
    assert "no temporary topic can be created (no)" in found.reason
    assert cluster.deleted == []


def test_a_topic_that_may_not_be_described(cluster: FakeCluster) -> None:
    cluster.leaders, cluster.error = [[]], ErrorCode.TOPIC_AUTHORIZATION_FAILED
    [found] = cluster.outcomes("t")
    assert isinstance(found, NotChecked)
    assert found.step == "allow READ and WRITE on the topic: barnabas acls add"


def test_a_topic_that_gets_no_leader(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(round_trip, "SETTLED_S", -1.0)
    cluster.leaders = [[-1]]
    [found] = cluster.outcomes("t")
    assert isinstance(found, NotChecked)
    assert found.reason == "topic t has no leader"


def test_the_failure_of_one_broker_is_its_own(cluster: FakeCluster) -> None:
    cluster.failures = {0: NotEnoughReplicasError("too few")}
    failed, sound, _ = cluster.outcomes()
    assert (failed.broker, failed.failure, failed.step) == (1, "too few", None)
    assert sound.came_back
    assert len(cluster.deleted) == 1


def test_a_broker_that_is_silent_is_not_waited_for_for_ever(cluster: FakeCluster) -> None:
    cluster.is_silent = True
    failures = [each.failure for each in cluster.outcomes(timeout_s=0.01)]
    assert failures == ["no response within 0.01 s"] * 2
    assert len(cluster.deleted) == 1
