"""The offsets in a checkpoint: they come back as they were, and a batch is a function of two."""

from __future__ import annotations

import json

import pytest

from barnabas.model.ids import TopicPartition
from barnabas.spark.errors import CheckpointError
from barnabas.spark.offset_ranges import OffsetRange
from barnabas.spark.source_offset import INITIAL, SourceOffset, parse_source_offset, ranges_between

A0, A1, B0 = TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)


def test_positions_survive_the_checkpoint() -> None:
    positions = SourceOffset({A0: 5, A1: 0, B0: 7}, {"a": "idA", "b": ""}, 2, {A1: 0}, 50)
    stored = json.loads(json.dumps(positions.to_json()))
    assert parse_source_offset(stored) == positions
    assert parse_source_offset(stored).to_json() == stored  # type: ignore[union-attr]


def test_the_offset_before_the_first_batch_has_no_partitions() -> None:
    assert parse_source_offset(INITIAL) is None


def test_a_batch_reads_from_one_offset_to_the_next() -> None:
    start = SourceOffset({A0: 5, A1: 3}, {"a": "x"}, 2)
    end = SourceOffset({A0: 9, A1: 3, B0: 4}, {"a": "x", "b": "y"}, 2, {B0: 1})
    assert ranges_between(start, end) == [
        OffsetRange("a", 0, 5, 9),
        OffsetRange("a", 1, 3, 3),
        OffsetRange("b", 0, 1, 4),
    ]


def test_the_first_batch_reads_from_where_it_began() -> None:
    end = SourceOffset({A0: 9}, {"a": "x"}, 2, {A0: 4})
    assert ranges_between(None, end) == [OffsetRange("a", 0, 4, 9)]


@pytest.mark.parametrize(
    ("stored", "message"),
    [
        ({"topic": {"0": 5}}, "version None"),
        ({"version": 2}, "version 2"),
        ({"version": 1, "topics": {"t": {"0": 5}}}, "cannot be parsed"),
        ({"version": 1, "topics": 7, "tasks": 1}, "cannot be parsed"),
    ],
)
def test_what_another_source_wrote_is_refused(stored: dict[str, object], message: str) -> None:
    with pytest.raises(CheckpointError, match=message):
        parse_source_offset(stored)
