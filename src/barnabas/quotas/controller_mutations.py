"""The controller mutation quota of one request: partitions that it creates or deletes.

A strict request is rejected topic by topic while the bucket is overdrawn (KIP-599); the client
repeats it after the throttle time. A permissive one, of a client that does not know that error, is
never rejected, and throttled.
"""

from __future__ import annotations

from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.quotas.client_quota import BucketSensor


class ControllerMutations:
    """What one request changes, counted against the quota of its client."""

    __slots__ = ("_sensor", "_strict", "_throttle_ms", "_throttled_at_ms")

    def __init__(self, sensor: BucketSensor | None, *, strict: bool) -> None:
        """Without a sensor, nothing is counted."""
        self._sensor = sensor
        self._strict = strict
        self._throttle_ms = 0
        self._throttled_at_ms = 0

    def record(self, partitions: int, now_ms: int) -> None:
        """Count partitions just before they change; raise if a strict quota is exceeded."""
        sensor = self._sensor
        if sensor is None:
            return
        if not self._strict:
            self._throttle(sensor.record(partitions, now_ms), now_ms)
        elif sensor.bucket.tokens(now_ms) < 0:
            self._throttle(sensor.bucket.throttle_ms(now_ms), now_ms)
            raise RequestError(
                ErrorCode.THROTTLING_QUOTA_EXCEEDED,
                f"controller_mutation_rate={sensor.limit:g} exceeded: "
                f"try again in {self._throttle_ms} ms",
            )
        else:
            sensor.record(partitions, now_ms)

    def throttle_ms(self, now_ms: int) -> int:
        """Return for how much longer the client must be throttled."""
        return max(self._throttle_ms - (now_ms - self._throttled_at_ms), 0)

    def _throttle(self, throttle_ms: int, now_ms: int) -> None:
        if throttle_ms > 0:
            self._throttle_ms = throttle_ms
            self._throttled_at_ms = now_ms


UNCOUNTED = ControllerMutations(None, strict=False)
