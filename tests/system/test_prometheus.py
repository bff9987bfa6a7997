"""A real Prometheus scrapes three loaded brokers: its answers agree with what the load did.

The expressions of the dashboards themselves are read from a table beside this checkout (columns:
dashboard, panel, expression), or from the folder BARNABAS_DASHBOARD_QUERIES. Without it only our
own expressions are evaluated.
"""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from tests.exposed import Exposed, parse
from tests.promql import selectors
from tests.system.prometheus import Job, Prometheus, Sample, program

from barnabas.testing import Cluster

pytestmark = [pytest.mark.system, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[2]
ALERTS = ROOT / "docs" / "dashboards" / "alerts.yml"
QUERIES = "dashboard-queries.tsv"
TOPIC, GROUP, PARTITIONS = "orders", "billing", 6
OPTIONS = {
    "default.replication.factor": 3,
    "offsets.topic.num.partitions": 3,
    "min.insync.replicas": 2,
    "replica.lag.time.max.ms": 3000,
    "replica.fetch.wait.max.ms": 300,
    "auto.create.topics.enable": "false",
}
NAMESPACE, CLUSTER = "dev", "demo"
EXPORTER = "kafka-exporter"

DASHBOARDS = ("strimzi-kafka", "strimzi-kafka-exporter", "kafka-exporter-7589", "strimzi-alerts")
NOT_OURS = {
    "container_": "the container's memory, CPU and life: Kubernetes exposes them",
    "kubelet_": "the volume's free space: Kubernetes exposes it",
    "jvm_": "memory, garbage and threads of a JVM: there is none",
}
"""Beginnings of the metrics that no broker of ours can have, and why."""


class Query(NamedTuple):
    """One expression of a dashboard, an alert, or a variable of a dashboard."""

    dashboard: str
    panel: str
    expression: str

    @property
    def is_ours(self) -> bool:
        return not any(prefix in self.expression for prefix in NOT_OURS)


def queries_file() -> Path:
    folder = os.environ.get("BARNABAS_DASHBOARD_QUERIES", ROOT.parent / "shared" / "reference")
    return Path(folder) / QUERIES


@pytest.fixture(scope="module")
def queries() -> list[Query]:
    path = queries_file()
    if not path.exists():
        pytest.skip("the shared table of dashboards' queries is not beside this checkout")
    rows = (line.split("\t") for line in path.read_text().splitlines()[1:])
    return [Query(*row) for row in rows if row[0] in DASHBOARDS]


class Load:
    """Clients that write and read, and what they have done."""

    def __init__(self, bootstrap: str) -> None:
        self.produced = 0
        self.committed: dict[int, int] = {}
        self._bootstrap = bootstrap
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._failures: list[BaseException] = []
        admin = AdminClient({"bootstrap.servers": bootstrap})
        admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(60)

    def start(self) -> None:
        """Write and read all the time, in small waves."""
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def stop(self) -> None:
        """Stop; what was read is committed, but for the last record of each partition."""
        self._stopping.set()
        assert self._thread is not None
        self._thread.join(120)
        assert not self._failures, self._failures

    def _run(self) -> None:
        try:
            self._write_and_read()
        except BaseException as failure:  # noqa: BLE001  raised again where it is waited for
            self._failures.append(failure)

    def _write_and_read(self) -> None:
        producer = Producer({"bootstrap.servers": self._bootstrap, "acks": "all"})
        consumer = Consumer(
            {
                "bootstrap.servers": self._bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        consumer.subscribe([TOPIC])
        while not self._stopping.is_set():
            self.write(producer, 60)
            self._read(consumer, 0.2)
        while sum(self.committed.values()) < self.produced - PARTITIONS:
            self._read(consumer, 0.2)
        consumer.close()

    def write(self, producer: Producer, count: int) -> None:
        """Write so many records, equally many to each partition."""
        failures = []

        def delivered(error: object, message: object) -> None:
            if error is not None:
                failures.append(error)

        for number in range(count):
            producer.produce(
                TOPIC, b"a value", partition=number % PARTITIONS, on_delivery=delivered
            )
        producer.flush(120)
        assert not failures, failures
        self.produced += count

    def _read(self, consumer: Consumer, seconds: float) -> None:
        """Commit all but the last record that was read of each partition."""
        for message in consumer.consume(100, seconds):
            assert message.error() is None, message.error()
            partition, offset = message.partition(), message.offset()
            assert partition is not None
            assert offset is not None
            self.committed[partition] = offset
        offsets = [TopicPartition(TOPIC, number, at) for number, at in self.committed.items()]
        if offsets:
            consumer.commit(offsets=offsets, asynchronous=False)

    @property
    def lag(self) -> int:
        """What the group has not committed."""
        return self.produced - sum(self.committed.values())


class Scene:
    """Three brokers, a Prometheus that scrapes them, and the load."""

    def __init__(self, cluster: Cluster, prometheus: Prometheus, load: Load) -> None:
        self.cluster = cluster
        self.prometheus = prometheus
        self.load = load

    def scrape(self, number: int = 0, path: str = "") -> Exposed:
        with urlopen(self.cluster.metrics_url(number) + path, timeout=60) as answer:
            return parse(answer.read().decode())

    def evaluate(self, query: Query) -> list[Sample]:
        """Evaluate a query with the variables of its dashboard."""
        expression = query.expression
        asked = re.fullmatch(r"query_result\((.*)\) \| regex /(.*)/", expression)
        values = re.fullmatch(r"label_values\((.*), *(\w+)\)", expression)
        if asked is not None:
            found = self.prometheus.query(self.filled(asked[1]))
            pattern = re.compile(self.filled(asked[2]))
            return [each for each in found if pattern.search(each.text)]
        if values is not None:
            found = self.prometheus.query(self.filled(values[1]))
            return [each for each in found if values[2] in each.labels]
        return self.prometheus.query(self.filled(expression))

    def filled(self, expression: str) -> str:
        variables = {
            "kubernetes_namespace": NAMESPACE,
            "strimzi_cluster_name": CLUSTER,
            "kafka_broker": ".+",
            "kafka_topic": ".+",
            "kafka_partition": ".+",
            "consumergroup": ".+",
            "topic": ".+",
            "job": EXPORTER,
            "instance": target(self.cluster, 0),
        }
        for name, value in variables.items():
            expression = re.sub(rf"\${name}\b", value, expression)
        return expression


def target(cluster: Cluster, number: int) -> str:
    return cluster.metrics_url(number).removeprefix("http://").removesuffix("/metrics")


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A loaded cluster; the load goes on until the last test but one stops it."""
    program("prometheus")  # skips before anything starts
    folder = tmp_path_factory.mktemp("prometheus")
    with Cluster(brokers=3, metrics=True, options=OPTIONS) as cluster:
        brokers = {
            target(cluster, number): {
                "namespace": NAMESPACE,
                "strimzi_io_cluster": CLUSTER,
                "strimzi_io_name": f"{CLUSTER}-kafka",
                "kubernetes_pod_name": f"{CLUSTER}-kafka-{number}",
                "container": "kafka",
            }
            for number in range(3)
        }
        exporter: dict[str, dict[str, str]] = {target(cluster, 0): {}}
        jobs = [Job("kafka", "/metrics", brokers), Job(EXPORTER, "/metrics/cluster", exporter)]
        load = Load(cluster.bootstrap)
        with Prometheus(folder, jobs, [ALERTS]) as prometheus:
            load.start()
            try:
                yield Scene(cluster, prometheus, load)
            finally:
                load.stop()


def test_the_scrapes_succeed(scene: Scene) -> None:
    scene.prometheus.wait_for_value("sum(up)", 4)


def test_every_metric_of_the_dashboards_is_exposed(scene: Scene, queries: list[Query]) -> None:
    """By name and labels, before anything is evaluated: all that is missing at once."""
    labels = {"namespace", "strimzi_io_cluster", "strimzi_io_name", "kubernetes_pod_name"}
    labels |= {"container", "instance", "job", "kubernetes_namespace", "pod"}

    def missing() -> dict[str, set[str]]:
        series: dict[str, set[str]] = {"up": set()}
        for number in range(3):
            for family in scene.scrape(number).values():
                for each in family.samples:
                    series.setdefault(each.name, set()).update(label for label, _ in each.labels)
        found: dict[str, set[str]] = {}
        for query in queries:
            expression = query.expression.removeprefix("query_result(").partition(") | regex")[0]
            expression = re.sub(r"^label_values\((.*), *\w+\)$", r"\1", expression)
            for name, named in selectors(expression) if query.is_ours else ():
                lacking = {"(the metric)"} if name not in series else named - series[name] - labels
                if lacking:
                    found.setdefault(name, set()).update(lacking)
        return found

    scene.prometheus.wait_for(lambda: not missing(), missing)


def test_every_expression_of_the_dashboards_has_series(scene: Scene, queries: list[Query]) -> None:
    """While the load runs; an alert's condition does not hold, but its metrics are there."""

    def empty() -> list[str]:
        found = []
        for query in queries:
            if not query.is_ours:
                continue
            if query.panel.startswith("alert:"):
                named = [each.name for each in selectors(query.expression)]
                lacking = [name for name in named if not scene.prometheus.query(name)]
                found += [f"{query.dashboard} {query.panel}: {name}" for name in lacking]
            elif not scene.evaluate(query):
                found.append(f"{query.dashboard} {query.panel}: {query.expression}")
        return found

    scene.prometheus.wait_for(lambda: not empty(), lambda: "\n".join(empty()))


def test_what_is_not_ours_is_a_part_of_others(queries: list[Query]) -> None:
    """Seven panels of Strimzi's, and three of its alerts."""
    others = [query for query in queries if not query.is_ours]
    counts = {name: sum(query.dashboard == name for query in others) for name in DASHBOARDS}
    assert counts == {
        "strimzi-kafka": 7,
        "strimzi-kafka-exporter": 0,
        "kafka-exporter-7589": 0,
        "strimzi-alerts": 3,
    }


TOPIC_METRICS = "kafka_server_brokertopicmetrics"
RATES = {
    **{
        name: f'sum(irate({TOPIC_METRICS}_{name}_total{{topic="{TOPIC}"}}[5m]))'
        for name in (
            "messagesin",
            "bytesin",
            "bytesout",
            "totalproducerequests",
            "totalfetchrequests",
        )
    },
    "requests": 'sum(irate(kafka_network_requestmetrics_requests_total{request="Produce"}[5m]))',
    "consumed": f'sum(rate(kafka_consumergroup_current_offset{{consumergroup="{GROUP}"}}[1m]))',
    "CPU": "sum(rate(process_cpu_seconds_total[1m]))",
}
"""What moves as long as the load runs."""


@pytest.mark.parametrize("what", RATES)
def test_the_load_is_seen(scene: Scene, what: str) -> None:
    scene.prometheus.wait_for(
        lambda: (scene.prometheus.value(RATES[what]) or 0) > 0,
        lambda: scene.prometheus.query(RATES[what]),
    )


def test_numbers_agree_with_what_the_load_did(scene: Scene) -> None:
    """Once it has ended, each counter is exact, summed over the brokers as panels do."""
    scene.load.stop()
    load, prometheus = scene.load, scene.prometheus
    of_topic = f'topic="{TOPIC}",job="kafka"'
    of_group = f'consumergroup="{GROUP}",{of_topic}'
    by_broker = 'job="kafka"'
    expected: dict[str, float] = {
        f"count(kafka_server_replicamanager_leadercount{{{by_broker}}})": 3,
        f"sum(kafka_controller_kafkacontroller_activecontrollercount{{{by_broker}}})": 1,
        f"sum(kafka_controller_kafkacontroller_offlinepartitionscount{{{by_broker}}})": 0,
        f"sum(kafka_server_replicamanager_underreplicatedpartitions{{{by_broker}}})": 0,
        f"sum(kafka_server_brokertopicmetrics_messagesin_total{{{of_topic}}})": load.produced,
        f"sum(kafka_topic_partition_current_offset{{{of_topic}}})": load.produced,
        f"sum(kafka_topic_partition_oldest_offset{{{of_topic}}})": 0,
        f"sum(kafka_log_log_logendoffset{{{of_topic}}})": 3 * load.produced,
        f"sum(kafka_topic_partitions{{{of_topic}}})": PARTITIONS,
        f"sum(kafka_topic_partition_replicas{{{of_topic}}})": 3 * PARTITIONS,
        f"sum(kafka_topic_partition_in_sync_replica{{{of_topic}}})": 3 * PARTITIONS,
        f"sum(kafka_cluster_partition_atminisr{{{of_topic}}})": 0,
        f"sum(kafka_consumergroup_current_offset{{{of_group}}})": sum(load.committed.values()),
        f"sum(kafka_consumergroup_lag{{{of_group}}})": load.lag,
        f"sum(kafka_consumergroup_lag_sum{{{of_group}}})": load.lag,
        f"sum(kafka_brokers{{{by_broker}}})": 3,
        # The bytes that clients sent are those in the logs of the leaders: a third of all.
        f"sum(kafka_log_log_size{{{of_topic}}}) / "
        f"sum(kafka_server_brokertopicmetrics_bytesin_total{{{of_topic}}})": 3,
        # Two followers copy what the leader appended.
        f"sum(kafka_server_brokertopicmetrics_replicationbytesin_total{{{by_broker}}}) >= bool "
        f"2 * sum(kafka_server_brokertopicmetrics_bytesin_total{{{of_topic}}})": 1,
    }
    expected[f'sum(kafka_consumergroup_lag{{consumergroup="{GROUP}",job="{EXPORTER}"}})'] = load.lag

    def wrong() -> list[str]:
        found = {each: prometheus.value(each) for each in expected}
        return [
            f"{each}: {found[each]} instead of {value}"
            for each, value in expected.items()
            if found[each] != value
        ]

    prometheus.wait_for(lambda: not wrong(), lambda: "\n".join(wrong()))


def test_a_killed_broker_is_seen_and_forgotten(scene: Scene) -> None:
    """The ISR shrinks, one controller is left, the alerts fire; then all is well again."""
    prometheus = scene.prometheus
    shrinks = 'sum(kafka_server_replicamanager_isrshrinks_total{job="kafka"})'
    under = 'sum(kafka_server_replicamanager_underreplicatedpartitions{job="kafka"})'
    of_topic = f'topic="{TOPIC}",job="kafka"'
    scene.cluster.kill(2)
    prometheus.wait_for_value('sum(up{job="kafka"})', 2)
    prometheus.wait_for_value(
        f"sum(kafka_topic_partition_under_replicated_partition{{{of_topic}}})", PARTITIONS
    )
    prometheus.wait_for_value('count(kafka_server_replicamanager_leadercount{job="kafka"})', 2)
    prometheus.wait_for_value(
        'sum(kafka_controller_kafkacontroller_activecontrollercount{job="kafka"})', 1
    )
    prometheus.wait_for_value(f"sum(kafka_cluster_partition_atminisr{{{of_topic}}})", PARTITIONS)
    prometheus.wait_for(lambda: prometheus.query(f"{under} > 0"), lambda: prometheus.query(under))
    prometheus.wait_for(lambda: (prometheus.value(shrinks) or 0) > 0, lambda: shrinks)
    prometheus.wait_for(
        lambda: prometheus.query('ALERTS{alertname="BarnabasUnderReplicated"}'),
        lambda: prometheus.query("ALERTS"),
    )
    scene.cluster.start(2)
    prometheus.wait_for_value('sum(up{job="kafka"})', 3)
    prometheus.wait_for_value(under, 0)
    expands = 'sum(kafka_server_replicamanager_isrexpands_total{job="kafka"})'
    prometheus.wait_for(lambda: (prometheus.value(expands) or 0) > 0, lambda: expands)


def test_our_alerts_are_rules_that_prometheus_accepts() -> None:
    checked = subprocess.run(
        [program("promtool"), "check", "rules", str(ALERTS)], capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_promtool_reads_a_scrape(scene: Scene) -> None:
    """It has opinions on names that are Kafka's, but must be able to read every line."""
    with urlopen(scene.cluster.metrics_url(0), timeout=60) as answer:
        text = answer.read()
    checked = subprocess.run(
        [program("promtool"), "check", "metrics"], input=text, capture_output=True
    )
    said = (checked.stdout + checked.stderr).decode()
    assert "error while linting" not in said
    assert checked.returncode in (0, 3), said
