"""`TopicPartition`, and what is committed for one."""

from __future__ import annotations

import pytest

from barnabas.compat.confluent_kafka import OFFSET_INVALID, KafkaError, TopicPartition
from barnabas.compat.confluent_kafka.partitions import (
    from_commit,
    from_key,
    listed,
    to_commit,
    with_error,
)
from barnabas.model import ids
from barnabas.structs import OffsetAndMetadata

KEY = ids.TopicPartition("t", 1)


def test_topic_and_partition_alone_make_it_equal() -> None:
    one = TopicPartition("t", 1, 5, "note", 3)
    assert one == TopicPartition("t", 1)
    assert hash(one) == hash(TopicPartition("t", 1))
    assert one != TopicPartition("t", 2)
    assert one != ("t", 1)
    assert sorted([TopicPartition("u", 0), one, TopicPartition("t", 0)])[1] is one
    assert repr(one) == ("TopicPartition{topic=t,partition=1,offset=5,leader_epoch=3,error=None}")


@pytest.mark.parametrize("wrong", [(5,), ("t", "1"), ("t", 1, 1.5)])
def test_fields_of_other_types(wrong: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        TopicPartition(*wrong)  # type: ignore[arg-type]


def test_from_and_to_ours() -> None:
    there = from_commit(KEY, OffsetAndMetadata(5, "note", 3))
    assert (there.offset, there.metadata, there.leader_epoch) == (5, "note", 3)
    assert to_commit(there) == OffsetAndMetadata(5, "note", 3)
    assert to_commit(TopicPartition("t", 1, 5)) == OffsetAndMetadata(5, "", -1)
    for nothing in (None, OffsetAndMetadata(-1)):
        assert from_commit(KEY, nothing).offset == OFFSET_INVALID
    assert with_error(from_key(KEY), KafkaError(1)).error == 1


def test_lists() -> None:
    partitions = [from_key(KEY)]
    assert listed(partitions) == partitions
    for wrong in ("t", [KEY], None):
        with pytest.raises(TypeError, match="expected a"):
            listed(wrong)
