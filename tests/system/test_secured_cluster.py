"""The faults of a cluster with SASL_SSL and SCRAM between brokers, and ACLs: nobody is locked out.

Three brokers in processes on a real ZooKeeper. During each fault an idempotent producer, a group
and a transactional copy are at work, as a user who may do only that; sessions between brokers end
every few seconds. Afterwards nothing is lost, all replicas are in sync, no broker has rejected
another, and one without rights still has none. The longer faults are run with
BARNABAS_CHAOS_SECONDS set (`make chaos`).
"""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from tests.system.cluster_security import SESSION_MS as LOGIN_MS
from tests.system.cluster_security import STRANGER, ClusterKeys, password_of
from tests.system.clusters import SESSION_MS, WiredCluster, wait_for
from tests.system.scenes import moved, roll, watched
from tests.system.workload import Load

from barnabas import KafkaProducer
from barnabas.errors import TopicAuthorizationFailedError
from barnabas.testing.wires import ZOOKEEPER

SECONDS = int(os.environ.get("BARNABAS_CHAOS_SECONDS", "0"))

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(900),
    pytest.mark.xdist_group("secured-cluster"),
]
long = pytest.mark.skipif(SECONDS == 0, reason="BARNABAS_CHAOS_SECONDS is not set")


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"s{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def running(
    zookeeper_classpath: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WiredCluster]:
    folder = tmp_path_factory.mktemp("cluster")
    keys = ClusterKeys(tmp_path_factory.mktemp("keys"))
    with WiredCluster(zookeeper_classpath, folder, keys=keys) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: WiredCluster) -> Iterator[WiredCluster]:
    """The cluster of this module, healed before and after."""
    running.heal()
    yield running
    running.heal()


@contextmanager
def secured(cluster: WiredCluster, topic: str) -> Iterator[Load]:
    """Watch a load, as without security, and then who was let in and who was not."""
    before = [len(log) for log in logs(cluster)]
    with watched(cluster, topic) as load:
        yield load
    for number, log in enumerate(logs(cluster)):
        new = log[before[number] :]
        rejected = [line for line in new.splitlines() if "on PEERS rejected" in line]
        assert rejected == [], f"broker {number} let another one not in"
        assert password_of("") not in new
    assert_stranger_has_no_rights(cluster, topic)


def logs(cluster: WiredCluster) -> list[str]:
    files = (node.folder.with_name(f"{node.folder.name}.err") for node in cluster.nodes)
    return [file.read_text() for file in files]


def assert_stranger_has_no_rights(cluster: WiredCluster, topic: str) -> None:
    """Hold that every broker knows the ACLs."""
    assert cluster.keys is not None
    login = cluster.keys.client_options(STRANGER)
    for node in cluster.nodes:
        address = f"127.0.0.1:{node.client_port}"
        with (
            KafkaProducer(bootstrap_servers=address, **login) as producer,
            pytest.raises(TopicAuthorizationFailedError),
        ):
            producer.send(topic, b"forbidden").get(60)


def the_controller(cluster: WiredCluster) -> int:
    wait_for(lambda: cluster.controller(in_office=True) >= 0, "a controller")
    return cluster.controller(in_office=True)


def more_for(load: Load, seconds: float) -> None:
    """Let the load go on for a time."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        load.more(50)


def wait_for_certificates(cluster: WiredCluster, before: list[int]) -> None:
    """Wait until each running broker uses its renewed files for both listeners."""

    def renewed(number: int) -> bool:
        log = logs(cluster)[number][before[number] :]
        return all(f"listener {name} uses its renewed" in log for name in ("CLIENTS", "PEERS"))

    for node in cluster.nodes:
        if node.running:
            wait_for(lambda node=node: renewed(node.number), f"{node.number} renews")  # type: ignore[misc]


def test_the_controller_is_killed_while_all_certificates_are_renewed(
    cluster: WiredCluster, names: Iterator[str]
) -> None:
    """Brokers log in by SCRAM without a controller; the one that was down has new files, too."""
    assert cluster.keys is not None
    topic = next(names)
    with secured(cluster, topic) as load:
        victim = the_controller(cluster)
        before = [len(log) for log in logs(cluster)]
        cluster.kill(victim)
        cluster.keys.replace_authority()
        for node in cluster.nodes:
            cluster.keys.issue(node.number)
        moved(cluster, topic, victim)
        wait_for_certificates(cluster, before)
        load.more()


@long
def test_a_frozen_leader_is_fenced_and_logs_in_again(
    cluster: WiredCluster, names: Iterator[str]
) -> None:
    """All its sessions end while it stands still."""
    topic = next(names)
    with secured(cluster, topic) as load:
        leader = cluster.leader_of(topic)
        cluster.pause(leader)
        moved(cluster, topic, leader)
        more_for(load, LOGIN_MS / 1000)
        cluster.resume(leader)
        load.more()


@long
@pytest.mark.parametrize("ways", ["both", "out"])
def test_a_leader_is_cut_off(cluster: WiredCluster, names: Iterator[str], ways: str) -> None:
    topic = next(names)
    with secured(cluster, topic) as load:
        leader = cluster.leader_of(topic)
        others = [ZOOKEEPER, *(node.number for node in cluster.nodes if node.number != leader)]
        for other in others:
            cluster.wires.cut(leader, other)
            if ways == "both":
                cluster.wires.cut(other, leader)
        more_for(load, 2 * LOGIN_MS / 1000)


@long
def test_brokers_are_restarted_one_after_the_other(
    cluster: WiredCluster, names: Iterator[str]
) -> None:
    topic = next(names)
    with secured(cluster, topic) as load:
        roll(cluster, topic, load, times=2)


@long
def test_an_old_authority_is_forgotten_during_a_roll(
    cluster: WiredCluster, names: Iterator[str]
) -> None:
    assert cluster.keys is not None
    topic = next(names)
    with secured(cluster, topic) as load:
        cluster.keys.replace_authority()
        before = [len(log) for log in logs(cluster)]
        wait_for_certificates(cluster, before)
        for node in cluster.nodes:
            cluster.keys.issue(node.number)
        roll(cluster, topic, load, times=1)
        before = [len(log) for log in logs(cluster)]
        cluster.keys.forget_old_authorities()
        wait_for_certificates(cluster, before)
        roll(cluster, topic, load, times=1)


@long
def test_all_brokers_are_killed(cluster: WiredCluster, names: Iterator[str]) -> None:
    with secured(cluster, next(names)):
        for node in cluster.nodes:
            cluster.kill(node.number)


@long
def test_zookeeper_is_away_for_longer_than_the_sessions(
    cluster: WiredCluster, names: Iterator[str]
) -> None:
    """Those of brokers with ZooKeeper, and the logins between brokers, which are renewed."""
    with secured(cluster, next(names)) as load:
        cluster.zookeeper.kill()
        more_for(load, max(SESSION_MS, LOGIN_MS) / 1000 + 1)
        cluster.zookeeper.start()
        wait_for(lambda: cluster.controller() >= 0, "a controller")


@long
def test_logins_between_brokers_are_renewed(cluster: WiredCluster, names: Iterator[str]) -> None:
    """Nothing happens for some sessions: none of them ends by its time."""
    topic = next(names)
    with secured(cluster, topic) as load:
        before = [len(log) for log in logs(cluster)]
        more_for(load, max(SECONDS / 10, 3 * LOGIN_MS / 1000))
        for number, log in enumerate(logs(cluster)):
            assert "its session has ended" not in log[before[number] :]
