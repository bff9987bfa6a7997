"""`barnabas why` and `barnabas diary`: what they say is compared with what was done."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from barnabas import KafkaAdminClient, KafkaConsumer, KafkaProducer
from barnabas.cli.main import main
from barnabas.client.addresses import parse_addresses
from barnabas.client.cluster_client import ClusterClient
from barnabas.testing import Cluster
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic

OPTIONS = {
    "barnabas.diary.enable": "true",
    "default.replication.factor": 3,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "group.min.session.timeout.ms": 500,
    "replica.lag.time.max.ms": 1_500,
    "replica.fetch.wait.max.ms": 200,
    "zookeeper.session.timeout.ms": 3_000,
    "quota.window.num": 2,
}
DEADLINE_S = 30.0
MEMBER = """
import ast, sys
from barnabas import KafkaConsumer
with KafkaConsumer("orders", client_id="dies", **ast.literal_eval(sys.argv[1])) as consumer:
    while True:
        consumer.poll(timeout_ms=50)
"""
"""A consumer in a process of its own, which can be killed."""

Ask = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(brokers=3, options=OPTIONS, wired=True) as running:
        make(running, "first")
        # What belongs to every start creates no topic for the diary; a change does.
        words = ["configs", "alter", "--topic", "first", "--set", "retention.ms=600000"]
        assert main([*words, "--bootstrap", running.bootstrap]) == 0
        yield running


@pytest.fixture
def say(
    cluster: Cluster, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., str]:
    """Run a command that must succeed, and return what it printed."""
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", cluster.bootstrap)

    def run(*words: str) -> str:
        capsys.readouterr()
        code = main(words)
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return run


@pytest.fixture
def why(say: Callable[..., str]) -> Ask:
    def ask(*words: str) -> dict[str, Any]:
        answer: dict[str, Any] = json.loads(say("why", *words, "--json"))
        return answer

    return ask


def wait_for(find: Callable[[], Any], what: str) -> Any:
    deadline_s = time.monotonic() + DEADLINE_S
    while True:
        found = find()
        if found:
            return found
        assert time.monotonic() < deadline_s, what
        time.sleep(0.1)


def expect(why: Ask, words: tuple[str, ...], event: str, cause: str) -> dict[str, Any]:
    """Wait for an entry, and return the newest."""

    def find() -> Any:
        entries = why(*words)["entries"]
        return next((e for e in entries if (e["event"], e["cause"]) == (event, cause)), None)

    found: dict[str, Any] = wait_for(find, f"{words}: no {event} by {cause}")
    return found


def make(cluster: Cluster, topic: str, **more: Any) -> None:
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics({topic: {"num_partitions": 1, "replication_factor": 3, **more}})
    # The broker that created it is the first to know it.
    wait_for(lambda: asyncio.run(known_to_all(cluster, topic)), f"all brokers know {topic}")


async def known_to_all(cluster: Cluster, topic: str) -> bool:
    wanted = [MetadataRequestTopic(name=topic)]
    request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
    addresses = parse_addresses(cluster.bootstrap)
    async with ClusterClient(addresses) as client:
        brokers = (await client.refresh()).brokers  # of one that may not know all of them yet
        answers = [await client.send(request, to=broker) for broker in brokers]
    known = [not answer.topics[0].error_code for answer in answers]
    return len(known) == len(addresses) and all(known)


def fill(cluster: Cluster, topic: str, count: int = 10) -> None:
    with KafkaProducer(bootstrap_servers=cluster.bootstrap) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number)


def leader_of(why: Ask, partition: str) -> int:
    entries = why("partition", partition)["entries"]
    elected = next(e for e in entries if e["event"] == "leader.elected")
    leader: int = elected["data"]["leader"]
    return leader


def test_a_member_is_killed(cluster: Cluster, why: Ask, say: Callable[..., str]) -> None:
    make(cluster, "orders", num_partitions=2)
    fill(cluster, "orders")
    settings: dict[str, Any] = {
        "bootstrap_servers": cluster.bootstrap,
        "group_id": "billing",
        "auto_offset_reset": "earliest",
        "session_timeout_ms": 1_000,
        "heartbeat_interval_ms": 200,
    }
    with KafkaConsumer("orders", client_id="stays", **settings) as stays:
        dies = subprocess.Popen([sys.executable, "-c", MEMBER, repr(settings)])
        try:
            wait_for(
                lambda: stays.poll(timeout_ms=50) is not None and len(stays.assignment()) == 1,
                "both have a partition",
            )
            expect(why, ("group", "billing"), "group.stable", "member-joined")
        finally:
            dies.kill()
            dies.wait(60)
        wait_for(
            lambda: stays.poll(timeout_ms=50) is not None and len(stays.assignment()) == 2,
            "the rest has all",
        )
        began = expect(why, ("group", "billing"), "group.rebalance", "session-timeout")
        assert began["data"]["client_id"] == "dies"
        assert began["data"]["host"] == "127.0.0.1"
        assert began["data"]["timeout_ms"] == 1_000
        assert began["data"]["silent_ms"] >= 1_000
        settled = expect(why, ("group", "billing"), "group.stable", "session-timeout")
        assert (settled["data"]["before"], settled["data"]["after"]) == (2, 1)
        assert settled["data"]["timed_out"] == [began["data"]["member"]]
        answer = why("group", "billing")
        assert answer["subject"] == "group:billing"
        assert answer["now"][0].startswith("Stable: a classic group with 1 member")
        text = say("why", "group", "billing")
        assert "sent no heartbeat for" in text
        assert "with 1 member instead of 2; begun by a session timeout" in text
    mine = why("client", "dies")["entries"]
    assert began["sentence"] in [entry["sentence"] for entry in mine]


def test_a_follower_is_paused(cluster: Cluster, why: Ask, say: Callable[..., str]) -> None:
    """It is cut off from the leader alone, so that it stays a member of the cluster."""
    # The leader must reach the controller, and the leader of the diary.
    leader = json.loads(say("cluster", "describe", "--json"))["controller_id"]
    wait_for(lambda: json.loads(say("diary", "--json")), "the diary begins")
    diary = leader_of(why, "__barnabas_diary-0")
    follower = next(n for n in range(3) if n not in (leader, diary))
    third = 3 - leader - follower
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin:
        admin.create_topics({"paused": {"assignments": {0: [leader, third, follower]}}})
    fill(cluster, "paused")
    expect(why, ("partition", "paused-0"), "leader.elected", "first")
    cluster.partition(leader, follower)
    try:
        fill(cluster, "paused", 5)
        shrunk = expect(why, ("partition", "paused-0"), "isr.shrink", "lag-time")
        assert set(shrunk["data"]["from"]) - set(shrunk["data"]["to"]) == {follower}
        [replica] = shrunk["data"]["replicas"]
        assert replica["id"] == follower
        assert replica["behind"] == 5
        assert shrunk["data"]["lag_ms_max"] == 1_500
        assert replica["caught_up_ms_ago"] > 1_500
        now = " ".join(why("partition", "paused-0")["now"])
        assert f"broker {follower} is not in sync" in now
        assert "5 records behind" in now
    finally:
        cluster.heal()
    joined = expect(why, ("partition", "paused-0"), "isr.expand", "caught-up")
    assert set(joined["data"]["to"]) == {0, 1, 2}
    wait_for(
        lambda: "all replicas are in sync" in why("partition", "paused-0")["now"], "it is back"
    )


def test_a_quota_is_hit(cluster: Cluster, why: Ask, say: Callable[..., str]) -> None:
    make(cluster, "limited")
    say("quotas", "set", "--client-id", "greedy", "producer_byte_rate=1000")
    with KafkaProducer(bootstrap_servers=cluster.bootstrap, client_id="greedy") as producer:
        producer.send("limited", b"x" * 8_000).get(60)
    begun = expect(why, ("client", "greedy"), "throttle.begin", "produce")
    assert begun["data"]["entity"] == "client-id greedy"
    assert begun["data"]["limit"] == 1_000
    assert begun["data"]["rate"] > 1_000
    assert "throttled by producer_byte_rate of client-id greedy" in begun["sentence"]


def test_an_idempotent_producer_is_fenced(cluster: Cluster, why: Ask) -> None:
    make(cluster, "fenced")
    settings = {"bootstrap_servers": cluster.bootstrap, "transactional_id": "pipeline"}
    with KafkaProducer(client_id="first", **settings) as first:
        first.init_transactions()
        first.begin_transaction()
        first.send("fenced", b"1").get(60)
        with KafkaProducer(client_id="second", **settings) as second:
            second.init_transactions()
            aborted = expect(why, ("client", "pipeline"), "transaction.aborted", "fenced")
            assert aborted["subject"] == "transaction:pipeline"
            assert aborted["data"]["partitions"] == 1
            assert "a new producer of this id fenced the last one" in aborted["sentence"]
        with pytest.raises(Exception, match=r"(?i)fenced|epoch|abort"):
            first.commit_transaction()


def test_records_that_are_too_large(cluster: Cluster, why: Ask) -> None:
    make(cluster, "small", configs={"max.message.bytes": "200"})
    with (
        KafkaProducer(bootstrap_servers=cluster.bootstrap, client_id="large") as producer,
        pytest.raises(Exception, match=r"exceeds max\.message\.bytes"),
    ):
        producer.send("small", b"x" * 5_000).get(60)
    rejected = expect(why, ("client", "large"), "reject.produce", "too-large")
    assert rejected["data"]["partition"] == "small-0"
    assert rejected["data"]["limit"] == 200
    of_topic = why("topic", "small")["entries"]
    assert rejected["sentence"] in [entry["sentence"] for entry in of_topic]


def test_a_topic_and_what_changed(cluster: Cluster, why: Ask, say: Callable[..., str]) -> None:
    make(cluster, "changed")
    say("configs", "alter", "--topic", "changed", "--set", "retention.ms=5000")
    changed = expect(why, ("topic", "changed"), "config.changed", "client")
    assert changed["data"]["changes"] == "set retention.ms=5000"
    now = why("topic", "changed")["now"]
    assert now[0] == "1 partition with 3 replicas each"
    assert "options of its own: retention.ms=5000" in now
    text = say("why", "topic", "changed", "--limit", "1")
    assert "earlier; see --limit" in text


def test_retention_is_told_in_advance(cluster: Cluster, why: Ask) -> None:
    make(cluster, "kept", configs={"retention.ms": "3600000"})
    assert "it has no records" in why("partition", "kept-0")["now"]
    fill(cluster, "kept", 3)
    now = " ".join(why("partition", "kept-0")["now"])
    assert "offsets 0 to 2" in now
    assert "retention.ms=3600000" in now
    assert "at the earliest" in now


def test_a_leader_is_killed(cluster: Cluster, why: Ask, say: Callable[..., str]) -> None:
    make(cluster, "led")
    fill(cluster, "led")
    expect(why, ("partition", "led-0"), "leader.elected", "first")
    leader = leader_of(why, "led-0")
    cluster.kill(leader)
    try:
        elected = expect(why, ("partition", "led-0"), "leader.elected", "broker-gone")
        assert elected["data"]["previous"] == leader
        assert elected["data"]["leader"] != leader
        assert elected["data"]["leader_epoch"] == 1
        shrunk = expect(why, ("partition", "led-0"), "isr.shrink", "broker-gone")
        assert shrunk["data"]["removed"] == [leader]
        now = why("partition", "led-0")["now"]
        assert f"broker {elected['data']['leader']} leads in epoch" in now[0]
        assert any(f"broker {leader} is not in sync: the broker is not alive" in s for s in now)
        text = say("why", "broker", str(leader))
        assert "not alive; it has" in text
        assert f"broker {leader} is gone" in text
    finally:
        cluster.start(leader)
    expect(why, ("partition", "led-0"), "isr.expand", "caught-up")


def test_the_diary_of_the_whole_cluster(
    cluster: Cluster, say: Callable[..., str], capsys: pytest.CaptureFixture[str]
) -> None:
    make(cluster, "listed")
    found = wait_for(
        lambda: json.loads(say("diary", "--subject", "topic:listed", "--json")), "it is created"
    )
    assert [(entry["event"], entry["cause"]) for entry in found] == [("topic.created", "client")]
    assert found[0]["data"]["replication_factor"] == 3
    leaders = json.loads(say("diary", "--event", "leader", "--json", "--limit", "1000"))
    assert {entry["event"] for entry in leaders} == {"leader.elected"}
    times = [entry["last"] for entry in leaders]
    assert times == sorted(times, reverse=True), "the newest first"
    assert json.loads(say("diary", "--since", "1ms", "--json")) == []
    lines = say("diary", "--limit", "2").splitlines()
    assert len(lines) == 2
    assert all(" UTC  " in line for line in lines)


@pytest.mark.parametrize(
    "words",
    [
        ("why", "topic", "missing"),
        ("why", "partition", "missing-0"),
        ("why", "broker", "77"),
    ],
)
def test_what_does_not_exist(
    cluster: Cluster,
    words: tuple[str, ...],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", cluster.bootstrap)
    assert main(words) == 1
    assert capsys.readouterr().err.startswith("barnabas why: ")


@pytest.mark.parametrize(
    "words", [("why", "partition", "orders"), ("why", "broker", "x"), ("diary", "--since", "soon")]
)
def test_what_cannot_be_asked(words: tuple[str, ...], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert "usage:" in capsys.readouterr().err
