"""The plain consumer against a broker: reading, moving, pausing, asking, ending."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from tests.unit.consumer.logs import T0, create, delete_before, numbered, write
from tests.unit.metronome import Metronome

from barnabas.blocking.consumer import KafkaConsumer
from barnabas.errors import (
    ConcurrentUseError,
    IllegalStateError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    WakeupError,
)
from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata, OffsetAndTimestamp
from barnabas.testing import Cluster
from barnabas.testing.thread import ThreadRunner, broker_of

Make = Callable[..., KafkaConsumer]
Topic = Callable[..., str]


@pytest.fixture
def consumer(cluster: Cluster) -> Iterator[Make]:
    """Make consumers that the test need not close."""
    made: list[KafkaConsumer] = []

    def make(*topics: str, **options: Any) -> KafkaConsumer:
        options.setdefault("auto_offset_reset", "earliest")
        made.append(KafkaConsumer(*topics, bootstrap_servers=cluster.bootstrap, **options))
        return made[-1]

    yield make
    for each in made:
        each.close()


def read(consumer: KafkaConsumer, count: int, **options: Any) -> list[Any]:
    """Poll until so many records came."""
    records: list[Any] = []
    deadline = time.monotonic() + 20
    while len(records) < count and time.monotonic() < deadline:
        for found in consumer.poll(timeout_ms=1000, **options).values():
            records += found
    return records


def values(records: list[Any]) -> list[int]:
    return [int(record.value) for record in records]


def test_assigned_partitions_are_read_from_the_start(consumer: Make, topic: Topic) -> None:
    """All records of all assigned partitions come, in order, and positions follow."""
    name = topic(partitions=2, records=10)
    both = [TopicPartition(name, 0), TopicPartition(name, 1)]
    reader = consumer()
    reader.assign(both)
    records = read(reader, 20)
    for partition in both:
        mine = [record for record in records if record.partition == partition.partition]
        assert values(mine) == list(range(10))
        assert [record.offset for record in mine] == list(range(10))
        assert reader.position(partition) == 10
        assert reader.highwater(partition) == 10
        assert reader.current_lag(partition) == 0
    first = records[0]
    assert (first.topic, first.key, first.timestamp, first.timestamp_type) == (name, b"k0", T0, 0)
    assert reader.assignment() == set(both)


def test_a_poll_gives_no_more_than_asked_for(consumer: Make, topic: Topic) -> None:
    """max.poll.records bounds every poll, max_records one of them."""
    name = topic(records=25)
    reader = consumer(max_poll_records=10)
    reader.assign([TopicPartition(name, 0)])
    counts = []
    while sum(counts) < 25:
        counts.append(sum(map(len, reader.poll(1000).values())))
    assert counts == [10, 10, 5]
    reader.seek(TopicPartition(name, 0), 0)
    assert values(read(reader, 3, max_records=3)) == [0, 1, 2]


def test_a_poll_without_records_takes_its_time(consumer: Make, topic: Topic) -> None:
    """It waits as long as asked for and no longer, and 0 does not wait."""
    reader = consumer()
    reader.assign([TopicPartition(topic(), 0)])
    reader.poll(200)
    begun = time.monotonic()
    with Metronome() as clock:
        assert reader.poll(timeout_ms=150) == {}
    assert time.monotonic() - begun > 0.14
    assert clock.elapsed_s < 2
    waits = []
    for _ in range(10):
        begun = time.monotonic()
        assert reader.poll() == {}
        waits.append(time.monotonic() - begun)
    assert sorted(waits)[5] < 0.1, waits


def test_what_comes_later_is_read(consumer: Make, cluster: Cluster, topic: Topic) -> None:
    """A poll that waits is woken by a record; latest means: from now on."""
    name = topic(records=5)
    partition = TopicPartition(name, 0)
    reader = consumer(auto_offset_reset="latest")
    reader.assign([partition])
    assert reader.position(partition) == 5
    writer = threading.Timer(0.05, write, (cluster.bootstrap, partition, numbered(3, 5)))
    writer.start()
    assert values(read(reader, 3)) == [5, 6, 7]
    writer.join()


def test_iteration(consumer: Make, topic: Topic) -> None:
    """Iteration gives one record after another, and ends when none comes for the timeout."""
    name = topic(partitions=2, records=600)
    reader = consumer(name, consumer_timeout_ms=3000)
    records = list(reader)
    assert len(records) == 1200
    assert {record.partition for record in records} == {0, 1}
    with pytest.raises(StopIteration):
        next(reader)


def test_iteration_moves_one_by_one(consumer: Make, topic: Topic) -> None:
    """A record counts as read when it is given; poll goes on after the last that was."""
    partition = TopicPartition(topic(records=50), 0)
    reader = consumer(consumer_timeout_ms=2000)
    reader.assign([partition])
    assert [int(next(reader).value) for _ in range(7)] == list(range(7))
    assert reader.position(partition) == 7
    assert values(read(reader, 5, max_records=5)) == [7, 8, 9, 10, 11]
    assert int(next(reader).value) == 12
    reader.seek(partition, 40)
    assert int(next(reader).value) == 40
    assert reader.poll_arrow(2000).column("offset").to_pylist() == list(range(41, 50))


def test_seeks(consumer: Make, topic: Topic) -> None:
    """To an offset, to the ends, and what was fetched before is forgotten."""
    partition = TopicPartition(topic(records=30), 0)
    reader = consumer()
    reader.assign([partition])
    read(reader, 30)
    reader.seek(partition, 28)
    assert values(read(reader, 2)) == [28, 29]
    reader.seek(partition, OffsetAndMetadata(5, "", 0))
    assert values(read(reader, 1, max_records=1)) == [5]
    reader.seek_to_beginning()
    assert reader.position(partition) == 0
    reader.seek_to_end(partition)
    assert reader.position(partition) == 30
    assert reader.poll(100) == {}


def test_pauses(consumer: Make, topic: Topic) -> None:
    """Paused partitions give nothing, also of what was fetched; resumed ones lose nothing."""
    name = topic(partitions=2, records=20)
    one, two = TopicPartition(name, 0), TopicPartition(name, 1)
    reader = consumer(max_poll_records=5)
    reader.assign([one, two])
    first = read(reader, 5)
    paused = TopicPartition(name, first[0].partition)
    other = two if paused == one else one
    reader.pause(paused)
    assert reader.paused() == {paused}
    rest = read(reader, 20)
    assert {record.partition for record in rest} == {other.partition}
    assert reader.poll(100) == {}
    reader.resume(paused)
    assert reader.paused() == set()
    assert values(read(reader, 15)) == list(range(5, 20))


def test_asking_for_offsets(consumer: Make, topic: Topic) -> None:
    """Ends and times are found without an assignment and without moving anything."""
    name = topic(records=10)
    partition = TopicPartition(name, 0)
    reader = consumer()
    assert reader.beginning_offsets([partition]) == {partition: 0}
    assert reader.end_offsets([partition]) == {partition: 10}
    assert reader.offsets_for_times({partition: T0 + 4}) == {
        partition: OffsetAndTimestamp(4, T0 + 4, 0)
    }
    assert reader.offsets_for_times({partition: T0 + 100}) == {partition: None}
    assert reader.partitions_for_topic(name) == {0}
    assert reader.partitions_for_topic("no-such-topic") == set()
    assert name in reader.topics()


def test_asking_about_what_is_not_there(consumer: Make) -> None:
    """A partition that does not exist ends in a timeout that names it."""
    reader = consumer(allow_auto_create_topics=False)
    with pytest.raises(KafkaTimeoutError, match="nothing-0: no response within 300 ms"):
        reader.end_offsets([TopicPartition("nothing", 0)], timeout_ms=300)


def test_starting_by_age(consumer: Make, cluster: Cluster, topic: Topic) -> None:
    """by_duration starts at the first record that is not older; at the end if all are."""
    partition = TopicPartition(topic(), 0)
    now = int(time.time() * 1000)
    rows = [(now - 7_200_000, None, b"0"), (now - 60_000, None, b"1"), (now, None, b"2")]
    write(cluster.bootstrap, partition, rows)
    reader = consumer(auto_offset_reset="by_duration:PT1H")
    reader.assign([partition])
    assert values(read(reader, 2)) == [1, 2]
    old = TopicPartition(topic(records=5), 0)
    reader = consumer(auto_offset_reset="by_duration:PT1H")
    reader.assign([old])
    assert reader.position(old) == 5


def test_beyond_the_log(consumer: Make, cluster: Cluster, topic: Topic) -> None:
    """A position outside of the log is reset by policy; without one the user is told, each time."""
    partition = TopicPartition(topic(records=10), 0)
    delete_before(cluster.bootstrap, partition, 4)
    reader = consumer()
    reader.assign([partition])
    reader.seek(partition, 1)
    assert values(read(reader, 6)) == [4, 5, 6, 7, 8, 9]
    strict = consumer(auto_offset_reset="none")
    strict.assign([partition])
    strict.seek(partition, 99)
    for _ in range(2):
        with pytest.raises(OffsetOutOfRangeError) as caught:
            strict.poll(2000)
        assert caught.value.args[0] == {partition: 99}
    strict.seek(partition, 8)
    assert values(read(strict, 2)) == [8, 9]


def test_no_position_and_no_policy(consumer: Make, topic: Topic) -> None:
    """With none, a partition without a committed offset is an error of poll."""
    partition = TopicPartition(topic(records=1), 0)
    for options in ({}, {"group_id": "nothing-committed"}):
        reader = consumer(auto_offset_reset="none", **options)
        reader.assign([partition])
        with pytest.raises(NoOffsetForPartitionError, match=str(partition)):
            reader.poll(2000)


def test_groups(consumer: Make, topic: Topic) -> None:
    """A member commits, by itself and by auto-commit, and its successor goes on from there."""
    name = topic(partitions=2, records=10)
    reader = consumer(name, group_id="g-1", enable_auto_commit=False)
    assert len(read(reader, 20)) == 20
    assert reader.subscription() == {name}
    reader.commit()
    one, two = TopicPartition(name, 0), TopicPartition(name, 1)
    assert reader.committed(one) == 10
    reader.commit({two: OffsetAndMetadata(7, "half way", -1)})
    assert reader.committed(two, metadata=True) == OffsetAndMetadata(7, "half way", -1)
    outcome = reader.commit_async({one: OffsetAndMetadata(9, "")})
    deadline = time.monotonic() + 10
    while not outcome.done() and time.monotonic() < deadline:
        reader.poll(50)
    assert outcome.result(0) is None
    reader.close()
    successor = consumer(name, group_id="g-1")
    assert sorted(values(read(successor, 4))) == [7, 8, 9, 9]
    successor.close()
    third = consumer(name, group_id="g-1")
    assert third.committed(one) == third.committed(two) == 10, "closing commits what was read"


def test_a_pattern(consumer: Make, cluster: Cluster, topic: Topic) -> None:
    """Topics that match are read, also one that is created later."""
    name = topic(records=2)
    reader = consumer(metadata_max_age_ms=100)
    reader.subscribe(pattern=f"^{name}(-more)?$")
    assert values(read(reader, 2)) == [0, 1]
    create(cluster.bootstrap, f"{name}-more")
    write(cluster.bootstrap, TopicPartition(f"{name}-more", 0), numbered(3, 10))
    assert values(read(reader, 3)) == [10, 11, 12]
    assert reader.subscription() == {name, f"{name}-more"}
    reader.unsubscribe()
    assert reader.subscription() is None
    assert reader.assignment() == set()


def test_deserializers_and_interceptors(consumer: Make, topic: Topic) -> None:
    """Values become objects; hooks see them, and see commits."""
    seen: list[Any] = []

    class Hook:
        def on_consume(self, records: Any) -> None:
            seen.append(sum(map(len, records.values())))

        def on_commit(self, offsets: Any) -> None:
            seen.append(offsets)

    name = topic(records=4)
    reader = consumer(
        name,
        group_id="g-hooks",
        value_deserializer=json.loads,
        key_deserializer=bytes.decode,
        interceptor_classes=[Hook()],
    )
    records = read(reader, 4)
    assert [(record.key, record.value) for record in records] == [(f"k{n}", n) for n in range(4)]
    reader.commit()
    reader.poll(10)
    assert seen == [4, {TopicPartition(name, 0): OffsetAndMetadata(4, "", 0)}]


def test_a_bad_value_stops_in_front_of_it(consumer: Make, cluster: Cluster, topic: Topic) -> None:
    """What came before is given; the error comes each time, until the user seeks past it."""
    partition = TopicPartition(topic(), 0)
    write(cluster.bootstrap, partition, [(T0, None, value) for value in (b"1", b"x", b"3")])
    reader = consumer(value_deserializer=json.loads)
    reader.assign([partition])
    assert [record.value for record in read(reader, 1)] == [1]
    for _ in range(2):
        with pytest.raises(json.JSONDecodeError):
            reader.poll(1000)
    assert reader.position(partition) == 1
    reader.seek(partition, 2)
    assert [record.value for record in read(reader, 1)] == [3]


def test_arrow(consumer: Make, cluster: Cluster, topic: Topic) -> None:
    """Records come as columns, of several partitions at once, with what each record has."""
    name = topic(partitions=2, records=3)
    extra = [(T0, None, None, [("h", b"1"), ("é", None)])]
    write(cluster.bootstrap, TopicPartition(name, 1), extra)
    reader = consumer(name, value_deserializer=json.loads)
    rows: list[dict[str, Any]] = []
    while len(rows) < 7:
        rows += reader.poll_arrow(timeout_ms=1000).to_pylist()
    rows.sort(key=lambda row: (row["partition"], row["offset"]))
    assert [(row["partition"], row["offset"], row["value"]) for row in rows] == [
        *((0, n, b"%d" % n) for n in range(3)),
        *((1, n, b"%d" % n) for n in range(3)),
        (1, 3, None),
    ]
    assert {row["topic"] for row in rows} == {name}
    assert rows[0]["timestamp"].timestamp() * 1000 == T0
    assert rows[6]["headers"] == [{"key": "h", "value": b"1"}, {"key": "é", "value": None}]
    assert rows[6]["key"] is None
    reader.seek_to_beginning()
    assert reader.poll_arrow(2000, max_records=2).num_rows <= 2
    assert consumer().poll_arrow().num_rows == 0


def test_lists_as_in_confluent_kafka(consumer: Make, topic: Topic) -> None:
    """`consume` gives a flat list, and waits in seconds."""
    reader = consumer(topic(records=10))
    records: list[Any] = []
    while len(records) < 10:
        records += reader.consume(4, timeout=5)
    assert values(records) == list(range(10))
    assert reader.consume(1, timeout=0.05) == []


def test_one_thread_at_a_time(consumer: Make, topic: Topic) -> None:
    """A second thread is refused by name, and the first goes on; wakeup is for others."""
    reader = consumer()
    reader.assign([TopicPartition(topic(), 0)])
    outcome: list[BaseException] = []

    def poll() -> None:
        try:
            reader.poll(20_000)
        except WakeupError as failure:
            outcome.append(failure)

    polling = threading.Thread(target=poll)
    polling.start()
    deadline = time.monotonic() + 10
    refused = None
    while refused is None and time.monotonic() < deadline:
        try:
            reader.poll(0)
        except ConcurrentUseError as failure:
            refused = failure
    assert refused is not None
    assert str(polling.ident) in str(refused)
    reader.wakeup()
    polling.join(10)
    assert len(outcome) == 1
    assert reader.poll(0) == {}, "it can be used again"


def test_closing(consumer: Make, topic: Topic) -> None:
    """A closed consumer says so; closing again is nothing; iteration ends."""
    reader = consumer(topic(records=3))
    next(reader)
    with reader:
        pass
    reader.close()
    with pytest.raises(IllegalStateError, match="closed"):
        reader.poll()
    with pytest.raises(StopIteration):
        next(reader)


def test_closing_ends_fetch_sessions() -> None:
    """A broker keeps no session of a consumer that has closed, though a fetch was waiting."""
    made: list[Any] = []

    def make(options: Mapping[str, str]) -> Any:
        made.append(broker_of(options))
        return made[-1]

    with Cluster(runner=ThreadRunner(make)) as cluster:
        sessions = made[0].partitions.fetch_sessions
        create(cluster.bootstrap, "t", 1)
        write(cluster.bootstrap, TopicPartition("t", 0), numbered(3))
        with KafkaConsumer(
            "t", bootstrap_servers=cluster.bootstrap, auto_offset_reset="earliest"
        ) as reader:
            assert values(read(reader, 3)) == [0, 1, 2]
            deadline = time.monotonic() + 60
            while not len(sessions) and time.monotonic() < deadline:
                reader.poll(timeout_ms=10)
            assert len(sessions)
            with Metronome() as clock:
                reader.close()
        assert not len(sessions)
        assert clock.elapsed_s < 5


def test_health_and_metrics(consumer: Make, topic: Topic) -> None:
    """They tell what the consumer does, and how much it has done."""
    name = topic(partitions=2, records=5)
    one, two = TopicPartition(name, 0), TopicPartition(name, 1)
    reader = consumer()
    assert reader.health()["status"] == "nothing assigned"
    reader.assign([one, two])
    read(reader, 10)
    reader.pause(two)
    health = reader.health()
    assert health["partitions"][str(one)]["position"] == 5
    assert health["partitions"][str(one)]["lag"] == 0
    assert health["partitions"][str(one)]["doing"] == "fetching"
    assert health["partitions"][str(two)]["doing"] == "paused"
    groups = reader.metrics()
    assert groups[f"consumer-fetch-manager-metrics.{one}"] == {"records-lag": 0, "records-lead": 5}
    assert groups[f"consumer-fetch-manager-metrics.{name}"]["bytes-consumed-total"] > 0
    metrics = groups["consumer-fetch-manager-metrics"]
    assert metrics["fetch-size-max"] <= metrics["bytes-consumed-total"]
    assert metrics["fetch-throttle-time-max"] == 0
    assert metrics["records-lead-min"] == 5
    assert metrics["records-consumed-total"] == 10
    assert metrics["fetch-total"] >= 1
    assert reader.config["max_poll_records"] == 500


@pytest.mark.parametrize(
    ("call", "failure"),
    [
        (lambda c, p: c.poll(-1), ValueError),
        (lambda c, p: c.poll(max_records=0), ValueError),
        (lambda c, p: c.poll(max_records="5"), TypeError),
        (lambda c, p: c.poll_arrow(-1), ValueError),
        (lambda c, p: c.seek(p, -1), ValueError),
        (lambda c, p: c.seek(p, "0"), ValueError),
        (lambda c, p: c.seek(("a", 99), 0), ValueError),
        (lambda c, p: c.seek_to_end(("a", 99)), ValueError),
        (lambda c, p: c.position("a"), TypeError),
        (lambda c, p: c.position(("a", 99)), IllegalStateError),
        (lambda c, p: c.pause(5), TypeError),
        (lambda c, p: c.commit(), IllegalStateError),
        (lambda c, p: c.commit_async(), IllegalStateError),
        (lambda c, p: c.committed(p), IllegalStateError),
        (lambda c, p: c.offsets_for_times({p: -5}), ValueError),
        (lambda c, p: c.subscribe(["a"]), IllegalStateError),
    ],
)
def test_bad_calls(
    consumer: Make, topic: Topic, call: Callable[[Any, Any], Any], failure: type[Exception]
) -> None:
    """What cannot be meant is refused at once."""
    partition = TopicPartition(topic(), 0)
    reader = consumer()
    reader.assign([partition])
    with pytest.raises(failure):
        call(reader, partition)


@pytest.mark.parametrize(
    "options",
    [
        {"max_pol_records": 5},
        {"auto_offset_reset": "oldest"},
        {"isolation_level": "dirty"},
        {"fetch_min_bytes": -1},
        {"group_instance_id": "x"},
        {"fetch_max_wait_ms": 50_000},
    ],
)
def test_bad_options(options: dict[str, Any]) -> None:
    """A wrong option is refused before anything is opened."""
    with pytest.raises(ConfigError):
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", **options)


def test_nobody_there() -> None:
    """Without a broker the consumer cannot be made, and says whom it tried."""
    with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
        KafkaConsumer(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=200)
    assert not [each for each in threading.enumerate() if each.name.startswith("KafkaConsumer")]
