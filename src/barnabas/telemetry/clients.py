"""The clients that push metrics: what each should push and when it may, and its newest numbers.

The rules are those of Kafka's ClientMetricsManager, so that its clients see the same answers. What
is kept is limited in three ways: how many clients, how many series of each and of all, and for how
long after a client's last request.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from barnabas.config.client_metrics import ALL_METRICS, INTERVAL_MS_DEFAULT, ClientMetricsOptions
from barnabas.kernels import crc32c
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError
from barnabas.model.ids import METADATA_UUID, ZERO_UUID, Uuid, new_uuid, uuid_text
from barnabas.records.compression import Codec
from barnabas.telemetry.otlp import Attributes, Point, PointKind

INSTANCES_MAX = 16_384
"""As many as Kafka keeps; above, the one that was idle for longest is dropped."""
SERIES_MAX = 1_000
"""Of one client."""
ALL_SERIES_MAX = 50_000
EXPIRY_MS_MIN = 60_000
SWEEP_MS = 10_000

ACCEPTED = (Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY)
"""The compression that clients may use, the preferred first; none is always accepted."""

RESERVED_IDS = (ZERO_UUID, METADATA_UUID)
_EXCUSES = (ErrorCode.UNKNOWN_SUBSCRIPTION_ID, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
"""After these errors a client asks for its subscription again at once."""


class Client(NamedTuple):
    """A client as its connection shows it."""

    client_id: str
    software_name: str
    software_version: str
    host: str
    port: int = 0

    def matches(self, instance_id: Uuid, options: ClientMetricsOptions) -> bool:
        """Return whether a subscription is for this client."""
        if not options.patterns:
            return True
        known = {
            "client_instance_id": uuid_text(instance_id),
            "client_id": self.client_id,
            "client_software_name": self.software_name,
            "client_software_version": self.software_version,
            "client_source_address": self.host,
            "client_source_port": str(self.port),
        }
        return all(
            pattern.fullmatch(known[name]) is not None for name, pattern in options.patterns.items()
        )


class Series(NamedTuple):
    """The newest value of one series; differences are added up."""

    name: str
    unit: str
    kind: PointKind
    attributes: Attributes
    value: float


class Instance:
    """One client: what it is subscribed to, and what it has pushed."""

    __slots__ = (
        "client",
        "dropped",
        "error",
        "expires_ms",
        "first_ms",
        "got_ms",
        "instance_id",
        "interval_ms",
        "metrics",
        "push_time_ms",
        "pushed_ms",
        "pushes",
        "series",
        "subscription_id",
        "terminating",
        "version",
    )

    def __init__(
        self,
        instance_id: Uuid,
        client: Client,
        metrics: tuple[str, ...],
        interval_ms: int,
        version: int,
    ) -> None:
        self.instance_id = instance_id
        self.client = client
        self.metrics = metrics
        self.interval_ms = interval_ms
        self.version = version
        """Of all subscriptions, when this client's were looked up."""
        self.subscription_id = subscription_id(metrics, interval_ms, instance_id)
        self.got_ms: int | None = None
        """When it was given its subscription last."""
        self.pushed_ms: int | None = None
        self.expires_ms = 0
        self.terminating = False
        self.error = ErrorCode.NONE
        """The last answer."""
        self.first_ms = 0
        self.push_time_ms = -1
        """The wall clock's time of the last accepted push; -1 if there was none."""
        self.pushes = 0
        self.dropped = 0
        """Numbers that were left out because there were too many series."""
        self.series: dict[tuple[str, Attributes], Series] = {}

    def may_get(self, now_ms: int) -> bool:
        """Return whether a push interval has passed since the last request."""
        last = max(_or_never(self.got_ms), _or_never(self.pushed_ms))
        if now_ms - last < self.interval_ms:
            return False
        self.got_ms = now_ms
        return True

    def may_push(self, now_ms: int) -> bool:
        """Return whether it may push: once at any time after a subscription, for its jitter."""
        pushed = _or_never(self.pushed_ms)
        if _or_never(self.got_ms) <= pushed and now_ms - pushed < self.interval_ms:
            return False
        self.pushed_ms = now_ms
        return True


class ClientInstances:
    """The clients of one broker that have asked for a subscription, or pushed."""

    def __init__(self, random_bytes: Callable[[int], bytes]) -> None:
        self._random_bytes = random_bytes
        self._subscriptions: dict[str, ClientMetricsOptions] = {}
        self._version = 0
        self._instances: OrderedDict[Uuid, Instance] = OrderedDict()
        """The one that was idle for longest first."""
        self._series = 0
        self._swept_ms = 0

    # subscriptions

    def set_subscription(self, name: str, options: ClientMetricsOptions | None) -> None:
        """Set one subscription; None removes it. Clients learn it with their next request."""
        if options is None:
            if self._subscriptions.pop(name, None) is None:
                return
        else:
            self._subscriptions[name] = options
        self._version += 1

    @property
    def subscriptions(self) -> Mapping[str, ClientMetricsOptions]:
        """The subscriptions by name."""
        return self._subscriptions

    # requests

    def subscribe(self, instance_id: Uuid, client: Client, now_ms: int, wall_ms: int) -> Instance:
        """Return what a client should push; raise RequestError if it asks too often.

        A client without an id (all zeros) gets a new one.
        """
        if instance_id == ZERO_UUID:
            instance_id = self._new_id()
        instance = self._instance(instance_id, client, now_ms, wall_ms)
        if not instance.may_get(now_ms) and instance.error not in _EXCUSES:
            raise _too_early(instance)
        instance.error = ErrorCode.NONE
        return instance

    def check_push(
        self,
        instance_id: Uuid,
        subscription_id: int,
        client: Client,
        now_ms: int,
        wall_ms: int,
        *,
        terminating: bool,
        codec: int,
        size: int,
        size_max: int,
    ) -> Instance:
        """Return the client whose push is accepted; raise RequestError otherwise."""
        if instance_id in RESERVED_IDS:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"{uuid_text(instance_id)}: not a client instance id"
            )
        instance = self._instance(instance_id, client, now_ms, wall_ms)
        try:
            _check(instance, subscription_id, now_ms, terminating, codec, size, size_max)
        except RequestError as refusal:
            instance.error = refusal.code
            raise
        finally:
            instance.terminating = terminating
        instance.error = ErrorCode.NONE
        return instance

    def record(self, instance: Instance, points: Iterable[Point], wall_ms: int) -> None:
        """Keep the newest numbers of a client; differences are added up."""
        instance.push_time_ms = wall_ms
        instance.pushes += 1
        if self._instances.get(instance.instance_id) is not instance:
            return  # dropped, or its subscriptions changed, while its push was decoded
        series = instance.series
        for name, unit, kind, attributes, value in points:
            key = name, attributes
            before = series.get(key)
            if before is None:
                if len(series) >= SERIES_MAX or self._series >= ALL_SERIES_MAX:
                    instance.dropped += 1
                    continue
                self._series += 1
            elif kind is PointKind.DELTA:
                value += before.value
            series[key] = Series(name, unit, kind, attributes, value)

    # what is known

    def live(self, now_ms: int) -> Iterator[Instance]:
        """Return the clients whose last request is not too old."""
        self._sweep(now_ms)
        return iter(list(self._instances.values()))

    def count(self, now_ms: int) -> int:
        """Return how many clients there are."""
        self._sweep(now_ms)
        return len(self._instances)

    def _instance(self, instance_id: Uuid, client: Client, now_ms: int, wall_ms: int) -> Instance:
        if now_ms - self._swept_ms >= SWEEP_MS:
            self._sweep(now_ms)
        instance = self._instances.get(instance_id)
        if instance is None or instance.version < self._version:
            instance = self._renewed(instance_id, client, instance, wall_ms)
            self._instances[instance_id] = instance
            if len(self._instances) > INSTANCES_MAX:
                self._drop(next(iter(self._instances)))
        self._instances.move_to_end(instance_id)
        instance.expires_ms = now_ms + max(EXPIRY_MS_MIN, 2 * instance.interval_ms)
        return instance

    def _renewed(
        self, instance_id: Uuid, client: Client, before: Instance | None, wall_ms: int
    ) -> Instance:
        """Return a client with the subscriptions that are in effect now."""
        metrics: set[str] = set()
        interval_ms = INTERVAL_MS_DEFAULT
        for options in self._subscriptions.values():
            if client.matches(instance_id, options):
                metrics.update(filter(None, options.metrics))
                interval_ms = min(interval_ms, options.interval_ms)
        wanted = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
        instance = Instance(instance_id, client, wanted, interval_ms, self._version)
        instance.first_ms = wall_ms
        if before is not None:
            instance.first_ms, instance.push_time_ms = before.first_ms, before.push_time_ms
            instance.pushes, instance.dropped = before.pushes, before.dropped
            instance.series = before.series
        return instance

    def _new_id(self) -> Uuid:
        while True:
            instance_id = new_uuid(self._random_bytes)
            if instance_id not in self._instances:
                return instance_id

    def _sweep(self, now_ms: int) -> None:
        self._swept_ms = now_ms
        for instance_id in [
            each.instance_id for each in self._instances.values() if each.expires_ms <= now_ms
        ]:
            self._drop(instance_id)

    def _drop(self, instance_id: Uuid) -> None:
        self._series -= len(self._instances.pop(instance_id).series)


def subscription_id(metrics: Iterable[str], interval_ms: int, instance_id: Uuid) -> int:
    """Return the id of what a client is subscribed to: of the same, each broker has the same."""
    crc = crc32c(f"[{', '.join(metrics)}]{interval_ms}".encode())
    high = int.from_bytes(instance_id[:8], "big")
    folded = high ^ int.from_bytes(instance_id[8:], "big")
    number = crc ^ (folded >> 32) ^ (folded & 0xFFFF_FFFF)
    return number - (1 << 32) if number >> 31 else number


def _check(
    instance: Instance,
    subscription_id: int,
    now_ms: int,
    terminating: bool,
    codec: int,
    size: int,
    size_max: int,
) -> None:
    """Raise unless a push is accepted; the order of the checks is Kafka's."""
    if instance.terminating:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"client instance {uuid_text(instance.instance_id)} has pushed for the last time",
        )
    if not instance.may_push(now_ms) and not terminating:
        raise _too_early(instance)
    if subscription_id != instance.subscription_id:
        raise RequestError(
            ErrorCode.UNKNOWN_SUBSCRIPTION_ID,
            f"subscription {subscription_id} is not {instance.subscription_id}, the current one",
        )
    if codec != Codec.NONE and codec not in ACCEPTED:
        raise RequestError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"compression type {codec} is not accepted"
        )
    if size > size_max:
        raise RequestError(
            ErrorCode.TELEMETRY_TOO_LARGE,
            f"a push of {size} bytes: telemetry.max.bytes is {size_max}",
        )


def _too_early(instance: Instance) -> RequestError:
    return RequestError(
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        f"client instance {uuid_text(instance.instance_id)}: its interval of "
        f"{instance.interval_ms} ms has not passed",
    )


def _or_never(ms: int | None) -> int:
    return -INTERVAL_MS_DEFAULT * 100 if ms is None else ms
