"""A proxy for the network between brokers, clients and ZooKeeper, that can cut or slow any wire.

Each broker advertises a front (a port of this proxy) to the others and one to clients, and reaches
ZooKeeper through its own front. The sender of a connection between brokers is known by the client
id of its first request, which has the broker's number; if that is encrypted, the caller finds it by
the ports.

A cut affects one direction between two nodes: bytes in flight wait, neither side is notified, as in
a real network, and they arrive after `heal` if the connection still exists. A delay affects one
direction, too. `after_records` runs an action when clients have sent so many records.
"""

from __future__ import annotations

import asyncio
import re
import struct
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from types import TracebackType

from barnabas.testing.sent_records import sent_records

ZOOKEEPER = -1
CLIENTS = -2
_CHUNK = 65536
_FRAME_MAX = 100 * 1024 * 1024
"""Bytes of a client's request that is read whole; larger ones pass in chunks, uncounted."""

Source = int | Callable[[int, int], int] | None
"""Who dials a front: always the same, or the one with a connection from one port to another; None
is the one that the first request names. A function that finds none raises ConnectionError."""


class Wires:
    """Fronts for local ports, on an event loop in its own thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="wires", daemon=True)
        self._cut: set[tuple[int, int]] = set()
        self._delays_s: dict[tuple[int, int], float] = {}
        self._actions: list[tuple[int, Callable[[], None], Future[None]]] = []
        self._sent = 0
        self._acting = 0
        self._tasks: set[asyncio.Task[None]] = set()
        self._changed = asyncio.Event()
        self._links: set[asyncio.Task[None]] = set()
        self._servers: list[asyncio.Server] = []
        self._ports: dict[int, int] = {}

    def start(self) -> Wires:
        """Start forwarding."""
        self._thread.start()
        return self

    def front(self, target: int, port: int | None, source: Source = None) -> int:
        """Open a front for a port; its connections are from `source`, or identify themselves.

        A port that is not known yet is given to `aim` later.
        """
        return asyncio.run_coroutine_threadsafe(
            self._open(target, port, source), self._loop
        ).result()

    def aim(self, front: int, port: int) -> None:
        """Have the connections to a front go on to this port from now on."""
        self._ports[front] = port

    def cut(self, source: int, target: int) -> None:
        """Drop traffic from one node to another; the other direction is not affected."""
        self._loop.call_soon_threadsafe(self._cut.add, (source, target))

    def part(self, ones: Iterable[int], others: Iterable[int]) -> None:
        """Cut every wire between two sides, in both directions."""
        others = list(others)
        for one in ones:
            for other in others:
                self.cut(one, other)
                self.cut(other, one)

    def delay(self, source: int, target: int, seconds: float) -> None:
        """Have all traffic from one node to another take longer; 0 ends that."""
        self._loop.call_soon_threadsafe(self._delays_s.__setitem__, (source, target), seconds)

    def join(self, source: int, target: int) -> None:
        """End the cut of one direction."""
        self._loop.call_soon_threadsafe(self._join, source, target)

    def heal(self) -> None:
        """End every cut and every delay."""
        self._loop.call_soon_threadsafe(self._heal)

    def _join(self, source: int, target: int) -> None:
        self._cut.discard((source, target))
        self._wake()

    def _heal(self) -> None:
        self._cut.clear()
        self._delays_s.clear()
        self._wake()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    @property
    def sent(self) -> int:
        """Return how many records clients have sent, those sent again included."""
        return self._sent

    def after_records(self, count: int, action: Callable[[], None]) -> Future[None]:
        """Run an action, in a thread, once clients have sent `count` records from now on.

        The request with the last of them passes; no response and no further request does until the
        action returns, so that the client does not know whether its request had an effect.
        """
        done: Future[None] = Future()

        def add() -> None:
            self._actions.append((self._sent + count, action, done))

        self._loop.call_soon_threadsafe(add)
        return done

    async def _open(self, target: int, port: int | None, source: Source) -> int:
        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            self._links.add(task)
            try:
                await self._link(target, source, reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                return
            except asyncio.CancelledError:
                return  # the proxy was closed
            finally:
                self._links.discard(task)
                writer.close()

        server = await asyncio.start_server(accept, "127.0.0.1", 0)
        self._servers.append(server)
        number: int = server.sockets[0].getsockname()[1]
        if port is not None:
            self._ports[number] = port
        return number

    async def _link(
        self,
        target: int,
        source: Source,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        first = b""
        front: int = writer.get_extra_info("sockname")[1]
        if callable(source):
            ends = writer.get_extra_info("peername"), writer.get_extra_info("sockname")
            # It may take long, and others must not wait for it.
            source = await asyncio.to_thread(source, *(end[1] for end in ends))
        if source is None:
            size = await reader.readexactly(4)
            first = size + await reader.readexactly(int.from_bytes(size, "big"))
            source = _sender(first)
        await self._passage(source, target)
        port = self._ports.get(front)
        if port is None:
            return  # as a port on which nobody listens
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", port)
        far_writer.write(first)
        try:
            async with asyncio.TaskGroup() as both:
                forward = self._pump_requests if source == CLIENTS else self._pump
                both.create_task(forward(source, target, reader, far_writer))
                both.create_task(self._pump(target, source, far_reader, writer))
        except* (OSError, EOFError):
            pass  # one side has closed, which closes the other
        finally:
            far_writer.close()

    async def _pump(
        self, source: int, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        while data := await reader.read(_CHUNK):
            await self._passage(source, target)
            writer.write(data)
            await writer.drain()
        raise EOFError

    async def _pump_requests(
        self, source: int, target: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        """Pass requests one by one, and count their records."""
        while True:
            head = await reader.readexactly(4)
            size = int.from_bytes(head, "big", signed=True)
            if not 0 < size <= _FRAME_MAX:
                writer.write(head)
                await self._pump(source, target, reader, writer)
            body = await reader.readexactly(size)
            await self._passage(source, target)
            self._sent += sent_records(body)
            due = [entry for entry in self._actions if entry[0] <= self._sent]
            self._actions = [entry for entry in self._actions if entry[0] > self._sent]
            self._acting += len(due)  # holds the response, and other requests
            writer.write(head + body)
            await writer.drain()
            for _, action, done in due:
                # Not in this task: what the action does may close the connection, and end it.
                task = asyncio.create_task(self._act(action, done))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _act(self, action: Callable[[], None], done: Future[None]) -> None:
        try:
            await asyncio.to_thread(action)
        except Exception as failure:  # noqa: BLE001  raised again where the result is awaited
            done.set_exception(failure)
        else:
            done.set_result(None)
        finally:
            self._acting -= 1
            self._wake()

    async def _passage(self, source: int, target: int) -> None:
        delay_s = self._delays_s.get((source, target), 0)
        if delay_s:
            await asyncio.sleep(delay_s)
        while (source, target) in self._cut or (self._acting and CLIENTS in (source, target)):
            await self._changed.wait()

    def close(self) -> None:
        """Close every connection and stop the thread."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Wires:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        links = list(self._links)
        for link in links:
            link.cancel()
        await asyncio.gather(*links, return_exceptions=True)


def _sender(frame: bytes) -> int:
    """Return the broker that sent the request, by its client id."""
    (length,) = struct.unpack_from(">h", frame, 12)
    client_id = frame[14 : 14 + max(length, 0)].decode()
    found = re.search(r"\d+", client_id)
    assert found is not None, f"no broker has the client id {client_id!r}"
    return int(found[0])
