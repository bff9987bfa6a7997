"""What a coordinator knows about a request beside its body."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any, NamedTuple

from barnabas.model.outcome import Outcome, Reply


class Call(NamedTuple):
    """One request: the host's name for it, how and by whom it was sent, and the time."""

    token: Hashable
    """Comes back in the `Reply`, at once or much later."""
    version: int
    now_ms: int
    client_id: str = ""
    client_host: str = ""
    """The address as Kafka stores it: "/10.0.0.1"."""


def answered(call: Call, response: Any) -> Outcome:
    """Answer a call at once, with nothing to write."""
    return Outcome([Reply(call.token, response)])
