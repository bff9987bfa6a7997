"""A broker's side of the network: its listeners, what they may take, who answers.

Where there is a control plane, its requests are answered by a router of their own, and those of
clients pass a turnstile, so that a flood of the second cannot hold up the first. Addresses are
taken before the broker is known to anybody, and connections are accepted when it can answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.broker.connection_limits import UNBOUNDED, ConnectionLimits
from barnabas.broker.listener import Listener, SocketOptions
from barnabas.broker.request_metrics import RequestMetrics
from barnabas.broker.router import Router
from barnabas.broker.turnstile import Turnstile
from barnabas.config.broker import BrokerOptions, listener_prefix
from barnabas.config.broker.network import parse_connection_overrides
from barnabas.config.listeners import Endpoint
from barnabas.model.errors import ConfigError

if TYPE_CHECKING:
    from barnabas.broker.broker import Broker


class Network:
    """The listeners of one broker and their routers."""

    def __init__(self, broker: Broker) -> None:
        options = broker.options
        self._limits = ConnectionLimits(UNBOUNDED)
        self._limits_of: dict[str, ConnectionLimits] = {}
        metrics = RequestMetrics(broker.metrics, broker.served)
        data_plane, control_plane = (
            Router(broker, served, metrics, options.queued_max_requests)
            for served in (broker.served_to_clients, broker.served)
        )
        self.routers = [data_plane, control_plane]
        self.turnstile = Turnstile(data_plane, lambda: control_plane.under_way > 0)
        apart = options.endpoints.control_plane is not None
        self._listeners: list[Listener] = []
        self._accepting = False
        for endpoint in options.endpoints.bind:
            if endpoint.protocol.uses_tls or endpoint.protocol.uses_sasl:
                raise ConfigError(
                    f"listeners={endpoint}: {endpoint.protocol.name} is not served; use PLAINTEXT"
                )
            in_control = endpoint.name == options.endpoints.control_plane
            limits = self._limits_of[endpoint.name] = ConnectionLimits(
                UNBOUNDED, within=self._limits, prefix=listener_prefix(endpoint.name)
            )
            self._listeners.append(
                Listener(
                    endpoint,
                    _socket_options(options),
                    limits,
                    control_plane if in_control else self.turnstile if apart else data_plane,
                    broker.alarm.now_ms,
                    privileged=in_control or not apart,
                )
            )
        self.configure(options)

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return where the broker listens; once bound, with the real ports."""
        return [listener.endpoint for listener in self._listeners]

    @property
    def ports(self) -> dict[str, int]:
        """Return the port of each listener, by its name."""
        return {listener.name: listener.endpoint.port for listener in self._listeners}

    async def bind(self) -> None:
        """Take the addresses."""
        for listener in self._listeners:
            await listener.bind()

    async def accept(self) -> None:
        """Begin to take connections, unless that is so already."""
        if not self._accepting:
            self._accepting = True
            for listener in self._listeners:
                await listener.accept()

    def configure(self, options: BrokerOptions) -> None:
        """Let changed options act on connections to come."""
        limits = self._limits
        limits.connections_max = options.max_connections
        limits.per_host_max = options.max_connections_per_ip
        limits.per_host_overrides = parse_connection_overrides(
            options.max_connections_per_ip_overrides
        )
        limits.creation_rate_max = options.max_connection_creation_rate
        for name, limits in self._limits_of.items():
            seen = options.for_listener(name)
            limits.connections_max = seen.max_connections
            limits.creation_rate_max = seen.max_connection_creation_rate

    def sweep(self) -> None:
        """Close idle connections and take back large buffers."""
        for listener in self._listeners:
            listener.sweep()

    def stop_accepting(self) -> None:
        """Take no more connections; those that are open go on."""
        for listener in self._listeners:
            listener.stop_accepting()

    async def drain(self, timeout_s: float) -> None:
        """Take no more requests, and wait for those under way, for at most a time per plane."""
        for listener in self._listeners:
            listener.mute()
        self.turnstile.release()
        for router in self.routers:
            await router.drain(timeout_s)

    async def close(self) -> None:
        """Close every connection."""
        for listener in self._listeners:
            await listener.close()


def _socket_options(options: BrokerOptions) -> SocketOptions:
    return SocketOptions(
        options.socket_request_max_bytes,
        options.socket_send_buffer_bytes,
        options.socket_receive_buffer_bytes,
        options.socket_listen_backlog_size,
        options.connections_max_idle_ms,
    )
