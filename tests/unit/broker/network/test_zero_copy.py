"""Answers from files: in order with what was written before, whole, and released."""

from __future__ import annotations

import asyncio
import socket
import tempfile
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from barnabas.broker.network.zero_copy import Part, ZeroCopySend, release


class Range:
    """A range of a real file, which counts its releases."""

    def __init__(self, file: Any, position: int, size: int) -> None:
        self._file = file
        self.position = position
        self.size = size
        self.released = 0

    def __len__(self) -> int:
        return self.size

    def fileno(self) -> int | None:
        descriptor: int = self._file.fileno()
        return descriptor

    def read(self) -> bytes:
        self._file.seek(self.position)
        data: bytes = self._file.read(self.size)
        return data

    def release(self) -> None:
        self.released += 1


class Pair:
    """A transport, what its peer receives, and a file to send from."""

    def __init__(self, transport: asyncio.Transport, peer: socket.socket, file: Any) -> None:
        self.transport = transport
        self.peer = peer
        self.file = file
        self.sent = 0
        self.lost = 0
        self.content = bytes(range(256)) * 16384  # 4 MiB
        file.write(self.content)
        file.flush()
        self.sender = ZeroCopySend(transport, self._on_sent, self._on_lost)

    def _on_sent(self) -> None:
        self.sent += 1

    def _on_lost(self) -> None:
        self.lost += 1

    async def receive(self, count: int) -> bytes:
        loop = asyncio.get_running_loop()
        data = bytearray()
        while len(data) < count:
            piece = await asyncio.wait_for(loop.sock_recv(self.peer, 1 << 20), 20)
            assert piece, "the connection ended"
            data += piece
        return bytes(data)


Loop = Callable[[], asyncio.AbstractEventLoop]


def loops() -> list[Loop]:
    import uvloop

    return [asyncio.new_event_loop, uvloop.new_event_loop]


def with_pair(loop: Loop, story: Callable[[Pair], Coroutine[Any, Any, None]]) -> None:
    async def run() -> None:
        ours, peer = socket.socketpair()
        ours.setblocking(False)
        peer.setblocking(False)
        ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 65536)
        running = asyncio.get_running_loop()
        transport, _ = await running.create_connection(asyncio.Protocol, sock=ours)
        with tempfile.TemporaryFile() as file:
            pair = Pair(transport, peer, file)
            try:
                await story(pair)
            finally:
                pair.sender.close()
                transport.abort()
                peer.close()
                await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(run())


@pytest.mark.parametrize("loop", loops(), ids=["asyncio", "uvloop"])
def test_parts_leave_in_order(loop: Loop) -> None:
    """Bytes and ranges, larger than the socket's buffers, arrive as they were given."""

    async def story(pair: Pair) -> None:
        ranges = [Range(pair.file, 5, 1_000_000), Range(pair.file, 77, 3_000_000)]
        parts: list[Part] = [b"head", ranges[0], memoryview(b"middle"), ranges[1], b"tail"]
        pair.sender.send(parts)
        assert pair.sent == 0, "it cannot have left already"
        content = pair.content
        expected = b"head" + content[5:1_000_005] + b"middle" + content[77:3_000_077] + b"tail"
        assert await pair.receive(len(expected)) == expected
        await asyncio.sleep(0)
        assert (pair.sent, [each.released for each in ranges]) == (1, [1, 1])

    with_pair(loop, story)


@pytest.mark.parametrize("loop", loops(), ids=["asyncio", "uvloop"])
def test_earlier_answers_leave_first(loop: Loop) -> None:
    """What the transport still holds is before the file, and waiting for it does not spin."""

    async def story(pair: Pair) -> None:
        earlier = b"e" * 2_000_000
        pair.transport.write(earlier)
        piece = Range(pair.file, 0, 100_000)
        steps = 0
        step = pair.sender._step

        def counted() -> None:
            nonlocal steps
            steps += 1
            step()

        pair.sender._step = counted  # type: ignore[method-assign]
        pair.sender.send([piece])
        for _ in range(50):
            await asyncio.sleep(0)
        assert steps <= 5, "the peer reads nothing: there is nothing to try"
        received = await pair.receive(len(earlier) + piece.size)
        assert received == earlier + pair.content[: piece.size]
        assert piece.released == 1

    with_pair(loop, story)


@pytest.mark.parametrize("loop", loops(), ids=["asyncio", "uvloop"])
def test_closing_releases_what_did_not_leave(loop: Loop) -> None:
    async def story(pair: Pair) -> None:
        ranges = [Range(pair.file, 0, 4_000_000), Range(pair.file, 0, 10)]
        pair.sender.send(ranges)
        pair.sender.close()
        assert [each.released for each in ranges] == [1, 1]
        assert (pair.sent, pair.lost) == (0, 0)

    with_pair(loop, story)


def test_a_lost_peer_is_noticed() -> None:
    """A connection that breaks while sending is given up."""

    async def story(pair: Pair) -> None:
        piece = Range(pair.file, 0, 4_000_000)
        pair.sender.send([piece])
        pair.peer.close()
        for _ in range(60_000):
            if pair.lost:
                break
            await asyncio.sleep(0.001)
        assert pair.lost == 1
        pair.sender.close()
        assert piece.released == 1

    with_pair(asyncio.new_event_loop, story)


def test_a_file_that_became_shorter() -> None:
    """The peer was promised more than there is: only the end of the connection can tell it."""

    async def story(pair: Pair) -> None:
        pair.file.truncate(10)
        piece = Range(pair.file, 0, 100)
        pair.sender.send([b"head", piece])
        assert pair.lost == 1
        pair.sender.close()
        assert piece.released == 1

    with_pair(asyncio.new_event_loop, story)


def test_release() -> None:
    with tempfile.TemporaryFile() as file:
        piece = Range(file, 0, 0)
        release([b"x", piece, memoryview(b"y")])
        assert piece.released == 1
