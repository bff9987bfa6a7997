"""Metrics have the attributes that take few values, and no others."""

from __future__ import annotations

import pytest

pytest.importorskip("opentelemetry.sdk", reason="needs opentelemetry-sdk")

from tests.unit.opentelemetry.conftest import Traced

from barnabas.opentelemetry.measures import Measures


def test_attributes_are_chosen(traced: Traced) -> None:
    measures = Measures(traced.meters.get_meter("test"))
    many = {"messaging.kafka.message.key": "k", "messaging.kafka.offset": 7}
    few = {"messaging.system": "kafka", "error.type": "x", "server.port": 9092}
    measures.sent(3, 0.5, {**few, **many})
    measures.consumed(2, {**few, **many})
    measures.lasted(0.1, few)
    measures.processed(0.1, few)
    assert traced.measured("messaging.client.sent.messages") == [(few, 3)]
