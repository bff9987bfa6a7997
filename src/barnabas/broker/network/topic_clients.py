"""Who writes to topics at this broker, and who reads them: learned from requests while watched.

A consumer names its topics once for each fetch session; later fetches only say that it still reads
them. What was not renewed for ten minutes is forgotten.
"""

from __future__ import annotations

from typing import Any

from barnabas.broker.network.request import Request
from barnabas.model.ids import ZERO_UUID, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.produce import ProduceRequest

ENTRIES_MAX = 2000
KEPT_S = 600.0

Topic = str | Uuid
Who = tuple[str, str, str]
"""Client id, principal and host."""


class TopicClients:
    """Clients by topic and API; times are the clock's seconds."""

    def __init__(self) -> None:
        self._entries: dict[tuple[Topic, str, Who], tuple[float, int]] = {}
        """When each was last seen, and the fetch session that renews it (0: none)."""
        self._sessions: dict[int, float] = {}
        """When each fetch session was last used."""

    def produced(self, request: Request[ProduceRequest], now: float) -> None:
        """Note the topics of a Produce request."""
        who = _who(request)
        for topic in request.body.topic_data:
            self._note(topic.name or topic.topic_id, "Produce", who, now, 0)

    def fetched(self, request: Request[FetchRequest], response: FetchResponse, now: float) -> None:
        """Note the topics of a consumer's Fetch request, and that its session is in use."""
        session_id = response.session_id
        if session_id:
            if len(self._sessions) >= ENTRIES_MAX and session_id not in self._sessions:
                self._forget(now)
            self._sessions[session_id] = now
        body = request.body
        if body.topics:
            who = _who(request)
            for topic in body.topics:
                self._note(_name(topic), "Fetch", who, now, session_id)
        if body.forgotten_topics_data:
            who = _who(request)
            for gone in body.forgotten_topics_data:
                self._entries.pop((_name(gone), "Fetch", who), None)

    def of(self, topic: str, topic_id: Uuid, now: float) -> list[tuple[str, Who, float]]:
        """Return API, client and time of the last request of those who use a topic."""
        found = []
        for (name, api, who), entry in list(self._entries.items()):
            if name in (topic, topic_id):
                last = self._last(entry)
                if now - last < KEPT_S:
                    found.append((api, who, last))
        return sorted(found, key=lambda each: (each[0], each[1]))

    def _note(self, topic: Topic, api: str, who: Who, now: float, session_id: int) -> None:
        key = topic, api, who
        if len(self._entries) >= ENTRIES_MAX and key not in self._entries:
            self._forget(now)
        self._entries[key] = now, session_id

    def _last(self, entry: tuple[float, int]) -> float:
        last, session_id = entry
        return max(last, self._sessions.get(session_id, last)) if session_id else last

    def _forget(self, now: float) -> None:
        """Make room: what is old goes, and at least half of the rest."""
        entries = sorted(self._entries.items(), key=lambda each: self._last(each[1]))
        self._entries = {
            key: entry
            for key, entry in entries[-ENTRIES_MAX // 2 :]
            if now - self._last(entry) < KEPT_S
        }
        sessions = sorted(self._sessions.items(), key=lambda each: each[1])
        self._sessions = {
            key: last for key, last in sessions[-ENTRIES_MAX // 2 :] if now - last < KEPT_S
        }


def _who(request: Request[Any]) -> Who:
    session = request.session
    return request.client_id or "", str(session.principal), session.client_host


def _name(topic: Any) -> Topic:
    topic_id: Uuid = topic.topic_id
    name: str = topic.topic
    return name if topic_id == ZERO_UUID or name else topic_id
