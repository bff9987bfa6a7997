"""Options of producers: Kafka's, kafka-python's and aiokafka's names, and what contradicts what."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.config.clients.options import parse_client_options
from barnabas.config.clients.producer import GROWN_BATCH_BYTES, RETRIES_MAX, ProducerOptions
from barnabas.model.errors import ConfigError

KAFKA = [
    "acks",
    "batch.size",
    "bootstrap.servers",
    "buffer.memory",
    "client.dns.lookup",
    "client.id",
    "compression.gzip.level",
    "compression.lz4.level",
    "compression.type",
    "compression.zstd.level",
    "connections.max.idle.ms",
    "delivery.timeout.ms",
    "enable.idempotence",
    "enable.metrics.push",
    "interceptor.classes",
    "key.serializer",
    "linger.ms",
    "max.block.ms",
    "max.in.flight.requests.per.connection",
    "max.request.size",
    "metadata.max.age.ms",
    "metadata.max.idle.ms",
    "metadata.recovery.strategy",
    "partitioner.adaptive.partitioning.enable",
    "partitioner.availability.timeout.ms",
    "partitioner.class",
    "partitioner.ignore.keys",
    "receive.buffer.bytes",
    "reconnect.backoff.max.ms",
    "reconnect.backoff.ms",
    "request.timeout.ms",
    "retries",
    "retry.backoff.max.ms",
    "retry.backoff.ms",
    "sasl.jaas.config",
    "sasl.mechanism",
    "security.protocol",
    "send.buffer.bytes",
    "transaction.timeout.ms",
    "transactional.id",
    "value.serializer",
]


def parse(**given: Any) -> ProducerOptions:
    return parse_client_options(ProducerOptions, given)


@pytest.mark.parametrize("name", KAFKA)
def test_every_option_of_kafka_is_known_in_both_spellings(name: str) -> None:
    for spelling in (name, name.replace(".", "_")):
        parse_client_options(ProducerOptions, {spelling: None})


def test_defaults_are_those_of_kafka() -> None:
    options = parse()
    assert options.acks == -1
    assert options.enable_idempotence
    assert (options.batch_size, options.linger_ms, options.buffer_memory) == (16_384, 0, 33_554_432)
    assert (options.delivery_timeout_ms, options.retries) == (120_000, RETRIES_MAX)


def test_a_batch_grows_only_where_its_size_was_not_given() -> None:
    assert parse().batch_size_max == GROWN_BATCH_BYTES
    assert parse(max_request_size=1000).batch_size_max == 1000
    assert parse(batch_size=16_384).batch_size_max == 16_384
    assert parse(max_batch_size=500).batch_size_max == 500


@pytest.mark.parametrize(("given", "acks"), [(0, 0), ("1", 1), (-1, -1), ("all", -1)])
def test_acks(given: object, acks: int) -> None:
    assert parse(acks=given).acks == acks


@pytest.mark.parametrize("given", [2, "none", True, 1.5])
def test_other_acks_are_refused(given: object) -> None:
    with pytest.raises(ConfigError, match=f"acks={given}: must be 0, 1 or all"):
        parse(acks=given)


def test_retries() -> None:
    assert parse(retries=float("inf")).retries == RETRIES_MAX
    assert parse(retries="3").retries == 3
    for wrong in (-1, 1.5, "many", True):
        with pytest.raises(ConfigError, match="whole number"):
            parse(retries=wrong)


@pytest.mark.parametrize(
    "conflict",
    [{"acks": 1}, {"retries": 0}, {"max_in_flight_requests_per_connection": 6}],
    ids=lambda conflict: next(iter(conflict)),
)
def test_idempotence_gives_way_unless_it_was_asked_for(conflict: dict[str, Any]) -> None:
    assert not parse(**conflict).enable_idempotence
    with pytest.raises(ConfigError, match="for an idempotent producer"):
        parse(enable_idempotence=True, **conflict)
    with pytest.raises(ConfigError, match="for an idempotent producer"):
        parse(transactional_id="tx", **conflict)


def test_transactions_need_idempotence() -> None:
    with pytest.raises(ConfigError, match=r"transactional\.id needs enable\.idempotence"):
        parse(transactional_id="tx", enable_idempotence=False)


def test_the_delivery_timeout_covers_linger_and_a_request() -> None:
    with pytest.raises(ConfigError, match="must be at least"):
        parse(delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=101)
    assert parse(request_timeout_ms=200_000).delivery_timeout_ms == 200_000
