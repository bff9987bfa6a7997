"""The door: how requests of the console's users reach the broker, declared here, built there.

    visitor = await door.log_in("alice", "secret", host="10.0.0.7")
    response = await door.ask(visitor, MetadataRequest(topics=None))
    response = await door.ask(visitor, ListOffsetsRequest(...), to=3, timeout_ms=2000)

A request is handled as if it had come over a socket from a client of that user whose client id is
`barnabas-console`. What another broker must answer is authorized here, as that user, and then asked
on this broker's own connection: a user cannot be impersonated over the wire.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from barnabas.wire.schema import Message

CLIENT_ID = "barnabas-console"


class Mode(Enum):
    """What the console may do, whatever its user may do."""

    FULL = "full"
    READ_ONLY = "read-only"
    """No request that changes anything."""
    METADATA_ONLY = "metadata-only"
    """Read-only, and no contents of records."""


@dataclass(frozen=True, slots=True)
class Visitor:
    """Who asks: a principal that the broker has let in, and where its browser runs."""

    principal: str
    """As `User:alice`."""
    host: str
    by_token: bool = False
    """Whether it has logged in with a delegation token."""

    @property
    def name(self) -> str:
        """The principal's name, without its type."""
        return self.principal.partition(":")[2]


class LoginRejected(Exception):
    """A log-in that failed; the text is for the user, and does not say which part was wrong."""


@dataclass(frozen=True, slots=True)
class VisibleTopic:
    """A topic that a visitor may describe, as this broker's metadata has it."""

    name: str
    topic_id: bytes
    partitions: int
    replicas: int
    """Of the first partition."""
    internal: bool
    under_replicated: int
    """Partitions with fewer in-sync replicas than replicas."""
    offline: int
    """Partitions without a leader."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """Whether a principal may do something, and by which rule."""

    allowed: bool
    reason: str


class Door(Protocol):
    """What the broker lets the console's users do; every call is made for one of them."""

    broker_id: int
    mode: Mode
    secured: bool
    """Whether there is an authorizer: without one everybody may do everything."""
    mechanisms: tuple[str, ...]
    """SASL mechanisms by which one can log in with a password; empty: there is no log-in."""

    async def log_in(self, name: str, password: str, host: str) -> Visitor:
        """Check credentials as the broker's listeners do; raise LoginRejected."""

    def anonymous(self, host: str) -> Visitor:
        """Return the visitor of a console without log-in."""

    async def ask(
        self,
        visitor: Visitor,
        request: Message,
        *,
        to: int | None = None,
        version: int | None = None,
        timeout_ms: float = 30_000,
    ) -> Any:
        """Return the response to a request, from this broker or the one with id `to`.

        `version` is the highest stable one unless given. Raises PolicyViolationError for a request
        that the mode forbids, KafkaTimeoutError, and RequestError with BROKER_NOT_AVAILABLE if the
        other broker cannot be reached.
        """

    def topics(self, visitor: Visitor) -> AsyncIterator[VisibleTopic]:
        """Return what a visitor may see of the topics, sorted by name; lets the loop run between.

        Unlike Metadata this also works with a hundred thousand topics.
        """

    async def fork(self, visitor: Visitor, topic: str, name: str, at: int | None) -> None:
        """Create a topic with the records of another one (up to a time in ms); raise RequestError.

        Raises RequestError with INVALID_REQUEST where this broker cannot fork.
        """

    def ruling(
        self, visitor: Visitor, principal: str, host: str, operation: int, resource: int, name: str
    ) -> Ruling:
        """Return what the authorizer would decide; raise RequestError unless one may see ACLs."""
