"""Pushes this broker's metrics by OTLP over HTTP, if `barnabas.otel.metrics.endpoint` is set.

The event loop reads the numbers, a few hundred at a time; a thread of its own writes and sends
them. A collector that does not answer costs one line in the log, and nothing else.
"""

from __future__ import annotations

import asyncio
import gzip
import logging
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPException
from importlib.metadata import PackageNotFoundError, version
from urllib.parse import urlsplit, urlunsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from barnabas.config.broker import BrokerOptions
from barnabas.config.option import Password
from barnabas.metrics.catalogue import otel as catalogue
from barnabas.metrics.otlp import Batch, batches, body
from barnabas.metrics.registry import Registry
from barnabas.model.errors import ConfigError

logger = logging.getLogger("barnabas.metrics")

TIMEOUT_S = 10.0
"""How long one request to the collector may take."""
LAST_S = 2.0
"""How long a broker that stops waits for its last push."""
PATH = "/v1/metrics"


class OtlpExport:
    """The periodic push of one broker."""

    def __init__(
        self,
        options: BrokerOptions,
        registry: Registry,
        wall_ms: Callable[[], int],
        broker_id: int,
        cluster_id: str,
    ) -> None:
        """Raise ConfigError for an unusable endpoint or header."""
        self._registry = registry
        self._wall_ms = wall_ms
        self._interval_s = options.barnabas_otel_metrics_interval_ms / 1000
        assert options.barnabas_otel_metrics_endpoint, "there is nowhere to push to"
        self._url = parse_endpoint(options.barnabas_otel_metrics_endpoint)
        self._headers = parse_headers(options.barnabas_otel_metrics_headers)
        self._resource = {
            "service.name": "barnabas",
            "service.instance.id": f"{cluster_id}-{broker_id}",
            "service.version": _version(),
            "messaging.kafka.cluster.id": cluster_id,
            "barnabas.broker.id": str(broker_id),
        }
        self._started_ns = wall_ms() * 1_000_000
        self._task: asyncio.Task[None] | None = None
        self._thread: Executor | None = None
        self._failing = False

    def start(self) -> None:
        """Push from now on, first after an interval."""
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="barnabas-otlp")
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def stop(self) -> None:
        """Push once more, so that the last numbers are not lost, and end."""
        if self._task is not None:
            await self.abandon(wait=True)
            if not self._failing:
                with suppress(TimeoutError):
                    async with asyncio.timeout(LAST_S):
                        await self._push()
            self._end_thread()

    async def abandon(self, *, wait: bool = False) -> None:
        """End without a last push; with `wait`, the thread goes on."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        if not wait:
            self._end_thread()

    def _end_thread(self) -> None:
        if self._thread is not None:
            self._thread.shutdown(wait=False, cancel_futures=True)
            self._thread = None

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self._push()

    async def _push(self) -> None:
        """Push all metrics; a failure is logged when it begins and when it ends."""
        loop = asyncio.get_running_loop()
        try:
            for batch in batches(self._registry, self._started_ns, self._wall_ms() * 1_000_000):
                points = sum(_points(metric) for metric in batch)
                await loop.run_in_executor(self._thread, self._post, batch)
                self._registry.counter(catalogue.EXPORTED_POINTS).add(points)
        except (OSError, HTTPException) as failure:
            self._failed(failure)
        except Exception:
            self._failed(None)
            logger.exception("metrics not pushed")
        else:
            self._registry.counter(catalogue.EXPORTS, "ok").add(1)
            if self._failing:
                self._failing = False
                logger.info("metrics are pushed to %s again", self._url)

    def _failed(self, failure: Exception | None) -> None:
        """Count a failure, and log it unless the one before was one, too."""
        self._registry.counter(catalogue.EXPORTS, "failed").add(1)
        if failure is not None and not self._failing:
            logger.warning(
                "metrics not pushed to %s, retried every %g s: %s",
                self._url,
                self._interval_s,
                failure,
            )
        self._failing = True

    def _post(self, batch: Batch) -> None:
        """Send one batch; raise OSError or HTTPException if it was not accepted."""
        request = Request(
            self._url,
            gzip.compress(body(batch, self._resource), 1),
            {
                "Content-Type": "application/json",
                "Content-Encoding": "gzip",
                "User-Agent": f"barnabas/{self._resource['service.version']}",
                **self._headers,
            },
        )
        with _opener.open(request, timeout=TIMEOUT_S) as response:
            response.read(65_536)


class _NoRedirects(HTTPRedirectHandler):
    """Headers may be secret: they are not sent to where a response points."""

    def redirect_request(self, *_: object) -> None:
        return None


_opener = build_opener(_NoRedirects)


def parse_endpoint(text: str) -> str:
    """Return the URL to push to; raise ConfigError if it is not one."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            f"barnabas.otel.metrics.endpoint={text}: must be http://host:port or https://host:port"
        )
    path = parts.path if parts.path not in ("", "/") else PATH
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def parse_headers(given: Password | None) -> dict[str, str]:
    """Return the headers of `name=value,…`; raise ConfigError, without their values."""
    headers = {}
    for pair in filter(None, (given.value if given is not None else "").split(",")):
        name, equals, value = (part.strip() for part in pair.partition("="))
        usable = name.replace("-", "").replace("_", "").isalnum() and value.isprintable()
        if not equals or not usable or not value.isascii():
            raise ConfigError("barnabas.otel.metrics.headers=[hidden]: must be name=value,…")
        headers[name] = value
    return headers


def _points(metric: dict[str, object]) -> int:
    for kind in ("gauge", "sum", "summary", "histogram"):
        data = metric.get(kind)
        if isinstance(data, dict):
            return len(data["dataPoints"])
    raise AssertionError(metric)


def _version() -> str:
    try:
        return version("barnabas")
    except PackageNotFoundError:
        return "unknown"
