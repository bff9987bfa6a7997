"""Three brokers: reads from followers, hints at new leaders, deletions and throttled copies."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.unit.broker.serving import (
    DEADLINE_S,
    Wire,
    batch_of,
    fetch,
    fetch_request,
    produce,
    values_of,
)

from barnabas.admin.config_entries import AlterConfigOp, Change, ConfigResourceType, Resource
from barnabas.admin.configs import alter_configs
from barnabas.admin.reassignments import (
    alter_partition_reassignments,
    list_partition_reassignments,
)
from barnabas.admin.topics import NewTopic, create_topics, describe_topics
from barnabas.broker.replication.preferred_replica import RACK_AWARE
from barnabas.client.cluster_client import CONTROLLER, ClusterClient
from barnabas.client.metadata import PartitionView
from barnabas.model.error_codes import ErrorCode
from barnabas.model.ids import TopicPartition as Key
from barnabas.testing import Cluster
from barnabas.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.wire.messages.fetch import FetchRequest, ReplicaState

RACKS = ("red", "green", "blue")
_numbers = itertools.count()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    options = {
        "replica.selector.class": RACK_AWARE,
        "replica.fetch.wait.max.ms": 100,
        "replica.fetch.backoff.ms": 100,
        "replica.fetch.max.bytes": 20_000,
    }
    with Cluster(brokers=3, options=options, racks=RACKS) as cluster:
        yield cluster


def ask(cluster: Cluster, work: Callable[[ClusterClient], Any]) -> Any:
    async def conversation() -> Any:
        async with ClusterClient(cluster.bootstrap) as client:
            await client.refresh()
            return await work(client)

    return asyncio.run(conversation())


def create(cluster: Cluster, *replicas: int) -> str:
    """Create a topic of one partition; its first replica leads."""
    name = f"topic-{next(_numbers)}"
    new = NewTopic(name, replica_assignments={0: list(replicas)})
    [made] = ask(cluster, lambda client: create_topics(client, [new]))
    assert made.error is None
    return name


def view(cluster: Cluster, topic: str) -> PartitionView:
    """Return what the controller's broker knows of a topic; others learn of changes later."""
    deadline = time.monotonic() + DEADLINE_S
    while True:
        [found] = ask(cluster, lambda client: describe_topics(client, [topic], to=CONTROLLER))
        if 0 in found.partitions:
            partition: PartitionView = found.partitions[0]
            return partition
        assert time.monotonic() < deadline, f"{topic} is not known everywhere"


def until(condition: Callable[[], object], within_s: float = DEADLINE_S) -> None:
    deadline = time.monotonic() + within_s
    while not condition():
        assert time.monotonic() < deadline, "it does not come true"


def wire(cluster: Cluster, number: int) -> Wire:
    host, port = cluster.bootstrap.split(",")[number].rsplit(":", 1)
    return Wire((host, int(port)))


def test_a_leader_sends_consumers_to_their_rack(cluster: Cluster) -> None:
    topic = create(cluster, 0, 1)
    with wire(cluster, 0) as leader, wire(cluster, 1) as follower:
        assert produce(leader, topic, batch_of(["a", "b"]), acks=-1).error_code == 0
        until(lambda: len(values_of(fetch(follower, topic))) == 2)
        near = fetch(leader, topic, rack_id="green")
        assert (near.preferred_read_replica, values_of(near)) == (1, [])
        assert near.high_watermark == 2
        for rack in ("red", "blue", ""):
            own = fetch(leader, topic, rack_id=rack)
            assert (own.preferred_read_replica, values_of(own)) == (-1, [b"a", b"b"])
        assert fetch(follower, topic, rack_id="green").preferred_read_replica == -1
        assert fetch(leader, topic, version=10).preferred_read_replica == -1
        old = fetch(follower, topic, version=10)
        assert old.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "knows no reads from followers"
        beyond = fetch(follower, topic, 3)
        assert beyond.error_code == ErrorCode.OFFSET_OUT_OF_RANGE
        # It need not wait to be told that: the socket gives up long before the request does.
        waiting = fetch(leader, topic, 2, rack_id="green", max_wait_ms=600_000)
        assert waiting.preferred_read_replica == 1


def test_any_replica_answers_a_debugging_consumer(cluster: Cluster) -> None:
    """In every version, up to its watermark; others are sent to the leader before v11."""
    topic = create(cluster, 0, 1)
    view(cluster, topic)
    [described] = ask(cluster, lambda client: describe_topics(client, [topic], to=CONTROLLER))
    with wire(cluster, 0) as leader, wire(cluster, 1) as follower:
        assert produce(leader, topic, batch_of(["a", "b"]), acks=-1).error_code == 0
        until(lambda: len(values_of(fetch(follower, topic))) == 2)
        for version in range(FetchRequest.STABLE.first, FetchRequest.STABLE.last + 1):
            for replica_id, code in ((-2, 0), (-1, 0 if version >= 11 else 6), (2, 6)):
                request = fetch_request(topic if version < 13 else described.topic_id)
                if version >= 15:
                    request.replica_state = ReplicaState(replica_id=replica_id)
                else:
                    request.replica_id = replica_id
                [result] = follower.ask(request, version).responses[0].partitions
                assert result.error_code == code, (version, replica_id)
                assert bool(result.records) == (not code), (version, replica_id)
                if version >= 4 and not code:  # before, records are of older formats
                    assert values_of(result) == [b"a", b"b"], (version, replica_id)
        # It waits at a follower as well, instead of being told to ask another.
        sent = fetch_request(topic, 2, replica_id=-2, max_wait_ms=600_000)
        follower.send(sent, 10)
        assert produce(leader, topic, batch_of(["c"]), acks=-1).error_code == 0
        [result] = follower.receive(FetchRequest, 10)[1].responses[0].partitions
        assert values_of(result) == [b"c"]


def test_a_consumer_with_a_rack_reads_from_there(cluster: Cluster) -> None:
    topic = create(cluster, 0, 2)
    sources: list[int] = []

    def heard(text: str) -> None:
        partitions = json.loads(text)["topics"].get(topic, {}).get("partitions", {})
        if "0" in partitions:
            sources.append(partitions["0"]["broker"])

    consumer = Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "unused",
            "client.rack": "blue",
            "statistics.interval.ms": 50,
            "stats_cb": heard,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        values: list[bytes] = []
        with wire(cluster, 0) as leader:
            for number in range(20):
                value = f"value {number}"
                assert produce(leader, topic, batch_of([value]), acks=-1).error_code == 0
                until(lambda: _read(consumer, values), 60)
                assert values[-1] == value.encode()
        until(lambda: _read(consumer, values) or sources[-1:] == [2], 60)
        assert values == [f"value {number}".encode() for number in range(20)]
    finally:
        consumer.close()


def _read(consumer: Consumer, values: list[bytes]) -> bool:
    message = consumer.poll(0.05)
    if message is None:
        return False
    assert message.error() is None, message.error()
    values.append(message.value())
    return True


def test_who_asks_the_wrong_broker_hears_whom_to_ask(cluster: Cluster) -> None:
    topic = create(cluster, 1, 2)
    port = int(cluster.bootstrap.split(",")[1].rsplit(":", 1)[1])
    leader_epoch = view(cluster, topic).leader_epoch
    for number in (0, 2):  # one that does not hold the partition, one that follows
        with wire(cluster, number) as wrong:
            until(lambda wrong=wrong: produce(wrong, topic, batch_of(["a"])).error_code == 6)  # type: ignore[misc]
            request = _produce(topic)
            told = wrong.ask(request, 10)
            [result] = told.responses[0].partition_responses
            assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            leader = result.current_leader
            assert (leader.leader_id, leader.leader_epoch) == (1, leader_epoch)
            [place] = told.node_endpoints
            assert (place.node_id, place.port, place.rack) == (1, port, "green")
            assert wrong.ask(request, 9).node_endpoints == []


def _produce(topic: str) -> Any:
    from tests.unit.broker.serving import produce_request

    return produce_request(topic, batch_of(["a"]))


def test_a_reader_of_an_older_epoch_hears_of_the_new_leader(cluster: Cluster) -> None:
    topic = create(cluster, 1, 2)
    [described] = ask(cluster, lambda client: describe_topics(client, [topic], to=CONTROLLER))
    move = {Key(topic, 0): [2, 1]}
    ask(cluster, lambda client: alter_partition_reassignments(client, move))
    until(lambda: view(cluster, topic).replicas == (2, 1))
    epoch = view(cluster, topic).leader_epoch
    assert epoch > 0
    request = fetch_request(described.topic_id, leader_epoch=0)
    with wire(cluster, 1) as connection:

        def code() -> int:
            told = connection.ask(request, 17)
            return int(told.responses[0].partitions[0].error_code)

        until(lambda: code() == ErrorCode.FENCED_LEADER_EPOCH)  # when it has heard of all that
        for version in (16, 17):
            told = connection.ask(request, version)
            [result] = told.responses[0].partitions
            assert result.error_code == ErrorCode.FENCED_LEADER_EPOCH
            assert result.current_leader.leader_epoch == epoch
            assert [place.node_id for place in told.node_endpoints] == [
                result.current_leader.leader_id
            ]
        told = connection.ask(request, 15)
        assert told.responses[0].partitions[0].current_leader is None


def deletion(topic: str, offset: int, timeout_ms: int = 20_000) -> DeleteRecordsRequest:
    wanted = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[wanted])], timeout_ms=timeout_ms
    )


def test_a_deletion_is_answered_when_all_have_deleted(cluster: Cluster) -> None:
    topic = create(cluster, 0, 1, 2)
    with wire(cluster, 0) as leader, wire(cluster, 2) as follower:
        for number in range(5):
            produce(leader, topic, batch_of([str(number)]), acks=-1)
        [result] = leader.ask(deletion(topic, 3)).topics[0].partitions
        assert (result.error_code, result.low_watermark) == (0, 3)
        gone = fetch(follower, topic, 2)
        assert gone.error_code == ErrorCode.OFFSET_OUT_OF_RANGE, "it has deleted by now"
        [late] = leader.ask(deletion(topic, 4, timeout_ms=0)).topics[0].partitions
        assert late.error_code == ErrorCode.REQUEST_TIMED_OUT
        [wrong] = follower.ask(deletion(topic, 4)).topics[0].partitions
        assert wrong.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_the_dead_are_not_waited_for(cluster: Cluster) -> None:
    topic = create(cluster, 0, 1)
    with wire(cluster, 0) as leader:
        produce(leader, topic, batch_of(["a", "b"]), acks=-1)
        cluster.kill(1)
        try:
            [result] = leader.ask(deletion(topic, 1)).topics[0].partitions
            assert (result.error_code, result.low_watermark) == (0, 1)
        finally:
            cluster.start(1)
    until(lambda: view(cluster, topic).isr == (0, 1))


def limit(client: ClusterClient, topic: str, rate: int) -> Any:
    """Throttle all replicas of a topic on all brokers."""

    async def work() -> None:
        names = ("leader.replication.throttled", "follower.replication.throttled")
        replicas = [Change(AlterConfigOp.SET, f"{name}.replicas", "*") for name in names]
        await alter_configs(client, Resource(ConfigResourceType.TOPIC, topic), replicas)
        rates = [Change(AlterConfigOp.SET, f"{name}.rate", str(rate)) for name in names]
        for number in range(3):
            await alter_configs(client, Resource(ConfigResourceType.BROKER, str(number)), rates)

    return work()


def test_a_throttled_move_is_slow_and_ends(cluster: Cluster) -> None:
    """Twenty seconds' worth of records crawl until the throttle is lifted; who is in sync does not.

    The first second of a rate is granted at once, so that the copy begins.
    """
    topic = create(cluster, 0, 1)
    key = Key(topic, 0)

    def moving() -> bool:
        found: dict[Key, Any] = ask(cluster, list_partition_reassignments)
        return key in found

    with wire(cluster, 0) as leader:
        for _ in range(20):
            result = produce(leader, topic, batch_of([bytes(10_000)]), acks=-1)
            assert result.error_code == 0
        ask(cluster, lambda client: limit(client, topic, 10_000))
        began = time.monotonic()
        ask(cluster, lambda client: alter_partition_reassignments(client, {key: [0, 1, 2]}))
        sent = 0
        # Each of these would wait for about a second if who is in sync were throttled, too.
        while sent < 40 or time.monotonic() < began + 2:
            assert produce(leader, topic, batch_of(["x"]), acks=-1).error_code == 0
            sent += 1
            assert moving(), "it was not throttled, or who is in sync was"
        assert 2 not in view(cluster, topic).isr
        ask(cluster, lambda client: limit(client, topic, 10**9))
        until(lambda: not moving())
    until(lambda: set(view(cluster, topic).isr) == {0, 1, 2})
