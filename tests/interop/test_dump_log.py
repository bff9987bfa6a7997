"""Apache Kafka's log inspector on the broker's files: segments, indexes, producer snapshots."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.interop.conftest import Tool
from tools.apache_kafka import Distribution
from tools.processes import RunningBroker

pytestmark = pytest.mark.interop

COUNT = 40_000


@pytest.fixture(scope="module")
def partition_dir(kafka: Distribution, tool: Tool, broker: RunningBroker) -> Path:
    """A partition of several segments, filled by an idempotent Java producer."""
    name = f"interop.dump-log.{kafka.release}"
    tool("kafka-topics", "--create", "--topic", name, "--config=segment.bytes=1048576")
    done = kafka.run(
        "kafka-producer-perf-test",
        f"--topic={name}",
        f"--num-records={COUNT}",
        "--record-size=100",
        "--throughput=-1",
        "--producer-props",
        f"bootstrap.servers={broker.bootstrap}",
        "enable.idempotence=true",
    )
    assert f"{COUNT} records sent" in done.stdout, done.stdout + done.stderr
    (directory,) = broker.log_dir.rglob(f"{name}-0")
    return directory


def dump(kafka: Distribution, file: Path, *arguments: str) -> str:
    done = kafka.run("kafka-dump-log", f"--files={file}", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Exception" not in done.stdout + done.stderr
    return done.stdout


def test_every_record_is_in_the_segments(kafka: Distribution, partition_dir: Path) -> None:
    segments = sorted(partition_dir.glob("*.log"))
    assert len(segments) > 2
    expected = 0
    for segment in segments:
        assert int(segment.stem) == expected
        out = dump(kafka, segment, "--deep-iteration")
        assert "isvalid: false" not in out
        records = re.findall(r"^\| offset: (\d+) .*valueSize: (\d+)", out, re.MULTILINE)
        assert [int(offset) for offset, _ in records] == list(
            range(expected, expected + len(records))
        )
        assert {size for _, size in records} == {"100"}
        expected += len(records)
    assert expected == COUNT


def test_indexes_agree_with_their_segment(kafka: Distribution, partition_dir: Path) -> None:
    """The inspector looks each entry up in the segment, and names those that are wrong."""
    first = min(partition_dir.glob("*.log"))
    for suffix in (".index", ".timeindex"):
        index = first.with_suffix(suffix)
        assert index.stat().st_size > 0
        out = dump(kafka, index)
        assert re.search(r"(offset|timestamp): [1-9]\d*", out), "no entry"
        assert "Found" not in out  # how every complaint of the inspector begins
        assert "passed sanity check" in dump(kafka, index, "--index-sanity-check")


def test_producer_snapshots(kafka: Distribution, partition_dir: Path) -> None:
    snapshots = sorted(partition_dir.glob("*.snapshot"))
    assert snapshots
    out = dump(kafka, snapshots[-1])
    found = re.search(
        r"producerId: (\d+) producerEpoch: 0 .*lastSequence: (\d+) lastOffset: (\d+)", out
    )
    assert found, out
    assert int(found[2]) == int(found[3]) == int(snapshots[-1].stem) - 1


def test_keys_values_and_headers_are_printed(
    kafka: Distribution, tool: Tool, broker: RunningBroker, name: str
) -> None:
    tool("kafka-topics", "--create", "--topic", name)
    parse = ["parse.key=true", "key.separator=:", "parse.headers=true"]
    tool(
        "kafka-console-producer",
        f"--topic={name}",
        "--compression-codec=lz4",
        *[f"--property={one}" for one in parse],
        input="trace:1\tk1:v1\ntrace:2\tk2:v2\n",
    )
    (directory,) = broker.log_dir.rglob(f"{name}-0")
    out = dump(kafka, min(directory.glob("*.log")), "--print-data-log")
    assert "compresscodec: lz4" in out
    for number in (1, 2):
        assert re.search(rf"headerKeys: \[trace\] key: k{number} payload: v{number}", out), out
