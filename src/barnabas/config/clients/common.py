"""Options of all clients: addresses, timeouts, backoff.

TLS and SASL are in `security.py`. Defaults are those of Kafka 3.9's clients; if one differs, the
doc of the option says so.
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
        doc="Addresses (host:port) of some brokers, used to discover the rest.",
    )
    client_id: str = option(
        "client.id",
        "string",
        default="",
        doc="Client name for the broker's logs, groups and quotas. Default: unique in the process, "
        "such as consumer-GROUP-1, producer-1 (producer-ID with a transactional.id), "
        "adminclient-1.",
    )
    client_rack: str = option(
        "client.rack",
        "string",
        default="",
        doc="Rack of the client; a consumer reads from a replica there if brokers offer one.",
    )
    client_dns_lookup: str = option(
        "client.dns.lookup",
        "string",
        default="use_all_dns_ips",
        choices=("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only"),
        reserved="all addresses of a host name are tried in turn",
        doc="How multiple addresses of a host name are used.",
    )
    request_timeout_ms: int = option(
        "request.timeout.ms",
        "int",
        default=30_000,
        at_least=1,
        doc="Maximum wait for the response to a request.",
    )
    retry_backoff_ms: int = option(
        "retry.backoff.ms",
        "long",
        default=100,
        at_least=0,
        doc="Initial backoff before a failed request is retried; doubles with each failure.",
    )
    retry_backoff_max_ms: int = option(
        "retry.backoff.max.ms",
        "long",
        default=1000,
        at_least=0,
        doc="Maximum backoff before a failed request is retried.",
    )
    reconnect_backoff_ms: int = option(
        "reconnect.backoff.ms",
        "long",
        default=50,
        at_least=0,
        doc="Initial backoff before reconnecting to an unreachable broker.",
    )
    reconnect_backoff_max_ms: int = option(
        "reconnect.backoff.max.ms",
        "long",
        default=1000,
        at_least=0,
        doc="Maximum backoff before reconnecting to an unreachable broker.",
    )
    socket_connection_setup_timeout_ms: int = option(
        "socket.connection.setup.timeout.ms",
        "long",
        default=10_000,
        at_least=1,
        doc="Timeout for TCP, TLS and version negotiation; doubles with each failure.",
    )
    socket_connection_setup_timeout_max_ms: int = option(
        "socket.connection.setup.timeout.max.ms",
        "long",
        default=30_000,
        at_least=1,
        doc="Upper bound of this timeout.",
    )
    connections_max_idle_ms: int = option(
        "connections.max.idle.ms",
        "long",
        default=540_000,
        at_least=-1,
        doc="Idle time after which a connection is closed; -1 for never.",
    )
    max_in_flight_requests_per_connection: int = option(
        "max.in.flight.requests.per.connection",
        "int",
        default=5,
        at_least=1,
        doc="Maximum number of unacknowledged requests per connection.",
    )
    metadata_max_age_ms: int = option(
        "metadata.max.age.ms",
        "long",
        default=300_000,
        at_least=0,
        doc="Age at which cluster metadata is refreshed.",
    )
    metadata_recovery_strategy: str = option(
        "metadata.recovery.strategy",
        "string",
        default="rebootstrap",
        choices=("none", "rebootstrap"),
        doc="What to do when no known broker is reachable: rebootstrap goes back to "
        "bootstrap.servers (Kafka 4.0's default), none does not (Kafka 3.9's).",
    )
    metadata_recovery_rebootstrap_trigger_ms: int = option(
        "metadata.recovery.rebootstrap.trigger.ms",
        "long",
        default=300_000,
        at_least=0,
        doc="Time without a metadata response after which the client rebootstraps.",
    )
    send_buffer_bytes: int | None = option(
        "send.buffer.bytes",
        "int",
        default=None,
        at_least=-1,
        doc="Socket send buffer (SO_SNDBUF); unset or -1 lets the system tune it.",
    )
    receive_buffer_bytes: int | None = option(
        "receive.buffer.bytes",
        "int",
        default=None,
        at_least=-1,
        doc="Socket receive buffer (SO_RCVBUF); unset or -1 lets the system tune it.",
    )
    response_max_bytes: int = option(
        "response.max.bytes",
        "int",
        default=1 << 30,
        at_least=1024,
        doc="Largest response accepted from a broker.",
    )
    socket_options: Iterable[tuple[int, int, Any]] | None = option(
        "socket.options",
        "object",
        default=None,
        doc="Additional socket options, as (level, option, value).",
    )
    bootstrap_timeout_ms: int = option(
        "bootstrap.timeout.ms",
        "int",
        default=30_000,
        at_least=0,
        doc="How long the constructor of a blocking client looks for a first broker.",
    )
    _without_effect = reserved(
        """
        metric.reporters             object   []     no  OWN_METRICS     Classes that report metrics.
        metrics.num.samples          int      2      no  OWN_METRICS     Number of samples for averages.
        metrics.sample.window.ms     long     30000  no  OWN_METRICS     Length of one sample.
        metrics.recording.level      string   INFO   no  OWN_METRICS     Recording level of metrics.
        metrics.enabled              boolean  true   no  ALWAYS_COUNTED  Whether metrics are recorded.
        enable.metrics.push          boolean  false  no  NO_PUSH         Whether metrics are pushed to brokers that request them (Kafka: true).
        api.version                  object   -      no  OWN_VERSIONS    Release of the brokers.
        api.version.auto.timeout.ms  int      2000   no  OWN_VERSIONS    Maximum wait for a broker to report its release.
        selector                     object   -      no  OWN_LOOP        Selector class.
        kafka.client                 object   -      no  OWN_LOOP        Connection class.
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
