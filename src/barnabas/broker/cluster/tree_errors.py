"""What the coordination service refuses, in words that clients act upon.

A broker whose session has ended holds no office any more, whether it has noticed or not: whoever
asks is told NOT_CONTROLLER, finds the controller and asks there. A service that is away may be back
soon: whoever asks tries again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.coordination.contract import ServiceUnavailable, SessionExpired
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


def refusal_of(failure: Exception) -> RequestError | None:
    """Return what a client is told of a session's end or an absent service, None of others."""
    if isinstance(failure, SessionExpired):
        return RequestError(ErrorCode.NOT_CONTROLLER, f"this broker is not registered: {failure}")
    if isinstance(failure, ServiceUnavailable):
        return RequestError(ErrorCode.REQUEST_TIMED_OUT, str(failure))
    return None


@contextmanager
def refused_as(code: ErrorCode | None = None) -> Iterator[None]:
    """Have both told to the client as what they mean or, where it knows another word, as `code`."""
    try:
        yield
    except (SessionExpired, ServiceUnavailable) as failure:
        refusal = refusal_of(failure)
        assert refusal is not None
        raise RequestError(code or refusal.code, refusal.message) from failure
