"""The way to the right broker: any, the controller, one by id, or the leader of a partition.

`Switchboard` starts from bootstrap addresses, learns the cluster from Metadata, opens connections
when they are first needed, and spaces attempts to reach a broker that refuses. `send` makes one
attempt; `retrying` repeats a whole operation (several requests, say) as long as its failures are
worth it.

Connections are kept by address, so a bootstrap address that a broker also advertises is used for
both. Everything runs on the loop that is running when a method is called; there is no thread.
"""

from __future__ import annotations

import asyncio
import random as random_module
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Any, TypeVar

from barnabas.client.addresses import Address, parse_addresses
from barnabas.client.cluster import ClusterView
from barnabas.client.connection import Connection
from barnabas.client.errors import ConnectError, NetworkError
from barnabas.client.retry import Backoff, Verdict, verdict
from barnabas.model.error_codes import ErrorCode
from barnabas.model.errors import BarnabasError, RequestError
from barnabas.model.ids import TopicPartition
from barnabas.wire.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.wire.schema import Message

Result = TypeVar("Result")


class Target(Enum):
    """A broker by its role."""

    ANY = "any broker"
    CONTROLLER = "the controller"


ANY = Target.ANY
CONTROLLER = Target.CONTROLLER

Destination = Target | int | TopicPartition
"""Whom to ask: a role, a node id, or the leader of a partition."""


@dataclass(slots=True)
class _Line:
    """The connection to one address, or the story of trying to get one."""

    connection: Connection | None = None
    opening: asyncio.Task[Connection] | None = None
    failures: int = 0
    not_before: float = 0.0

    def usable(self) -> Connection | None:
        """Return the connection if it is open."""
        return None if self.connection is None or self.connection.closed else self.connection


class Switchboard:
    """The way to all brokers of one cluster."""

    def __init__(
        self,
        bootstrap: str | Iterable[Address],
        *,
        client_id: str = "barnabas",
        connect_timeout_ms: float = 10_000,
        request_timeout_ms: float = 30_000,
        in_flight_max: int = 5,
        random: random_module.Random | None = None,
        retry_backoff_ms: tuple[float, float] = (100, 1000),
        reconnect_backoff_ms: tuple[float, float] = (50, 1000),
    ) -> None:
        """Prepare to reach a cluster; opens nothing. Back-offs are (first, longest) pauses."""
        self.cluster = ClusterView()
        self.client_id = client_id
        self.request_timeout_ms = request_timeout_ms
        self._bootstrap = (
            parse_addresses(bootstrap) if isinstance(bootstrap, str) else list(bootstrap)
        )
        self._connect_timeout_ms = connect_timeout_ms
        self._in_flight_max = in_flight_max
        self._random = random or random_module.Random()
        self._retry = _backoff(self._random, retry_backoff_ms)
        self._reconnect = _backoff(self._random, reconnect_backoff_ms)
        self._lines: dict[Address, _Line] = {}

    async def __aenter__(self) -> Switchboard:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
        self, request: Message, to: Destination = ANY, *, timeout_ms: float | None = None
    ) -> Any:
        """Send a request to its destination and return the response; one attempt."""
        connection = await self.connection(to)
        return await connection.send(request, timeout_ms=timeout_ms)

    async def connection(self, to: Destination = ANY) -> Connection:
        """Return an open connection to a destination, opening one if need be."""
        if to is ANY:
            return await self._any()
        return await self._connect(await self._address(to))

    async def separate(self, node_id: int) -> Connection:
        """Open a connection to a broker for one caller alone, who closes it.

        For requests that wait long (JoinGroup), behind which others would wait too.
        """
        return await self._open(_Line(), await self._address(node_id))

    async def refresh(
        self, topics: Iterable[str] | None = (), *, auto_create: bool = False
    ) -> ClusterView:
        """Ask any broker about the brokers and some topics (None: all), and update the view."""
        connection = await self._any()
        version = connection.version_of(MetadataRequest)
        names = None if topics is None else list(topics)
        request = MetadataRequest(
            topics=None if names is None else [MetadataRequestTopic(name=name) for name in names],
            # Versions before 4 always create and have no field to say otherwise.
            allow_auto_topic_creation=auto_create or version < 4,
        )
        response: MetadataResponse = await connection.send(request, version=version)
        now_ms = int(asyncio.get_running_loop().time() * 1000)
        self.cluster.apply(response, now_ms, all_topics=names is None)
        return self.cluster

    async def retrying(
        self,
        attempt: Callable[[], Awaitable[Result]],
        *,
        topics: Iterable[str] = (),
        timeout_ms: float | None = None,
    ) -> Result:
        """Run `attempt` until it succeeds, fails for good or time is up; raise its last failure.

        When a failure blames the view of the cluster, `topics` are refreshed before the next
        attempt.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (timeout_ms or self.request_timeout_ms) / 1000
        failures, stale = 0, False
        while True:
            try:
                if stale:
                    await self.refresh(topics)
                    stale = False
                return await attempt()
            except BarnabasError as failure:
                failures += 1
                decision = verdict(failure)
                pause = self._retry.delay_ms(failures) / 1000
                if decision is Verdict.FAIL or loop.time() + pause > deadline:
                    raise
                stale = stale or decision is Verdict.REFRESH
            await asyncio.sleep(pause)

    async def close(self) -> None:
        """Close every connection."""
        lines, self._lines = self._lines, {}
        opening = [line.opening for line in lines.values() if line.opening is not None]
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        for line in lines.values():
            if line.connection is not None:
                line.connection.close()

    async def _address(self, to: Destination) -> Address:
        """Find a destination in the cluster view, looking again once if it is not there."""
        node_id = self._node_id(to)
        if node_id is None or node_id not in self.cluster.brokers:
            await self.refresh([to.topic] if isinstance(to, TopicPartition) else ())
            node_id = self._node_id(to)
        broker = self.cluster.brokers.get(node_id) if node_id is not None else None
        if broker is None:
            raise self._unreachable(to)
        return Address(broker.host, broker.port)

    def _node_id(self, to: Destination) -> int | None:
        if isinstance(to, TopicPartition):
            return self.cluster.leader(to)
        return self.cluster.controller_id if to is CONTROLLER else to  # type: ignore[return-value]

    def _unreachable(self, to: Destination) -> RequestError:
        if isinstance(to, TopicPartition):
            topic = self.cluster.topics.get(to.topic)
            if topic is not None and topic.error not in (
                ErrorCode.NONE,
                ErrorCode.LEADER_NOT_AVAILABLE,
            ):
                return RequestError(topic.error, f"topic {to.topic!r}: {topic.error.meaning}")
            if self.cluster.partition(to) is None and topic is not None and topic.partitions:
                return RequestError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
                    f"topic {to.topic!r} has no partition {to.partition}",
                )
            return RequestError(ErrorCode.LEADER_NOT_AVAILABLE, f"{to} has no leader now")
        if to is CONTROLLER:
            return RequestError(ErrorCode.NOT_CONTROLLER, "the cluster names no controller now")
        return RequestError(
            ErrorCode.BROKER_NOT_AVAILABLE,
            f"broker {to} is not in the cluster; there are {sorted(self.cluster.brokers)}",
        )

    async def _any(self) -> Connection:
        """Return an open connection, or try the known brokers, then the bootstrap addresses."""
        known = [Address(broker.host, broker.port) for broker in self.cluster.brokers.values()]
        lines = [self._lines[address] for address in known if address in self._lines]
        lines += [self._lines[address] for address in self._bootstrap if address in self._lines]
        for line in lines:
            if (connection := line.usable()) is not None:
                return connection
        candidates = list(dict.fromkeys([*self._shuffled(known), *self._shuffled(self._bootstrap)]))
        # Those that refused lately come last: waiting for them helps only if all others fail.
        candidates.sort(key=lambda address: self._line(address).not_before)
        failures: list[NetworkError] = []
        for address in candidates:
            try:
                return await self._connect(address)
            except NetworkError as failure:
                failures.append(failure)
        raise ConnectError("; ".join(dict.fromkeys(str(failure) for failure in failures)))

    def _shuffled(self, addresses: list[Address]) -> list[Address]:
        return self._random.sample(addresses, len(addresses))

    def _line(self, address: Address) -> _Line:
        return self._lines.setdefault(address, _Line())

    async def _connect(self, address: Address) -> Connection:
        line = self._line(address)
        if (connection := line.usable()) is not None:
            return connection
        if line.opening is None:
            line.opening = asyncio.get_running_loop().create_task(self._open(line, address))
            # Callers may all be cancelled; then nobody else looks at the outcome.
            line.opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(line.opening)

    async def _open(self, line: _Line, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            if line.not_before > loop.time():
                await asyncio.sleep(line.not_before - loop.time())
            line.connection = await Connection.open(
                address,
                client_id=self.client_id,
                connect_timeout_ms=self._connect_timeout_ms,
                request_timeout_ms=self.request_timeout_ms,
                in_flight_max=self._in_flight_max,
            )
        except BarnabasError:
            line.failures += 1
            line.not_before = loop.time() + self._reconnect.delay_ms(line.failures) / 1000
            raise
        finally:
            line.opening = None
        line.failures, line.not_before = 0, 0.0
        return line.connection


def _backoff(random: random_module.Random, pauses_ms: tuple[float, float]) -> Backoff:
    return Backoff(random.random, initial_ms=pauses_ms[0], max_ms=pauses_ms[1])
