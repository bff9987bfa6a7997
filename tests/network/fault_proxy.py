"""A proxy between clients and brokers that breaks what tests ask it to break.

    with FaultProxy(cluster.bootstrap) as proxy:
        producer = KafkaProducer(bootstrap_servers=proxy.bootstrap)
        lost = proxy.cut(ProduceRequest, at="answer")    # written, but the answer never comes
        producer.send("t", b"v").get()                   # a retry that must not duplicate
        assert lost.happened.wait(10)

It understands frames, so that faults are placed exactly: at the nth request of an API (from the
moment the fault is planned), in the request or in its answer, before the frame, inside it
(`after_bytes`) or behind it (`after_bytes=-1`). A fault whose answer never came, because the
connection ended first, waits for the answer to a later request. Addresses of brokers in answers are
replaced by those of the proxy, which listens once per broker, so clients never reach a broker by
themselves.

    cut(api, …)      end the connection, on both sides, with a reset
    stall(api, …)    let nothing more pass in that direction (or both ways) until heal()
    delay(api, …)    hold the frame, and all behind it, for a while
    drop(api, …)     swallow the frame and go on
    cut_all()        end all connections now
    refuse()         end all connections now and accept no new one until heal()
    freeze()         let nothing pass on any connection until heal()
    heal()           forget planned faults, and let everything pass that waits

Runs on a thread of its own; all methods can be called from any thread and take effect before they
return. TLS is not looked into, so brokers must listen in plain text.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from types import TracebackType
from typing import Any

from tests.network.faults import Deed, Fault, Faults, Place

from barnabas.blocking.loop_thread import LoopThread
from barnabas.client.addresses import Address, parse_addresses
from barnabas.wire.apis import API_BY_KEY, api_of
from barnabas.wire.frame import decode_response, response_frame
from barnabas.wire.header import decode_request_header, peek_correlation_id
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.schema import Message

_TELLS_ADDRESSES = {
    api_of(kind).key
    for kind in (
        DescribeClusterRequest,
        FetchRequest,
        FindCoordinatorRequest,
        MetadataRequest,
        ProduceRequest,
    )
}


class FaultProxy:
    """A proxy in front of all brokers of a cluster; see the module's text."""

    def __init__(self, bootstrap: str) -> None:
        self.requests: Counter[str] = Counter()
        """How many requests of each API came in, by the API's name."""
        self.connections = 0
        """How many connections were accepted."""
        self._brokers = parse_addresses(bootstrap)
        self._faults = Faults()
        self._fronts: dict[Address, asyncio.Server] = {}
        self._links: list[_Link] = []
        self._refusing = False
        self._thread: LoopThread | None = None
        self.flowing = asyncio.Event()
        self.flowing.set()

    def __enter__(self) -> FaultProxy:
        self._thread = LoopThread("fault-proxy")
        self._thread.call(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        thread = self._running
        self._thread = None
        thread.call(self._stop())
        thread.stop()

    @property
    def bootstrap(self) -> str:
        """Return the addresses to give to clients."""
        return ",".join(str(_address(self._fronts[broker])) for broker in self._brokers)

    @property
    def open_connections(self) -> int:
        """Return how many connections pass through it now."""
        return len(self._links)

    # What tests ask for.

    def cut(
        self,
        api: type[Message] | None = None,
        *,
        at: Place = "request",
        nth: int = 1,
        times: int = 1,
        after_bytes: int = 0,
    ) -> Fault:
        """End the connection at the nth request of an API (None: of any), or at its answer."""
        return self._plan("cut", api, at, nth, times, after_bytes=after_bytes)

    def stall(
        self,
        api: type[Message] | None = None,
        *,
        at: Place = "request",
        nth: int = 1,
        after_bytes: int = 0,
        both_ways: bool = False,
    ) -> Fault:
        """Let nothing more pass on the connection of the nth request."""
        return self._plan("stall", api, at, nth, 1, after_bytes=after_bytes, both_ways=both_ways)

    def delay(
        self,
        api: type[Message] | None = None,
        *,
        delay_ms: float,
        at: Place = "answer",
        nth: int = 1,
        times: int = 1,
    ) -> Fault:
        """Hold requests or answers back, from the nth on."""
        return self._plan("delay", api, at, nth, times, delay_ms=delay_ms)

    def drop(
        self,
        api: type[Message] | None = None,
        *,
        at: Place = "answer",
        nth: int = 1,
        times: int = 1,
    ) -> Fault:
        """Swallow requests or answers, from the nth on; later answers then come out of order."""
        return self._plan("drop", api, at, nth, times)

    def cut_all(self) -> None:
        """End all connections now; clients may come back."""
        self._running.call(self._cut_all())

    def refuse(self) -> None:
        """End all connections now, and each new one as soon as it is made."""
        self._refusing = True
        self._running.call(self._cut_all())

    def freeze(self) -> None:
        """Let nothing pass on any connection, new ones included."""
        self._running.call(self._set_flowing(False))

    def heal(self) -> None:
        """Forget what was planned, and let everything pass that waits."""
        self._refusing = False
        self._faults.clear()
        self._running.call(self._set_flowing(True))

    @property
    def _running(self) -> LoopThread:
        assert self._thread is not None, "the proxy runs inside its with block"
        return self._thread

    def _plan(
        self,
        deed: Deed,
        api: type[Message] | None,
        at: Place,
        nth: int,
        times: int,
        *,
        after_bytes: int = 0,
        delay_ms: float = 0.0,
        both_ways: bool = False,
    ) -> Fault:
        key = None if api is None else api_of(api).key
        fault = Fault(deed, at, key, nth, times, after_bytes, delay_ms, both_ways)
        self._faults.plan(fault)
        return fault

    # On the loop.

    async def _start(self) -> None:
        for broker in self._brokers:
            await self.front(broker)

    async def _stop(self) -> None:
        for server in self._fronts.values():
            server.close()
        await self._cut_all()

    async def _cut_all(self) -> None:
        for link in list(self._links):
            link.cut()
        await asyncio.gather(*(link.ended.wait() for link in list(self._links)))

    async def _set_flowing(self, flowing: bool) -> None:
        (self.flowing.set if flowing else self.flowing.clear)()
        for link in self._links if flowing else ():
            link.heal()

    async def front(self, broker: Address) -> Address:
        """Return the address at which the proxy stands for a broker."""
        if broker in map(_address, self._fronts.values()):
            return broker  # a broker that advertises the proxy already
        if broker not in self._fronts:

            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
                await self._accept(broker, reader, writer)

            self._fronts[broker] = await asyncio.start_server(accept, "127.0.0.1", 0)
        return _address(self._fronts[broker])

    async def _accept(
        self, broker: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.connections += 1
        if self._refusing:
            writer.transport.abort()
            return
        try:
            upstream = await asyncio.open_connection(broker.host, broker.port)
        except OSError:
            writer.transport.abort()
            return
        link = _Link(self, self._faults, (reader, writer), upstream)
        self._links.append(link)
        try:
            await link.run()
        finally:
            self._links.remove(link)
            link.ended.set()


class _Link:
    """One connection of a client, and the one to the broker that belongs to it."""

    def __init__(
        self,
        proxy: FaultProxy,
        faults: Faults,
        client: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        broker: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    ) -> None:
        self.ended = asyncio.Event()
        self._proxy = proxy
        self._faults = faults
        self._client, self._broker = client, broker
        self._asked: dict[int, tuple[int, int, list[Fault]]] = {}
        self._open_ways = {"request": asyncio.Event(), "answer": asyncio.Event()}
        self.heal()

    def heal(self) -> None:
        for way in self._open_ways.values():
            way.set()

    def cut(self) -> None:
        """End both sides with a reset; what is not yet delivered is lost."""
        self.heal()
        for _, writer in (self._client, self._broker):
            writer.transport.abort()

    async def run(self) -> None:
        ways = [
            asyncio.ensure_future(self._requests()),
            asyncio.ensure_future(self._answers()),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.cut()
            for way in ways:
                way.cancel()
            outcomes = await asyncio.gather(*ways, return_exceptions=True)
            self._put_off()
        for outcome in outcomes:
            if isinstance(outcome, Exception) and not isinstance(outcome, _ENDINGS):
                raise outcome

    def _put_off(self) -> None:
        """Keep faults of answers that never came: the client may have timed out first."""
        for _, _, faults in self._asked.values():
            for fault in faults:
                if fault.at == "answer":
                    fault.missed += 1

    async def _requests(self) -> None:
        while True:
            frame = await _read_frame(self._client[0])
            header, _ = decode_request_header(frame, 4)
            self._proxy.requests[API_BY_KEY[header.api_key].name] += 1
            faults = self._faults.of_request(header.api_key)
            self._asked[header.correlation_id] = (header.api_key, header.api_version, faults)
            await self._pass("request", frame, self._broker[1], faults)

    async def _answers(self) -> None:
        while True:
            frame = await _read_frame(self._broker[0])
            key, version, faults = self._asked.pop(peek_correlation_id(memoryview(frame)[4:]))
            if key in _TELLS_ADDRESSES:
                frame = await self._readdressed(frame, key, version)
            await self._pass("answer", frame, self._client[1], faults)

    async def _pass(
        self, way: Place, frame: bytes, writer: asyncio.StreamWriter, faults: list[Fault]
    ) -> None:
        await self._proxy.flowing.wait()
        await self._open_ways[way].wait()
        position = 0
        for fault in faults:
            if fault.at != way:
                continue
            if fault.deed == "drop":
                fault.happened.set()
                return
            if fault.deed == "delay":
                fault.happened.set()
                await asyncio.sleep(fault.delay_ms / 1000)
                continue
            position = fault.passing(len(frame))
            writer.write(frame[:position])
            await writer.drain()
            fault.happened.set()
            if fault.deed == "cut":
                if position:  # what shall pass must have left before the reset
                    writer.close()
                    await writer.wait_closed()
                self.cut()
                raise ConnectionResetError
            for stalled in ("request", "answer") if fault.both_ways else (way,):
                self._open_ways[stalled].clear()
            await self._open_ways[way].wait()
        writer.write(frame[position:])
        await writer.drain()

    async def _readdressed(self, frame: bytes, key: int, version: int) -> bytes:
        """Put the proxy's addresses in place of the brokers'."""
        entry = API_BY_KEY[key]
        correlation_id, message = decode_response(entry, version, memoryview(frame)[4:])
        places = [
            place
            for name in ("brokers", "coordinators", "node_endpoints")
            for place in getattr(message, name, [])
        ]
        if hasattr(message, "host"):  # FindCoordinator before version 4
            places.append(message)
        changed = [place for place in places if place.host and place.port > 0]
        for place in changed:
            place.host, place.port = await self._proxy.front(Address(place.host, place.port))
        return response_frame(message, version, correlation_id) if changed else frame


_ENDINGS = (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError)


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    size = await reader.readexactly(4)
    return size + await reader.readexactly(int.from_bytes(size, "big"))


def _address(server: asyncio.Server) -> Address:
    socket: Any = server.sockets[0]
    host, port = socket.getsockname()[:2]
    return Address(host, port)
