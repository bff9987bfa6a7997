"""Options of `format("barnabas-log")`: what they mean, and how wrong ones are refused."""

from __future__ import annotations

import pytest

from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition
from barnabas.spark.logfiles.options import (
    OFFSET_MAX,
    LogColumns,
    OnCorrupt,
    parse_log,
    parse_log_columns,
)


def test_without_options_everything_is_read() -> None:
    options = parse_log({"path": "data"})
    place = TopicPartition("orders", 3)
    assert options.paths == ("data",)
    assert options.covers(place)
    assert options.offsets(place) == (0, OFFSET_MAX)
    assert (options.from_ms, options.to_ms, options.committed) == (None, None, False)
    assert options.on_corrupt is OnCorrupt.FAIL


def test_several_directories_come_as_json() -> None:
    assert parse_log({"paths": '["a", "b"]'}).paths == ("a", "b")


def test_topics_are_patterns_and_partitions_are_ranges() -> None:
    options = parse_log({"path": "data", "TOPICS": "orders, click-*", "partitions": "0,2-3"})
    covered = [
        (topic, number)
        for topic in ("orders", "click-eu", "orders2")
        for number in range(5)
        if options.covers(TopicPartition(topic, number))
    ]
    assert covered == [(t, n) for t in ("orders", "click-eu") for n in (0, 2, 3)]


def test_offsets_are_one_for_all_or_by_partition() -> None:
    options = parse_log(
        {"path": "data", "startingOffsets": '{"t": {"1": 5}}', "endingOffsets": "90"}
    )
    assert options.offsets(TopicPartition("t", 1)) == (5, 90)
    assert options.offsets(TopicPartition("t", 0)) == (0, 90)


def test_times_are_milliseconds_or_iso_and_in_utc() -> None:
    options = parse_log(
        {
            "path": "data",
            "startingTimestamp": "1700000000000",
            "endingTimestamp": "2023-11-14T22:13:21",
        }
    )
    assert (options.from_ms, options.to_ms) == (1_700_000_000_000, 1_700_000_001_000)


def test_columns_depend_on_options() -> None:
    assert parse_log_columns({"path": "x"}) == LogColumns()
    options = {"includeheaders": "TRUE", "includeControl": "true", "includePlace": "false"}
    assert parse_log_columns(options | {"onCorrupt": "report"}) == LogColumns(
        headers=True, control=True, location=False, corrupt=True
    )


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({}, "load: needs a data directory"),
        ({"path": "x", "topic": "a"}, "topic: no such option; did you mean topics?"),
        ({"path": "x", "includeheader": "true"}, "did you mean includeHeaders?"),
        ({"path": "x", "topics": " , "}, "topics= , : must name at least one topic"),
        ({"path": "x", "partitions": "one"}, "partitions=one: must be numbers and ranges"),
        ({"path": "x", "startingOffsets": "latest"}, "startingOffsets=latest: must be earliest"),
        ({"path": "x", "endingOffsets": '{"t": 5}'}, "endingOffsets="),
        ({"path": "x", "startingTimestamp": "noon"}, "startingTimestamp=noon: must be millisec"),
        ({"path": "x", "onCorrupt": "ignore"}, "onCorrupt=ignore: must be one of fail, skip, rep"),
        ({"path": "x", "readCommitted": "yes"}, "readCommitted=yes: must be true or false"),
        ({"path": "x", "maxBytesPerTask": "0"}, "maxBytesPerTask=0: must be a whole number"),
    ],
)
def test_a_wrong_option_is_refused_in_one_line(options: dict[str, str], complaint: str) -> None:
    with pytest.raises(ConfigError) as failure:
        parse_log(options)
    assert complaint in str(failure.value)
    assert "\n" not in str(failure.value)
