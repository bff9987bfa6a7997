"""What is asked of the brokers: partitions are sorted by what is wrong with them, and why."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from barnabas.admin.config_entries import ConfigEntry, ConfigSource, Resource
from barnabas.admin.log_dirs import LogDirectory
from barnabas.cli.doctor import cluster_probes
from barnabas.cli.doctor.cluster_checks import LogDir, SameVersions
from barnabas.cli.doctor.cluster_probes import cluster_checks, partition_checks
from barnabas.cli.doctor.finding import Check, NotChecked
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import BrokerAddress, PartitionView, TopicView
from barnabas.diary.entry import Entry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.request_errors import ClusterAuthorizationFailedError


def topic(name: str, *partitions: tuple[int, tuple[int, ...], tuple[int, ...]]) -> TopicView:
    """Return a topic; each partition has its leader, replicas and ISR."""
    views = {
        index: PartitionView(index, leader, 0, replicas, isr, (), ErrorCode.NONE)
        for index, (leader, replicas, isr) in enumerate(partitions)
    }
    return TopicView(name, b"i" * 16, False, views, ErrorCode.NONE)


def judged(*topics: TopicView, min_isr: int = 1, entries: tuple[Entry, ...] = ()) -> list[Any]:
    names = {each.name: min_isr for each in topics}
    return partition_checks(topics, [1, 2], names, entries)


def named(sick: Any) -> list[str]:
    return [str(each.partition) for each in sick]


def test_a_partition_counts_once_as_the_worst_that_it_is() -> None:
    mixed = topic(
        "t",
        (1, (1, 2), (1, 2)),
        (-1, (1, 2), ()),
        (3, (3, 1), (3,)),  # its leader is not alive
        (1, (1, 2), (1,)),
        (1, (1, 2, 3), (1, 2)),
    )
    leaders, isr, replication = judged(mixed, min_isr=2)
    assert (leaders.partitions, named(leaders.leaderless)) == (5, ["t-1", "t-2"])
    assert named(isr.under) == ["t-3"]
    assert named(isr.at) == ["t-0", "t-4"]
    assert named(replication.lagging) == ["t-1", "t-2", "t-3", "t-4"]
    assert (replication.brokers, replication.single) == (2, ())


def test_single_replicas_are_named_by_topic_and_are_not_at_min_isr() -> None:
    _, isr, replication = judged(topic("one", (1, (1,), (1,))), topic("two", (1, (1, 2), (1, 2))))
    assert replication.single == ("one",)
    assert (isr.under, isr.at) == ((), ())


def test_the_newest_reason_of_the_diary_is_given() -> None:
    def entry(number: int, event: str, subject: str, to: list[int]) -> Entry:
        return Entry(number, 1, 0, event, subject, "broker-gone", {"from": [1, 2], "to": to})

    entries = (
        entry(3, "isr.expand", "t-0", [1, 2]),
        entry(2, "partition.offline", "t-1", [1]),
        entry(1, "partition.offline", "t-0", [1]),
        entry(0, "isr.shrink", "t-0", [1]),
    )
    leaders, _, _ = judged(topic("t", (-1, (1,), ())), entries=entries)
    [sick] = leaders.leaderless
    assert sick.why is not None
    assert sick.why.startswith("partition.offline"), "not the shrinking before it"


class FakeCluster:
    """Two brokers; the second one may say neither its directories nor its options."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.brokers = (BrokerAddress(1, "one", 9092), BrokerAddress(2, "two", 9092))
        self.refusal = ClusterAuthorizationFailedError("no")
        for name, answer in (
            ("describe_cluster", SimpleNamespace(brokers=self.brokers)),
            ("describe_topics", [topic("t", (1, (1,), (1,)))]),
            ("min_isr_of", {"t": 1}),
            ("api_versions", SimpleNamespace(ranges={3: "0 to 12", 9_999: "0"})),
            ("describe_log_dirs_of", {1: self.directories(), 2: self.refusal}),
        ):
            monkeypatch.setattr(cluster_probes, name, self.answering(answer))
        monkeypatch.setattr(cluster_probes, "read_diary", self.no_diary)
        monkeypatch.setattr(cluster_probes, "describe_resources", self.options)

    def directories(self) -> list[LogDirectory]:
        return [LogDirectory("/a", None, (), 100, 50), LogDirectory("/b", self.refusal, (), 1, 1)]

    def answering(self, answer: Any) -> Any:
        async def respond(*_: Any) -> Any:
            return answer

        return respond

    async def no_diary(self, *_: Any) -> list[Entry]:
        raise self.refusal

    async def options(
        self, client: Any, resources: dict[Resource, None]
    ) -> dict[Resource, list[ConfigEntry] | RequestError]:
        first, second = resources
        entry = ConfigEntry("num.partitions", "1", ConfigSource.DEFAULT, False, False, (), None)
        return {first: [entry], second: self.refusal}


def test_what_a_broker_refuses_is_not_checked_and_the_rest_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    FakeCluster(monkeypatch)

    async def collected() -> list[Check]:
        return [check async for check in cluster_checks(ClusterClient("127.0.0.1:1"))]

    checks = asyncio.run(collected())
    skipped = [each for each in checks if isinstance(each, NotChecked)]
    assert [(each.check, each.about) for each in skipped] == [
        ("disk space", "broker 2"),
        ("options", "broker 2"),
    ]
    sound, broken = (each for each in checks if isinstance(each, LogDir))
    assert (sound.path, sound.total_bytes, sound.failure) == ("/a", 100, None)
    assert broken.failure == "offline: no"
    [versions] = (each for each in checks if isinstance(each, SameVersions))
    assert versions.apis[2] == {"Metadata": "0 to 12", "API 9999": "0"}
