"""Everything at work on a topic while something is broken, and what must hold afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from tests.system.clusters import WiredCluster, metadata, wait_for
from tests.system.workload import Copy, Group, Load, check_topic, committed_of, read_all

PARTITIONS = 3


@contextmanager
def watched(cluster: WiredCluster, topic: str) -> Iterator[Load]:
    """Run a load, a group and a transactional copy; check everything when the fault is over."""
    try:
        with _loaded(cluster, topic) as load:
            yield load
    except BaseException as failure:
        failure.add_note(cluster.last_lines())
        raise


@contextmanager
def _loaded(cluster: WiredCluster, topic: str) -> Iterator[Load]:
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
        partitions = metadata(cluster.admin, topic).topics[topic].partitions
        return all(each.leader not in (-1, old) for each in partitions.values())

    wait_for(settled, f"others lead instead of broker {old}")
    print(f"new leaders of {topic} after {time.monotonic() - began:.2f} s")


def roll(cluster: WiredCluster, topic: str, load: Load, times: int) -> None:
    """Restart all brokers one after the other, some times."""
    for _ in range(times):
        for node in cluster.nodes:
            cluster.stop(node.number)
            cluster.start(node.number)
            cluster.wait_in_sync(topic)
        load.more()
