"""The request log: a line per request, on `barnabas.request` at DEBUG, in the form of Kafka's.

    Completed request:{"isForwarded":false,"requestHeader":{"requestApiKey":3,…},…}

Requests are counted by an object of their API and version. While the log is on, `LoggedCounts`
stand in for these objects; while it is off, it costs nothing.
"""

from __future__ import annotations

import json
import logging
import re
from typing import TYPE_CHECKING, Any

from barnabas.logging.loggers import REQUEST
from barnabas.logging.text import cut
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import LocalProtocolError
from barnabas.wire.apis import Api
from barnabas.wire.frame import SIZE, response_parts
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.network.request import Counts, Request

logger = logging.getLogger(REQUEST)


def is_on() -> bool:
    """Return whether requests are to be logged."""
    return logger.isEnabledFor(logging.DEBUG)


class LoggedCounts:
    """Counts the requests of an API and version by another object, and logs each one."""

    __slots__ = ("_api", "_kafka_name", "counts", "other")

    def __init__(self, counts: Counts, api: Api) -> None:
        """Wrap what counts the requests while they are not logged."""
        self.counts = counts
        other = counts.other
        self.other: Counts | None = None if other is None else LoggedCounts(other, api)
        self._api = api
        self._kafka_name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", api.name).upper()

    def answered(self, request: Request[Any], response: Message, now: float) -> None:
        """Count and log a request that is answered now."""
        self.counts.answered(request, response, now)
        self._log(request, response, now)

    def unanswered(self, request: Request[Any], now: float) -> None:
        """Count and log a request that expects no response, and is done now."""
        self.counts.unanswered(request, now)
        self._log(request, None, now)

    def throttled(self, throttle_ms: int) -> None:
        """Record that the response of a request asks its client to wait."""
        self.counts.throttled(throttle_ms)

    def _log(self, request: Request[Any], response: Message | None, now: float) -> None:
        session, api = request.session, self._api
        times = _times_ms(request, response, now)
        client_id = None if request.client_id is None else cut(request.client_id)
        sizes = request.size_bytes, _size(request, response)
        principal = cut(str(session.principal))
        line = {
            "isForwarded": False,
            "requestHeader": {
                "requestApiKey": api.key,
                "requestApiVersion": request.version,
                "correlationId": request.correlation_id,
                "clientId": client_id,
                "requestApiKeyName": self._kafka_name,
            },
            "connection": f"{session.dialled_host}-{session.client_host}-{session.number}",
            "totalTimeMs": times["total_ms"],
            "requestQueueTimeMs": times["queue_ms"],
            "localTimeMs": times["local_ms"],
            "remoteTimeMs": times["remote_ms"],
            "throttleTimeMs": times["throttle_ms"],
            "responseQueueTimeMs": 0.0,
            "sendTimeMs": times["send_ms"],
            "requestBytes": sizes[0],
            "responseBytes": sizes[1],
            "securityProtocol": session.protocol.name,
            "principal": principal,
            "listener": session.listener,
            "clientInformation": {
                "softwareName": cut(session.software_name),
                "softwareVersion": cut(session.software_version),
            },
        }
        fields = {
            "api": api.name,
            "version": request.version,
            "correlation_id": request.correlation_id,
            "client_id": client_id,
            "principal": principal,
            "host": session.client_host,
            "listener": session.listener,
            **times,
            "request_bytes": sizes[0],
            "response_bytes": sizes[1],
        }
        code = getattr(response, "error_code", 0)
        if code:
            fields["error"] = ErrorCode.of(code).name
        # Without arguments: those of a log line are cut, and this is one object.
        logger.debug(
            "Completed request:" + json.dumps(line, separators=(",", ":")),
            extra={
                "event": "request.completed",
                "fields": fields,
                "summary": f"{api.name} v{request.version} completed",
            },
        )


def _times_ms(request: Request[Any], response: Message | None, now: float) -> dict[str, float]:
    """Return where the time of a request went, in milliseconds."""
    phases = request.phases
    queue_s = local_s = remote_s = send_s = 0.0
    if phases is None:
        local_s = now - request.received
    else:
        queue_s, local_s = phases.queue_s, phases.local_s
        remote_s, send_s = phases.remote_s, phases.send_s
    seconds = {
        "total_ms": queue_s + local_s + remote_s + send_s,
        "queue_ms": queue_s,
        "local_ms": local_s,
        "remote_ms": remote_s,
        "send_ms": send_s,
    }
    times = {name: round(value * 1000, 3) for name, value in seconds.items()}
    times["throttle_ms"] = float(getattr(response, "throttle_time_ms", 0))
    return times


def _size(request: Request[Any], response: Message | None) -> int:
    """Return the bytes of a response, without the size before it."""
    if response is None:
        return 0
    try:
        parts = response_parts(response, request.version, request.correlation_id)
    except LocalProtocolError:
        return 0
    return sum(map(len, parts)) - SIZE.size
