"""Three brokers as processes on a real ZooKeeper, under load, while faults come and go.

After each fault: nothing acknowledged is lost, nothing is there twice, committed offsets have not
gone back, what a transactional copy made is whole, and all replicas have the same bytes.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from tests.system.clusters import DEADLINE_S, SESSION_MS, WiredCluster, wait_for
from tests.system.wires import ZOOKEEPER
from tests.system.workload import Copy, Group, Load, check_topic, committed_of, read_all

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("cluster")]

PARTITIONS = 3


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"t{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def running(
    zookeeper_classpath: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[WiredCluster]:
    with WiredCluster(zookeeper_classpath, tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture
def cluster(running: WiredCluster) -> Iterator[WiredCluster]:
    """The cluster of this module, healed before and after."""
    running.heal()
    yield running
    running.heal()


@contextmanager
def watched(cluster: WiredCluster, topic: str) -> Iterator[Load]:
    """Run a load, a group and a transactional copy; check everything when the fault is over."""
    copy = f"{topic}-copy"
    cluster.create(topic, PARTITIONS)
    cluster.create(copy, PARTITIONS)
    with (
        Copy(cluster, topic, copy, f"{topic}-copier") as copier,
        Group(cluster, topic, f"{topic}-group") as one,
        Group(cluster, topic, f"{topic}-group") as other,
    ):
        with Load(cluster, topic) as load:
            load.more()
            wait_for(lambda: copier.transactions and one.committed | other.committed, "all work")
            yield load
            cluster.heal()
            load.more()
            cluster.wait_in_sync(topic, copy)
        values = check_topic(cluster, topic, load)
        wait_for(
            lambda: set(values) <= one.seen | other.seen,
            lambda: f"{len(set(values) - one.seen - other.seen)} records reach the group",
        )
        wait_for(
            lambda: len(read_all(cluster, copy)) >= len(values),
            lambda: f"all {len(values)} are copied, not {len(read_all(cluster, copy))}",
        )
    copied = [value for _, _, value in read_all(cluster, copy)]
    assert sorted(copied) == sorted(values), "each record is copied exactly once"
    kept = committed_of(cluster, topic, f"{topic}-group", PARTITIONS)
    for told in (one.committed, other.committed):
        assert all(kept[number] >= offset for number, offset in told.items())
    for name in (topic, copy, "__consumer_offsets", "__transaction_state"):
        cluster.wait_replicas_equal(name, PARTITIONS)


def moved(cluster: WiredCluster, topic: str, old: int) -> None:
    """Wait until others lead what a broker led."""
    began = time.monotonic()

    def settled() -> bool:
        partitions = cluster.admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions
        return all(each.leader not in (-1, old) for each in partitions.values())

    wait_for(settled, f"others lead instead of broker {old}")
    print(f"new leaders of {topic} after {time.monotonic() - began:.2f} s")


def a_leader(cluster: WiredCluster, topic: str) -> int:
    return cluster.leader_of(topic, 0)


def a_follower(cluster: WiredCluster, topic: str) -> int:
    return (cluster.leader_of(topic, 0) + 1) % 3


def the_controller(cluster: WiredCluster, topic: str) -> int:
    return cluster.controller()


@pytest.mark.parametrize("victim", [a_leader, a_follower, the_controller])
def test_a_broker_is_killed(
    cluster: WiredCluster, names: Iterator[str], victim: Callable[[WiredCluster, str], int]
) -> None:
    topic = next(names)
    with watched(cluster, topic) as load:
        number = victim(cluster, topic)
        cluster.kill(number)
        moved(cluster, topic, number)
        load.more()


def test_all_brokers_are_killed(cluster: WiredCluster, names: Iterator[str]) -> None:
    with watched(cluster, next(names)):
        for node in cluster.nodes:
            cluster.kill(node.number)


def test_a_frozen_leader_is_fenced_when_it_wakes(
    cluster: WiredCluster, names: Iterator[str]
) -> None:
    topic = next(names)
    with watched(cluster, topic) as load:
        leader = a_leader(cluster, topic)
        cluster.pause(leader)
        moved(cluster, topic, leader)
        load.more()
        cluster.resume(leader)
        load.more()


def test_brokers_are_restarted_one_after_the_other(
    cluster: WiredCluster, names: Iterator[str]
) -> None:
    topic = next(names)
    with watched(cluster, topic) as load:
        for _ in range(2):
            for node in cluster.nodes:
                cluster.stop(node.number)
                cluster.start(node.number)
                cluster.wait_in_sync(topic)
            load.more()


def test_zookeeper_is_away_for_longer_than_the_session(
    cluster: WiredCluster, names: Iterator[str]
) -> None:
    """What is led stays led meanwhile, and the controller is elected anew."""
    with watched(cluster, next(names)) as load:
        cluster.zookeeper.kill()
        away_until = time.monotonic() + SESSION_MS / 1000 + 1
        while time.monotonic() < away_until:
            load.more(50)
        cluster.zookeeper.start()
        wait_for(lambda: cluster.controller() >= 0, "a controller")


@pytest.mark.parametrize("ways", ["both", "out", "in"])
def test_a_leader_is_cut_off(cluster: WiredCluster, names: Iterator[str], ways: str) -> None:
    """From the other brokers and from ZooKeeper; one way is as bad as both."""
    topic = next(names)
    with watched(cluster, topic) as load:
        leader = a_leader(cluster, topic)
        others = [ZOOKEEPER, *(node.number for node in cluster.nodes if node.number != leader)]
        for other in others:
            if ways != "in":
                cluster.wires.cut(leader, other)
            if ways != "out":
                cluster.wires.cut(other, leader)
        time_out_s = SESSION_MS / 1000
        wait_for(lambda: leader_for_others(cluster, topic, leader), "another leader", 60)
        print(f"session {time_out_s} s")
        load.more()


def leader_for_others(cluster: WiredCluster, topic: str, old: int) -> bool:
    """Tell whether brokers other than the old leader know a new one."""
    from confluent_kafka.admin import AdminClient

    for node in cluster.nodes:
        if node.number == old:
            continue
        admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{node.client_port}"})
        if admin.list_topics(topic, timeout=DEADLINE_S).topics[topic].partitions[0].leader in (
            -1,
            old,
        ):
            return False
    return True


def test_two_brokers_are_cut_from_each_other(cluster: WiredCluster, names: Iterator[str]) -> None:
    """Both are alive for ZooKeeper: the follower leaves the in-sync replicas, and comes back."""
    topic = next(names)
    with watched(cluster, topic) as load:
        leader = a_leader(cluster, topic)
        follower = (leader + 1) % 3
        cluster.wires.part([leader], [follower])
        load.more()
        wait_for(
            lambda: (
                follower
                not in cluster.admin.list_topics(topic, timeout=DEADLINE_S)
                .topics[topic]
                .partitions[0]
                .isrs
            ),
            "the follower is out of sync",
        )
        load.more()
