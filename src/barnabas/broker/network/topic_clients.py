"""Who writes to topics at this broker, and who reads them: learned from requests that are watched.

A consumer names its topics once for each fetch session; its later requests say only that the
session is in use. So it is the session that is remembered here, and the fetch sessions know what
they read. What was not seen for ten minutes is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

from barnabas.broker.network.request import Request
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.produce import ProduceRequest

ENTRIES_MAX = 2000
KEPT_S = 600.0

Used: TypeAlias = str | Uuid | int
"""A topic's name or id, or a fetch session."""
Who: TypeAlias = tuple[str, str, str]
"""Client id, principal and host."""


class TopicClients:
    """Clients by topic and API; times are the clock's seconds."""

    def __init__(self) -> None:
        self._last: dict[tuple[Used, str, Who], float] = {}
        """When each was last seen."""

    def produced(self, request: Request[ProduceRequest], _response: object, now: float) -> None:
        """Note the topics of a Produce request."""
        self._note(
            "Produce",
            request,
            now,
            (each.name or each.topic_id for each in request.body.topic_data),
        )

    def fetched(self, request: Request[FetchRequest], response: FetchResponse, now: float) -> None:
        """Note the fetch session of a consumer's Fetch request, or without one its topics."""
        if response.session_id:
            self._note("Fetch", request, now, [response.session_id])
        else:
            self._note("Fetch", request, now, map(_name, request.body.topics))

    def of(
        self, topic: str, topic_id: Uuid, session_ids: Iterable[int], now: float
    ) -> list[tuple[str, Who, float]]:
        """Return API, client and time of the last request of those who use a topic.

        `session_ids` are the fetch sessions that read it.
        """
        uses = {topic, topic_id, *session_ids}
        latest: dict[tuple[str, Who], float] = {}
        for (used, api, who), last in self._last.items():
            if used in uses and now - last < KEPT_S:
                latest[api, who] = max(last, latest.get((api, who), last))
        return [(api, who, last) for (api, who), last in sorted(latest.items())]

    def _note(self, api: str, request: Request[Any], now: float, used: Iterable[Used]) -> None:
        session = request.session
        who = request.client_id or "", str(session.principal), session.client_host
        for each in used:
            key = each, api, who
            if len(self._last) >= ENTRIES_MAX and key not in self._last:
                self._forget(now)
            self._last[key] = now

    def _forget(self, now: float) -> None:
        """Make room: what is old goes, and at least half of the rest."""
        entries = sorted(self._last.items(), key=lambda each: each[1])
        self._last = {
            key: last for key, last in entries[-ENTRIES_MAX // 2 :] if now - last < KEPT_S
        }


def _name(topic: Any) -> Used:
    topic_id: Uuid = topic.topic_id
    name: str = topic.topic
    return name if topic_id == ZERO_UUID or name else topic_id
