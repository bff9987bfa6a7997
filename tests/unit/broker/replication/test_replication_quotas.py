"""Rates of replication: what counts, for how long, and who is held back."""

from __future__ import annotations

import pytest

from barnabas.broker.replication.replication_quotas import (
    ReplicationQuotas,
    follows_throttled,
    leads_throttled,
)
from barnabas.config.broker import BrokerOptions
from barnabas.config.topic import TopicOptions, validate_overrides
from barnabas.model.errors import ConfigError


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
