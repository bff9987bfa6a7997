"""A topic's options: overrides first, then the broker's, with Kafka's order among aliases."""

from __future__ import annotations

import pytest

from barnabas.config.broker import BrokerOptions
from barnabas.config.topic import TopicOptions, validate_overrides
from barnabas.model.errors import ConfigError


def resolve(broker: dict[str, object], **overrides: object) -> TopicOptions:
    named = {name.replace("_", "."): value for name, value in overrides.items()}
    return TopicOptions.resolve(BrokerOptions.parse(broker), named)


def test_an_override_wins_over_the_broker_and_the_broker_over_the_default() -> None:
    assert resolve({}).segment_bytes == 1 << 30
    assert resolve({"log.segment.bytes": 4096}).segment_bytes == 4096
    assert resolve({"log.segment.bytes": 4096}, segment_bytes="2048").segment_bytes == 2048


@pytest.mark.parametrize(
    ("broker", "retention_ms"),
    [
        ({}, 7 * 86_400_000),
        ({"log.retention.hours": 2}, 7_200_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3}, 180_000),
        ({"log.retention.hours": 2, "log.retention.minutes": 3, "log.retention.ms": 4}, 4),
        ({"log.retention.hours": -1}, -1),
        ({"log.retention.minutes": -1}, -1),
        ({"log.retention.hours": 2, "log.retention.ms": -1}, -1),
    ],
)
def test_retention_takes_ms_over_minutes_over_hours(
    broker: dict[str, object], retention_ms: int
) -> None:
    assert resolve(broker).retention_ms == retention_ms


def test_rolling_takes_ms_over_hours() -> None:
    assert resolve({"log.roll.hours": 1, "log.roll.jitter.hours": 2}).segment_ms == 3_600_000
    assert resolve({"log.roll.hours": 1, "log.roll.ms": 5}).segment_ms == 5
    assert resolve({"log.roll.jitter.hours": 2}).segment_jitter_ms == 7_200_000
    assert resolve({"log.roll.jitter.hours": 2, "log.roll.jitter.ms": 9}).segment_jitter_ms == 9


def test_flushing_by_time_falls_back_to_the_scheduler() -> None:
    assert resolve({"log.flush.scheduler.interval.ms": 50}).flush_ms == 50
    assert (
        resolve({"log.flush.scheduler.interval.ms": 50, "log.flush.interval.ms": 20}).flush_ms == 20
    )


def test_cleanup_policy_is_a_tuple_with_two_flags() -> None:
    both = resolve({}, cleanup_policy="compact, delete")
    assert both.cleanup_policy == ("compact", "delete")
    assert (both.compact, both.delete) == (True, True)
    assert (resolve({}).compact, resolve({}).delete) == (False, True)


def test_segments_of_compacted_topics_close_within_the_compaction_lag() -> None:
    named = {"max_compaction_lag_ms": "1000", "segment_ms": "5000"}
    assert resolve({}, cleanup_policy="compact", **named).segment_ms_max == 1000
    assert resolve({}, cleanup_policy="delete", **named).segment_ms_max == 5000


def test_resolve_passes_over_unknown_names_but_validate_refuses_them() -> None:
    broker = BrokerOptions.parse({})
    assert TopicOptions.resolve(broker, {"of.the.future": "1"}).unknown == {"of.the.future": "1"}
    with pytest.raises(ConfigError, match=r"no such topic option; did you mean retention\.ms\?"):
        validate_overrides({"retention.m": "5"}, broker)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"retention.ms": "-2"}, "retention.ms=-2: must be at least -1"),
        ({"retention.ms": None}, "retention.ms: a value is required"),
        ({"cleanup.policy": "shrink"}, "must be compact or delete"),
        ({"remote.storage.enable": "true"}, "refused: needs tiered storage"),
        (
            {"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"},
            r"must be at most max.compaction.lag.ms \(5\)",
        ),
        ({"min.cleanable.dirty.ratio": "1.1"}, "at most 1"),
        ({"compression.type": "brotli"}, "compression.type=brotli"),
    ],
)
def test_validate_refuses_what_cannot_be(overrides: dict[str, str | None], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        validate_overrides(overrides, BrokerOptions.parse({}))


def test_validate_returns_what_the_overrides_give() -> None:
    options = validate_overrides({"retention.ms": "5"}, BrokerOptions.parse({}))
    assert (options.retention_ms, dict(options.given)) == (5, {"retention.ms": "5"})


def test_every_fallback_names_an_option_of_the_broker() -> None:
    for option in TopicOptions.options.values():
        assert option.synonym is None or option.synonym in BrokerOptions.options, option.name
