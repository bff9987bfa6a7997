"""Listeners, connections and the queue of requests."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved
from barnabas.config.reasons import (
    IO_THREADS,
    REQUEST_COUNT,
    SAME_EACH_TIME,
)
from barnabas.model.errors import ConfigError


class NetworkOptions(Section):
    """Listeners, connections and the queue of requests."""

    listeners: str = option(
        "listeners",
        "string",
        default="PLAINTEXT://:9092",
        dynamic="broker",
        doc="Addresses to listen on, as NAME://host:port, separated by commas.",
    )
    advertised_listeners: str | None = option(
        "advertised.listeners",
        "string",
        default=None,
        dynamic="broker",
        doc="Addresses advertised to clients; defaults to the one each client dialled.",
    )
    listener_security_protocol_map: str = option(
        "listener.security.protocol.map",
        "string",
        default="SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        dynamic="broker",
        doc="Security protocol of each listener name, as NAME:PROTOCOL.",
    )
    inter_broker_listener_name: str | None = option(
        "inter.broker.listener.name",
        "string",
        default=None,
        doc="Listener for connections between brokers.",
    )
    security_inter_broker_protocol: str = option(
        "security.inter.broker.protocol",
        "string",
        default="PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="Security protocol between brokers if inter.broker.listener.name is not set.",
    )
    control_plane_listener_name: str | None = option(
        "control.plane.listener.name",
        "string",
        default=None,
        doc="Dedicated listener for the controller's requests, which take precedence.",
    )
    _before_start = reserved(
        """
        early.start.listeners  string   -  no       KRAFT       Listeners that start before the authorizer is ready.
        num.network.threads    int:1..  3  cluster  EVENT_LOOP  Network threads per listener.
        """  # noqa: E501
    )
    num_io_threads: int = option(
        "num.io.threads",
        "int",
        default=8,
        at_least=1,
        dynamic="cluster",
        doc="Threads for work that would block the event loop, such as flushes.",
    )
    background_threads: int = option(
        "background.threads",
        "int",
        default=10,
        at_least=1,
        dynamic="cluster",
        reserved=IO_THREADS,
        doc="Threads for background work, such as deletion and compaction.",
    )
    queued_max_requests: int = option(
        "queued.max.requests",
        "int",
        default=500,
        at_least=1,
        doc="Requests queued or in progress before the broker stops reading from sockets.",
    )
    queued_max_request_bytes: int = option(
        "queued.max.request.bytes",
        "long",
        default=-1,
        at_least=1,
        besides=(-1,),
        reserved=REQUEST_COUNT,
        doc="Maximum bytes of queued requests; -1 for no limit.",
    )
    request_timeout_ms: int = option(
        "request.timeout.ms",
        "int",
        default=30_000,
        at_least=1,
        doc="Timeout of this broker's requests to other brokers.",
    )
    socket_request_max_bytes: int = option(
        "socket.request.max.bytes",
        "int",
        default=104_857_600,
        at_least=1,
        doc="Largest request accepted from a socket.",
    )
    socket_send_buffer_bytes: int = option(
        "socket.send.buffer.bytes",
        "int",
        default=102_400,
        at_least=1,
        besides=(-1,),
        doc="Socket send buffer (SO_SNDBUF); -1 for the system's default.",
    )
    socket_receive_buffer_bytes: int = option(
        "socket.receive.buffer.bytes",
        "int",
        default=102_400,
        at_least=1,
        besides=(-1,),
        doc="Socket receive buffer (SO_RCVBUF); -1 for the system's default.",
    )
    socket_listen_backlog_size: int = option(
        "socket.listen.backlog.size",
        "int",
        default=50,
        at_least=1,
        doc="Listen backlog: connections waiting to be accepted.",
    )
    socket_connection_setup_timeout_ms: int = option(
        "socket.connection.setup.timeout.ms",
        "long",
        default=10_000,
        at_least=1,
        doc="Timeout for opening a connection to another broker.",
    )
    socket_connection_setup_timeout_max_ms: int = option(
        "socket.connection.setup.timeout.max.ms",
        "long",
        default=30_000,
        at_least=1,
        reserved=SAME_EACH_TIME,
        doc="Maximum timeout for opening a connection to another broker.",
    )
    connections_max_idle_ms: int = option(
        "connections.max.idle.ms",
        "long",
        default=600_000,
        at_least=1,
        besides=(-1,),
        doc="Idle time after which a connection is closed; -1 for never.",
    )
    connection_failed_authentication_delay_ms: int = option(
        "connection.failed.authentication.delay.ms",
        "int",
        default=100,
        at_least=0,
        doc="Delay before a connection that failed to authenticate is closed.",
    )
    max_connections: int = option(
        "max.connections",
        "int",
        default=2**31 - 1,
        at_least=0,
        dynamic="cluster",
        doc="Maximum number of connections to a broker.",
    )
    max_connections_per_ip: int = option(
        "max.connections.per.ip",
        "int",
        default=2**31 - 1,
        at_least=0,
        dynamic="cluster",
        doc="Maximum number of connections from one IP address.",
    )
    max_connections_per_ip_overrides: str = option(
        "max.connections.per.ip.overrides",
        "string",
        default="",
        dynamic="cluster",
        doc="Per-address overrides of max.connections.per.ip, as a list of host:limit.",
    )
    max_connection_creation_rate: int = option(
        "max.connection.creation.rate",
        "int",
        default=2**31 - 1,
        at_least=0,
        dynamic="cluster",
        doc="Maximum new connections per second.",
    )
    fetch_max_bytes: int = option(
        "fetch.max.bytes",
        "int",
        default=57_671_680,
        at_least=1024,
        doc="Maximum bytes in one Fetch response.",
    )
    max_incremental_fetch_session_cache_slots: int = option(
        "max.incremental.fetch.session.cache.slots",
        "int",
        default=1_000,
        at_least=0,
        doc="Maximum number of cached fetch sessions.",
    )
    max_request_partition_size_limit: int = option(
        "max.request.partition.size.limit",
        "int",
        default=2_000,
        at_least=1,
        doc="Maximum partitions in one DescribeTopicPartitions response.",
    )
    _purges = reserved(
        """
        fetch.purgatory.purge.interval.requests           int:1..  1000  no  EAGER  Purge interval of the fetch purgatory, in requests.
        producer.purgatory.purge.interval.requests        int:1..  1000  no  EAGER  Purge interval of the produce purgatory, in requests.
        delete.records.purgatory.purge.interval.requests  int:1..  1     no  EAGER  Purge interval of the DeleteRecords purgatory, in requests.
        """  # noqa: E501
    )


def parse_connection_overrides(text: str) -> dict[str, int]:
    """Read `max.connections.per.ip.overrides`: `host:limit,[v6]:limit`."""
    overrides: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, limit = item.rpartition(":")
        if not colon or not host or not limit.isdigit():
            raise ConfigError(
                f"max.connections.per.ip.overrides={text}: {item!r} must be host:limit, "
                "such as 127.0.0.1:50"
            )
        overrides[host.strip("[]")] = int(limit)
    return overrides
