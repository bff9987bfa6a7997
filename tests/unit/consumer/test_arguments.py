"""Arguments of calls: what is meant is taken, what cannot be meant is refused by value."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.consumer.arguments import (
    checked_count,
    checked_offset,
    checked_offsets,
    checked_partition,
    checked_timestamps,
)
from barnabas.model.ids import TopicPartition
from barnabas.structs import OffsetAndMetadata

P = TopicPartition("t", 0)


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (5, OffsetAndMetadata(5, "", -1)),
        ((5,), OffsetAndMetadata(5, "", -1)),
        ((5, "note"), OffsetAndMetadata(5, "note", -1)),
        ((5, "note", 2), OffsetAndMetadata(5, "note", 2)),
        ((5, "note", None), OffsetAndMetadata(5, "note", -1)),
        ((5, None), OffsetAndMetadata(5, "", -1)),
        (OffsetAndMetadata(5, "note", 3), OffsetAndMetadata(5, "note", 3)),
    ],
)
def test_offsets_to_commit(given: Any, meant: OffsetAndMetadata) -> None:
    """Offsets come in all the forms that programs use."""
    assert checked_offsets({("t", 0): given}) == {P: meant}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({}, "must be"),
        (None, "must be"),
        ({P: -1}, "offset -1 for"),
        ({P: "5"}, "offset '5' for"),
        ({P: True}, "offset True"),
        ({P: ()}, "offset None"),
        ({P: (5, 6)}, "metadata 6"),
    ],
)
def test_bad_offsets_to_commit(given: Any, complaint: str) -> None:
    """The complaint names the value."""
    with pytest.raises(ValueError, match=complaint):
        checked_offsets(given)


@pytest.mark.parametrize("given", ["t", ("t",), ("t", "0"), (0, 0), None])
def test_bad_partitions(given: Any) -> None:
    """What is no pair of name and number is no partition."""
    with pytest.raises(TypeError, match="is not a TopicPartition"):
        checked_partition(given)


def test_numbers() -> None:
    """Offsets, counts and times have their bounds."""
    assert checked_offset(0) == 0
    assert checked_count(1, "max_records") == 1
    assert checked_timestamps({("t", 0): 5.0}) == {P: 5}
    for bad in (-1, "1", None, False):
        with pytest.raises(ValueError, match=f"offset {bad!r}"):
            checked_offset(bad)
    with pytest.raises(ValueError, match="max_records=0"):
        checked_count(0, "max_records")
    with pytest.raises(TypeError, match="max_records='1'"):
        checked_count("1", "max_records")
    with pytest.raises(ValueError, match="timestamp -1"):
        checked_timestamps({P: -1})
    with pytest.raises(TypeError):
        checked_timestamps([P])
