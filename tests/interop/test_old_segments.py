"""Segments of magic 0 and 1: Apache Kafka reads the same in them as we do, before and after us."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from tests.old_segments import Row, every_format, segment_name
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker, start_barnabas

pytestmark = pytest.mark.interop

TOPIC = "old"
SEGMENTS, ROWS = every_format()
Run = Callable[[RunningBroker], RunningBroker]


@pytest.fixture
def running() -> Iterator[Run]:
    """Start brokers, and end those that a failed test leaves."""
    started: list[RunningBroker] = []

    def run(broker: RunningBroker) -> RunningBroker:
        started.append(broker)
        return broker

    yield run
    for broker in started:
        broker.stop()


@pytest.fixture(scope="module")
def kafka_3_9() -> Distribution:
    try:
        return Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))


def write_partition(directory: Path) -> None:
    directory.mkdir(parents=True, exist_ok=True)
    for base, data in SEGMENTS.items():
        (directory / segment_name(base)).write_bytes(data)


def read(bootstrap: str, count: int) -> list[Row]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "r", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[Row] = []
    while len(found) < count:
        messages = consumer.consume(count - len(found), 60)
        assert messages, f"{len(found)} of {count}"
        for message in messages:
            assert message.error() is None, message.error()
            kind, timestamp = message.timestamp()
            key, value, offset = message.key(), message.value(), message.offset()
            assert offset is not None
            found.append(
                Row(
                    offset,
                    timestamp if kind else -1,
                    None if key is None else bytes(key),  # type: ignore[arg-type]
                    None if value is None else bytes(value),  # type: ignore[arg-type]
                )
            )
    consumer.close()
    return found


def dumped(kafka: Distribution, file: Path) -> list[tuple[int, int]]:
    """Offsets and times that Kafka's inspector finds in a segment."""
    done = kafka.run("kafka-dump-log", f"--files={file}", "--deep-iteration")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "isvalid: false" not in done.stdout
    found = re.findall(
        r"^\| offset: (\d+) (?:isValid: \w+ crc: \w+ )?.*?(?:CreateTime: (-?\d+)|keySize)",
        done.stdout,
        re.MULTILINE,
    )
    return [(int(offset), int(time or -1)) for offset, time in found]


def test_the_inspector_reads_the_same_before_and_after_compaction(
    kafka_3_9: Distribution, tmp_path: Path, running: Run
) -> None:
    directory = tmp_path / "data" / f"{TOPIC}-0"
    write_partition(directory)
    found = [
        entry for base in SEGMENTS for entry in dumped(kafka_3_9, directory / segment_name(base))
    ]
    assert found == [(row.offset, row.timestamp) for row in ROWS]

    settings = {
        "log.cleanup.policy": "compact",
        "log.cleaner.backoff.ms": "100",
        "log.cleaner.min.cleanable.ratio": "0.01",
        "log.flush.offset.checkpoint.interval.ms": "100",
    }
    (tmp_path / "data" / ".kafka_cleanshutdown").touch()  # all of it is flushed
    broker = running(start_barnabas(tmp_path / "data", options=settings))
    last = max(SEGMENTS)  # the active segment is not compacted
    newest = {row.key: row.offset for row in ROWS if row.offset < last}
    expected = [row for row in ROWS if row.offset >= last or newest[row.key] == row.offset]
    deadline = time.monotonic() + 60
    while read(broker.bootstrap, len(expected)) != expected:
        assert time.monotonic() < deadline
    broker.stop()
    found = [entry for file in sorted(directory.glob("*.log")) for entry in dumped(kafka_3_9, file)]
    assert found == [(row.offset, row.timestamp) for row in expected]
    first = min(directory.glob("*.log"))
    for suffix in (".index", ".timeindex"):
        done = kafka_3_9.run("kafka-dump-log", f"--files={first.with_suffix(suffix)}")
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Found" not in done.stdout  # how every complaint of the inspector begins


def test_apache_kafka_and_we_serve_the_same(
    kafka_3_9: Distribution, tmp_path: Path, running: Run
) -> None:
    """From the same files: Kafka first, then we, then Kafka again with what we left."""
    theirs = running(kafka_3_9.start(tmp_path / "kafka", heap="512M"))
    done = kafka_3_9.run(
        "kafka-topics", f"--bootstrap-server={theirs.bootstrap}", "--create", f"--topic={TOPIC}"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    theirs.stop()
    directory = theirs.log_dir / f"{TOPIC}-0"
    for file in directory.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    write_partition(directory)
    (theirs.log_dir / ".kafka_cleanshutdown").unlink(missing_ok=True)
    port = int(theirs.bootstrap.rpartition(":")[2])
    theirs = running(kafka_3_9.start(tmp_path / "kafka", port=port, heap="512M"))
    assert read(theirs.bootstrap, len(ROWS)) == ROWS
    theirs.stop()

    ours_dir = tmp_path / "ours"
    (ours_dir / f"{TOPIC}-0").mkdir(parents=True)
    for file in directory.iterdir():
        (ours_dir / f"{TOPIC}-0" / file.name).write_bytes(file.read_bytes())
    ours = running(start_barnabas(ours_dir))
    assert read(ours.bootstrap, len(ROWS)) == ROWS
    ours.stop()
    for base, data in SEGMENTS.items():
        assert (ours_dir / f"{TOPIC}-0" / segment_name(base)).read_bytes() == data


def test_the_console_consumer_reads_all_formats(
    kafka: Distribution, tmp_path: Path, running: Run
) -> None:
    write_partition(tmp_path / "data" / f"{TOPIC}-0")
    ours = running(start_barnabas(tmp_path / "data"))
    done = kafka.run(
        "kafka-console-consumer",
        f"--bootstrap-server={ours.bootstrap}",
        f"--topic={TOPIC}",
        "--partition=0",
        "--offset=earliest",
        f"--max-messages={len(ROWS)}",
        "--timeout-ms=60000",
        "--property=print.offset=true",
        "--property=print.key=true",
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for line in done.stdout.splitlines() if line.startswith("Offset:")]
    found = [line.split("\t") for line in lines]
    assert found == [
        [
            f"Offset:{row.offset}",
            (row.key or b"").decode(),
            "null" if row.value is None else row.value.decode(),
        ]
        for row in ROWS
    ]
