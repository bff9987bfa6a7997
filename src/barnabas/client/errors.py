"""What can go wrong between a client and its brokers, beside the error codes that brokers send.

    BarnabasError
    ├── NetworkError             no answer came; the same call may succeed later
    │   ├── ConnectError             no connection could be opened: names addresses and reasons
    │   ├── ConnectionLostError      the connection ended before the answer
    │   └── RequestTimeoutError      the answer did not come in time
    └── UnsupportedApiError      the peer is too old or too new: names the API and both ranges

After a `ConnectionLostError` or `RequestTimeoutError` the broker may or may not have acted.
"""

from __future__ import annotations

from barnabas.model.errors import BarnabasError


class NetworkError(BarnabasError):
    """No answer came."""

    retriable = True


class ConnectError(NetworkError):
    """No connection could be opened."""


class ConnectionLostError(NetworkError):
    """The connection ended before the answer."""


class RequestTimeoutError(NetworkError):
    """The answer did not come in time."""


class UnsupportedApiError(BarnabasError):
    """Our versions of an API and the peer's do not overlap."""
