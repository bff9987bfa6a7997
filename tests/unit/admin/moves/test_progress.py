"""How far a reassignment is: in one word, as a share, and as what brokers report."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.admin.log_dirs import LogDirectory, ReplicaSize
from barnabas.admin.moves import progress as module
from barnabas.admin.moves.progress import Progress, in_progress, look
from barnabas.admin.reassignments import Reassignment
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.metadata import PartitionView, TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import NetworkExceptionError

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def progress(replicas: tuple[int, ...], *, moving: bool = False, copied: int = 0) -> Progress:
    """Return the progress of a partition of 300 bytes on its way to brokers 2 and 3."""
    return Progress(T0, replicas, (2, 3), moving, copied, 300)


@pytest.mark.parametrize(
    ("at", "state", "may_be_late"),
    [
        (progress((2, 3)), "done", False),
        (progress((3, 2)), "elsewhere", True),
        (progress((1, 2, 3)), "elsewhere", True),
        (progress((1, 2)), "elsewhere", False),
        (progress((1, 2, 3), moving=True), "moving", False),
        (progress((2, 3), moving=True), "moving", False),
    ],
)
def test_states(at: Progress, state: str, may_be_late: bool) -> None:
    assert (at.state, at.may_be_late) == (state, may_be_late)


def test_the_share_is_rounded_down_and_only_of_what_moves() -> None:
    assert progress((1, 2, 3), moving=True, copied=299).share_text == "99%"
    assert progress((1, 2, 3), copied=299).share_text is None
    assert Progress(T0, (1, 2), (2,), True).share_text == "0%", "an empty partition"


class FakeCluster:
    """What a cluster would respond; `moving` is given round by round, the last one for ever."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.moving: list[dict[TopicPartition, Reassignment]] = [{}]
        self.replicas: list[dict[int, tuple[int, ...]]] = [{}]
        self.error = ErrorCode.NONE
        self.sizes: dict[int, list[LogDirectory] | RequestError] = {}
        self.looks = 0
        monkeypatch.setattr(module, "list_partition_reassignments", self._moving)
        monkeypatch.setattr(module, "describe_topics", self._topics)
        monkeypatch.setattr(module, "describe_log_dirs_of", self._sizes)
        monkeypatch.setattr(module, "PAUSE_S", 0)

    async def _moving(self, *_: Any) -> dict[TopicPartition, Reassignment]:
        self.looks += 1
        return self.moving.pop(0) if len(self.moving) > 1 else self.moving[0]

    async def _topics(self, client: Any, names: list[str], to: Any) -> list[TopicView]:
        replicas = self.replicas.pop(0) if len(self.replicas) > 1 else self.replicas[0]
        views = {
            index: PartitionView(index, held[0], 0, held, held, (), ErrorCode.NONE)
            for index, held in replicas.items()
        }
        return [TopicView(name, b"i" * 16, False, views, self.error) for name in names]

    async def _sizes(self, *_: Any) -> dict[int, list[LogDirectory] | RequestError]:
        return self.sizes


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    return FakeCluster(monkeypatch)


def looked(plan: dict[TopicPartition, tuple[int, ...]]) -> list[Progress]:
    return asyncio.run(look(ClusterClient("127.0.0.1:1"), plan))


def held(size: int, *, is_future: bool = False) -> LogDirectory:
    return LogDirectory("/d", None, (ReplicaSize(T0, size, 0, is_future),), None, None)


def test_bytes_are_summed_over_the_new_replicas(cluster: FakeCluster) -> None:
    """A copy counts no more than the whole; another directory's copy and silent brokers do not."""
    cluster.moving = [{T0: Reassignment((1, 2, 3, 4), (2, 3, 4), (1,))}]
    cluster.replicas = [{0: (1, 2, 3, 4)}]
    cluster.sizes = {
        1: [held(100)],
        2: [held(40), held(70, is_future=True)],
        3: [held(120)],
        4: NetworkExceptionError("gone"),
    }
    [found] = asyncio.run(in_progress(ClusterClient("127.0.0.1:1")))
    assert found == Progress(T0, (1, 2, 3, 4), (2, 3, 4), True, 140, 300, (2, 3, 4))
    assert looked({T0: (2, 3, 4)}) == [found]


def test_what_may_just_have_ended_is_looked_at_again(cluster: FakeCluster) -> None:
    cluster.replicas = [{0: (1, 2)}, {0: (1, 2)}, {0: (2,)}]
    assert [each.state for each in looked({T0: (2,)})] == ["done"]
    assert cluster.looks == 3


def test_what_is_elsewhere_is_not_waited_for_for_ever(cluster: FakeCluster) -> None:
    cluster.replicas = [{0: (1, 2)}]
    assert [each.state for each in looked({T0: (2,)})] == ["elsewhere"]
    assert cluster.looks == 1 + module.LOOKS_AGAIN


def test_what_does_not_exist_is_named(cluster: FakeCluster) -> None:
    cluster.replicas = [{0: (1,)}]
    with pytest.raises(RequestError, match="partition t-1 does not exist"):
        looked({T1: (1,)})
    cluster.error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    with pytest.raises(RequestError, match="topic 't'"):
        looked({T0: (1,)})
