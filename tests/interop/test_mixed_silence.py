"""One of our brokers loses ZooKeeper beside Apache Kafka's: it asks them by what they answer.

They cannot say whether they are in contact with ZooKeeper, but who is a member and who leads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from confluent_kafka import KafkaError, Producer
from tests.interop.test_mixed_cluster import (
    OPTIONS,
    OURS,
    THEIRS,
    MixedCluster,
    is_theirs,
    wait_for,
)
from tests.zookeeper import zookeeper_classpath  # noqa: F401
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import start_barnabas

from barnabas.testing.wires import ZOOKEEPER, Wires

pytestmark = pytest.mark.interop

SESSION_S = int(OPTIONS["zookeeper.session.timeout.ms"]) / 1000
LED_BY_OURS = [[OURS, *THEIRS]]


class WiredMixedCluster(MixedCluster):
    """Ours reaches ZooKeeper over a wire that can be cut."""

    def __init__(self, classpath: str, kafka: Distribution, folder: Path) -> None:
        super().__init__(classpath, kafka, folder)
        self.wires = Wires()

    def start(self, number: int) -> None:
        if number != OURS:
            super().start(number)
            return
        self._stack.enter_context(self.wires)
        port = self.wires.front(ZOOKEEPER, self.zookeeper.port, OURS)
        options = {**OPTIONS, "broker.id": "0", "zookeeper.connect": f"127.0.0.1:{port}"}
        self.brokers[OURS] = start_barnabas(
            self._folder / "broker-0" / "logs", port=self._ports[OURS], options=options
        )

    @property
    def log(self) -> str:
        """What our broker has logged."""
        return (self._folder / "broker-0" / "logs.out").read_text(errors="replace")


@pytest.fixture
def cluster(
    zookeeper_classpath: str,  # noqa: F811
    tmp_path: Path,
) -> Iterator[WiredMixedCluster]:
    try:
        kafka = Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))
    with WiredMixedCluster(zookeeper_classpath, kafka, tmp_path) as started:
        started.make_controller(is_theirs)
        yield started  # type: ignore[misc]  # __enter__ of its base


class Writing:
    """A producer with acks=all at work in a thread."""

    def __init__(self, cluster: MixedCluster, topic: str) -> None:
        self.acknowledged: dict[bytes, float] = {}
        self.failures: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(cluster.bootstrap, topic))

    def __enter__(self) -> Writing:
        self._thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self, bootstrap: str, topic: str) -> None:
        producer = Producer(
            {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
        )

        def told(error: KafkaError | None, message: object) -> None:
            if error is None:
                self.acknowledged[message.value()] = time.monotonic()  # type: ignore[attr-defined]
            else:
                self.failures.append(str(error))

        number = 0
        while not self._stop.wait(0.02):
            number += 1
            producer.produce(topic, b"%d" % number, on_delivery=told)
            producer.poll(0)
        producer.flush(60)


def test_a_zookeeper_that_is_away_silences_nobody(cluster: WiredMixedCluster) -> None:
    cluster.create("quorum", LED_BY_OURS)
    with Writing(cluster, "quorum") as writing:
        wait_for(lambda: len(writing.acknowledged) > 20, "records are acknowledged")
        cluster.zookeeper.kill()
        began_s = time.monotonic()
        wait_for(lambda: time.monotonic() - began_s > 3 * SESSION_S, "three sessions' time")
        late = [at for at in writing.acknowledged.values() if at > began_s + 2 * SESSION_S]
        assert len(late) > 10, "they were asked, and ours went on"
        cluster.zookeeper.start()
        wait_for(lambda: cluster.in_sync("quorum"), "all in sync")
    assert writing.failures == []
    assert "stops serving its partitions" not in cluster.log
    assert set(writing.acknowledged) <= set(cluster.read("quorum"))


def test_ours_falls_silent_when_theirs_know_of_another_leader(cluster: WiredMixedCluster) -> None:
    cluster.create("moved", LED_BY_OURS)
    with Writing(cluster, "moved") as writing:
        wait_for(lambda: len(writing.acknowledged) > 20, "records are acknowledged")
        cluster.wires.part([OURS], [ZOOKEEPER])
        wait_for(
            lambda: "broker 0 stops serving its partitions" in cluster.log, "ours falls silent"
        )
        silent_s = time.monotonic()
        wait_for(
            lambda: any(at > silent_s + 1 for at in writing.acknowledged.values()),
            "another acknowledges",
        )
        cluster.wires.heal()
        wait_for(lambda: "broker 0 serves its partitions again" in cluster.log, "ours speaks again")
        wait_for(lambda: cluster.in_sync("moved"), "all in sync")
    assert writing.failures == []
    told = cluster.log[cluster.log.index("broker 0 stops serving its partitions") :].splitlines()[0]
    assert "does not count it as a member" in told or "newer leader epoch" in told
    assert set(writing.acknowledged) <= set(cluster.read("moved"))
    cluster.wait_equal("moved")
