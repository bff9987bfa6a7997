"""What the mechanisms have in common: messages in, answers out, and at the end a login.

An exchange gets the client's messages one after the other and answers each with a `Step`. What
would hold up the event loop is returned as `Work`, which the caller runs on a thread. A client
that is refused is an exception, `Rejected`, with the text for the client and the reason for the
log; neither has a secret in it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from barnabas.model.errors import BarnabasError

SHOWN_MAX = 256


class Login(NamedTuple):
    """Who has logged in, and until when the credential is valid."""

    name: str
    ends_ms: int | None = None
    """When the credential expires, by the wall clock."""
    by_token: bool = False
    """Whether the credential is a delegation token, with which no further token can be had."""


class Step(NamedTuple):
    """The answer to one message; with a login the exchange is complete."""

    answer: bytes | None
    """None if there is nothing to answer, which is different from an empty answer."""
    login: Login | None = None
    refusal: str = ""
    """Why the client is refused, if the answer tells it so and waits for its reply."""


class Work(NamedTuple):
    """A step that takes too long for the event loop; it may raise Rejected."""

    run: Callable[[], Step]


class Exchange(Protocol):
    """One login by one mechanism."""

    def step(self, message: bytes, now_ms: int) -> Step | Work:
        """Handle a message of the client; `now_ms` is the wall clock's. Raise Rejected."""


NewExchange = Callable[[], Exchange]


class Rejected(BarnabasError):
    """A client that is not let in.

    `told` is the text for the client; None for the one that says nothing but the mechanism.
    """

    def __init__(self, why: str, told: str | None = None) -> None:
        super().__init__(why)
        self.told = told


def shown(text: str) -> str:
    """Return a client's text for a log line: quoted, without control characters, not too long."""
    return repr(text if len(text) <= SHOWN_MAX else text[:SHOWN_MAX] + "…")
