"""`barnabas elect`, and what describes a cluster in which brokers come and go."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.client.cluster_client import ClusterClient
from barnabas.errors import BrokerNotAvailableError
from barnabas.testing import Cluster
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponsePartition,
)


def poll(condition: Callable[[], bool], within_s: float = 30) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it does not come"


def partitions(trio: Any, topic: str) -> list[dict[str, Any]]:
    [document] = json.loads(trio("topics", "describe", topic, "--json").out)
    return document["partitions"]


def settled(
    cluster: Cluster, topic: str, holds: Callable[[MetadataResponsePartition], bool]
) -> None:
    """Wait until something holds for every partition of a topic, as each broker knows it.

    Commands ask any broker, and one may learn of a change before another.
    """

    def is_known() -> bool:
        try:
            return all(holds(each) for each in asyncio.run(_known(cluster.bootstrap, topic)))
        except BrokerNotAvailableError:  # it has left since the first answer
            return False

    poll(is_known)


async def _known(bootstrap: str, topic: str) -> list[MetadataResponsePartition]:
    async with ClusterClient(bootstrap) as client:
        await client.retrying(client.refresh)
        found = []
        for node in client.cluster.brokers:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=topic)])
            answer = await client.retrying(partial(client.send, request, node))
            found += answer.topics[0].partitions
        return found


@pytest.fixture
def led(trio: Any, request: pytest.FixtureRequest) -> str:
    """A topic that every broker leads a partition of."""
    name = request.node.name
    words = ("--partitions", "3", "--replication-factor", "3", "--config", "min.insync.replicas=3")
    assert trio("topics", "create", name, *words).code == 0
    return name


@pytest.fixture
def without_one(trio: Any, led: str, three_brokers: Cluster) -> Iterator[str]:
    """The same, after broker 1 has died; and a topic with one replica of each partition."""
    assert trio("topics", "create", f"{led}-alone", "--partitions", "3").code == 0
    three_brokers.kill(1)
    try:
        yield led
    finally:
        three_brokers.start(1)


def test_a_dead_broker_is_seen_everywhere(
    trio: Any, without_one: str, three_brokers: Cluster
) -> None:
    settled(three_brokers, without_one, lambda each: len(each.isr_nodes) == 2)
    for filter_ in ("--under-replicated", "--under-min-isr"):
        run = trio("topics", "describe", without_one, filter_)
        lines = [line.split() for line in run.out.splitlines()]
        assert lines[1][3:7] == ["replicas", "in", "sync", "offline"]
        assert [line[5] for line in lines[2:]] == ["1"] * 3, "the offline one"
    assert trio("topics", "describe", without_one, "--unavailable").out == ""
    document = json.loads(trio("cluster", "describe", "--json").out)
    assert [(broker["id"], broker["rack"]) for broker in document["brokers"]] == [
        (0, "red"),
        (2, "blue"),
    ]
    assert document["under_replicated"] >= 3
    assert document["under_min_isr"] >= 3
    assert document["not_preferred"] >= 1
    # Also of other tests' topics, whose only replica was on the broker that died.
    topics = json.loads(trio("topics", "describe", "--unavailable", "--json").out)
    names = [topic["name"] for topic in topics]
    assert f"{without_one}-alone" in names
    assert without_one not in names
    assert document["offline"] == sum(len(topic["partitions"]) for topic in topics)
    failed = trio("elect", "--topic", without_one)
    assert failed.code == 1
    assert "PREFERRED_LEADER_NOT_AVAILABLE" in failed.out
    assert len(failed.err.splitlines()) == 1


def test_leaders_come_home(trio: Any, led: str, three_brokers: Cluster, tmp_path: Path) -> None:
    [mine] = [p["partition"] for p in partitions(trio, led) if p["replicas"][0] == 1]
    three_brokers.kill(1)
    three_brokers.start(1)
    settled(
        three_brokers,
        led,
        lambda each: (
            each.partition_index != mine or (1 in each.isr_nodes and each.leader_id in (0, 2))
        ),
    )
    document = json.loads(trio("cluster", "describe", "--json").out)
    [home] = [broker for broker in document["brokers"] if broker["id"] == 1]
    assert home["imbalance_percent"] > 0
    path = tmp_path / "partitions.json"
    path.write_text(json.dumps({"partitions": [{"topic": led, "partition": mine}]}))
    run = trio("elect", "--file", str(path))
    assert (run.code, run.err) == (0, "")
    assert [line.split() for line in run.out.splitlines()] == [
        ["partition", "result", "leader"],
        [f"{led}-{mine}", "elected", "1"],
    ]
    again = json.loads(trio("elect", "--topic", led, "--partition", str(mine), "--json").out)
    assert [(each["elected"], each["error"]) for each in again] == [(False, "ELECTION_NOT_NEEDED")]
    assert trio("elect", "--all").code == 0


def test_an_unclean_election(trio: Any, three_brokers: Cluster, tmp_path: Path) -> None:
    """The only one in sync is gone: another one leads if it is told to, and not before."""
    topic = "unclean"
    assert trio("topics", "create", topic, "--replication-factor", "2").code == 0
    plan = tmp_path / "plan"
    entry = {"topic": topic, "partition": 0, "replicas": [2, 1]}
    plan.write_text(json.dumps({"partitions": [entry]}))
    assert trio("reassign", "execute", str(plan)).code == 0
    assert trio("reassign", "verify", str(plan), "--wait", "--wait-timeout", "30").code == 0
    three_brokers.kill(1)
    poll(lambda: partitions(trio, topic)[0]["isr"] == [2])
    three_brokers.kill(2)
    three_brokers.start(1)
    try:
        poll(lambda: trio("topics", "describe", "--unavailable").out != "")
        refused = trio("elect", "--topic", topic)
        assert refused.code == 1
        run = trio("elect", "--topic", topic, "--unclean")
        assert (run.code, run.err) == (0, "")
        assert run.out.splitlines()[1].split() == [f"{topic}-0", "elected", "1"]
        assert trio("topics", "describe", topic, "--unavailable").out == ""
    finally:
        three_brokers.start(2)


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ([], 2),
        (["--all", "--topic", "t"], 2),
        (["--all", "--partition", "1"], 1),
        (["--topic", "none-such"], 1),
        (["--file", "missing.json"], 1),
    ],
)
def test_misuse(trio: Any, words: list[str], code: int) -> None:
    run = trio("elect", *words)
    assert run.code == code
    assert run.err
    assert code == 2 or len(run.err.splitlines()) == 1
