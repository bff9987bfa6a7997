"""The network between simulated hosts: in memory, in order per connection, and unreliable by seed.

Hosts are reached by name; `localhost`, `127.0.0.1` and the like mean the calling host. Everything
sent takes a latency drawn from the seed. A *cut* (one way or both) holds what is sent and delivers
it after healing, like TCP's retransmission; so does a host that is down. A *reset* breaks
connections at both ends. Connecting to a port without a listener is refused; through a cut it
waits, and gives up after CONNECT_TIMEOUT.

The kernel of a paused process still responds: connections to it open, and bytes wait until the
window is full.
"""

from __future__ import annotations

import asyncio
import contextvars
import errno
import socket
from collections import deque
from collections.abc import Callable
from random import Random
from typing import Any

from barnabas.simulation.loop import ProtocolFactory, SimulatedLoop
from barnabas.simulation.process import CURRENT, Process
from barnabas.simulation.transport import Address, SimulatedTransport

DRIVER = "driver"
"""The host of code that belongs to no process: the test itself."""

LOCAL_NAMES = frozenset(["", "0.0.0.0", "::", "localhost", "127.0.0.1", "::1"])
CONNECT_TIMEOUT = 127.0
LOOPBACK_LATENCY_MS = (0.01, 0.05)
FIRST_EPHEMERAL_PORT = 32768
SLOW_SHARE = 0.01
"""One in a hundred deliveries takes ten times as long."""


class Channel:
    """One direction between two hosts: what is sent arrives later, in order, in a given context."""

    def __init__(
        self, network: Network, source: str, target: str, context: contextvars.Context
    ) -> None:
        self.context = context
        self._network = network
        self._source = source
        self._target = target
        self._queue: deque[tuple[float, Callable[[], None]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def send(self, act: Callable[[], None]) -> None:
        """Run `act` at the other end."""
        latency = self._network.draw_latency(self._source, self._target)
        self._queue.append((self._network.loop.time() + latency, act))
        self.wake()

    def wake(self) -> None:
        """Wait for the next arrival; on a cut link, until the network heals it."""
        if not self._queue or self._timer is not None:
            return
        if self._network.is_cut(self._source, self._target):
            self._network.hold(self)
        else:
            due = self._queue[0][0]
            self._timer = self._network.loop.call_at(due, self._deliver, context=self.context)

    def _deliver(self) -> None:
        """Run what has arrived; nothing overtakes what was sent before it."""
        self._timer = None
        cut = self._network.is_cut(self._source, self._target)
        now = self._network.loop.time()
        try:
            while not cut and self._queue and self._queue[0][0] <= now:
                self._queue.popleft()[1]()
        finally:
            self.wake()


class ListeningSocket:
    """What brokers need from a listening socket: its address."""

    def __init__(self, address: Address) -> None:
        self._address = address

    def getsockname(self) -> Address:
        return self._address


class SimulatedServer(asyncio.AbstractServer):
    """A listening port of a process."""

    def __init__(
        self,
        network: Network,
        factory: ProtocolFactory,
        address: Address,
        context: contextvars.Context,
    ) -> None:
        self.factory = factory
        self.address = address
        self.context = context
        self._network = network
        self._serving = False
        self._closed = network.loop.create_future()

    @property
    def sockets(self) -> tuple[ListeningSocket, ...]:
        return () if self._closed.done() else (ListeningSocket(self.address),)

    def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
            self._network.forget_server(self)

    def is_serving(self) -> bool:
        return self._serving and not self._closed.done()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._network.loop

    async def start_serving(self) -> None:
        self._serving = True

    async def serve_forever(self) -> None:
        await self.start_serving()
        try:
            await asyncio.shield(self._closed)
        finally:
            self.close()

    async def wait_closed(self) -> None:
        await asyncio.shield(self._closed)


class Network:
    """All hosts and what is between them."""

    def __init__(
        self, loop: SimulatedLoop, seed: int = 0, latency_ms: tuple[float, float] = (0.1, 2.0)
    ) -> None:
        self.loop = loop
        self.latency_ms = latency_ms
        self.random = Random(f"network/{seed}")
        self.hosts: dict[str, None] = {DRIVER: None}
        self._cuts: set[tuple[str, str]] = set()
        self._down: set[str] = set()
        self._held: dict[Channel, None] = {}
        self._servers: dict[Address, SimulatedServer] = {}
        self._transports: dict[SimulatedTransport, Process | None] = {}
        self._next_port = FIRST_EPHEMERAL_PORT
        # The network's own steps belong to no process.
        self._context = contextvars.Context()
        loop.network = self

    # Faults

    def cut(self, source: str, target: str, *, both: bool = True) -> None:
        """Hold what is sent from `source` to `target`, and with `both` what is sent back."""
        self.loop.trace.note("cut", source, target, both)
        self._cuts.update([(source, target), (target, source)] if both else [(source, target)])

    def heal(self, source: str, target: str) -> None:
        """Undo cuts between two hosts, in both directions."""
        self.loop.trace.note("heal", source, target)
        self._cuts -= {(source, target), (target, source)}
        self._wake_held()

    def isolate(self, host: str) -> None:
        """Cut a host off from all others."""
        for other in self.hosts:
            if other != host:
                self.cut(host, other)

    def heal_all(self) -> None:
        """Undo every cut."""
        self.loop.trace.note("heal all")
        self._cuts.clear()
        self._wake_held()

    def reset(self, one: str, other: str) -> int:
        """Break every connection between two hosts; return how many there were."""
        broken = [
            transport
            for transport in self._transports
            if (transport.sockname[0], transport.peername[0]) == (one, other)
        ]
        self.loop.trace.note("reset", one, other, len(broken))
        for transport in broken:
            transport.reset()
        return len(broken)

    def set_down(self, host: str, down: bool) -> None:
        """Take a machine off the network, or put it back."""
        if down:
            self._down.add(host)
        else:
            self._down.discard(host)
            self._wake_held()

    def end_process(self, process: Process) -> None:
        """Close the ports and connections of a dead process; its peers get a reset."""
        for server in [s for s in self._servers.values() if s.context.get(CURRENT) is process]:
            self.forget_server(server)
        for transport in [t for t, owner in self._transports.items() if owner is process]:
            transport.die()

    def is_cut(self, source: str, target: str) -> bool:
        """Return whether what is sent now is held."""
        if source == target:
            return False
        return (source, target) in self._cuts or source in self._down or target in self._down

    # For channels and connections

    def add_host(self, name: str) -> None:
        """Register a host name."""
        self.hosts[name] = None

    def channel(self, source: str, target: str, context: contextvars.Context) -> Channel:
        """Return a channel for messages outside connections; they arrive in `context`."""
        return Channel(self, source, target, context)

    def draw_latency(self, source: str, target: str) -> float:
        """Draw how long something takes, in seconds."""
        low, high = LOOPBACK_LATENCY_MS if source == target else self.latency_ms
        latency = self.random.uniform(low, high) / 1000
        return latency * 10 if self.random.random() < SLOW_SHARE else latency

    def draw_chunk(self, size: int) -> int:
        """Draw how many of `size` bytes travel together: often all, sometimes a few."""
        kind = self.random.random()
        if kind < 0.1:
            return self.random.randint(1, min(size, 8))
        return size if kind > 0.4 else self.random.randint(1, size)

    def hold(self, channel: Channel) -> None:
        """Register a channel that waits for healing."""
        self._held[channel] = None

    def _wake_held(self) -> None:
        held, self._held = self._held, {}
        for channel in held:
            channel.wake()

    # Listening and connecting

    def listen(self, factory: ProtocolFactory, host: str, port: int) -> SimulatedServer:
        """Bind a port of the running process's host (0: a free one); it serves once started."""
        context = contextvars.copy_context()
        name = _host_of(context.get(CURRENT))
        if host not in LOCAL_NAMES and host != name:
            raise OSError(errno.EADDRNOTAVAIL, f"{host} is not an address of {name}")
        address = (name, port or self._draw_port())
        if address in self._servers:
            raise OSError(errno.EADDRINUSE, f"{name}:{port} is in use")
        server = self._servers[address] = SimulatedServer(self, factory, address, context)
        self.loop.trace.note("listen", *address)
        return server

    def forget_server(self, server: SimulatedServer) -> None:
        """Refuse connections to the port from now on."""
        self._servers.pop(server.address, None)

    async def connect(
        self, factory: ProtocolFactory, host: str, port: int
    ) -> tuple[asyncio.Transport, Any]:
        """Connect from the running process's host.

        Raises gaierror for an unknown host, ConnectionRefusedError, or TimeoutError.
        """
        context = contextvars.copy_context()
        source = _host_of(context.get(CURRENT))
        target = source if host in LOCAL_NAMES else host
        if target not in self.hosts:
            raise socket.gaierror(socket.EAI_NONAME, f"no simulated host is named {host!r}")
        attempt = _Attempt(self, factory, (source, self._draw_port()), (target, port), context)
        return await attempt.run()

    def accept(self, attempt: _Attempt) -> bool:
        """Open the server's end of a connection, if there is a listener."""
        server = self._servers.get(attempt.target)
        if server is None or not server.is_serving():
            return False
        context = server.context.copy()
        attempt.forward.context = context
        there = self._transport(attempt.backward, context, attempt.target, attempt.source)
        here = self._transport(attempt.forward, attempt.context, attempt.source, attempt.target)
        here.peer, there.peer = there, here
        attempt.transport = here
        self.loop.call_soon(_open_server_end, server, there, context=context)
        return True

    def _transport(
        self, wire: Channel, context: contextvars.Context, sockname: Address, peername: Address
    ) -> SimulatedTransport:
        transport = SimulatedTransport(
            self.loop, wire, context, sockname, peername, self.draw_chunk, self._forget_transport
        )
        self._transports[transport] = context.get(CURRENT)
        return transport

    def _forget_transport(self, transport: SimulatedTransport) -> None:
        self._transports.pop(transport, None)

    def _draw_port(self) -> int:
        self._next_port += 1
        return self._next_port

    @property
    def kernel(self) -> contextvars.Context:
        """The context of steps that belong to no process."""
        return self._context


class _Attempt:
    """One connection being opened by a client."""

    def __init__(
        self,
        network: Network,
        factory: ProtocolFactory,
        source: Address,
        target: Address,
        context: contextvars.Context,
    ) -> None:
        self.source = source
        self.target = target
        self.context = context
        self.forward = network.channel(source[0], target[0], network.kernel)
        self.backward = network.channel(target[0], source[0], context)
        self.transport: SimulatedTransport | None = None
        self._network = network
        self._factory = factory
        self._done: asyncio.Future[tuple[asyncio.Transport, Any]] = network.loop.create_future()

    async def run(self) -> tuple[asyncio.Transport, Any]:
        timer = self._network.loop.call_later(CONNECT_TIMEOUT, self._fail, TimeoutError())
        self.forward.send(self._arrive)
        try:
            return await self._done
        finally:
            timer.cancel()

    def _arrive(self) -> None:
        host, port = self.target
        accepted = self._network.accept(self)
        self._network.loop.trace.note("connect", self.source[0], host, port, accepted)
        if accepted:
            self.backward.send(self._establish)
        else:
            refusal = ConnectionRefusedError(errno.ECONNREFUSED, f"{host}:{port} refused")
            self.backward.send(lambda: self._fail(refusal))

    def _establish(self) -> None:
        assert self.transport is not None
        if self._done.done():
            self.transport.abort()  # The caller has given up meanwhile.
            return
        try:
            protocol = self._factory()
            self.transport.open(protocol)
        except Exception as failure:  # noqa: BLE001 - it is for the code that connects
            self.transport.abort()
            self._fail(failure)
        else:
            # First, so that the caller runs before the protocol gets more events: like asyncio.
            self._done.set_result((self.transport, protocol))
            self.transport.begin()

    def _fail(self, failure: Exception) -> None:
        if not self._done.done():
            self._done.set_exception(failure)


def _open_server_end(server: SimulatedServer, transport: SimulatedTransport) -> None:
    transport.open(server.factory())
    transport.begin()


def _host_of(process: Process | None) -> str:
    return DRIVER if process is None else process.host
