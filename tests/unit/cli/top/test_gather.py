"""A sample has all that could be read, and names what could not, with the reason."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from tests.unit.cli.top.samples import BROKERS, ORDERS, topic

from barnabas.admin.cluster import ClusterDescription
from barnabas.admin.group_offsets import CommittedOffset
from barnabas.admin.log_dirs import LogDirectory, ReplicaSize
from barnabas.admin.offsets import EARLIEST, FoundOffset
from barnabas.cli.top import gather
from barnabas.cli.top.endpoints import Endpoint
from barnabas.cli.top.gather import TIMED_GROUPS, TIMED_PARTITIONS, Gatherer
from barnabas.cli.top.page import read_page
from barnabas.cli.top.sample import Sample
from barnabas.client.metadata import TopicView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import (
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    NetworkExceptionError,
)
from barnabas.wire.messages.list_groups import ListedGroup, ListGroupsResponse

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
PAGE = read_page("")
GIVEN = Endpoint(1, "http://one/metrics")


class FakeCluster:
    """Brokers 1 and 2 with topic orders; what is an exception is raised, or is one's outcome."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.topics: list[TopicView] = [ORDERS]
        self.is_kraft = False
        self.ends: dict[TopicPartition, Any] = {P0: 10, P1: 20}
        self.starts: dict[TopicPartition, int] = {}
        self.groups: dict[int, Any] = {1: {"g": "Stable"}, 2: {}}
        self.committed: dict[str, Any] = {}
        self.dirs: Any = {}
        self.times: dict[TopicPartition, int] = {}
        self.timed: list[dict[TopicPartition, int]] = []
        self.pages: dict[str, Any] = {}
        self.looked_for_endpoints = 0
        for name in (
            "ask_brokers",
            "describe_cluster",
            "describe_quorum",
            "describe_log_dirs_of",
            "describe_topics",
            "fetch_page",
            "find_offsets",
            "known_endpoints",
            "list_group_offsets",
            "timestamps_at",
        ):
            monkeypatch.setattr(gather, name, getattr(self, name))

    async def connection(self) -> Any:
        return SimpleNamespace(versions=SimpleNamespace(supports=lambda key: self.is_kraft))

    async def describe_cluster(self, client: Any) -> ClusterDescription:
        return ClusterDescription("c1", 2, BROKERS)

    async def describe_quorum(self, client: Any, **_: Any) -> Any:
        return SimpleNamespace(leader_id=7)

    async def describe_topics(self, client: Any, names: None) -> list[TopicView]:
        return self.topics

    async def find_offsets(self, client: Any, wanted: dict[TopicPartition, int], **_: Any) -> Any:
        found = {
            key: (self.starts.get(key, 0) if position == EARLIEST else self.ends[key])
            for key, position in wanted.items()
        }
        return {
            key: FoundOffset(offset, -1, 0) if isinstance(offset, int) else offset
            for key, offset in found.items()
        }

    async def ask_brokers(self, client: Any, brokers: list[int], ask: Any, **_: Any) -> Any:
        answers = {}
        for broker in brokers:
            answer = self.groups[broker]
            if not isinstance(answer, Exception):
                answer = await ask(broker, FakeConnection(answer))
            answers[broker] = answer
        return answers

    async def list_group_offsets(self, client: Any, groups: Any, **_: Any) -> Any:
        return {
            name: {key: CommittedOffset(offset, 0, "") for key, offset in found.items()}
            if isinstance(found, dict)
            else found
            for name, found in self.committed.items()
        }

    async def timestamps_at(self, client: Any, first: dict[TopicPartition, int]) -> Any:
        self.timed.append(first)
        return {key: self.times[key] for key in first if key in self.times}

    async def describe_log_dirs_of(self, *_: Any, **__: Any) -> Any:
        if isinstance(self.dirs, Exception):
            raise self.dirs
        return self.dirs

    async def known_endpoints(self, client: Any, brokers: Any) -> list[Endpoint]:
        self.looked_for_endpoints += 1
        return []

    def fetch_page(self, url: str, timeout_s: float) -> Any:
        page = self.pages[url]
        if isinstance(page, Exception):
            raise page
        return page

    def sample(self, *endpoints: Endpoint) -> Sample:
        client: Any = self
        return asyncio.run(Gatherer(client, endpoints).sample())


class FakeConnection:
    """A broker that coordinates some groups, or responds with an error code."""

    def __init__(self, states: dict[str, str] | ErrorCode) -> None:
        self._states = states

    async def send(self, request: Any) -> ListGroupsResponse:
        if isinstance(self._states, ErrorCode):
            return ListGroupsResponse(error_code=self._states)
        groups = [
            ListedGroup(group_id=name, group_state=state) for name, state in self._states.items()
        ]
        return ListGroupsResponse(groups=groups)


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> FakeCluster:
    return FakeCluster(monkeypatch)


def test_a_cluster_that_says_everything(cluster: FakeCluster) -> None:
    cluster.committed = {"g": {P0: 10, P1: 15, TopicPartition("gone", 0): -1}}
    cluster.starts = {P1: 3}
    cluster.times = {P1: 0}
    sample = cluster.sample()
    assert (sample.cluster_id, sample.controller_id, sample.missing) == ("c1", 2, ())
    assert sample.ends == {P0: 10, P1: 20}
    assert sample.round_trips_ms.keys() == {1, 2}
    group = sample.groups["g"]
    assert (group.state, group.committed, group.starts) == ("Stable", {P0: 10, P1: 15}, {P1: 3})
    assert cluster.timed == [{P1: 15}], "where it lags, from the next record on"
    assert group.waiting is not None
    assert not group.waiting.at_least


def test_the_controller_of_kraft_is_the_leader_of_the_quorum(cluster: FakeCluster) -> None:
    cluster.is_kraft = True
    assert cluster.sample().controller_id == 7


def test_partitions_without_a_live_leader_are_not_asked_for(cluster: FakeCluster) -> None:
    cluster.topics = [topic("orders", (1, (1,), (1,)), (3, (3,), (3,)))]
    assert cluster.sample().ends == {P0: 10}


def test_only_the_leaders_log_has_a_size(cluster: FakeCluster) -> None:
    def held(size: int, *, is_future: bool = False) -> LogDirectory:
        replicas = tuple(ReplicaSize(key, size, 0, is_future) for key in (P0, P1))
        return LogDirectory("/d", None, replicas, None, None)

    cluster.dirs = {1: [held(100), held(70, is_future=True)], 2: [held(90)]}
    assert cluster.sample().sizes == {P0: 100, P1: 90}


def test_what_cannot_be_read_is_named_once_and_the_rest_is_there(cluster: FakeCluster) -> None:
    cluster.ends[P1] = NetworkExceptionError("no way")
    cluster.groups = {1: ErrorCode.CLUSTER_AUTHORIZATION_FAILED, 2: NetworkExceptionError("gone")}
    cluster.dirs = ClusterAuthorizationFailedError("not\n you")
    cluster.pages = {GIVEN.url: OSError("unreachable")}
    cluster.committed = {"a": GroupAuthorizationFailedError("not a")}
    sample = cluster.sample(GIVEN)
    assert (sample.ends, sample.sizes, sample.groups, sample.pages) == ({P0: 10}, {}, {}, {})
    assert sample.round_trips_ms.keys() == {1}
    reasons = dict(each.split(": ", 1) for each in sample.missing)
    assert reasons.pop("groups").endswith("(CLUSTER_AUTHORIZATION_FAILED)")
    assert reasons == {
        "broker 2": "gone (NETWORK_EXCEPTION)",
        "positions of groups": "not a (GROUP_AUTHORIZATION_FAILED)",
        "offsets": "no way (NETWORK_EXCEPTION)",
        "sizes of logs": "not you (CLUSTER_AUTHORIZATION_FAILED)",
        f"metrics at {GIVEN.url}": "unreachable",
    }


def test_the_age_of_records_is_read_where_the_lag_is_largest(cluster: FakeCluster) -> None:
    """Each age is a fetch: those of the groups and partitions with the most lag are read."""
    wide = topic("orders", *((1, (1,), (1,)) for _ in range(TIMED_PARTITIONS + 1)))
    keys = [TopicPartition("orders", index) for index in range(TIMED_PARTITIONS + 1)]
    names = [f"g{number:02}" for number in range(TIMED_GROUPS + 1)]
    cluster.topics = [wide]
    cluster.ends = {key: 1_000 + index for index, key in enumerate(keys)}
    cluster.times = dict.fromkeys(keys, 0)
    cluster.groups = {1: dict.fromkeys(names, "Stable"), 2: {}}
    cluster.committed = {name: dict.fromkeys(keys, n) for n, name in enumerate(names)}
    sample = cluster.sample()
    assert [name for name in names if sample.groups[name].waiting is None] == names[-1:]
    assert all(keys[0] not in first for first in cluster.timed), "it lags least there"
    assert len(cluster.timed) == TIMED_GROUPS
    waiting = sample.groups[names[0]].waiting
    assert waiting is not None
    assert waiting.at_least


def test_given_endpoints_are_not_looked_for(cluster: FakeCluster) -> None:
    cluster.pages = {GIVEN.url: PAGE}
    assert cluster.sample(GIVEN).pages == {1: PAGE}
    assert cluster.looked_for_endpoints == 0


def test_endpoints_are_looked_for_once(cluster: FakeCluster) -> None:
    client: Any = cluster

    async def twice() -> None:
        gatherer = Gatherer(client, [])
        await gatherer.sample()
        await gatherer.sample()

    asyncio.run(twice())
    assert cluster.looked_for_endpoints == 1
