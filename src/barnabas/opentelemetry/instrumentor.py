"""Switches the tracing of clients on and off."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Collection, Sequence
from typing import Any

from opentelemetry import metrics, trace

from barnabas.client import tracing
from barnabas.opentelemetry.consuming import TracedConsumer
from barnabas.opentelemetry.conventions import Conventions
from barnabas.opentelemetry.measures import Measures
from barnabas.opentelemetry.producing import TracedProducer
from barnabas.opentelemetry.settings import ClientIdentity, Settings

logger = logging.getLogger("barnabas.opentelemetry")

SCOPE = "barnabas.opentelemetry"
OPT_IN = "OTEL_SEMCONV_STABILITY_OPT_IN"


class BarnabasInstrumentor:
    """Traces producers and consumers of `barnabas` and `barnabas.aio`; there is one per process.

    It has the methods that OpenTelemetry's own instrumentors have, and needs none of their code.
    """

    _instance: BarnabasInstrumentor | None = None
    _settings: Settings | None = None

    def __new__(cls) -> BarnabasInstrumentor:
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    @property
    def is_instrumented_by_opentelemetry(self) -> bool:
        """Whether clients are traced."""
        return self._settings is not None

    def instrumentation_dependencies(self) -> Collection[str]:
        """Return what must be installed besides this package: nothing."""
        return ()

    def instrument(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        produce_hook: Callable[..., Any] | None = None,
        consume_hook: Callable[..., Any] | None = None,
        async_produce_hook: Callable[..., Any] | None = None,
        async_consume_hook: Callable[..., Any] | None = None,
        **_: Any,
    ) -> None:
        """Trace the clients that are created from now on.

        `produce_hook(span, args, kwargs)` gets the arguments of `send`, and
        `consume_hook(span, record, args, kwargs)` each record that is handed out; the `async_`
        ones are awaited, by clients of `barnabas.aio` alone. Metrics are recorded if a
        `meter_provider` is given. The names of spans and attributes follow
        OTEL_SEMCONV_STABILITY_OPT_IN.
        """
        if self._settings is not None:
            logger.warning("clients are instrumented already: the call has no effect")
            return
        conventions = Conventions.chosen(os.environ.get(OPT_IN, ""))
        settings = Settings(
            trace.get_tracer(SCOPE, tracer_provider=tracer_provider),
            conventions,
            None if meter_provider is None else Measures(meter_provider.get_meter(SCOPE)),
            produce_hook,
            consume_hook,
            async_produce_hook,
            async_consume_hook,
        )
        self._settings = settings
        tracing.install(_Tracing(settings))

    def uninstrument(self, **_: Any) -> None:
        """Trace no longer, neither new clients nor those that exist."""
        if self._settings is not None:
            self._settings.enabled = False
            self._settings = None
            tracing.install(None)


class _Tracing:
    """Makes the tracers of clients."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def of_producer(
        self, client_id: str, servers: Sequence[str], cluster_id: Callable[[], str | None]
    ) -> TracedProducer:
        identity = ClientIdentity(client_id, None, tuple(servers), cluster_id)
        return TracedProducer(self._settings, identity)

    def of_consumer(
        self,
        client_id: str,
        group_id: str | None,
        servers: Sequence[str],
        cluster_id: Callable[[], str | None],
    ) -> TracedConsumer:
        identity = ClientIdentity(client_id, group_id, tuple(servers), cluster_id)
        return TracedConsumer(self._settings, identity)
