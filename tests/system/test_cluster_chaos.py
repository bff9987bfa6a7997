"""Long faults on a cluster of processes; run with BARNABAS_CHAOS_SECONDS set (`make chaos`).

Each test takes as long as its fault needs; the random one goes on for so many seconds. Its seed
is BARNABAS_CHAOS_SEED, or is drawn and printed.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("kazoo", reason="pip install 'barnabas[zookeeper]'")

from tests.system.clusters import DEADLINE_S, SESSION_MS, WiredCluster, metadata, wait_for
from tests.system.scenes import moved, roll, watched
from tests.system.workload import Load, check_topic, read_all

from barnabas.testing.wires import ZOOKEEPER

SECONDS = int(os.environ.get("BARNABAS_CHAOS_SECONDS", "0"))

pytestmark = [
    pytest.mark.system,
    pytest.mark.timeout(max(900, SECONDS * 3)),
    pytest.mark.xdist_group("cluster"),
    pytest.mark.skipif(SECONDS == 0, reason="BARNABAS_CHAOS_SECONDS is not set"),
]


@pytest.fixture(scope="module")
def names() -> Iterator[str]:
    return (f"c{number}" for number in itertools.count())


@pytest.fixture
def cluster(zookeeper_classpath: str, tmp_path: Path) -> Iterator[WiredCluster]:
    with WiredCluster(zookeeper_classpath, tmp_path) as running:
        yield running


def pause_s(seconds: float, load: Load) -> None:
    """Let time pass, in which the load may go on or not."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        assert not load.failed, load.failed[0]
        load.ending.wait(0.1)


class Faults:
    """One of everything that can happen, chosen by a seed."""

    def __init__(self, cluster: WiredCluster, source: random.Random) -> None:
        self._cluster = cluster
        self._random = source

    def one(self) -> str:
        """Do something bad and say what."""
        cluster, source = self._cluster, self._random
        number = source.randrange(3)
        others = [node.number for node in cluster.nodes if node.number != number]
        deed = source.choice(
            ["kill", "kill all", "stop", "freeze", "zookeeper", "cut", "cut one way", "pair"]
        )
        if deed == "kill":
            cluster.kill(number)
        elif deed == "kill all":
            for node in cluster.nodes:
                cluster.kill(node.number)
        elif deed == "stop":
            cluster.stop(number)
        elif deed == "freeze":
            cluster.pause(number)
        elif deed == "zookeeper":
            cluster.zookeeper.kill()
        elif deed == "cut":
            cluster.wires.part([number], [*others, ZOOKEEPER])
        elif deed == "cut one way":
            for other in [*others, ZOOKEEPER]:
                ends = (number, other) if source.random() < 0.5 else (other, number)
                cluster.wires.cut(*ends)
        else:
            cluster.wires.part([number], others[:1])
        return f"{deed} {number}"


def test_anything_may_happen(cluster: WiredCluster, names: Iterator[str]) -> None:
    seed = int(os.environ.get("BARNABAS_CHAOS_SEED", "0")) or random.randrange(1 << 32)
    print(f"BARNABAS_CHAOS_SEED={seed}")
    source = random.Random(seed)
    faults = Faults(cluster, source)
    topic = next(names)
    with watched(cluster, topic) as load:
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            print(f"{time.monotonic() - until:8.1f}", faults.one(), flush=True)
            pause_s(source.choice([0.2, 2.0, SESSION_MS / 1000 + 2]), load)
            cluster.heal()
            if source.random() < 0.7:
                cluster.wait_in_sync(topic)
            load.more(20)


def test_ten_rolling_restarts(cluster: WiredCluster, names: Iterator[str]) -> None:
    topic = next(names)
    with watched(cluster, topic) as load:
        roll(cluster, topic, load, times=10)


def test_zookeeper_is_away_for_a_minute(cluster: WiredCluster, names: Iterator[str]) -> None:
    with watched(cluster, next(names)) as load:
        cluster.zookeeper.kill()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            load.more(50)
        cluster.zookeeper.start()
        wait_for(lambda: cluster.controller() >= 0, "a controller")


@pytest.mark.parametrize("ways", ["out", "in"])
def test_each_way_of_a_cut_controller(
    cluster: WiredCluster, names: Iterator[str], ways: str
) -> None:
    topic = next(names)
    with watched(cluster, topic) as load:
        number = cluster.controller()
        for other in [ZOOKEEPER, *(n.number for n in cluster.nodes if n.number != number)]:
            cluster.wires.cut(*((number, other) if ways == "out" else (other, number)))
        wait_for(lambda: cluster.controller() not in (-1, number), "another controller")
        load.more()


def test_a_follower_is_killed(cluster: WiredCluster, names: Iterator[str]) -> None:
    topic = next(names)
    with watched(cluster, topic) as load:
        victim = (cluster.leader_of(topic, 0) + 1) % 3
        cluster.kill(victim)
        moved(cluster, topic, victim)
        load.more()


def test_the_disk_of_a_follower_is_full(zookeeper_classpath: str, tmp_path: Path) -> None:
    """It falls out of sync, and comes back when there is room again."""
    disk = tmp_path / "broker-2"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=24m", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"a small disk needs the right to mount one: {mounted.stderr.strip()}")
    try:
        with WiredCluster(zookeeper_classpath, tmp_path) as cluster:
            cluster.create("t", 3)
            with Load(cluster, "t") as load:
                load.more()
                ballast = disk / "ballast"
                with ballast.open("wb", buffering=0) as file:
                    try:
                        while file.write(bytes(4096)):
                            pass
                    except OSError:
                        pass  # full
                wait_for(
                    lambda: any(
                        2 not in each.isrs
                        for each in metadata(cluster.admin, "t").topics["t"].partitions.values()
                    ),
                    "the full one is out of sync",
                )
                load.more()
                ballast.unlink()
                cluster.wait_in_sync("t")
                load.more()
            check_topic(cluster, "t", load)
            cluster.wait_replicas_equal("t", 3)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def begun(node: bytes, wanted: dict[int, list[int]]) -> bool:
    """Tell whether all partitions of a topic are moving, or have moved."""
    told = json.loads(node)
    moving = {int(number) for number in (*told["adding_replicas"], *told["removing_replicas"])}
    held = {int(number): replicas for number, replicas in told["partitions"].items()}
    return all(number in moving or held[number] == wanted[number] for number in wanted)


def test_fifty_partitions_move_while_everybody_dies(
    zookeeper_classpath: str, tmp_path: Path
) -> None:
    """Source, target and controller are killed in the middle of it, one after the other."""
    with WiredCluster(zookeeper_classpath, tmp_path, brokers=4) as cluster:
        cluster.create("t", 50)
        tree = cluster.tree()
        with Load(cluster, "t") as load:
            load.more(2000)
            held = {
                number: each.replicas
                for number, each in metadata(cluster.admin, "t").topics["t"].partitions.items()
            }
            wanted = {
                number: [(replica + 1) % 4 for replica in replicas]
                for number, replicas in held.items()
            }
            plan = {
                "version": 1,
                "partitions": [
                    {"topic": "t", "partition": number, "replicas": replicas}
                    for number, replicas in wanted.items()
                ],
            }
            tree.create("/admin/reassign_partitions", json.dumps(plan).encode())
            # What has not begun is refused while one of its target is dead, as with Kafka.
            wait_for(lambda: begun(tree.get("/brokers/topics/t")[0], wanted), "all have begun")
            victims = [held[0][0], wanted[0][-1], cluster.controller()]
            for victim in victims:
                cluster.kill(victim)
                load.more(20)
                cluster.start(victim)
            wait_for(
                lambda: all(
                    sorted(each.replicas) == sorted(wanted[number])
                    and sorted(each.isrs) == sorted(wanted[number])
                    for number, each in metadata(cluster.admin, "t").topics["t"].partitions.items()
                ),
                "all have moved",
                180,
            )
            load.more()
        check_topic(cluster, "t", load)
        for number, replicas in wanted.items():
            wait_for(
                lambda n=number, r=replicas: (  # type: ignore[misc]
                    len({cluster.bytes_of(broker, "t", n) for broker in r}) == 1
                ),
                f"equal replicas of {number}",
            )


def test_a_topic_is_deleted_and_made_again_under_load(cluster: WiredCluster) -> None:
    """What is acknowledged by the new topic stays, whatever the old one's producer still sends."""
    tree = cluster.tree()
    cluster.create("t", 3)
    with Load(cluster, "t", "old") as old:
        for turn in range(4):
            old.more_or_failed()
            cluster.admin.delete_topics(["t"])["t"].result(DEADLINE_S)
            if turn % 2:
                victim = cluster.controller()
                cluster.kill(victim)
                cluster.start(victim)
            wait_for(lambda: tree.exists("/brokers/topics/t") is None, "the topic is gone")
            cluster.create("t", 3)
        with Load(cluster, "t", "new") as load:
            load.more(300)
    cluster.wait_in_sync("t")
    found = read_all(cluster, "t")
    assert set(load.acknowledged) <= set(found)
    cluster.wait_replicas_equal("t", 3)
