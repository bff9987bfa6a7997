"""Where reading begins: offsets, names and times become one offset per partition."""

from __future__ import annotations

import pytest

from barnabas.model.errors import ConfigError, InvalidValueError
from barnabas.model.ids import EARLIEST, LATEST, TopicPartition
from barnabas.spark.offset_limits import OffsetLimits, parse_offset_limits

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
BOTH = [T0, T1]


def starting(**given: str) -> OffsetLimits:
    return parse_offset_limits(
        {name.lower(): text for name, text in given.items()}, "starting", "latest"
    )


def test_names_stand_for_all_partitions() -> None:
    assert starting().list_offsets_specs(BOTH) == {T0: LATEST, T1: LATEST}
    assert starting(startingOffsets="Earliest").list_offsets_specs(BOTH) == {
        T0: EARLIEST,
        T1: EARLIEST,
    }


def test_offsets_are_taken_as_they_are_and_ends_are_asked_for() -> None:
    limits = starting(startingOffsets='{"t": {"0": 23, "1": -2}}')
    assert limits.list_offsets_specs(BOTH) == {T1: EARLIEST}
    assert limits.resolve(BOTH, {T1: 4}, {T0: 90, T1: 90}) == {T0: 23, T1: 4}


def test_a_time_wins_over_offsets() -> None:
    limits = starting(startingTimestamp="1000", startingOffsets="earliest")
    assert limits.list_offsets_specs(BOTH) == {T0: 1000, T1: 1000}
    by_partition = starting(startingOffsetsByTimestamp='{"t": {"0": 5, "1": 6}}')
    assert by_partition.list_offsets_specs(BOTH) == {T0: 5, T1: 6}


def test_a_time_after_the_last_record_is_an_error_or_the_end() -> None:
    found = {T0: 3, T1: -1}
    with pytest.raises(InvalidValueError, match="t-1 has no record at or after 1000"):
        starting(startingTimestamp="1000").resolve(BOTH, found, {T0: 9, T1: 8})
    lenient = starting(startingTimestamp="1000", startingOffsetsByTimestampStrategy="latest")
    assert lenient.resolve(BOTH, found, {T0: 9, T1: 8}) == {T0: 3, T1: 8}
    ending = parse_offset_limits({"endingtimestamp": "1000"}, "ending", "latest")
    assert ending.resolve(BOTH, found, {T0: 9, T1: 8}) == {T0: 3, T1: 8}


def test_offsets_name_exactly_the_partitions_that_are_read() -> None:
    limits = starting(startingOffsets='{"t": {"0": 1}}')
    with pytest.raises(InvalidValueError, match="must also name t-1"):
        limits.check(BOTH)
    with pytest.raises(InvalidValueError, match="names partitions that are not read: t-0"):
        limits.check([])
    limits.check([T0])


def test_an_end_is_not_the_beginning() -> None:
    with pytest.raises(ConfigError, match="endingOffsets=earliest"):
        parse_offset_limits({"endingoffsets": "earliest"}, "ending", "latest")
    with pytest.raises(ConfigError, match="cannot be -2"):
        parse_offset_limits({"endingoffsets": '{"t": {"0": -2}}'}, "ending", "latest")
