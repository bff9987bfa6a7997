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
from typing import Any, Protocol

from barnabas.model.visitor import LoginRejected, Mode, Ruling, VisibleTopic, Visitor
from barnabas.wire.schema import Message

__all__ = ["CLIENT_ID", "Door", "LoginRejected", "Mode", "Ruling", "VisibleTopic", "Visitor"]

CLIENT_ID = "barnabas-console"


class Door(Protocol):
    """What the broker lets the console's users do; every call is made for one of them."""

    @property
    def broker_id(self) -> int:
        """The id of the broker behind the door."""

    @property
    def mode(self) -> Mode:
        """What the console may do."""

    @property
    def secured(self) -> bool:
        """Whether there is an authorizer: without one everybody may do everything."""

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """SASL mechanisms by which one can log in with a password; without any all may enter."""

    async def log_in(self, name: str, password: str, host: str) -> Visitor:
        """Check credentials as the broker's listeners do; raise LoginRejected."""

    def by_certificate(self, der: bytes, host: str) -> Visitor:
        """Return whom a browser's certificate (DER) names; raise LoginRejected if nobody."""

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

    def topics(
        self, visitor: Visitor, *, after: str = "", containing: str = ""
    ) -> AsyncIterator[VisibleTopic]:
        """Return what a visitor may see of the topics, sorted by name; lets the loop run between.

        Only topics whose names come `after` one, and contain some text in any case. Unlike
        Metadata this also works with a hundred thousand topics.
        """

    def describes_cluster(self, visitor: Visitor) -> bool:
        """Return whether a visitor may see what concerns the whole cluster, such as rates."""

    def ruling(
        self, visitor: Visitor, principal: str, host: str, operation: int, resource: int, name: str
    ) -> Ruling:
        """Return what the authorizer would decide; raise RequestError unless one may see ACLs."""
