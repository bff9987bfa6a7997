"""A broker's listeners, their limits, and the routers behind them.

A control plane, if there is one, has a router of its own, and requests of clients pass a
turnstile, so that a flood of them cannot delay the controller. Addresses are bound (`bind`) before
the broker registers, and connections are accepted (`accept`) when it can answer.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any

from barnabas.broker.loop import spawn
from barnabas.broker.network.connection import Connection, Dispatcher
from barnabas.broker.network.connection_limits import ConnectionLimits, ListenerLimits
from barnabas.broker.network.listener import Listener, SocketOptions
from barnabas.broker.network.listener_counts import ListenerCounts
from barnabas.broker.network.router import Router
from barnabas.broker.network.sasl import Sasl
from barnabas.broker.network.turnstile import Turnstile
from barnabas.config.broker import BrokerOptions, listener_prefix
from barnabas.config.broker.network import parse_connection_overrides
from barnabas.config.listeners import Endpoint, Listeners
from barnabas.metadata.tree_schema import DEFAULT_ENTITY
from barnabas.metrics.catalogue import network as catalogue
from barnabas.metrics.catalogue.network import NETWORK_PROCESSOR
from barnabas.metrics.metric import Metric
from barnabas.metrics.registry import Registry
from barnabas.model.errors import ConfigError
from barnabas.model.note import NoteSink
from barnabas.quotas.quota_keys import CONNECTION_CREATION_RATE, parse_limit
from barnabas.quotas.sampled_rate import Windows
from barnabas.security.audit import AuditLog

if TYPE_CHECKING:
    from barnabas.broker.network.listener_tls import ListenerTls

logger = logging.getLogger("barnabas.network")


class SocketServer:
    """The listeners of one broker and their routers; until `bind` there are none."""

    listeners: Listeners
    """What is bound and advertised since `bind`; changed options may be ahead of it briefly."""

    def __init__(
        self,
        data_plane: Router[Any],
        control_plane: Router[Any],
        clock_ms: Callable[[], int],
        executor: Executor | None,
        windows: Windows,
        registry: Registry,
        sasl: Sasl,
        audit: AuditLog,
        note: NoteSink,
    ) -> None:
        self._note = note
        self._limits = ConnectionLimits(windows)
        self._registry = registry
        self._address_tasks: dict[str, asyncio.Task[None]] = {}
        self._addresses: dict[str, list[str]] = {}
        """The addresses behind names that have a quota."""
        self.routers = [data_plane, control_plane]
        self.turnstile = Turnstile(data_plane, lambda: control_plane.in_progress > 0)
        self._now_ms = clock_ms
        self._sasl = sasl
        self._audit = audit
        self._executor = executor
        self._listeners: list[Listener] = []
        self._retired: list[Listener] = []
        self._counts: dict[str, ListenerCounts] = {}
        self._accepting = False
        registry.gauge(catalogue.REQUEST_QUEUE_SIZE, self._requests_queued)
        registry.gauge(catalogue.RESPONSE_QUEUE_SIZE, self._responses_queued)

    @property
    def of_clients(self) -> Dispatcher:
        """Return what requests of clients are handed to."""
        return self.routers[0] if self.listeners.control_plane is None else self.turnstile

    def _listener(self, endpoint: Endpoint, options: BrokerOptions) -> Listener:
        control_plane = self.listeners.control_plane
        data, control = self.routers
        limits = self._limits.of(endpoint.name, listener_prefix(endpoint.name))
        counts = self._counts.get(endpoint.name)
        if counts is None:
            counts = ListenerCounts(self._registry, endpoint.name)
            self._counts[endpoint.name] = counts
        self._show(endpoint.name, limits, counts)
        dispatcher: Dispatcher = data
        if control_plane is not None:
            dispatcher = control if endpoint.name == control_plane else self.turnstile
        authenticate = None
        if endpoint.protocol.uses_sasl:
            authenticate = self._sasl.listener(endpoint, options).authenticate
        return Listener(
            endpoint,
            _socket_options(options),
            limits,
            dispatcher,
            self._now_ms,
            privileged=control_plane in (None, endpoint.name),
            tls=self._tls(endpoint, options) if endpoint.protocol.uses_tls else None,
            authenticate=authenticate,
            on_admitted=self._close_excess,
            on_stalled=data.response_stalled,
            note=self._note,
            counts=counts,
        )

    def _tls(self, endpoint: Endpoint, options: BrokerOptions) -> ListenerTls:
        # Imported here: a broker without TLS need not have it in memory.
        from barnabas.broker.network.listener_tls import ListenerTls

        return ListenerTls(endpoint, options, self._executor, self._audit)

    def _show(self, name: str, limits: ListenerLimits, counts: ListenerCounts) -> None:
        """Register the metrics of a listener."""
        self._gauge(catalogue.ACCEPT_RATE, limits.rate.per_second, name)
        self._gauge(catalogue.ACCEPT_THROTTLE_TIME, limits.throttles.value, name)
        self._gauge(catalogue.IP_ACCEPT_THROTTLE_TIME, limits.address_throttles.value, name)
        self._gauge(catalogue.OPENING_RATE, counts.opening.per_second, name, NETWORK_PROCESSOR)
        self._gauge(catalogue.CLOSING_RATE, counts.closing.per_second, name, NETWORK_PROCESSOR)
        self._registry.gauge(
            catalogue.CONNECTIONS, lambda: self._open(name), name, NETWORK_PROCESSOR
        )
        self._registry.gauge(catalogue.ACCEPTOR_BLOCKED, lambda: 0, name)

    def _gauge(self, metric: Metric, read: Callable[[int], float], *labels: str) -> None:
        self._registry.gauge(metric, lambda: read(self._now_ms()), *labels)

    def _open(self, name: str) -> int:
        """Return how many connections of a listener are open, also of its predecessors."""
        listeners = self._listeners + self._retired
        return sum(len(each.connections) for each in listeners if each.name == name)

    def _requests_queued(self) -> int:
        return self.turnstile.waiting + sum(router.queued for router in self.routers)

    def _responses_queued(self) -> int:
        return sum(
            connection.is_sending
            for listener in self._listeners + self._retired
            for connection in listener.connections
        )

    def software(self) -> Iterator[tuple[tuple[str, str, str], int]]:
        """Yield name and version of clients' software, the listener, and how many there are."""
        found: Counter[tuple[str, str, str]] = Counter()
        for listener in self._listeners + self._retired:
            for connection in listener.connections:
                session = connection.session
                found[session.software_name, session.software_version, listener.name] += 1
        yield from found.items()

    def in_handling(self) -> Iterator[Connection]:
        """Yield the connections whose request is not answered yet."""
        for listener in self._listeners + self._retired:
            for connection in listener.connections:
                if not connection.is_idle:
                    yield connection

    @property
    def endpoints(self) -> list[Endpoint]:
        """Return the broker's endpoints; once bound, with the bound ports."""
        return [listener.endpoint for listener in self._listeners]

    @property
    def ports(self) -> dict[str, int]:
        """Return the port of each listener, by its name."""
        return {listener.name: listener.endpoint.port for listener in self._listeners}

    @property
    def reached_at(self) -> tuple[Listeners, dict[str, int]]:
        """Return the current listeners and their ports, as the registration must have them."""
        return self.listeners, self.ports

    async def bind(self, options: BrokerOptions) -> None:
        """Bind the addresses; raise ConfigError if one cannot be bound or served."""
        self.listeners = options.endpoints
        self._listeners = [self._listener(each, options) for each in options.endpoints.bind]
        self.configure(options)
        for listener in self._listeners:
            await listener.bind()

    async def accept(self) -> None:
        """Start to accept connections, unless it already does."""
        if not self._accepting:
            self._accepting = True
            for listener in self._listeners:
                await listener.accept()

    async def relisten(self, options: BrokerOptions) -> None:
        """Open the listeners that are new or changed, then close those that were removed.

        Raise ConfigError, with all listeners as they were, if an address cannot be bound.
        """
        wanted = options.endpoints.bind
        present = {listener.asked: listener for listener in self._listeners}
        going = [listener for listener in self._listeners if listener.asked not in wanted]
        coming = [self._listener(each, options) for each in wanted if each not in present]
        ports = {listener.asked.port for listener in coming} - {0}
        # A listener that only changes its interfaces must free the port for its successor.
        released = [listener for listener in going if listener.endpoint.port in ports]
        for listener in released:
            listener.stop_accepting()
        opened: list[Listener] = []
        try:
            for listener in coming:
                await listener.bind()
                opened.append(listener)
        except (ConfigError, asyncio.CancelledError):
            for listener in opened:
                listener.stop_accepting()
            for listener in released:
                await listener.bind()
                if self._accepting:
                    await listener.accept()
            raise
        if self._accepting:
            for listener in coming:
                await listener.accept()
        self.listeners = options.endpoints
        found = present | {listener.asked: listener for listener in coming}
        self._listeners = [found[endpoint] for endpoint in wanted]
        for listener in going:
            logger.info("listener %s closed", listener.endpoint)
            listener.retire()
        for listener in coming:
            logger.info("listener %s opened", listener.endpoint)
        self._retired += going
        self._limits.keep({endpoint.name for endpoint in wanted})
        self.configure(options)

    def configure(self, options: BrokerOptions) -> None:
        """Apply changed options to new connections."""
        self._sasl.configure(options)
        limits = self._limits
        limits.inter_broker = self.listeners.inter_broker
        limits.connections_max = options.max_connections
        limits.per_host_max = options.max_connections_per_ip
        limits.per_host_overrides = parse_connection_overrides(
            options.max_connections_per_ip_overrides
        )
        limits.creation_rate_max = options.max_connection_creation_rate
        for listener in self._listeners:
            seen, own = options.for_listener(listener.name), limits.of(listener.name)
            own.connections_max = seen.max_connections
            own.creation_rate_max = seen.max_connection_creation_rate
        limits.room_made()
        self._close_excess()

    def _close_excess(self) -> None:
        """Close the least recently used connections above max.connections.

        The listener between brokers may take the place of clients, and the limit may be lowered.
        """
        limits = self._limits
        if not limits.excess:
            return
        connections = [
            connection
            for listener in self._listeners
            if not limits.is_protected(listener.name)
            for connection in listener.connections
        ]
        excess = limits.excess - sum(not each.is_open for each in connections)
        open_ones = [each for each in connections if each.is_open]
        for connection in sorted(open_ones, key=lambda each: each.last_active_ms)[: max(excess, 0)]:
            connection.close(
                f"least recently used of {limits.total} connections "
                f"(max.connections={limits.connections_max})"
            )

    def address_quota_changed(self, name: str, values: Mapping[str, str]) -> None:
        """Apply the quota of an address, of a host name's addresses, or of all others."""
        limit = parse_limit(CONNECTION_CREATION_RATE, values.get(CONNECTION_CREATION_RATE))
        if limit is None and CONNECTION_CREATION_RATE in values:
            logger.error("ips/%s: quota is invalid and has no effect: %s", name, dict(values))
        if name == DEFAULT_ENTITY:
            self._limits.set_address_rate(None, limit)
            return
        try:
            address = str(ip_address(name))
        except ValueError:
            task = spawn(self._set_host_rate(name, limit), f"resolving {name}")
            self._address_tasks[name] = task  # a later one replaces it, and is done after it
            return
        self._limits.set_address_rate(address, limit)

    async def _set_host_rate(self, name: str, limit: float | None) -> None:
        for address in self._addresses.pop(name, ()):
            self._limits.set_address_rate(address, None)
        if limit is None:
            return
        try:
            found = await asyncio.get_running_loop().getaddrinfo(name, None)
        except (socket.gaierror, UnicodeError) as failure:
            logger.error("ips/%s: quota has no effect: %s", name, failure)
            return
        self._addresses[name] = addresses = sorted({str(each[4][0]) for each in found})
        for address in addresses:
            self._limits.set_address_rate(address, limit)

    @property
    def uses_tls(self) -> bool:
        """Return whether a listener is encrypted."""
        return any(listener.tls is not None for listener in self._listeners)

    def tls_to(self, listener: str) -> ssl.SSLContext | None:
        """Return the context for connections to a listener of other brokers; None without TLS."""
        for each in self._listeners:
            if each.name == listener and each.tls is not None:
                return each.tls.client_context
        return None

    async def check_tls(self, options: BrokerOptions) -> None:
        """Raise ConfigError if a listener could not use changed TLS options."""
        for listener in self._listeners:
            if listener.tls is not None:
                await listener.tls.check(options)

    async def renew_tls(self, options: BrokerOptions) -> None:
        """Let new connections use certificates whose options or files have changed."""
        for listener in list(self._listeners):
            if listener.tls is not None:
                await listener.tls.renew(options)

    def sweep(self) -> None:
        """Close idle connections, shrink large buffers, and forget addresses."""
        self._limits.expire(self._now_ms())
        for listener in self._listeners:
            listener.sweep()
        for listener in self._retired:
            listener.retire()  # a last connection may have been accepted meanwhile
            listener.sweep()
        self._retired = [listener for listener in self._retired if listener.connections]

    def stop_accepting(self) -> None:
        """Accept no more connections; open ones stay."""
        for listener in self._listeners:
            listener.stop_accepting()

    async def drain(self, timeout_s: float) -> None:
        """Accept no more requests, and wait for those in progress, up to a timeout per plane."""
        for listener in self._listeners + self._retired:
            listener.mute()
        self.turnstile.release()
        for router in self.routers:
            await router.drain(timeout_s)

    async def close(self) -> None:
        """Close every connection."""
        for listener in self._listeners + self._retired:
            await listener.close()


def _socket_options(options: BrokerOptions) -> SocketOptions:
    return SocketOptions(
        options.socket_request_max_bytes,
        options.socket_send_buffer_bytes,
        options.socket_receive_buffer_bytes,
        options.socket_listen_backlog_size,
        options.connections_max_idle_ms,
    )
