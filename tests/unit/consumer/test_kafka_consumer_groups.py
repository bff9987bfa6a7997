"""The plain consumer in groups, and what else involves threads, processes and codecs."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.unit.consumer.logs import T0, numbered, write
from tests.unit.metronome import Metronome

from barnabas.blocking.consumer import KafkaConsumer
from barnabas.consumer.group.callbacks import ConsumerRebalanceListener, RebalanceListenerError
from barnabas.errors import ClientForkedError
from barnabas.model.ids import TopicPartition
from barnabas.records.compression import Codec
from barnabas.testing import Cluster

Topic = Callable[..., str]


@pytest.fixture
def consumer(cluster: Cluster) -> Iterator[Callable[..., KafkaConsumer]]:
    made: list[KafkaConsumer] = []

    def make(*topics: str, **options: Any) -> KafkaConsumer:
        options.setdefault("auto_offset_reset", "earliest")
        options.setdefault("heartbeat_interval_ms", 50)
        made.append(KafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def read(reader: KafkaConsumer, count: int) -> list[int]:
    values: list[int] = []
    deadline = time.monotonic() + 20
    while len(values) < count and time.monotonic() < deadline:
        for found in reader.poll(500).values():
            values += [int(record.value) for record in found]
    return values


class Diary(ConsumerRebalanceListener):
    """Commits in its callbacks, and writes down what happened where."""

    def __init__(self) -> None:
        self.consumer: KafkaConsumer | None = None
        self.notes: list[tuple[str, int, int]] = []

    def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        assert self.consumer is not None
        self.consumer.commit()
        self.notes.append(("revoked", len(revoked), threading.get_ident()))

    def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        assert self.consumer is not None
        for partition in assigned:
            self.consumer.position(partition)
        self.notes.append(("assigned", len(assigned), threading.get_ident()))


def test_callbacks_run_in_the_polling_thread(
    consumer: Callable[..., KafkaConsumer], topic: Topic
) -> None:
    """A listener can call the consumer, and what it commits is where the next member starts."""
    name = topic(partitions=2, records=10)
    options = {"group_id": "diary", "enable_auto_commit": False}
    first, diary = consumer(**options), Diary()
    diary.consumer = first
    first.subscribe([name], listener=diary)
    assert len(read(first, 20)) == 20
    second = consumer(name, **options)
    deadline = time.monotonic() + 20
    while len(second.assignment()) != 1 and time.monotonic() < deadline:
        first.poll(20)
        assert second.poll(20) == {}, "the first member has committed everything"
    assert len(first.assignment()) == 1
    assert ("revoked", 2, threading.get_ident()) in diary.notes
    assert {thread for _, _, thread in diary.notes} == {threading.get_ident()}


def test_a_listener_that_fails(consumer: Callable[..., KafkaConsumer], topic: Topic) -> None:
    """Its failure is raised from poll, and the rebalance has gone on."""

    class Failing(ConsumerRebalanceListener):
        def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None: ...

        def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
            raise RuntimeError("no disk for that")

    reader = consumer(group_id="failing")
    reader.subscribe([topic(records=3)], listener=Failing())
    with pytest.raises(RebalanceListenerError, match="no disk for that"):
        read(reader, 3)
    assert read(reader, 3) == [0, 1, 2]


def test_iteration_does_not_keep_a_group_waiting(
    consumer: Callable[..., KafkaConsumer], topic: Topic
) -> None:
    """A member that takes its time with every record gives partitions up when they are due."""
    name = topic(partitions=2, records=300)
    first = consumer(name, group_id="slow")
    seen = [next(first)]
    joined = threading.Event()

    def join() -> None:
        with KafkaConsumer(
            name,
            bootstrap_servers=first.config["bootstrap_servers"],
            group_id="slow",
            heartbeat_interval_ms=50,
        ) as second:
            while not second.assignment():
                second.poll(20)
            joined.set()

    other = threading.Thread(target=join)
    other.start()
    deadline = time.monotonic() + 20
    while not joined.is_set() and time.monotonic() < deadline:
        seen.append(next(first))
        joined.wait(0.02)
    other.join(20)
    assert joined.is_set()
    assert len(seen) < 600, "long before everything was read"


@pytest.mark.parametrize("codec", [codec for codec in Codec if codec is not Codec.NONE])
def test_compressed_records(
    consumer: Callable[..., KafkaConsumer], cluster: Cluster, topic: Topic, codec: Codec
) -> None:
    """Batches of every codec are read, as records and as columns."""
    partition = TopicPartition(topic(), 0)
    for start in range(0, 100, 25):
        write(cluster.bootstrap, partition, numbered(25, start), codec=codec)
    reader = consumer()
    reader.assign([partition])
    assert read(reader, 100) == list(range(100))
    reader.seek(partition, 30)
    rows: list[bytes] = []
    while len(rows) < 70:
        rows += reader.poll_arrow(1000).column("value").to_pylist()
    assert rows == [b"%d" % n for n in range(30, 100)]


def test_health_from_another_thread(consumer: Callable[..., KafkaConsumer], topic: Topic) -> None:
    """Whoever watches over a consumer need not wait for its poll."""
    name = topic()
    reader = consumer()
    reader.assign([TopicPartition(name, 0)])
    polling = threading.Thread(target=reader.poll, args=(1500,))
    polling.start()
    deadline = time.monotonic() + 10
    position = None
    while position is None and time.monotonic() < deadline:
        position = reader.health()["partitions"].get(f"{name}-0", {}).get("position")
    assert position == 0
    assert reader.metrics()["consumer-fetch-manager-metrics"]["records-consumed-total"] == 0
    polling.join()


def test_a_fork_is_refused(consumer: Callable[..., KafkaConsumer], topic: Topic) -> None:
    """A child process cannot use its parent's consumer, also not what is fetched already."""
    reader = consumer(topic(records=5), max_poll_records=1)
    assert read(reader, 1) == [0]
    pid = os.fork()
    if pid == 0:  # the child: only its exit code counts
        code = 1
        try:
            reader.poll()
        except ClientForkedError:
            code = 42
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 42
    assert read(reader, 4) == [1, 2, 3, 4]


def test_what_was_read_is_committed_when_the_consumer_unsubscribes(
    consumer: Callable[..., KafkaConsumer], topic: Topic
) -> None:
    partition = TopicPartition(topic(records=5), 0)
    reader = consumer(partition.topic, group_id="g-parting", auto_commit_interval_ms=100_000)
    assert read(reader, 5) == [0, 1, 2, 3, 4]
    reader.unsubscribe()
    deadline = time.monotonic() + 60
    while reader.committed(partition) is None and time.monotonic() < deadline:
        pass
    assert reader.committed(partition) == 5
    assert reader.health()["group"]["commits_failed"] == 0


def test_control_c(consumer: Callable[..., KafkaConsumer], topic: Topic) -> None:
    """Ctrl-C ends a poll that waits, at once, and the consumer can be used again."""
    reader = consumer(topic())
    reader.poll(200)

    def interrupted() -> None:
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT)).start()
        reader.poll(20_000)

    with Metronome() as clock, pytest.raises(KeyboardInterrupt):
        interrupted()
    assert clock.elapsed_s < 5
    assert reader.poll(10) == {}


def test_a_tombstone_and_headers(
    consumer: Callable[..., KafkaConsumer], cluster: Cluster, topic: Topic
) -> None:
    """Null values and headers arrive as they were sent."""
    partition = TopicPartition(topic(), 0)
    write(cluster.bootstrap, partition, [(T0, b"gone", None, [("why", b"old")])])
    reader = consumer()
    reader.assign([partition])
    (record,) = reader.consume(5, timeout=10)
    assert (record.key, record.value, record.headers) == (b"gone", None, [("why", b"old")])
