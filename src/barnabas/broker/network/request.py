"""A request on its way through the broker, from its decoded body to its response."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from barnabas.broker.network.session import Session
from barnabas.timing.purgatory import DelayedOperation
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.broker.network.connection import Connection

Body = TypeVar("Body", bound=Message)

Reply = Callable[["Request[Any]", Message], None]
"""Encodes a response and sends it; given by the router."""


class Request(Generic[Body]):
    """One request; answered once, by a handler's result or later by `answer`."""

    __slots__ = (
        "api_key",
        "body",
        "client_id",
        "connection",
        "correlation_id",
        "received",
        "reply",
        "session",
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
    ) -> None:
        self.body = body
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.connection = connection
        self.session: Session = connection.session
        self.session.api_key = api_key
        self.received = received
        self.reply = reply

    def answer(self, response: Message) -> None:
        """Send the response of a request that a handler kept for later."""
        self.connection.parked = None
        self.reply(self, response)

    def skip_answer(self) -> None:
        """Finish a request that has no response (acks=0)."""
        self.connection.skip_answer()

    def park(self, operation: DelayedOperation) -> None:
        """Tie an operation to the connection: if the client disconnects, it is cancelled."""
        self.connection.parked = operation
