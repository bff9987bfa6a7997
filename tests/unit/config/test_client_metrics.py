"""The options of a client-metrics resource, with Kafka's limits and errors."""

from __future__ import annotations

import pytest

from barnabas.config.client_metrics import parse_client_metrics
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


def test_defaults() -> None:
    options = parse_client_metrics("watch", {"metrics": ""})
    assert (options.metrics, options.interval_ms, options.match) == ((), 300_000, ())
    assert options.patterns == {}


def test_all_are_given() -> None:
    values = {
        "metrics": "org.apache.kafka.producer.,org.apache.kafka.consumer.",
        "interval.ms": "100",
        "match": "client_id=web-[0-9]+ , client_source_address=10[.]0[.].*",
    }
    options = parse_client_metrics("watch", values)
    assert options.metrics == ("org.apache.kafka.producer.", "org.apache.kafka.consumer.")
    assert options.interval_ms == 100
    assert options.patterns["client_id"].fullmatch("web-12")
    assert not options.patterns["client_id"].fullmatch("web-12x")
    assert options.patterns["client_source_address"].fullmatch("10.0.7.7")


@pytest.mark.parametrize(
    ("name", "values", "code", "why"),
    [
        ("", {}, ErrorCode.INVALID_REQUEST, "must not be empty"),
        ("w", {"metric": "*"}, ErrorCode.INVALID_REQUEST, "metric: not an option"),
        ("w", {"interval.ms": "99"}, ErrorCode.INVALID_REQUEST, "=99: must be 100 to 3600000"),
        ("w", {"interval.ms": "3600001"}, ErrorCode.INVALID_REQUEST, "3600001: must be"),
        ("w", {"interval.ms": "soon"}, ErrorCode.INVALID_CONFIG, "whole number"),
        ("w", {"match": "client_id"}, ErrorCode.INVALID_CONFIG, "must be NAME=PATTERN"),
        ("w", {"match": "user=ada"}, ErrorCode.INVALID_CONFIG, "with one of client_instance_id"),
        ("w", {"match": "client_id=("}, ErrorCode.INVALID_CONFIG, "not a regular expression"),
    ],
)
def test_what_is_rejected(name: str, values: dict, code: ErrorCode, why: str) -> None:
    with pytest.raises(RequestError, match=why) as refused:
        parse_client_metrics(name, values)
    assert refused.value.code == code
