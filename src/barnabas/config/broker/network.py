"""Listeners, connections and the queue of requests."""

from __future__ import annotations

from barnabas.config.option import Section, option, reserved
from barnabas.config.reasons import (
    IO_THREADS,
    REQUEST_COUNT,
    SAME_EACH_TIME,
    SECURITY,
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
        doc="Addresses that clients are told, by default the one that each dialled.",
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
        doc="Listener that brokers use among themselves.",
    )
    security_inter_broker_protocol: str = option(
        "security.inter.broker.protocol",
        "string",
        default="PLAINTEXT",
        choices=("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"),
        doc="Protocol among brokers, when inter.broker.listener.name is not set.",
    )
    control_plane_listener_name: str | None = option(
        "control.plane.listener.name",
        "string",
        default=None,
        doc="Listener for requests of the controller: they come first, and are served there alone.",
    )
    _before_start = reserved(
        """
        early.start.listeners  string   -  no       KRAFT       Listeners that open before the authorizer is ready.
        num.network.threads    int:1..  3  cluster  EVENT_LOOP  Threads that serve sockets, per listener.
        """  # noqa: E501
    )
    num_io_threads: int = option(
        "num.io.threads",
        "int",
        default=8,
        at_least=1,
        dynamic="cluster",
        doc="Threads for work that would stall the event loop, such as flushes.",
    )
    background_threads: int = option(
        "background.threads",
        "int",
        default=10,
        at_least=1,
        dynamic="cluster",
        reserved=IO_THREADS,
        doc="Threads for housekeeping, such as deleting and compacting.",
    )
    queued_max_requests: int = option(
        "queued.max.requests",
        "int",
        default=500,
        at_least=1,
        doc="Requests that may wait or be in handling before sockets are no longer read.",
    )
    queued_max_request_bytes: int = option(
        "queued.max.request.bytes",
        "long",
        default=-1,
        at_least=1,
        besides=(-1,),
        reserved=REQUEST_COUNT,
        doc="Bytes of requests that may wait; -1 sets no bound.",
    )
    request_timeout_ms: int = option(
        "request.timeout.ms",
        "int",
        default=30_000,
        at_least=1,
        doc="Longest wait of this broker for an answer of another one.",
    )
    socket_request_max_bytes: int = option(
        "socket.request.max.bytes",
        "int",
        default=104_857_600,
        at_least=1,
        doc="Largest request that is read.",
    )
    socket_send_buffer_bytes: int = option(
        "socket.send.buffer.bytes",
        "int",
        default=102_400,
        at_least=1,
        besides=(-1,),
        doc="Send buffer of sockets; -1 leaves it to the system.",
    )
    socket_receive_buffer_bytes: int = option(
        "socket.receive.buffer.bytes",
        "int",
        default=102_400,
        at_least=1,
        besides=(-1,),
        doc="Receive buffer of sockets; -1 leaves it to the system.",
    )
    socket_listen_backlog_size: int = option(
        "socket.listen.backlog.size",
        "int",
        default=50,
        at_least=1,
        doc="Connections that may wait to be accepted.",
    )
    socket_connection_setup_timeout_ms: int = option(
        "socket.connection.setup.timeout.ms",
        "long",
        default=10_000,
        at_least=1,
        doc="Bound on opening a connection to another broker.",
    )
    socket_connection_setup_timeout_max_ms: int = option(
        "socket.connection.setup.timeout.max.ms",
        "long",
        default=30_000,
        at_least=1,
        reserved=SAME_EACH_TIME,
        doc="Largest bound on opening a connection to another broker.",
    )
    connections_max_idle_ms: int = option(
        "connections.max.idle.ms",
        "long",
        default=600_000,
        at_least=1,
        besides=(-1,),
        doc="Idle time after which a connection is closed; -1 never closes one.",
    )
    connection_failed_authentication_delay_ms: int = option(
        "connection.failed.authentication.delay.ms",
        "int",
        default=100,
        at_least=0,
        reserved=SECURITY,
        doc="Pause before a connection that failed to authenticate is closed.",
    )
    max_connections: int = option(
        "max.connections",
        "int",
        default=2**31 - 1,
        at_least=0,
        dynamic="cluster",
        doc="Most connections of a broker.",
    )
    max_connections_per_ip: int = option(
        "max.connections.per.ip",
        "int",
        default=2**31 - 1,
        at_least=0,
        dynamic="cluster",
        doc="Most connections from one address.",
    )
    max_connections_per_ip_overrides: str = option(
        "max.connections.per.ip.overrides",
        "string",
        default="",
        dynamic="cluster",
        doc="Limits for single addresses, as host:limit, separated by commas.",
    )
    max_connection_creation_rate: int = option(
        "max.connection.creation.rate",
        "int",
        default=2**31 - 1,
        at_least=0,
        dynamic="cluster",
        doc="New connections that are accepted per second.",
    )
    fetch_max_bytes: int = option(
        "fetch.max.bytes",
        "int",
        default=57_671_680,
        at_least=1024,
        doc="Most bytes in the answer to one Fetch.",
    )
    max_incremental_fetch_session_cache_slots: int = option(
        "max.incremental.fetch.session.cache.slots",
        "int",
        default=1_000,
        at_least=0,
        doc="Fetch sessions that are remembered.",
    )
    max_request_partition_size_limit: int = option(
        "max.request.partition.size.limit",
        "int",
        default=2_000,
        at_least=1,
        doc="Most partitions in one answer to DescribeTopicPartitions.",
    )
    _purges = reserved(
        """
        fetch.purgatory.purge.interval.requests           int:1..  1000  no  EAGER  Waiting fetches after which completed ones are purged.
        producer.purgatory.purge.interval.requests        int:1..  1000  no  EAGER  Waiting produces after which completed ones are purged.
        delete.records.purgatory.purge.interval.requests  int:1..  1     no  EAGER  Waiting record deletions after which completed ones are purged.
        """  # noqa: E501
    )


def parse_connection_overrides(text: str) -> dict[str, int]:
    """Read `max.connections.per.ip.overrides`: `host:limit,[v6]:limit`."""
    overrides: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, colon, limit = item.rpartition(":")
        if not colon or not host or not limit.isdigit():
            raise ConfigError(
                f"max.connections.per.ip.overrides={text}: {item!r} is not host:limit, "
                "such as 127.0.0.1:50"
            )
        overrides[host.strip("[]")] = int(limit)
    return overrides
