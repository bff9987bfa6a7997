"""A control plane across kinds: a broker of ours and one of Apache Kafka 3.9, on one ZooKeeper.

Each is the controller in turn, and speaks to the other over the listener that is meant for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient
from kazoo.exceptions import NoNodeError
from tests.unit.broker.serving import Serving, wait_for
from tests.zookeeper import zookeeper_classpath  # noqa: F401
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import free_port

from barnabas.testing.zookeeper import ZooKeeperServer

pytestmark = pytest.mark.interop

OURS, THEIRS = 0, 1
OPTIONS = {
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "control.plane.listener.name": "CONTROL",
    "auto.leader.rebalance.enable": "false",
    "min.insync.replicas": "2",
}


class Pair(NamedTuple):
    ours: Serving
    their_port: int
    their_control_port: int
    tree: KazooClient

    def controller(self) -> int:
        try:
            number: int = json.loads(self.tree.get("/controller")[0])["brokerid"]
        except NoNodeError:
            return -1
        return number

    def make_controller(self, number: int) -> None:
        def is_it() -> bool:
            found = self.controller()
            if found not in (-1, number):
                self.tree.delete("/controller")
            return found == number

        wait_for(is_it, f"broker {number} is the controller")
        wait_for(lambda: self.ours.broker.cluster.controller_id == number, "ours knows it")


@pytest.fixture
def pair(tmp_path: Path, zookeeper_classpath: str) -> Iterator[Pair]:  # noqa: F811
    try:
        kafka = Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))
    with ExitStack() as stack:
        zookeeper = stack.enter_context(ZooKeeperServer(zookeeper_classpath))
        tree = KazooClient(zookeeper.address)
        tree.start(60)
        stack.callback(tree.close)
        stack.callback(tree.stop)
        port, control_port = free_port(), free_port()
        theirs = {
            **OPTIONS,
            "listeners": f"PLAINTEXT://127.0.0.1:{port},CONTROL://127.0.0.1:{control_port}",
        }
        running = kafka.join(
            tmp_path / "theirs", THEIRS, zookeeper.address, port=port, options=theirs
        )
        stack.callback(running.process.wait)
        stack.callback(running.process.kill)
        ours = {
            **OPTIONS,
            "broker.id": str(OURS),
            "listeners": "PLAINTEXT://127.0.0.1:0,CONTROL://127.0.0.1:0",
            "zookeeper.connect": zookeeper.address,
        }
        serving = Serving(tmp_path / "ours", ours)
        serving.start()
        stack.callback(serving.stop)
        yield Pair(serving, port, control_port, tree)


def connections_to(port: int) -> int:
    """Return how many connections are open to a port of this machine."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    established = [line.split() for line in lines if line.split()[3] == "01"]
    return sum(int(line[2].rpartition(":")[2], 16) == port for line in established)


@pytest.mark.parametrize("controller", [THEIRS, OURS])
def test_the_controller_speaks_to_the_other_kind_over_it(pair: Pair, controller: int) -> None:
    pair.make_controller(controller)
    bootstrap = f"127.0.0.1:{pair.their_port}"
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def both_live() -> bool:
        known = admin.list_topics(timeout=60)
        return len(known.brokers) == 2 and known.controller_id == controller

    wait_for(both_live, "both know each other and the controller")
    wanted = NewTopic("t", num_partitions=2, replica_assignment=[[OURS, THEIRS], [THEIRS, OURS]])
    admin.create_topics([wanted])["t"].result(60)
    producer = Producer({"bootstrap.servers": bootstrap, "acks": "all", "log_level": 0})
    failures: list[object] = []
    for number in range(100):
        producer.produce(
            "t",
            str(number),
            partition=number % 2,
            on_delivery=lambda error, _: failures.append(error) if error else None,
        )
    assert producer.flush(60) == 0
    assert not failures
    ours = pair.ours.broker
    assert {ours.partitions["t", n].leader for n in range(2)} == {OURS, THEIRS}
    if controller == THEIRS:
        line = ours.control._connection
        assert line is not None
        assert line.listener == "CONTROL"
    else:
        wait_for(lambda: connections_to(pair.their_control_port) > 0, "ours dials theirs")
    # Metadata shows a client the addresses of its own listener alone.
    ports = {each.port for each in admin.list_topics(timeout=60).brokers.values()}
    assert ports == {pair.their_port, pair.ours.address[1]}
