"""A transaction hangs if it was silent for long, and no coordinator will end it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.admin import hanging
from barnabas.admin.hanging import OPEN_STATES, find_hanging
from barnabas.admin.transactions import DescribedTransaction, ListedTransaction, OpenTransaction
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import PartitionView, TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import TransactionalIdNotFoundError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
SILENT_SINCE_MS = 1_000


def opened(partition: TopicPartition, producer: int, last_ms: int = 900) -> OpenTransaction:
    return OpenTransaction(partition, producer, 0, 0, 5, last_ms)


def described(
    producer: int, *partitions: TopicPartition, state: str = "Ongoing"
) -> DescribedTransaction:
    return DescribedTransaction("x", 1, state, producer, 0, 60_000, 0, partitions)


class FakeCluster:
    """Topic t, whose partition 0 is led by broker 1 and partition 1 by broker 2."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.error = ErrorCode.NONE
        self.opened: list[OpenTransaction] = []
        self.known: list[DescribedTransaction | RequestError] = []
        self.looked_at: list[TopicPartition] = []
        self.topics: list[Any] = []
        self.asked: list[tuple[tuple[str, ...], list[int]]] = []
        for name in ("describe_topics", "open_transactions", "list_transactions"):
            monkeypatch.setattr(hanging, name, getattr(self, name))
        monkeypatch.setattr(hanging, "describe_transactions", self.describe_transactions)

    async def describe_topics(self, client: Any, names: list[str] | None) -> list[TopicView]:
        self.topics.append(names)
        views = {
            index: PartitionView(index, index + 1, 0, (1, 2), (1, 2), (), ErrorCode.NONE)
            for index in (1, 0)
        }
        return [TopicView("t", b"i" * 16, False, views, self.error)]

    async def open_transactions(
        self, client: Any, partitions: list[TopicPartition]
    ) -> list[OpenTransaction]:
        self.looked_at = partitions
        return [each for each in self.opened if each.partition in partitions]

    async def list_transactions(
        self, client: Any, states: tuple[str, ...], producers: list[int]
    ) -> list[ListedTransaction]:
        self.asked.append((states, producers))
        return [ListedTransaction(f"x{n}", 0, "Ongoing", 1) for n in range(len(self.known))]

    async def describe_transactions(
        self, client: Any, names: list[str]
    ) -> dict[str, DescribedTransaction | RequestError]:
        return dict(zip(names, self.known, strict=True))


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    return FakeCluster(monkeypatch)


def found(topic: str | None = None, broker: int | None = None) -> list[OpenTransaction]:
    return asyncio.run(find_hanging(ClusterClient("127.0.0.1:1"), topic, broker, SILENT_SINCE_MS))


def test_only_the_silent_ones_are_asked_about(cluster: FakeCluster) -> None:
    cluster.opened = [opened(T0, 8, 1_000), opened(T1, 7), opened(T0, 7), opened(T0, 9, 1_001)]
    assert [(each.partition, each.producer_id) for each in found()] == [(T0, 8), (T1, 7), (T0, 7)]
    assert cluster.asked == [(OPEN_STATES, [7, 8])]


def test_coordinators_are_not_asked_if_none_is_silent(cluster: FakeCluster) -> None:
    cluster.opened = [opened(T0, 7, 1_001)]
    assert found() == []
    assert cluster.asked == []


@pytest.mark.parametrize(
    ("known", "hangs"),
    [
        (described(7, T1, T0), False),
        (described(7, T0, state="PrepareAbort"), False),
        (described(7, T0, state="CompleteCommit"), True),
        (described(7, T1), True),
        (described(8, T0), True),
        (TransactionalIdNotFoundError("gone"), True),
    ],
)
def test_what_a_coordinator_will_end_does_not_hang(
    cluster: FakeCluster, known: DescribedTransaction | RequestError, hangs: bool
) -> None:
    cluster.opened, cluster.known = [opened(T0, 7)], [known]
    assert bool(found()) is hangs


def test_one_topic_and_one_leader(cluster: FakeCluster) -> None:
    found()
    assert cluster.looked_at == [T0, T1]
    found("t", 2)
    assert cluster.looked_at == [T1]
    assert cluster.topics == [None, ["t"]]


def test_a_topic_that_does_not_exist_is_named(cluster: FakeCluster) -> None:
    cluster.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(RequestError, match="topic 't'"):
        found("t")
