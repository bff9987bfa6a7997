"""What stands for a connection while a request of the console is handled.

Each request has one of its own, so that requests of one user may be in progress together; the
router and the handlers cannot tell it from a client's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from barnabas.broker.network.session import Session
from barnabas.broker.network.zero_copy import BYTES, Part, release
from barnabas.model.errors import BarnabasError, StorageError
from barnabas.timing.purgatory import DelayedOperation


class Closed(BarnabasError):
    """The broker would have closed the connection; the text says why."""


class WayIn:
    """One request's connection: its answer is a future."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.parked: DelayedOperation | None = None
        self.answered: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        """The frame of the response, with its size; empty if there is none."""
        self.throttled_until_ms: int | None = None

    @property
    def is_open(self) -> bool:
        """True until there is an answer."""
        return not self.answered.done()

    @property
    def is_idle(self) -> bool:
        """True when there is an answer."""
        return self.answered.done()

    def answer(self, frame: bytes | bytearray) -> None:
        """Take the response."""
        if not self.answered.done():
            self.answered.set_result(bytes(frame))

    def answer_parts(self, parts: Sequence[Part]) -> bool:
        """Take a response of several parts, whose file ranges are read; all is sent by then."""
        try:
            self.answer(
                b"".join(part if isinstance(part, BYTES) else part.read() for part in parts)
            )
        except (OSError, StorageError) as failure:
            self.close(f"its response could not be read: {failure}")
        finally:
            release(parts)
        return True

    def when_sent(self, act: Callable[[], None]) -> None:
        """Call at once: a response is sent when it is taken."""
        act()

    def rejected(self, why: str) -> None:
        """Count nothing: no listener has this client."""

    def skip_answer(self) -> None:
        """Take that there is no response."""
        self.answer(b"")

    def throttle(self, until_ms: int) -> None:
        """Note until when the user must wait: it has exceeded a quota."""
        self.throttled_until_ms = until_ms

    def close(self, reason: str, *, level: int = 0) -> None:
        """Fail the request."""
        if not self.answered.done():
            self.answered.set_exception(Closed(reason))

    def leave(self) -> None:
        """Give the request up: what is parked for it is cancelled."""
        self.answered.cancel()
        if self.parked is not None:
            self.parked.cancel()
            self.parked = None
