"""Segments of magic 0, 1 and 2 on real disks: copied by replicas, and survived kills."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.old_segments import Row, every_format, segment_name
from tests.system.clusters import wait_for

from barnabas import KafkaAdminClient, KafkaConsumer, TopicPartition
from barnabas.admin import NewTopic
from barnabas.testing import Cluster

pytestmark = pytest.mark.system

TOPIC = "all-formats"
FIRST = TopicPartition(TOPIC, 0)
SEGMENTS, ROWS = every_format()


def test_replicas_copy_old_segments_and_lead_with_them() -> None:
    """What an old release left on one broker is moved to two others, which then serve it alone."""
    with (
        Cluster(brokers=3) as cluster,
        KafkaAdminClient(bootstrap_servers=cluster.bootstrap) as admin,
    ):
        admin.create_topics([NewTopic(TOPIC, replica_assignments={0: [0]})], wait_for_metadata=True)
        cluster.stop(0)
        _leave(cluster.data_dir / "broker-0" / f"{TOPIC}-0")
        cluster.start(0)
        _move(admin, [1, 2, 0])
        for number in (1, 2):
            assert _stored(cluster.data_dir / f"broker-{number}" / f"{TOPIC}-0") == b"".join(
                SEGMENTS.values()
            )
        assert admin.elect_leaders("preferred", {TOPIC: [0]})
        cluster.stop(0)
        with KafkaConsumer(bootstrap_servers=cluster.bootstrap) as consumer:
            consumer.assign([FIRST])
            consumer.seek_to_beginning(FIRST)
            found = [next(consumer) for _ in ROWS]
        assert [Row(r.offset, r.timestamp, r.key, r.value) for r in found] == ROWS


@pytest.mark.parametrize(("story", "least"), [("recovery", 50), ("compaction", 200)])
def test_sigkill_before_any_change_of_a_file_loses_nothing(
    tmp_path: Path, story: str, least: int
) -> None:
    """Real processes and files; what a power cut does besides is simulated in the unit tests."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.system.killed_log", story, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=540,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > least


def _leave(partition: Path) -> None:
    """Put the segments in the place of what a stopped broker has of the partition."""
    for path in partition.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for base, data in SEGMENTS.items():
        (partition / segment_name(base)).write_bytes(data)


def _stored(partition: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(partition.glob("*.log")))


def _move(admin: KafkaAdminClient, replicas: list[int]) -> None:
    wait_for(lambda: _in_sync(admin, {0}), "broker 0 to be back")
    assert admin.alter_partition_reassignments({FIRST: replicas}) == {FIRST: None}
    wait_for(lambda: _in_sync(admin, set(replicas)), "all replicas to be in sync")


def _in_sync(admin: KafkaAdminClient, replicas: set[int]) -> bool:
    [topic] = admin.describe_topics([TOPIC])
    [partition] = topic["partitions"]
    return set(partition["isr_nodes"]) == replicas and partition["leader_id"] >= 0
