"""The readers as Spark calls them, step by step, against a broker and without a session."""

from __future__ import annotations

import json
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")
pytest.importorskip("pyspark", reason="pip install 'barnabas[spark]'")

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import BinaryType, StructField, StructType

from barnabas import KafkaAdminClient, KafkaProducer
from barnabas.admin import NewTopic
from barnabas.model.errors import InvalidValueError
from barnabas.spark.datasource import BarnabasSource
from barnabas.spark.errors import DataLossError
from barnabas.spark.readers import BatchReader, StreamReader
from barnabas.spark.worker import consumer_pool

VALUE = StructType([StructField("value", BinaryType())])
ALL = ReadAllAvailable()


class Run:
    """A source planner's process: asks a reader as Spark does, offsets being JSON between."""

    def __init__(self, bootstrap: str, **options: str) -> None:
        source = BarnabasSource({"kafka.bootstrap.servers": bootstrap, **options})
        self.reader: StreamReader = source.streamReader(VALUE)

    def latest(self, start: dict[str, Any], limit: Any = ALL) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(json.dumps(self.reader.latestOffset(start, limit)))
        return found

    def values(self, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
        tasks = self.reader.partitions(start, end)
        in_task = pickle.loads(pickle.dumps(self.reader))  # as it travels to the executors
        return sorted(
            int(row["value"])
            for task in pickle.loads(pickle.dumps(tasks))
            for batch in in_task.read(task)
            for row in batch.to_pylist()
        )


@pytest.fixture(autouse=True, scope="module")
def worker() -> Iterator[None]:
    """End what a worker process would keep between tasks."""
    yield
    consumer_pool().close()


@pytest.fixture
def run(bootstrap: str) -> Iterator[Callable[..., Run]]:
    runs: list[Run] = []

    def start(**options: str) -> Run:
        runs.append(Run(bootstrap, **{"startingOffsets": "earliest", **options}))
        return runs[-1]

    yield start
    for each in runs:
        each.reader.stop()


@pytest.fixture
def producer(bootstrap: str) -> Iterator[KafkaProducer]:
    with KafkaProducer(bootstrap_servers=bootstrap) as client:
        yield client


def fill(producer: KafkaProducer, topic: str, numbers: range) -> None:
    for number in numbers:
        producer.send(topic, b"%d" % number, partition=number % 2)
    producer.flush()


def test_batches_follow_each_other_and_idleness_is_no_batch(
    run: Callable[..., Run], producer: KafkaProducer, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)
    fill(producer, topic, range(10))
    stream = run(subscribe=topic)
    initial = stream.reader.initialOffset()
    first = stream.latest(initial)
    assert stream.values(initial, first) == list(range(10))
    assert stream.latest(first) == first
    assert stream.reader.partitions(first, first) == []
    fill(producer, topic, range(10, 14))
    second = stream.latest(first, ReadMaxRows(3))
    third = stream.latest(second, ReadMaxRows(3))
    parts = stream.values(first, second), stream.values(second, third)
    assert list(map(len, parts)) == [3, 1]
    assert sorted(parts[0] + parts[1]) == [10, 11, 12, 13]
    report = stream.reader.reportLatestOffset()
    assert report is not None
    assert report["topics"][topic]["offsets"] == {"0": 7, "1": 7}


def test_a_first_batch_that_failed_reads_the_same_again(
    run: Callable[..., Run], producer: KafkaProducer, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)
    fill(producer, topic, range(10))
    stream = run(subscribe=topic, startingOffsets="latest")
    initial = stream.reader.initialOffset()
    pinned = stream.latest(initial)
    fill(producer, topic, range(10, 20))
    end = stream.latest(pinned)
    fill(producer, topic, range(20, 30))
    again = run(subscribe=topic, startingOffsets="latest")
    assert again.reader.initialOffset() == initial
    assert again.values(initial, pinned) == []
    assert again.values(pinned, end) == list(range(10, 20))


def test_a_replay_has_the_tasks_of_then_whatever_the_options_say_now(
    run: Callable[..., Run], producer: KafkaProducer, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)
    fill(producer, topic, range(20))
    stream = run(subscribe=topic, minPartitions="4", maxRecordsPerPartition="3")
    initial = stream.reader.initialOffset()
    end = stream.latest(initial)

    def planned_by(reader: StreamReader) -> list[Any]:
        return [task.value for task in reader.partitions(initial, end)]

    planned = planned_by(stream.reader)
    assert len(planned) >= 7  # of three offsets each
    assert planned_by(run(subscribe=topic).reader) == planned


def test_offsets_are_committed_for_the_group_once_spark_is_done_with_them(
    run: Callable[..., Run],
    producer: KafkaProducer,
    admin: KafkaAdminClient,
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(2)

    def committed() -> dict[int, int]:
        offsets = admin.list_consumer_group_offsets(f"group-{topic}")
        return {partition.partition: each.offset for partition, each in offsets.items()}

    fill(producer, topic, range(10))
    stream = run(subscribe=topic, offsetGroup=f"group-{topic}")
    end = stream.latest(stream.reader.initialOffset())
    assert committed() == {}  # nothing was written anywhere yet
    stream.latest(end)
    assert committed() == {0: 5, 1: 5}
    fill(producer, topic, range(10, 12))
    stream.reader.commit(stream.latest(end))
    assert committed() == {0: 6, 1: 6}


def test_available_now_ends_where_it_was_prepared(
    run: Callable[..., Run], producer: KafkaProducer, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)
    fill(producer, topic, range(4))
    stream = run(subscribe=topic, maxOffsetsPerTrigger="3")
    stream.reader.prepareForTriggerAvailableNow()
    fill(producer, topic, range(4, 10))
    limit = stream.reader.getDefaultReadLimit()
    assert limit == ReadMaxRows(3)
    initial = stream.reader.initialOffset()
    first = stream.latest(initial, limit)
    second = stream.latest(first, limit)
    assert sorted(stream.values(initial, first) + stream.values(first, second)) == [0, 1, 2, 3]
    assert stream.latest(second, limit) == second


def test_a_replay_of_a_topic_that_was_created_again_is_refused(
    run: Callable[..., Run],
    producer: KafkaProducer,
    admin: KafkaAdminClient,
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(2)
    fill(producer, topic, range(10))
    stream = run(subscribe=topic)
    initial = stream.reader.initialOffset()
    end = stream.latest(initial)
    admin.delete_topics([topic])
    admin.create_topics([NewTopic(topic, 2, 1)])
    with pytest.raises(DataLossError, match=f"offsets 0 to 4 of {topic}-0 .*recreated"):
        run(subscribe=topic).values(initial, end)
    assert run(subscribe=topic, failOnDataLoss="false").values(initial, end) == []


def test_topics_that_match_a_pattern_join_later(
    run: Callable[..., Run],
    producer: KafkaProducer,
    admin: KafkaAdminClient,
    new_topic: Callable[[int], str],
) -> None:
    topic = new_topic(2)
    fill(producer, topic, range(4))
    stream = run(subscribePattern=f"{topic}|later-{topic}")
    first = stream.latest(stream.reader.initialOffset())
    admin.create_topics([NewTopic(f"later-{topic}", 2, 1)])
    fill(producer, f"later-{topic}", range(100, 103))
    second = stream.latest(first)
    assert stream.values(first, second) == [100, 101, 102]


def batch(bootstrap: str, **options: str) -> BatchReader:
    source = BarnabasSource({"kafka.bootstrap.servers": bootstrap, **options})
    return source.reader(VALUE)


def test_a_batch_query_reads_by_time(
    bootstrap: str, producer: KafkaProducer, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(2)
    for number in range(10):
        producer.send(topic, b"%d" % number, partition=0, timestamp_ms=1000 * number)
    producer.flush()
    reader = batch(
        bootstrap,
        assign=f'{{"{topic}": [0]}}',
        startingTimestamp="2500",
        endingTimestamp="7000",
        maxRecordsPerPartition="2",
    )
    tasks = reader.partitions()
    assert [[len(each) for each in task.value] for task in tasks] == [[2], [2]]
    values = [
        int(row["value"])
        for task in tasks
        for read in reader.read(task)
        for row in read.to_pylist()
    ]
    assert sorted(values) == [3, 4, 5, 6]


def test_an_end_beyond_the_log_is_refused(
    bootstrap: str, producer: KafkaProducer, new_topic: Callable[[int], str]
) -> None:
    topic = new_topic(1)
    ends = {"endingOffsets": f'{{"{topic}": {{"0": 9}}}}', "subscribe": topic}
    with pytest.raises(InvalidValueError, match=f"9 for {topic}-0: must be at most 0"):
        batch(bootstrap, **ends).partitions()
    assert batch(bootstrap, failOnDataLoss="false", **ends).partitions() == []
