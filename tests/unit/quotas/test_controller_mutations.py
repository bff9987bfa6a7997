"""The controller mutation quota of one request."""

from __future__ import annotations

import pytest

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.quotas.client_quota import BucketSensor
from barnabas.quotas.controller_mutations import UNCOUNTED, ControllerMutations
from barnabas.quotas.sampled_rate import Windows


def test_a_strict_request_is_rejected_while_the_bucket_is_overdrawn() -> None:
    """One request may overdraw it; the next waits until the debt is paid."""
    sensor = BucketSensor(Windows(), 2)
    first = ControllerMutations(sensor, strict=True)
    first.record(30, 0)
    assert first.throttle_ms(0) == 0
    for now_ms, throttle_ms in ((0, 4000), (3999, 1)):
        later = ControllerMutations(sensor, strict=True)
        with pytest.raises(RequestError, match="controller_mutation_rate=2") as refusal:
            later.record(1, now_ms)
        assert refusal.value.code is ErrorCode.THROTTLING_QUOTA_EXCEEDED
        assert later.throttle_ms(now_ms) == throttle_ms
    ControllerMutations(sensor, strict=True).record(1, 4000)


def test_a_permissive_request_is_only_throttled() -> None:
    """What is reported is what is left when the response is sent."""
    request = ControllerMutations(BucketSensor(Windows(), 2), strict=False)
    request.record(22, 0)
    assert request.throttle_ms(0) == 0
    request.record(30, 0)
    assert [request.throttle_ms(now_ms) for now_ms in (0, 14000, 15001)] == [15000, 1000, 0]


def test_without_a_quota_nothing_is_counted() -> None:
    """However much changes."""
    UNCOUNTED.record(10**9, 0)
    assert UNCOUNTED.throttle_ms(0) == 0
