"""One kind of quota: sensors, changes of limits, expiry."""

from __future__ import annotations

import pytest

from barnabas.quotas.client_quota import (
    CLIENTS_REMEMBERED_MAX,
    UNUSED_MS_MAX,
    BucketSensor,
    ClientQuota,
    Sensor,
)
from barnabas.quotas.entity_limits import ABSENT, DEFAULT, UNLIMITED, Entity, Sharing
from barnabas.quotas.sampled_rate import Windows


def byte_rates() -> ClientQuota[Sensor]:
    return ClientQuota(Windows(), Sensor)


def test_clients_of_a_user_share_one_sensor() -> None:
    """What one of them uses counts against the others; another user's is its own."""
    quota = byte_rates()
    quota.set_limit(Entity(DEFAULT), 1000)
    assert quota.sensor("ada", "a", 0).record(10000, 0) == 0
    assert quota.sensor("ada", "b", 0).record(1, 0) == 1
    assert quota.sensor("bob", "a", 0).record(10000, 0) == 0
    assert len(quota) == 2


def test_a_changed_limit_applies_to_what_was_measured() -> None:
    """At once, in both directions; a removed one leaves no limit, and the samples."""
    quota = byte_rates()
    ada = Entity("ada")
    quota.set_limit(ada, 1000)
    assert quota.sensor("ada", "a", 0).record(10000, 0) == 0
    quota.set_limit(ada, 500)
    assert quota.sensor("ada", "a", 0).record(0, 0) == 10000
    quota.set_limit(ada, 100_000)
    assert quota.sensor("ada", "a", 0).record(0, 0) == 0
    quota.set_limit(ada, None)
    assert quota.limit_of("ada", "a") == UNLIMITED
    assert quota.sensor("ada", "a", 0).record(5000, 0) == 0
    quota.set_limit(ada, 1000)
    assert quota.sensor("ada", "a", 0).record(0, 0) == 5000
    assert quota.enabled


def test_a_nearer_limit_moves_a_client_to_another_sensor() -> None:
    """It starts with nothing measured; the others keep theirs."""
    quota = byte_rates()
    quota.set_limit(Entity("ada"), 1000)
    quota.sensor("ada", "a", 0).record(10000, 0)
    quota.set_limit(Entity("ada", "a"), 100)
    assert quota.sensor("ada", "a", 0).record(1000, 0) == 0
    assert quota.sensor("ada", "b", 0).record(1, 0) == 1


def test_the_limit_is_the_current_one_with_and_without_a_sensor() -> None:
    quota = byte_rates()
    for limit in (1000.0, 500.0):
        quota.set_limit(Entity("ada"), limit)
        assert quota.limit_of("ada", "a") == limit
        quota.sensor("ada", "a", 0)
        assert quota.limit_of("ada", "a") == limit
    quota.set_limit(Entity("ada", "a"), 100)
    assert (quota.limit_of("ada", "a"), quota.limit_of("ada", "b")) == (100, 500)


def test_sensors_are_dropped_after_an_hour_without_use() -> None:
    """Their owner is notified of each that comes and goes."""
    seen: list[tuple[Sharing, bool]] = []
    quota = ClientQuota(
        Windows(), Sensor, lambda sharing, sensor: seen.append((sharing, sensor is not None))
    )
    quota.set_limit(Entity(ABSENT, DEFAULT), 1000)
    quota.sensor("ada", "a", 0)
    quota.sensor("ada", "b", 1)
    quota.expire(UNUSED_MS_MAX - 1)
    assert len(quota) == 2
    quota.expire(UNUSED_MS_MAX)
    assert len(quota) == 1
    assert seen == [
        (Sharing(None, "a"), True),
        (Sharing(None, "b"), True),
        (Sharing(None, "a"), False),
    ]
    assert quota.sensor("ada", "a", UNUSED_MS_MAX).record(1, UNUSED_MS_MAX) == 0
    assert len(quota) == 2


def test_new_client_ids_without_end_cost_no_memory() -> None:
    """Clients of one user are found again by a look-up."""
    quota = byte_rates()
    quota.set_limit(Entity("ada"), 1000)
    for number in range(CLIENTS_REMEMBERED_MAX + 10):
        quota.sensor("ada", f"client-{number}", 0)
    assert len(quota) == 1
    assert len(quota._remembered) <= CLIENTS_REMEMBERED_MAX


def test_usage_is_shown_by_who_shares() -> None:
    """With the limit as it is now, and how long clients were throttled."""
    quota = byte_rates()
    quota.set_limit(Entity("ada"), 1000)
    sensor = quota.sensor("ada", "a", 0)
    sensor.throttles.record(sensor.record(15000, 0), 0)
    quota.set_limit(Entity("ada"), 2000)
    (usage,) = quota.usage(0)
    assert usage == (Sharing("ada", None), 2000, 1500, 5000, None)


def test_a_bucket_is_overdrawn_and_refilled() -> None:
    """Its usage has the tokens that are left."""
    quota = ClientQuota(Windows(), BucketSensor)
    quota.set_limit(Entity("ada"), 2)
    sensor = quota.sensor("ada", "a", 0)
    assert sensor.record(22, 0) == 0
    assert sensor.record(8, 0) == 4000
    (usage,) = quota.usage(0)
    assert (usage.tokens, usage.rate) == (-8, 3)
    quota.set_limit(Entity("ada"), 4)
    assert quota.sensor("ada", "b", 1000).bucket.tokens(1000) == pytest.approx(-6)
    assert quota.sensor("ada", "b", 2000).bucket.tokens(2000) == pytest.approx(-2)
