"""What people read in the report of a failed test."""

from __future__ import annotations

import time

import pytest

from barnabas import KafkaConsumer, KafkaProducer
from barnabas.testing import Cluster, recorder
from barnabas.testing.recorder import describe_cluster, readable


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (None, "null"),
        (b"", ""),
        (b'{"id": 42}', '{"id": 42}'),
        ("Grüße".encode(), "Grüße"),
        (b"two\nlines", r'"two\nlines"'),
        (b"\xff\x00", "0xff00"),
        (b"\x01\x02", "0x0102"),
        (b"\x00\x00\x00\x00\x07avro", "schema 7: avro"),
        (b"x" * 500, f"{'x' * 119}… (500 bytes)"),
    ],
)
def test_bytes_are_readable(data: bytes | None, shown: str) -> None:
    assert readable(data) == shown


def test_topics_groups_and_dead_brokers_are_described() -> None:
    with Cluster(options={"num.partitions": 2}) as cluster:
        assert describe_cluster(cluster, last=5) == ""
        address = cluster.bootstrap
        begin_ms = int(time.time() * 1000)
        with KafkaProducer(bootstrap_servers=address) as producer:
            for number in range(4):
                place = {"partition": number % 2, "timestamp_ms": begin_ms + number}
                producer.send("orders", b"%d" % number, key=b"k", **place).get(60)
            producer.send("alone", b"", headers=[("h", b"1")], partition=0).get(60)
        options = {"bootstrap_servers": address, "auto_offset_reset": "earliest"}
        with KafkaConsumer("orders", group_id="g", **options) as consumer:
            seen = [next(consumer) for _ in range(4)]
            consumer.commit()
        assert len(seen) == 4
        lines = describe_cluster(cluster, last=2, since_ms=0).splitlines()
        assert lines[0] == "topic alone: 1 offsets (partition: first–next; 0: 0–1, 1: 0–0)"
        assert lines[1].startswith("  0:0 ")
        assert lines[1].endswith(" null →  [h=1]")
        assert lines[2] == "topic orders: 4 offsets (partition: first–next; 0: 0–2, 1: 0–2)"
        assert [line.split()[0] + line.partition(" k")[2] for line in lines[3:5]] == [
            "0:1 → 2",
            "1:1 → 3",
        ]
        assert lines[5:] == ["group g: orders:0 at 2 of 2, orders:1 at 2 of 2"]
        assert describe_cluster(cluster, last=2, since_ms=begin_ms + 3_600_000) == ""
        cluster.kill()
        assert describe_cluster(cluster, last=2) == "could not be read: no broker is running"


def test_a_cluster_that_nobody_reaches_does_not_keep_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recorder, "_TIMEOUT_MS", 200)
    with Cluster(wired=True) as cluster:
        cluster.isolate(0)
        begin = time.monotonic()
        assert describe_cluster(cluster, last=2).startswith("could not be read: ")
        assert time.monotonic() - begin < 20  # a client's own patience is 30 s
