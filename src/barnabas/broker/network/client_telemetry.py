"""Takes the metrics that clients push (KIP-714), and keeps their newest numbers for those who ask.

The rules are in `barnabas.telemetry`; this part reads the clocks, decompresses within bounds, and
decodes large pushes outside of the event loop.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from typing import TYPE_CHECKING, Any

from barnabas.broker.loop import offload
from barnabas.config.client_metrics import parse_client_metrics
from barnabas.metrics.catalogue import client_telemetry as catalogue
from barnabas.metrics.registry import Registry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import CorruptRecordError, InvalidValueError, RequestError
from barnabas.model.ids import Uuid
from barnabas.records.compression import TooLargeError, decompress
from barnabas.telemetry.clients import Client, ClientInstances, Instance
from barnabas.telemetry.otlp import Point, read_points

if TYPE_CHECKING:
    from barnabas.broker.network.request import Request
    from barnabas.config.broker import BrokerOptions

logger = logging.getLogger("barnabas.telemetry")

ON_LOOP_BYTES_MAX = 16 * 1024
"""Larger pushes are decoded by a thread; decompressed sizes count."""
EXPANSION_MAX = 8
"""How many times telemetry.max.bytes a push may have once it is decompressed."""


class ClientTelemetry:
    """The pushed metrics of one broker's clients."""

    def __init__(
        self,
        options: Callable[[], BrokerOptions],
        executor: Executor | None,
        now_ms: Callable[[], int],
        wall_ms: Callable[[], int],
        registry: Registry,
        random_bytes: Callable[[int], bytes],
    ) -> None:
        """Keep nothing; `now_ms` never jumps, `wall_ms` is what people are shown."""
        self._options = options
        self._executor = executor
        self._now_ms = now_ms
        self._wall_ms = wall_ms
        self._registry = registry
        self._instances = ClientInstances(random_bytes)
        self._pushed_bytes = registry.counter(catalogue.PUSHED_BYTES)
        registry.gauge(catalogue.INSTANCES, lambda: self._instances.count(now_ms()))
        registry.gauge(catalogue.PUSHING, lambda: sum(1 for each in self.clients() if each.pushes))

    def configs_changed(self, name: str, values: Mapping[str, str]) -> None:
        """Use changed options of a client-metrics resource; without options there is none."""
        try:
            options = parse_client_metrics(name, values) if values else None
        except RequestError as failure:  # another release has stored it
            logger.error("client-metrics %s: has no effect: %s", name, failure.message)
            options = None
        self._instances.set_subscription(name, options)

    @property
    def is_wanted(self) -> bool:
        """Whether any client is to push metrics."""
        return bool(self._instances.subscriptions)

    def clients(self) -> Iterator[Instance]:
        """Return the clients that have sent a request lately, with their numbers."""
        return self._instances.live(self._now_ms())

    def subscribe(self, request: Request[Any], instance_id: Uuid) -> Instance:
        """Return what a client should push; raise RequestError if it asks too often."""
        return self._instances.subscribe(
            instance_id, _client(request), self._now_ms(), self._wall_ms()
        )

    async def push(
        self,
        request: Request[Any],
        instance_id: Uuid,
        subscription_id: int,
        codec: int,
        metrics: bytes,
        *,
        terminating: bool,
    ) -> None:
        """Take what a client has pushed; raise RequestError if it is not accepted."""
        result = "ok"
        try:
            instance = self._instances.check_push(
                instance_id,
                subscription_id,
                _client(request),
                self._now_ms(),
                self._wall_ms(),
                terminating=terminating,
                codec=codec,
                size=len(metrics),
                size_max=self._options().telemetry_max_bytes,
            )
            if metrics:
                try:
                    points = await self._decode(codec, metrics)
                except RequestError as refusal:
                    instance.error = refusal.code
                    raise
                self._instances.record(instance, points, self._wall_ms())
            self._pushed_bytes.add(len(metrics))
        except RequestError as refusal:
            result = refusal.code.name
            raise
        finally:
            self._registry.counter(catalogue.PUSHES, result).add(1)

    async def _decode(self, codec: int, metrics: bytes) -> list[Point]:
        limit = EXPANSION_MAX * self._options().telemetry_max_bytes
        if len(metrics) <= ON_LOOP_BYTES_MAX:
            try:
                return decoded(codec, metrics, min(ON_LOOP_BYTES_MAX, limit))
            except RequestError as refusal:
                if refusal.code != ErrorCode.TELEMETRY_TOO_LARGE:
                    raise
        return await offload(self._executor, decoded, codec, metrics, limit)


def decoded(codec: int, metrics: bytes, limit: int) -> list[Point]:
    """Return the numbers of a push; raise RequestError if they are damaged or too many."""
    try:
        return read_points(decompress(codec, metrics, limit))
    except TooLargeError:
        raise RequestError(
            ErrorCode.TELEMETRY_TOO_LARGE,
            f"a push of {len(metrics)} bytes decompresses to more than {limit}: "
            f"{EXPANSION_MAX} times telemetry.max.bytes",
        ) from None
    except (CorruptRecordError, InvalidValueError) as failure:
        raise RequestError(ErrorCode.INVALID_RECORD, f"unreadable metrics: {failure}") from failure


def _client(request: Request[Any]) -> Client:
    session = request.session
    return Client(
        request.client_id,
        session.software_name,
        session.software_version,
        session.client_host,
        session.client_port,
    )
