"""Three brokers with three replicas each: throughput, latency, fail-over, starts with many logs.

Ours beside Apache Kafka 3.9, one cluster after the other, each on a ZooKeeper server of its own
with sessions of three seconds. A fail-over begins with SIGKILL: what is measured contains the
session that must run out first.

    python -m bench.replication [--quick] [--markdown] [--only barnabas|apache] [--scenario NAME]
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.coordinated import RESULTS, arguments
from bench.load import Load
from bench.report import Report, machine
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]
from kazoo.client import KazooClient
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker, free_port, start_barnabas

from barnabas.testing.zookeeper import ZooKeeperServer, find_classpath

SESSION_MS = 3000
OPTIONS = {
    "zookeeper.session.timeout.ms": str(SESSION_MS),
    "zookeeper.connection.timeout.ms": "30000",
    "min.insync.replicas": "2",
    "offsets.topic.replication.factor": "3",
    "auto.leader.rebalance.enable": "false",
}
BROKERS = 3
PARTITIONS = 6
RECORD_BYTES = 100
RATE = 1000
DEADLINE_S = 300.0


@dataclass(frozen=True)
class Scale:
    """How much of everything."""

    repetitions: int
    records: int
    latency_s: int
    partitions_of_a_start: int
    partitions_of_a_controller: int


FULL = Scale(3, 500_000, 10, 2000, 10_000)
QUICK = Scale(1, 100_000, 4, 300, 1000)


class ReplicatedCluster:
    """Three brokers of one kind."""

    def __init__(self, kafka: Distribution | None, server: ZooKeeperServer, folder: Path) -> None:
        self.name = "Barnabas" if kafka is None else f"Apache Kafka {kafka.version}"
        self._kafka = kafka
        self._server = server
        self._folder = folder
        self._ports = [free_port() for _ in range(BROKERS)]
        self.brokers: dict[int, RunningBroker] = {}

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{port}" for port in self._ports)

    def start(self, number: int) -> None:
        folder, port = self._folder / str(number), self._ports[number]
        if self._kafka is not None:
            self.brokers[number] = self._kafka.join(
                folder,
                number,
                self._server.address,
                port=port,
                options=OPTIONS,
                heap="512m",
                timeout_s=DEADLINE_S,
            )
            return
        own = {"broker.id": str(number), "zookeeper.connect": self._server.address}
        self.brokers[number] = start_barnabas(
            folder / "logs", port=port, options={**OPTIONS, **own}, timeout_s=DEADLINE_S
        )

    def kill(self, number: int) -> None:
        broker = self.brokers.pop(number)
        broker.process.kill()
        broker.process.wait()

    def stop(self, number: int) -> None:
        self.brokers.pop(number).stop(DEADLINE_S)

    def admin(self) -> AdminClient:
        """Return a client that knows only those that live."""
        living = ",".join(broker.bootstrap for broker in self.brokers.values())
        return AdminClient({"bootstrap.servers": living, "log_level": 0})

    def cpu_seconds(self) -> float:
        return sum(broker.cpu_seconds() for broker in self.brokers.values())

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic of three replicas, and wait until all are in sync."""
        admin = self.admin()
        asked = admin.create_topics(
            [NewTopic(topic, partitions, BROKERS)], operation_timeout=60, request_timeout=DEADLINE_S
        )[topic]
        try:
            asked.result(DEADLINE_S)
        except KafkaException as late:
            # Many partitions take longer than an answer may; they are made all the same.
            if late.args[0].code() not in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT):
                raise
        self.wait_in_sync(topic, partitions)

    def wait_in_sync(self, topic: str, partitions: int) -> None:
        admin = self.admin()
        wait_for(
            lambda: (
                len(found := self._partitions(admin, topic)) == partitions
                and all(each.leader >= 0 and len(each.isrs) == BROKERS for each in found)
            )
        )

    def wait_led_without(self, topic: str, gone: int) -> None:
        """Wait until all partitions are led by those that live."""
        admin = self.admin()
        wait_for(
            lambda: all(
                each.leader not in (-1, gone) and gone not in each.isrs
                for each in self._partitions(admin, topic)
            )
        )

    def leader_of(self, topic: str) -> int:
        number: int = self._partitions(self.admin(), topic)[0].leader
        return number

    def _partitions(self, admin: AdminClient, topic: str) -> list:  # type: ignore[type-arg]
        return list(admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions.values())

    def controller(self) -> int:
        tree = KazooClient(self._server.address)
        tree.start(DEADLINE_S)
        try:
            number: int = json.loads(tree.get("/controller")[0])["brokerid"]
            return number
        finally:
            tree.stop()
            tree.close()


def wait_for(condition: Callable[[], object]) -> None:
    """Poll until something holds."""
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {DEADLINE_S} s")
        time.sleep(0.02)


@contextmanager
def running(
    kafka: Distribution | None, classpath: str, folder: Path
) -> Iterator[ReplicatedCluster]:
    """Start ZooKeeper and three brokers; kill them and remove their data at the end."""
    with ZooKeeperServer(classpath, tick_ms=500) as server:
        cluster = ReplicatedCluster(kafka, server, folder)
        try:
            for number in range(BROKERS):
                cluster.start(number)
            yield cluster
        finally:
            for number in list(cluster.brokers):
                cluster.kill(number)
            shutil.rmtree(folder, ignore_errors=True)


def throughput(cluster: ReplicatedCluster, load: Load, scale: Scale, report: Report) -> None:
    cluster.create("throughput", PARTITIONS)
    for turn in range(scale.repetitions + 1):
        cpu = cluster.cpu_seconds()
        seen = load.run(
            "produce", cluster.bootstrap, "throughput", PARTITIONS, 1, scale.records, RECORD_BYTES,
            acks="all", enable_idempotence="true", batch_size=65536, linger_ms=5,
        )  # fmt: skip
        if turn == 0:
            continue  # the first one warms up
        used = cluster.cpu_seconds() - cpu
        scenario = f"produce, acks=all, 3 replicas, {PARTITIONS} partitions"
        rate = seen["records"] / seen["seconds"]
        report.add(scenario, "records/s", "higher", cluster.name, rate)
        report.add(
            scenario,
            "CPU s of all brokers per million records",
            "lower",
            cluster.name,
            used / seen["records"] * 1e6,
        )


def latency(cluster: ReplicatedCluster, load: Load, scale: Scale, report: Report) -> None:
    cluster.create("latency", 1)
    scenario = f"latency at {RATE:,} records/s, acks=all, 3 replicas, linger 0"
    for turn in range(scale.repetitions + 1):
        seen = load.run(
            "latency", cluster.bootstrap, "latency", RATE, scale.latency_s, RECORD_BYTES,
            acks="all", linger_ms=0,
        )  # fmt: skip
        if turn == 0:
            continue
        for metric, key in (
            ("acknowledged p50 ms", "ack_p50_ms"),
            ("acknowledged p99 ms", "ack_p99_ms"),
        ):
            report.add(scenario, metric, "lower", cluster.name, seen[key])


def fail_over(cluster: ReplicatedCluster, _: Load, scale: Scale, report: Report) -> None:
    cluster.create("failover", 1)
    producer = Producer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 0,
            "retry.backoff.ms": 20,
            "retry.backoff.max.ms": 100,
            "reconnect.backoff.max.ms": 100,
            "topic.metadata.refresh.fast.interval.ms": 50,
            "log_level": 0,
        }
    )
    scenario = f"a leader is killed, sessions of {SESSION_MS} ms"
    for _turn in range(scale.repetitions):
        producer.produce("failover", b"before")
        producer.flush(DEADLINE_S)
        leader = cluster.leader_of("failover")
        began = time.monotonic()
        cluster.kill(leader)
        producer.produce("failover", b"after")
        producer.flush(DEADLINE_S)
        took = time.monotonic() - began
        report.add(scenario, "s until the next record is acknowledged", "lower", cluster.name, took)
        cluster.start(leader)
        cluster.wait_in_sync("failover", 1)


def start_with_many(cluster: ReplicatedCluster, _: Load, scale: Scale, report: Report) -> None:
    count = scale.partitions_of_a_start
    began = time.monotonic()
    cluster.create("many", count)
    scenario = f"{count:,} partitions, 3 replicas"
    report.add(scenario, "s to create them", "lower", cluster.name, time.monotonic() - began)
    for _turn in range(scale.repetitions):
        began = time.monotonic()
        cluster.stop(0)
        report.add(scenario, "s to shut down", "lower", cluster.name, time.monotonic() - began)
        began = time.monotonic()
        cluster.start(0)
        report.add(scenario, "s until ready again", "lower", cluster.name, time.monotonic() - began)
        cluster.wait_in_sync("many", count)
        took = time.monotonic() - began
        report.add(scenario, "s until in sync again", "lower", cluster.name, took)
    admin = cluster.admin()
    admin.delete_topics(["many"], operation_timeout=60)["many"].result(DEADLINE_S)


def controller_fail_over(cluster: ReplicatedCluster, _: Load, scale: Scale, report: Report) -> None:
    count = scale.partitions_of_a_controller
    cluster.create("led", count)
    gone = cluster.controller()
    scenario = f"the controller of {count:,} partitions is killed"
    began = time.monotonic()
    cluster.kill(gone)
    cluster.wait_led_without("led", gone)
    took = time.monotonic() - began
    report.add(scenario, "s until others lead all of them", "lower", cluster.name, took)


def tell(report: Report, name: str) -> None:
    """Print every value of a cluster."""
    for figure in report.figures:
        if name in figure.values:
            values = ", ".join(f"{value:.4g}" for value in figure.values[name])
            print(f"    {figure.scenario}, {figure.metric}: {values}", file=sys.stderr)


SCENARIOS = (throughput, latency, fail_over, start_with_many, controller_fail_over)


def main(argv: Sequence[str] | None = None) -> None:
    names = [scenario.__name__ for scenario in SCENARIOS]
    args = arguments("Replication: ours beside Apache Kafka.", argv, scenarios=names)
    scale = QUICK if args.quick else FULL
    load = Load.build()
    report = Report([machine(), f"load: {load.name}; {RECORD_BYTES}-byte records"])
    kinds: dict[str, Distribution | None] = {"barnabas": None}
    jars = None
    try:
        kafka = Distribution.fetch("3.9")
        kinds["apache"], jars = kafka, kafka.jars
    except Unavailable as why:
        report.conditions.append(f"Apache Kafka was not measured: {why}")
    classpath = find_classpath(jars)
    if classpath is None:
        sys.exit("bench.replication needs a ZooKeeper server: `make deps` fetches one")
    for kind, distribution in kinds.items():
        if args.only not in (None, kind):
            continue
        folder = Path(tempfile.mkdtemp(prefix="barnabas-bench-"))
        with running(distribution, classpath, folder) as cluster:
            for scenario in SCENARIOS:
                if args.scenario in (None, scenario.__name__):
                    print(f"{cluster.name}: {scenario.__name__}", file=sys.stderr)
                    scenario(cluster, load, scale, report)
                    # What was seen so far is worth having when a later part does not end.
                    tell(report, cluster.name)
    if args.markdown:
        print(report.markdown())
    else:
        report.show()
    print(f"every value is in {report.save(RESULTS, 'replication')}", file=sys.stderr)


if __name__ == "__main__":
    main()
