"""One of our brokers in a cluster of Apache Kafka 3.9 brokers, on one ZooKeeper.

Ours is broker 0, theirs are 1 and 2. Either side is the controller in turn; either side leads and
follows; nothing that was acknowledged is lost whoever dies.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from tests.zookeeper import zookeeper_classpath  # noqa: F401
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker, free_port, start_barnabas

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.testing.zookeeper import ZooKeeperServer
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from barnabas.wire.messages.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
)
from barnabas.wire.schema import Message

pytestmark = pytest.mark.interop

DEADLINE_S = 120.0
OURS = 0
THEIRS = (1, 2)
OPTIONS = {
    "zookeeper.session.timeout.ms": "3000",
    "zookeeper.connection.timeout.ms": "20000",
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "offsets.topic.num.partitions": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "replica.lag.time.max.ms": "3000",
    "controlled.shutdown.retry.backoff.ms": "200",
    "log.cleaner.enable": "false",
    "auto.leader.rebalance.enable": "false",
}


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.1)


class MixedCluster:
    """A ZooKeeper, one of ours and two of theirs."""

    def __init__(self, classpath: str, kafka: Distribution, folder: Path) -> None:
        self.zookeeper = ZooKeeperServer(classpath)
        self._kafka = kafka
        self._folder = folder
        self._ports = {number: free_port() for number in (OURS, *THEIRS)}
        self.brokers: dict[int, RunningBroker] = {}
        self._stack = ExitStack()

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports.values())

    def __enter__(self) -> MixedCluster:
        try:
            self._stack.enter_context(self.zookeeper)
            self._stack.callback(self._kill_all)
            self.tree = KazooClient(self.zookeeper.address)
            self.tree.start(DEADLINE_S)
            self._stack.callback(self.tree.close)
            self._stack.callback(self.tree.stop)
            for number in (*THEIRS, OURS):
                self.start(number)
        except BaseException:
            self._stack.close()
            raise
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, number: int) -> None:
        folder, port = self._folder / f"broker-{number}", self._ports[number]
        if number == OURS:
            options = {**OPTIONS, "broker.id": "0", "zookeeper.connect": self.zookeeper.address}
            broker = start_barnabas(folder / "logs", port=port, options=options)
        else:
            broker = self._kafka.join(
                folder, number, self.zookeeper.address, port=port, options=OPTIONS
            )
        self.brokers[number] = broker

    def kill(self, number: int) -> None:
        process = self.brokers.pop(number).process
        process.kill()
        process.wait()

    def stop(self, number: int) -> None:
        self.brokers.pop(number).stop()

    def _kill_all(self) -> None:
        for number in list(self.brokers):
            self.kill(number)

    def controller(self) -> int:
        if self.tree.exists("/controller") is None:
            return -1
        number: int = json.loads(self.tree.get("/controller")[0])["brokerid"]
        return number

    def ask(self, number: int, request: Message, version: int) -> Any:
        """Ask one broker, and no other."""

        async def answer() -> Any:
            line = await Connection.open(
                Address("127.0.0.1", self._ports[number]), client_id="mixed"
            )
            try:
                return await line.send(request, version=version)
            finally:
                line.close()

        return asyncio.run(answer())

    def make_controller(self, wanted: Callable[[int], bool]) -> None:
        """Hold elections until one of the wanted is the controller, and all know it."""
        deadline = time.monotonic() + DEADLINE_S
        while not wanted(self.controller()):
            assert time.monotonic() < deadline, "nobody of the wanted kind is elected"
            if self.tree.exists("/controller") is not None:
                self.tree.delete("/controller")
            wait_for(self._agreed, "all know one controller")

    def _agreed(self) -> bool:
        known = {
            AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
            .list_topics(timeout=DEADLINE_S)
            .controller_id
            for broker in self.brokers.values()
        }
        return known == {self.controller()}

    def create(self, topic: str, replicas: list[list[int]], **configs: str) -> None:
        wait_for(lambda: self._created(topic, replicas, configs), f"{topic} is there")
        wait_for(lambda: self.in_sync(topic), f"{topic} in sync")

    def _created(self, topic: str, replicas: list[list[int]], configs: dict[str, str]) -> bool:
        new = NewTopic(topic, len(replicas), replica_assignment=replicas, config=configs)
        try:
            self.admin.create_topics([new])[topic].result(DEADLINE_S)
        except KafkaException as failure:
            # The client asks who knew the controller last, and does not look again by itself.
            if failure.args[0].code() != KafkaError.NOT_CONTROLLER:
                raise
            self.admin.list_topics(timeout=DEADLINE_S)
            return False
        return True

    def states(self, topic: str) -> dict[int, tuple[int, list[int], list[int]]]:
        """Return leader, in-sync replicas and replicas by partition."""
        found = self.admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        return {each.id: (each.leader, each.isrs, each.replicas) for each in found.values()}

    def in_sync(self, topic: str) -> bool:
        states = self.states(topic)
        return bool(states) and all(
            leader >= 0 and len(isr) == len(replicas) for leader, isr, replicas in states.values()
        )

    def send(self, topic: str, numbers: range) -> dict[bytes, tuple[int, int]]:
        """Send numbers with acks=all; return where each is."""
        places: dict[bytes, tuple[int, int]] = {}
        failed: list[KafkaError] = []

        def told(error: KafkaError | None, message: object) -> None:
            if error is not None:
                failed.append(error)
            else:
                places[message.value()] = (message.partition(), message.offset())  # type: ignore[attr-defined]

        producer = Producer(
            {
                "bootstrap.servers": self.bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": int(DEADLINE_S * 1000),
                "log_level": 0,
            }
        )
        for number in numbers:
            value = b"%d" % number
            producer.produce(topic, value, value, on_delivery=told)
            producer.poll(0)
        assert producer.flush(DEADLINE_S) == 0
        assert not failed, failed[0]
        return places

    def read(self, topic: str) -> dict[bytes, tuple[int, int]]:
        """Read all that is committed; no value is there twice."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": "none",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "log_level": 0,
            }
        )
        numbers = list(self.states(topic))
        consumer.assign([TopicPartition(topic, number, 0) for number in numbers])
        found: dict[bytes, tuple[int, int]] = {}
        ended: set[int | None] = set()
        deadline = time.monotonic() + DEADLINE_S
        while len(ended) < len(numbers):
            assert time.monotonic() < deadline, "the end was not reached"
            for message in consumer.consume(500, 0.5):
                error = message.error()
                if error is None:
                    value = message.value()
                    assert isinstance(value, bytes)
                    assert value not in found
                    found[value] = (message.partition(), message.offset())  # type: ignore[assignment]
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended.add(message.partition())
                else:
                    raise KafkaException(error)
        consumer.close()
        return found

    def log_bytes(self, number: int, topic: str, partition: int) -> bytes:
        folder = self._folder / f"broker-{number}" / "logs" / f"{topic}-{partition}"
        return b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))

    def wait_equal(self, topic: str) -> None:
        """Wait until all replicas have the same bytes."""
        for partition, (_, _, replicas) in self.states(topic).items():
            wait_for(
                lambda p=partition, r=replicas: (  # type: ignore[misc]
                    len({self.log_bytes(n, topic, p) for n in r}) == 1
                ),
                f"equal replicas of {topic}-{partition}",
            )


@pytest.fixture(scope="module")
def running(
    zookeeper_classpath: str,  # noqa: F811
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[MixedCluster]:
    try:
        kafka = Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))
    with MixedCluster(zookeeper_classpath, kafka, tmp_path_factory.mktemp("mixed")) as started:
        yield started


@pytest.fixture
def cluster(running: MixedCluster) -> MixedCluster:
    """The cluster of this module, with all of its brokers."""
    for number in (OURS, *THEIRS):
        if number not in running.brokers:
            running.start(number)
    return running


def is_ours(number: int) -> bool:
    return number == OURS


def is_theirs(number: int) -> bool:
    return number in THEIRS


SPREAD = [[0, 1, 2], [1, 2, 0], [2, 0, 1]]


@pytest.mark.parametrize("controller", [is_theirs, is_ours])
def test_both_lead_and_follow(cluster: MixedCluster, controller: Callable[[int], bool]) -> None:
    topic = f"spread-{controller.__name__}"
    cluster.make_controller(controller)
    cluster.create(topic, SPREAD)
    # Any broker answers, and each hears of a new topic in its own time.
    wait_for(
        lambda: [leader for leader, _, _ in cluster.states(topic).values()] == [0, 1, 2],
        "each leads one",
    )
    sent = cluster.send(topic, range(3000))
    assert cluster.read(topic) == sent
    cluster.wait_equal(topic)


@pytest.mark.parametrize("controller", [is_theirs, is_ours])
@pytest.mark.parametrize("victim", [OURS, 1])
def test_whoever_dies_nothing_is_lost(
    cluster: MixedCluster, controller: Callable[[int], bool], victim: int
) -> None:
    """The victim may be the controller itself."""
    topic = f"dies-{controller.__name__}-{victim}"
    cluster.make_controller(controller)
    cluster.create(topic, SPREAD)
    sent = cluster.send(topic, range(1000))
    cluster.kill(victim)
    wait_for(
        lambda: all(
            leader not in (-1, victim) and victim not in isr
            for leader, isr, _ in cluster.states(topic).values()
        ),
        "new leaders",
    )
    sent |= cluster.send(topic, range(1000, 2000))
    cluster.start(victim)
    wait_for(lambda: cluster.in_sync(topic), "all in sync again")
    sent |= cluster.send(topic, range(2000, 2500))
    assert cluster.read(topic) == sent
    cluster.wait_equal(topic)


@pytest.mark.parametrize("controller", [is_theirs, is_ours])
@pytest.mark.parametrize("number", [OURS, 2])
def test_a_controlled_shutdown_hands_over(
    cluster: MixedCluster, controller: Callable[[int], bool], number: int
) -> None:
    topic = f"stops-{controller.__name__}-{number}"
    cluster.make_controller(controller)
    cluster.create(topic, SPREAD)
    cluster.stop(number)
    wait_for(
        lambda: all(leader not in (-1, number) for leader, _, _ in cluster.states(topic).values()),
        "others lead",
    )
    sent = cluster.send(topic, range(500))
    cluster.start(number)
    wait_for(lambda: cluster.in_sync(topic), "all in sync again")
    assert cluster.read(topic) == sent
    cluster.wait_equal(topic)


@pytest.mark.parametrize("controller", [is_theirs, is_ours])
def test_partitions_move_between_the_kinds(
    cluster: MixedCluster, controller: Callable[[int], bool]
) -> None:
    """From theirs to ours and back, while the topic is written to."""
    topic = f"moves-{controller.__name__}"
    cluster.make_controller(controller)
    cluster.create(topic, [[1, 2], [0, 1]], **{"min.insync.replicas": "1"})
    sent = cluster.send(topic, range(2000))
    for target in ([[0, 2], [2, 1]], [[2, 1], [1, 0]]):
        plan = {
            "version": 1,
            "partitions": [
                {"topic": topic, "partition": number, "replicas": replicas}
                for number, replicas in enumerate(target)
            ],
        }
        wait_for(lambda: cluster.tree.exists("/admin/reassign_partitions") is None, "the last move")
        cluster.tree.create("/admin/reassign_partitions", json.dumps(plan).encode())
        sent |= cluster.send(topic, range(len(sent), len(sent) + 500))
        wait_for(
            lambda target=target: (
                [  # type: ignore[misc]
                    replicas for _, _, replicas in cluster.states(topic).values()
                ]
                == target
                and cluster.in_sync(topic)
            ),
            f"the move to {target}",
        )
    assert cluster.read(topic) == sent
    cluster.wait_equal(topic)


@pytest.mark.parametrize("controller", [is_theirs, is_ours])
def test_groups_and_transactions_span_both_kinds(
    cluster: MixedCluster, controller: Callable[[int], bool]
) -> None:
    """Three coordinators, so that each kind coordinates some of it."""
    topic = f"work-{controller.__name__}"
    cluster.make_controller(controller)
    cluster.create(topic, SPREAD)
    committed: set[bytes] = set()
    for number in range(6):
        producer = Producer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "transactional.id": f"{topic}-{number}",
                "log_level": 0,
            }
        )
        producer.init_transactions(DEADLINE_S)
        for turn in range(2):
            producer.begin_transaction()
            values = [b"%d-%d-%d" % (number, turn, partition) for partition in range(3)]
            for partition, value in enumerate(values):
                producer.produce(topic, value=value, partition=partition)
            producer.flush(DEADLINE_S)
            if turn:
                producer.abort_transaction(DEADLINE_S)
            else:
                producer.commit_transaction(DEADLINE_S)
                committed.update(values)
    assert set(cluster.read(topic)) == committed
    for number in range(4):
        consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": f"{topic}-{number}",
                "auto.offset.reset": "earliest",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        consumer.subscribe([topic])
        seen: set[bytes] = set()
        deadline = time.monotonic() + DEADLINE_S
        while seen != committed:
            assert time.monotonic() < deadline, f"{len(seen)} of {len(committed)}"
            for message in consumer.consume(100, 0.5):
                if message.error() is None:
                    value = message.value()
                    assert isinstance(value, bytes)
                    seen.add(value)
        consumer.commit(asynchronous=False)
        consumer.close()


@pytest.mark.parametrize("controller", [is_theirs, is_ours])
def test_a_topic_is_deleted_everywhere(
    cluster: MixedCluster, controller: Callable[[int], bool]
) -> None:
    topic = f"gone-{controller.__name__}"
    cluster.make_controller(controller)
    cluster.create(topic, SPREAD)
    cluster.send(topic, range(100))
    cluster.admin.delete_topics([topic])[topic].result(DEADLINE_S)
    wait_for(
        lambda: cluster.tree.exists(f"/brokers/topics/{topic}") is None, "the topic's node is gone"
    )
    cluster.create(topic, SPREAD)
    assert cluster.read(topic) == {}


@pytest.mark.parametrize("controller", [is_theirs, is_ours])
def test_a_broker_that_has_restarted_gives_out_producer_ids(
    cluster: MixedCluster, controller: Callable[[int], bool]
) -> None:
    """Theirs ask the controller for a block of them, ours look into the tree."""
    cluster.make_controller(controller)
    theirs = next(number for number in THEIRS if number != cluster.controller())
    cluster.stop(theirs)
    cluster.start(theirs)
    given: set[int] = set()

    def gives(number: int) -> bool:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        answer: InitProducerIdResponse = cluster.ask(number, request, 4)
        if answer.error_code == 0:
            given.add(answer.producer_id)
        return answer.error_code == 0

    for number in (OURS, theirs):
        wait_for(lambda number=number: gives(number), f"broker {number} gives out an id")  # type: ignore[misc]
    assert len(given) == 2


@pytest.mark.parametrize("controller", [is_theirs, is_ours])
def test_a_topic_is_made_when_any_broker_is_asked_for_it(
    cluster: MixedCluster, controller: Callable[[int], bool]
) -> None:
    cluster.make_controller(controller)
    for number in (OURS, *THEIRS):
        name = f"asked-{controller.__name__}-{number}"

        def knows(number: int = number, name: str = name) -> bool:
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name)])
            answer: MetadataResponse = cluster.ask(number, request, 8)
            return answer.topics[0].error_code == 0

        wait_for(knows, f"broker {number} knows {name}")
        wait_for(lambda name=name: cluster.in_sync(name), f"{name} in sync")  # type: ignore[misc]
