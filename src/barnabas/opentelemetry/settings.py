"""What every traced client of a process shares, and what it says about itself."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from opentelemetry import context
from opentelemetry.trace import Span, Tracer

from barnabas.opentelemetry.conventions import Attributes, Conventions
from barnabas.opentelemetry.measures import Measures

logger = logging.getLogger("barnabas.opentelemetry")

_SUPPRESSED: str | None = getattr(context, "_SUPPRESS_INSTRUMENTATION_KEY", None)


@dataclass
class Settings:
    """The arguments of `instrument`."""

    tracer: Tracer
    conventions: Conventions
    measures: Measures | None
    produce_hook: Callable[..., Any] | None
    consume_hook: Callable[..., Any] | None
    async_produce_hook: Callable[..., Any] | None
    async_consume_hook: Callable[..., Any] | None
    enabled: bool = True

    @property
    def active(self) -> bool:
        """Whether to trace what happens now: an exporter may suppress it for its own requests."""
        return self.enabled and not (_SUPPRESSED and context.get_value(_SUPPRESSED))


@dataclass(frozen=True)
class ClientIdentity:
    """One client."""

    client_id: str
    group_id: str | None
    servers: tuple[str, ...]
    cluster_id: Callable[[], str | None]

    def attributes(self, conventions: Conventions) -> Attributes:
        """Return what all spans of the client have in common."""
        found: Attributes = {"messaging.system": "kafka", "messaging.client.id": self.client_id}
        if conventions.old:
            found["server.address"] = json.dumps(list(self.servers))
        if conventions.new:
            host, _, port = self.servers[0].rpartition(":") if self.servers else ("", "", "")
            if host:
                found["server.address"] = host.strip("[]")
            if port.isdecimal():
                found["server.port"] = int(port)
        if self.group_id is not None:
            found["messaging.consumer.group.name"] = self.group_id
        cluster_id = self.cluster_id()
        if cluster_id:
            found["messaging.kafka.cluster.id"] = cluster_id
        return found


def call_hook(hook: Callable[..., Any] | None, span: Span, *arguments: Any) -> None:
    """Call a hook of the user; one that fails is logged."""
    if hook is not None:
        try:
            hook(span, *arguments)
        except Exception:
            logger.exception("hook %r failed", hook)


async def await_hook(hook: Callable[..., Any] | None, span: Span, *arguments: Any) -> None:
    """Await a hook of the user; one that fails is logged."""
    if hook is not None:
        try:
            await hook(span, *arguments)
        except Exception:
            logger.exception("hook %r failed", hook)
