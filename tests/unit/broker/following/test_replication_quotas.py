"""Rates of replication: what counts, for how long, and who is held back."""

from __future__ import annotations

import pytest

from barnabas.broker.following.replication_quotas import (
    UNLIMITED,
    ReplicationQuotas,
    Throttle,
    WindowedRate,
    follows_throttled,
    leads_throttled,
)
from barnabas.config.broker import BrokerOptions
from barnabas.config.topic import TopicOptions, validate_overrides
from barnabas.model.errors import ConfigError


def test_a_rate_is_an_average_of_the_last_windows() -> None:
    rate = WindowedRate()
    assert rate.per_second(0) == 0
    rate.record(500, 10_000)
    assert rate.per_second(10_000) == 500, "not over no time at all"
    rate.record(500, 10_900)
    assert rate.per_second(10_900) == 1000
    assert rate.per_second(12_000) == 500
    rate.record(4000, 14_000)
    assert rate.per_second(14_000) == 1250
    assert rate.per_second(20_900) == pytest.approx(5000 / 10.9)
    assert rate.per_second(21_000) == pytest.approx(4000 / 7), "the first window is forgotten"
    assert rate.per_second(60_000) == 0


def test_a_throttle_lets_as_much_through_as_it_says() -> None:
    """A copier that asks each millisecond gets the limit in the long run, and never twice."""
    throttle = Throttle(lambda: 1000, WindowedRate())
    copied = 0
    for now_ms in range(60_000):
        if not throttle.is_exceeded(now_ms):
            throttle.record(10, now_ms)
            copied += 10
    assert 50_000 <= copied <= 66_000


def test_limits_act_when_they_change() -> None:
    limits = [UNLIMITED]
    throttle = Throttle(lambda: limits[0], WindowedRate())
    throttle.record(10**9, 0)
    assert not throttle.is_exceeded(0)
    limits[0] = 10**6
    assert throttle.is_exceeded(0)
    limits[0] = 10**9
    assert not throttle.is_exceeded(0)
    limits[0] = 0
    assert throttle.is_exceeded(0)
    assert not Throttle(lambda: 0, WindowedRate()).is_exceeded(0), "nothing was copied yet"


def test_how_long_to_rest() -> None:
    rate = WindowedRate()
    assert rate.wait_ms(1000, 0) == 0
    rate.record(3000, 5000)
    assert rate.wait_ms(1000, 5000) == 2000, "a second has been granted"
    assert rate.wait_ms(1000, 7000) == 1000
    assert rate.wait_ms(1000, 8000) == 0
    assert rate.wait_ms(0, 8000) > 0
    assert not Throttle(lambda: UNLIMITED, WindowedRate()).wait_ms(0)
    resting = Throttle(lambda: 1000, WindowedRate())
    now_ms = 0
    for _ in range(100):
        resting.record(500, now_ms)
        now_ms += resting.wait_ms(now_ms)
    assert 45_000 <= now_ms <= 52_000, "50 kB at 1 kB per second"


def options(**overrides: str) -> TopicOptions:
    names = {f"{side}.replication.throttled.replicas": text for side, text in overrides.items()}
    return validate_overrides(names, BrokerOptions.parse({}))


def test_who_is_throttled() -> None:
    some = options(leader="0:1,1:2", follower="0:3")
    assert leads_throttled(some, 0, 1)
    assert leads_throttled(some, 1, 2)
    assert not leads_throttled(some, 0, 2)
    assert not leads_throttled(some, 0, 11)
    assert follows_throttled(some, 0, 3)
    assert not follows_throttled(some, 0, 1)
    assert leads_throttled(options(leader="*"), 7, 7)
    assert not leads_throttled(options(), 0, 1)


@pytest.mark.parametrize("text", ["x", "0", "0:", "0:1,x", "0:1;1:2", "*,0:1", "-1:2", "0:1:2"])
def test_what_names_no_replica(text: str) -> None:
    with pytest.raises(ConfigError, match=r"leader\.replication\.throttled\.replicas"):
        options(leader=text)


def test_windows_are_as_long_and_as_many_as_options_say():
    options = BrokerOptions.parse(
        {
            "follower.replication.throttled.rate": "100",
            "replication.quota.window.num": "2",
            "replication.quota.window.size.seconds": "3",
        }
    )
    quotas = ReplicationQuotas(lambda: options)
    quotas.follower.record(600, 0)
    assert quotas.follower.is_exceeded(2_999), "600 bytes in one window of three seconds"
    assert quotas.follower.is_exceeded(5_999)
    assert not quotas.follower.is_exceeded(6_000), "two windows are over"
