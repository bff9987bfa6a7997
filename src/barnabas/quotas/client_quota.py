"""One kind of client quota: its limits, and a sensor for each client or group that shares one.

A changed limit applies to the sensors that exist, with the samples that they have. A sensor that
was not used for an hour is dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Generic, NamedTuple, TypeVar

from barnabas.quotas.entity_limits import Entity, EntityLimits, Sharing
from barnabas.quotas.sampled_rate import SampledAverage, SampledRate, Windows
from barnabas.quotas.token_bucket import TokenBucket

UNUSED_MS_MAX = 3_600_000
CLIENTS_REMEMBERED_MAX = 10_000
"""How many clients' sensors are found without a look-up."""


class Usage(NamedTuple):
    """What one sensor measures."""

    sharing: Sharing
    limit: float
    rate: float
    throttle_ms: float
    """The average time for which its clients were throttled."""
    tokens: float | None = None


class Sensor:
    """What clients that share a quota have used."""

    __slots__ = ("limit", "rate", "throttles", "used_ms")

    def __init__(self, windows: Windows, limit: float) -> None:
        self.limit = limit
        self.rate = SampledRate(windows)
        self.throttles = SampledAverage(windows)
        self.used_ms = 0

    def set_limit(self, limit: float, now_ms: int) -> None:
        """Change the limit; what was recorded stays."""
        self.limit = limit

    def record(self, value: float, now_ms: int) -> int:
        """Count a value; return how long the client must be throttled."""
        return self.rate.record_limited(value, self.limit, now_ms)

    def usage(self, sharing: Sharing, now_ms: int) -> Usage:
        """Return what was measured."""
        return Usage(
            sharing, self.limit, self.rate.per_second(now_ms), self.throttles.value(now_ms)
        )


class BucketSensor(Sensor):
    """A sensor with a token bucket, which is what throttles; the rate is only shown."""

    __slots__ = ("bucket",)

    def __init__(self, windows: Windows, limit: float) -> None:
        super().__init__(windows, limit)
        self.bucket = TokenBucket(windows, limit)

    def set_limit(self, limit: float, now_ms: int) -> None:
        """Change the limit; the tokens stay."""
        self.limit = limit
        self.bucket.set_limit(limit, now_ms)

    def record(self, value: float, now_ms: int) -> int:
        """Take tokens; return how long it takes until the bucket is no longer overdrawn."""
        self.rate.record(value, now_ms)
        self.bucket.take(value, now_ms)
        return self.bucket.throttle_ms(now_ms)

    def usage(self, sharing: Sharing, now_ms: int) -> Usage:
        """Return what was measured."""
        return super().usage(sharing, now_ms)._replace(tokens=self.bucket.tokens(now_ms))


S = TypeVar("S", bound=Sensor)


class ClientQuota(Generic[S]):
    """One kind of quota, for all clients of a broker."""

    def __init__(
        self,
        windows: Windows,
        make: Callable[[Windows, float], S],
        on_sensor: Callable[[Sharing, S | None], None] = lambda sharing, sensor: None,
    ) -> None:
        """Call `on_sensor` with each new sensor, and with None when it is dropped."""
        self.enabled = False
        """Whether to measure: since the first limit, until the broker restarts."""
        self._windows = windows
        self._make = make
        self._on_sensor = on_sensor
        self._limits = EntityLimits()
        self._sensors: dict[Sharing, S] = {}
        self._remembered: dict[tuple[str, str], S] = {}

    def __len__(self) -> int:
        return len(self._sensors)

    def set_limit(self, entity: Entity, limit: float | None) -> None:
        """Set or remove the limit of an entity, at once for all clients that it concerns."""
        if not self._limits.set(entity, limit):
            return
        self.enabled = True
        self._remembered.clear()  # each is looked up again, with its new limit

    def limit_of(self, user: str, client_id: str) -> float:
        """Return the limit that applies to a client."""
        sensor = self._remembered.get((user, client_id))
        return self._limits.find(user, client_id)[0] if sensor is None else sensor.limit

    def entity_of(self, user: str, client_id: str) -> str:
        """Return in words who shares the limit that applies to a client."""
        sharing = self._limits.find(user, client_id)[1]
        parts = []
        if sharing.user is not None:
            parts.append(f"user {sharing.user}")
        if sharing.client_id is not None:
            parts.append(f"client-id {sharing.client_id}")
        return ", ".join(parts) or "all clients"

    def sensor(self, user: str, client_id: str, now_ms: int) -> S:
        """Return the sensor of a client."""
        sensor = self._remembered.get((user, client_id))
        if sensor is None:
            sensor = self._find(user, client_id, now_ms)
        sensor.used_ms = now_ms
        return sensor

    def _find(self, user: str, client_id: str, now_ms: int) -> S:
        limit, sharing = self._limits.find(user, client_id)
        sensor = self._sensors.get(sharing)
        if sensor is None:
            sensor = self._sensors[sharing] = self._make(self._windows, limit)
            self._on_sensor(sharing, sensor)
        elif sensor.limit != limit:
            sensor.set_limit(limit, now_ms)
        if len(self._remembered) >= CLIENTS_REMEMBERED_MAX:
            self._remembered.clear()  # clients choose their ids, and may choose new ones forever
        self._remembered[user, client_id] = sensor
        return sensor

    def expire(self, now_ms: int) -> None:
        """Drop the sensors that were not used for an hour."""
        for sharing, sensor in list(self._sensors.items()):
            if now_ms - sensor.used_ms >= UNUSED_MS_MAX:
                del self._sensors[sharing]
                self._on_sensor(sharing, None)
                self._remembered.clear()

    def usage(self, now_ms: int) -> Iterator[Usage]:
        """Yield what each sensor measures."""
        for sharing, sensor in self._sensors.items():
            limit, shared_by = self._limits.find(sharing.user or "", sharing.client_id or "")
            if shared_by == sharing and limit != sensor.limit:
                sensor.set_limit(limit, now_ms)  # changed since its clients were last seen
            yield sensor.usage(sharing, now_ms)
