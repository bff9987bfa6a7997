"""Client quotas: what requests are measured by, and how long their connections are throttled.

Nothing is measured until a quota is set (`active`). From then on the router hands `MeteredRequest`s
to handlers: bytes of Produce and Fetch, time on the event loop and changed partitions are recorded
when the response is ready. A client above a limit gets its response at once, with the throttle
time, and its connection stays unread for that long. A Fetch response that exceeds a quota is
replaced by an empty one, and its bytes are taken back.

The traffic of brokers is exempt, and only its time is counted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Any

from barnabas.broker.network.request import Request
from barnabas.diary import subjects
from barnabas.metadata import tree_schema as nodes
from barnabas.metrics.catalogue import quotas as catalogue
from barnabas.metrics.catalogue.rejections import THROTTLES
from barnabas.metrics.instruments import Counter
from barnabas.metrics.metric import Metric
from barnabas.metrics.registry import Registry
from barnabas.model.note import Note, NoteSink, unnoted
from barnabas.quotas.client_quota import BucketSensor, ClientQuota, Sensor, Usage
from barnabas.quotas.controller_mutations import UNCOUNTED, ControllerMutations
from barnabas.quotas.entity_limits import ABSENT, DEFAULT, UNLIMITED, Entity, Level, Sharing
from barnabas.quotas.quota_keys import (
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    parse_limit,
)
from barnabas.quotas.sampled_rate import SampledRate, Windows
from barnabas.wire.apis import API_BY_KEY, API_BY_NAME
from barnabas.wire.codec import encode_parts
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerOptions

logger = logging.getLogger("barnabas.quotas")

PRODUCE_KEY = API_BY_NAME["Produce"].key
FETCH_KEY = API_BY_NAME["Fetch"].key
PERCENT = 100.0
SPELL_GAP_MS = 5_000
"""For how long a client must not have been throttled for that to be over."""
SPELLS_MAX = 10_000
CAUSES = {
    PRODUCER_BYTE_RATE: "produce",
    CONSUMER_BYTE_RATE: "fetch",
    REQUEST_PERCENTAGE: "request",
    CONTROLLER_MUTATION_RATE: "controller-mutation",
}
"""How the diary names the quotas."""
SIZE_BYTES = 4
"""A response is counted with the size before it."""


class Spell:
    """A time in which a client was throttled again and again."""

    def __init__(self, subject: str, who: dict[str, Any], now_ms: int, throttle_ms: int) -> None:
        self.subject = subject
        self.who = who
        self.began_ms = now_ms
        self.until_ms = now_ms + throttle_ms
        self.count = 1
        self.longest_ms = throttle_ms

    def add(self, throttle_ms: int, now_ms: int) -> None:
        """Record one more pause."""
        self.count += 1
        self.until_ms = max(self.until_ms, now_ms + throttle_ms)
        self.longest_ms = max(self.longest_ms, throttle_ms)


class MeteredRequest(Request[Any]):
    """A request whose size and time on the event loop are measured."""

    metered = True

    # Most requests need only the first two; the others are set on those that do.
    quotas: ClientQuotas
    running_since: float | None
    """When the current step began; None while the request waits, and once it is answered."""
    spent_s: float = 0.0
    """The time that finished steps have taken."""
    exempt: bool = False
    """Whether another broker sent it; known once it is answered."""
    timed: Sensor | None = None
    """What measures its time; known once it is answered."""
    on_throttled: Callable[[], Message] | None = None
    """Takes the response back, and returns an empty one (Fetch)."""

    def end_step(self, now: float) -> None:
        """Count the time of the current step, if there is one."""
        if self.running_since is not None:
            self.spent_s += now - self.running_since
            self.running_since = None

    def pause(self, now: float) -> None:
        """End a step: from now on the request waits."""
        self.end_step(now)
        super().pause(now)

    def resume(self, now: float) -> None:
        """Begin another step."""
        self.running_since = now
        super().resume(now)

    def skip_answer(self, now: float) -> None:
        """Throttle a producer that expects no response, which counts its bytes only."""
        self.quotas.unanswered(self)
        super().skip_answer(now)


class ClientQuotas:
    """The quotas of one broker's clients."""

    def __init__(
        self,
        options: BrokerOptions,
        now_ms: Callable[[], int],
        registry: Registry,
        is_exempt: Callable[[Request[Any]], bool],
        note: NoteSink = unnoted,
    ) -> None:
        """Ask `is_exempt` whether another broker sent a request."""
        windows = Windows(options.quota_window_num, options.quota_window_size_seconds * 1000)
        mutation_windows = Windows(
            options.controller_quota_window_num, options.controller_quota_window_size_seconds * 1000
        )
        self.active = False
        """Whether any quota is or was set."""
        self._windows = windows
        self._now_ms = now_ms
        self._registry = registry
        self._is_exempt = is_exempt
        self.produce = ClientQuota(windows, Sensor, self._shows("Produce", catalogue.BYTE_RATE))
        self.fetch = ClientQuota(windows, Sensor, self._shows("Fetch", catalogue.BYTE_RATE))
        self.request = ClientQuota(windows, Sensor, self._shows("Request", catalogue.REQUEST_TIME))
        self.mutation = ClientQuota(
            mutation_windows,
            BucketSensor,
            self._shows("ControllerMutation", catalogue.MUTATION_RATE),
        )
        self._exempt = SampledRate(windows)
        self._by_key: dict[str, ClientQuota[Any]] = {
            PRODUCER_BYTE_RATE: self.produce,
            CONSUMER_BYTE_RATE: self.fetch,
            REQUEST_PERCENTAGE: self.request,
            CONTROLLER_MUTATION_RATE: self.mutation,
        }
        self._throttled: dict[ClientQuota[Any], list[int]] = {
            quota: [] for quota in self._by_key.values()
        }
        """When the connections that each quota throttles are read again, as heaps."""
        self._note = note
        self._spells: dict[tuple[str, str, str], Spell] = {}
        """Who is throttled: by the name of the quota, the user and the client id."""
        self._throttles: dict[ClientQuota[Any], Counter] = {
            quota: registry.counter(THROTTLES, resource) for resource, quota in self._resources()
        }

    # limits

    def configs_changed(self, entity_type: str, name: str, values: Mapping[str, str]) -> None:
        """Apply the quotas of a user, a client id, or a user's client id."""
        entity = _entity(entity_type, name)
        for key, quota in self._by_key.items():
            limit = parse_limit(key, values.get(key))
            if limit is None and key in values:
                logger.error(
                    "%s/%s: quota is invalid and has no effect: %s=%s",
                    entity_type,
                    name,
                    key,
                    values[key],
                )
            quota.set_limit(entity, limit)
            if quota.enabled and not self.active:
                self._activate()

    def _activate(self) -> None:
        self.active = True
        for resource, quota in self._resources():
            self._registry.gauge(catalogue.QUEUE_SIZE, partial(self.queue_size, quota), resource)
        self._registry.gauge(
            catalogue.EXEMPT_REQUEST_TIME, lambda: self._exempt.per_second(self._now_ms())
        )

    def expire(self) -> None:
        """Drop the sensors that were not used for an hour."""
        now_ms = self._now_ms()
        for quota in self._by_key.values():
            quota.expire(now_ms)

    # requests

    def fetch_bytes_max(self, request: Request[Any]) -> float:
        """Return how much a consumer may fetch at once: what its quota allows in its windows.

        A larger response would exceed the quota each time it is tried, and never be sent.
        """
        if not self.fetch.enabled:
            return UNLIMITED
        limit = self.fetch.limit_of(request.session.principal.name, request.client_id)
        return limit * self._windows.burst_ms / 1000

    def mutations(self, request: Request[Any], *, strict: bool) -> ControllerMutations:
        """Return what counts the partitions that a request creates or deletes."""
        if not self.mutation.enabled:
            return UNCOUNTED
        sensor = self.mutation.sensor(
            request.session.principal.name, request.client_id, self._now_ms()
        )
        return ControllerMutations(sensor, strict=strict)

    def answered(self, request: MeteredRequest, response: Message, now: float) -> Message:
        """Record a request and throttle its client; return the response to send.

        A throttle time in the response is that of controller mutations.
        """
        # This runs for every request, so it does no more than it must.
        since = request.running_since
        spent_s = request.spent_s if since is None else request.spent_s + now - since
        request.running_since = None
        now_ms = self._now_ms()
        api_key = request.api_key
        if api_key != PRODUCE_KEY and self._is_exempt(request):
            request.exempt = True
            self._exempt.record(spent_s * PERCENT, now_ms)
            return response
        user, client_id = request.session.principal.name, request.client_id
        throttle_ms = size_bytes = 0
        sensor: Sensor | None = None
        by: ClientQuota[Any] = self.mutation
        if api_key == PRODUCE_KEY:
            if self.produce.enabled:
                size_bytes, by = request.size_bytes, self.produce
        elif api_key == FETCH_KEY:
            if self.fetch.enabled:
                request.encoded = encode_parts(response, request.version)
                size_bytes, by = SIZE_BYTES + sum(map(len, request.encoded)), self.fetch
        else:
            throttle_ms = getattr(response, "throttle_time_ms", 0)
        if size_bytes:
            sensor = by.sensor(user, client_id, now_ms)
            throttle_ms = sensor.rate.record_limited(size_bytes, sensor.limit, now_ms)
        if self.request.enabled:
            timed = request.timed = self.request.sensor(user, client_id, now_ms)
            rest_ms = timed.rate.record_limited(spent_s * PERCENT, timed.limit, now_ms)
            if rest_ms > 0:
                rest_ms = min(rest_ms, self._windows.size_ms)
                if rest_ms >= throttle_ms:
                    throttle_ms, by = rest_ms, self.request
        if throttle_ms > 0:
            request.encoded = None
            if sensor is not None and request.on_throttled is not None:
                sensor.rate.record(-size_bytes, now_ms)
            if request.on_throttled is not None:
                response = request.on_throttled()
            if hasattr(response, "throttle_time_ms"):
                response.throttle_time_ms = throttle_ms
            self._throttle(request, by, throttle_ms, now_ms)
        return response

    def unanswered(self, request: MeteredRequest) -> None:
        """Record a produce request without a response: its time is exempt."""
        request.exempt = True
        if self.produce.enabled:
            now_ms = self._now_ms()
            sensor = self.produce.sensor(request.session.principal.name, request.client_id, now_ms)
            throttle_ms = sensor.record(request.size_bytes, now_ms)
            if throttle_ms > 0:
                self._throttle(request, self.produce, throttle_ms, now_ms)

    def handled(self, request: MeteredRequest) -> None:
        """Record the time of a request that has no response."""
        if request.api_key == PRODUCE_KEY:  # others have one
            self._exempt.record(request.spent_s * PERCENT, self._now_ms())

    def sent_exempt(self, spent_s: float) -> None:
        """Record the time that a response to another broker took to encode and send."""
        self._exempt.record(spent_s * PERCENT, self._now_ms())

    def _throttle(
        self, request: Request[Any], quota: ClientQuota[Any], throttle_ms: int, now_ms: int
    ) -> None:
        """Leave the connection unread, and count that for the quota that demands it."""
        sensor = quota.sensor(request.session.principal.name, request.client_id, now_ms)
        sensor.throttles.record(throttle_ms, now_ms)
        self._throttles[quota].add()
        until_ms = now_ms + throttle_ms
        heappush(self._throttled[quota], until_ms)
        self.queue_size(quota)
        request.connection.throttle(until_ms)
        self._note_throttle(request, quota, sensor, throttle_ms, now_ms)

    def _note_throttle(
        self,
        request: Request[Any],
        quota: ClientQuota[Any],
        sensor: Sensor,
        throttle_ms: int,
        now_ms: int,
    ) -> None:
        user, client_id = request.session.principal.name, request.client_id or ""
        cause = next(CAUSES[key] for key, each in self._by_key.items() if each is quota)
        key = (cause, user, client_id)
        spell = self._spells.get(key)
        if spell is not None:
            spell.add(throttle_ms, now_ms)
            return
        if len(self._spells) >= SPELLS_MAX:
            return
        host = request.session.client_host
        who = {
            "principal": str(request.session.principal),
            "client_id": client_id,
            "host": host,
            "entity": quota.entity_of(user, client_id),
        }
        subject = subjects.client(client_id, host)
        self._spells[key] = Spell(subject, who, now_ms, throttle_ms)
        numbers = {
            "rate": round(sensor.rate.per_second(now_ms), 3),
            "limit": sensor.limit,
            "delay_ms": throttle_ms,
            "api": API_BY_KEY[request.api_key].name,
        }
        self._note(Note("throttle.begin", subject, cause, who | numbers))

    def end_throttles(self) -> None:
        """Note who has not been throttled for a while."""
        now_ms = self._now_ms()
        for key, spell in list(self._spells.items()):
            if now_ms - spell.until_ms >= SPELL_GAP_MS:
                del self._spells[key]
                numbers = {
                    "took_ms": spell.until_ms - spell.began_ms,
                    "throttles": spell.count,
                    "longest_ms": spell.longest_ms,
                }
                self._note(Note("throttle.end", spell.subject, key[0], spell.who | numbers))

    # what was measured

    def queue_size(self, quota: ClientQuota[Any]) -> int:
        """Return how many connections a quota throttles now."""
        throttled, now_ms = self._throttled[quota], self._now_ms()
        while throttled and throttled[0] <= now_ms:
            heappop(throttled)
        return len(throttled)

    def usage(self) -> Iterator[tuple[str, Usage]]:
        """Yield the quota's key and what each sensor measures."""
        now_ms = self._now_ms()
        for key, quota in self._by_key.items():
            for usage in quota.usage(now_ms):
                yield key, usage

    def _resources(self) -> list[tuple[str, ClientQuota[Any]]]:
        names = ("Produce", "Fetch", "Request", "ControllerMutation")
        return list(zip(names, self._by_key.values(), strict=True))

    def _shows(self, resource: str, used: Metric) -> Callable[[Sharing, Sensor | None], None]:
        """Return what registers the metrics of a quota's sensors, and removes them."""
        registry, now_ms = self._registry, self._now_ms

        def show(sharing: Sharing, sensor: Sensor | None) -> None:
            labels = resource, sharing.user or "", sharing.client_id or ""
            if sensor is None:
                for each in (used, catalogue.THROTTLE_TIME, catalogue.TOKENS):
                    registry.remove(each, *labels)
            elif sensor.limit != UNLIMITED:
                registry.gauge(used, lambda: sensor.rate.per_second(now_ms()), *labels)
                registry.gauge(
                    catalogue.THROTTLE_TIME, lambda: sensor.throttles.value(now_ms()), *labels
                )
                if isinstance(sensor, BucketSensor):
                    bucket = sensor.bucket
                    registry.gauge(catalogue.TOKENS, lambda: bucket.tokens(now_ms()), *labels)

        return show


def _entity(entity_type: str, name: str) -> Entity:
    user = nodes.user_of(entity_type)
    if user is not None:
        return Entity(_level(user), _level(name))
    return Entity(_level(name)) if entity_type == "users" else Entity(ABSENT, _level(name))


def _level(name: str) -> str | Level:
    return DEFAULT if name == nodes.DEFAULT_ENTITY else name
