"""A directory that Kafka wrote over many releases, served by a real broker to clients old and new.

Its segments have every format and codec. Clients get them as they are stored; those that ask with
old versions of Fetch get what they know.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka import TopicPartition as AioPartition
from confluent_kafka import Consumer
from confluent_kafka import TopicPartition as ConfluentPartition
from tests.compat.samples import DEPS
from tests.old_segments import Row, every_format, old_segment, segment_name
from tools.processes import RunningBroker, start_barnabas

from barnabas import KafkaConsumer, TopicPartition
from barnabas.aio import AIOKafkaConsumer as OurAioConsumer

pytestmark = pytest.mark.compat

TOPIC, LZ4, OLD, APART = "all-formats", "lz4-of-magic-0", "without-zstd", "formats-apart"
SEGMENTS, ROWS = every_format(lz4_of_magic_0=False)
APART_SEGMENTS, APART_ROWS = every_format(lz4_of_magic_0=False, mixed_segment=False)
LZ4_DATA, LZ4_ROWS = old_segment(0, 0, "lz4")
OLD_END = 240 - 30  # where zstd begins


def write_directory(data_dir: Path) -> None:
    for topic, segments in (
        (TOPIC, SEGMENTS),
        (LZ4, {0: LZ4_DATA}),
        (APART, APART_SEGMENTS),
        (OLD, {base: data for base, data in SEGMENTS.items() if base < OLD_END}),
    ):
        partition = data_dir / f"{topic}-0"
        partition.mkdir(parents=True)
        for base, data in segments.items():
            (partition / segment_name(base)).write_bytes(data)


@pytest.fixture(scope="module")
def old_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningBroker]:
    data_dir = tmp_path_factory.mktemp("old") / "data"
    write_directory(data_dir)
    running = start_barnabas(data_dir)
    yield running
    running.stop()
    # Nothing asked for a change.
    for base, data in SEGMENTS.items():
        assert (data_dir / f"{TOPIC}-0" / segment_name(base)).read_bytes() == data


def rows_for(topic: str) -> list[Row]:
    return {TOPIC: ROWS, LZ4: LZ4_ROWS, OLD: ROWS[:OLD_END], APART: APART_ROWS}[topic]


def none_as_minus_one(timestamp: int | None) -> int:
    return -1 if timestamp is None else timestamp


@pytest.mark.parametrize("topic", [TOPIC, LZ4, OLD])
def test_our_blocking_consumer(old_broker: RunningBroker, topic: str) -> None:
    rows = rows_for(topic)
    with KafkaConsumer(bootstrap_servers=old_broker.bootstrap) as consumer:
        partition = TopicPartition(topic, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        found = [next(consumer) for _ in rows]
        assert [Row(r.offset, r.timestamp, r.key, r.value) for r in found] == rows
        assert consumer.end_offsets([partition])[partition] == len(rows)
        for row in rows[::17]:
            consumer.seek(partition, row.offset)
            assert next(consumer).value == row.value
        timed = [row for row in rows if row.timestamp >= 0]
        for row in timed[::11]:
            at = consumer.offsets_for_times({partition: row.timestamp})[partition]
            assert at is not None
            assert (at.offset, at.timestamp) == (row.offset, row.timestamp)


@pytest.mark.parametrize("topic", [TOPIC, LZ4, OLD])
def test_our_asyncio_consumer(old_broker: RunningBroker, topic: str) -> None:
    async def read() -> list[Row]:
        async with OurAioConsumer(bootstrap_servers=old_broker.bootstrap) as consumer:
            partition = TopicPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            found = [await consumer.getone() for _ in rows_for(topic)]
        return [Row(r.offset, r.timestamp, r.key, r.value) for r in found]

    assert asyncio.run(asyncio.wait_for(read(), 60)) == rows_for(topic)


@pytest.mark.parametrize("topic", [TOPIC, LZ4, OLD])
def test_the_consume_command(old_broker: RunningBroker, topic: str) -> None:
    rows = rows_for(topic)
    done = subprocess.run(
        [
            str(Path(sys.executable).parent / "barnabas"),
            *("consume", topic, "--json", "--from", "beginning", "--exit-at-end"),
            *("--bootstrap-server", old_broker.bootstrap),
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    values = [None if row.value is None else row.value.decode() for row in rows]
    assert [record["value"] for record in found] == values
    assert [record["offset"] for record in found] == [row.offset for row in rows]


@pytest.mark.parametrize("topic", [TOPIC, LZ4, OLD])
def test_confluent_kafka(old_broker: RunningBroker, topic: str) -> None:
    rows = rows_for(topic)
    consumer = Consumer(
        {
            "bootstrap.servers": old_broker.bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    consumer.assign([ConfluentPartition(topic, 0, 0)])
    found: list[Row] = []
    while len(found) < len(rows):
        messages = consumer.consume(len(rows) - len(found), 30)
        assert messages, f"{len(found)} of {len(rows)}"
        for message in messages:
            assert message.error() is None, message.error()
            kind, timestamp = message.timestamp()
            offset = message.offset()
            assert offset is not None
            found.append(
                Row(
                    offset,
                    timestamp if kind else -1,
                    _bytes(message.key()),
                    _bytes(message.value()),
                )
            )
    consumer.close()
    assert found == rows


def _bytes(field: Any) -> bytes | None:
    return None if field is None else bytes(field)


@pytest.mark.parametrize("topic", [APART, OLD])
def test_aiokafka(old_broker: RunningBroker, topic: str) -> None:
    """It does not read lz4 of magic 0, and takes the format of an answer from its first entry."""

    async def read() -> list[Row]:
        async with AIOKafkaConsumer(bootstrap_servers=old_broker.bootstrap) as consumer:
            partition = AioPartition(topic, 0)
            consumer.assign([partition])
            await consumer.seek_to_beginning(partition)
            found = [await consumer.getone() for _ in rows_for(topic)]
        return [Row(r.offset, none_as_minus_one(r.timestamp), r.key, r.value) for r in found]

    assert asyncio.run(asyncio.wait_for(read(), 60)) == rows_for(topic)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("topic", [TOPIC, OLD])  # lz4 of magic 0 needs another library there
def test_kafka_python(old_broker: RunningBroker, topic: str) -> None:
    from kafka import KafkaConsumer as OtherConsumer
    from kafka import TopicPartition as OtherPartition

    rows = rows_for(topic)
    consumer = OtherConsumer(bootstrap_servers=old_broker.bootstrap, consumer_timeout_ms=30_000)
    partition = OtherPartition(topic, 0)
    consumer.assign([partition])
    consumer.seek_to_beginning(partition)
    found = [next(consumer) for _ in rows]
    consumer.close()
    assert [Row(r.offset, none_as_minus_one(r.timestamp), r.key, r.value) for r in found] == rows


PROGRAM = """
import json, sys
from kafka import KafkaConsumer, TopicPartition, __version__
assert __version__ == "2.0.2", __version__
version = json.loads(sys.argv[4])
consumer = KafkaConsumer(
    bootstrap_servers=sys.argv[1],
    api_version=None if version is None else tuple(version),
    consumer_timeout_ms=30000,
)
partition = TopicPartition(sys.argv[2], 0)
consumer.assign([partition])
consumer.seek(partition, 0)
for _ in range(int(sys.argv[3])):
    record = next(consumer)
    row = [record.offset, record.timestamp, record.key, record.value]
    print(json.dumps([each.decode() if isinstance(each, bytes) else each for each in row]))
"""


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="2.0.2 does not import on Python 3.12")
@pytest.mark.parametrize(
    ("topic", "version"),
    [(TOPIC, None), (OLD, None), (OLD, (0, 9)), (OLD, (0, 10)), (OLD, (0, 11))],
    ids=str,
)
def test_kafka_python_2_0_2(
    old_broker: RunningBroker, topic: str, version: tuple[int, ...] | None
) -> None:
    """By itself, and as if the broker were as old as its segments: Fetch v1, v2 and v4."""
    release = DEPS / "kafka-python-2.0.2"
    if not release.is_dir():
        pytest.skip("kafka-python 2.0.2 is not there (make deps fetches it)")
    rows = rows_for(topic)
    given = [old_broker.bootstrap, topic, str(len(rows)), json.dumps(version)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *given],
        env={**os.environ, "PYTHONPATH": str(release)},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    timeless = version == (0, 9)
    assert found == [
        [
            row.offset,
            None if timeless or row.timestamp < 0 else row.timestamp,
            *[None if field is None else field.decode() for field in (row.key, row.value)],
        ]
        for row in rows
    ]


Start = Callable[..., RunningBroker]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start brokers, and end those that a failed test leaves."""
    started: list[RunningBroker] = []

    def run(data_dir: Path, **options: str) -> RunningBroker:
        given = {name.replace("_", "."): value for name, value in options.items()}
        started.append(start_barnabas(data_dir, options=given))
        return started[-1]

    yield run
    for broker in started:
        broker.stop()


def test_a_damaged_log_is_offline_and_the_others_are_served(tmp_path: Path, start: Start) -> None:
    data_dir = tmp_path / "data"
    write_directory(data_dir)
    victim = data_dir / f"{LZ4}-0" / segment_name(0)
    damaged = bytearray(LZ4_DATA)
    damaged[16] = 7
    victim.write_bytes(damaged)
    broker = start(data_dir)
    said = data_dir.with_name("data.out").read_text()
    assert f"log {LZ4}-0: offline" in said
    assert f"{victim} at 0: magic 7" in said
    with KafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        partition = TopicPartition(TOPIC, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        assert [next(consumer).offset for _ in ROWS] == [row.offset for row in ROWS]
    assert broker.stop() == 0
    assert victim.read_bytes() == damaged

    shutil.copy(victim, tmp_path / "kept")
    damaged[16] = 0
    victim.write_bytes(damaged)
    broker = start(data_dir)
    with KafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
        partition = TopicPartition(LZ4, 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        assert [next(consumer).value for _ in LZ4_ROWS] == [row.value for row in LZ4_ROWS]
