"""From an address to a connection ready for requests: TCP, TLS, versions, authentication.

Each step has its own error: a broker that cannot be reached is a `ConnectError`, which is
retriable; a rejected certificate or password is an `AuthenticationFailedError`, which is
not.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas import __version__
from barnabas.client.addresses import Address
from barnabas.client.errors import AuthenticationFailedError, ConnectError, ConnectionLostError
from barnabas.client.negotiation import PeerVersions, VersionRange, version_for_retry
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import RemoteProtocolError
from barnabas.model.request_errors import request_error
from barnabas.wire.apis import API_VERSIONS_KEY, api_of
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.schema import Message

if TYPE_CHECKING:
    from barnabas.client.connection import Connection

ConnectionType = TypeVar("ConnectionType", bound="Connection")

_CUT_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""A handshake that ended in the middle: the broker was stopped, say. It is retriable."""

Ask = Callable[[Message], Awaitable[Any]]
Login = Callable[[Ask, Address], Awaitable[float]]
"""Authenticates with requests; returns after how many milliseconds to repeat it, 0: never."""


async def open_connection(
    make: Callable[[], ConnectionType],
    address: Address,
    *,
    connect_timeout_ms: float,
    tls: ssl.SSLContext | None,
    login: Login | None,
    socket_options: Iterable[tuple[int, int, Any]],
) -> ConnectionType:
    """Return the connection that `make` creates, connected and ready for requests."""
    connection = await _connect(make, address, connect_timeout_ms, tls)
    try:
        connection.set_socket_options(socket_options)
        await _negotiate(connection, connect_timeout_ms, encrypted=tls is not None)
        if login is not None:
            await _log_in(connection, login, connect_timeout_ms)
    except BaseException:
        connection.abort()
        raise
    return connection


async def _connect(
    make: Callable[[], ConnectionType],
    address: Address,
    timeout_ms: float,
    tls: ssl.SSLContext | None,
) -> ConnectionType:
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    encryption: dict[str, Any] = (
        {} if tls is None else {"ssl": tls, "server_hostname": address.host}
    )
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            return await _connect_to_one(make, address, timeout_ms / 1000, encryption)
    except OSError as failure:
        if isinstance(failure, ssl.SSLError) and not isinstance(failure, _CUT_OFF):
            raise AuthenticationFailedError(
                f"no TLS connection to {address}: {_tls_reason(failure)}"
            ) from failure
        elapsed_ms = (loop.time() - started_s) * 1000
        words = reason(failure)
        if not isinstance(failure, ConnectionRefusedError):
            words += f" ({elapsed_ms:.0f} ms)"
        if tls is not None and isinstance(failure, (ConnectionResetError, *_CUT_OFF)):
            words += "; it may not use TLS: see security.protocol"
        raise ConnectError(f"cannot connect to {address}: {words}") from failure


async def _connect_to_one(
    make: Callable[[], ConnectionType],
    address: Address,
    timeout_s: float,
    encryption: dict[str, Any],
) -> ConnectionType:
    """Try the addresses of a host in turn, and raise the last failure.

    Each but the last gets its share of the time, so that a silent one does not use up that of the
    others. The loop's getaddrinfo is called first, since that is where a loop can choose its
    own threads.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    hosts = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for host in hosts[:-1]:
        try:
            async with asyncio.timeout(timeout_s / len(hosts)):
                return (await loop.create_connection(make, host, address.port, **encryption))[1]
        except OSError as failure:
            if isinstance(failure, ssl.SSLError):  # the host was reached, and rejects us
                raise
    return (await loop.create_connection(make, hosts[-1], address.port, **encryption))[1]


def _tls_reason(failure: ssl.SSLError) -> str:
    if isinstance(failure, ssl.SSLCertVerificationError):
        return f"its certificate is rejected ({failure.verify_message})"
    if failure.reason == "WRONG_VERSION_NUMBER":
        return "it does not use TLS; see security.protocol"
    return reason(failure)


async def _negotiate(connection: Connection, timeout_ms: float, *, encrypted: bool) -> None:
    ours = VersionRange(*api_of(ApiVersionsRequest).versions)
    request = ApiVersionsRequest(
        client_software_name="barnabas", client_software_version=__version__
    )
    try:
        response: ApiVersionsResponse = await connection.exchange(request, ours.highest, timeout_ms)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION:
            theirs = _ranges(connection.address, response).ranges.get(API_VERSIONS_KEY)
            retry = version_for_retry(ours, theirs)
            response = await connection.exchange(request, retry, timeout_ms)
    except (ConnectionLostError, RemoteProtocolError) as failure:
        if not encrypted:  # a TLS listener responds to plain bytes with an alert, or hangs up
            raise type(failure)(f"{failure}; it may expect TLS: see security.protocol") from None
        raise
    if response.error_code != ErrorCode.NONE:
        raise request_error(
            response.error_code, f"{connection.address} failed to return its API versions"
        )
    connection.versions = _ranges(connection.address, response)


async def _log_in(connection: Connection, login: Login, timeout_ms: float) -> None:
    async def ask(request: Message) -> Any:
        version = connection.version_of(type(request))
        return await connection.exchange(request, version, timeout_ms)

    async def authenticate() -> float:
        return await login(ask, connection.address)

    lifetime_ms = await authenticate()
    if lifetime_ms:
        connection.renew_after(lifetime_ms, authenticate)


def _ranges(address: Address, response: ApiVersionsResponse) -> PeerVersions:
    return PeerVersions(
        str(address),
        ((entry.api_key, entry.min_version, entry.max_version) for entry in response.api_keys),
    )


def is_alert(failure: BaseException) -> bool:
    """Return whether the peer has ended TLS with an alert: it rejects us, or what we sent."""
    return isinstance(failure, ssl.SSLError) and "_ALERT_" in str(failure.reason)


def reason(failure: BaseException) -> str:
    """Return a failure of the operating system in familiar words."""
    if isinstance(failure, ConnectionRefusedError):
        return "connection refused"
    if isinstance(failure, ConnectionResetError):  # asyncio raises it without a number
        return "connection reset by peer"
    if isinstance(failure, TimeoutError):
        return "no response in time"
    if isinstance(failure, socket.gaierror):
        return str(failure.strerror).lower()
    if isinstance(failure, ssl.SSLError):
        words = str(failure.reason or failure).lower().replace("_", " ")
        _, alert, sent = words.partition(" alert ")
        return f"it responded with the alert {sent!r}" if alert else words
    if isinstance(failure, OSError) and failure.errno:
        return os.strerror(failure.errno).lower()
    return str(failure) or type(failure).__name__
