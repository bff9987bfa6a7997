"""Data directories that change hands: written by Apache Kafka and opened here, and back again.

A directory of a KRaft broker opens as it is: the broker takes over its ids and its topics. The
other way, Kafka knows topics only from its own metadata log, so the topic is made there and the
files of its partition take the place of the empty ones.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tools.apache_kafka import Distribution, Unavailable
from tools.processes import RunningBroker, start_barnabas

pytestmark = pytest.mark.interop

TOPIC = "changes-hands"
Run = Callable[[RunningBroker], RunningBroker]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def kafka_3_9() -> Distribution:
    try:
        return Distribution.fetch("3.9")
    except Unavailable as why:
        pytest.skip(str(why))


def write(bootstrap: str, name: str, outcomes: tuple[bool, ...] = (True, False)) -> list[str]:
    """Write with every codec, and one transaction for each outcome: committed or aborted."""
    values = []
    for codec in CODECS:
        producer = Producer({"bootstrap.servers": bootstrap, "compression.type": codec})
        for number in range(200):
            values.append(f"{name} {codec} {number} " + "x" * 200)
            producer.produce(TOPIC, values[-1].encode(), f"key {number}", partition=0)
        assert producer.flush(30) == 0
    for committed in outcomes:
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": f"tx {name}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(TOPIC, f"{name} committed={committed}".encode(), partition=0)
        assert producer.flush(30) == 0
        if committed:
            values.append(f"{name} committed=True")
            producer.commit_transaction(30)
        else:
            producer.abort_transaction(30)
    return values


def read(bootstrap: str, count: int) -> list[str]:
    """Read what is committed from the beginning, checking every CRC."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "reader",
            "enable.auto.commit": False,
            "check.crcs": True,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    found: list[str] = []
    while len(found) < count:
        messages = consumer.consume(min(1000, count - len(found)), 60)
        assert messages, f"{len(found)} of {count}"
        for message in messages:
            assert message.error() is None, message.error()
            found.append((message.value() or b"").decode())
    assert consumer.consume(1, 1) == []
    consumer.close()
    return found


def create(broker: RunningBroker, kafka: Distribution) -> None:
    done = kafka.run(
        "kafka-topics",
        f"--bootstrap-server={broker.bootstrap}",
        "--create",
        f"--topic={TOPIC}",
        "--config=segment.bytes=50000",
    )
    assert done.returncode == 0, done.stdout + done.stderr


def copy_partition(source: Path, target: Path) -> None:
    """Put the files of one partition into the place of another's, which keeps its topic id."""
    for file in target.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for file in source.iterdir():
        if file.name != "partition.metadata":
            shutil.copy2(file, target / file.name)


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


def test_there_and_back(kafka_3_9: Distribution, tmp_path: Path, running: Run) -> None:
    """Nothing is lost on the way from Kafka to here and back, after clean stops."""
    theirs = running(kafka_3_9.start(tmp_path / "kafka", heap="512M"))
    create(theirs, kafka_3_9)
    values = write(theirs.bootstrap, "kafka")
    theirs.stop()
    directory = theirs.log_dir / f"{TOPIC}-0"
    assert len(list(directory.glob("*.log"))) > 1

    ours_dir = tmp_path / "ours"
    shutil.copytree(theirs.log_dir, ours_dir)
    ours = running(start_barnabas(ours_dir))
    assert read(ours.bootstrap, len(values)) == values
    values += write(ours.bootstrap, "barnabas")
    assert read(ours.bootstrap, len(values)) == values
    ours.stop()

    copy_partition(ours_dir / f"{TOPIC}-0", directory)
    again = running(kafka_3_9.start(tmp_path / "kafka", port=port_of(theirs), heap="512M"))
    assert read(again.bootstrap, len(values)) == values
    # Its controller does not know which producer ids were given out here: no transactions.
    values += write(again.bootstrap, "kafka again", outcomes=())
    assert read(again.bootstrap, len(values)) == values
    again.stop()


def test_after_a_crash(kafka_3_9: Distribution, tmp_path: Path, running: Run) -> None:
    """The directory of a killed Kafka, with its preallocated indexes, is recovered here."""
    theirs = running(kafka_3_9.start(tmp_path / "kafka", heap="512M"))
    create(theirs, kafka_3_9)
    values = write(theirs.bootstrap, "kafka")
    theirs.process.kill()
    theirs.process.wait()
    ours = running(start_barnabas(theirs.log_dir))
    assert read(ours.bootstrap, len(values)) == values


def test_ours_after_a_crash(kafka_3_9: Distribution, tmp_path: Path, running: Run) -> None:
    """The files of a killed Barnabas, some of them without indexes, are recovered by Kafka."""
    ours_dir = tmp_path / "ours"
    ours = running(start_barnabas(ours_dir))
    create(ours, kafka_3_9)
    values = write(ours.bootstrap, "barnabas")
    ours.process.kill()
    ours.process.wait()
    theirs = running(kafka_3_9.start(tmp_path / "kafka", heap="512M"))
    create(theirs, kafka_3_9)
    theirs.stop()
    (theirs.log_dir / ".kafka_cleanshutdown").unlink()
    copy_partition(ours_dir / f"{TOPIC}-0", theirs.log_dir / f"{TOPIC}-0")
    again = running(kafka_3_9.start(tmp_path / "kafka", port=port_of(theirs), heap="512M"))
    assert read(again.bootstrap, len(values)) == values


def port_of(broker: RunningBroker) -> int:
    """Kafka keeps the port that it was formatted with."""
    return int(broker.bootstrap.rpartition(":")[2])
