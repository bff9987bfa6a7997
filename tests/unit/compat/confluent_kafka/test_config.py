"""What becomes of each of librdkafka's properties."""

from __future__ import annotations

import logging
import ssl
from typing import Any

import pytest

from barnabas.compat.confluent_kafka import KafkaError, KafkaException
from barnabas.compat.confluent_kafka.config import Settings, merged, parse
from barnabas.compat.confluent_kafka.properties import NO_EFFECT, OURS, REJECTED
from barnabas.config.clients.consumer import ConsumerOptions
from barnabas.config.clients.options import spellings
from barnabas.config.clients.producer import ProducerOptions


def producer(**more: Any) -> tuple[Any, Settings]:
    return parse(ProducerOptions, {name.replace("_", "."): each for name, each in more.items()})


def consumer(**more: Any) -> tuple[Any, Settings]:
    properties = {name.replace("_", "."): each for name, each in more.items()}
    return parse(ConsumerOptions, {"group.id": "g", **properties})


def reason(section: Any, properties: dict[str, Any]) -> str:
    with pytest.raises(KafkaException) as failure:
        parse(section, properties)
    error = failure.value.args[0]
    assert error.code() == KafkaError._INVALID_ARG
    return str(error.str())


def test_defaults_are_those_of_librdkafka() -> None:
    options, settings = producer()
    assert (options.delivery_timeout_ms, options.linger_ms) == (300_000, 5)
    assert (settings.queue_messages_max, settings.partitioner) == (100_000, "consistent_random")
    options, settings = consumer()
    assert options.isolation_level == "read_committed"
    assert not options.allow_auto_create_topics
    assert options.enable_auto_commit
    assert settings.auto_offset_store


def test_names_and_values_that_differ_from_ours() -> None:
    options, _ = producer(
        metadata_broker_list="a:1,b:2",
        message_timeout_ms="1000",
        queue_buffering_max_ms=10,
        request_required_acks=-1,
        security_protocol="plaintext",
        message_max_bytes=5000,
        compression_codec="zstd",
        compression_level=7,
    )
    assert options.delivery_timeout_ms == 1000
    assert (options.linger_ms, options.request_timeout_ms) == (10, 990)
    assert options.max_request_size == 5000
    assert (options.compression_type, options.compression_zstd_level) == ("zstd", 7)
    assert producer(message_timeout_ms=0)[0].delivery_timeout_ms == 2_147_483_647
    options, _ = consumer(auto_offset_reset="smallest", fetch_wait_max_ms=5)
    assert (options.auto_offset_reset, options.fetch_max_wait_ms) == ("earliest", 5)
    assert consumer(auto_offset_reset="error")[0].auto_offset_reset == "none"
    assert consumer(auto_commit_interval_ms=0)[0].auto_commit_interval_ms == 2_147_483_647


def test_stored_offsets_are_committed_by_the_client_itself() -> None:
    options, settings = consumer(enable_auto_offset_store="false")
    assert (options.enable_auto_commit, settings.commits_stored) == (False, True)
    options, settings = consumer(enable_auto_offset_store=False, enable_auto_commit=False)
    assert (options.enable_auto_commit, settings.commits_stored) == (False, False)


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        ({"nonsense.prop": 1}, 'No such configuration property: "nonsense.prop"'),
        ({"linger.mss": 1}, 'did you mean "linger.ms"?'),
        ({"linger.ms": "abc"}, 'Invalid value for configuration property "linger.ms": abc'),
        ({"linger.ms": -5}, "linger.ms=-5"),
        ({"statistics.interval.ms": -1}, "is outside allowed range 0..86400000"),
        ({"queue.buffering.max.messages": "x"}, "Invalid value for configuration property"),
        ({"partitioner": "java"}, "must be one of random, consistent"),
        ({"delivery.report.only.error": "maybe"}, "true or false"),
        ({"on_commit": print}, "for consumers"),
        ({"on_delivery": 5}, "requires a callable"),
        ({"ssl.curves.list": "P-256"}, "is not available: Python's ssl module"),
        ({"plugin.library.paths": "monitoring-interceptor"}, "is not available"),
        ({"acks": "some"}, "acks=some: must be 0, 1 or all"),
    ],
)
def test_what_is_wrong_is_named(properties: dict[str, Any], text: str) -> None:
    assert text in reason(ProducerOptions, properties)


def test_what_is_wrong_for_a_consumer_is_named() -> None:
    assert "smallest, earliest" in reason(ConsumerOptions, {"auto.offset.reset": "first"})
    assert "for producers" in reason(ConsumerOptions, {"on_delivery": print})
    with pytest.raises(TypeError, match="error_cb"):
        parse(ConsumerOptions, {"error_cb": 5})


def test_properties_without_effect_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "barnabas.compat.confluent_kafka"):
        producer(debug="all", group_id="of a consumer", socket_nagle_disable=True)
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == [
        "debug has no effect",
        "group.id has no effect",
        "socket.nagle.disable has no effect",
    ]


def test_no_property_is_in_two_lists() -> None:
    known = set(spellings(ProducerOptions)) | set(spellings(ConsumerOptions))
    assert not set(NO_EFFECT) & set(REJECTED)
    assert not set(OURS) & (set(NO_EFFECT) | set(REJECTED))
    assert set(OURS.values()) <= known
    assert not set(OURS) & known


def test_certificates_need_not_be_verified() -> None:
    options, _ = producer(security_protocol="ssl", enable_ssl_certificate_verification="false")
    assert options.ssl_context.verify_mode is ssl.CERT_NONE
    assert not options.ssl_context.check_hostname
    assert producer(security_protocol="ssl")[0].ssl_context is None


def test_a_dict_keywords_or_both() -> None:
    assert merged(({"a": 1, "b": 2},), {"b": 3}) == {"a": 1, "b": 3}
    assert merged((), {"logger": 5}) == {"logger": 5}
    nested = {"default.topic.config": {"acks": 1, "b": 2}, "b": 3}
    assert merged((nested,), {}) == {"acks": 1, "b": 3}
    for wrong in ((), ([1],), ({}, {})):
        with pytest.raises(TypeError, match="expected configuration dict"):
            merged(wrong, {})
