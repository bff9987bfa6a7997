"""Failures of admin calls: the exception for an error code, naming what was asked about."""

from __future__ import annotations

from barnabas.client.errors import NetworkError, UnsupportedApiError
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.request_errors import (
    NetworkExceptionError,
    UnknownError,
    UnsupportedVersionError,
    request_error,
)


def failure(error_code: int, what: object, message: str | None = None) -> RequestError:
    """Return the failure of one thing with the broker's message, or ours if it gave none."""
    error = request_error(error_code, f"{what}: {message or ErrorCode.of(error_code).meaning}")
    error.broker_message = message
    return error


def failure_or_none(
    error_code: int, what: object, message: str | None = None
) -> RequestError | None:
    """Return the failure of one thing, None if there is none."""
    return failure(error_code, what, message) if error_code else None


def check(error_code: int, what: object, message: str | None = None) -> None:
    """Raise if a response carries an error."""
    if error_code:
        raise failure(error_code, what, message)


def coded(broken: BarnabasError) -> RequestError:
    """Return a failure that prevented a request, as the outcome of one thing.

    So all outcomes have a code; these are those that Kafka reserves for clients.
    """
    if isinstance(broken, RequestError):
        return broken
    if isinstance(broken, NetworkError):
        return NetworkExceptionError(str(broken))
    if isinstance(broken, UnsupportedApiError):
        return UnsupportedVersionError(str(broken))
    return UnknownError(str(broken))
