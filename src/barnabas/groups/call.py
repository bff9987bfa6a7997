"""What a coordinator knows about a request besides its body."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

from barnabas.model.outcome import Outcome, Reply


class Call(NamedTuple):
    """One request: the host's token for it, its version and sender, and the time."""

    token: Hashable
    """Returned in the `Reply`, immediately or much later."""
    version: int
    now_ms: int
    client_id: str = ""
    client_host: str = ""
    """The address as Kafka stores it: "/10.0.0.1"."""
    sees: Callable[[str], bool] | None = None
    """Returns whether the sender may describe a topic; None if everyone may."""


def answered(call: Call, response: Any) -> Outcome:
    """Answer a call immediately, with nothing to write."""
    return Outcome([Reply(call.token, response)])
