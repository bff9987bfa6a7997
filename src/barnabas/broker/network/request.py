"""A request on its way through the broker, from its decoded body to its response."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from barnabas.broker.network.phases import Phases
from barnabas.broker.network.session import Session
from barnabas.timing.purgatory import DelayedOperation
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.network.connection import Connection

Body = TypeVar("Body", bound=Message)

Reply = Callable[["Request[Any]", Message], None]
"""Encodes a response and sends it; given by the router."""


class Counts(Protocol):
    """Counts the requests of one API and version; the router finds it for each request."""

    @property
    def other(self) -> Counts | None:
        """What counts the requests that have another name."""

    def answered(self, request: Request[Any], response: Message, now: float) -> None:
        """Count a request that is answered now."""

    def unanswered(self, request: Request[Any], now: float) -> None:
        """Count a request that expects no response, and is done now."""

    def throttled(self, throttle_ms: int) -> None:
        """Record that the response of a request asks its client to wait."""


class Request(Generic[Body]):
    """One request; answered once, by a handler's result or later by `answer`."""

    __slots__ = (
        "api_key",
        "body",
        "client_id",
        "connection",
        "correlation_id",
        "counts",
        "phases",
        "received",
        "reply",
        "session",
        "size_bytes",
        "version",
    )

    metered = False
    """Whether its size and time are measured: see `client_quotas`."""
    encoded: list[Any] | None = None
    """The response's body, if a quota had to know its size."""

    def __init__(
        self,
        body: Body,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str,
        connection: Connection,
        received: float,
        reply: Reply,
        counts: Counts,
        size_bytes: int,
    ) -> None:
        """A request of `size_bytes`, header and body, that is counted once it is answered."""
        self.body = body
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        session: Session = connection.session
        self.session = session
        session.api_key = api_key
        self.received = received
        self.reply = reply
        self.counts: Counts | None = counts
        """What counts it; None once it is answered."""
        self.phases: Phases | None = None
        """Where its time went, if it is not answered at once."""
        self.size_bytes = size_bytes

    def answer(self, response: Message) -> None:
        """Send the response of a request that a handler kept for later."""
        self.connection.parked = None
        self.reply(self, response)

    def skip_answer(self, now: float) -> None:
        """Finish a request that has no response (acks=0)."""
        counts = self.counts
        if counts is not None:
            self.counts = None
            counts.unanswered(self, now)
        self.connection.skip_answer()

    def count_as_other(self) -> None:
        """Count this request under its API's other name: a follower sent it, or it verifies."""
        if self.counts is not None and self.counts.other is not None:
            self.counts = self.counts.other

    def resume(self, now: float) -> None:
        """Begin a step of its coroutine."""
        if self.phases is not None:
            self.phases.resume(now)

    def pause(self, now: float) -> None:
        """End a step of its coroutine: from now on the request waits, unless it is answered."""
        if self.phases is not None:
            self.phases.pause(now)

    def park(self, operation: DelayedOperation) -> None:
        """Tie an operation to the connection: if the client disconnects, it is cancelled."""
        self.connection.parked = operation
