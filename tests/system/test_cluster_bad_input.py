"""What a cluster does with nonsense: from whoever asks it, and in ZooKeeper.

A clear error for who asked, a line in the log for what was found, and everything else goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import NewTopic
from kazoo.exceptions import NodeExistsError, NoNodeError
from tests.system.clusters import DEADLINE_S, WiredCluster, metadata, wait_for
from tests.system.workload import Load, check_topic

from barnabas.testing.process import NotReadyError, ProcessRunner

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("cluster")]

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def cluster(
    zookeeper_classpath: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WiredCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    with WiredCluster(zookeeper_classpath, folder, brokers=2) as running:
        yield running


@pytest.fixture
def healthy(cluster: WiredCluster) -> Iterator[WiredCluster]:
    """The cluster, which works after the test as it did before."""
    yield cluster
    for node in cluster.nodes:
        assert node.runner.is_running, f"broker {node.number} has ended"
    topic = f"fine-{next(NUMBERS)}"
    cluster.create(topic, 2, 2)
    with Load(cluster, topic) as load:
        load.more(20)
    check_topic(cluster, topic, load)


def refusal(cluster: WiredCluster, topic: NewTopic) -> KafkaError:
    def refused() -> KafkaError:
        with pytest.raises(KafkaException) as caught:
            cluster.admin.create_topics([topic])[topic.topic].result(DEADLINE_S)
        error: KafkaError = caught.value.args[0]
        return error

    while (error := refused()).code() == KafkaError.NOT_CONTROLLER:
        metadata(cluster.admin)
    return error


def test_more_replicas_than_brokers(healthy: WiredCluster) -> None:
    error = refusal(healthy, NewTopic("wide", 1, 5))
    assert error.code() == KafkaError.INVALID_REPLICATION_FACTOR
    assert "5" in error.str()
    assert "2" in error.str()


@pytest.mark.parametrize("replicas", [[[0, 7]], [[0, 0]]])
def test_impossible_replicas(healthy: WiredCluster, replicas: list[list[int]]) -> None:
    error = refusal(healthy, NewTopic("odd", 1, replica_assignment=replicas))
    assert error.code() == KafkaError.INVALID_REPLICA_ASSIGNMENT
    assert error.str()


def test_an_id_that_is_taken(healthy: WiredCluster, tmp_path: Path) -> None:
    with pytest.raises(NotReadyError, match=r"broker\.id=1: another live broker"):
        ProcessRunner().start(
            {
                "broker.id": "1",
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": str(tmp_path / "data"),
                "zookeeper.connect": healthy.zookeeper.address,
                "zookeeper.session.timeout.ms": "1000",
            }
        )


def test_a_directory_of_another_cluster(healthy: WiredCluster, tmp_path: Path) -> None:
    runner = ProcessRunner()
    options = {
        "broker.id": "5",
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "log.dirs": str(tmp_path / "data"),
        "zookeeper.connect": f"{healthy.zookeeper.address}/elsewhere",
    }
    runner.start(options)
    runner.stop()
    with pytest.raises(NotReadyError, match=r"belongs to cluster .*, not to"):
        runner.start({**options, "zookeeper.connect": healthy.zookeeper.address})


GARBAGE = [b"\xff\xfe", b'{"version":1}']


def elect(cluster: WiredCluster) -> None:
    """Have a new controller read the whole tree."""
    tree = cluster.tree()
    before = tree.get("/controller_epoch")[0]
    tree.delete("/controller")
    wait_for(lambda: tree.get("/controller_epoch")[0] != before, "a new controller")
    wait_for(lambda: cluster.controller() >= 0, "its node")


@pytest.mark.parametrize("data", GARBAGE)
def test_a_topic_that_nobody_can_read(healthy: WiredCluster, data: bytes) -> None:
    tree = healthy.tree()
    tree.create("/brokers/topics/tampered", data)
    try:
        healthy.create(f"beside-{next(NUMBERS)}", 1, 2)
        elect(healthy)
        healthy.create(f"beside-{next(NUMBERS)}", 1, 2)
    finally:
        tree.delete("/brokers/topics/tampered")


@pytest.mark.parametrize("data", GARBAGE)
def test_a_state_that_nobody_can_read(healthy: WiredCluster, data: bytes) -> None:
    """The partition is lost to sight; the other ones are not."""
    topic = f"stateless-{next(NUMBERS)}"
    healthy.create(topic, 2, 2)
    tree = healthy.tree()
    path = f"/brokers/topics/{topic}/partitions/0/state"
    kept = tree.get(path)[0]
    tree.set(path, data)
    elect(healthy)
    healthy.create(f"beside-{next(NUMBERS)}", 1, 2)
    tree.set(path, kept)
    elect(healthy)


@pytest.mark.parametrize("data", GARBAGE)
def test_a_broker_that_nobody_can_read(healthy: WiredCluster, data: bytes) -> None:
    tree = healthy.tree()
    tree.create("/brokers/ids/77", data, ephemeral=True)
    try:
        healthy.create(f"beside-{next(NUMBERS)}", 1, 2)
        elect(healthy)
        healthy.create(f"beside-{next(NUMBERS)}", 1, 2)
    finally:
        tree.delete("/brokers/ids/77")


@pytest.mark.parametrize("data", GARBAGE)
def test_a_controller_that_nobody_can_read(healthy: WiredCluster, data: bytes) -> None:
    """Nobody is in office until it is gone, and then somebody is."""
    tree = healthy.tree()
    tree.delete("/controller")
    while True:
        try:
            tree.create("/controller", data, ephemeral=True)
            break
        except NodeExistsError:  # a broker was faster
            with suppress(NoNodeError):
                tree.delete("/controller")
    tree.delete("/controller")
    wait_for(lambda: healthy.controller() >= 0, "a controller")


@pytest.mark.parametrize(
    "path",
    [
        "/admin/reassign_partitions",
        "/admin/preferred_replica_election",
        "/admin/delete_topics/no-such-topic",
        "/config/changes/config_change_9999999999",
        "/isr_change_notification/isr_change_9999999999",
        "/log_dir_event_notification/log_dir_event_9999999999",
    ],
)
def test_wishes_that_nobody_can_read(healthy: WiredCluster, path: str) -> None:
    tree = healthy.tree()
    for data in GARBAGE:
        # Wishes are removed as they are read, also while this looks.
        with suppress(NodeExistsError):
            tree.create(path, data, makepath=True)
    healthy.create(f"beside-{next(NUMBERS)}", 1, 2)
    elect(healthy)
    healthy.create(f"beside-{next(NUMBERS)}", 1, 2)
    with suppress(NoNodeError):
        tree.delete(path)
