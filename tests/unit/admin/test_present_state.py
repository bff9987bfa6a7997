"""The present state in sentences: what is, and the reason for it as far as the diary has one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.admin import present_state
from barnabas.admin.cluster import ClusterDescription
from barnabas.admin.config_entries import ConfigEntry, ConfigSource
from barnabas.admin.groups import GroupDescription, GroupMember
from barnabas.admin.lag import Lag
from barnabas.admin.log_dirs import LogDirectory, ReplicaSize
from barnabas.admin.present_state import (
    broker_state,
    broker_texts,
    client_state,
    group_state,
    partition_state,
    topic_state,
)
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import BrokerAddress, PartitionView, TopicView
from barnabas.diary.entry import Entry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import InvalidValueError, RequestError
from barnabas.model.ids import EARLIEST, TopicPartition
from barnabas.model.request_errors import GroupIdNotFoundError, TopicAuthorizationFailedError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
CLIENT = ClusterClient("127.0.0.1:1")
NOW_MS = 1_000_000_000


def view(leader: int, replicas: tuple[int, ...], isr: tuple[int, ...]) -> PartitionView:
    return PartitionView(0, leader, 7, replicas, isr, (), ErrorCode.NONE)


class FakeCluster:
    """A cluster with topic t, in place of requests."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.partitions: tuple[PartitionView, ...] = (view(1, (1, 2), (1, 2)),)
        self.error = ErrorCode.NONE
        self.alive = (1, 2)
        self.options: Mapping[str, tuple[str, ConfigSource]] | RequestError = {}
        self.dirs: dict[int, list[LogDirectory] | RequestError] = {}
        self.ends = (0, 0)
        self.first_ms: int | None = None
        self.group: GroupDescription | RequestError = GroupIdNotFoundError("no")
        self.lags: dict[TopicPartition, Lag] = {}
        for name in (
            "describe_cluster",
            "describe_configs",
            "describe_group",
            "describe_log_dirs_of",
            "describe_topics",
            "group_offsets",
            "lag_of",
            "list_offsets",
            "timestamps_at",
        ):
            monkeypatch.setattr(present_state, name, getattr(self, name))
        monkeypatch.setattr(present_state, "_now_ms", lambda: NOW_MS)

    async def describe_cluster(self, client: Any) -> ClusterDescription:
        brokers = tuple(BrokerAddress(n, f"host{n}", 9092) for n in self.alive)
        return ClusterDescription("c", 1, brokers)

    async def describe_topics(self, client: Any, names: Any, **_: Any) -> list[TopicView]:
        views = {
            index: PartitionView(index, each.leader_id, 7, each.replicas, each.isr, (), each.error)
            for index, each in enumerate(self.partitions)
        }
        return [TopicView("t", b"i" * 16, False, views, self.error)]

    async def describe_configs(self, *_: Any) -> list[ConfigEntry]:
        if isinstance(self.options, RequestError):
            raise self.options
        return [
            ConfigEntry(name, value, source, False, False, (), None)
            for name, (value, source) in self.options.items()
        ]

    async def describe_log_dirs_of(self, *_: Any) -> dict[int, list[LogDirectory] | RequestError]:
        return self.dirs

    async def list_offsets(self, client: Any, wanted: dict[TopicPartition, int]) -> Any:
        [(key, position)] = wanted.items()
        return {key: SimpleNamespace(offset=self.ends[position != EARLIEST])}

    async def timestamps_at(self, client: Any, wanted: Any) -> dict[TopicPartition, int]:
        return {} if self.first_ms is None else dict.fromkeys(wanted, self.first_ms)

    async def describe_group(self, *_: Any) -> GroupDescription:
        if isinstance(self.group, RequestError):
            raise self.group
        return self.group

    async def group_offsets(self, *_: Any) -> dict[TopicPartition, Lag]:
        return self.lags

    async def lag_of(self, client: Any, known: Any, now_ms: int) -> dict[TopicPartition, Lag]:
        return {key: self.lags[key] for key in known}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    return FakeCluster(monkeypatch)


def entry(event: str, cause: str = "c", at_ms: int = 0, **data: Any) -> Entry:
    return Entry(0, 1, at_ms, event, "s", cause, data, 1, at_ms)


# -- brokers


def test_a_broker_that_is_well() -> None:
    assert broker_texts("h:1", 1, 0, [], [], is_controller=False) == [
        "alive at h:1; it leads 0 of its 1 replica",
        "all of its replicas are in sync",
    ]
    [text] = broker_texts("h:1", 0, 0, [], [], is_controller=True)
    assert text == "alive, the controller, at h:1; it leads 0 of its 0 replicas"


def test_of_many_partitions_a_few_are_named() -> None:
    keys = [TopicPartition("t", index) for index in range(7)]
    assert broker_texts("", 7, 0, keys, keys[:1], is_controller=False) == [
        "not alive; it has 7 replicas",
        "partitions without a leader meanwhile: t-0",
        "not in sync in 7 partitions: t-0, t-1, t-2, t-3, t-4 and 2 more",
    ]


def test_a_broker_is_described_by_its_replicas(cluster: FakeCluster) -> None:
    cluster.partitions = (view(1, (1, 2), (1,)), view(-1, (2,), ()), view(1, (1,), (1,)))
    assert asyncio.run(broker_state(CLIENT, 1, [])) == [
        "alive, the controller, at host1:9092; it leads 2 of its 2 replicas",
        "all of its replicas are in sync",
    ]
    cluster.alive = (1,)
    assert asyncio.run(broker_state(CLIENT, 2, []))[-1] == "not in sync in 2 partitions: t-0, t-1"
    with pytest.raises(InvalidValueError, match=r"no broker 3; alive are \[1\]"):
        asyncio.run(broker_state(CLIENT, 3, []))


# -- topics


def test_a_topic_and_the_options_of_its_own(cluster: FakeCluster) -> None:
    cluster.options = {
        "retention.ms": ("5", ConfigSource.TOPIC),
        "segment.ms": ("6", ConfigSource.DEFAULT),
    }
    assert asyncio.run(topic_state(CLIENT, "t", [])) == [
        "1 partition with 2 replicas each",
        "every partition has a leader, and all replicas are in sync",
        "options of its own: retention.ms=5",
    ]


def test_what_is_wrong_with_a_topic_is_told_without_its_options(cluster: FakeCluster) -> None:
    cluster.partitions = (view(1, (1, 2), (1,)), view(-1, (1, 2), (1, 2)))
    cluster.options = TopicAuthorizationFailedError("no")
    assert asyncio.run(topic_state(CLIENT, "t", [])) == [
        "2 partitions with 2 replicas each",
        "without a leader: t-1",
        "with replicas out of sync: t-0",
    ]


def test_a_topic_that_is_not_there_is_the_users_mistake(cluster: FakeCluster) -> None:
    cluster.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(InvalidValueError, match="topic t does not exist"):
        asyncio.run(topic_state(CLIENT, "t", []))
    cluster.error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(RequestError, match="topic t: "):
        asyncio.run(topic_state(CLIENT, "t", []))


# -- partitions


def test_a_replica_that_is_not_in_sync_and_why(cluster: FakeCluster) -> None:
    cluster.partitions = (view(2, (1, 2, 3), (2,)),)
    cluster.options = {"min.insync.replicas": ("2", ConfigSource.TOPIC)}
    cluster.dirs = {1: [LogDirectory("/d", None, (ReplicaSize(T0, 0, 1, False),), None, None)]}
    entries = [
        entry("isr.shrink", "b", **{"from": [1, 2, 3], "to": [1, 2]}),
        entry("isr.shrink", "a", **{"from": [1, 2], "to": [2]}),
    ]
    leader, first, third, rejected, empty = asyncio.run(partition_state(CLIENT, T0, entries))
    assert leader == (
        "broker 2 leads in epoch 7; ISR [2] of [1, 2, 3]; the preferred replica is broker 1"
    )
    assert first.startswith("broker 1 is not in sync: it is 1 record behind now; it left so: ")
    assert "isr.shrink: a" in first
    assert third.startswith("broker 3 is not in sync: the broker is not alive; it left so: ")
    assert "isr.shrink: b" in third
    assert rejected == (
        "producers with acks=all are rejected: 1 replica in sync, min.insync.replicas=2"
    )
    assert empty == "it has no records"


def test_without_a_leader_nothing_is_asked_of_its_log(cluster: FakeCluster) -> None:
    cluster.partitions = (view(-1, (1,), (1,)),)
    assert asyncio.run(partition_state(CLIENT, T0, [])) == [
        "no leader; ISR [1] of replicas [1]",
        "all replicas are in sync",
    ]


def test_a_partition_that_a_topic_does_not_have(cluster: FakeCluster) -> None:
    with pytest.raises(InvalidValueError, match="topic t has 1 partition, not partition 1"):
        asyncio.run(partition_state(CLIENT, T1, []))


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({"cleanup.policy": "compact"}, ["only compaction removes records"]),
        ({}, ["its segments stay: retention.ms and retention.bytes are not limited"]),
        ({"retention.ms": "1000"}, ["offsets 3 to 8", "from offset 3 is due, by retention.ms"]),
        ({"retention.ms": "86400000"}, ["offsets 3 to 8", "goes at 1970-01-13 13:46:35 UTC"]),
        ({"retention.bytes": "2048"}, ["offsets 3 to 8", "larger than 2.0 KiB"]),
    ],
)
def test_what_retention_will_do(
    cluster: FakeCluster, options: dict[str, str], texts: list[str]
) -> None:
    cluster.ends, cluster.first_ms = (3, 9), NOW_MS - 5_000
    cluster.options = {name: (value, ConfigSource.TOPIC) for name, value in options.items()}
    _, _, *said = asyncio.run(partition_state(CLIENT, T0, []))
    assert len(said) == len(texts)
    for sentence, words in zip(said, texts, strict=True):
        assert words in sentence


# -- groups and clients


def member(number: int, *, has: int, of: int, epoch: int) -> GroupMember:
    keys = tuple(TopicPartition("t", index) for index in range(9))
    name = f"m{number}"
    return GroupMember(name, None, "c", "/10.0.0.7", keys[:has], epoch=epoch, target=keys[:of])


def group(state: str, *members: GroupMember) -> GroupDescription:
    return GroupDescription("g", state, "consumer", "range", 2, members, assignment_epoch=5)


def state_of_group(cluster: FakeCluster, *entries: Entry) -> list[str]:
    refreshed = SimpleNamespace(partition=lambda key: key == T0 or None)

    async def refresh(topics: Any) -> Any:
        return refreshed

    client: Any = SimpleNamespace(refresh=refresh)
    return asyncio.run(group_state(client, "g", list(entries)))


def test_a_group_that_does_not_exist(cluster: FakeCluster) -> None:
    assert state_of_group(cluster) == ["group g does not exist"]


def test_who_is_awaited(cluster: FakeCluster) -> None:
    settled, behind = member(1, has=2, of=2, epoch=5), member(2, has=1, of=3, epoch=4)
    cluster.group = group("Reconciling", settled, behind)
    assert state_of_group(cluster) == [
        "Reconciling: a consumer group with 2 members, coordinated by broker 2",
        "it waits for: member m2 (10.0.0.7) has 1 of its 3 partitions, epoch 4 of 5",
        "it has no committed offsets",
    ]


def test_since_when_and_why_it_waits(cluster: FakeCluster) -> None:
    cluster.group = group("PreparingRebalance")
    began = entry("group.rebalance", "member-joined", NOW_MS - 4_000, generation=6, member="m1")
    waits = state_of_group(cluster, entry("group.stable"), began)[1]
    assert waits == (
        "it waits until all members have joined again (begun 4.0 s ago: rebalance began in "
        "generation 6: member m1 joined)"
    )


@pytest.mark.parametrize(
    ("lag", "text"),
    [
        (Lag(9, 0, 9, None), "it has read all of its 1 partition"),
        (
            Lag(1, 8, 9, 3_000),
            "it is 1 record behind in 1 partition; most in t-0: 1 record, the next of which is "
            "3.0 s old",
        ),
    ],
)
def test_how_far_a_group_is_behind(cluster: FakeCluster, lag: Lag, text: str) -> None:
    """A partition that was deleted has no lag."""
    cluster.group, cluster.lags = group("Stable"), {T0: lag, T1: Lag(0, 0, 99, 1)}
    assert state_of_group(cluster)[1:] == [text]


def test_a_client_is_throttled_until_that_has_ended() -> None:
    begun, ended = entry("throttle.begin", at_ms=0), entry("throttle.end", at_ms=5)

    def state(*entries: Entry) -> str:
        [text] = asyncio.run(client_state(CLIENT, "c", list(entries)))
        return text

    assert state(entry("reject.produce"), begun) == "throttled since 1970-01-01 00:00:00 UTC"
    assert state(ended, begun).startswith("not throttled; the last entry is ")
    assert state() == "nothing is known to have been rejected or throttled of c"
