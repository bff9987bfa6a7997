"""Options that every client has: whom to reach, how long to wait, how often to try.

TLS and SASL are in `security.py`. Defaults are those of Kafka 3.9's clients; where they differ,
the documentation of the option says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from barnabas.config.clients.security import SecurityOptions
from barnabas.config.option import option, reserved


class CommonOptions(SecurityOptions):
    """What producers, consumers and admin clients share."""

    other_names: ClassVar[Mapping[str, str]] = MappingProxyType(
        {
            "metadata.broker.list": "bootstrap.servers",
            "socket.send.buffer.bytes": "send.buffer.bytes",
            "socket.receive.buffer.bytes": "receive.buffer.bytes",
            "receive.message.max.bytes": "response.max.bytes",
        }
    )

    bootstrap_servers: tuple[str, ...] = option(
        "bootstrap.servers",
        "list",
        default=("localhost:9092",),
        doc="Addresses (host:port) of some brokers; the others are learnt from these.",
    )
    client_id: str = option(
        "client.id",
        "string",
        default="",
        doc="Name of the client in logs, groups and quotas of brokers; empty: one that no other"
        " client of the process has: consumer-GROUP-1, producer-1 (producer-ID with a"
        " transactional.id), adminclient-1.",
    )
    client_rack: str = option(
        "client.rack",
        "string",
        default="",
        doc="Where the client runs; a consumer reads from a replica there if brokers offer one.",
    )
    client_dns_lookup: str = option(
        "client.dns.lookup",
        "string",
        default="use_all_dns_ips",
        choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        reserved="all addresses of a name are tried in turn",
        doc="How the addresses of a name are used.",
    )
    request_timeout_ms: int = option(
        "request.timeout.ms",
        "int",
        default=30_000,
        at_least=1,
        doc="Longest wait for the answer to one request.",
    )
    retry_backoff_ms: int = option(
        "retry.backoff.ms",
        "long",
        default=100,
        at_least=0,
        doc="First pause before a failed request is sent again; it doubles with each failure.",
    )
    retry_backoff_max_ms: int = option(
        "retry.backoff.max.ms",
        "long",
        default=1000,
        at_least=0,
        doc="Longest pause before a failed request is sent again.",
    )
    reconnect_backoff_ms: int = option(
        "reconnect.backoff.ms",
        "long",
        default=50,
        at_least=0,
        doc="First pause before a broker that could not be reached is tried again.",
    )
    reconnect_backoff_max_ms: int = option(
        "reconnect.backoff.max.ms",
        "long",
        default=1000,
        at_least=0,
        doc="Longest pause before a broker that could not be reached is tried again.",
    )
    socket_connection_setup_timeout_ms: int = option(
        "socket.connection.setup.timeout.ms",
        "long",
        default=10_000,
        at_least=1,
        doc="Longest wait for a connection, TLS and version negotiation; doubles with failures.",
    )
    socket_connection_setup_timeout_max_ms: int = option(
        "socket.connection.setup.timeout.max.ms",
        "long",
        default=30_000,
        at_least=1,
        doc="Longest that this wait can become.",
    )
    connections_max_idle_ms: int = option(
        "connections.max.idle.ms",
        "long",
        default=540_000,
        at_least=-1,
        doc="Connections that were not used for this long are closed; -1: never.",
    )
    max_in_flight_requests_per_connection: int = option(
        "max.in.flight.requests.per.connection",
        "int",
        default=5,
        at_least=1,
        doc="Most requests on one connection that wait for their answers.",
    )
    metadata_max_age_ms: int = option(
        "metadata.max.age.ms",
        "long",
        default=300_000,
        at_least=0,
        doc="Age at which what is known of the cluster is asked for again.",
    )
    metadata_recovery_strategy: str = option(
        "metadata.recovery.strategy",
        "string",
        default="rebootstrap",
        choices=("none", "rebootstrap"),
        doc="Go back to bootstrap.servers when no known broker answers, or do not. Kafka 3.9 has"
        " none here, 4.0 has rebootstrap.",
    )
    metadata_recovery_rebootstrap_trigger_ms: int = option(
        "metadata.recovery.rebootstrap.trigger.ms",
        "long",
        default=300_000,
        at_least=0,
        doc="Time without an answer about the cluster after which known brokers are forgotten.",
    )
    send_buffer_bytes: int | None = option(
        "send.buffer.bytes",
        "int",
        default=None,
        at_least=-1,
        doc="SO_SNDBUF of connections; unset or -1: the system adapts it to the traffic.",
    )
    receive_buffer_bytes: int | None = option(
        "receive.buffer.bytes",
        "int",
        default=None,
        at_least=-1,
        doc="SO_RCVBUF of connections; unset or -1: the system adapts it to the traffic.",
    )
    response_max_bytes: int = option(
        "response.max.bytes",
        "int",
        default=1 << 30,
        at_least=1024,
        doc="Largest answer that is accepted.",
    )
    socket_options: Iterable[tuple[int, int, Any]] | None = option(
        "socket.options",
        "object",
        default=None,
        doc="Further socket options, as (level, option, value).",
    )
    bootstrap_timeout_ms: int = option(
        "bootstrap.timeout.ms",
        "int",
        default=30_000,
        at_least=0,
        doc="Longest that a plain client looks for a first broker while it is made.",
    )
    _without_effect = reserved(
        """
        metric.reporters             object   []     no  OWN_METRICS     Classes that are told of metrics.
        metrics.num.samples          int      2      no  OWN_METRICS     Samples that averages are made of.
        metrics.sample.window.ms     long     30000  no  OWN_METRICS     Time that a sample covers.
        metrics.recording.level      string   INFO   no  OWN_METRICS     How much is counted.
        metrics.enabled              boolean  true   no  ALWAYS_COUNTED  Whether metrics are counted.
        enable.metrics.push          boolean  false  no  NO_PUSH         Whether metrics are sent to brokers that ask for them (Kafka: true).
        api.version                  object   -      no  OWN_VERSIONS    Release of the brokers.
        api.version.auto.timeout.ms  int      2000   no  OWN_VERSIONS    Longest wait for a broker to tell its release.
        selector                     object   -      no  OWN_LOOP        Kind of selector.
        kafka.client                 object   -      no  OWN_LOOP        Class of the connections.
        """  # noqa: E501
    )
    proxy_url: str | None = option(
        "proxy.url",
        "string",
        default=None,
        refused="connections through a proxy are not supported",
        doc="Proxy to connect through.",
    )
    socks5_proxy: str | None = option(
        "socks5.proxy",
        "string",
        default=None,
        refused="connections through a proxy are not supported",
        doc="Proxy to connect through.",
    )
