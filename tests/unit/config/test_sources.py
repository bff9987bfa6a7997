"""Layers of values: which one wins, and what DescribeConfigs is told of the others."""

from __future__ import annotations

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.config.option import Kind
from barnabas.config.sources import BrokerSources, Described, Source, Synonym
from barnabas.config.topic import TopicOptions
from barnabas.model.errors import ConfigError


def one(described: list[Described]) -> Described:
    (entry,) = described
    return entry


def test_the_nearest_layer_wins() -> None:
    sources = BrokerSources({"log.segment.bytes": 100})
    assert sources.options.log_segment_bytes == 100
    sources = sources.with_cluster({"log.segment.bytes": "200"})
    assert sources.options.log_segment_bytes == 200
    sources = sources.with_broker({"log.segment.bytes": "300"})
    assert sources.options.log_segment_bytes == 300
    assert sources.with_broker({}).options.log_segment_bytes == 200
    assert sources.with_broker({}).with_cluster({}).options.log_segment_bytes == 100


def test_a_broker_option_is_described_with_every_layer() -> None:
    sources = BrokerSources(
        {"log.segment.bytes": "100"}, {"log.segment.bytes": "200"}, {"log.segment.bytes": "300"}
    )
    assert one(sources.describe(["log.segment.bytes"])) == Described(
        name="log.segment.bytes",
        value="300",
        source=Source.DYNAMIC_BROKER,
        kind=Kind.INT,
        read_only=False,
        sensitive=False,
        synonyms=(
            Synonym("log.segment.bytes", "300", Source.DYNAMIC_BROKER),
            Synonym("log.segment.bytes", "200", Source.DYNAMIC_DEFAULT_BROKER),
            Synonym("log.segment.bytes", "100", Source.STATIC_BROKER),
            Synonym("log.segment.bytes", "1073741824", Source.DEFAULT),
        ),
        doc=BrokerOptions.options["log.segment.bytes"].doc,
    )


def test_all_options_are_described_and_unknown_names_are_not() -> None:
    sources = BrokerSources({"nonsense": "1"})
    assert [entry.name for entry in sources.describe()] == list(BrokerOptions.options)
    assert sources.describe(["nonsense"]) == []
    described = {entry.name: entry for entry in sources.describe()}
    assert described["broker.id"].read_only
    assert not described["log.retention.ms"].read_only
    assert all(entry.source is Source.DEFAULT for entry in described.values())


def test_an_unset_option_has_no_value_and_no_synonyms() -> None:
    entry = one(BrokerSources({"log.retention.hours": "2"}).describe(["log.retention.ms"]))
    assert (entry.value, entry.source, entry.synonyms) == (None, Source.DEFAULT, ())


def test_secrets_are_described_without_their_value() -> None:
    sources = BrokerSources({"ssl.key.password": "old"}, {}, {"ssl.key.password": "new"})
    entry = one(sources.describe(["ssl.key.password"]))
    assert entry.sensitive
    assert entry.value is None
    assert entry.source is Source.DYNAMIC_BROKER
    assert [synonym.value for synonym in entry.synonyms] == [None, None]
    assert sources.options.value("ssl.key.password") is not None
    assert sources.options.value("ssl.key.password").value == "new"


def test_an_option_of_one_listener_hides_the_general_one() -> None:
    name = "listener.name.outside.ssl.client.auth"
    sources = BrokerSources({"ssl.client.auth": "requested", name: "required"})
    entry = one([entry for entry in sources.describe() if entry.name == name])
    assert (entry.value, entry.source) == ("required", Source.STATIC_BROKER)
    assert [synonym.name for synonym in entry.synonyms] == [
        name,
        "ssl.client.auth",
        "ssl.client.auth",
    ]


def test_the_cluster_shows_its_own_values_alone() -> None:
    sources = BrokerSources({"log.retention.ms": "1"}, {"log.segment.bytes": "200"})
    entry = one(sources.describe_cluster())
    assert (entry.name, entry.value) == ("log.segment.bytes", "200")
    assert entry.source is Source.DYNAMIC_DEFAULT_BROKER
    assert sources.describe_cluster(["log.retention.ms"]) == []


def test_a_topic_option_is_described_with_its_override_and_the_layers_below() -> None:
    sources = BrokerSources({"log.retention.hours": "2"}, {"log.retention.ms": "9000"})
    entry = one(sources.describe_topic({"retention.ms": "5"}, ["retention.ms"]))
    assert (entry.value, entry.source, entry.kind) == ("5", Source.TOPIC, Kind.LONG)
    assert not entry.read_only
    assert entry.synonyms == (
        Synonym("retention.ms", "5", Source.TOPIC),
        Synonym("log.retention.ms", "9000", Source.DYNAMIC_DEFAULT_BROKER),
        Synonym("log.retention.hours", "2", Source.STATIC_BROKER),
        Synonym("log.retention.hours", "168", Source.DEFAULT),
    )


def test_a_topic_option_without_an_override_comes_from_the_broker() -> None:
    sources = BrokerSources({"log.retention.hours": "2"})
    entry = one(sources.describe_topic({}, ["retention.ms"]))
    assert (entry.value, entry.source) == ("7200000", Source.STATIC_BROKER)
    entry = one(sources.describe_topic({}, ["remote.storage.enable"]))
    assert (entry.value, entry.source) == ("false", Source.DEFAULT)
    assert [entry.name for entry in sources.describe_topic({})] == list(TopicOptions.options)


def test_a_wrong_dynamic_value_is_refused() -> None:
    sources = BrokerSources({})
    with pytest.raises(ConfigError, match=r"log\.segment\.bytes=1"):
        sources.with_cluster({"log.segment.bytes": "1"})


def test_unknown_names_stay_with_the_layer_that_has_them() -> None:
    sources = BrokerSources({"of.the.file": "1"}, {"of.the.cluster": "2"})
    assert set(sources.options.unknown) == {"of.the.file", "of.the.cluster"}
    assert set(sources.with_cluster({}).options.unknown) == {"of.the.file"}
