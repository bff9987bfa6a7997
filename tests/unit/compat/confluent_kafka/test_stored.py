"""The offsets that a commit without arguments commits."""

from __future__ import annotations

from typing import Any

from barnabas.compat.confluent_kafka.stored import StoredOffsets
from barnabas.kernels import ConsumerRecord
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

ONE, TWO = TopicPartition("t", 1), TopicPartition("t", 2)


def record(partition: TopicPartition, offset: int) -> ConsumerRecord:
    values: dict[str, Any] = dict.fromkeys(ConsumerRecord._fields, 0)
    values |= {"topic": partition.topic, "partition": partition.partition, "offset": offset}
    return ConsumerRecord(**values | {"leader_epoch": 7, "headers": ()})


def test_what_was_handed_out_is_stored() -> None:
    stored = StoredOffsets(automatic=True)
    assert (stored.to_commit(), stored.position(ONE)) == ({}, None)
    stored.handed_out(record(ONE, 4))
    stored.handed_out(record(ONE, 5))
    stored.handed_out(record(TWO, 0))
    after = OffsetAndMetadata(6, "", 7)
    assert stored.position(ONE) == after
    assert stored.to_commit() == {ONE: after, TWO: OffsetAndMetadata(1, "", 7)}
    assert stored.to_commit([ONE]) == {ONE: after}
    stored.committed({ONE: after})
    assert list(stored.to_commit()) == [TWO]
    stored.handed_out(record(ONE, 6))
    assert stored.to_commit()[ONE].offset == 7
    stored.forget([ONE, TWO])
    assert (stored.to_commit(), stored.position(ONE)) == ({}, None)


def test_what_the_program_stores_is_stored() -> None:
    stored = StoredOffsets(automatic=False)
    stored.handed_out(record(ONE, 4))
    assert stored.to_commit() == {}
    assert stored.position(ONE) == OffsetAndMetadata(5, "", 7)
    stored.store({ONE: OffsetAndMetadata(3)})
    assert stored.to_commit() == {ONE: OffsetAndMetadata(3)}
    stored.committed({ONE: OffsetAndMetadata(3)})
    assert stored.to_commit() == {}
    stored.store({ONE: OffsetAndMetadata(2)})  # back again
    assert stored.to_commit() == {ONE: OffsetAndMetadata(2)}
