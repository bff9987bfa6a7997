"""Sessions of browsers: who has logged in, and until when. In memory; no password is kept.

A session ends after half an hour without a request, and after twelve hours in any case. There is a
bound on how many there are, by user and in all; the longest unused one makes room.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from hmac import compare_digest
from typing import TYPE_CHECKING

from barnabas.console.door import Visitor

if TYPE_CHECKING:
    from barnabas.console.client import DoorClient

IDLE_S = 30 * 60
ABSOLUTE_S = 12 * 3600
SESSIONS_MAX = 1000
SESSIONS_PER_USER_MAX = 20
TOKEN_BYTES = 32


@dataclass(slots=True, eq=False)
class Session:
    """One browser's session."""

    key: str
    """The cookie's value."""
    token: str
    """What each form carries, so that no other site can send it."""
    visitor: Visitor
    client: DoorClient
    """An admin client whose requests pass the door as this visitor, for `barnabas.admin`."""
    began_s: float
    used_s: float
    streams: int = 0
    """Live streams that are open."""
    ended: bool = False
    """Whether it is over: its live streams end, too."""

    def accepts(self, token: str) -> bool:
        """Return whether a form carries this session's token."""
        return compare_digest(self.token.encode(), token.encode("utf-8", "replace"))


class Sessions:
    """All sessions of one console."""

    def __init__(
        self, now_s: Callable[[], float], client_of: Callable[[Visitor], DoorClient]
    ) -> None:
        self._now_s = now_s
        self._client_of = client_of
        self._by_key: dict[str, Session] = {}

    def begin(self, visitor: Visitor) -> Session:
        """Begin a session, with a key that no one can guess."""
        now_s = self._now_s()
        self._sweep(now_s)
        mine = [each for each in self._by_key.values() if each.visitor.name == visitor.name]
        if len(mine) >= SESSIONS_PER_USER_MAX:
            self.end(min(mine, key=lambda each: each.used_s))
        elif len(self._by_key) >= SESSIONS_MAX:
            self.end(min(self._by_key.values(), key=lambda each: each.used_s))
        session = Session(
            secrets.token_urlsafe(TOKEN_BYTES),
            secrets.token_urlsafe(TOKEN_BYTES),
            visitor,
            self._client_of(visitor),
            now_s,
            now_s,
        )
        self._by_key[session.key] = session
        return session

    def find(self, key: str) -> Session | None:
        """Return the session of a cookie, and note that it is in use; None if it has ended."""
        session = self._by_key.get(key)
        if session is None:
            return None
        now_s = self._now_s()
        if self._has_ended(session, now_s):
            self.end(session)
            return None
        session.used_s = now_s
        return session

    def end(self, session: Session) -> None:
        """End a session; its cookie is worthless from now on."""
        session.ended = True
        self._by_key.pop(session.key, None)

    def __len__(self) -> int:
        return len(self._by_key)

    def _has_ended(self, session: Session, now_s: float) -> bool:
        return now_s - session.used_s > IDLE_S or now_s - session.began_s > ABSOLUTE_S

    def _sweep(self, now_s: float) -> None:
        for session in [each for each in self._by_key.values() if self._has_ended(each, now_s)]:
            self.end(session)
