"""Requests to the right broker: any, the controller, one by id, or the leader of a partition.

`ClusterClient` starts from bootstrap addresses, learns the cluster from Metadata, opens connections
when they are first needed, and spaces attempts to reach a broker that cannot be reached. `send`
makes one attempt; `retrying` repeats a whole operation (several requests, say) as long as its
failures are retriable. Senders and fetchers use the calls that do not wait: `ready` returns a
connection or begins to open one, `request_refresh` requests new metadata, and `watch` calls back
after changes. `start` and `close` start and stop the background work.

Connections are kept by address, so a bootstrap address that a broker also advertises is used for
both, and by channel (see `connection_pool`): requests that may wait long get one of their own.
Everything runs on the loop that is running when a method is called; there is no thread.
"""

from __future__ import annotations

import asyncio
import random as random_module
import ssl
from collections.abc import Awaitable, Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

from barnabas.client.addresses import Address, parse_address, parse_addresses
from barnabas.client.connection import FRAME_BYTES_MAX, Connection
from barnabas.client.connection_pool import ConnectionPool
from barnabas.client.connection_stats import ConnectionStats, client_metrics
from barnabas.client.errors import KafkaTimeoutError, NetworkError, NoBrokersAvailable
from barnabas.client.metadata import ClientMetadata
from barnabas.client.metadata_refresh import MetadataRefresh
from barnabas.client.opening import Login
from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, ConfigError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.model.request_errors import request_error
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.schema import Message

if TYPE_CHECKING:  # command-line tools need no client options
    from barnabas.config.clients.common import CommonOptions

Result = TypeVar("Result")

_GRACE_S = 0.5
"""How long after its deadline an operation is cancelled: a broker that was given the same deadline
reports more about what it could not do in time, and so does a request that times out itself."""


class Target(Enum):
    """A broker by its role."""

    ANY = "any broker"
    CONTROLLER = "the controller"


ANY = Target.ANY
CONTROLLER = Target.CONTROLLER

Destination = Target | int | TopicPartition
"""The destination of a request: a role, a node id, or the leader of a partition."""

Topics = Callable[[], Iterable[str] | None]
"""The topics whose metadata a client needs; None: all."""


class ClusterClient:
    """The connections to all brokers of one cluster, and its metadata."""

    @classmethod
    def from_options(
        cls,
        options: CommonOptions,
        *,
        client_id: str | None = None,
        random: random_module.Random | None = None,
        in_flight_max: int | None = None,
    ) -> ClusterClient:
        """Create a client of the cluster that the options name."""
        from barnabas.client.security import login_of, socket_options_of, tls_of

        if not options.bootstrap_servers:
            raise ConfigError("bootstrap.servers is empty: name at least one broker (host:port)")
        random = random or random_module.Random()
        return cls(
            [parse_address(server) for server in options.bootstrap_servers],
            client_id=client_id or options.client_id or "barnabas",
            connect_timeout_ms=(
                options.socket_connection_setup_timeout_ms,
                options.socket_connection_setup_timeout_max_ms,
            ),
            request_timeout_ms=options.request_timeout_ms,
            in_flight_max=in_flight_max or options.max_in_flight_requests_per_connection,
            random=random,
            retry_backoff_ms=(options.retry_backoff_ms, options.retry_backoff_max_ms),
            reconnect_backoff_ms=(options.reconnect_backoff_ms, options.reconnect_backoff_max_ms),
            metadata_max_age_ms=options.metadata_max_age_ms,
            idle_ms_max=options.connections_max_idle_ms,
            rebootstrap=options.metadata_recovery_strategy == "rebootstrap",
            rebootstrap_trigger_ms=options.metadata_recovery_rebootstrap_trigger_ms,
            response_bytes_max=options.response_max_bytes,
            tls=tls_of(options),
            login=login_of(options, random.random),
            socket_options=socket_options_of(options),
        )

    def __init__(
        self,
        bootstrap: str | Iterable[Address],
        *,
        client_id: str = "barnabas",
        connect_timeout_ms: float | tuple[float, float] = 10_000,
        request_timeout_ms: float = 30_000,
        in_flight_max: int = 5,
        random: random_module.Random | None = None,
        retry_backoff_ms: tuple[float, float] = (100, 1000),
        reconnect_backoff_ms: tuple[float, float] = (50, 1000),
        metadata_max_age_ms: float = 300_000,
        idle_ms_max: float = -1,
        rebootstrap: bool = True,
        rebootstrap_trigger_ms: float = 300_000,
        response_bytes_max: int = FRAME_BYTES_MAX,
        tls: ssl.SSLContext | None = None,
        login: Login | None = None,
        socket_options: Iterable[tuple[int, int, Any]] = (),
    ) -> None:
        """Create a client; nothing is opened yet. Back-offs are (initial, maximum) pauses."""
        self.cluster = ClientMetadata()
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self._bootstrap = (
            parse_addresses(bootstrap) if isinstance(bootstrap, str) else list(bootstrap)
        )
        self._in_flight_max = in_flight_max
        self._random = random or random_module.Random()
        self._retry = self._backoff(retry_backoff_ms)
        self._idle_s_max = idle_ms_max / 1000
        self._rebootstrap = rebootstrap
        self._rebootstrap_trigger_s = rebootstrap_trigger_ms / 1000
        self._response_bytes_max = response_bytes_max
        self._tls = tls
        self._login = login
        self._socket_options = tuple(socket_options)
        patience = (
            connect_timeout_ms
            if isinstance(connect_timeout_ms, tuple)
            else (connect_timeout_ms, connect_timeout_ms)
        )
        self._pool = ConnectionPool(
            self._open,
            pauses=self._backoff(reconnect_backoff_ms),
            patience=self._backoff(patience, jitter=0.0),
            settled=self._attempt_ended,
        )
        self._metadata_refresh = MetadataRefresh(
            self._refresh_tracked, self._backoff(retry_backoff_ms), metadata_max_age_ms
        )
        self._topics: Topics = lambda: ()
        self._auto_create = False
        self._watchers: list[Callable[[], object]] = []
        self._notifying: asyncio.Handle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._answered_s: float | None = None
        self._started_s: float | None = None

    async def __aenter__(self) -> ClusterClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    # One attempt, and several.

    async def send(
        self,
        request: Message,
        to: Destination = ANY,
        *,
        timeout_ms: float | None = None,
        channel: str = "",
    ) -> Any:
        """Send a request to its destination and return the response; one attempt."""
        connection = await self.connection(to, channel=channel)
        return await connection.send(request, timeout_ms=timeout_ms)

    async def connection(self, to: Destination = ANY, *, channel: str = "") -> Connection:
        """Return an open connection to a destination, opening one if needed."""
        if to is ANY:
            return await self._any()
        return await self._pool.connect(await self._address(to), channel)

    async def refresh(
        self,
        topics: Iterable[str] | None = (),
        *,
        auto_create: bool = False,
        to: Destination = ANY,
    ) -> ClientMetadata:
        """Fetch metadata of the brokers and some topics (None: all) from a broker, and apply it.

        The controller knows its own decisions before the other brokers do.
        """
        loop = asyncio.get_running_loop()
        connection = await self.connection(to)
        version = connection.version_of(MetadataRequest)
        names = None if topics is None else list(topics)
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequestTopic(name=name) for name in names],
            # Versions before 4 always create topics and have no field to prevent it.
            allow_auto_topic_creation=auto_create or version < 4,
        )
        response: MetadataResponse = await connection.send(request, version=version)
        error_code = getattr(response, "error_code", 0)
        if error_code == ErrorCode.REBOOTSTRAP_REQUIRED:
            self._start_over()
        if error_code:
            raise request_error(error_code, f"{connection.address} failed to describe its cluster")
        self._answered_s = loop.time()
        generation = self.cluster.generation
        self.cluster.apply(response, all_topics=names is None)
        if self.cluster.generation != generation:
            self._notify_watchers()
        return self.cluster

    async def retrying(
        self,
        attempt: Callable[[], Awaitable[Result]],
        *,
        topics: Iterable[str] = (),
        timeout_ms: float | None = None,
    ) -> Result:
        """Run `attempt` until it succeeds, fails for good or time is up; raise its last failure.

        When a failure is caused by stale metadata, `topics` are refreshed before the next
        attempt. An attempt in progress when the time is up is cancelled.
        """
        loop = asyncio.get_running_loop()
        limit_ms = timeout_ms or self.request_timeout_ms
        began_s = loop.time()
        deadline = began_s + limit_ms / 1000
        failures, stale = 0, False
        last: BarnabasError | None = None
        while True:
            try:
                async with asyncio.timeout_at(deadline + _GRACE_S):
                    if stale:
                        await self.refresh(topics)
                        stale = False
                    return await attempt()
            except TimeoutError:
                raise last or self._too_late(limit_ms) from None
            except BarnabasError as failure:
                failures += 1
                last = failure
                decision = verdict(failure)
                pause = self._retry.delay_ms(failures) / 1000
                if decision is Verdict.FAIL:
                    raise
                if loop.time() + pause > deadline:
                    elapsed_ms = (loop.time() - began_s) * 1000
                    failure.add_note(f"given up after {failures} attempts in {elapsed_ms:.0f} ms")
                    raise
                stale = stale or decision is Verdict.REFRESH
            await asyncio.sleep(pause)

    # Calls that do not wait.

    def ready(self, node_id: int, *, channel: str = "") -> Connection | None:
        """Return an open connection to a broker; None after having begun to open one.

        Attempts are spaced; `watch` calls back when one has completed, `failure` returns its error.
        """
        address = self._address_of(node_id)
        if address is None:
            self.request_refresh()
            return None
        connection = self._pool.usable(address, channel)
        if connection is None:
            self._pool.attempt(address, channel)
        return connection

    def usable(self, node_id: int, *, channel: str = "") -> Connection | None:
        """Return an open connection to a broker, if there is one; none is opened."""
        address = self._address_of(node_id)
        return None if address is None else self._pool.usable(address, channel)

    def failure(self, node_id: int, *, channel: str = "") -> BarnabasError | None:
        """Return why the last attempt to reach a broker failed, if it did."""
        address = self._address_of(node_id)
        return None if address is None else self._pool.failure(address, channel)

    @property
    def refresh_failure(self) -> BarnabasError | None:
        """Why the last refresh in the background failed, if it did."""
        return self._metadata_refresh.failure

    def watch(self, callback: Callable[[], object]) -> Callable[[], None]:
        """Call `callback` soon after each change; return a function that stops this.

        A change is: a connection opened, could not be opened, ended, was throttled or accepts
        requests again, or the metadata changed. Several changes at once are one call.
        """
        self._watchers.append(callback)
        return lambda: self._watchers.remove(callback)

    def request_refresh(self) -> None:
        """Request new metadata soon; it is fetched in the background, if that was started."""
        self._metadata_refresh.request()

    def look_for(self, topics: Iterable[str] | None) -> None:
        """Request new metadata soon if one of these topics is not known to exist."""
        if any(self.cluster.partitions_for(topic) is None for topic in topics or ()):
            self._metadata_refresh.request()

    def track(self, topics: Topics, *, auto_create: bool = False) -> None:
        """Set which topics the background refreshes ask for.

        They continue as long as one of them is missing: it may be about to be created.
        """
        self._topics = topics
        self._auto_create = auto_create

    def start(self) -> None:
        """Start the background work: metadata refreshes, and closing idle connections."""
        loop = asyncio.get_running_loop()
        self._started_s = loop.time()
        self._metadata_refresh.start()
        if self._idle_s_max >= 0 and self._idle_timer is None:
            self._idle_timer = loop.call_later(self._idle_s_max, self._close_idle)

    async def close(self) -> None:
        """Stop the background work and close every connection."""
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None
        await self._metadata_refresh.stop()
        await self._pool.close()
        if self._notifying is not None:
            self._notifying.cancel()
            self._notifying = None

    def metrics(self, kind: str = "client") -> dict[str, dict[str, float]]:
        """Return groups of metrics: all brokers together, then each of them."""
        started_s = self._started_s
        elapsed_s = 0.0 if started_s is None else asyncio.get_running_loop().time() - started_s
        nodes = {
            Address(broker.host, broker.port): str(broker.node_id)
            for broker in self.cluster.brokers.values()
        }
        by_node = {
            nodes.get(address, str(address)): stats for address, stats in self._pool.stats.items()
        }
        groups = client_metrics(kind, by_node, elapsed_s)
        answered_s = self._answered_s
        now_s = 0.0 if answered_s is None else asyncio.get_running_loop().time()
        groups[f"{kind}-metrics"] |= {
            "requests-in-flight": sum(each.in_flight for each in self._pool.connections()),
            "metadata-age": 0.0 if answered_s is None else now_s - answered_s,
        }
        return groups

    def throttling(self) -> list[tuple[int, str, int]]:
        """Return how long each known broker has asked to wait: its id, its address, the total."""
        nodes = {
            Address(broker.host, broker.port): broker.node_id
            for broker in self.cluster.brokers.values()
        }
        return [
            (nodes[address], str(address), stats.throttled_ms)
            for address, stats in self._pool.stats.items()
            if address in nodes
        ]

    def use_login(self, login: Login | None) -> None:
        """Authenticate connections that are opened from now on in this way."""
        self._login = login

    # Internals.

    def _backoff(self, pauses_ms: tuple[float, float], jitter: float = 0.2) -> Backoff:
        first, longest = pauses_ms
        return Backoff(
            self._random.random, initial_ms=first, max_ms=max(first, longest), jitter=jitter
        )

    async def _open(
        self, address: Address, stats: ConnectionStats, timeout_ms: float
    ) -> Connection:
        return await Connection.open(
            address,
            client_id=self.client_id,
            connect_timeout_ms=timeout_ms,
            request_timeout_ms=self.request_timeout_ms,
            in_flight_max=self._in_flight_max,
            response_bytes_max=self._response_bytes_max,
            tls=self._tls,
            login=self._login,
            socket_options=self._socket_options,
            stats=stats,
            changed=self._notify_watchers,
        )

    def _attempt_ended(self, failure: BarnabasError | None) -> None:
        if failure is not None:
            self._metadata_refresh.request()  # the broker may be gone, or have moved
        self._notify_watchers()

    def _notify_watchers(self) -> None:
        if self._notifying is None and self._watchers:
            self._notifying = asyncio.get_running_loop().call_soon(self._call_watchers)

    def _call_watchers(self) -> None:
        self._notifying = None
        for callback in list(self._watchers):
            callback()

    def _close_idle(self) -> None:
        loop = asyncio.get_running_loop()
        look_again_s = self._pool.close_idle(loop.time(), self._idle_s_max)
        self._idle_timer = loop.call_at(look_again_s, self._close_idle)

    async def _refresh_tracked(self) -> None:
        topics = self._topics()
        try:
            await self.refresh(topics, auto_create=self._auto_create)
        except BarnabasError as failure:
            if isinstance(failure, NetworkError):
                self._start_over_if_silent()
            self._notify_watchers()
            raise
        self.look_for(topics)

    def _start_over_if_silent(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._answered_s is not None and now_s - self._answered_s > self._rebootstrap_trigger_s:
            self._start_over()

    def _start_over(self) -> None:
        """Start again from the bootstrap addresses, if that is allowed."""
        if self._rebootstrap:
            self._answered_s = None
            self.cluster.forget_brokers()
            self._notify_watchers()

    def _too_late(self, limit_ms: float) -> BarnabasError:
        """Return the failure of a call whose first attempt did not complete in time."""
        if self._answered_s is None:
            asked = ", ".join(str(address) for address in self._bootstrap)
            return NoBrokersAvailable(f"no response within {limit_ms:g} ms from {asked}")
        return KafkaTimeoutError(f"not completed within {limit_ms:g} ms")

    async def _address(self, to: Destination) -> Address:
        """Find a destination in the metadata, refreshing once if it is missing."""
        address = self._address_of(self._node_id(to))
        if address is None:
            await self.refresh([to.topic] if isinstance(to, TopicPartition) else ())
            address = self._address_of(self._node_id(to))
        if address is None:
            raise self._unreachable(to)
        return address

    def _address_of(self, node_id: int | None) -> Address | None:
        broker = self.cluster.brokers.get(node_id) if node_id is not None else None
        return None if broker is None else Address(broker.host, broker.port)

    def _node_id(self, to: Destination) -> int | None:
        if isinstance(to, TopicPartition):
            return self.cluster.leader(to)
        return self.cluster.controller_id if to is CONTROLLER else to  # type: ignore[return-value]

    def _unreachable(self, to: Destination) -> RequestError:
        if isinstance(to, TopicPartition):
            return self.cluster.missing_leader(to)
        if to is CONTROLLER:
            return request_error(
                ErrorCode.NOT_CONTROLLER, "the cluster has no controller at the moment"
            )
        return request_error(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"broker {to} is not in the cluster; its brokers are {sorted(self.cluster.brokers)}",
        )

    async def _any(self) -> Connection:
        """Return a connection to a known broker, or to a bootstrap address if none can be reached.

        Of the open ones it is one with the least load, at random: a broker that knows less than
        the others must not be asked repeatedly. An open connection to an address that the
        cluster does not list is the last resort: a removed broker names only others.
        """
        known = [Address(broker.host, broker.port) for broker in self.cluster.brokers.values()]
        bootstrap = self._bootstrap if self._rebootstrap or not known else []
        idlest = self._idlest(known)
        if idlest is not None:
            return idlest
        now_s = asyncio.get_running_loop().time()
        failures: list[BarnabasError] = []
        for address in self._shuffled(known):
            if self._pool.state(address, "").not_before_s > now_s:
                continue  # it failed recently
            try:
                return await self._pool.connect(address)
            except NetworkError as failure:
                failures.append(failure)
        idlest = self._idlest(bootstrap)
        if idlest is not None:
            return idlest
        candidates = list(dict.fromkeys([*self._shuffled(known), *self._shuffled(bootstrap)]))
        # Those that failed recently come last: waiting for them helps only if all others fail.
        candidates.sort(key=lambda address: self._pool.state(address, "").not_before_s)
        for address in candidates:
            try:
                return await self._pool.connect(address)
            except NetworkError as failure:
                failures.append(failure)
        raise NoBrokersAvailable("; ".join(dict.fromkeys(str(failure) for failure in failures)))

    def _idlest(self, addresses: list[Address]) -> Connection | None:
        """Return the open connection with the least load, if one is open."""
        open_ones = (self._pool.usable(address) for address in self._shuffled(addresses))
        usable = [connection for connection in open_ones if connection is not None]
        return min(usable, key=lambda connection: connection.load, default=None)

    def _shuffled(self, addresses: list[Address]) -> list[Address]:
        return self._random.sample(addresses, len(addresses))
