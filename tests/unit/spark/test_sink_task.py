"""What tasks of a sink send: by topic, and in transactions that the driver ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

pa = pytest.importorskip("pyarrow", reason="pip install 'barnabas[arrow]'")

from barnabas import KafkaConsumer, TopicPartition, TransactionHandle  # noqa: E402
from barnabas.errors import InvalidProducerEpochError, ProducerFencedError  # noqa: E402
from barnabas.model.errors import InvalidValueError  # noqa: E402
from barnabas.spark.sink_rows import SinkRows  # noqa: E402
from barnabas.spark.sink_task import (  # noqa: E402  # noqa: E402
    SinkTaskId,
    TransactionEnder,
    send_rows,
    send_transaction,
    was_written,
)

VALUES = pa.schema([("value", pa.string())])


def rows(*values: str) -> list[Any]:
    return [pa.RecordBatch.from_pydict({"value": list(values)}, schema=VALUES)]


def committed(bootstrap: str, topic: str) -> list[bytes]:
    partition = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign([partition])
        consumer.seek_to_beginning()
        end = consumer.end_offsets([partition])[partition]
        found: list[bytes] = []
        while consumer.position(partition) < end:
            for records in consumer.poll(timeout_ms=50).values():
                found += [record.value for record in records]
        return found


class Task:
    """One task of a stream that writes to a topic."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.client = {"bootstrap.servers": bootstrap}
        self.name = SinkTaskId("test", topic, 0)
        self.outgoing = SinkRows(VALUES, topic)
        self.ending = TransactionEnder(self.client)

    def write(self, batch: int, *values: str) -> TransactionHandle | None:
        data = rows(*values) if values else []
        return send_transaction(self.client, self.outgoing, data, self.name, batch)[1]


@pytest.fixture
def topic(new_topic: Callable[[int], str]) -> str:
    return new_topic(1)


@pytest.fixture
def task(bootstrap: str, topic: str) -> Task:
    return Task(bootstrap, topic)


def test_rows_are_there_when_the_task_is_done(bootstrap: str, topic: str) -> None:
    outgoing = SinkRows(VALUES, topic)
    assert send_rows({"bootstrap.servers": bootstrap}, outgoing, [*rows("a"), *rows("b", "c")]) == 3
    assert committed(bootstrap, topic) == [b"a", b"b", b"c"]


def test_rows_of_a_transaction_are_seen_when_the_driver_commits(
    bootstrap: str, topic: str, task: Task
) -> None:
    opened = task.write(0, "a", "b")
    assert opened is not None
    assert committed(bootstrap, topic) == []
    task.ending.commit([opened])
    assert committed(bootstrap, topic) == [b"a", b"b"]
    task.ending.commit([opened])  # again is nothing
    task.ending.abort([opened])  # Spark does, after a commit of which it heard no end
    assert committed(bootstrap, topic) == [b"a", b"b"]


def test_a_batch_that_was_committed_is_not_written_again(
    bootstrap: str, topic: str, task: Task
) -> None:
    first = task.write(0, "a")
    assert first is not None
    task.ending.commit([first])
    assert task.write(0, "a") is None
    second = task.write(1, "b")
    assert second is not None
    task.ending.commit([second])
    assert committed(bootstrap, topic) == [b"a", b"b"]


def test_a_later_attempt_ends_what_an_earlier_one_left(
    bootstrap: str, topic: str, task: Task
) -> None:
    lost = task.write(0, "a")
    again = task.write(0, "a")
    assert lost is not None
    assert again is not None
    with pytest.raises((InvalidProducerEpochError, ProducerFencedError)) as failure:
        task.ending.commit([lost])
    assert "another run of the query took over" in failure.value.__notes__[0]
    task.ending.abort([lost])  # which leaves the second alone
    task.ending.commit([again])
    assert committed(bootstrap, topic) == [b"a"]


def test_what_is_aborted_is_never_seen(bootstrap: str, topic: str, task: Task) -> None:
    opened = task.write(0, "a")
    assert opened is not None
    task.ending.abort([opened])
    assert committed(bootstrap, topic) == []
    again = task.write(0, "a")
    assert again is not None
    task.ending.commit([again])
    assert committed(bootstrap, topic) == [b"a"]


def test_a_task_without_rows_needs_no_transaction(task: Task) -> None:
    assert task.write(0) is None


def test_markers_tell_which_batches_were_written() -> None:
    assert not was_written([], 0)
    assert was_written([1], 0)
    assert not was_written([1], 1)
    assert was_written([1, 5], 3)


def test_rows_go_to_the_topics_that_they_name() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["a", "b", "a"], "value": ["1", "2", "3"]})
    parts = dict(SinkRows(batch.schema, None).parts(batch))
    assert {name: part.to_pydict() for name, part in parts.items()} == {
        "a": {"value": ["1", "3"]},
        "b": {"value": ["2"]},
    }
    [(name, part)] = SinkRows(batch.schema, "c").parts(batch)
    assert (name, part.num_rows) == ("c", 3)


def test_a_row_without_a_topic_is_named() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["a", None], "value": ["1", "2"]})
    with pytest.raises(InvalidValueError, match="topic of row 1 of a batch is null"):
        list(SinkRows(batch.schema, None).parts(batch))


@pytest.mark.parametrize(
    ("headers", "right"),
    [
        ([{"key": "h", "value": None}], True),
        ([], True),
        (None, True),
        ([{"key": None, "value": b"x"}], False),
        ([None], False),
    ],
)
def test_a_header_must_have_a_key(headers: Any, right: bool) -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    batch = pa.RecordBatch.from_pydict({"value": ["1"], "headers": pa.array([headers], kind)})
    outgoing = SinkRows(batch.schema, "t")
    if right:
        [(_, part)] = outgoing.parts(batch)
        assert part.num_rows == 1
        return
    with pytest.raises(InvalidValueError, match="a header must have a key"):
        list(outgoing.parts(batch))


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"key": pa.string()}, "must have the column value; they have key"),
        ({"value": pa.int32()}, "the column value is int32: must be string or binary"),
        ({"value": pa.string(), "partition": pa.int64()}, "the column partition is int64"),
        ({"value": pa.string(), "headers": pa.list_(pa.string())}, "must be array<struct<key"),
    ],
)
def test_wrong_columns_are_named(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidValueError, match=message):
        SinkRows(pa.schema(list(columns.items())), "t")


def test_a_topic_is_needed() -> None:
    with pytest.raises(InvalidValueError, match="set the option topic, or add a column topic"):
        SinkRows(VALUES, None)
