"""The connections of a client, by address and lane, and the story of getting them.

A line is opened when it is first needed; a broker that could not be reached is tried again after a
pause that doubles with each failure, and more patiently. Brokers answer each connection in order,
so what may wait long (a fetch, a join of a group) goes over a lane of its own, beside the nameless
one that all else shares.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field

from barnabas.client.addresses import Address
from barnabas.client.connection import Connection
from barnabas.client.connection_stats import ConnectionStats
from barnabas.client.retry import Backoff
from barnabas.model.errors import BarnabasError

Open = Callable[[Address, ConnectionStats, float], Awaitable[Connection]]
"""Opens a connection to an address, counted in a `ConnectionStats`, within so many milliseconds."""


@dataclass(slots=True)
class Line:
    """The connection to one address, or the story of trying to get one."""

    traffic: ConnectionStats
    connection: Connection | None = None
    opening: asyncio.Task[Connection] | None = None
    failure: BarnabasError | None = None
    failures: int = 0
    not_before_s: float = 0.0

    def usable(self) -> Connection | None:
        """Return the connection if it is open."""
        return None if self.connection is None or self.connection.closed else self.connection


@dataclass(slots=True)
class ConnectionPool:
    """All lines of one client; `settled` is told the outcome of each attempt to open one."""

    open: Open
    pauses: Backoff
    patience: Backoff
    settled: Callable[[BarnabasError | None], object]
    lines: dict[tuple[Address, str], Line] = field(default_factory=dict)
    traffic: dict[Address, ConnectionStats] = field(default_factory=dict)

    def line(self, address: Address, lane: str) -> Line:
        """Return the line to an address."""
        key = (address, lane)
        line = self.lines.get(key)
        if line is None:
            traffic = self.traffic.setdefault(address, ConnectionStats())
            line = self.lines[key] = Line(traffic)
        return line

    def usable(self, address: Address, lane: str = "") -> Connection | None:
        """Return an open connection, if there is one."""
        line = self.lines.get((address, lane))
        return line.usable() if line is not None else None

    def failure(self, address: Address, lane: str = "") -> BarnabasError | None:
        """Return why the last attempt to open a line failed, if it did."""
        line = self.lines.get((address, lane))
        return line.failure if line is not None else None

    async def connect(self, address: Address, lane: str = "") -> Connection:
        """Return an open connection, waiting for an attempt to open one if need be."""
        connection = self.usable(address, lane)
        if connection is not None:
            return connection
        return await asyncio.shield(self.attempt(address, lane))

    def attempt(self, address: Address, lane: str = "") -> asyncio.Task[Connection]:
        """Return the attempt to open a line that is under way, or begin one."""
        line = self.line(address, lane)
        if line.opening is None:
            line.opening = asyncio.get_running_loop().create_task(self._open(line, address))
            # Nobody need wait for it: then nobody else looks at the outcome.
            line.opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return line.opening

    async def _open(self, line: Line, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            if line.not_before_s > loop.time():
                await asyncio.sleep(line.not_before_s - loop.time())
            patience_ms = self.patience.delay_ms(line.failures + 1)
            line.connection = await self.open(address, line.traffic, patience_ms)
            line.failure, line.failures, line.not_before_s = None, 0, 0.0
        except BarnabasError as failure:
            line.failure = failure
            line.failures += 1
            line.traffic.failed += 1
            line.not_before_s = loop.time() + self.pauses.delay_ms(line.failures) / 1000
            raise
        finally:
            line.opening = None
            self.settled(line.failure)
        return line.connection

    def connections(self) -> Iterator[Connection]:
        """Return all open connections."""
        for line in self.lines.values():
            connection = line.usable()
            if connection is not None:
                yield connection

    def close_idle(self, now_s: float, idle_s_max: float) -> float:
        """Close connections that were idle too long; return when to look again."""
        look_again_s = now_s + idle_s_max
        for connection in list(self.connections()):
            if connection.load:
                continue
            due_s = connection.used_s + idle_s_max
            if due_s <= now_s:
                connection.close_idle()
            else:
                look_again_s = min(look_again_s, due_s)
        return look_again_s

    async def close(self) -> None:
        """Close every connection and give up every attempt."""
        lines, self.lines = self.lines, {}
        opening = [line.opening for line in lines.values() if line.opening is not None]
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        connections = [line.connection for line in lines.values() if line.connection is not None]
        for connection in connections:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))
