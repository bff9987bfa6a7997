"""Measures the way to one broker, step by step: each probe returns a check, and fails with none."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
import time
from collections.abc import Awaitable
from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.cli.doctor.connecting import (
    Advertised,
    ClusterView,
    Login,
    Reach,
    Resolution,
    Tls,
    Versions,
)
from barnabas.cli.next_step import NO_LOGIN, is_about_protocol, next_step
from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.client.errors import UnsupportedApiError
from barnabas.client.metadata import BrokerAddress, ClientMetadata
from barnabas.client.opening import reason
from barnabas.client.security import login_of, socket_options_of, tls_of
from barnabas.config.clients.admin import AdminOptions
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.wire.schema import Message

NEEDED = (MetadataRequest, ProduceRequest, FetchRequest, ListOffsetsRequest)
"""What every client needs."""
NO_MECHANISM = "NONE"
"""A name that no mechanism has: a broker responds with those that it offers."""

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Access:
    """How a client reaches brokers: what its options say, and how long it waits."""

    options: AdminOptions
    where: str
    """Where the options are, in words: `in admin.properties`."""
    timeout_ms: float

    async def open(self, address: Address, *, login: bool = True) -> Connection:
        """Return a connection, logged in unless that is not wanted."""
        return await Connection.open(
            address,
            client_id="barnabas-doctor",
            connect_timeout_ms=self.timeout_ms,
            request_timeout_ms=self.timeout_ms,
            tls=tls_of(self.options),
            login=login_of(self.options, random.random) if login else None,
            socket_options=socket_options_of(self.options),
        )

    def step_after(self, failure: BarnabasError) -> str | None:
        """Return what to do after a failure, if it is one of security."""
        notes = getattr(failure, "__notes__", None)
        return "; ".join(notes) if notes else next_step(failure, self.where)


async def _timed(work: Awaitable[Result]) -> tuple[Result, float]:
    began_s = time.perf_counter()
    result = await work
    return result, (time.perf_counter() - began_s) * 1000


async def resolve(address: Address, timeout_ms: float) -> Resolution:
    """Look the host up."""
    loop = asyncio.get_running_loop()
    began_s = time.perf_counter()
    failure, hosts = None, []
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            found = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        hosts = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    except (OSError, UnicodeError) as broken:
        failure = reason(broken)
    elapsed_ms = (time.perf_counter() - began_s) * 1000
    return Resolution(address.host, tuple(hosts), elapsed_ms, failure)


async def reach(address: Address, hosts: tuple[str, ...], timeout_ms: float) -> Reach:
    """Connect to each address of the host."""

    async def one(host: str) -> float | str:
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                (_, writer), elapsed_ms = await _timed(asyncio.open_connection(host, address.port))
        except OSError as failure:
            return reason(failure)
        writer.close()
        return elapsed_ms

    outcomes = await asyncio.gather(*(one(host) for host in hosts))
    return Reach(str(address), dict(zip(hosts, outcomes, strict=True)))


async def handshake(access: Access, address: Address) -> Tls:
    """Do a TLS handshake as the client does it."""
    context = tls_of(access.options)
    assert context is not None
    try:
        version, certificate = await _handshake(context, address, access.timeout_ms)
    except OSError:
        # Once more, by the client's own code: it has the words for what is wrong.
        try:
            (await access.open(address, login=False)).abort()
        except BarnabasError as failure:
            step = access.step_after(failure)
            if is_about_protocol(failure):
                step = (
                    "the server does not seem to speak TLS there: connect to the port of a TLS "
                    "listener, or "
                    f"set security.protocol=PLAINTEXT or SASL_PLAINTEXT {access.where}"
                )
            return Tls(str(address), failure=str(failure), step=step)
        return Tls(str(address), failure="the handshake failed once, and succeeded then")
    if not certificate:
        return Tls(str(address), version, checks_name=context.check_hostname)
    left_s = ssl.cert_time_to_seconds(str(certificate["notAfter"])) - time.time()
    return Tls(str(address), version, left_s / 86_400, context.check_hostname)


async def _handshake(
    context: ssl.SSLContext, address: Address, timeout_ms: float
) -> tuple[str, dict[str, Any]]:
    async with asyncio.timeout(timeout_ms / 1000):
        _, writer = await asyncio.open_connection(
            address.host, address.port, ssl=context, server_hostname=address.host
        )
    try:
        session = writer.get_extra_info("ssl_object")
        return session.version() or "", session.getpeercert() or {}
    finally:
        writer.transport.abort()


async def speaks_tls(address: Address, timeout_ms: float) -> bool:
    """Return whether a port does a TLS handshake, with whatever certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    try:
        await _handshake(context, address, timeout_ms)
    except ssl.SSLError as failure:
        return "ALERT" in str(failure.reason)  # it wants another client, but it speaks TLS
    except OSError:
        return False
    return True


async def negotiate(access: Access, address: Address) -> tuple[Versions, Connection | None]:
    """Ask for the versions; the connection is not logged in."""
    try:
        connection, elapsed_ms = await _timed(access.open(address, login=False))
    except BarnabasError as failure:
        step = access.step_after(failure)
        if not access.options.uses_tls and await speaks_tls(address, access.timeout_ms):
            step = f"TLS is spoken there: set security.protocol=SSL or SASL_SSL {access.where}"
        return Versions(str(address), failure=str(failure), step=step), None
    lacking = []
    for request in NEEDED:
        try:
            connection.version_of(request)
        except UnsupportedApiError:
            lacking.append(request.__name__.removesuffix("Request"))
    count = len(connection.versions.ranges)
    return Versions(str(address), count, tuple(lacking), elapsed_ms), connection


async def log_in(access: Access, connection: Connection) -> Login:
    """Log in with the client's credentials."""
    mechanism = access.options.sasl_mechanism

    async def ask(request: Message) -> Any:
        version = connection.version_of(type(request))
        return await connection.exchange(request, version, access.timeout_ms)

    target = str(connection.address)
    try:
        login = login_of(access.options, random.random)
        assert login is not None
        session_ms = await login(ask, connection.address)
    except BarnabasError as failure:
        return Login(target, mechanism, str(failure), access.step_after(failure))
    return Login(target, mechanism, session_ms=session_ms)


async def view_cluster(
    access: Access, connection: Connection
) -> tuple[ClusterView, ClientMetadata | None]:
    """Ask a broker for its cluster."""
    target = str(connection.address)
    try:
        view = await _metadata(connection)
    except BarnabasError as failure:
        step = access.step_after(failure)
        if not access.options.uses_sasl:
            step = await _offered(access, connection.address) or step
        return ClusterView(target, failure=str(failure), step=step), None
    return ClusterView(target, view.cluster_id, len(view.brokers), view.controller_id), view


async def _metadata(connection: Connection) -> ClientMetadata:
    version = connection.version_of(MetadataRequest)
    request = MetadataRequest(topics=[], allow_auto_topic_creation=version < 4)
    response: MetadataResponse = await connection.send(request, version=version)
    view = ClientMetadata()
    view.apply(response, all_topics=True)
    return view


async def _offered(access: Access, address: Address) -> str | None:
    """Return the next step if a listener wants a login."""
    try:
        connection = await access.open(address, login=False)
    except BarnabasError:
        return None
    try:
        response: SaslHandshakeResponse = await connection.send(
            SaslHandshakeRequest(mechanism=NO_MECHANISM)
        )
    except BarnabasError:
        return NO_LOGIN
    finally:
        connection.abort()
    if response.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return None
    protocol = "SASL_SSL" if access.options.uses_tls else "SASL_PLAINTEXT"
    offered = ", ".join(response.mechanisms)
    return (
        f"a login is required there: set security.protocol={protocol}, sasl.mechanism ({offered}) "
        f"and sasl.jaas.config {access.where}"
    )


async def visit(
    access: Access, broker: BrokerAddress, view: ClientMetadata, *, bootstrap_is_local: bool
) -> Advertised:
    """Connect to the address that a broker advertises, and ask who is there."""
    address = Address(broker.host, broker.port)
    facts: dict[str, Any] = {
        "shared_with": tuple(
            other.node_id
            for other in view.brokers.values()
            if other.node_id != broker.node_id and (other.host, other.port) == address
        ),
        "expected_cluster_id": view.cluster_id,
    }
    try:
        connection, facts["elapsed_ms"] = await _timed(access.open(address))
        try:
            facts["cluster_id"] = (await _metadata(connection)).cluster_id
        finally:
            connection.abort()
    except BarnabasError as failure:
        facts["failure"] = str(failure)
    return Advertised(broker.node_id, str(address), bootstrap_is_local, **facts)
