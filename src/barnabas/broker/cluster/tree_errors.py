"""Errors of the coordination service as error codes that clients act upon.

A broker whose session has expired is no longer the controller, whether it has noticed or not: the
client gets NOT_CONTROLLER, finds the controller and asks there. A service that is unavailable may
be back soon: the client retries.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from barnabas.coordination.contract import ServiceUnavailable, SessionExpired
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RequestError


def refusal_of(failure: Exception) -> RequestError | None:
    """Return the client's error for an expired session or unavailable service, else None."""
    if isinstance(failure, SessionExpired):
        return RequestError(ErrorCode.NOT_CONTROLLER, f"this broker is not registered: {failure}")
    if isinstance(failure, ServiceUnavailable):
        return RequestError(ErrorCode.REQUEST_TIMED_OUT, str(failure))
    return None


@contextmanager
def refused_as(code: ErrorCode | None = None) -> Iterator[None]:
    """Raise both as the client's error or, if given, with the code that its API expects."""
    try:
        yield
    except (SessionExpired, ServiceUnavailable) as failure:
        refusal = refusal_of(failure)
        assert refusal is not None
        raise RequestError(code or refusal.code, refusal.message) from failure
