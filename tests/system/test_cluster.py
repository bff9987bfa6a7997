"""Three brokers as processes on a real ZooKeeper, under load, while faults come and go.

After each fault: nothing acknowledged is lost, nothing is there twice, committed offsets have not
gone back, what a transactional copy made is whole, and all replicas have the same bytes.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from tests.system.clusters import SESSION_MS, WiredCluster, metadata, wait_for
from tests.system.scenes import moved, roll, watched

from barnabas.testing.wires import ZOOKEEPER

pytestmark = [pytest.mark.system, pytest.mark.xdist_group("cluster")]


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


def a_leader(cluster: WiredCluster, topic: str) -> int:
    return cluster.leader_of(topic, 0)


def the_controller(cluster: WiredCluster, topic: str) -> int:
    wait_for(lambda: cluster.controller(in_office=True) >= 0, "a controller")
    return cluster.controller(in_office=True)


@pytest.mark.parametrize("victim", [a_leader, the_controller])
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
        roll(cluster, topic, load, times=2)


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


@pytest.mark.parametrize("ways", ["both", "out"])
def test_a_leader_is_cut_off(cluster: WiredCluster, names: Iterator[str], ways: str) -> None:
    """From the other brokers and from ZooKeeper; one way is as bad as both."""
    topic = next(names)
    with watched(cluster, topic) as load:
        leader = a_leader(cluster, topic)
        others = [ZOOKEEPER, *(node.number for node in cluster.nodes if node.number != leader)]
        for other in others:
            cluster.wires.cut(leader, other)
            if ways == "both":
                cluster.wires.cut(other, leader)
        wait_for(lambda: leader_for_others(cluster, topic, leader), "another leader")
        load.more()


def leader_for_others(cluster: WiredCluster, topic: str, old: int) -> bool:
    """Tell whether brokers other than the old leader know a new one."""
    admins = [cluster.admin_of(node) for node in cluster.nodes if node.number != old]
    topics = [metadata(admin, topic).topics for admin in admins]
    return all(each[topic].partitions[0].leader not in (-1, old) for each in topics)


def test_two_brokers_are_cut_from_each_other(cluster: WiredCluster, names: Iterator[str]) -> None:
    """Both are alive for ZooKeeper: the follower leaves the in-sync replicas, and comes back."""
    topic = next(names)
    with watched(cluster, topic) as load:
        pair = (-1, -1)

        def is_out_of_sync() -> bool:
            """Return whether the follower has left; cut a new pair where the roles have moved."""
            nonlocal pair
            leader, controller = a_leader(cluster, topic), the_controller(cluster, topic)
            if leader == pair[0] and controller != pair[1]:
                return pair[1] not in isr_of(cluster, topic, leader)
            cluster.wires.heal()
            # A leader that is cut from the controller could not ask for other in-sync replicas.
            pair = (leader, next(n for n in range(3) if n not in (leader, controller)))
            cluster.wires.part([leader], [pair[1]])
            load.more()
            return False

        wait_for(
            is_out_of_sync,
            lambda: f"broker {pair[1]} leaves broker {pair[0]}'s ISR: {cluster.described(topic)}",
            deadline_s=60,
        )
        load.more()


def isr_of(cluster: WiredCluster, topic: str, leader: int) -> list[int]:
    """Return the ISR as the leader knows it; a broker that is cut off may not have learned it."""
    admin = cluster.admin_of(cluster.nodes[leader])
    return list(metadata(admin, topic).topics[topic].partitions[0].isrs)
