"""Simulated connections behave to their protocols as asyncio's do: each test runs on both loops."""

from __future__ import annotations

import asyncio
import random
import socket
from typing import Any

import pytest

from barnabas.simulation.loop import SimulatedLoop
from barnabas.simulation.network import Network


def simulated_loop() -> asyncio.AbstractEventLoop:
    loop = SimulatedLoop(seed=5, jitter_ms=0.5)
    Network(loop, seed=5)
    return loop


@pytest.fixture(params=[simulated_loop, asyncio.new_event_loop], ids=["simulated", "asyncio"])
def loop(request: pytest.FixtureRequest):
    loop = request.param()
    failures: list[dict[str, object]] = []
    loop.set_exception_handler(lambda loop, context: failures.append(context))
    loop.seen_failures = failures
    yield loop
    loop.close()


class Recorder(asyncio.Protocol):
    """Writes down all that it is told."""

    def __init__(self, *, keep_open: bool = False) -> None:
        self.loop = asyncio.get_running_loop()
        self.calls: list[str] = []
        self.data = bytearray()
        self.error: Exception | None = None
        self.keep_open = keep_open
        self.made = self.loop.create_future()
        self.ended = self.loop.create_future()
        self.resumed = self.loop.create_future()
        self.lost = self.loop.create_future()
        self._expected: tuple[int, asyncio.Future[None]] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.calls.append("made")
        self.made.set_result(None)

    def take(self, data: bytes) -> None:
        self.data += data
        if self.calls[-1] != "data":
            self.calls.append("data")
        if self._expected and len(self.data) >= self._expected[0]:
            self._expected[1].set_result(None)
            self._expected = None

    def data_received(self, data: bytes) -> None:
        assert isinstance(data, bytes)
        self.take(data)

    async def received(self, size: int) -> bytes:
        if len(self.data) < size:
            self._expected = (size, self.loop.create_future())
            await self._expected[1]
        return bytes(self.data)

    def eof_received(self) -> bool:
        self.calls.append("eof")
        self.ended.set_result(None)
        return self.keep_open

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")
        self.resumed.set_result(None)

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc
        self.calls.append("lost")
        self.lost.set_result(None)


class BufferedRecorder(Recorder, asyncio.BufferedProtocol):
    """The same with a buffer of its own, of an awkward size."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.room = bytearray(777)

    def get_buffer(self, sizehint: int) -> memoryview:
        return memoryview(self.room)

    def buffer_updated(self, nbytes: int) -> None:
        assert 0 < nbytes <= len(self.room)
        self.take(self.room[:nbytes])


# Both kinds of protocol in one class: asyncio looks for BufferedProtocol first.
class Pair:
    """A server and one connection to it."""

    def __init__(
        self, client: Recorder, server: Recorder, listener: asyncio.AbstractServer
    ) -> None:
        self.client, self.server, self.listener = client, server, listener

    @classmethod
    async def open(cls, client=Recorder, server=Recorder, **options: bool) -> Pair:
        loop = asyncio.get_running_loop()
        accepted: asyncio.Future[Recorder] = loop.create_future()

        def accept() -> Recorder:
            accepted.set_result(server(**options))
            return accepted.result()

        listener = await loop.create_server(accept, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        _, protocol = await loop.create_connection(client, "127.0.0.1", port)
        await (await accepted).made
        return cls(protocol, accepted.result(), listener)

    async def close(self) -> None:
        for end in (self.client, self.server):
            end.transport.abort()
            await end.lost
        self.listener.close()
        await self.listener.wait_closed()


@pytest.mark.parametrize("kind", [Recorder, BufferedRecorder])
def test_bytes_arrive_whole_and_in_order_both_ways(loop, kind):
    source = random.Random(1)
    there, back = source.randbytes(300_000), source.randbytes(200_000)

    async def main() -> None:
        pair = await Pair.open(kind, kind)
        for position in range(0, len(there), 7_001):
            pair.client.transport.write(there[position : position + 7_001])
        pair.server.transport.writelines(
            [back[:100], memoryview(back)[100:5000], bytearray(back[5000:])]
        )
        assert await pair.server.received(len(there)) == there
        assert await pair.client.received(len(back)) == back
        assert not pair.client.transport.is_closing()
        await pair.close()
        assert pair.client.calls[0] == "made"
        assert pair.client.calls.count("lost") == 1
        assert pair.client.calls[-1] == "lost"

    loop.run_until_complete(main())
    assert loop.seen_failures == []


def test_close_sends_what_was_written_and_then_ends_the_stream(loop):
    async def main() -> None:
        pair = await Pair.open()
        pair.client.transport.write(b"x" * 100_000)
        pair.client.transport.close()
        pair.client.transport.close()
        assert pair.client.transport.is_closing()
        pair.client.transport.write(b"dropped")
        await pair.server.lost
        await pair.client.lost
        assert pair.server.data == b"x" * 100_000
        assert [call for call in pair.server.calls if call != "data"] == ["made", "eof", "lost"]
        assert pair.server.error is None
        assert pair.client.error is None
        await pair.close()

    loop.run_until_complete(main())


def test_half_close_lets_the_other_side_answer(loop):
    async def main() -> None:
        pair = await Pair.open(keep_open=True)
        assert pair.client.transport.can_write_eof()
        pair.client.transport.write(b"question")
        pair.client.transport.write_eof()
        with pytest.raises(RuntimeError, match=r"write_eof\(\)"):
            pair.client.transport.write(b"more")
        await pair.server.ended
        assert pair.server.data == b"question"
        pair.server.transport.write(b"answer")
        assert await pair.client.received(6) == b"answer"
        pair.server.transport.close()
        await pair.client.lost
        assert pair.client.calls == ["made", "data", "eof", "lost"]
        await pair.close()

    loop.run_until_complete(main())


def test_a_reader_that_pauses_stops_the_writer(loop):
    async def main() -> None:
        pair = await Pair.open()
        writer, reader = pair.client.transport, pair.server.transport
        # Whatever kernels buffer, real or simulated, is less than this.
        size = 16 * 1024 * 1024
        reader.pause_reading()
        assert not reader.is_reading()
        writer.set_write_buffer_limits(high=1000)
        assert writer.get_write_buffer_limits() == (250, 1000)
        writer.write(bytes(size))
        assert pair.client.calls == ["made", "pause"]
        for _ in range(20):
            await asyncio.sleep(0)
        assert writer.get_write_buffer_size() > 1000
        assert pair.client.calls == ["made", "pause"]
        assert not pair.server.data
        reader.resume_reading()
        assert reader.is_reading()
        await pair.server.received(size)
        await pair.client.resumed
        assert writer.get_write_buffer_size() <= 250
        assert pair.client.calls == ["made", "pause", "resume"]
        await pair.close()

    loop.run_until_complete(main())


def test_water_marks_must_make_sense(loop):
    async def main() -> None:
        pair = await Pair.open()
        with pytest.raises(ValueError, match="must be >= low"):
            pair.client.transport.set_write_buffer_limits(high=1, low=2)
        pair.client.transport.set_write_buffer_limits(low=100)
        assert pair.client.transport.get_write_buffer_limits() == (100, 400)
        pair.client.transport.set_write_buffer_limits()
        assert pair.client.transport.get_write_buffer_limits() == (16384, 65536)
        await pair.close()

    loop.run_until_complete(main())


def test_abort_drops_what_was_not_sent(loop):
    async def main() -> None:
        pair = await Pair.open()
        pair.server.transport.pause_reading()
        pair.client.transport.write(bytes(16 * 1024 * 1024))
        pair.client.transport.abort()
        await pair.client.lost
        assert pair.client.error is None
        pair.server.transport.resume_reading()
        await pair.server.lost
        assert len(pair.server.data) < 16 * 1024 * 1024
        await pair.close()

    loop.run_until_complete(main())


def test_closing_with_bytes_unread_resets_the_connection(loop):
    async def main() -> None:
        pair = await Pair.open()
        pair.server.transport.pause_reading()
        pair.client.transport.write(b"never read")
        if isinstance(loop, SimulatedLoop):
            await asyncio.sleep(1)  # Virtual; on a real loopback the bytes are there already.
        pair.server.transport.close()
        await pair.client.lost
        assert isinstance(pair.client.error, ConnectionResetError)
        await pair.close()

    loop.run_until_complete(main())


def test_writing_to_an_end_that_is_gone_loses_the_connection(loop):
    async def main() -> None:
        pair = await Pair.open(keep_open=True)
        pair.client.transport.abort()
        await pair.client.lost
        await pair.server.ended
        while not pair.server.lost.done():
            pair.server.transport.write(b"anyone there?")
            await asyncio.sleep(0.001)
        assert isinstance(pair.server.error, ConnectionResetError | BrokenPipeError)
        await pair.close()

    loop.run_until_complete(main())


@pytest.mark.parametrize("callback", ["data_received", "eof_received"])
def test_an_error_in_a_callback_ends_the_connection_and_is_reported(loop, callback):
    class Broken(Recorder):
        pass

    def fail(self, *args: object) -> None:
        raise KeyError("broken")

    setattr(Broken, callback, fail)

    async def main() -> None:
        pair = await Pair.open(server=Broken)
        pair.client.transport.write(b"x")
        pair.client.transport.write_eof()
        await pair.server.lost
        assert isinstance(pair.server.error, KeyError)
        await pair.client.lost
        await pair.close()

    loop.run_until_complete(main())
    assert [str(context["exception"]) for context in loop.seen_failures] == ["'broken'"]


def test_an_empty_buffer_is_an_error(loop):
    class Empty(BufferedRecorder):
        def get_buffer(self, sizehint: int) -> memoryview:
            return memoryview(b"")

    async def main() -> None:
        pair = await Pair.open(server=Empty)
        pair.client.transport.write(b"x")
        await pair.server.lost
        assert isinstance(pair.server.error, RuntimeError)
        await pair.close()

    loop.run_until_complete(main())


def test_the_ends_know_each_others_address(loop):
    async def main() -> None:
        pair = await Pair.open()
        client, server = pair.client.transport, pair.server.transport
        assert client.get_extra_info("peername") == server.get_extra_info("sockname")
        assert client.get_extra_info("sockname") == server.get_extra_info("peername")
        assert client.get_extra_info("nothing", 7) == 7
        assert client.get_protocol() is pair.client
        if isinstance(loop, SimulatedLoop):
            assert client.get_extra_info("socket") is None
        await pair.close()

    loop.run_until_complete(main())


def test_a_protocol_can_be_exchanged(loop):
    async def main() -> None:
        pair = await Pair.open()
        second = Recorder()
        second.calls.append("made")
        pair.server.transport.set_protocol(second)
        pair.client.transport.write(b"for the second")
        assert await second.received(14) == b"for the second"
        pair.client.transport.abort()
        await second.lost
        assert not pair.server.data
        pair.listener.close()

    loop.run_until_complete(main())


def test_write_wants_bytes(loop):
    async def main() -> None:
        pair = await Pair.open()
        with pytest.raises(TypeError, match="bytes-like"):
            pair.client.transport.write("text")
        await pair.close()

    loop.run_until_complete(main())


def test_a_port_is_refused_when_nobody_listens_and_taken_when_somebody_does(loop):
    async def main() -> None:
        listener = await loop.create_server(Recorder, "127.0.0.1", 0)
        port = listener.sockets[0].getsockname()[1]
        with pytest.raises(OSError, match="in use"):
            await loop.create_server(Recorder, "127.0.0.1", port)
        assert listener.is_serving()
        listener.close()
        assert not listener.is_serving()
        assert listener.sockets == ()
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Recorder, "127.0.0.1", port)
        with pytest.raises(socket.gaierror):
            await loop.create_connection(Recorder, "no.such.host.invalid", port)

    loop.run_until_complete(main())


def test_a_port_is_refused_until_it_serves(loop):
    async def main() -> None:
        listener = await loop.create_server(Recorder, "127.0.0.1", 0, start_serving=False)
        port = listener.sockets[0].getsockname()[1]
        assert not listener.is_serving()
        with pytest.raises(ConnectionRefusedError):
            await loop.create_connection(Recorder, "127.0.0.1", port)
        serving = asyncio.ensure_future(listener.serve_forever())
        await asyncio.sleep(0)
        assert listener.is_serving()
        _, protocol = await loop.create_connection(Recorder, "127.0.0.1", port)
        protocol.transport.close()
        await protocol.lost
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving
        assert not listener.is_serving()

    loop.run_until_complete(main())


def test_streams_work_on_top(loop):
    echoed = loop.create_future()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line.upper())
            await writer.drain()
        writer.close()
        await writer.wait_closed()
        echoed.set_result(None)

    async def main() -> None:
        server = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for word in (b"one\n", b"two\n"):
            writer.write(word)
            assert await reader.readline() == word.upper()
        writer.close()
        await writer.wait_closed()
        await echoed
        server.close()

    loop.run_until_complete(main())
