"""Metrics and health of all workers over HTTP, at the address that was given for one broker.

    GET /metrics            the metrics of all workers, each series with a label `worker`
    GET /metrics/cluster    what one of them shows of the whole cluster
    GET /health/live        200 as long as the supervisor's loop turns
    GET /health/ready       200 if all workers serve clients, 503 with the reason if not

The workers are asked over the loopback, with what the client has asked for.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from itertools import islice
from urllib.parse import urlencode

from barnabas.broker.monitoring.health import Health
from barnabas.broker.monitoring.http_connection import Answer
from barnabas.broker.monitoring.http_request import BadRequest, HttpRequest
from barnabas.broker.monitoring.metrics_listener import MetricsListener
from barnabas.metrics.registry import Registry
from barnabas.workers.merged_metrics import merged

logger = logging.getLogger("barnabas.workers")

HOST = "127.0.0.1"
ANSWER_S_MAX = 30.0
"""How long a worker may take to show its metrics."""


class WorkersMetricsListener(MetricsListener):
    """The metrics and health of the workers that serve."""

    def __init__(
        self, ports: Callable[[], Mapping[int, int]], hindrance: Callable[[], str | None]
    ) -> None:
        """`ports` returns where each worker that serves shows its metrics.

        `hindrance` returns why not all workers serve clients, None if they do.
        """
        health = Health()
        health.serving(hindrance)
        super().__init__(Registry(), health, None, time.monotonic)
        self._ports = ports

    async def _answer(self, request: HttpRequest) -> Answer:
        path = request.path.rstrip("/")
        if path not in ("/metrics", "/metrics/cluster"):
            return await super()._answer(request)
        self._check_token(request)
        ports = dict(sorted(self._ports().items()))
        if path == "/metrics/cluster":
            ports = dict(islice(ports.items(), 1))
        head = _head(request, path)
        asked = await asyncio.gather(*(_ask(number, port, head) for number, port in ports.items()))
        found = {number: each for number, each in zip(ports, asked, strict=True) if each}
        if not found:
            raise BadRequest(HTTPStatus.SERVICE_UNAVAILABLE, "no worker shows its metrics now")
        for each in found.values():
            if each.status is not HTTPStatus.OK:
                return each  # what all of them say about this request
        first = next(iter(found.values()))
        if path == "/metrics/cluster" or request.is_head:
            return first
        texts = [(n, each.body) for n, each in found.items() if isinstance(each.body, bytes)]
        # On a thread: the loop also serves the workers' tree.
        return Answer(HTTPStatus.OK, first.headers, await asyncio.to_thread(merged, texts))


def _head(request: HttpRequest, path: str) -> bytes:
    """Return the head of a request that asks a worker for the same; it closes when it is done."""
    query = urlencode(request.query, doseq=True)
    lines = [f"{request.method} {path}{query and '?'}{query} HTTP/1.0"]
    for name in ("accept", "authorization"):
        if name in request.fields:
            lines.append(f"{name}: {request.fields[name]}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


async def _ask(number: int, port: int, head: bytes) -> Answer | None:
    """Ask a worker; return None, and log why, if it does not answer."""
    try:
        async with asyncio.timeout(ANSWER_S_MAX):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(head)
                return _parsed(await reader.read())
            finally:
                writer.close()
    except (OSError, TimeoutError, ValueError) as failure:
        logger.warning("worker %d: its metrics are left out: %r", number, failure)
        return None


def _parsed(answer: bytes) -> Answer:
    """Return an answer of a worker; raise ValueError if it is not complete."""
    head, _, body = answer.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    fields = dict(line.split(": ", 1) for line in lines)
    kept = {name: value for name, value in fields.items() if name in ("Content-Type", "Vary")}
    return Answer(HTTPStatus(int(first.split(" ")[1])), kept, body)
