"""The connections of a client, by address and channel, and the attempts to open them.

A connection is opened when it is first needed; a broker that could not be reached is retried after
a pause and with a timeout that double with each failure. Brokers respond in order on each
connection, so what may wait long (a fetch, a group join) uses a channel of its own, that is another
connection to the same address, beside the nameless one that all else shares.
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
"""Opens a connection to an address, counted in a `ConnectionStats`, within a timeout (ms)."""


@dataclass(slots=True)
class ConnectionState:
    """The connection to one address and channel, or the state of the attempts to open it."""

    stats: ConnectionStats
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
    """All connections of one client; `settled` gets the failure of each attempt, or None."""

    open: Open
    pauses: Backoff
    patience: Backoff
    settled: Callable[[BarnabasError | None], object]
    states: dict[tuple[Address, str], ConnectionState] = field(default_factory=dict)
    stats: dict[Address, ConnectionStats] = field(default_factory=dict)

    def state(self, address: Address, channel: str) -> ConnectionState:
        """Return the state of the connection to an address."""
        key = (address, channel)
        state = self.states.get(key)
        if state is None:
            stats = self.stats.setdefault(address, ConnectionStats())
            state = self.states[key] = ConnectionState(stats)
        return state

    def usable(self, address: Address, channel: str = "") -> Connection | None:
        """Return an open connection, if there is one."""
        state = self.states.get((address, channel))
        return state.usable() if state is not None else None

    def failure(self, address: Address, channel: str = "") -> BarnabasError | None:
        """Return why the last attempt to open a connection failed, if it did."""
        state = self.states.get((address, channel))
        return state.failure if state is not None else None

    async def connect(self, address: Address, channel: str = "") -> Connection:
        """Return an open connection, waiting for an attempt to open one if needed."""
        connection = self.usable(address, channel)
        if connection is not None:
            return connection
        return await asyncio.shield(self.attempt(address, channel))

    def attempt(self, address: Address, channel: str = "") -> asyncio.Task[Connection]:
        """Return the attempt to open a connection that is in progress, or begin one."""
        state = self.state(address, channel)
        if state.opening is None:
            state.opening = asyncio.get_running_loop().create_task(self._open(state, address))
            # It need not be awaited: then its outcome is not looked at elsewhere.
            state.opening.add_done_callback(lambda task: task.cancelled() or task.exception())
        return state.opening

    async def _open(self, state: ConnectionState, address: Address) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            if state.not_before_s > loop.time():
                await asyncio.sleep(state.not_before_s - loop.time())
            patience_ms = self.patience.delay_ms(state.failures + 1)
            state.connection = await self.open(address, state.stats, patience_ms)
            state.failure, state.failures, state.not_before_s = None, 0, 0.0
        except BarnabasError as failure:
            state.failure = failure
            state.failures += 1
            state.stats.failed += 1
            state.not_before_s = loop.time() + self.pauses.delay_ms(state.failures) / 1000
            raise
        finally:
            state.opening = None
            self.settled(state.failure)
        return state.connection

    def connections(self) -> Iterator[Connection]:
        """Return all open connections."""
        for state in self.states.values():
            connection = state.usable()
            if connection is not None:
                yield connection

    def close_idle(self, now_s: float, idle_s_max: float) -> float:
        """Close connections that were idle too long; return when to check again."""
        look_again_s = now_s + idle_s_max
        for connection in list(self.connections()):
            if connection.load:
                continue
            due_s = connection.used_s + idle_s_max
            if due_s <= now_s:
                connection.close("closed because it was idle")
            else:
                look_again_s = min(look_again_s, due_s)
        return look_again_s

    async def close(self) -> None:
        """Close every connection and cancel every attempt."""
        states, self.states = self.states, {}
        opening = [state.opening for state in states.values() if state.opening is not None]
        for task in opening:
            task.cancel()
        await asyncio.gather(*opening, return_exceptions=True)
        connections = [
            state.connection for state in states.values() if state.connection is not None
        ]
        for connection in connections:
            connection.close()
        await asyncio.gather(*(connection.wait_closed() for connection in connections))
