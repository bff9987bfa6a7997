"""Options: Spark's names in any case, and one line for what is wrong."""

from __future__ import annotations

import pytest

from barnabas.model.errors import ConfigError
from barnabas.model.ids import TopicPartition
from barnabas.spark.options import parse_columns, parse_sink, parse_source
from barnabas.spark.topic_selection import SelectedTopic

SERVERS = {"kafka.bootstrap.servers": "b:9092"}


def source(streaming: bool = True, **given: str) -> object:
    return parse_source({**SERVERS, **given}, streaming=streaming)


def test_names_are_compared_without_case() -> None:
    options = parse_source(
        {**SERVERS, "SUBSCRIBE": "a, b,a", "failondataloss": "FALSE", "minPartitions": "7"},
        streaming=True,
    )
    assert options.selection.topics == ("a", "b")
    assert (options.fail_on_data_loss, options.partitions_min) == (False, 7)
    assert options.client["enable.auto.commit"] == "false"
    assert options.tasks(3) == 7


def test_tasks_are_about_the_cores_and_never_more_than_the_partitions() -> None:
    options = parse_source({**SERVERS, "subscribe": "a"}, streaming=True)
    assert options.tasks(1) == 1
    assert 1 <= options.tasks(10_000) < 10_000


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"subscribe": "a", "assign": '{"a": [0]}'}, "subscribe and assign are set"),
        ({"subscribe": " , "}, "must name at least one topic"),
        ({"subscribePattern": "("}, "not a regular expression"),
        ({"assign": "[0]"}, "must be JSON like"),
        ({"assign": '{"a": [-1]}'}, "must look like"),
        ({"assign": "{}"}, "must name at least one partition"),
        ({"subscribe": "a", "startingOffset": "earliest"}, "did you mean startingOffsets"),
        ({"subscribe": "a", "startingOffsets": "first"}, "must be earliest, latest or JSON"),
        ({"subscribe": "a", "startingOffsets": '{"a": {"0": -3}}'}, "-3 for a-0: .* at least -2"),
        ({"subscribe": "a", "startingTimestamp": "now"}, "must be milliseconds"),
        ({"subscribe": "a", "endingOffsets": "latest"}, "a stream has no end"),
        ({"subscribe": "a", "maxOffsetsPerTrigger": "0"}, "maxOffsetsPerTrigger=0: .* at least 1"),
        ({"subscribe": "a", "failOnDataLoss": "no"}, "must be true or false"),
        ({"subscribe": "a", "maxTriggerDelay": "soon"}, "must be a time like"),
        ({"subscribe": "a", "kafka.auto.offset.reset": "latest"}, "cannot be set"),
        ({"subscribe": "a", "kafka.fetch.max.byte": "1"}, "did you mean fetch.max.bytes"),
        ({"subscribe": "a", "valueFormat": "xml"}, "must be one of binary"),
        ({"subscribe": "a", "valueFormat": "json"}, "needs valueSchema"),
        ({"subscribe": "a", "valueSchema": "a INT"}, "has no schema"),
        (
            {"subscribe": "a", "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "8"},
            "must be at most maxOffsetsPerTrigger=8",
        ),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        source(**given)


def test_servers_are_needed() -> None:
    with pytest.raises(ConfigError, match=r"kafka\.bootstrap\.servers: must be set"):
        parse_source({"subscribe": "a"}, streaming=True)


def test_a_batch_query_does_not_begin_at_the_end() -> None:
    with pytest.raises(ConfigError, match="startingOffsets=latest: must be earliest or JSON"):
        source(streaming=False, subscribe="a", startingOffsets="latest")


@pytest.mark.parametrize(("text", "delay_ms"), [("90", 90), ("5s", 5000), ("15m", 900_000)])
def test_delays_have_units(text: str, delay_ms: int) -> None:
    options = parse_source({**SERVERS, "subscribe": "a", "maxTriggerDelay": text}, streaming=True)
    assert options.trigger_delay_ms_max == delay_ms


def test_a_pattern_matches_parts_of_names_unless_it_says_else() -> None:
    found = parse_source({**SERVERS, "subscribePattern": "log-a"}, streaming=True)
    assert [found.selection.covers(name) for name in ("log-a", "blog-ab", "log-")] == [
        True,
        True,
        False,
    ]
    options = parse_source({**SERVERS, "subscribePattern": "^log-.*$"}, streaming=True)
    topics = {name: SelectedTopic("", (0, 1)) for name in ("log-a", "blog-a", "log-")}
    assert options.selection.partitions(topics) == [
        TopicPartition(name, number) for name in ("log-", "log-a") for number in (0, 1)
    ]


def test_columns_are_known_without_the_rest() -> None:
    value_format, with_headers = parse_columns({**SERVERS, "includeHeaders": "true"})
    assert (value_format.name, with_headers) == ("binary", True)


def test_a_sink_takes_its_own_options() -> None:
    options = parse_sink(
        {**SERVERS, "topic": "t", "exactlyOnce": "true", "checkpointLocation": "/c"},
        streaming=True,
    )
    assert (options.topic, options.exactly_once) == ("t", True)
    with pytest.raises(ConfigError, match="exactlyOnce=true: only a stream"):
        parse_sink({**SERVERS, "exactlyOnce": "true"}, streaming=False)
    with pytest.raises(ConfigError, match="subscribe: no such option"):
        parse_sink({**SERVERS, "subscribe": "t"}, streaming=False)
    with pytest.raises(ConfigError, match=r"kafka\.transactional\.id: cannot be set"):
        parse_sink({**SERVERS, "kafka.transactional.id": "t"}, streaming=True)
