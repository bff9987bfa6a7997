"""Compressed batches that unpack to hundreds of megabytes, and what they cost real processes.

Growth is measured by the peak of resident memory, which the system resets on demand.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests import bombs
from tests.bombs import MEGABYTE
from tests.unit.broker.serving import (
    Wire,
    create_topic,
    fetch,
    fetch_request,
    produce,
)

from barnabas.kernels import assign_offsets
from barnabas.model.error_codes import ErrorCode
from barnabas.records.batch import iterate
from barnabas.records.compression import Codec
from barnabas.records.legacy import iterate_messages
from barnabas.testing.process import ProcessRunner
from barnabas.wire.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)

pytestmark = pytest.mark.system

GROWTH_KIB_MAX = 64 * 1024
SIZE = 300 * MEGABYTE
CODECS = [codec for codec in Codec if codec]


class Measured:
    """A broker process whose memory is watched."""

    def __init__(self, directory: Path, **options: str) -> None:
        self._runner = ProcessRunner()
        self.address = self._runner.start(
            {
                "broker.id": "0",
                "listeners": "PLAINTEXT://127.0.0.1:0",
                "log.dirs": str(directory),
                **{name.replace("_", "."): value for name, value in options.items()},
            }
        )
        assert self._runner._process is not None
        self.pid = self._runner._process.pid
        self.wire = Wire(self.address)

    def memory_kib(self, name: str) -> int:
        return resident_kib(self.pid, name)

    def watched(self, act: Callable[..., Any], *arguments: Any) -> Any:
        """Return what a call returns; memory must not grow much meanwhile."""
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        before = self.memory_kib("VmRSS")
        result = act(*arguments)
        assert self.memory_kib("VmHWM") - before < GROWTH_KIB_MAX
        return result

    def close(self) -> None:
        self.wire.socket.close()
        self._runner.kill()


def resident_kib(pid: int | str, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    raise AssertionError(f"process {pid} is gone")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Measured]:
    started = Measured(tmp_path / "d", message_max_bytes="16000000")
    try:
        for name in ("producer", "uncompressed", *(codec.name.lower() for codec in CODECS)):
            create_topic(started.wire, name, configs={"compression.type": name})
        small = bombs.batch(Codec.ZSTD, bombs.many_records(20_000, 100), 20_000)
        assert produce(started.wire, "producer", small).error_code == 0  # loads what is loaded once
        yield started
    finally:
        started.close()


@pytest.mark.parametrize("codec", CODECS)
def test_a_broker_refuses_a_record_of_hundreds_of_megabytes(broker: Measured, codec: Codec) -> None:
    bomb = bombs.batch(codec, bombs.one_record(SIZE))
    other = "gzip" if codec is Codec.LZ4 else "lz4"
    for topic in ("producer", "uncompressed", other):
        result = broker.watched(produce, broker.wire, topic, bomb)
        assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert "barnabas.unpacked.record.max.bytes" in result.error_message


@pytest.mark.parametrize("codec", CODECS)
def test_a_broker_takes_many_records_that_unpack_to_a_hundred_megabytes(
    broker: Measured, codec: Codec
) -> None:
    batch = bombs.batch(codec, bombs.many_records(100_000, 1000), 100_000)
    other = "gzip" if codec is Codec.ZSTD else "zstd"
    for topic in ("producer", other):
        end = fetch(broker.wire, topic).high_watermark
        result = broker.watched(produce, broker.wire, topic, batch)
        assert (result.error_code, result.base_offset) == (0, end)
    stored = fetch(broker.wire, other).records
    assert stored is not None
    assert sum(1 for _ in iterate(stored)) == 100_000


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_a_broker_refuses_old_messages_of_hundreds_of_megabytes(
    broker: Measured, codec: Codec, magic: int
) -> None:
    bomb = bombs.wrapper(codec, bombs.one_message(magic, SIZE), magic)
    for topic in ("producer", "uncompressed", "gzip"):
        result = broker.watched(produce, broker.wire, topic, bomb, magic + 1)
        assert result.error_code == ErrorCode.MESSAGE_TOO_LARGE


def stored_bomb(directory: Path, *, codec: Codec = Codec.GZIP, count: int = 1) -> None:
    """Leave a log with a small batch, then a bomb, then another small batch, as Kafka would."""
    partition = directory / "t-0"
    partition.mkdir(parents=True)
    content = bombs.one_record(SIZE) if count == 1 else bombs.many_records(count, 1000)
    batches = [
        bombs.batch(Codec.NONE, bombs.many_records(1, 10)),
        bombs.batch(codec, content, count, timestamp=1_700_000_001_000),
        bombs.batch(Codec.NONE, bombs.many_records(1, 10), timestamp=1_700_000_002_000),
    ]
    offset, log = 0, b""
    for batch, records in zip(batches, (1, count, 1), strict=True):
        data = bytearray(batch)
        assign_offsets(data, 0, offset, 0)
        offset += records
        log += data
    (partition / f"{0:020}.log").write_bytes(log)


def test_a_stored_bomb_is_looked_up_and_converted_for_old_clients(tmp_path: Path) -> None:
    stored_bomb(tmp_path / "d")
    broker = Measured(tmp_path / "d")
    try:
        wanted = ListOffsetsPartition(partition_index=0, timestamp=1_700_000_000_500)
        asked = ListOffsetsRequest(topics=[ListOffsetsTopic(name="t", partitions=[wanted])])
        answer = broker.watched(broker.wire.ask, asked, 5)
        assert answer.topics[0].partitions[0].offset == 1
        answer = broker.watched(broker.wire.ask, fetch_request("t", 1), 3)
        assert answer.responses[0].partitions[0].error_code != 0
        assert fetch(broker.wire, "t").high_watermark == 3
    finally:
        broker.close()


def test_many_stored_records_are_converted_for_old_clients_bit_by_bit(tmp_path: Path) -> None:
    stored_bomb(tmp_path / "d", count=100_000)
    broker = Measured(tmp_path / "d")
    try:
        offset = 0

        def read_some() -> None:
            nonlocal offset
            for _ in range(5):
                answer = broker.wire.ask(fetch_request("t", offset), 3)
                messages = list(iterate_messages(answer.responses[0].partitions[0].records))
                assert messages[0].offset == offset
                offset = messages[-1].offset + 1

        broker.watched(read_some)
        assert offset > 10_000
    finally:
        broker.close()


READER = """
import asyncio, json, sys
from pathlib import Path

def memory(name):
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1])

kind, bootstrap = sys.argv[1:3]
options = dict(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
seen, errors = 0, []

def blocking():
    global seen
    from barnabas import KafkaConsumer, TopicPartition
    consumer = KafkaConsumer(**options)
    consumer.assign([TopicPartition("t", 0)])
    if kind == "arrow":
        import pyarrow
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    while not errors and seen < int(sys.argv[3]):
        try:
            if kind == "arrow":
                seen += consumer.poll_arrow(timeout_ms=5000).num_rows
            else:
                seen += sum(map(len, consumer.poll(timeout_ms=5000).values()))
        except Exception as failure:
            errors.append(f"{type(failure).__name__}: {failure}")
    growth = memory("VmHWM") - before
    consumer.close()
    return growth

async def asynchronous():
    global seen
    from barnabas import TopicPartition
    from barnabas.aio import AIOKafkaConsumer
    consumer = AIOKafkaConsumer(**options)
    await consumer.start()
    consumer.assign([TopicPartition("t", 0)])
    Path("/proc/self/clear_refs").write_text("5")
    before = memory("VmRSS")
    while not errors and seen < int(sys.argv[3]):
        try:
            await consumer.getone()
            seen += 1
        except Exception as failure:
            errors.append(f"{type(failure).__name__}: {failure}")
    growth = memory("VmHWM") - before
    await consumer.stop()
    return growth

growth = asyncio.run(asynchronous()) if kind == "aio" else blocking()
print(json.dumps({"growth": growth, "seen": seen, "errors": errors}))
"""


@pytest.mark.parametrize("kind", ["blocking", "aio", "arrow"])
def test_a_consumer_gives_what_it_can_and_names_the_record_that_it_cannot(
    tmp_path: Path, kind: str
) -> None:
    stored_bomb(tmp_path / "d")
    broker = Measured(tmp_path / "d")
    try:
        result = read_by(kind, broker, 3)
        assert result["seen"] == 1
        (error,) = result["errors"]
        assert error.startswith("MessageSizeTooLargeError")
        assert "t-0, offset 1: record of 314572" in error
        assert "barnabas.unpacked.record.max.bytes" in error
        assert result["growth"] < GROWTH_KIB_MAX
    finally:
        broker.close()


@pytest.mark.parametrize("kind", ["blocking", "aio", "arrow"])
def test_a_consumer_reads_a_large_batch_bit_by_bit(tmp_path: Path, kind: str) -> None:
    stored_bomb(tmp_path / "d", codec=Codec.ZSTD, count=100_000)
    broker = Measured(tmp_path / "d")
    try:
        result = read_by(kind, broker, 100_002)
        assert result["errors"] == []
        assert result["seen"] == 100_002
        assert result["growth"] < GROWTH_KIB_MAX
    finally:
        broker.close()


@pytest.mark.parametrize("kind", ["blocking", "aio"])  # columns hold such records twice
@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY, Codec.LZ4])
def test_a_consumer_unpacks_old_messages_bit_by_bit(
    tmp_path: Path, kind: str, codec: Codec
) -> None:
    """A fetch brings many small wrappers, of which each unpacks to megabytes."""
    count = 40
    wrapper = bytearray(bombs.wrapper(codec, bombs.one_message(1, 8 * MEGABYTE), 1))
    partition = tmp_path / "d" / "t-0"
    partition.mkdir(parents=True)
    with (partition / f"{0:020}.log").open("wb") as log:
        for offset in range(count):
            wrapper[:8] = offset.to_bytes(8, "big")
            log.write(wrapper)
    broker = Measured(tmp_path / "d")
    try:
        result = read_by(kind, broker, count)
        assert result["errors"] == []
        assert result["seen"] == count
        assert result["growth"] < GROWTH_KIB_MAX
    finally:
        broker.close()


@pytest.mark.parametrize("kind", ["blocking", "aio", "arrow"])
def test_a_consumer_names_the_old_message_that_it_cannot_unpack(tmp_path: Path, kind: str) -> None:
    partition = tmp_path / "d" / "t-0"
    partition.mkdir(parents=True)
    bomb = bombs.wrapper(Codec.GZIP, bombs.one_message(1, SIZE), 1)
    (partition / f"{0:020}.log").write_bytes(bomb)
    broker = Measured(tmp_path / "d")
    try:
        result = read_by(kind, broker, 1)
        (error,) = result["errors"]
        assert error.startswith("MessageSizeTooLargeError: t-0, offset 0: compressed batch")
        assert "barnabas.unpacked.record.max.bytes" in error
        assert result["growth"] < GROWTH_KIB_MAX
    finally:
        broker.close()


def read_by(kind: str, broker: Measured, count: int) -> dict[str, Any]:
    bootstrap = f"{broker.address[0]}:{broker.address[1]}"
    done = subprocess.run(
        [sys.executable, "-c", READER, kind, bootstrap, str(count)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found
