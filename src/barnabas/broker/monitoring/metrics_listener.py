"""Serves metrics and health over HTTP/1.1, on the broker's loop and an address of its own.

    GET /metrics            the metrics of this broker, for Prometheus
    GET /metrics/cluster    what kafka_exporter would show of the whole cluster
    GET /health/live        200 as long as the loop turns
    GET /health/ready       200 if clients are served, 503 with the reason if not

Only GET and HEAD, no bodies, one request of a connection at a time. Everything a client can do has
a limit: connections, the size of a head, the time for it, the time to read an answer.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
import ssl
from collections.abc import Callable, Iterator
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from barnabas.broker.loop import offload, spawn
from barnabas.broker.monitoring.health import Health
from barnabas.broker.monitoring.http_connection import Answer, HttpConnection
from barnabas.broker.monitoring.http_request import BadRequest, HttpRequest
from barnabas.broker.monitoring.scrapes import Scrapes
from barnabas.config.listeners import Endpoint, SecurityProtocol
from barnabas.metrics.catalogue.exposing import SCRAPE_DURATION, SCRAPE_FAILURES, SCRAPES
from barnabas.metrics.collect_groups import GROUPS
from barnabas.metrics.exposition import OPENMETRICS_TYPE, Exposition, Form
from barnabas.metrics.registry import Registry
from barnabas.metrics.vocabulary import Names
from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from barnabas.broker.monitoring.cluster_exporter import ClusterExporter
    from barnabas.config.broker import BrokerOptions
    from barnabas.config.broker.own import MetricsAddress

logger = logging.getLogger("barnabas.metrics")

LISTENER_NAME = "METRICS"
"""Its TLS options may be set apart from those of other listeners: listener.name.metrics.ssl.*."""
CONNECTIONS_MAX = 100
BACKLOG = 128
HANDSHAKE_S_MAX = 10.0
TLS_RENEWAL_S = 10.0
"""How often files with certificates are looked at."""
PATHS = ("/metrics", "/metrics/cluster", "/health/live", "/health/ready")


class MetricsListener:
    """The metrics and health of one broker over HTTP; closed until `configure` gives an address."""

    def __init__(
        self,
        registry: Registry,
        health: Health,
        executor: Executor | None,
        clock: Callable[[], float],
    ) -> None:
        """`clock` gives seconds, from any moment on."""
        self.address: tuple[str, int] | None = None
        """Where it listens, with the real port; None while it is closed."""
        self.connections: dict[HttpConnection, None] = {}
        self.exporter: ClusterExporter | None = None
        """What knows the cluster; None until the broker has joined it."""
        self._registry = registry
        self._health = health
        self._executor = executor
        self._clock = clock
        self._scrapes = Scrapes(clock)
        self._options: BrokerOptions
        self._asked: tuple[MetricsAddress | None, bool] = (None, False)
        self._server: asyncio.Server | None = None
        self._context: ssl.SSLContext | None = None
        self._tls_tried: object = None
        self._changing = asyncio.Lock()
        self._changes: set[asyncio.Task[None]] = set()
        self._renewal: asyncio.TimerHandle | None = None
        self._complaint = ""
        self._omitted: frozenset[str] = frozenset()
        self._failed: set[str] = set()
        """What was logged as unreadable or left out, so that it is logged once."""

    # opening and closing

    async def configure(self, options: BrokerOptions) -> None:
        """Listen where the options say, or not at all.

        Raise ConfigError, and change nothing, if that is impossible.
        """
        async with self._changing:
            asked = (options.metrics_address, options.barnabas_metrics_ssl_enable)
            uses_tls = asked[0] is not None and asked[1]
            self._look_later(options if uses_tls else None)
            if uses_tls:
                await self._load_tls(options)
            self._options = options
            if asked == self._asked:
                return
            former = self._server
            if former is not None and asked[0] == self._asked[0]:
                former.close()  # first: only its TLS changes
            self._server = None if asked[0] is None else await self._listen(*asked)
            if former is not None:
                former.close()
            self._asked = asked
            for connection in list(self.connections):
                connection.abort()
            self.address = None
            if self._server is not None:
                self.address = self._server.sockets[0].getsockname()[:2]
                logger.info("metrics: listening on %s:%d", *self.address)
            elif former is not None:
                logger.info("metrics: the listener is closed")

    def reconfigure(self, options: BrokerOptions) -> None:
        """Apply changed options in the background; an impossible address is logged."""
        change = spawn(self._reconfigure(options), "changing the metrics listener")
        self._changes.add(change)
        change.add_done_callback(self._changes.discard)

    async def _reconfigure(self, options: BrokerOptions) -> None:
        try:
            await self.configure(options)
        except ConfigError as failure:
            if str(failure) != self._complaint:  # a change is learned twice by who has made it
                self._complaint = str(failure)
                logger.error("metrics: the listener stays as it was: %s", failure)
        else:
            self._complaint = ""

    def _look_later(self, options: BrokerOptions | None) -> None:
        """Look again for changed files with certificates; None: no more."""
        if self._renewal is not None:
            self._renewal.cancel()
            self._renewal = None
        if options is not None:
            loop = asyncio.get_running_loop()
            self._renewal = loop.call_later(TLS_RENEWAL_S, self.reconfigure, options)

    async def close(self) -> None:
        """Stop to listen, and drop the connections."""
        changes = list(self._changes)
        for change in changes:
            change.cancel()
        await asyncio.gather(*changes, return_exceptions=True)
        self._look_later(None)
        if self._server is not None:
            self._server.close()
            self._server = None
        self._asked, self.address = (None, False), None
        await self._scrapes.stop()
        connections = list(self.connections)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.closed.wait()

    async def _listen(self, address: MetricsAddress | None, tls: bool) -> asyncio.Server:
        assert address is not None
        loop = asyncio.get_running_loop()
        try:
            return await loop.create_server(
                partial(HttpConnection, self.connections, CONNECTIONS_MAX, self._answer),
                address.host,
                address.port,
                backlog=BACKLOG,
                ssl=self._context if tls else None,
                ssl_handshake_timeout=HANDSHAKE_S_MAX if tls else None,
            )
        except OSError as failure:
            why = os.strerror(failure.errno) if failure.errno and failure.errno > 0 else failure
            raise ConfigError(
                f"barnabas.metrics.listener={address.host}:{address.port}: cannot listen: {why}; "
                "choose another port with --metrics HOST:PORT"
            ) from failure

    async def _load_tls(self, options: BrokerOptions) -> None:
        """Load key and trust, if they have changed; new connections use them from then on."""
        from barnabas.broker.network.listener_tls import tls_settings
        from barnabas.tls.identity import load

        endpoint = Endpoint(LISTENER_NAME, "", 0, SecurityProtocol.SSL)
        settings = tls_settings(options, endpoint)
        key = settings, await offload(self._executor, settings.fingerprint)
        if key == self._tls_tried and self._context is not None:
            return  # in use already, or found unusable before
        self._tls_tried = key
        try:
            identity = await offload(self._executor, partial(load, settings, between_brokers=False))
        except ConfigError as failure:
            raise ConfigError(f"barnabas.metrics.ssl.enable=true: {failure}") from failure
        renewed = identity.server
        if self._context is None:
            self._context = renewed
            return

        def renew(connection: ssl.SSLObject, name: str | None, old: ssl.SSLContext) -> None:
            connection.context = renewed

        # A server keeps the context that it began with; this one is asked in each handshake.
        self._context.sni_callback = renew

    # answering

    async def _answer(self, request: HttpRequest) -> Answer:
        """Return the answer to a request; raise BadRequest for one that is not served."""
        path = request.path.rstrip("/") or "/"
        if path == "/health/live":
            return Answer.of_text("alive\n")
        if path == "/health/ready":
            reason = self._health.reason
            if reason is None:
                return Answer.of_text("ready\n")
            return Answer.of_text(f"not ready: {reason}\n", HTTPStatus.SERVICE_UNAVAILABLE)
        if path not in PATHS:
            raise BadRequest(HTTPStatus.NOT_FOUND, f"the paths are {', '.join(PATHS)}")
        self._check_token(request)
        return self._metrics(request, path)

    def _check_token(self, request: HttpRequest) -> None:
        token = self._options.barnabas_metrics_token
        if token is None:
            return
        scheme, _, given = request.fields.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not hmac.compare_digest(
            given.strip().encode("latin-1"), token.value.encode()
        ):
            raise BadRequest(
                HTTPStatus.UNAUTHORIZED, "a bearer token is required (barnabas.metrics.token)"
            )

    def _metrics(self, request: HttpRequest, path: str) -> Answer:
        names = request.values("names", [each.value for each in Names])
        if len(names) > 1:
            raise BadRequest(HTTPStatus.BAD_REQUEST, "names: must be given once")
        groups = request.values("collect[]", GROUPS)
        limit = self._options.barnabas_metrics_partitions_max
        form = Form(
            Names(next(iter(names), Names.JMX.value)),
            request.prefers(OPENMETRICS_TYPE.split(";")[0], "text/plain"),
            groups,
            None if "partitions" in groups else limit,
        )
        exporter = self.exporter
        if path == "/metrics":
            writing = partial(self._write_own, form)
        elif exporter is None:
            raise BadRequest(HTTPStatus.SERVICE_UNAVAILABLE, "the broker has not joined a cluster")
        else:
            writing = partial(self._write_cluster, form, exporter)
        packed = request.accepts_gzip
        headers = {"Content-Type": form.content_type, "Vary": "Accept, Accept-Encoding"}
        if packed:
            headers["Content-Encoding"] = "gzip"
        if request.is_head:
            return Answer(HTTPStatus.OK, headers, None)
        self._registry.counter(SCRAPES, path).add()
        scrape = self._scrapes.scrape((path, form), writing, packed=packed)
        return Answer(HTTPStatus.OK, headers, scrape.chunks())

    async def _write_own(self, form: Form) -> Iterator[bytes]:
        return self._timed("/metrics", Exposition(self._registry, form, self._clock))

    async def _write_cluster(self, form: Form, exporter: ClusterExporter) -> Iterator[bytes]:
        began_s = self._clock()
        reading = await exporter.read()
        registry = Registry()
        registry.add_collector(reading)
        exposition = Exposition(registry, form, self._clock, comments=reading.comments())
        return self._timed("/metrics/cluster", exposition, began_s)

    def _timed(
        self, path: str, exposition: Exposition, began_s: float | None = None
    ) -> Iterator[bytes]:
        began_s = self._clock() if began_s is None else began_s
        yield from exposition.chunks()
        took_us = int((self._clock() - began_s) * 1e6)
        self._registry.histogram(SCRAPE_DURATION, path).record(took_us)
        failures = self._registry.counter(SCRAPE_FAILURES)
        failures.add(len(exposition.failures))
        for name, failure in exposition.failures:
            if name not in self._failed:
                self._failed.add(name)
                logger.error("metrics: %s left out, could not be read", name, exc_info=failure)
        omitted = frozenset(exposition.omitted)
        if omitted - self._omitted:
            logger.warning(
                "metrics: left out, because they have more than %d series "
                "(barnabas.metrics.partitions.max): %s; ?collect[]=partitions has them",
                self._options.barnabas_metrics_partitions_max,
                ", ".join(sorted(omitted)),
            )
            self._omitted |= omitted
